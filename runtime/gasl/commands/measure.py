"""MEASURE: runs an algorithm on the graph, or on a graph built from edges. The evidence says how a result was computed."""

import math
from collections.abc import Mapping, Sequence
from sys import getsizeof
from typing import Any

import attrs
from attrs import frozen

from ....adapters.graph import Links, NodeId
from ....adapters.state import Evidence
from ....lang.catalogue.measures import BY_1, MEASURES, default_weights, faults_of, meant_algorithm, no_weight
from ....lang.catalogue.schema import Attribute
from ....lang.diagnostic import nearest
from ....lang.evaluate.conditions.values import check, hold
from ....lang.literals import kind_of, short
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees.conditions import Constant, Field
from ....lang.trees.gasl import Measure
from ..column_cells import LARGE, blocks_of
from ..records import ExecutionResult, Runner, Session, Value
from .bindings import Refused, Rows, bound_command, node_ids, refusing, rows_of, threaded
from .caps import LOOK, caps_message
from .columns import column, item_label
from .evidence import Lazy, graph_piece, is_node_id, item_kind
from .find import of_graph
from .paths import usable, with_unused


@refusing
async def run_measure(command: Measure, session: Session) -> ExecutionResult:
    """Run MEASURE: return the rows of an algorithm (see ``lang.catalogue.measures``), in the order of the graph's nodes."""
    command = bound_command(command, session)
    settings = {name: constant.value for name, constant in command.settings}
    _check(command, settings, session)
    spec, caps = MEASURES[command.algorithm], session.caps
    source: Rows | None = None
    among: list[NodeId] | None = None
    pairs: list[tuple[NodeId, NodeId]] | None = None
    if command.source is not None:
        source = rows_of(command.source, session)
        pairs = _pairs(source) if spec.shape == "pairs" else None
        among = node_ids(source) if pairs is None else None
    derived = None
    if command.edges is not None:
        derived = await threaded(_derived, command, among, pairs, session)
    answer = await usable(
        lambda caps: session.graph.measure(
            command.algorithm,
            among,
            settings=settings,
            weight=None if derived is not None else command.weight,
            links=None if derived is None else derived.links,
            pairs=pairs,
            caps=caps,
        ),
        caps,
    )
    if derived is not None:
        answer = attrs.evolve(answer, unused_edges=derived.unused)
    result = of_graph(answer, session, caps)
    unweighted = command.weight is None and spec.weight and not answer.weight and not (derived and derived.weight)
    by = _possible_weights(session.graph.schema.edge_attributes) if unweighted and _is_in_graph(derived) else ""
    suggestion = f" ({by} would weight the edges, as a {spec.weight})" if by else ""
    note = f"{answer.used}{suggestion}; {_scope(command, source, among, pairs, derived, session)}"
    result = attrs.evolve(result, notes=(note,))
    if result.value is not None:
        items = result.value.value
        about = _Computed(command, settings, answer.weight or (derived.weight if derived else ""), note, session)
        in_graph = _is_in_graph(derived)
        evidence = Lazy(len(items), lambda at: _evidence(items[at], spec.shape, about, in_graph, session))
        result = attrs.evolve(result, value=Value(items, evidence))
    if answer.notes and "timeout_s" in answer.caps_hit:
        others = caps_message([cap for cap in answer.caps_hit if cap != "timeout_s"], caps)
        message = f"{'; '.join(answer.notes)}: timeout_s is {caps.timeout_s:g} s"
        hint = "SET adapter.caps.timeout_s higher, or measure a part of the graph"
        result = attrs.evolve(result, message="; ".join(filter(None, (message, others))), hint=hint)
    result = with_unused(result, answer, command.weight)
    if result.status == "empty":
        name = command.source or command.edges
        what = {"edges": "edges", "pairs": "pairs of nodes"}.get(spec.shape, "nodes")
        message = f"{'the graph' if name is None else name.text} has no {what} to measure"
        return attrs.evolve(result, message="; ".join(filter(None, (message, result.message))))
    return result


def _check(command: Measure, settings: Mapping[str, Any], session: Session) -> None:
    """Raise ``Refused`` for an unknown algorithm, or for settings or a weight that the algorithm does not accept."""
    known = session.graph.measures
    if command.algorithm not in known or command.algorithm not in MEASURES:
        like = meant_algorithm(command.algorithm)
        if like.partition("(")[0] not in known:
            like = nearest(command.algorithm, known) or ""
        hint = f"did you mean {like}?" if like else f"available: {', '.join(known)}"
        raise Refused("error", f"unknown algorithm {command.algorithm}", hint)
    if fault := faults_of(command.algorithm, settings, weighted=command.weight is not None):
        raise Refused("error", *fault)


_WEIGHTS = 3
"""Maximum number of attributes that a note suggests as weights."""


def _possible_weights(attributes: Mapping[str, Attribute]) -> str:
    """Return BY with each of the first attributes of edges that can be a weight, "" if there are none; ``weight`` comes first."""
    usable_names = [
        name
        for name, each in attributes.items()
        if each.types.keys() <= {"integer", "float", "null"}
        and isinstance(each.lowest, int | float)
        and each.lowest >= 0
    ]
    usable_names.sort(key=lambda name: name.casefold() != "weight")
    return " or ".join(f"BY {format_condition(Field((name,)))}" for name in usable_names[:_WEIGHTS])


def _scope(
    command: Measure,
    source: Rows | None,
    among: Sequence[NodeId] | None,
    pairs: Sequence[Any] | None,
    derived: "_Derived | None",
    session: Session,
) -> str:
    """Return a sentence about the graph that was measured and, if the command names a variable, about the rows."""
    schema = session.graph.schema
    if derived is None:
        whole, nodes, edges = "on the whole graph", schema.nodes, schema.edges
    else:
        assert command.edges is not None  # noqa: S101  # derived from it
        whole, nodes, edges = (
            f"on the graph made of {command.edges.text}",
            len(derived.links.nodes),
            len(derived.links.edges),
        )
    scope = f"{whole} ({_counted(nodes, 'node')}, {_counted(edges, 'edge')})"
    if source is None:
        return scope
    chosen = _counted(len(pairs), "pair") if pairs is not None else _counted(len(among or ()), "node")
    if MEASURES[command.algorithm].shape == "summary":
        scope += f"; the nodes of {source.name} have no effect on the summary"
    else:
        scope += f"; the rows are those of the {chosen} in {source.name}"
    kind = item_kind(next(iter(source.each()), None))
    if derived is None and pairs is None and kind in ("edge", "path", "subgraph"):
        scope += f"; MEASURE graph ON {source.name} measures only its edges"
    return scope


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _pairs(rows: Rows) -> list[tuple[NodeId, NodeId]] | None:
    """Return the ``source`` and ``target`` of each item. Return None if the items are not pairs."""
    found: list[tuple[NodeId, NodeId]] = []
    for item in rows.each():
        if not isinstance(item, dict) or item_kind(item) not in ("edge", "path"):
            return None
        source, target = item["source"], item["target"]
        if not (is_node_id(source) and is_node_id(target)):
            return None
        found.append((source, target))
    return found if found else None


# ON: the graph made of the edges of a variable.


@frozen
class _Derived:
    """A graph made of rows.

    ``in_graph`` is true if the rows are edges of the original graph; ``unused`` is the number of edges without a weight;
    ``weight`` is the value or the attribute that is the weight, "" if the graph is unweighted.
    """

    links: Links
    in_graph: bool
    unused: int
    weight: str


def _is_in_graph(derived: _Derived | None) -> bool:
    """Return whether the measured edges are edges of the original graph."""
    return derived is None or derived.in_graph


_LINK = 200
"""Estimated number of bytes of an edge, with its ends and its weight, in a graph made of rows."""


def _derived(
    command: Measure, among: Sequence[NodeId] | None, pairs: Sequence[tuple[NodeId, NodeId]] | None, session: Session
) -> _Derived:
    assert command.edges is not None  # noqa: S101  # the caller checks it
    rows = rows_of(command.edges, session)
    edges, nodes, in_graph = _edges(rows)
    weight, weights, note = _weights(command, edges, session)
    unused = 0
    links: list[tuple[NodeId, NodeId]] = []
    used: list[float] = []
    known: dict[NodeId, None] = dict.fromkeys(nodes)
    for at, edge in enumerate(edges.items):
        if at % LOOK == 0:
            check()
            hold(LOOK * _LINK)
        ends = (edge["source"], edge["target"])
        known.update(dict.fromkeys(ends))
        if weights is not None:
            if (number := weights[at]) is None:
                unused += 1
                continue
            used.append(number)
        links.append(ends)
    check()
    known.update(dict.fromkeys(among or ()))
    for pair in pairs or ():
        known.update(dict.fromkeys(pair))
    return _Derived(Links(list(known), links, None if weights is None else used, note), in_graph, unused, weight)


def _edges(rows: Rows) -> tuple[Rows, list[NodeId], bool]:
    """Return the edges in the items, the nodes of subgraphs, and whether the edges are edges of the graph."""
    edges: list[Any] = []
    nodes: list[NodeId] = []
    in_graph, shared = rows.value.graph_items in ("edges", "paths"), False
    for index, item in enumerate(rows.each()):
        if index % LOOK == 0:
            check()
            hold(LOOK * getsizeof(item) if len(rows) > LARGE else 0)  # the items of a large relation are built here
        kind = item_kind(item)
        if kind == "subgraph":
            in_graph = shared = True
            nodes += [node["id"] if isinstance(node, dict) else node for node in item["nodes"]]
            edges += item.get("edges", ())
        elif kind == "path":
            shared = True
            edges += item["edges"]
        elif isinstance(item, dict) and is_node_id(item.get("source")) and is_node_id(item.get("target")):
            edges.append(item)
        else:
            raise Refused(
                "schema_mismatch",
                f"{item_label(rows, index)} is not an edge",
                "ON takes edges, paths, a subgraph, or rows with the fields source and target",
            )
    if in_graph and shared:  # several paths may share an edge; rows of UNNEST with the same edge are parallel edges
        distinct: dict[Any, Any] = {}
        for at in blocks_of(len(edges)):
            for edge in edges[at]:
                distinct.setdefault((edge["source"], edge["target"], edge.get("key")), edge)
        edges = list(distinct.values())
    value = Value(edges, graph_items="edges" if in_graph else "")
    return Rows(rows.name, value, edges), nodes, in_graph


def _weights(command: Measure, edges: Rows, session: Session) -> tuple[str, Sequence[float | None] | None, str]:
    """Return the value that is the weight, the weight of each edge (None if it has none), and a note.

    The values are "" and None for an unweighted graph.
    """
    if command.weight is None:
        if not MEASURES[command.algorithm].weighted:
            return "", None, no_weight(command.algorithm)
        return default_weights(edges.items, lambda at: (edges.items[at]["source"], edges.items[at]["target"]))
    if isinstance(command.weight, Constant) and command.weight.value == 1:
        return "", None, BY_1
    found = column(edges, command.weight, session).values
    text = format_condition(command.weight)
    for index, value in enumerate(found):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            what = f"the text {short(value)}" if isinstance(value, str) else kind_of(value)
            hint = f"write number({text}) if the text has a number"
            raise Refused("schema_mismatch", f"{text} of {item_label(edges, index)} is {what}, not a number", hint)
        if not 0 <= value < math.inf:
            message = f"{text} of {item_label(edges, index)} is {value:g}; a weight must be at least 0"
            raise Refused("schema_mismatch", message, "write a value of at least 0")
    return text, [None if value is None else float(value) for value in found], f"weighted by {text}"


# Evidence: how the values were computed.


class _Computed:
    """The piece of evidence that all rows share. It is made when it is first read, because it needs the hash of the graph."""

    def __init__(self, command: Measure, settings: Mapping[str, Any], weight: str, note: str, session: Session) -> None:
        self._command = command
        self._settings = settings
        self._weight = weight
        self._note = note
        self._session = session
        self._step = session.label
        self._piece: Evidence | None = None

    def piece(self) -> Evidence:
        """Return ``{"kind": "computed", "step", "algorithm", "settings"?, "weight"?, "note", "graph" or "on"}``."""
        if self._piece is None:
            command = self._command
            step = int(self._step) if self._step.isdigit() else self._step
            made: dict[str, Any] = {"kind": "computed", "step": step, "algorithm": command.algorithm}
            defaults = {name: setting.default for name, setting in MEASURES[command.algorithm].settings.items()}
            if chosen := {**defaults, **self._settings}:
                made["settings"] = chosen
            if self._weight:
                made["weight"] = self._weight
            made["note"] = self._note
            if command.edges is not None:
                made["on"] = command.edges.text
            else:
                made["graph"] = self._session.graph.schema.hash
            self._piece = made
        return self._piece


def _evidence(
    item: Mapping[str, Any], shape: str, about: _Computed, in_graph: bool, session: Session
) -> Sequence[Evidence]:
    if shape == "summary" or not in_graph:
        return (about.piece(),)
    if shape == "pairs":  # a pair need not be an edge
        return ({"kind": "graph", "nodes": [item["source"], item["target"]]}, about.piece())
    return (graph_piece(item, session.chunks), about.piece())


RUNNERS: Mapping[type, Runner] = {Measure: run_measure}
