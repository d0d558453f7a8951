"""Answers a request: checks its parameters and runs the rounds. See ``docs/design/loops.md#iterative-answers``.

Model failures are not raised as exceptions; the result contains them.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal, Protocol, get_args

from attrs import define, evolve, field

from ..errors import RequestError
from ..events import AnswerFinished, AnswerStarted, CandidateWritten, Events, IterationFinished, IterationStarted
from ..limits import Deadline, Repetition, call_options, check_listeners, checked_time_limit
from ..models.caller import Asker, Caller, Losses, Spent
from ..results import Failed, StepFailed
from .answer_results import Answered, AnswerRequest, Candidate, Fault, Iteration, Status, Stopped, points
from .evaluation import CandidateEvaluator, as_evaluators, check_evaluators
from .generator import Ask, Generator, feedback_on, way_of_asking
from .judges import Panel, Scale, can_judge
from .templates import Template, find_template

# The end of an iterative answer: the reasons for an early stop, and the sentences that report the reasons.


def judges_left_out(panel: Panel, has_writer: bool) -> list[str]:
    """Return sentences about omitted judges: one sentence for each model that can't be called, and one for all other omitted judges.

    ``has_writer`` is true if the model that writes can be called.
    """
    losses, number = panel.losses, len(panel.fewer)
    which = "1 evaluation has" if number == 1 else f"{number} evaluations have"
    fewer = [f"{which} fewer judges than requested: {_sentence(panel.fewer[0])}"] if number else []
    if not has_writer or panel.is_lost:
        return fewer
    lost = [name for name in dict.fromkeys(panel.models) if name in losses.models]
    return [*(f"the judge {name} was left out: {_sentence(losses.models[name])}" for name in lost), *fewer]


def reason_of(
    request: AnswerRequest,
    iterations: Sequence[Iteration],
    score: float | None,
    stopped: Stopped,
    time_limit: float | None,
    losses: Losses,
) -> str:
    """Return why no answer was accepted; ``score`` is the score of the best answer, None if no answer was evaluated."""
    match stopped:
        case "cancelled":
            why = "the run was cancelled"
        case "time":
            why = f"the time limit of {time_limit:g} seconds passed"
        case "budget" | "hopeless":
            why = _sentence(losses.budget or next(iter(losses.models.values()), None))
        case "no_progress":
            why = f"the model repeated its earlier answers in the last 3 of {len(iterations)} iterations"
        case _:
            rounds = f"{len(iterations)} iteration{'s' if len(iterations) > 1 else ''}"
            why = f"no answer in {rounds} reached {request.score_threshold:g}"
    if score is not None:
        return f"{why}; the best answer scores {points(score, request.score_threshold)}"
    if stopped in ("budget", "hopeless"):
        return why
    if stopped:
        return f"{why} before an answer was evaluated"
    error = iterations[-1].error
    return f"no answer was evaluated: {_sentence(error)}" if error is not None else "no answer was evaluated"


def _sentence(failed: Failed | Fault | None) -> str:
    if failed is None:
        return ""
    return f"{failed.message} ({failed.hint})" if failed.hint else failed.message


# The rounds of an iterative answer: write, evaluate, then accept the answer or give feedback. At the end, the result is the best answer,
# not the last answer. See ``docs/design/loops.md#iterative-answers``.
# An unfinished round (cancelled, out of time) is not in the result, but its cost is included.

OnIteration = Callable[[Iteration], Awaitable[None] | None]
"""A function that is called with each finished iteration, before the subscribers. If it is async, the run waits for it."""

_SAME = "Your answers in the last {} rounds were the same as before. Write a different answer: one more repetition ends the run."


class Examples(Protocol):
    """Stores accepted answers as examples for similar instructions. ``templates.KeptExamples`` stores the examples on disk."""

    async def like(self, request: AnswerRequest) -> Sequence[tuple[str, str]]:
        """Return pairs of an instruction and its accepted answer; the instructions are similar to the instruction in the request."""
        ...

    async def keep(self, request: AnswerRequest, answer: str, score: float) -> None:
        """Save an accepted answer."""
        ...


@define
class Rounds:
    """A running iterative answer."""

    request: AnswerRequest
    asker: Asker
    generator: Generator
    evaluating: CandidateEvaluator
    events: Events | None
    ending: Deadline
    on_iteration: OnIteration | None
    examples: Examples | None
    told: Mapping[str, Any]
    losses: Losses
    iterations: list[Iteration] = field(factory=list)
    best: int | None = None
    stopped: Stopped = ""
    warnings: list[str] = field(factory=list)
    began: float = field(factory=perf_counter)
    _feedback: str | None = None
    _repetition: Repetition = field(factory=Repetition)

    async def run(self) -> Answered:
        """Run all rounds and return the result. When this method returns, nothing is running and the subscribers have been notified."""
        request, step = self.request, self.asker.step
        broken = len(self.events.broken) if self.events is not None else 0
        if self.events:
            self.events.emit(AnswerStarted(step, request.iter_max, request.score_threshold, request.attempts))
        try:
            await self._find_examples()
            await self._iterate()
        except (asyncio.CancelledError, Exception) as error:
            self.stopped = "cancelled"
            made = self._answered()
            self._finished(
                made, "" if isinstance(error, asyncio.CancelledError) else f"{type(error).__name__}: {error}"
            )
            raise
        if self._accepted():
            await self._keep_example()
        if self.events is not None and not step:  # a script emits its own warnings
            self.warnings += self.events.broken[broken:]
        made = self._answered()
        self._finished(made)
        return made

    async def _iterate(self) -> None:
        for number in range(1, self.request.iter_max + 1):
            iteration = await self.ending.within(self._round(number))
            if iteration is None:
                self.stopped = self.ending.by
                return
            await self._take(iteration)
            if self._accepted():
                return
            panel = self.evaluating.panel
            if self.losses.budget is not None:
                self.stopped = "budget"
            elif self.generator.model in self.losses.models or (panel is not None and panel.is_lost):
                self.stopped = "hopeless"
            if self.stopped:
                return
            if self._repetition.is_over and number < self.request.iter_max:
                self.stopped = "no_progress"
                return

    async def _round(self, number: int) -> Iteration:
        began, spent, attempts = perf_counter(), Spent(), self.request.attempts
        if self.events:
            self.events.emit(IterationStarted(self.asker.step, number))
        prompt = self.generator.prompt(self._feedback)
        if attempts == 1:
            made = [await self._candidate(number, 0, prompt, spent)]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._candidate(number, each, prompt, spent)) for each in range(attempts)]
            made = [task.result() for task in tasks]
        # Among candidates without a score, those with an answer come first.
        scores = [(each.evaluation.score if each.evaluation else -1.0, bool(each.answer)) for each in made]
        chosen = scores.index(max(scores))
        return Iteration(
            number, tuple(made), chosen, self._feedback, spent.usage, spent.calls, spent.cost, perf_counter() - began
        )

    async def _candidate(self, iteration: int, candidate: int, prompt: str, spent: Spent) -> Candidate:
        number = (iteration - 1) * self.request.attempts + candidate
        try:
            text = await self.generator.write(number, candidate, prompt, spent)
        except StepFailed as error:
            return Candidate("", None, _fault("generation", error.failed))
        if self.events:
            self.events.emit(CandidateWritten(self.asker.step, iteration, candidate, text))
        try:
            return Candidate(text, await self.evaluating.evaluate(number, text, spent))
        except StepFailed as error:
            return Candidate(text, None, _fault("evaluation", error.failed))

    async def _take(self, iteration: Iteration) -> None:
        """Save a finished iteration, then notify the callback and the subscribers."""
        score = iteration.score
        best = score is not None and (self.best is None or score > (self.iterations[self.best].score or 0.0))
        self.iterations.append(iteration)
        if best:
            self.best = len(self.iterations) - 1
        if iteration.evaluation is not None:
            self._feedback = feedback_on(
                iteration.answer, iteration.evaluation, self.request.score_threshold, self.generator.template
            )
        self._repetition.take(*(" ".join(each.answer.split()) for each in iteration.candidates if each.answer))
        if self._repetition.is_told and self._feedback is not None:
            self._feedback += f"\n\n{_SAME.format(self._repetition.count)}"
        if self.on_iteration is not None:
            waiting = self.on_iteration(iteration)
            if inspect.isawaitable(waiting):
                await waiting
        if self.events:
            error = iteration.error.message if iteration.error is not None else ""
            self.events.emit(
                IterationFinished(
                    self.asker.step, iteration.iteration_number, score, self._accepted(), best, iteration.seconds, error,
                    iteration.as_json(),
                )
            )  # fmt: skip

    def _accepted(self) -> bool:
        score = self.iterations[-1].score if self.iterations else None
        return score is not None and score >= self.request.score_threshold

    async def _find_examples(self) -> None:
        if self.examples is None:
            return
        try:
            found = tuple(await self.examples.like(self.request))
        except Exception as error:  # a custom store may raise anything; examples are optional
            self.warnings.append(f"no examples were used: {type(error).__name__}: {error}"[:500])
            return
        self.generator = evolve(self.generator, examples=found)

    async def _keep_example(self) -> None:
        last = self.iterations[-1]
        if self.examples is None or last.score is None:
            return
        try:
            await self.examples.keep(self.request, last.answer, last.score)
        except Exception as error:  # the answer is complete even if saving its copy fails
            self.warnings.append(f"the answer was not stored as an example: {type(error).__name__}: {error}"[:500])

    def _answered(self) -> Answered:
        """Return the final result."""
        status: Status = "accepted" if self._accepted() else "best" if self.best is not None else "failed"
        if status == "accepted":
            self.best, self.stopped = len(self.iterations) - 1, ""
        spent, losses, panel = self.asker.spent, self.losses, self.evaluating.panel
        left_out = [] if panel is None else judges_left_out(panel, self.generator.model not in losses.models)
        score = self.iterations[self.best].score if self.best is not None else None
        reason = reason_of(self.request, self.iterations, score, self.stopped, self.ending.time_limit, losses)
        return Answered(
            status, tuple(self.iterations), self.best, self.stopped, "" if status == "accepted" else reason, spent.usage,
            spent.calls, spent.cost, perf_counter() - self.began, (*self.warnings, *left_out), self.told,
        )  # fmt: skip

    def _finished(self, made: Answered, reason: str = "") -> None:
        if self.events:
            said = reason or made.reason
            self.events.emit(AnswerFinished(self.asker.step, made.status, made.final_score, made.seconds, said))


def _fault(stage: Literal["generation", "evaluation"], failed: Failed) -> Fault:
    return Fault(stage, failed.kind, failed.message, failed.hint)


TOO_SMALL = (
    "the local model is too small to judge: it accepts every answer; give checks and judges=0, or a larger model"
)
"""The warning if the local model is a judge."""


async def answer(
    request: AnswerRequest,
    caller: Caller,
    *,
    step: str = "",
    model: str | None = None,
    spec: str = "",
    options: Mapping[str, Any] | None = None,
    judges_models: Sequence[str | None] = (),
    evaluators: Sequence[Callable[[str], Any]] = (),
    templates: Mapping[str, Template] | None = None,
    ask: Ask = "auto",
    scale: Scale = "auto",
    events: Events | None = None,
    cancel: asyncio.Event | None = None,
    time_limit: float | None = None,
    on_iteration: OnIteration | None = None,
    examples: Examples | None = None,
) -> Answered:
    """Answer ``request`` with the models of ``caller``.

    ``step`` is the id of the step in a script; "" outside a script. ``model`` is the name of the caller's model that writes
    (None means the default model). ``spec`` is the spec of that model; it determines ``ask`` if ``ask`` is "auto".
    ``judges_models`` are the names of the models that judge in rotation; by default, the model that writes. ``options`` are the
    options of each call; ``limits.OPTIONS`` contains the allowed options. ``evaluators`` are Python callables that
    ``evaluation.as_evaluator`` accepts. ``templates`` are added to the built-in templates. ``events`` is the stream of events
    (None means the caller's stream). Setting ``cancel``, or exceeding ``time_limit`` (seconds), stops the running calls; the
    result is then the best of the finished iterations. If the caller has a record, each finished call is saved in the record
    and reused.

    Raises ``RequestError`` before any call. Also raises the exceptions that ``on_iteration`` raises.
    """
    request = validated_request(
        request,
        evaluators=evaluators,
        templates=templates,
        options=options,
        ask=ask,
        scale=scale,
        time_limit=time_limit,
    )
    template = find_template(request.template, templates or {})
    check_listeners(events, cancel, on_iteration)
    called, asked = as_evaluators(evaluators), call_options(options or {})
    heard = caller.events if events is None else events
    losses = Losses()
    asker = Asker(caller, step, heard, losses=losses)
    panel, warnings = None, list[str]()
    if request.judges:
        models = tuple(judges_models) or (model,)
        specs = [spec if name == model else name or "" for name in models]
        scales: list[Literal["unit", "ten"]] = ["ten" if scale == "ten" else "unit"] * len(models)
        warnings = [] if all(map(can_judge, specs)) else [TOO_SMALL]
        panel = Panel(asker, request, template, models, scales, asked, losses)
    generator = Generator(asker, request, template, way_of_asking(ask, spec), model, asked)
    evaluating = CandidateEvaluator((*check_evaluators(request.checks), *called), panel, request.score_threshold)
    told = _metadata(request, spec or model, judges_models, [each.name for each in called])
    rounds = Rounds(
        request,
        asker,
        generator,
        evaluating,
        heard,
        Deadline(cancel, checked_time_limit(time_limit)),
        on_iteration,
        examples,
        told,
        losses,
        warnings=warnings,
    )
    return await rounds.run()


def validated_request(
    request: AnswerRequest,
    *,
    evaluators: Sequence[Callable[[str], Any]] = (),
    templates: Mapping[str, Template] | None = None,
    options: Mapping[str, Any] | None = None,
    ask: Ask = "auto",
    scale: Scale = "auto",
    time_limit: float | None = None,
) -> AnswerRequest:
    """Return the normalized request; no call is made. If the criteria are blank and there are checks, ``judges`` becomes 0.

    Raises ``RequestError`` for an invalid request, like ``answer``.
    """
    call_options(options or {})
    checked_time_limit(time_limit)
    for parameter, value, known in (("ask", ask, get_args(Ask)), ("scale", scale, get_args(Scale))):
        if value not in known:
            raise RequestError(parameter, f"{value!r:.60} is not one of: {', '.join(known)}")
    find_template(request.template, templates or {})
    checked = bool(check_evaluators(request.checks)) + bool(as_evaluators(evaluators))
    if request.judges and not request.eval_crit.strip():
        if not checked:
            raise RequestError("eval_crit", "the judges need criteria", "describe a good answer, or give checks")
        return evolve(request, judges=0)
    if not request.judges and not checked:
        raise RequestError(
            "judges",
            "judges is 0 and there are no checks: nothing evaluates the answer",
            "give checks, or set judges to 1 or more",
        )
    return request


def _metadata(
    request: AnswerRequest, model: str | None, judges: Sequence[str | None], evaluators: Sequence[str]
) -> dict[str, Any]:
    """Return the additional entries for the metadata of the response."""
    told: dict[str, Any] = {
        "model": model, "template": request.template, "iter_max": request.iter_max,
        "score_threshold": request.score_threshold, "attempts": request.attempts, "judges": request.judges,
        "checks": list(request.checks),
    }  # fmt: skip
    if judges and request.judges:
        told["judge_models"] = list(judges)
    if evaluators:
        told["evaluators"] = list(evaluators)
    return told
