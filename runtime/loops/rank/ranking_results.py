"""The result of a ranking: the items, best first, and a report of each phase. See ``docs/design/loops.md#ranking``.

Positions in a ranking begin at 1; indices in scripts and in ``REMAINING`` begin at 0. Costs are in US dollars; None if no call
has a known cost.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, define, field, frozen

from ....adapters.llm import Usage
from ....adapters.llm.budget import Price
from ....adapters.llm.strict_schema import ModelCapabilities
from ...answers.generator import ask_text
from ...events import BudgetReached, Events, PhaseFinished, PhaseStarted, Warned
from ...models.caller import Asker, Caller, Losses, Spent
from ...results import Failed, Run, StepFailed, StepResult, prices_json, usage_json
from ...runs.journal import RANK, RunError, RunRecorder, StoredRun, begin, hash_of

Status = Literal["complete", "partial", "failed", "cancelled"]


@frozen
class Repair:
    """A plan that was returned to the model: its text, and its diagnostics as JSON objects with spans in the text."""

    attempt: int
    written: str
    diagnostics: tuple[dict[str, Any], ...]


@frozen
class ToolUse:
    """A tool call, or text that resembles a call. ``call`` is the model's text, and ``result`` is the message to the model."""

    iteration: int
    call: str
    ok: bool
    result: str


@frozen
class Phase:
    """The result of one of the three phases.

    ``status`` is done, pass-through, unfinished (an expansion without ``done()``), failed or cancelled; ``reason`` says why
    the phase is not done.
    """

    name: Literal["plan", "expand", "execute"]
    status: str
    seconds: float
    spent: Spent = field(factory=Spent)
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the phase as a JSON object."""
        return {
            "phase": self.name, "status": self.status, "reason": self.reason, "seconds": round(self.seconds, 3),
            **usage_json(self.spent.usage, self.spent.calls), "cost": self.spent.cost,
        }  # fmt: skip


@frozen
class Ranked:
    """The ranking of a request.

    ``ranking`` contains the ranked items, best first, as positions from 1 in the list of items; it is empty if ``status`` is failed or
    cancelled (``reason`` says why). ``status`` is partial if a step of the script failed or the script was not completed (``reason``
    says which). ``conditions`` and ``remaining`` (indices from 0) come from the plan; ``skeleton`` is the planned script,
    ``script`` is the script that ran. ``names`` are the names of the ranked items, if they have names. ``none_fits`` is true if
    no item fits the request; ``ranking`` is then empty.
    """

    request: str
    number: int
    status: Status
    ranking: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    reason: str = ""
    output: str | None = None
    conditions: str = ""
    remaining: tuple[int, ...] = ()
    skeleton: str = ""
    script: str = ""
    message: str = ""
    phases: tuple[Phase, ...] = ()
    repairs: tuple[Repair, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    run: Run | None = field(default=None, repr=False)
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    none_fits: bool = False
    prices: Mapping[str, Price] = field(factory=dict)
    """Maps the specs of models to their known prices."""

    @property
    def best(self) -> int | None:
        """The best item's position from 1; None if no item is ranked."""
        return self.ranking[0] if self.ranking else None

    @property
    def calls(self) -> int:
        """Number of requests to models, including failed ones."""
        return self.spent.calls

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return self.spent.usage

    @property
    def cost(self) -> float | None:
        """US dollars; None if no call's cost is known."""
        return self.spent.cost

    @property
    def spent(self) -> Spent:
        """The total cost of all phases."""
        total = Spent()
        for phase in self.phases:
            total.include(phase.spent)
        return total

    def as_json(self) -> dict[str, Any]:
        """Return the ranking as a JSON object."""
        return {
            "request": self.request, "number": self.number, "status": self.status, "ranking": list(self.ranking),
            "none_fits": self.none_fits, "names": list(self.names), "reason": self.reason, "output": self.output,
            "conditions": self.conditions,
            "remaining": list(self.remaining), "skeleton": self.skeleton, "script": self.script, "message": self.message,
            "phases": [phase.as_json() for phase in self.phases],
            "repairs": [asdict(each) | {"diagnostics": list(each.diagnostics)} for each in self.repairs],
            "tools": [asdict(each) for each in self.tools], "usage": {**usage_json(self.usage, self.calls), "cost": self.cost},
            "seconds": round(self.seconds, 3), "warnings": list(self.warnings), **prices_json(self.prices),
        }  # fmt: skip


# Durable rankings: every finished call is recorded as soon as it ends, so that resuming a killed run never pays twice for a call.
# ``runtime.runs.journal`` creates the run folder. The records are the same as for a script's run (``runtime.lwt.run_store``); step
# names begin with the request's label: ``R00.plan``, ``R00.expand``, ``R00.final``. The head of the run has ``kind`` "rank". The
# folder also stores ``items.json`` and ``requests.json``, so that the run can be resumed by its id alone. See
# ``docs/design/state.md#durable-runs``.

_ITEMS, _REQUESTS = "items.json", "requests.json"


def start(
    items: Any, requests: Sequence[str], *, model: str = "", options: Mapping[str, Any] | None = None, name: str = "rank",
    base: Path | None = None,
) -> RunRecorder:  # fmt: skip
    """Create the folder of a new run and return its recorder. Raises ``RunError``."""
    written, asked = _encoded(items), _encoded(list(requests))
    return RunRecorder(
        *begin(
            base, kind=RANK, script="", script_hash=hash_of(asked), input_hash=hash_of(written), model=model, name=name,
            mode="lenient", options={"steps": len(requests), **(options or {})}, files={_ITEMS: written, _REQUESTS: asked},
        )
    )  # fmt: skip


@define
class StoredRanking(StoredRun):
    """A recorded ranking."""

    kind = RANK

    @property
    def items(self) -> Any:
        """The ranked items."""
        return self._read(_ITEMS)

    @property
    def requests(self) -> list[str]:
        """The requests."""
        return [str(request) for request in self._read(_REQUESTS)]

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"{name} of run {self.run_id} can't be read: {error}") from error

    def _hash(self, name: str) -> str:
        try:
            return hash_of((self.path / name).read_bytes())
        except OSError as error:
            raise RunError(f"{name} of run {self.run_id} can't be read: {error}") from error

    def resume(self, items: Any = None, requests: Sequence[str] | None = None, *, force: bool = False) -> RunRecorder:
        """Open the run to continue it and return its recorder, which recalls the recorded answers. Raises ``RunError``.

        If the given items or requests differ from the recorded ones, or a record is damaged, resuming fails; with ``force`` the affected
        calls are repeated instead. Items and requests that are None are read from the run's folder, whose files are checked against the
        run's head in the same way.
        """
        changed = []
        for given, name, kept in ((items, _ITEMS, "input_hash"), (requests, _REQUESTS, "script_hash")):
            if given is None and self._hash(name) != self.head[kept]:
                changed.append(f"{name} in its folder was changed")
        if items is not None and hash_of(_encoded(items)) != self.head["input_hash"]:
            changed.append("the items changed")
        if requests is not None and hash_of(_encoded(list(requests))) != self.head["script_hash"]:
            changed.append("the requests changed")
        return self.reopen(
            lambda journal, stored: RunRecorder(self.run_id, self.path, journal, stored.answers), changed, force
        )


load = StoredRanking.load


def ranked_done(recorder: RunRecorder, ranked: Ranked) -> None:
    """Store the result of a request, so that the run shows it; the calls of the request are already stored."""
    good = ranked.status in ("complete", "partial")
    output = "no item fits" if ranked.none_fits else ", ".join(map(str, ranked.ranking))
    recorder.step_done(
        StepResult(f"R{ranked.number:02}", "done" if good else "failed", reason=ranked.reason or f"ranking: {output}"),
        None,
    )


def totals_done(recorder: RunRecorder, ranked: Sequence[Ranked], seconds: float) -> None:
    """Record the end of the run and release it."""
    total = Spent()
    for each in ranked:
        total.include(each.spent)
    statuses = {each.status for each in ranked}
    status = "cancelled" if "cancelled" in statuses else next(iter(statuses)) if len(statuses) == 1 else "partial"
    recorder.end(status, seconds, total.usage, total.cost, total.calls)


def _encoded(value: Any) -> bytes:
    """Return the bytes for storing and comparing ``value``. Object keys keep their order, because prompts show the order."""
    return json.dumps(value, allow_nan=False).encode()


# The state shared by the phases of one request: models, events, items, and cost.

NONE = ModelCapabilities()
"""The output constraints that a custom client supports: none, so the prompt text states every constraint."""


@define
class Job:
    """A request in progress.

    ``number`` is the number of the request, from 0; ``label`` ("R00") is the prefix of its calls in events and records.
    ``data`` is the input of scripts; ``options`` are the options of each call in plan and expansion. ``means`` are the output
    constraints that the model supports. ``warnings``, ``repairs`` and ``tools`` are collected while the request runs, and kept
    if the request fails.
    """

    number: int
    request: str
    items: Sequence[Any] = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    caller: Caller
    events: Events | None
    options: Mapping[str, Any] = field(factory=dict)
    means: ModelCapabilities = NONE
    losses: Losses = field(factory=Losses)
    warnings: list[str] = field(factory=list)
    repairs: list[Repair] = field(factory=list)
    tools: list[ToolUse] = field(factory=list)

    @property
    def label(self) -> str:
        """The request's number as it is written in the debug log."""
        return f"R{self.number:02}"

    @property
    def models(self) -> tuple[str, ...]:
        """Model names that ``model=`` may use in the script."""
        return tuple(self.caller.models)

    async def ask(self, phase: str, place: int, prompt: str, spent: Spent, **options: Any) -> str:
        """Return a model's answer; a recorded run stores and reuses the answer. Raises ``StepFailed``."""
        asker, exhausted = (
            Asker(self.caller, f"{self.label}.{phase}", self.events, losses=self.losses),
            self.losses.budget,
        )
        try:
            return await ask_text(asker, place, prompt, {**self.options, **options}, round=spent)
        except StepFailed:
            if exhausted is not None and self.events:
                self.events.emit(BudgetReached(asker.step, exhausted.message))
            raise

    def started(self, phase: str, detail: str = "", count: int = 0) -> None:
        """Emit the start of a phase."""
        if self.events:
            self.events.emit(PhaseStarted("rank", phase, self.number, detail, count))

    def finished(self, phase: str, status: str, seconds: float, detail: str = "", count: int = 0) -> None:
        """Emit the end of a phase."""
        if self.events:
            self.events.emit(PhaseFinished("rank", phase, status, seconds, self.number, detail, count))

    def warn(self, message: str) -> None:
        """Store a warning and emit it."""
        self.warnings.append(message)
        if self.events:
            self.events.emit(Warned(self.label, message))


# The budget of calls that several rankings share: its default size, and which requests may begin on the remaining calls. A plan is
# wasted money if no calls are left to run its script. So requests begin in order, a smaller budget allows fewer parallel requests,
# and a request calls no model if too few calls are left for a plan and one step.

CALLS = 100
"""Default number of calls for each request."""
_LEAST = 2
"""Minimum number of calls of a ranking: a plan and one step."""
_USUAL = 4
"""Calls reserved for each of several parallel requests."""
_HOW = "raise it with max_calls, or --max-calls"


def with_budget_hint(reason: str) -> str:
    """Return ``reason``; if it names a call budget, also name the option that raises the budget."""
    if "budget of" not in reason or _HOW in reason:
        return reason
    return f"{reason} ({_HOW})"


@define
class RequestAdmission:
    """Decides which requests may begin.

    ``most`` is the number of calls for all requests together (None means no limit); ``places`` is the maximum number of parallel requests.
    """

    most: int | None
    places: int
    _sent: int = field(default=0, init=False)
    _under_way: int = field(default=0, init=False)
    _changed: asyncio.Event = field(factory=asyncio.Event, init=False)

    @property
    def _wide(self) -> int:
        return self.places if self.most is None else max(1, min(self.places, self.most // _USUAL))

    @property
    def _short(self) -> bool:
        """Whether too few calls are left for one more request, if each request in progress needs only the minimum."""
        return self.most is not None and self.most - self._sent - self._under_way * _LEAST < _LEAST

    async def begin(self) -> Failed | None:
        """Wait for a turn. If too few calls are left, return why the request may only use recorded answers."""
        while self._under_way and (self._under_way >= self._wide or self._short):
            self._changed.clear()
            await self._changed.wait()
        short = self._short
        self._under_way += 1
        if not short:
            return None
        left = max(0, (self.most or 0) - self._sent)
        few = f"{left} of the budget of {self.most} calls {'is' if left == 1 else 'are'} left, but a ranking takes at least {_LEAST}"
        return Failed("budget", few, _HOW)

    def ended(self, sent: int) -> None:
        """Record that a request has ended after ``sent`` calls."""
        self._under_way -= 1
        self._sent += sent
        self._changed.set()
