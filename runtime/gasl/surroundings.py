"""The environment against which a GASL program is checked, and the graphs that a state's findings come from."""

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ...adapters.graph import GraphAdapter
from ...adapters.state import Snapshot, StateStore, StoreError
from ...lang.diagnostic import Diagnostic

if TYPE_CHECKING:
    from ...lang.catalogue.schema import Schema
    from ...lang.linter.gasl.contents import Contents
    from ...lang.trees.gasl import StateType

TOO_DEEP = Diagnostic("GASL023", "error", "blocks are nested too deeply", hints=("reduce the nesting",))
"""Diagnostic for a program that can't be checked because its blocks are nested too deeply for the interpreter's stack."""


@frozen
class Surroundings:
    """The known environment of a program; None means unknown.

    ``schema`` is the graph's schema, ``state`` has the declared keys with their types, ``ceiling`` maps each key of SET to its maximum.
    ``measures`` are the graph's algorithms, ``models`` the model names that the host offers. ``variables`` are bound before the program
    begins; ``fields`` maps these variables to all fields of their items, if known. ``contents`` maps variables that commands have bound to
    the linter's descriptions of their values.
    """

    schema: "Schema | None" = None
    state: "Mapping[str, StateType] | None" = None
    ceiling: Mapping[str, float] | None = None
    measures: Collection[str] | None = None
    variables: Collection[str] = ()
    models: Collection[str] | None = None
    fields: Mapping[str, tuple[str, ...]] = field(factory=dict)
    contents: "Mapping[str, Contents]" = field(factory=dict)

    @property
    def known(self) -> dict[str, Any]:
        """The values as keyword arguments of the linter."""
        return {
            "schema": self.schema, "state": self.state, "ceiling": self.ceiling, "measures": self.measures,
            "variables": self.variables, "models": self.models, "fields": self.fields, "contents": self.contents,
        }  # fmt: skip


# The graph that a state's findings come from. A state made with one graph must not be used with another graph by mistake. The
# history entry of a command that changed findings has ``state``, and the first entry of its plan (``plan``) names the graph. The
# findings belong to the graph on which they were last changed; reading or opening the state does not change that.

ROLLBACK = "rollback"
"""The ``part`` of the history entry of an external rollback: it is not a step of a plan, and a replay skips it."""


@frozen
class Origin:
    """A graph on which findings were made: its hash, and its source as given in the configuration (None if unknown)."""

    graph: str
    source: Mapping[str, Any] | None = None

    @property
    def name(self) -> str | None:
        """The name of the graph, or None if unknown."""
        name = (self.source or {}).get("path") or (self.source or {}).get("name")
        return name if isinstance(name, str) else None


def origins(state: StateStore) -> tuple[Origin, ...]:
    """Return the graphs on which the state's current findings were made, the latest graph last; empty without findings.

    After a rollback the result has the graphs of the restored findings.
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
    # Changes made without a command have no entry; they are attributed to the graph of the last change.
    made = then.get(snapshot.hash) or now or tuple(each for each in (writer or last,) if each)
    if made and made[-1] == last and last not in sources:  # the state is older than ``plan.source``
        adapter = state.replay_info()["config"].get("adapter")
        if isinstance(adapter, Mapping):
            sources[last] = adapter
    return tuple(Origin(each, sources.get(each)) for each in made)


def is_of_another(state: StateStore, adapter: GraphAdapter) -> bool:
    """Return whether a state holds findings that were last changed on a graph other than the graph of ``adapter``.

    The graph's schema, which takes seconds for a large graph, is computed only if the state has findings.
    """
    made = origins(state)
    return bool(made and made[-1].graph != adapter.schema.hash)


def same_name(one: str | None, other: str | None) -> bool:
    """Return whether two graph names or paths, as written by a user, mean the same graph; False if either is missing. Reads no file."""
    return bool(one and other) and (one == other or os.path.realpath(str(one)) == os.path.realpath(str(other)))


def told_of_another(folder: object, before: str | None, now: str | None) -> str:
    """Return a message that the findings in ``folder`` come from the graph ``before`` and not from the current graph ``now``."""
    if before and now and same_name(before, now):
        return f"{now} has changed since the findings in {folder} were made"
    return f"the findings in {folder} come from {before or 'another graph'}, not from {now or 'this graph'}"


def told_of_findings(folder: object, made: Sequence[Origin], now: str | None, graph: str | None = None) -> str:
    """Return a message about ``made``, the graphs that the findings in ``folder`` come from, and the current graph ``now``.

    With several graphs, the message lists them in reverse order. ``graph`` is the hash of the current graph; None if the message
    must not mention the current graph.
    """
    if len(made) == 1 or (graph is not None and same_name(made[-1].name, now)):
        return told_of_another(folder, made[-1].name, now)
    told: list[str] = []
    for at, each in enumerate(reversed(made)):
        later = any(same_name(each.name, other.name) for other in made[len(made) - at :])
        told.append(f"{each.name}{' as it was before' if later else ''}" if each.name else "another graph")
    stranger = graph is not None and all(each.graph != graph for each in made)
    rest = f", not on {now or 'this graph'}" if stranger else ""
    return (
        f"the findings in {folder} were last changed on {told[0]}, and before that on {', '.join(told[1:_SHOWN])}{rest}"
    )


_SHOWN = 6
"""Maximum number of graphs in a message, the latest first."""


# Rolling back a state is a normal commit that is recorded in the history.


def roll_back(store: StateStore, to: Snapshot | str, command: str) -> int:
    """Restore the state to ``to`` and commit; return the number of differences (0: the state was already the same).

    ``command`` is the text for the history; the hash is appended to it. Raises ``StateError`` if no available commit has the
    hash, and ``StoreError``. After an error, the state is unchanged.
    """
    differences = len(store.diff(store.snapshot(), to))
    if not differences:
        return 0
    before, config = origins(store)[-1:], store.replay_info()["config"]
    store.restore(to)
    after = origins(store)[-1:]
    if [each.graph for each in after] != [each.graph for each in before]:  # the findings now come from another graph
        store.configure(config={"adapter": (after[0].source if after else None) or {"type": "networkx"}})
    from .record_writer import iso  # imported late: checking programs needs no model library

    now = iso()
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
        store.commit(found=False)  # a single commit: the state is never rolled back without a history entry
    except StoreError:
        store.configure(config=config)
        raise
    return differences
