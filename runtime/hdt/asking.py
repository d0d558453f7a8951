"""Asking the planner, and every model of its plans: counted as it is sent, and kept, so that nothing is paid for twice.

A planner's answer is kept under its place (step, turn) alone: a step that is taken up again after a kill finds the answer that it
acted on, although the state that its prompt would show has changed since. A call of a plan's own commands is kept under its request.
In a search the place is the way to the state: the plans that lead there.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from attrs import define, field, frozen
from blake3 import blake3

from ...adapters.llm import LLM, Completion, LLMError, Usage
from ...adapters.llm.middleware import Own, as_client
from ..calls import Caller, Request
from ..executor.answers import request_of
from ..results import NO_USAGE, Failed, Outcome, Record, StepFailed
from ..spending import Counted, Spent
from .grammar import SMALL_TOKENS
from .reading import answer_schema, tidied

__all__ = ["PLANNER", "Asker", "Paid", "Place", "failed_for_good", "place_of"]

PLANNER = "planner"
"""What events and records call the planner's calls."""
_TURNS = 100
_TOKENS = 2_000
"""Tokens of an answer, where the caller says nothing else: a plan of some thirty commands."""


def place_of(step: int, turn: int) -> int:
    """Return the number of a planner's call: a step has its first one and its repairs, fewer than a hundred (``MOST_REPAIRS``)."""
    return step * _TURNS + turn


@frozen
class Place:
    """Where a search asks: ``way`` names the state by the plans that lead there, ``number`` is the state's in the tree."""

    way: str
    number: int


@define
class Asker:
    """Asks the planner. ``model`` is a name of the caller's (None: its own); ``options`` are the port's, for its calls alone.

    ``as_json``: the answer's schema is asked for; without, the answer is text that is read leniently in any case. ``grammar`` is asked
    for in the schema's place: for a model that keeps to it, and would come to nothing under a schema. ``spec`` is the model's, as the
    user wrote it: what another model answered is not recalled.
    """

    caller: Caller
    question: str
    model: str | None = None
    options: Mapping[str, Any] = field(factory=dict)
    as_json: bool = True
    grammar: str = ""
    spec: str = ""
    spent: Spent = field(factory=Spent)
    _schema: dict[str, Any] | None = field(default=None, init=False)
    _asking: Caller | None = field(default=None, init=False)

    async def ask(self, step: int, turn: int, prompt: str, at: Place | None = None) -> str:
        """Return the answer's text; raise ``StepFailed``. ``at``: where a search asks, which has no steps."""
        record = self.caller.record
        place = place_of(step if at is None else at.number, turn)
        _, kept_at, digest = self.kept_at(step, turn, at)
        if record is not None and (earlier := record.recall(PLANNER, kept_at, digest)) is not None:
            return earlier.output
        tally, began = Spent(), perf_counter()
        try:
            outcome = await self._asked(place, prompt, tally)
        except StepFailed as error:
            tally.add(0, error.usage, error.cost)
            raise
        finally:
            self.spent.add(tally.calls, tally.usage, tally.cost)
        if record is not None:
            kept = Outcome(
                outcome.output, outcome.output, tally.usage, tally.cost, tally.calls, tally.calls, "", False, digest
            )
            self.caller.item_done(PLANNER, kept_at, kept, perf_counter() - began)
        return outcome.output

    def kept_at(self, step: int, turn: int, at: Place | None = None) -> tuple[str, int, str]:
        """Return where an answer is kept: step, item and input's hash of its record."""
        # A state's number depends on the search's settings, its way does not.
        kept, way = (place_of(step, turn), "") if at is None else (turn, at.way)
        named = f"{PLANNER} {kept} {way}{self.question}" + (f"\n{self.spec}" if self.spec else "")
        return PLANNER, kept, blake3(named.encode("utf-8", "backslashreplace")).hexdigest(length=16)

    async def _asked(self, place: int, prompt: str, tally: Spent) -> Outcome:
        if self._asking is None:
            run = self.caller
            client = run.client(Request("", model=self.model))
            self._asking = Caller(
                Counted(as_client(client), isinstance(client, Own)), {}, run.events, run.trace, run.limit, warn=run.warn
            )
            self._asking.gate = run.gate
        most = SMALL_TOKENS if self.grammar else _TOKENS
        options: dict[str, Any] = {"max_tokens": most, **self.options, "tally": tally}
        if self.grammar and self.as_json:
            options["grammar"] = self.grammar
        elif self.as_json:
            self._schema = self._schema or answer_schema()
            options |= {"schema": self._schema, "tidy": tidied}
        outcome = await self._asking.ask(PLANNER, Request(prompt, options=options), place)
        tally.add(0, outcome.usage, outcome.cost)
        return outcome


class Paid(Own):
    """A model that commands of plans ask: what it answered in the step under way is found again, and not asked again.

    ``name`` is the plans' name for it ("" is their own). ``spent`` counts what is asked.
    """

    def __init__(self, inner: Any, name: str, record: Record | None, spent: Spent) -> None:
        self._inner: LLM = as_client(inner)
        self._name = name
        self._record = record
        self._spent = spent
        self._counts: Counter[str] = Counter()
        self._label = ""

    def begin(self, step: int) -> None:
        """Count equal requests from 0 again: the step's plan runs, or runs once more to bind its variables."""
        self._label = f"step {step}"
        self._counts.clear()

    def at(self, way: str) -> "Paid":
        """Return the same model for a plan of a search, of which others may be under way beside it; ``way`` names it."""
        made = Paid(self._inner, self._name, self._record, self._spent)
        made._label = f"way {way}"
        return made

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the kept answer, or the inner client's; raise what it raises."""
        request = request_of(self._name, prompt, options) if self._record is not None else None
        if self._record is None or request is None:
            return await self._ask(prompt, options)
        turn = self._counts[request]
        self._counts[request] += 1
        label, digest = self._label, f"{request}:{self._name}"
        earlier = self._record.recall(label, turn, digest)
        if earlier is not None and isinstance(earlier.value, Mapping):
            kept = earlier.value
            return Completion(
                earlier.output, str(kept.get("finish_reason", "stop")), Usage(), 0, str(kept.get("model", "")), True,
                bool(kept.get("repaired", False)),
            )  # fmt: skip
        began = perf_counter()
        answer = await self._ask(prompt, options)
        told = {"finish_reason": answer.finish_reason, "model": answer.model, "repaired": answer.repaired}
        outcome = Outcome(
            answer.text, told, answer.usage, answer.cost, 1, answer.attempts, answer.finish_reason, False, digest
        )
        self._record.item_done(label, turn, outcome, perf_counter() - began)
        return answer

    async def _ask(self, prompt: str, options: dict[str, Any]) -> Completion:
        try:
            answer = await self._inner.generate(prompt, **options)
        except asyncio.CancelledError:  # it was sent, and may be charged for
            self._spent.add(1, NO_USAGE, None)
            raise
        except LLMError as error:
            self._spent.add(error.attempts, error.usage, None)
            raise
        self._spent.add(answer.attempts, answer.usage, answer.cost)
        return answer

    async def aclose(self) -> None:
        """Do nothing: who opened the inner client closes it."""


def failed_for_good(failed: Failed) -> bool:
    """Say whether asking once more, in other words, is of no use: the model's own answer was not what failed."""
    return failed.kind not in ("bad_answer", "truncated", "empty", "refused")
