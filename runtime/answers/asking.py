"""Asking generator and judges: each call counted, checked against its schema with one repair, and kept where the run is kept.

A call's number (``item`` in events and records) says its place: iteration, candidate, and generator or which judge.
"""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from attrs import define, field
from blake3 import blake3

from ...adapters.llm.answers import canonical
from ...adapters.llm.middleware import asked_for
from ..calls import HOPELESS, Caller, Request
from ..events import Events
from ..results import Failed, Outcome, StepFailed
from ..spending import Spent, checked
from .requests import JUDGES

__all__ = ["Asker", "Losses", "place_of"]


def place_of(number: int, judge: int | None = None) -> int:
    """Return the number of the call for candidate ``number`` of the whole run (from 0): the generator's, or a judge's (from 0)."""
    return number * (1 + JUDGES) + (0 if judge is None else 1 + judge)


@define
class Losses:
    """Failures that the next call would share: by the model's name (None: the run's own), and a budget that is used up.

    ``fewer``: why a judge gave none, for each evaluation that fewer judges gave than were asked; those aside that ``models`` tells of.
    """

    models: dict[str | None, Failed] = field(factory=dict)
    budget: Failed | None = None
    fewer: list[Failed] = field(factory=list)

    def of(self, model: str | None) -> Failed | None:
        """Return why ``model`` need not be asked."""
        return self.budget or self.models.get(model)

    def add(self, model: str | None, failed: Failed) -> None:
        """Keep a failure of ``model``, if it is such a one."""
        if failed.kind == "budget":
            self.budget = self.budget or failed
        elif failed.kind in HOPELESS:
            self.models.setdefault(model, failed)


@define
class Asker:
    """Asks the run's models for one iterative answer, none of them again after a failure that its next call would share.

    ``spent`` is what all calls cost, those that were cancelled too.
    """

    caller: Caller
    step: str
    events: Events | None
    spent: Spent = field(factory=Spent)
    losses: Losses = field(factory=Losses)
    _callers: dict[str | None, Caller] = field(factory=dict)

    async def ask(
        self, place: int, prompt: str, options: Mapping[str, Any], model: str | None = None, round: Spent | None = None
    ) -> str:
        """Return the answer's text; raise ``StepFailed``. What it cost goes into ``spent`` and into ``round``."""
        record, digest = self.caller.record, ""
        if record is not None:
            digest = _digest(prompt, options, model)
            earlier = record.recall(self.step, place, digest)
            if earlier is not None:
                return earlier.output
        lost = self.losses.of(model)
        if lost is not None:
            raise StepFailed(Failed(lost.kind, f"not asked: {lost.message}", lost.hint))
        tally, began = Spent(), perf_counter()
        try:
            outcome = await self._ask(place, prompt, {**options, "tally": tally}, model, tally)
        finally:
            for total in (self.spent, round):
                if total is not None:
                    total.add(tally.calls, tally.usage, tally.cost)
        if record is not None:
            kept = Outcome(
                outcome.output, outcome.output, tally.usage, tally.cost, tally.calls, tally.calls, "", False, digest
            )
            self.caller.item_done(self.step, place, kept, perf_counter() - began)
        return outcome.output

    async def _ask(
        self, place: int, prompt: str, options: Mapping[str, Any], model: str | None, tally: Spent
    ) -> Outcome:
        try:
            outcome = await self._caller(model).ask(self.step, Request(prompt, options=options), place)
        except StepFailed as error:
            tally.add(0, error.usage, error.cost)
            self.losses.add(model, error.failed)
            raise
        tally.add(0, outcome.usage, outcome.cost)
        return outcome

    def _caller(self, model: str | None) -> Caller:
        """Return a caller of ``model`` alone that has its answers checked, and shares the run's gate. Raises ``StepFailed``."""
        made = self._callers.get(model)
        if made is None:
            given, run = self.caller.client(Request("", model=model)), self.caller
            made = Caller(checked(given), {}, self.events, run.trace, run.limit, warn=run.warn)
            made.gate = run.gate
            self._callers[model] = made
        return made


def _digest(prompt: str, options: Mapping[str, Any], model: str | None) -> str:
    """Return a hash of all that can change the answer. How long to wait and how often to retry can't."""
    told = canonical(["ANSWER", prompt, model, asked_for(options), options.get("sample", 0)])
    return blake3(told).hexdigest(length=16)
