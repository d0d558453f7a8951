"""What a ranking comes to: the items, best first, and how each phase got there. See ``docs/design/loops.md#ranking``.

Rankings count from 1, as the seed prints them; indices in scripts and in ``REMAINING`` count from 0. Costs are US dollars, None where
no call's cost is known.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, frozen

from ....adapters.llm import Usage
from ...lwt.run_store import Recorder, take_record
from ...models.usage import Spent
from ...results import NO_USAGE, Recorded, Run, StepResult, add_costs
from ...runs.directories import RANK, RunError, base_directory, begin, hash_of, read_run, resumed, versions
from ...runs.journal import Journal

__all__ = [
    "Phase",
    "Ranked",
    "Repair",
    "RunError",
    "Status",
    "StoredRanking",
    "ToolUse",
    "load",
    "ranked_done",
    "start",
    "totals_done",
]

Status = Literal["complete", "partial", "failed", "cancelled"]


@frozen
class Repair:
    """A plan that went back: what was written, and what was said of it (diagnostics as JSON objects that point into it)."""

    attempt: int
    written: str
    diagnostics: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"attempt": self.attempt, "written": self.written, "diagnostics": list(self.diagnostics)}


@frozen
class ToolUse:
    """A tool's call, or what was taken for one: ``call`` as it is written, ``result`` what the model was told."""

    iteration: int
    call: str
    ok: bool
    result: str

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"iteration": self.iteration, "call": self.call, "ok": self.ok, "result": self.result}


@frozen
class Phase:
    """One of the three phases: ``status`` is done, pass-through, unfinished (an expansion without ``done()``), failed or cancelled;
    ``reason`` says why it is not done."""

    name: Literal["plan", "expand", "execute"]
    status: str
    seconds: float
    spent: Spent = field(factory=Spent)
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "phase": self.name, "status": self.status, "reason": self.reason, "seconds": round(self.seconds, 3),
            **_figures(self.spent.calls, self.spent.usage, self.spent.cost),
        }  # fmt: skip


@frozen
class Ranked:
    """The ranking of a request.

    ``ranking``: positions of items from 1, the best first; empty where ``status`` is failed or cancelled, and ``reason`` says why then.
    ``status`` is partial where a step of the script failed, or where the script was not completed: ``reason`` says so.
    ``conditions`` and ``remaining`` (indices from 0) are what the plan said; ``skeleton`` is the planned script, ``script`` the one
    that ran.
    ``names`` are what the ranked items are called, where they have names. ``none_fits``: the result is that no item fits; ``ranking`` is
    empty then.
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

    @property
    def best(self) -> int | None:
        """The best item's position from 1; None where there is no ranking."""
        return self.ranking[0] if self.ranking else None

    @property
    def calls(self) -> int:
        """Requests to models, those that failed too."""
        return self.spent.calls

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return self.spent.usage

    @property
    def cost(self) -> float | None:
        """US dollars; None where no call's cost is known."""
        return self.spent.cost

    @property
    def spent(self) -> Spent:
        """What all phases cost together."""
        total = Spent(0, NO_USAGE, None)
        for phase in self.phases:
            total.add(phase.spent.calls, phase.spent.usage, phase.spent.cost)
        return total

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "request": self.request, "number": self.number, "status": self.status, "ranking": list(self.ranking),
            "none_fits": self.none_fits, "names": list(self.names), "reason": self.reason, "output": self.output,
            "conditions": self.conditions,
            "remaining": list(self.remaining), "skeleton": self.skeleton, "script": self.script, "message": self.message,
            "phases": [phase.as_json() for phase in self.phases], "repairs": [each.as_json() for each in self.repairs],
            "tools": [each.as_json() for each in self.tools], "usage": _figures(self.calls, self.usage, self.cost),
            "seconds": round(self.seconds, 3), "warnings": list(self.warnings),
        }  # fmt: skip


def _figures(calls: int, usage: Usage, cost: float | None) -> dict[str, Any]:
    tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return {"calls": calls, **tokens, "cost": cost}


# Durable rankings: every finished call is written as it comes, so that a run that was killed pays for none twice.
# A run's folder is as ``runtime.runs.directories`` makes it, its records are those of a script's run (``runtime.lwt.run_store``);
# names of steps begin with the request's label: ``R00.plan``, ``R00.expand``, ``R00.final``. Its head has ``kind`` "rank";
# ``items.json`` and ``requests.json`` stand beside it, so that the run can be resumed by its id alone.
# See ``docs/design/state.md#durable-runs``.


_ITEMS, _REQUESTS = "items.json", "requests.json"


def start(
    items: Any, requests: Sequence[str], *, model: str = "", options: Mapping[str, Any] | None = None, name: str = "rank",
    base: Path | None = None,
) -> Recorder:  # fmt: skip
    """Make a new run's folder and return its recorder. Raises ``RunError``."""
    written, asked = _written(items), _written(list(requests))
    head = {
        "kind": RANK, "script_hash": hash_of(asked), "input_hash": hash_of(written), "versions": versions(), "model": model,
        "name": name, "script": "", "mode": "lenient", "options": {"steps": len(requests), **(options or {})},
    }  # fmt: skip
    return Recorder(*begin(base_directory() if base is None else base, head, {_ITEMS: written, _REQUESTS: asked}))


@define
class StoredRanking:
    """A kept run as it was read. ``damage`` names records that can't be read: what they held is asked again."""

    run_id: str
    path: Path
    head: dict[str, Any]
    damage: list[str] = field(factory=list)
    size: int = 0
    status: str = ""
    answers: dict[tuple[str, int | None, str], Recorded] = field(factory=dict, repr=False)

    @property
    def items(self) -> Any:
        """What was ranked."""
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

    def resume(self, items: Any = None, requests: Sequence[str] | None = None, *, force: bool = False) -> Recorder:
        """Open the run for more and return its recorder, which recalls the answers there are. Raises ``RunError``.

        Refused where the items or the requests (each only if given) are not as they were, or a record is damaged, unless ``force``
        is set: then is asked again what that changes. What is not given is taken from the run's folder, whose files are held against
        its head in the same way.
        """
        changed = []
        for given, name, kept in ((items, _ITEMS, "input_hash"), (requests, _REQUESTS, "script_hash")):
            if given is None and self._hash(name) != self.head[kept]:
                changed.append(f"{name} in its folder is not what was kept")
        if items is not None and hash_of(_written(items)) != self.head["input_hash"]:
            changed.append("the items changed")
        if requests is not None and hash_of(_written(list(requests))) != self.head["script_hash"]:
            changed.append("the requests changed")

        def recorder(journal: Journal, again: bool) -> Recorder:
            return Recorder(self.run_id, self.path, journal, load(self.path).answers if again else self.answers)

        return resumed(self, changed, force, recorder)


def load(run: str | Path, base: Path | None = None) -> StoredRanking:
    """Read the ranking with this id, or in this folder. Raises ``RunError`` where there is none or it is damaged."""
    return read_run(run, base, RANK, lambda path, head: StoredRanking(head["run"], path, head), take_record)


def ranked_done(recorder: Recorder, ranked: Ranked) -> None:
    """Keep what a request came to, for whoever looks at the run; its calls are kept already."""
    good = ranked.status in ("complete", "partial")
    output = "no item fits" if ranked.none_fits else ", ".join(map(str, ranked.ranking))
    recorder.step_done(
        StepResult(f"R{ranked.number:02}", "done" if good else "failed", reason=ranked.reason or f"ranking: {output}"),
        None,
    )


def totals_done(recorder: Recorder, ranked: Sequence[Ranked], seconds: float) -> None:
    """Keep the end of the run and let go of it."""
    usage, cost = Usage(), None
    for each in ranked:
        usage, cost = usage + each.usage, add_costs(cost, each.cost)
    statuses = {each.status for each in ranked}
    status = "cancelled" if "cancelled" in statuses else next(iter(statuses)) if len(statuses) == 1 else "partial"
    recorder.append(
        {
            "record": "run_finished", "status": status, "seconds": round(seconds, 3),
            "usage": [usage.prompt_tokens, usage.completion_tokens], "cost": cost, "calls": sum(each.calls for each in ranked),
        }
    )  # fmt: skip
    recorder.close()


def _written(value: Any) -> bytes:
    """Return ``value`` as it is kept and told apart: keys in their order, which prompts show."""
    return json.dumps(value, allow_nan=False).encode()
