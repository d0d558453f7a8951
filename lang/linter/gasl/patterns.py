"""Rules about the patterns of FIND patterns: their names, labels, edges and symmetry."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from attrs import evolve

from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, Edit
from ...printer.gasl_printer import format_condition, format_name, format_text
from ...source import Span
from ...trees import Node, gasl
from ...trees.conditions import (
    And,
    Comparison,
    Condition,
    Constant,
    Field,
    Items,
    Variable,
)
from ...trees.gasl import FindPatterns, Pattern, PatternEdge, PatternNode
from .context import Context, Step, lint

MOST_EDGES = 6
"""Maximum number of edges in the patterns of a command, unless ``adapter.caps.max_pattern_edges`` is set."""
_CAP = "max_pattern_edges"
_OFFERED = 8
_OTHER_DIRECTION = {"out": "in", "in": "out", "either": "either"}


def _patterns(context: Context) -> Iterator[tuple[Step, FindPatterns]]:
    for step, command in context.commands(FindPatterns):
        if isinstance(command, FindPatterns):
            yield step, command


def _node_names(pattern: Pattern) -> set[str]:
    return {node.name for node in pattern.nodes if node.name is not None}


@lint("GASL081")
def apart(context: Context) -> Iterator[Diagnostic]:
    """Report commands whose patterns are not all connected. Two patterns are connected if they use the same name for a node."""
    for _, command in _patterns(context):
        groups: list[tuple[set[str], Pattern]] = []
        for pattern in command.patterns:
            names = _node_names(pattern)
            joined = [group for group in groups if group[0] & names]
            groups = [group for group in groups if not group[0] & names]
            first = joined[0][1] if joined else pattern
            groups.append((names.union(*(group[0] for group in joined)), first))
        if len(groups) > 1:
            message = "the patterns are not all connected, so every row of one part would be combined with every row of the other"
            hint = "use the name of a node in both parts, or write two commands and combine their results with JOIN"
            yield context.diagnostic("GASL081", message, groups[-1][1].span, hint)


@lint("GASL082")
def too_long(context: Context) -> Iterator[Diagnostic]:
    """Report patterns with more edges than a command may have."""
    most = _most_edges(context)
    for _, command in _patterns(context):
        edges = [edge for pattern in command.patterns for edge in pattern.edges]
        if len(edges) > most:
            message = f"the patterns of a command can have at most {most} edges here, not {len(edges)}"
            hint = f"write two commands, and combine their results with JOIN; the limit is adapter.caps.{_CAP}"
            yield context.diagnostic("GASL082", message, edges[most].span, hint)


def _most_edges(context: Context) -> int:
    ceiling = {key.rsplit(".", 1)[-1]: value for key, value in (context.ceiling or {}).items()}.get(_CAP)
    given = [
        command.value
        for _, command in context.commands(gasl.SetCommand)
        if isinstance(command, gasl.SetCommand) and command.key.parts[-1] == _CAP and type(command.value) is int
    ]
    most = max((value for value in given if isinstance(value, int)), default=MOST_EDGES)
    return most if ceiling is None else min(most, int(ceiling))


@lint("GASL083")
def no_label_attribute(context: Context) -> Iterator[Diagnostic]:
    """Report labels and types in a graph that has no attribute for them."""
    schema = context.schema
    if schema is None:
        return
    for _, command in _patterns(context):
        for element in _elements(command):
            of_node = isinstance(element, PatternNode)
            if not element.labels or (schema.label_attribute if of_node else schema.relation_attribute) is not None:
                continue
            kinds, known = ("nodes", schema.node_attributes) if of_node else ("edges", schema.edge_attributes)
            label = element.labels[0]
            name = format_name(element.name or ("p" if of_node else "r"))
            message = f"this graph has no attribute that distinguishes kinds of {kinds}"
            if known:
                listed = ", ".join(list(known)[:_OFFERED])
                hint = (
                    f"write WHERE {name}.{format_name(next(iter(known)))} = {format_text(label)}, with one of: {listed}"
                )
            else:
                hint = f"its {kinds} have no attributes; remove :{format_name(label)}"
            span = _label_span(context, element, label)
            yield context.diagnostic("GASL083", message, span or element.span, hint)


def _elements(command: FindPatterns) -> Iterator[PatternNode | PatternEdge]:
    for pattern in command.patterns:
        yield pattern.nodes[0]
        for edge, node in zip(pattern.edges, pattern.nodes[1:], strict=True):
            yield from (edge, node)


def _label_span(context: Context, element: PatternNode | PatternEdge, label: str) -> Span | None:
    """Return the span of a label: after the colon that follows the name."""
    name = context.spelled(element.name, element.span) if element.name is not None else None
    colon = context.spelled(":", element.span, name.end if name is not None else 0)
    after = colon.end if colon is not None else element.span.end
    return context.spelled(format_name(label), element.span, after) or context.spelled(label, element.span, after)


def unknown_labels(context: Context) -> Iterator[Diagnostic]:
    """Report labels and types that no node or edge of the graph has, if all labels and types are known."""
    schema = context.schema
    if schema is None:
        return
    for _, command in _patterns(context):
        for element in _elements(command):
            of_node = isinstance(element, PatternNode)
            known = _all_labels(schema, of_node=of_node)
            attribute = schema.label_attribute if of_node else schema.relation_attribute
            for label in element.labels if known is not None and attribute is not None else ():
                if label in (known or {}):
                    continue
                near = context.suggestion(label, known or {})
                span = _label_span(context, element, label)
                message = f"no {'node' if of_node else 'edge'} has {attribute} {format_text(label[:60])}"
                others = schema.relations if of_node else schema.labels
                hint = f"did you mean {format_name(near)}?" if near else ""
                if not near and label in others:
                    hint = (
                        f"edges have it: -[:{format_name(label)}]->"
                        if of_node
                        else f"nodes have it: (p:{format_name(label)})"
                    )
                shown = ", ".join(list(known or {})[:_OFFERED])
                edits = [Edit(span, format_name(near))] if near and span is not None else []
                yield context.diagnostic(
                    "GASL071", message, span or element.span, hint, f"its values are {shown}", edits=edits
                )


def _all_labels(schema: Schema, *, of_node: bool) -> Mapping[str, int] | None:
    """Return all labels of nodes or types of edges with their counts; None if they are not all known."""
    name = schema.label_attribute if of_node else schema.relation_attribute
    labels = schema.labels if of_node else schema.relations
    attribute = (schema.node_attributes if of_node else schema.edge_attributes).get(name or "")
    if attribute is None or {"list", "object"} & attribute.types.keys():
        return None
    return labels if attribute.distinct == len(labels) else None


@lint("GASL095")
def label_as_name(context: Context) -> Iterator[Diagnostic]:
    """Report names of nodes and edges that are labels or types of the graph and are not used as names."""
    schema = context.schema
    if schema is None:
        return
    used: Counter[str] | None = None
    for _, command in _patterns(context):
        for element in _elements(command):
            of_node = isinstance(element, PatternNode)
            name, known = element.name, schema.labels if of_node else schema.relations
            attribute = schema.label_attribute if of_node else schema.relation_attribute
            if name is None or element.labels or name not in known or attribute is None:
                continue
            used = used if used is not None else _uses(context)
            at = context.spelled(format_name(name), element.span) or context.spelled(name, element.span)
            if used[name] > 1 or at is None:
                continue
            one, many = ("node", "nodes") if of_node else ("edge", "edges")
            message = f"{name} is only the name of this {one} here, so it matches {many} with any {attribute}"
            hint = f"write :{format_name(name)} for {many} whose {attribute} is {format_text(name)}"
            edits = [Edit(Span(at.start, at.start), ":")]
            yield context.diagnostic("GASL095", message, at, hint, edits=edits)


def _uses(context: Context) -> Counter[str]:
    """Count the uses of each name. A name may be used in a field, in a variable, or as the name of an element of a pattern."""
    found: Counter[str] = Counter()
    for step in context.steps:
        for node in step.nodes:
            if isinstance(node, Field | Variable):
                found.update({str(part) for part in node.path})
            elif isinstance(node, PatternNode | PatternEdge) and node.name is not None:
                found[node.name] += 1
    return found


@lint("GASL084")
def arrow_without_direction(context: Context) -> Iterator[Diagnostic]:
    """Report arrows in patterns on an undirected graph."""
    if context.schema is None or context.schema.directed:
        return
    for _, command in _patterns(context):
        arrow = next(
            (edge for pattern in command.patterns for edge in pattern.edges if edge.direction != "either"), None
        )
        if arrow is not None:
            sign = "->" if arrow.direction == "out" else "<-"
            message = f"the graph is undirected: {sign} matches in both directions"
            yield context.diagnostic("GASL084", message, arrow.span, "-[r]- means the same")


@lint("GASL086")
def repeated_name(context: Context) -> Iterator[Diagnostic]:
    """Report names that are used for two edges, or for a node and an edge."""
    for _, command in _patterns(context):
        seen: dict[str, PatternNode | PatternEdge] = {}
        for element in _elements(command):
            first = seen.setdefault(element.name, element) if element.name is not None else element
            if first is element or (isinstance(first, PatternNode) and isinstance(element, PatternNode)):
                continue
            name = element.name or ""
            hint = "give one of them another name"
            if isinstance(first, PatternEdge) and isinstance(element, PatternEdge):
                message = f"two edges have the name {name}, but a row uses each edge only once"
                hint = f"{hint}, and compare them in WHERE"
            else:
                message = f"{name} is the name of a node and of an edge"
            span = context.spelled(format_name(name), element.span) or element.span
            yield context.diagnostic("GASL086", message, span, hint)


# A pattern is symmetric if it is the same when read from its other end: it then finds each row twice, unless WHERE orders the ends.


@lint("GASL085")
def symmetric(context: Context) -> Iterator[Diagnostic]:
    """Report symmetric patterns whose conditions do not order their two ends."""
    undirected = context.schema is not None and not context.schema.directed
    for _, command in _patterns(context):
        if len(command.patterns) != 1 or not (pattern := command.patterns[0]).edges:
            continue
        turned = _turned(pattern, undirected=undirected)
        if turned is None or not _is_symmetric(command.where, turned):
            continue
        ends = next(
            ((node.name, turned[node.name]) for node in pattern.nodes if node.name and turned[node.name] != node.name),
            None,
        )
        hint = "name both ends, and order them in WHERE, as in p.id < q.id"
        if ends is not None:
            hint = f"add {format_name(ends[0])}.id < {format_name(ends[1])}.id"
        yield context.diagnostic("GASL085", "every pair is found twice, once from each end", pattern.span, hint)


def _turned(pattern: Pattern, *, undirected: bool) -> dict[str, str] | None:
    """Map each name of a pattern to the name that is in its place if the pattern is read from the other end.

    Return None if the pattern is not symmetric.
    """
    names: dict[str, str] = {}
    for one, other in zip(pattern.nodes, reversed(pattern.nodes), strict=True):
        if not _is_alike(one, other, names) or _given(one) != _given(other):
            return None
    for edge, back in zip(pattern.edges, reversed(pattern.edges), strict=True):
        if not _is_alike(edge, back, names) or (not undirected and edge.direction != _OTHER_DIRECTION[back.direction]):
            return None
    return names


def _is_alike(one: PatternNode | PatternEdge, other: PatternNode | PatternEdge, names: dict[str, str]) -> bool:
    """Return whether two elements have equal labels, and names that can be exchanged. Add this pair of names to ``names``."""
    if set(one.labels) != set(other.labels) or (one.name is None) is not (other.name is None):
        return False
    return one.name is None or other.name is None or names.setdefault(one.name, other.name) == other.name


def _given(node: PatternNode) -> list[tuple[str, Constant | Variable]]:
    return sorted(node.properties, key=lambda pair: pair[0])


def _is_symmetric(where: Condition | None, turned: Mapping[str, str]) -> bool:
    """Return whether a condition keeps its meaning if its names are exchanged with those of the other end."""
    if where is None:
        return True
    tests = where.operands if isinstance(where, And) else (where,)
    return {_normal(test) for test in tests} == {_normal(_renamed(test, turned)) for test in tests}


_FLIPPED = {">": "<", ">=": "<="}


def _normal(test: Condition) -> str:
    """Return a normal form of the test as text. Tests that differ only in the order of their sides have the same normal form."""
    if not isinstance(test, Comparison) or isinstance(test.right, Items):
        return format_condition(test)
    left, right, operator = format_condition(test.left), format_condition(test.right), str(test.operator)
    if operator in _FLIPPED or (operator in ("=", "!=") and right < left):
        left, right, operator = right, left, _FLIPPED.get(operator, operator)
    return f"{left} {operator} {right}"


_NodeT = TypeVar("_NodeT", bound=Node)


def _renamed(node: _NodeT, names: Mapping[str, str]) -> _NodeT:
    """Return a condition or a value with the first names of its fields replaced."""
    if isinstance(node, Field):
        return evolve(node, path=(names.get(node.path[0], node.path[0]), *node.path[1:]))
    changed: dict[str, Any] = {}
    for attribute in ("left", "right", "operand", "operands", "arguments"):
        old = getattr(node, attribute, None)
        if isinstance(old, tuple):
            changed[attribute] = tuple(_renamed(each, names) for each in old)
        elif isinstance(old, Node):
            changed[attribute] = _renamed(old, names)
    return evolve(node, **changed) if changed else node
