"""One of the three steps: asked, judged, mended, sent back with what is wrong, until it is good or the repairs are used up."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from attrs import define, field, frozen

from ...adapters.llm.strict_schema import Means
from ...lang.diagnostic import Diagnostic
from ...lang.source import Source, Span
from ..ending import Repetition
from ..events import DraftMended, Events, PhaseFinished, PhaseStarted, RepairAsked
from ..results import Failed, StepFailed
from ..spending import Spent
from .asking import Asker, Draft
from .mending import Repaired, mend
from .requests import MOST_REPAIRS
from .results import PHASES, CompiledStep, Judged, Mended, Phase, Status
from .wording import LONGEST_ANSWER, SMALL_TOKENS, repair_prompt, schema_of, shown

__all__ = ["LOOP", "PhaseRun", "Phased"]

LOOP = "compile"
"""What events call this loop."""
_AGAIN = frozenset({"bad_answer", "empty", "truncated"})
"""Failures of a call that asking once more may cure: each is a draft that is of no use."""


_SAME = "\n\nYour last {} answers were the same, and have the same faults. Write another one; the same answer once more ends the repairs.\n"


@frozen
class Phased:
    """A step that is over. ``value`` is None where it failed, ``failed`` the call's failure where that was why."""

    step: CompiledStep
    value: Any = None
    failed: Failed | None = None


@define
class PhaseRun:
    """A step under way. ``repairs`` is the most of them, the client's own among them. ``means``: of the model."""

    phase: Phase
    prompt: str
    judge: Callable[[str], Judged]
    asker: Asker
    events: Events | None
    repairs: int
    means: Means = field(factory=Means)
    spent: Spent = field(factory=Spent)
    used: int = 0
    """Repairs so far, those of the client among them."""
    mended: list[Mended] = field(factory=list)
    best: Judged | None = None
    began: float = field(factory=perf_counter)
    repetition: Repetition = field(factory=Repetition)

    async def run(self) -> Phased:
        """Run the step to its end. Never raises for what a model says."""
        self.began = perf_counter()
        if self.events:
            number = PHASES.index(self.phase) + 1
            self.events.emit(PhaseStarted(LOOP, self.phase, detail=f"step {number} of {len(PHASES)}", count=number))
        prompt = self.prompt
        for attempt in range(MOST_REPAIRS + 1):
            try:
                draft = await self._draft(attempt, prompt)
            except StepFailed as error:
                self.repetition.take((error.failed.kind, error.failed.message))
                if error.failed.kind not in _AGAIN or self.used >= self.repairs or self.repetition.is_over:
                    return Phased(self._finished("failed", error.failed.message), failed=error.failed)
                self.used += 1
                continue
            judged = self._take(draft)
            if not judged.errors and judged.value is not None:
                return Phased(self._finished("done"), judged.value)
            self.repetition.take(judged.source.text)
            if self.used >= self.repairs or self.repetition.is_over:
                break
            self.used += 1
            told = shown(judged.diagnostics, judged.source)
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
            reason += f"; the model gave the same answer {self.repetition.count + 1} times"
        return Phased(self._finished("failed", reason))

    async def _draft(self, attempt: int, prompt: str) -> Draft:
        options: dict[str, Any] = {"sample": attempt} if attempt else {}
        options |= {"schema": schema_of(self.phase, small=self.means.small), "tidy": self._tidied}
        # A client of this house asks once more where the schema is not kept to, and that is a repair.
        options["repairs"] = 1 if self.used < self.repairs else 0
        most = SMALL_TOKENS if self.means.small else self.means.tokens
        if most is not None and "max_tokens" not in self.asker.options:
            options["max_tokens"] = most
        place = PHASES.index(self.phase) * (MOST_REPAIRS + 1) + attempt
        draft = await self.asker.ask(place, prompt, options, self.spent)
        self.used += draft.repaired
        return draft

    def _tidied(self, text: str) -> str:
        """Return an answer mended: what needs no call is not asked for by the client either."""
        if len(text) > LONGEST_ANSWER[self.phase]:
            return text
        repaired = mend(text, self.judge)
        self._tell(repaired)
        return repaired.judged.source.text

    def _take(self, draft: Draft) -> Judged:
        most = LONGEST_ANSWER[self.phase]
        if len(draft.text) > most:
            message = f"the answer has {len(draft.text):,} characters; {most:,} is the most"
            source = Source(draft.text[:2_000] + " …", f"<{self.phase}>")
            judged = Judged(None, (Diagnostic("SEED007", "error", message, Span(0, 1)),), source)
        else:
            repaired = mend(draft.text, self.judge)
            self._tell(repaired)
            judged = repaired.judged
        if self.best is None or len(judged.errors) <= len(self.best.errors):
            self.best = judged
        return judged

    def _tell(self, repaired: Repaired) -> None:
        for each in repaired.mended:
            if each not in self.mended:
                self.mended.append(each)
                if self.events:
                    self.events.emit(DraftMended(LOOP, self.phase, each.code, each.message, each.how))

    def _finished(self, status: Status, reason: str = "") -> CompiledStep:
        step = self.over(status, reason)
        if self.events:
            detail = reason or _came_to(step)
            self.events.emit(PhaseFinished(LOOP, self.phase, status, step.seconds, detail=detail, count=step.repairs))
        return step

    def over(self, status: Status, reason: str = "") -> CompiledStep:
        """Return the step as it is now, with its last good answer or its best draft."""
        best = self.best
        return CompiledStep(
            self.phase, status, best.source.text if best is not None else "", best.diagnostics if best is not None else (),
            self.used, tuple(self.mended), (), self.spent.calls, self.spent.usage, self.spent.cost,
            perf_counter() - self.began, reason,
        )  # fmt: skip

    def stopped(self, reason: str) -> CompiledStep:
        """Return the step as one that was stopped under way, and tell of it."""
        step = self.over("failed", reason)
        if self.events:
            self.events.emit(
                PhaseFinished(LOOP, self.phase, "cancelled", step.seconds, detail=reason, count=step.repairs)
            )
        return step


def _came_to(step: CompiledStep) -> str:
    repairs = "" if not step.repairs else f"{step.repairs} repair{'' if step.repairs == 1 else 's'}"
    mended = "" if not step.mended else f"{len(step.mended)} mended without a call"
    return ", ".join(each for each in (repairs, mended) if each)
