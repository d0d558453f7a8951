"""The elements of ``FIND patterns``: its nodes and edges by number, and the parts of WHERE that concern one or several elements.

A *spot* is a node of the patterns; all nodes with the same name are one spot. A *link* is an edge of the patterns. Every element has
a *slot*, the number of its column in the table of rows: first the spots, then the links, each in order of first occurrence.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from attrs import define, field, frozen

from ...lang.diagnostic import nearest
from ...lang.evaluate.conditions import ConditionError, simplified
from ...lang.printer.gasl_printer import format_condition, format_name, format_pattern
from ...lang.trees import Node, walk
from ...lang.trees.conditions import And, Comparison, Condition, Constant, Field, Increasing, Items, Variable
from ...lang.trees.gasl import Pattern, PatternEdge, PatternNode
from ..graph import AdapterError, Schema
from .find_plan import operands_of
from .rows import Kind

_OFFERED = 12
"""Maximum number of attributes in a hint."""


@define(eq=False)
class Spot:
    """A node of the patterns. ``conditions`` are conditions on the fields of a node; ``labels`` are None if any label is allowed."""

    slot: int
    name: str | None
    text: str
    labels: tuple[str, ...] | None = None
    conditions: list[Condition] = field(factory=list)
    plain: bool = True
    """Whether all conditions come from labels."""

    kind: Kind = "nodes"


@define(eq=False)
class Link:
    """An edge of the patterns from spot ``tail`` to spot ``head``; if ``either``, the direction does not matter.

    ``left`` is the spot to its left in the text, ``right`` the spot to its right.
    """

    slot: int
    name: str | None
    text: str
    tail: int
    head: int
    left: int
    right: int
    either: bool
    labels: tuple[str, ...] | None = None
    conditions: list[Condition] = field(factory=list)
    plain: bool = True

    kind: Kind = "edges"


@frozen(eq=False)
class Shape:
    """The elements of patterns.

    ``between`` are the operands of WHERE that concern several elements, or an entire item. ``keys`` are the slots by which the
    rows are sorted: from left to right, the first node of a pattern and all edges; they determine the other nodes. ``shown``
    maps the names to their slots. ``arrows`` is true if an edge has a direction in the text.
    """

    spots: tuple[Spot, ...]
    links: tuple[Link, ...]
    between: tuple[Condition, ...]
    keys: tuple[int, ...]
    shown: dict[str, int]
    arrows: bool

    def elements(self) -> list[Spot | Link]:
        """Return all elements, in the order of their slots."""
        return [*self.spots, *self.links]

    def kind(self, slot: int) -> Kind:
        """Return the kind ("nodes" or "edges") of the element with a slot."""
        return "nodes" if slot < len(self.spots) else "edges"

    def slots_of(self, node: Any) -> set[int]:
        """Return the slots of the elements that a condition or a value reads."""
        return {self.shown[at.path[0]] for at in walk(node) if isinstance(at, Field)}

    def links_of(self, spot: int) -> list[Link]:
        """Return the links at a spot."""
        return [link for link in self.links if spot in (link.tail, link.head)]


def shape_of(
    patterns: Sequence[Pattern],
    where: Condition | None,
    values: Sequence[Any],
    directed: bool,
    schema: Callable[[], Schema],
    most: int,
) -> Shape:
    """Return the elements of ``patterns`` with their conditions; ``values`` are the values of ORDER BY and PER.

    ``schema`` is called only if the patterns have labels. Raises ``AdapterError`` if the patterns have more than ``most``
    edges, if shared node names do not connect all of them, if a name has two meanings, or if the graph can't have a label.
    Raises ``ConditionError`` for an unknown name.
    """
    edges = sum(len(pattern.edges) for pattern in patterns)
    if edges > most:
        raise AdapterError(
            f"the patterns have {edges} edges; at most {most} are allowed here",
            hint="write two FIND patterns and JOIN their rows; the limit is adapter.caps.max_pattern_edges",
        )
    builder = _Builder(directed, schema)
    for pattern in patterns:
        builder.add(pattern)
    builder.check_shared()
    count = len(builder.spots)
    for link in builder.links:
        link.slot += count
    shown = {each.name: each.slot for each in builder.elements() if each.name is not None}
    keys = tuple(slot if kind == "node" else slot + count for kind, slot in builder.keys)
    between: list[Condition] = []
    elements: dict[int, Spot | Link] = {each.slot: each for each in builder.elements()}
    for value in (where, *values):
        _check_names(value, shown)
    for operand in operands_of(None if where is None else simplified(where)):
        fields = [node for node in walk(operand) if isinstance(node, Field)]
        slots = {shown[at.path[0]] for at in fields}
        if len(slots) == 1 and all(len(at.path) > 1 for at in fields):
            element = elements[slots.pop()]
            element.conditions.append(_without_name(operand))
            element.plain = False
        else:
            between.append(operand)
    return Shape(
        tuple(builder.spots), tuple(builder.links), tuple(between), keys, _in_order(patterns, shown), builder.arrows
    )


def _in_order(patterns: Sequence[Pattern], shown: dict[str, int]) -> dict[str, int]:
    """Return ``shown`` with its names in the order in which the pattern's text has them."""
    names: dict[str, int] = {}
    for pattern in patterns:
        for at, node in enumerate(pattern.nodes):
            for part in (pattern.edges[at - 1], node) if at else (node,):
                if part.name is not None:
                    names.setdefault(part.name, shown[part.name])
    return names


@define(eq=False)
class _Builder:
    """Collects the elements of patterns. ``keys`` has the kind and the number of each element by which the rows are sorted."""

    directed: bool
    schema: Callable[[], Schema]
    spots: list[Spot] = field(factory=list)
    links: list[Link] = field(factory=list)
    keys: list[tuple[str, int]] = field(factory=list)
    arrows: bool = False
    _named: dict[str, Spot] = field(factory=dict)
    _edges: set[str] = field(factory=set)
    _parts: list[tuple[set[int], str]] = field(factory=list)

    def elements(self) -> list[Spot | Link]:
        """Return all elements."""
        return [*self.spots, *self.links]

    def add(self, pattern: Pattern) -> None:
        """Add the elements of a pattern."""
        before = len(self.spots)
        left = self.spot(pattern.nodes[0])
        inside = {left.slot}
        if left.slot >= before:
            self.keys.append(("node", left.slot))
        for edge, node in zip(pattern.edges, pattern.nodes[1:], strict=True):
            number = self.edge(edge)
            right = self.spot(node)
            inside.add(right.slot)
            tail, head = (right, left) if edge.direction == "in" else (left, right)
            either = edge.direction == "either" or not self.directed
            self.arrows = self.arrows or edge.direction != "either"
            link = Link(
                number, edge.name, _edge_text(edge), tail.slot, head.slot, left.slot, right.slot, either,
                edge.labels or None,
            )  # fmt: skip
            if edge.labels:
                link.conditions.append(self.labelled(edge, "edges"))
            self.links.append(link)
            self.keys.append(("edge", number))
            left = right
        self._parts.append((inside, format_pattern(pattern)))

    def spot(self, node: PatternNode) -> Spot:
        """Return the spot of a node. The node's conditions are added to it."""
        known = self._named.get(node.name) if node.name is not None else None
        if known is None:
            known = Spot(len(self.spots), node.name, format_pattern(Pattern((node,)))[1:-1])
            self.spots.append(known)
            if node.name is not None:
                self._named[node.name] = known
                if node.name in self._edges:
                    raise _two_meanings(node.name)
        elif node.labels or node.properties:
            known.text = format_pattern(Pattern((node,)))[1:-1]
        if node.labels:
            known.labels = node.labels if known.labels is None else known.labels
            known.conditions.append(self.labelled(node, "nodes"))
        for name, value in node.properties:
            if isinstance(value, Variable):
                raise ConditionError(
                    f"the variable {value.name} has no value", hint="bind it with AS in an earlier command"
                )
            known.conditions.append(Comparison(Field((name,)), "=", value))
            known.plain = False
        return known

    def edge(self, edge: PatternEdge) -> int:
        """Return the number of a new link. Raises ``AdapterError`` if its name is in use."""
        if edge.name is not None:
            if edge.name in self._named:
                raise _two_meanings(edge.name)
            if edge.name in self._edges:
                raise AdapterError(
                    f"{edge.name} names two edges, but an edge is used at most once in a row",
                    hint="give each edge its own name",
                )
            self._edges.add(edge.name)
        return len(self.links)

    def labelled(self, part: PatternNode | PatternEdge, kind: Kind) -> Condition:
        """Return the condition that an element has one of the labels in the text."""
        schema = self.schema()
        name = schema.label_attribute if kind == "nodes" else schema.relation_attribute
        if name is None:
            what, attributes = (
                ("nodes", schema.node_attributes) if kind == "nodes" else ("edges", schema.edge_attributes)
            )
            label = format_name(part.labels[0])
            whose = f"{part.name or ('p' if kind == 'nodes' else 'r')}"
            offered = ", ".join(list(attributes)[:_OFFERED]) + (", ..." if len(attributes) > _OFFERED else "")
            hint = (
                f'write WHERE {whose}.type = "{part.labels[0]}", with one of: {offered}'
                if attributes
                else f"the {what} have no attributes"
            )
            raise AdapterError(
                f"this graph has no attribute that distinguishes kinds of {what}, so :{label} has no meaning", hint=hint
            )
        at = Field((name,))
        if len(part.labels) == 1:
            return Comparison(at, "=", Constant(part.labels[0]))
        return Comparison(at, "IN", Items(tuple(map(Constant, part.labels))))

    def check_shared(self) -> None:
        """Raise ``AdapterError`` unless shared node names connect all patterns."""
        reached, rest = set(self._parts[0][0]), self._parts[1:]
        while rest:
            joined = [part for part in rest if part[0] & reached]
            if not joined:
                raise AdapterError(
                    f"the patterns {self._parts[0][1]} and {rest[0][1]} share no node name, "
                    "so every row of one would be combined with every row of the other",
                    hint="use the same name in both, or write two commands and JOIN their rows",
                )
            for spots, _ in joined:
                reached |= spots
            rest = [part for part in rest if not part[0] & reached]


def _two_meanings(name: str) -> AdapterError:
    return AdapterError(f"{name} names a node and an edge", hint="use two different names")


def _edge_text(edge: PatternEdge) -> str:
    if edge.name is not None:
        return format_name(edge.name)
    return f"an edge of type {' or '.join(edge.labels)}" if edge.labels else "an edge"


def _check_names(value: Any, shown: dict[str, int]) -> None:
    """Raise ``ConditionError`` for a field that does not begin with the name of an element, and for a test of paths."""
    if value is None:
        return
    for node in walk(value):
        if isinstance(node, Increasing) or (isinstance(node, Field) and node.quantifier is not None):
            text = format_condition(node) if isinstance(node, Increasing) else f"{node.quantifier} {node.text}".upper()
            raise ConditionError(
                f"{text} is only allowed for paths",
                hint="name each edge of the pattern, and compare the fields: r.x <= s.x",
            )
        if isinstance(node, Field) and node.path[0] not in shown:
            like = nearest(node.path[0], shown)
            hint = (
                f"did you mean {like}?"
                if like
                else f"the names are {', '.join(shown)}"
                if shown
                else "give the elements names"
            )
            if shown and not like and len(node.path) == 1:
                hint += f"; a field follows a name: {next(iter(shown))}.{node.text}"
            raise ConditionError(f"{node.path[0]} is not a name in the pattern", hint=hint)


def _without_name(node: Any) -> Any:
    """Return a condition or a value without the first name of each field."""
    if isinstance(node, Field):
        return Field(node.path[1:], span=node.span)
    changed: dict[str, Any] = {}
    for name in ("operands", "operand", "left", "right", "arguments"):
        part = getattr(node, name, None)
        if isinstance(part, tuple):
            changed[name] = tuple(map(_without_name, part))
        elif isinstance(part, Node):
            changed[name] = _without_name(part)
    return attrs.evolve(node, **changed) if changed else node


_SHOWN_VALUES, _SHOWN_LENGTH = 20, 200
"""A condition is shown only if a list in it has at most this many elements, and its text at most this many characters."""


def condition_text(condition: Condition) -> str:
    """Return a condition for a message.

    If the text would be long, or a value can't be written, only the condition's fields are named.
    """
    for node in walk(condition):
        values = node.items if isinstance(node, Items) else node.value if isinstance(node, Constant) else ()
        if isinstance(values, tuple | list | dict) and len(values) > _SHOWN_VALUES:
            break
    else:
        try:
            text = format_condition(condition)
        except ValueError:  # a variable had an infinite value
            text = ""
        if text and len(text) <= _SHOWN_LENGTH:
            return text
    fields = dict.fromkeys(node.text for node in walk(condition) if isinstance(node, Field))
    return f"a condition on {', '.join(fields)}" if fields else "a condition"


def joined(conditions: Sequence[Condition]) -> Condition | None:
    """Return the conjunction of ``conditions``, or None if ``conditions`` is empty."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return And(tuple(conditions))
