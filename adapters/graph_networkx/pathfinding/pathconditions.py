"""What of a condition on paths can be asked earlier than of a whole path: of its ends, its length, its nodes and edges.

Only operands of the outermost AND are taken apart, and all are asked again of every path that is found, so a part that is
not understood here costs time and never an answer.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from attrs import field, frozen

from ....lang.conditions import And, Comparison, Condition, Constant, Field, Not, NullTest
from ....lang.evaluate.conditions import ConditionError, Reader, evaluate, look_up
from ....lang.node import walk
from ..rows.fields import edge_readers, node_readers
from ..rows.items import edge_item
from ..rows.jsonable import node_id

__all__ = ["PathParts", "both", "parts_of", "path_readers"]


@frozen
class PathParts:
    """The parts of a condition. ``starts`` and ``ends`` are conditions on nodes that the path's ends have to satisfy, ``nodes``
    and ``edges`` ones that every node and every edge has to, ``lengths`` conditions on the length alone."""

    starts: Condition | None = None
    ends: Condition | None = None
    nodes: Condition | None = None
    edges: Condition | None = None
    lengths: tuple[Condition, ...] = field(default=())

    def allows(self, length: int) -> bool:
        """Say whether a path of ``length`` edges may satisfy the condition."""
        return all(evaluate(condition, lambda _: length) is True for condition in self.lengths)

    def longest(self) -> int | None:
        """Return the greatest length that may satisfy the condition; None where no length is too great."""
        numbers = [0.0]
        for condition in self.lengths:
            for node in walk(condition):
                if isinstance(node, Constant) and isinstance(node.value, int | float) and math.isfinite(node.value):
                    numbers.append(node.value)
        last = math.floor(max(numbers)) + 1  # what is said of lengths changes only at a number that stands there
        return None if self.allows(last) else last


def both(left: Condition | None, right: Condition | None) -> Condition | None:
    """Return the condition that both hold; None holds always."""
    if left is None or right is None:
        return left or right
    return And((left, right))


def parts_of(where: Condition | None) -> PathParts:
    """Take a condition on paths apart."""
    parts = PathParts()
    for operand in _operands(where):
        fields = [node for node in walk(operand) if isinstance(node, Field)]
        prefixes = {(at.path[0] if at.path else "", at.quantifier) for at in fields}
        if prefixes == {("source", None)}:
            parts = attrs.evolve(parts, starts=both(parts.starts, _stripped(operand)))
        elif prefixes == {("target", None)}:
            parts = attrs.evolve(parts, ends=both(parts.ends, _stripped(operand)))
        elif prefixes == {("length", None)}:
            parts = attrs.evolve(parts, lengths=(*parts.lengths, operand))
        elif isinstance(operand, Comparison | NullTest) and fields and fields[0].quantifier in ("all", "none"):
            each = _stripped(operand)
            if fields[0].quantifier == "none":
                each = Not(each)
            if fields[0].path[0] == "node":
                parts = attrs.evolve(parts, nodes=both(parts.nodes, each))
            else:
                parts = attrs.evolve(parts, edges=both(parts.edges, each))
    return parts


def _operands(where: Condition | None) -> Iterator[Condition]:
    stack = [where] if where is not None else []
    while stack:
        current = stack.pop()
        if isinstance(current, And):
            stack.extend(reversed(current.operands))
        else:
            yield current


def _stripped(condition: Condition) -> Condition:
    """Return a condition on what the first name of its fields stands for; a bare ``source`` is its id."""
    if isinstance(condition, Not):
        return Not(_stripped(condition.operand))
    if isinstance(condition, Comparison | NullTest):
        assert isinstance(condition.left, Field)  # noqa: S101  # conditions come bound
        return attrs.evolve(condition, left=Field(condition.left.path[1:] or ("id",)))
    return attrs.evolve(condition, operands=tuple(_stripped(operand) for operand in condition.operands))


def path_readers(graph: Any) -> Any:
    """Return the readers for rows ``(nodes, edges)``: the path's nodes, and its edges as ``(source, target, key, attributes)``."""
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
        if at.path == ("nodes",):
            return Reader((0,), function=lambda nodes: [node_id(node) for node in nodes])
        if first == "edges":
            return Reader((1,), function=lambda edges: look_up({"edges": _items(edges)}, at.path))
        if first in ("node", "edge"):
            raise ConditionError(f"{'.'.join(at.path)} needs ANY, ALL or NONE before it")
        return Reader((0,), function=lambda nodes: None)

    return read


def _items(edges: Sequence[Any]) -> list[dict[str, Any]]:
    return [edge_item(*edge) for edge in edges]
