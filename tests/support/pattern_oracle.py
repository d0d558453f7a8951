"""FIND patterns said once more and plainly: backtracking over all nodes and edges, and the interpreter for every condition."""

from collections.abc import Iterator, Sequence
from typing import Any

from knotwork.adapters.graph_networkx.rows import edge_item, node_item, plain
from knotwork.lang.evaluate.conditions import evaluate, identity, order_key
from knotwork.lang.evaluate.conditions.values import compute
from knotwork.lang.trees.conditions import Condition, Field
from knotwork.lang.trees.gasl import Order, Pattern

from .graph_oracle import edges_of, of_edge, of_node

__all__ = ["pattern_rows", "right_rows"]


def right_rows(
    graph: Any,
    patterns: Sequence[Pattern],
    where: Condition | None = None,
    labels: tuple[str | None, str | None] = (None, None),
    order: Sequence[Order] = (),
    limit: int | None = None,
    per: Sequence[Any] = (),
) -> list[dict[str, Any]]:
    """Return the items of the rows. ``labels``: the attributes of nodes and of edges that have their labels."""
    found = [row for row in pattern_rows(graph, patterns, labels) if where is None or holds(graph, row, where)]
    for each in reversed(order):
        keyed = [(order_key(plain(value(graph, row, each.value)), each.descending), row) for row in found]
        null = order_key(None, each.descending)
        there = sorted((pair for pair in keyed if pair[0] != null), key=lambda pair: pair[0], reverse=each.descending)
        found = [row for _, row in there] + [row for key, row in keyed if key == null]
    if per:
        groups: dict[Any, list[Any]] = {}
        for row in found:
            groups.setdefault(tuple(identity(plain(value(graph, row, each))) for each in per), []).append(row)
        found = [row for group in groups.values() for row in group[:limit]]
    elif limit is not None:
        found = found[:limit]
    return [{name: item(graph, *element) for name, element in row.items()} for row in found]


def pattern_rows(
    graph: Any, patterns: Sequence[Pattern], labels: tuple[str | None, str | None]
) -> Iterator[dict[str, tuple[str, Any]]]:
    """Yield ``{name: (kind, node or edge)}`` for each match, in the graph's order of the elements from left to right."""
    nodes, edges = list(graph), edges_of(graph)
    steps: list[tuple[Any, Any]] = []
    for pattern in patterns:
        steps.append((None, pattern.nodes[0]))
        steps += zip(pattern.edges, pattern.nodes[1:], strict=True)

    def fits(part: Any, data: Any, attribute: str | None, read: Any) -> bool:
        if part.labels and not any(identity(plain(data.get(attribute))) == label for label in part.labels):
            return False
        given = getattr(part, "properties", ())
        return all(identity(plain(read((name,)))) == identity(c.value) is not None for name, c in given)

    def ways(edge: Any, at: Any) -> Iterator[Any]:
        for each in edges:
            source, target = each[:2]
            forth, back = source == at, target == at
            if graph.is_directed() and edge.direction != "either":
                forth, back = forth and edge.direction == "out", back and edge.direction == "in"
            if forth:
                yield each, target
            elif back:
                yield each, source

    def match(step: int, at: Any, row: dict[str, Any], used: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
        if step == len(steps):
            yield row
            return
        edge, node = steps[step]
        for way, reached in [(None, each) for each in nodes] if edge is None else ways(edge, at):
            if way is not None and (way in used or not fits(edge, graph.edges[way], labels[1], None)):
                continue
            if node.name in row and row[node.name][1] != reached:
                continue
            if not fits(node, graph.nodes[reached], labels[0], lambda path: of_node(graph, reached, path)):  # noqa: B023
                continue
            more = dict(row)
            if way is not None and edge.name is not None:
                more[edge.name] = ("edge", way)
            if node.name is not None:
                more[node.name] = ("node", reached)
            yield from match(step + 1, reached, more, used if way is None else (*used, way))

    return match(0, None, {}, ())


def item(graph: Any, kind: str, element: Any) -> Any:
    if kind == "node":
        return node_item(element, graph.nodes[element])
    return edge_item(*element[:2], element[2] if graph.is_multigraph() else None, graph.edges[element])


def field(graph: Any, row: Any, at: Field) -> Any:
    kind, element = row[at.path[0]]
    if len(at.path) == 1:
        return item(graph, kind, element)
    return plain((of_node if kind == "node" else of_edge)(graph, element, at.path[1:]))


def holds(graph: Any, row: Any, where: Condition) -> bool:
    return evaluate(where, lambda at: field(graph, row, at)) is True


def value(graph: Any, row: Any, of: Any) -> Any:
    return compute(
        of,
        lambda at: field(graph, row, at),
        lambda test: evaluate(test, lambda at: field(graph, row, at)),
        lenient=True,
    )
