"""The rounds of an iterative answer: write, evaluate, accept or feed back; at the end the best answer, not the last.

See ``docs/design/loops.md#iterative-answers``.

A round that was begun and not finished (cancelled, out of time) is in no result; what it cost is.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal, Protocol, TypeVar

from attrs import define, evolve, field

from ..ending import Ending, Repetition
from ..events import AnswerFinished, AnswerStarted, CandidateWritten, Events, IterationFinished, IterationStarted
from ..results import Failed, StepFailed
from ..spending import Spent
from .asking import Asker
from .ending import judges_left_out, reason_of, stopped_by
from .evaluating import Evaluating
from .feedback import feedback_on
from .generating import Generator
from .requests import AnswerRequest
from .results import Answered, Candidate, Evaluation, Fault, Iteration, Status, Stopped

__all__ = ["Examples", "OnIteration", "Rounds"]

OnIteration = Callable[[Iteration], Awaitable[None] | None]
"""Gets each iteration when it is finished, before anybody else hears of it. Where it is async the run waits for it."""

_Made = TypeVar("_Made")

_SAME = "Your answers in the last {} rounds were the same as before. Write another answer: the same once more ends the rounds."


class Examples(Protocol):
    """Accepted answers, kept as examples for like instructions; ``examples`` has one that writes to disk."""

    async def like(self, request: AnswerRequest) -> Sequence[tuple[str, str]]:
        """Return instruction and answer of accepted answers to instructions like the request's."""
        ...

    async def keep(self, request: AnswerRequest, answer: str, score: float) -> None:
        """Keep an accepted answer."""
        ...


@define
class Rounds:
    """One answer under way."""

    request: AnswerRequest
    asker: Asker
    generator: Generator
    evaluating: Evaluating
    events: Events | None
    ending: Ending
    on_iteration: OnIteration | None
    examples: Examples | None
    told: Mapping[str, Any]
    iterations: list[Iteration] = field(factory=list)
    best: int | None = None
    stopped: Stopped = ""
    warnings: list[str] = field(factory=list)
    began: float = field(factory=perf_counter)
    _feedback: str | None = None
    _repetition: Repetition = field(factory=Repetition)

    async def run(self) -> Answered:
        """Run to the end; whatever ends it, nothing is under way then and subscribers have heard of it."""
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
        if self.events is not None and not step:  # a script tells of them itself
            self.warnings += self.events.broken[broken:]
        made = self._answered()
        self._finished(made)
        return made

    async def _iterate(self) -> None:
        for number in range(1, self.request.iter_max + 1):
            iteration = await self._in_time(self._round(number))
            if iteration is None:
                return
            await self._take(iteration)
            if self._accepted():
                return
            panel = self.evaluating.panel
            self.stopped = stopped_by(
                self.asker.losses, self.generator.model, panel.models if panel is not None else ()
            )
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
        chosen = max(range(attempts), key=lambda each: _rank(made[each]))
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
        """Keep a finished iteration, then tell of it."""
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

    async def _in_time(self, work: Coroutine[Any, Any, _Made]) -> _Made | None:
        """Return what ``work`` gives; None where the run is stopped before, and ``stopped`` says by what."""
        made = await self.ending.within(work)
        if made is None:
            self.stopped = self.ending.by
        return made

    def _accepted(self) -> bool:
        score = self.iterations[-1].score if self.iterations else None
        return score is not None and score >= self.request.score_threshold

    async def _find_examples(self) -> None:
        if self.examples is None:
            return
        try:
            found = tuple(await self.examples.like(self.request))
        except Exception as error:  # a caller's own may raise anything; examples are no condition of an answer
            self.warnings.append(f"no examples were used: {type(error).__name__}: {error}"[:500])
            return
        self.generator = evolve(self.generator, examples=found)

    async def _keep_example(self) -> None:
        last = self.iterations[-1]
        if self.examples is None or last.score is None:
            return
        try:
            await self.examples.keep(self.request, last.answer, last.score)
        except Exception as error:  # the answer is there, whatever becomes of its copy
            self.warnings.append(f"the answer was not kept as an example: {type(error).__name__}: {error}"[:500])

    def _answered(self) -> Answered:
        """Sum up."""
        status: Status = "accepted" if self._accepted() else "best" if self.best is not None else "failed"
        if status == "accepted":
            self.best, self.stopped = len(self.iterations) - 1, ""
        spent, losses, panel = self.asker.spent, self.asker.losses, self.evaluating.panel
        left_out = judges_left_out(losses, self.generator.model, panel.models if panel is not None else ())
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


def _rank(candidate: Candidate) -> tuple[float, bool]:
    """Return what candidates are compared by: the score; where none was evaluated one that at least has an answer is shown."""
    evaluation: Evaluation | None = candidate.evaluation
    return (evaluation.score if evaluation is not None else -1.0, bool(candidate.answer))


def _fault(stage: Literal["generation", "evaluation"], failed: Failed) -> Fault:
    return Fault(stage, failed.kind, failed.message, failed.hint)
