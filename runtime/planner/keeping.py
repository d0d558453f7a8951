"""Durable rankings: every finished call is written as it comes, so that a run that was killed pays for none twice.

A run's folder is as ``runtime.folders`` makes it, its records are those of a script's run (``runtime.runs``); names of steps begin with
the request's label: ``R00.plan``, ``R00.expand``, ``R00.final``. Its head has ``kind`` "rank"; ``items.json`` and ``requests.json`` stand
beside it, so that the run can be resumed by its id alone. See ``docs/design/state.md#durable-runs``.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from ...adapters.llm import Usage
from ..folders import RANK, RunError, base_directory, begin, hash_of, read_run, resumed, versions
from ..journal import Journal
from ..results import Recorded, StepResult, add_costs
from ..runs import Recorder, take_record
from .results import Ranked

__all__ = ["RunError", "StoredRanking", "load", "ranked_done", "start", "totals_done"]

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
