"""Conditions on paths: the parts that a search can check early, and the readers of a path's fields."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import ConditionError, Reader, evaluate, look_up
from ...lang.evaluate.conditions.interpreter import dated
from ...lang.evaluate.expr.date_functions import Moment
from ...lang.trees import Node, walk
from ...lang.trees.conditions import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    Constant,
    Field,
    Increasing,
    Length,
    Negative,
    Not,
    NullTest,
    Or,
)
from .find_plan import operands_of
from .rows import edge_item, edge_readers, node_id, node_readers, plain
from .tables import Computed

# Parts of a path condition that can be checked early: conditions on the path's ends, length, nodes and edges.
# Only operands of the outermost AND are recognised. Every path found is checked against the full condition, so a part that is not
# recognised costs time but never changes the result.


@frozen
class PathParts:
    """The parts of a condition.

    ``starts`` and ``ends`` are conditions on the path's first and last node, and ``nodes`` and ``edges`` are conditions on
    every node and every edge. ``lengths`` are conditions on only the length, ``costs`` on only the cost. ``increasing`` are the
    fields that must increase along the path.
    """

    starts: Condition | None = None
    ends: Condition | None = None
    nodes: Condition | None = None
    edges: Condition | None = None
    lengths: tuple[Condition, ...] = field(default=())
    costs: tuple[Condition, ...] = field(default=())
    increasing: tuple[Field, ...] = field(default=())

    def allows(self, length: int) -> bool:
        """Return whether a path of ``length`` edges may satisfy the condition."""
        return all(evaluate(condition, lambda _: length) is True for condition in self.lengths)

    def longest(self) -> int | None:
        """Return a length such that no path of this length or longer satisfies the condition; None if the length is not bounded."""
        return _bound(self.lengths)

    def dearest(self) -> int | None:
        """Return a cost such that no path of this cost or more satisfies the condition; None if the cost is not bounded."""
        return _bound(self.costs)


def _bound(conditions: Sequence[Condition]) -> int | None:
    numbers = [0.0]
    for condition in conditions:
        for node in walk(condition):
            if isinstance(node, Constant) and isinstance(node.value, int | float) and math.isfinite(node.value):
                numbers.append(node.value)
    last = math.floor(max(numbers)) + 1  # the result changes only at a number in the condition
    return None if all(evaluate(condition, lambda _: last) is True for condition in conditions) else last


def both(left: Condition | None, right: Condition | None) -> Condition | None:
    """Return the conjunction of both conditions. None means a condition that is always true."""
    if left is None or right is None:
        return left or right
    return And((left, right))


def parts_of(where: Condition | None) -> PathParts:
    """Split a condition on paths into its parts."""
    parts = PathParts()
    for operand in operands_of(where):
        fields = [node for node in walk(operand) if isinstance(node, Field)]
        prefixes = {(at.path[0] if at.path else "", at.quantifier) for at in fields}
        if prefixes == {("source", None)}:
            parts = attrs.evolve(parts, starts=both(parts.starts, _without_prefix(operand)))
        elif prefixes == {("target", None)}:
            parts = attrs.evolve(parts, ends=both(parts.ends, _without_prefix(operand)))
        elif isinstance(operand, Increasing):
            parts = attrs.evolve(parts, increasing=(*parts.increasing, operand.field))
        elif prefixes == {("length", None)} and not _computes(operand):
            parts = attrs.evolve(parts, lengths=(*parts.lengths, operand))
        elif prefixes == {("cost", None)} and not _computes(operand):
            parts = attrs.evolve(parts, costs=(*parts.costs, operand))
        elif (
            isinstance(operand, Comparison | NullTest)
            and len(prefixes) == 1
            and fields[0].quantifier in ("all", "none")
        ):
            each = _without_prefix(operand)
            if fields[0].quantifier == "none":
                each = Not(each)
            if fields[0].path[0] == "node":
                parts = attrs.evolve(parts, nodes=both(parts.nodes, each))
            else:
                parts = attrs.evolve(parts, edges=both(parts.edges, each))
    return parts


def _computes(condition: Condition) -> bool:
    """Return whether a condition contains a computed value."""
    return any(isinstance(node, Binary | Call | Length | Negative) for node in walk(condition))


def _without_prefix(condition: Condition) -> Condition:
    """Return the condition without the first name of each field. A field that is ``source`` or ``target`` becomes ``id``."""
    if isinstance(condition, Not):
        return Not(_without_prefix(condition.operand))
    if isinstance(condition, And | Or):
        return attrs.evolve(condition, operands=tuple(_without_prefix(operand) for operand in condition.operands))
    return _renamed(condition)  # type: ignore[no-any-return]


def _renamed(node: Any) -> Any:
    """Return a test or a value without the first name of each field."""
    if isinstance(node, Field):
        return Field(node.path[1:] or ("id",))
    changed: dict[str, Any] = {}
    for name in ("left", "right", "operand", "arguments"):
        part = getattr(node, name, None)
        if isinstance(part, tuple):
            changed[name] = tuple(map(_renamed, part))
        elif isinstance(part, Node):
            changed[name] = _renamed(part)
    return attrs.evolve(node, **changed) if changed else node


def path_readers(graph: Any, cost: Callable[[Sequence[Any]], Any] | None = None) -> Any:
    """Return the field readers for rows ``(nodes, edges)``; an edge is ``(source, target, key, attributes)``.

    ``cost`` is a function that returns the cost of a path's edges. It is None if paths have no cost.
    """
    of_node, of_edge, attributes = node_readers(graph), edge_readers(graph), graph.nodes

    def read(at: Field) -> Reader:
        first, rest = at.path[0], at.path[1:]
        if at.quantifier is not None:
            if first == "node":
                node = of_node(Field(rest))
                return Reader((0,), function=lambda nodes: [node.read(each, attributes[each]) for each in nodes])
            edge = of_edge(Field(rest))
            return Reader((1,), function=lambda edges: [edge.read(*each) for each in edges])
        if first in ("source", "target"):
            end, inner = (0 if first == "source" else -1), of_node(Field(rest or ("id",)))
            return Reader((0,), function=lambda nodes: inner.read(nodes[end], attributes[nodes[end]]))
        if at.path == ("length",):
            return Reader((1,), function=len)
        if at.path == ("cost",) and cost is not None:
            return Reader((1,), function=cost)
        if at.path == ("nodes",):
            return Reader((0,), function=lambda nodes: [node_id(node) for node in nodes])
        if first == "edges":
            return Reader(
                (1,), function=lambda edges: look_up({"edges": [edge_item(*each) for each in edges]}, at.path)
            )
        if first in ("node", "edge"):
            raise ConditionError(f"{'.'.join(at.path)} must follow ANY, ALL or NONE")
        return Reader((0,), function=lambda nodes: None)

    return read


# INCREASING: the values of a field as ranks, so that a search can drop a path as soon as a value decreases.

_NUMBER, _TEXT, _BOOLEAN, _MOMENT, _OTHER = range(5)


@frozen(eq=False)
class Ranks:
    """The kind and rank of a field's value at each position. Values of different kinds have no order; kind -1 means null."""

    kinds: NDArray[np.int64]
    ranks: NDArray[np.int64]

    def follow(self, before: Any, after: Any) -> Any:
        """Return whether the value at ``after`` may follow the value at ``before`` (positions or arrays of positions)."""
        kinds, ranks = self.kinds, self.ranks
        return (kinds[after] >= 0) & (kinds[before] == kinds[after]) & (ranks[before] <= ranks[after])

    def same(self, left: Any, right: Any) -> Any:
        """Return whether two values are equal and not null."""
        return self.follow(left, right) & self.follow(right, left)

    def begin(self, first: Any) -> Any:
        """Return whether the value at ``first`` may be the first value."""
        return self.kinds[first] >= 0


@frozen(eq=False)
class PathOrder:
    """The fields of edges and of nodes that must increase along a path."""

    edges: tuple[Ranks, ...] = ()
    nodes: tuple[Ranks, ...] = ()

    def may_begin(self, node: Any, edge: Any, head: Any) -> Any:
        """Return whether ``edge``, from ``node`` to ``head``, may be the first edge (positions or arrays of positions)."""
        holds = self._nodes(node, head)
        for ranks in self.edges:
            holds = holds & ranks.begin(edge)
        return holds

    def may_follow(self, before: Any, node: Any, edge: Any, head: Any) -> Any:
        """Return whether ``edge`` from ``node`` to ``head`` may follow the edge ``before`` (positions or arrays of positions)."""
        holds = self._nodes(node, head)
        for ranks in self.edges:
            holds = holds & ranks.follow(before, edge)
        return holds

    def same(self, left: Any, right: Any) -> Any:
        """Return whether two edges have the same values. The arguments are arrays of positions."""
        holds: Any = np.ones(np.shape(left), np.bool_)
        for ranks in self.edges:
            holds = holds & ranks.same(left, right)
        return holds

    def _nodes(self, node: Any, head: Any) -> Any:
        holds: Any = True
        for ranks in self.nodes:
            holds = holds & ranks.follow(node, head)
        return holds


def order_of(graph: Any, kept: Computed, parts: PathParts) -> PathOrder | None:
    """Return the order that the INCREASING parts of a condition require; None if it requires no order."""
    if not parts.increasing:
        return None
    edges = tuple(_ranks(graph, kept, "edges", at.path[1:]) for at in parts.increasing if at.path[0] == "edge")
    nodes = tuple(_ranks(graph, kept, "nodes", at.path[1:]) for at in parts.increasing if at.path[0] == "node")
    return PathOrder(edges, nodes)


def _ranks(graph: Any, kept: Computed, kind: str, path: tuple[str, ...]) -> Ranks:
    readers = edge_readers(graph) if kind == "edges" else node_readers(graph)
    table, read = kept.table(graph, kind), readers(Field(path)).read
    values = [dated(plain(read(*row))) for row in table.rows(range(len(table)))]
    kinds = np.array([_kind(value, at) for at, value in enumerate(values)], np.int64)
    ranks = np.zeros(len(values), np.int64)
    for each in (_NUMBER, _TEXT, _BOOLEAN, _MOMENT):
        at = np.flatnonzero(kinds == each).tolist()
        rank = {value: place for place, value in enumerate(sorted({values[place] for place in at}))}
        ranks[at] = [rank[values[place]] for place in at]
    return Ranks(kinds, ranks)


def _kind(value: Any, at: int) -> int:
    if value is None:
        return -1
    if isinstance(value, bool):
        return _BOOLEAN
    if isinstance(value, int | float):
        return _NUMBER
    if isinstance(value, Moment):
        return _MOMENT
    return _TEXT if isinstance(value, str) else _OTHER + at  # a list or an object has no order, not even with itself
