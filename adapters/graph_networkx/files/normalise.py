"""A loaded graph made fit for queries: habits are undone (``habits``), what JSON can't hold is converted (``fitting``), and all of it said.

A column (an attribute over all nodes, or over all edges) is treated as one, so that its values have one type. Ids never
merge: where two would become equal, both stay as they were, with a warning.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import networkx as nx

from ..rows.fields import reserved
from ..rows.fitting import LARGEST, digits, fit_id, fit_text, is_fit, json_value
from .habits import is_marked, stripper, without_habits
from .report import HABITS, Change, ChangeLog

__all__ = ["normalise"]

_TELLING = HABITS - {"numbers"}
"""Habits by which a graph is known to come from such a tool."""


def normalise(
    graph: "nx.Graph[Any]", *, raw: bool = False, owned: bool = True
) -> "tuple[nx.Graph[Any], tuple[Change, ...], tuple[str, ...]]":
    """Return the graph with all changes made, what they were, and warnings.

    ``raw`` leaves habits alone and makes only what is needed for items to be JSON. With ``owned`` the graph given may be written
    to. Without, it never is: a copy comes back if (and only if) some tool left quotes or ``<SEP>`` in it, since the types of
    values that a program made are meant. What else is listed as changed is then changed in items only, by the adapter.
    """
    log = ChangeLog()
    ids, keys = _new_ids(graph, log, raw), _new_keys(graph, log)
    if owned:
        _attributes(graph, log, raw, write=True)
        if ids or keys:
            graph = _relabelled(graph, ids, keys)
    else:
        _attributes(graph, log, raw, write=False)
        if any(kind in _TELLING for kind, _ in log.counts):
            graph = _relabelled(graph, ids, keys)  # a copy, its attributes too
            _attributes(graph, ChangeLog(), raw, write=True)
        elif any(kind in HABITS for kind, _ in log.counts):
            return normalise(graph, raw=True, owned=False)
    return graph, log.changes(), tuple(log.warnings)


# -- ids and keys -------------------------------------------------------------------------------------------------------


def _new_ids(graph: "nx.Graph[Any]", log: ChangeLog, raw: bool) -> dict[Any, Any]:
    """Return the ids that change. All final ids differ from each other."""
    needed: dict[Any, Any] = {node: fit_id(node) for node in graph if type(node) is not str and type(node) is not int}
    texts = [node for node in graph if type(node) is str]
    needed |= {node: fit for node in texts if (fit := fit_text(node)) != node}
    needed |= {node: digits(node) for node in graph if type(node) is int and abs(node) > LARGEST}
    habit: dict[Any, Any] = {}
    if not raw and (strip := stripper(texts)) is not None:
        habit = {node: bare for node in texts if node not in needed and (bare := strip(node)) != node and bare}
    taken = Counter(needed.get(node, node) for node in graph)
    for node, bare in needed.items():
        if taken[bare] > 1:
            number = 2
            while taken[f"{bare} ({number})"]:
                number += 1
            taken[bare] -= 1
            needed[node] = f"{bare} ({number})"
            taken[needed[node]] += 1
            log.warnings.append(f"two ids read {str(bare)[:60]!r} as text; one of them is now {needed[node][:80]!r}")
    _keep_apart(graph, needed, habit, log)
    for node, after in needed.items():
        log.add("ids", "node id", node, after)
    for node, after in habit.items():
        log.add("quotes", "node id", node, after)
    return needed | habit


def _keep_apart(graph: "nx.Graph[Any]", needed: dict[Any, Any], habit: dict[Any, Any], log: ChangeLog) -> None:
    """Take back each stripping that would make two ids equal, and what that takes back in turn."""
    kept: list[Any] = []
    while habit:
        final = Counter(needed.get(node, habit.get(node, node)) for node in graph)
        merging = [node for node, bare in habit.items() if final[bare] > 1]
        if not merging:
            break
        kept += merging
        for node in merging:
            del habit[node]
    if kept:
        named = ", ".join(f"{node[:40]!r}" for node in kept[:3])
        log.warnings.append(
            f"{len(kept)} quoted ids stay quoted, as without the quotes they would equal another id: {named}"
            + (", ..." if len(kept) > 3 else "")
        )


def _new_keys(graph: "nx.Graph[Any]", log: ChangeLog) -> dict[Any, Any]:
    """Return the keys of parallel edges that JSON can't hold, as texts."""
    if not graph.is_multigraph():
        return {}
    found: dict[Any, Any] = {}
    for key in {key for _, _, key in graph.edges(keys=True)}:
        if type(key) is int and abs(key) <= LARGEST:
            continue
        fit = fit_id(key)
        if type(key) is not str or fit != key:
            found[key] = fit
    for before, after in sorted(found.items(), key=lambda pair: repr(pair[1])):
        log.add("ids", "edge key", before, after)
    return found


def _relabelled(graph: "nx.Graph[Any]", ids: dict[Any, Any], keys: dict[Any, Any]) -> "nx.Graph[Any]":
    """Return a copy with new ids and keys, in the same order. Keys that would meet are numbered instead."""
    made: Any
    if graph.is_multigraph():
        made = nx.MultiDiGraph() if graph.is_directed() else nx.MultiGraph()
    else:
        made = nx.DiGraph() if graph.is_directed() else nx.Graph()
    made.graph.update(graph.graph)
    made.add_nodes_from((ids.get(node, node), dict(data)) for node, data in graph.nodes(data=True))
    if not graph.is_multigraph():
        made.add_edges_from((ids.get(s, s), ids.get(t, t), dict(data)) for s, t, data in graph.edges(data=True))
        return made
    for source, target, key, data in graph.edges(keys=True, data=True):
        source, target, key = ids.get(source, source), ids.get(target, target), keys.get(key, key)
        made.add_edges_from([(source, target, None if made.has_edge(source, target, key) else key, dict(data))])
    return made


# -- attributes ---------------------------------------------------------------------------------------------------------


def _attributes(graph: "nx.Graph[Any]", log: ChangeLog, raw: bool, *, write: bool) -> None:
    multi = graph.is_multigraph()
    nodes, edges = (
        _grouped(data for _, data in graph.nodes(data=True)),
        _grouped(data for *_, data in graph.edges(data=True)),
    )
    marked = not raw and any(
        is_marked({name: [row[name] for row in rows] for name, rows in columns.items() if name == "source_id"})
        for columns in (nodes, edges)
    )
    _columns("node", nodes, reserved("nodes", multi), log, raw, write, marked)
    _columns("edge", edges, reserved("edges", multi), log, raw, write, marked)


def _grouped(rows: Iterable[dict[Any, Any]]) -> dict[Any, list[dict[Any, Any]]]:
    """Return by attribute the nodes' or edges' data that have it."""
    columns: dict[Any, list[dict[Any, Any]]] = {}
    for row in rows:
        for name in row:
            columns.setdefault(name, []).append(row)
    return columns


def _columns(
    kind: str,
    columns: dict[Any, list[dict[Any, Any]]],
    own: frozenset[str],
    log: ChangeLog,
    raw: bool,
    write: bool,
    marked: bool,
) -> None:
    renamed: dict[Any, str] = {}
    for name in columns:
        final = fit_text(name) if isinstance(name, str) else str(name)
        if final in own or (final != name and final in columns):
            final = f"attr.{final}"
            while final in columns or final in renamed.values():
                final = f"attr.{final}"
        if final != name or type(name) is not str:
            renamed[name] = final
    for name, owners in columns.items():
        where = f"{kind} {renamed.get(name, name)}"
        changed = _column([row[name] for row in owners], where, log, raw, marked)
        if changed is not None and write:
            for row, value in zip(owners, changed, strict=True):
                row[name] = value
    for name, final in renamed.items():
        for _ in columns[name]:
            log.add("names", f"{kind} {final}", name, final)
        if write:
            for row in columns[name]:
                row[final] = row.pop(name)
    for name in [name for name in renamed if isinstance(name, str) and name in own]:
        log.warnings.append(
            f'the attribute "{name}" of {kind}s is called "{renamed[name]}" here: {kind}s have a field {name}'
        )


def _column(values: list[Any], where: str, log: ChangeLog, raw: bool, marked: bool) -> list[Any] | None:
    """Return the column's new values, or None where nothing changes."""
    kinds = set(map(type, values))
    new = values
    if str in kinds and not raw:
        new = without_habits(new, kinds, where, log, marked=marked)
    return _needed(new, where, log, values)


def _needed(values: list[Any], where: str, log: ChangeLog, given: list[Any]) -> list[Any] | None:
    kinds = set(map(type, values))
    if kinds <= {bool, type(None)}:
        return None if values is given else values
    fit = [value if is_fit(value) else json_value(value) for value in values]
    if float in kinds:  # conditions and orders mean them; only what leaves as JSON can't have them
        fit = [
            before if after is None and type(before) is float else after
            for before, after in zip(values, fit, strict=True)
        ]
    for before, after in zip(values, fit, strict=True):
        if type(before) is float and not math.isfinite(before):
            log.add("non-finite", where, before, None)
        elif after is not before:
            log.add("non-finite" if isinstance(before, float) and after is None else "values", where, before, after)
    if values is given and all(map(lambda a, b: a is b, fit, given)):
        return None
    return fit
