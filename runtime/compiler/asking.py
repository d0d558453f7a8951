"""Asking for one draft: counted, kept where the run is kept, and never refused for what it says: every text comes back.

A client of this house checks answers against their schema and asks for one repair in its own words. What it then still refuses is a draft
here, like any other answer, and that it was asked to repair is told, so that it counts as a repair.
"""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from attrs import define, field, frozen
from blake3 import blake3

from ...adapters.llm import BadAnswer, Completion, LLMError, Notice, Truncated
from ...adapters.llm.answers import canonical
from ...adapters.llm.middleware import Client, Layer, NoText, Own, as_client, asked_for
from ..calls import Caller, Request
from ..results import Outcome, StepFailed
from ..spending import Counted, Spent

__all__ = ["Asker", "Draft"]


@frozen
class Draft:
    """What a model wrote. ``repaired``: the client has asked once more already, because the first answer was of another shape."""

    text: str
    repaired: bool = False


class _Taken(Layer):
    """Takes answers that do not fit as they are; ``repaired``, an option of its own, hears of the client's own repair."""

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the inner client's answer, or the text that it refused."""
        repaired: list[str] = options.pop("repaired")
        notify = options.get("notify")

        def heard(notice: Notice) -> None:
            if notice.kind == "repair":
                repaired.append(notice.reason)
            if notify is not None:
                notify(notice)

        try:
            return await self._inner.generate(prompt, **{**options, "notify": heard})
        except NoText as error:  # the client's fault and no draft: asking once more would only pay once more
            raise LLMError(error.message, hint="generate(prompt, **options) returns a str or a Completion") from error
        except BadAnswer as error:
            if isinstance(error, Truncated) or not error.text.strip():
                raise
            return Completion(error.text, usage=error.usage, attempts=error.attempts)


@define
class Asker:
    """Asks the caller's model for drafts. ``spent`` is what all calls cost, also those that were stopped under way."""

    caller: Caller
    step: str
    options: Mapping[str, Any]
    spent: Spent = field(factory=Spent)
    _asking: Caller | None = None

    async def ask(self, place: int, prompt: str, options: Mapping[str, Any], phase: Spent) -> Draft:
        """Return the draft number ``place`` of the whole run; raise ``StepFailed``. What it cost goes into ``phase`` as well."""
        asked, record, digest = {**self.options, **options}, self.caller.record, ""
        if record is not None:
            digest = blake3(canonical(["COMPILE", prompt, asked_for(_plain(asked))])).hexdigest(length=16)
            earlier = record.recall(self.step, place, digest)
            if earlier is not None:
                return Draft(earlier.output, earlier.value is True)
        tally, repaired, began = Spent(), list[str](), perf_counter()
        try:
            outcome = await self._ask(place, prompt, {**asked, "tally": tally, "repaired": repaired}, tally)
        finally:
            for total in (self.spent, phase):
                total.add(tally.calls, tally.usage, tally.cost)
        if record is not None:
            kept = Outcome(
                outcome.output, bool(repaired), tally.usage, tally.cost, tally.calls, tally.calls, "", False, digest
            )
            self.caller.item_done(self.step, place, kept, perf_counter() - began)
        return Draft(outcome.output, bool(repaired))

    async def _ask(self, place: int, prompt: str, options: Mapping[str, Any], tally: Spent) -> Outcome:
        try:
            outcome = await self._inner().ask(self.step, Request(prompt, options=options), place)
        except StepFailed as error:
            tally.add(0, error.usage, error.cost)
            raise
        tally.add(0, outcome.usage, outcome.cost)
        return outcome

    def _inner(self) -> Caller:
        """Return a caller of the run's model that takes all drafts, and shares the run's gate. Raises ``StepFailed``."""
        if self._asking is None:
            run, given = self.caller, self.caller.client(Request(""))
            client: Client = Counted(_Taken(as_client(given)), isinstance(given, Own))
            self._asking = Caller(client, {}, run.events, run.trace, run.limit, warn=run.warn)
            self._asking.gate = run.gate
        return self._asking


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "tidy"}
