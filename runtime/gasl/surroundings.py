"""What a GASL program is checked against."""

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ...adapters.graph import GraphAdapter
from ...adapters.state import Snapshot, StateStore, StoreError
from ...lang.diagnostic import Diagnostic

if TYPE_CHECKING:
    from ...lang.catalogue.schema import Schema
    from ...lang.trees.gasl import StateType

__all__ = [
    "ROLLBACK",
    "TOO_DEEP",
    "Origin",
    "Surroundings",
    "is_of_another",
    "origins",
    "roll_back",
    "same_name",
    "told_of_another",
    "told_of_findings",
]

TOO_DEEP = Diagnostic("GASL023", "error", "blocks are nested too deeply", hints=("leave some of the nesting out",))
"""A program that can't be checked: its blocks are nested deeper than the interpreter's stack."""


@frozen
class Surroundings:
    """What is known of where a program is to run; None: not known.

    ``schema`` is the graph's, ``state`` has the declared keys with their types, ``ceiling`` the most that SET may ask for, by its
    keys. ``measures`` are the graph's algorithms, ``models`` the names that the host offers. ``variables`` are bound before the program
    begins, ``fields`` has all fields of their items, where they are known.
    """

    schema: "Schema | None" = None
    state: "Mapping[str, StateType] | None" = None
    ceiling: Mapping[str, float] | None = None
    measures: Collection[str] | None = None
    variables: Collection[str] = ()
    models: Collection[str] | None = None
    fields: Mapping[str, tuple[str, ...]] = field(factory=dict)

    @property
    def known(self) -> dict[str, Any]:
        """The same as arguments of the linter."""
        return {
            "schema": self.schema, "state": self.state, "ceiling": self.ceiling, "measures": self.measures,
            "variables": self.variables, "models": self.models, "fields": self.fields,
        }  # fmt: skip


# What a state's findings are of: a state that was made with one graph is not gone on with another by mistake.
# A command that changed findings says so in the history (``state``), and the plan that it is of says on which graph it ran
# (``plan``). The findings are of the graph on which they were changed last: commands that only read, and the mere opening, change
# nothing of that.

ROLLBACK = "rollback"
"""The ``part`` of the entry that a rollback from outside leaves in the history: it is no step of a plan, and a replay passes over it."""


@frozen
class Origin:
    """A graph on which findings were made: its hash, and where it is from as the configuration has it (None: nobody said)."""

    graph: str
    source: Mapping[str, Any] | None = None

    @property
    def name(self) -> str | None:
        """What it is called; None where nobody said."""
        name = (self.source or {}).get("path") or (self.source or {}).get("name")
        return name if isinstance(name, str) else None


def origins(state: StateStore) -> tuple[Origin, ...]:
    """Return the graphs on which the findings were made that a state has now, the latest last; none where there are no findings.

    A state that was taken back has those that it had then.
    """
    snapshot = state.snapshot()
    if not snapshot.declared():
        return ()
    plans: dict[Any, str] = {}
    sources: dict[str, Mapping[str, Any]] = {}
    now: tuple[str, ...] = ()
    then: dict[str, tuple[str, ...]] = {}
    writer = last = ""
    for entry in state.history:
        plan = entry.get("plan")
        if plan and plan.get("graph"):
            last = plans[entry.get("plan_id")] = str(plan["graph"])
            if plan.get("source"):
                sources[last] = plan["source"]
        found = entry.get("state")
        if not found or entry.get("rolled_back"):
            continue
        if entry.get("part") == ROLLBACK:
            now = then.get(found, ())
            continue
        graph = plans.get(entry.get("plan_id"), last)
        if graph:
            writer = graph
            now = (*(each for each in now if each != graph), graph)
        then[found] = now
    # What was done past the commands is in no entry: then it is of the graph of the last one that changed anything.
    made = then.get(snapshot.hash) or now or tuple(each for each in (writer or last,) if each)
    if made and made[-1] == last and last not in sources:  # a state of before plans said it
        adapter = state.replay_info()["config"].get("adapter")
        if isinstance(adapter, Mapping):
            sources[last] = adapter
    return tuple(Origin(each, sources.get(each)) for each in made)


def is_of_another(state: StateStore, adapter: GraphAdapter) -> bool:
    """Say whether a state holds findings, and they were changed last on another graph than this one.

    The graph is summed up only where there is something to compare it with: a large one takes seconds.
    """
    made = origins(state)
    return bool(made and made[-1].graph != adapter.schema.hash)


def same_name(one: str | None, other: str | None) -> bool:
    """Say whether two sources of graphs, as a user writes them, are one: nothing is read for it. A graph without a name is none."""
    return bool(one and other) and (one == other or os.path.realpath(str(one)) == os.path.realpath(str(other)))


def told_of_another(folder: object, before: str | None, now: str | None) -> str:
    """Say of which graph the findings in ``folder`` are, and of which they are not."""
    if before and now and same_name(before, now):
        return f"{now} has changed since the findings in {folder} were made"
    return f"the findings in {folder} are of {before or 'another graph'}, not of {now or 'this graph'}"


def told_of_findings(folder: object, made: Sequence[Origin], now: str | None, graph: str | None = None) -> str:
    """Say on which graphs the findings in ``folder`` were ``made``, and not on the one called ``now``, whose hash is ``graph``.

    Where there are several: that they were changed on one after the other. ``graph`` None: of that one nothing is to be said.
    """
    if len(made) == 1 or (graph is not None and same_name(made[-1].name, now)):
        return told_of_another(folder, made[-1].name, now)
    told: list[str] = []
    for at, each in enumerate(reversed(made)):
        later = any(same_name(each.name, other.name) for other in made[len(made) - at :])
        told.append(f"{each.name}{' as it was before' if later else ''}" if each.name else "another graph")
    stranger = graph is not None and all(each.graph != graph for each in made)
    rest = f", not on {now or 'this graph'}" if stranger else ""
    return f"the findings in {folder} were changed last on {told[0]}, before that on {', '.join(told[1:_SHOWN])}{rest}"


_SHOWN = 6
"""Graphs that are named, the latest."""


# Taking a state back to an earlier moment: a commit like others, of which the history tells.


def roll_back(store: StateStore, to: Snapshot | str, command: str) -> int:
    """Make the state what it was and commit that; return in how many ways it differed, 0 where nothing was to be done.

    ``command`` is what the history says was done; the hash is put behind it. Raises ``StateError`` for a hash that no commit at
    hand has, and ``StoreError``; the state is as it was then.
    """
    differences = len(store.diff(store.snapshot(), to))
    if not differences:
        return 0
    before, config = origins(store)[-1:], store.replay_info()["config"]
    store.restore(to)
    after = origins(store)[-1:]
    if [each.graph for each in after] != [each.graph for each in before]:  # the findings are another graph's again
        store.configure(config={"adapter": (after[0].source if after else None) or {"type": "networkx"}})
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    last = store.history[-1].get("step") if len(store.history) else 0
    entry: dict[str, Any] = {
        "step": last,
        "part": ROLLBACK,
        "command": f"{command} {store.hash[:12]}",
        "why": None,
        "summary": {"differences": differences},
        "provenance_summary": {},
        "started_at": now,
        "finished_at": now,
        "status": "success",
        "state": store.hash,
    }
    store.note(entry)
    try:
        store.commit(found=False)  # the one commit: the state is never taken back without the history telling it
    except StoreError:
        store.configure(config=config)
        raise
    return differences
