"""Compiles a task to a Formula Seed in three steps: conditions, computation graph, seed. See ``docs/design/seed.md#compiler``.

Each step is a separate request; its answer is checked before the next step begins. Model output never raises an exception here: the
result reports the failure and contains the best draft.
"""

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from attrs import define, evolve, field
from blake3 import blake3

from ....adapters.llm import BadAnswer, Completion, LLMError, Notice, Truncated
from ....adapters.llm.json_schema import canonical
from ....adapters.llm.middleware import Layer, NoText, asked_for, with_floats
from ....adapters.llm.strict_schema import ModelCapabilities
from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.documents.seed import read_seed
from ....lang.linter.seed import check as lint
from ....lang.source import Source, Span
from ....lang.trees.seed import FormulaSeed
from ...events import DraftMended, Events, PhaseFinished, PhaseStarted, RepairAsked
from ...limits import Deadline, Repetition
from ...models.caller import HOPELESS, Asker, Caller, Spent
from ...results import Failed, StepFailed
from ..loop_events import loop_events
from .compile_results import PHASES, CheckedAnswer, Compiled, CompiledStep, Fix, Phase, Status, Stopped
from .compile_store import (
    LONGEST_ANSWER,
    MOST_REPAIRS,
    SMALL_TOKENS,
    Compilations,
    CompileRequest,
    ask_for,
    diagnostics_for_model,
    repair_prompt,
    schema_of,
)
from .computation_graph import Graph, check_graph
from .conditions import Conditions, check_conditions
from .draft import Check, FixedDraft, SeedJudge, final, fix_draft

# Requests one draft. A draft is counted, recorded if the run is recorded, and never refused for its content. The project's own
# clients check answers against their schema and request one repair themselves. If such a client still refuses the answer, the
# answer is used as a draft. The client reports its repair request, so that the request counts as a repair.


class _UncheckedAnswers(Layer):
    """Accepts answers that do not fit the schema; ``repaired``, a custom option, is a list that collects the client's own repairs."""

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the inner client's answer, or the text that the client refused."""
        repaired: list[str] = options.pop("repaired")
        notify = options.get("notify")

        def forward(notice: Notice) -> None:
            if notice.kind == "repair":
                repaired.append(notice.reason)
            if notify is not None:
                notify(notice)

        try:
            return await self._inner.generate(prompt, **{**options, "notify": forward})
        except NoText as error:  # a fault of the client, not a draft: a repeated call would only cost more
            raise LLMError(error.message, hint="generate(prompt, **options) returns a str or a Completion") from error
        except BadAnswer as error:
            if isinstance(error, Truncated) or not error.text.strip():
                raise
            return Completion(error.text, usage=error.usage, attempts=error.attempts, cost=error.cost)


# Runs one of the three steps: requests an answer, checks and fixes it, and returns it to the model with its errors, until the
# answer is good or the repairs are used up.

LOOP = "compile"
"""The name of this loop in events."""
_AGAIN = frozenset({"bad_answer", "empty", "truncated"})
"""Kinds of call failures after which the call is repeated; each of these failures counts as an unusable draft."""


_SAME = (
    "\n\nYour last {} answers were the same, and have the same faults. "
    "Write a different answer; the repairs end if you give the same answer again.\n"
)


@define
class PhaseRun:
    """A step in progress.

    ``repairs`` is the maximum number of repairs, including repairs by the client. ``means`` are the capabilities of the model.
    """

    phase: Phase
    prompt: str
    judge: Callable[[str], CheckedAnswer]
    asker: Asker
    options: Mapping[str, Any]
    events: Events | None
    repairs: int
    means: ModelCapabilities = field(factory=ModelCapabilities)
    spent: Spent = field(factory=Spent)
    used: int = 0
    """Repairs so far, including those of the client."""
    mended: list[Fix] = field(factory=list)
    best: CheckedAnswer | None = None
    value: Any = None
    """The result; None if the step failed."""
    failed: Failed | None = None
    """The failure of the call, if a failed call ended the step."""
    began: float = field(factory=perf_counter)
    repetition: Repetition = field(factory=Repetition)

    async def run(self) -> CompiledStep:
        """Run the step to its end. Never raises for a model's answer."""
        self.began = perf_counter()
        if self.events:
            number = PHASES.index(self.phase) + 1
            self.events.emit(PhaseStarted(LOOP, self.phase, detail=f"step {number} of {len(PHASES)}", count=number))
        prompt = self.prompt
        for attempt in range(MOST_REPAIRS + 1):
            try:
                text = await self._draft(attempt, prompt)
            except StepFailed as error:
                self.repetition.take((error.failed.kind, error.failed.message))
                if error.failed.kind not in _AGAIN or self.used >= self.repairs or self.repetition.is_over:
                    self.failed = error.failed
                    return self.end("failed", error.failed.message)
                self.used += 1
                continue
            judged = self._take(text)
            if not judged.errors and judged.value is not None:
                self.value = judged.value
                return self.end("done")
            self.repetition.take(judged.source.text)
            if self.used >= self.repairs or self.repetition.is_over:
                break
            self.used += 1
            told = diagnostics_for_model(judged.diagnostics, judged.source)
            if self.events:
                self.events.emit(RepairAsked(LOOP, self.phase, self.used, judged.source.text, told))
            prompt = repair_prompt(self.prompt, judged.source.text, told)
            if self.repetition.is_told:
                prompt += _SAME.format(self.repetition.count + 1)
        left = len(self.best.errors) if self.best is not None else 0
        faults = f"{left} error{'' if left == 1 else 's'}"
        after = "" if not self.used else " after 1 repair" if self.used == 1 else f" after {self.used} repairs"
        reason = f"the answer still has {faults}{after}" if after else f"the answer has {faults}"
        if self.repetition.is_over:
            reason += f"; the model repeated the same answer {self.repetition.count + 1} times"
        return self.end("failed", reason)

    async def _draft(self, attempt: int, prompt: str) -> str:
        options: dict[str, Any] = {"sample": attempt} if attempt else {}
        options |= {"schema": schema_of(self.phase, small=self.means.small), "tidy": self._fixed_text}
        # The project's own clients request one repair if an answer does not fit the schema; that counts as a repair.
        options["repairs"] = 1 if self.used < self.repairs else 0
        most = SMALL_TOKENS if self.means.small else self.means.tokens
        if most is not None and "max_tokens" not in self.options:
            options["max_tokens"] = most
        number = PHASES.index(self.phase) * (MOST_REPAIRS + 1) + attempt
        options = {**self.options, **options}

        def digest() -> str:
            asked = {name: value for name, value in options.items() if name != "tidy"}
            return blake3(canonical(["COMPILE", prompt, asked_for(asked)])).hexdigest(length=16)

        repaired: list[str] = []
        outcome = await self.asker.ask(
            number, prompt, {**options, "repaired": repaired}, digest, value=lambda: bool(repaired), round=self.spent
        )
        self.used += outcome.value is True if outcome.reused else bool(repaired)
        return outcome.output

    def _fixed_text(self, text: str) -> str:
        """Apply all fixes that need no call to an answer, so that the client does not request a repair for these faults."""
        if len(text) > LONGEST_ANSWER[self.phase]:
            return text
        repaired = fix_draft(text, self.judge)
        self._tell(repaired)
        return repaired.judged.source.text

    def _take(self, text: str) -> CheckedAnswer:
        most = LONGEST_ANSWER[self.phase]
        if len(text) > most:
            message = f"the answer has {len(text):,} characters; at most {most:,} are allowed"
            source = Source(text[:2_000] + " …", f"<{self.phase}>")
            judged = CheckedAnswer(None, (Diagnostic("SEED007", "error", message, Span(0, 1)),), source)
        else:
            repaired = fix_draft(text, self.judge)
            self._tell(repaired)
            judged = repaired.judged
        if self.best is None or len(judged.errors) <= len(self.best.errors):
            self.best = judged
        return judged

    def _tell(self, repaired: FixedDraft) -> None:
        for each in repaired.mended:
            if each not in self.mended:
                self.mended.append(each)
                if self.events:
                    self.events.emit(DraftMended(LOOP, self.phase, each.code, each.message, each.how))

    def end(self, status: Status, reason: str = "", event: str = "") -> CompiledStep:
        """Emit the end of the step and return its result so far: its last good answer or its best draft.

        ``event`` is the status of the event, if it differs from ``status``.
        """
        best = self.best
        step = CompiledStep(
            self.phase, status, best.source.text if best is not None else "", best.diagnostics if best is not None else (),
            self.used, tuple(self.mended), (), self.spent.calls, self.spent.usage, self.spent.cost,
            perf_counter() - self.began, reason,
        )  # fmt: skip
        if self.events:
            repairs = "" if not step.repairs else f"{step.repairs} repair{'' if step.repairs == 1 else 's'}"
            fixes = "" if not step.mended else f"{len(step.mended)} fixed without a call"
            detail = reason or ", ".join(filter(None, (repairs, fixes)))
            told = PhaseFinished(LOOP, self.phase, event or status, step.seconds, detail=detail, count=step.repairs)
            self.events.emit(told)
        return step


async def compile_task(
    request: CompileRequest,
    caller: Caller,
    *,
    step: str = "",
    check: Check = lint,
    options: Mapping[str, Any] | None = None,
    events: Events | None = None,
    cancel: asyncio.Event | None = None,
    time_limit: float | None = None,
    cache: Compilations | None = None,
    means: ModelCapabilities | None = None,
) -> Compiled:
    """Compile ``request`` with the model of ``caller``.

    ``check`` (the linter, or a check that also uses contexts) returns the diagnostics of a seed; a seed with errors is rejected.
    ``options`` are the port's options for each call. ``events`` are the caller's events by default. ``cancel`` (once set) and
    ``time_limit`` (seconds) stop the call in progress. If the caller has a record, each finished call is stored in the record and reused.
    With a ``cache``, a cached seed is reused if it still passes ``check``, and results are stored in the cache. ``means`` are the output
    constraints that the model supports.
    """
    heard = caller.events if events is None else events
    kept_by = {"name": request.name, "options": with_floats(options or {})}
    began = perf_counter()
    if cache is not None:
        found = await cache.find(request.task, kept_by)
        if found is not None and (made := _known(found, check)) is not None:
            return evolve(made, seconds=perf_counter() - began)
    work = _Compiling(
        request,
        Asker(caller, step, caller.events, losses=None, layers=(_UncheckedAnswers,)),
        options or {},
        check,
        heard,
        Deadline(cancel, time_limit),
        began=began,
        means=means or ModelCapabilities(),
    )
    broken = len(heard.broken) if heard is not None else 0
    record = caller.record
    with loop_events(heard, LOOP, request.name, record.run_id if record is not None else "") as loop:
        made = await work.run()
        loop.status = made.status
    if heard is not None and not step:
        made = evolve(made, warnings=(*made.warnings, *heard.broken[broken:]))
    if cache is not None and made.status == "done":
        await cache.keep(request.task, kept_by, {"text": made.text, "repairs": made.repairs})
    return made


def _known(found: Mapping[str, Any], check: Check) -> Compiled | None:
    """Return the cached result if its seed still has no errors; otherwise None."""
    text = found.get("text")
    read = read_seed(Source(text, "<seed>")) if isinstance(text, str) else None
    if read is None or read.seed is None or read.seed.form != "002":
        return None
    diagnostics = tuple(check(read.seed))
    if has_errors(diagnostics):
        return None
    return Compiled("done", read.seed, read.seed.document, read.source.text, cached=True, diagnostics=diagnostics)


@define
class _Compiling:
    """One compilation in progress."""

    request: CompileRequest
    asker: Asker
    options: Mapping[str, Any]
    check: Check
    events: Events | None
    ending: Deadline
    began: float
    means: ModelCapabilities = field(factory=ModelCapabilities)
    steps: list[CompiledStep] = field(factory=list)
    failed: Failed | None = None
    repeats: bool = False

    async def run(self) -> Compiled:
        """Run the three steps; stop at the first step that fails."""
        task = self.request.task
        conditions = await self._phase("conditions", ask_for("conditions", task), check_conditions)
        if not isinstance(conditions, Conditions):
            return self._failure()
        if conditions.unused:
            self._note(f"no condition uses {', '.join(conditions.unused[:8])}")
        graph = await self._phase(
            "graph", ask_for("graph", task, conditions), lambda text: check_graph(text, conditions)
        )
        if not isinstance(graph, Graph):
            return self._failure()
        if graph.moved:
            self._note(f"sorted by dependency: {', '.join(graph.moved[:8])}")
        if graph.loose:
            self._note(f"no output and no node needs {', '.join(graph.loose[:8])}")
        judge = SeedJudge(conditions, graph, self.check)
        seed = await self._phase("seed", ask_for("seed", task, conditions, graph), judge)
        if not isinstance(seed, FormulaSeed):
            return self._failure()
        for note in judge.notes(seed):
            self._note(note)
        return self._compiled(
            *final(seed, self.request.name or ("" if seed.task_name else conditions.task_name), self.check)
        )

    async def _phase(self, phase: Phase, prompt: str, judge: Callable[[str], CheckedAnswer]) -> Any:
        """Run a step, append its result to ``steps`` and return its value; None if the step failed or was stopped."""
        running = PhaseRun(
            phase, prompt, judge, self.asker, self.options, self.events, self.request.repairs, self.means
        )
        step = await self.ending.within(running.run())
        if step is None:
            self.steps.append(running.end("failed", _WHY[self.ending.by], "cancelled"))
            return None
        self.steps.append(step)
        self.failed, self.repeats = running.failed, running.value is None and running.repetition.is_over
        return running.value

    def _note(self, text: str) -> None:
        self.steps[-1] = evolve(self.steps[-1], notes=(*self.steps[-1].notes, text))

    def _failure(self) -> Compiled:
        last, failed = self.steps[-1], self.failed
        kind = failed.kind if failed is not None else ""
        stopped: Stopped = self.ending.by or ("budget" if kind == "budget" else "model" if kind in HOPELESS else "")
        if not stopped and self.repeats:
            stopped = "no_progress"
        return self._result(
            Compiled(
                "failed", stopped=stopped, reason=f"{_NAMES[last.phase]}: {last.reason}",
                hint=failed.hint if failed is not None else "", diagnostics=last.diagnostics,
            )
        )  # fmt: skip

    def _compiled(self, seed: FormulaSeed, text: str, diagnostics: tuple[Diagnostic, ...]) -> Compiled:
        return self._result(Compiled("done", seed, seed.document, text, diagnostics=diagnostics))

    def _result(self, made: Compiled) -> Compiled:
        spent = self.asker.spent
        return evolve(
            made, steps=tuple(self.steps), repairs=sum(each.repairs for each in self.steps), usage=spent.usage,
            calls=spent.calls, cost=spent.cost, seconds=perf_counter() - self.began,
        )  # fmt: skip


_WHY = {"cancelled": "cancelled", "time": "the time limit was reached", "": "stopped"}
_NAMES = {
    "conditions": "conditions (step 1 of 3)",
    "graph": "computation graph (step 2 of 3)",
    "seed": "seed (step 3 of 3)",
}
