"""The contents of variables: the kind of a command's result, the fields of its rows, and the meaning of some of these fields."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from attrs import evolve, field, frozen

from ...catalogue.commands import BY_NODE, Kind
from ...catalogue.measures import columns_of
from ...catalogue.schema import Schema
from ...row_columns import computed_name, group_names, joined_names, joined_on, pattern_names
from ...trees import gasl
from ...trees.conditions import Field
from ...trees.gasl import Command, NamedValue

Part: TypeAlias = Literal["nodes", "edges", "paths", "id"]
"""The meaning of a field of rows: a complete node, edge or path, or the id of a node."""

_NODE = {"id": "id"}
_ENDS = {"source": "id", "target": "id"}
_OWN: Mapping[str, Mapping[str, str]] = {"nodes": _NODE, "edges": _ENDS, "paths": _ENDS}
"""The fields of nodes, edges and paths that hold ids of nodes."""

_DEEPEST = 20
"""Maximum number of names at the start of a field's path that are compared with the fields of rows."""


@frozen(eq=False)
class Contents:
    """The contents of a variable: ``kind`` is the kind of value, ``columns`` are all fields of its rows (None if unknown).

    ``parts`` maps fields of rows to their meanings, if known. ``more`` are fields of nodes, edges or paths that come from a command and
    not from the graph. They may replace fields of the graph. Examples are ``depth`` and ``parent`` of WALK with TRACE, ``cost`` of
    SHORTEST BY, and the element of UNNEST.
    """

    kind: Kind = "unknown"
    columns: tuple[str, ...] | None = None
    parts: Mapping[str, Part] = field(factory=dict)
    more: tuple[str, ...] = ()

    def holder(self, path: tuple[str, ...]) -> tuple[int, Part] | None:
        """Return how many of the first names of ``path`` form a field with a known meaning, and this meaning.

        Return None if no meaning is known.
        """
        for count in range(min(len(path), _DEEPEST), 0, -1):
            part = self.parts.get(".".join(path[:count]))
            if part is not None:
                return count, part
        return None

    def part(self, path: tuple[str, ...]) -> Part | None:
        """Return the meaning of the field ``path`` of the items, or None if unknown."""
        found: str | None = self.kind
        if self.kind == "rows":
            held = self.holder(path)
            if held is None:
                return None
            path, found = path[held[0] :], held[1]
        for name in path:
            found = _OWN.get(found or "", {}).get(name)
        return found  # type: ignore[return-value]  # the values of the table above

    def own_parts(self) -> Mapping[str, Part]:
        """Return the meanings of the fields that an item has if it is used as a plain row."""
        return self.parts if self.kind == "rows" else _OWN.get(self.kind, {})  # type: ignore[return-value]


UNKNOWN = Contents()


def contents_of(command: Command, sources: Sequence[Contents], schema: Schema | None) -> Contents:
    """Return the contents of a command's result. ``sources`` are the contents of the variables that the command reads, in order.

    ``schema`` is the schema of the graph, or None.
    """
    given = BY_NODE[type(command)].gives
    first = sources[0] if sources else UNKNOWN
    if given == "source":
        return first
    made = Contents(given or "unknown")
    match command:
        case gasl.Param():
            return Contents("number" if command.type in ("INT", "FLOAT") else "unknown")
        case gasl.Find():
            return Contents(command.kind)
        case gasl.FindPatterns():
            return found_patterns(command)
        case gasl.FindPaths() if command.cost is not None:
            return evolve(made, more=("cost",))
        case gasl.Walk() if command.trace:
            return evolve(made, more=("depth", "parent"))
        case gasl.Select(columns=()):
            return first
        case gasl.Select():
            columns = tuple(dict.fromkeys(each.column for each in command.columns))
            return Contents("rows", columns, _parts_of(command.columns, columns, first))
        case gasl.Unnest():
            return _unnested(command.by.column, first, schema)
        case gasl.Count(by=()):
            return Contents("number")
        case gasl.Count():
            names = group_names(command.by, ("count",))
            return Contents("rows", (*names, "count"), _parts_of(command.by, names, first))
        case gasl.Aggregate():
            computed = tuple(map(computed_name, command.computations))
            names = group_names(command.by, computed)
            return evolve(made, columns=(*names, *computed), parts=_parts_of(command.by, names, first))
        case gasl.Measure():
            columns = _measured(command.algorithm)
            return evolve(made, columns=columns, parts={name: "id" for name in columns if name in ("id", *_ENDS)})
        case gasl.SetOperation():
            return _combined(command, sources[:2])
        case gasl.Join():
            return _joined(command, sources[:2], schema)
        case gasl.Classify():
            items = fields_in(first, schema)
            return evolve(made, columns=None if items is None else _labelled(items), parts=first.own_parts())
    return made


def found_patterns(command: gasl.FindPatterns) -> Contents:
    """Return the contents of the rows of FIND patterns: a field for each name, which holds a node or an edge."""
    parts: dict[str, Part] = {}
    for pattern in command.patterns:
        parts.update((node.name, "nodes") for node in pattern.nodes if node.name is not None)
        parts.update((edge.name, "edges") for edge in pattern.edges if edge.name is not None)
    return Contents("rows", pattern_names(command), parts)


def _parts_of(values: Sequence[NamedValue], names: Sequence[str], source: Contents) -> Mapping[str, Part]:
    """Return the meanings of columns that are plain fields of the items."""
    parts: dict[str, Part] = {}
    for each, name in zip(values, names, strict=False):
        part = source.part(each.value.path) if isinstance(each.value, Field) else None
        if part is not None:
            parts[name] = part
    return parts


def _measured(algorithm: str) -> tuple[str, ...]:
    """Return the fields of the rows of MEASURE. If the algorithm is unknown, it is assumed to measure nodes."""
    return columns_of(algorithm) or ("id", algorithm)


def _combined(command: gasl.SetOperation, sides: Sequence[Contents]) -> Contents:
    if len(sides) < 2:
        return UNKNOWN
    left, right = sides
    if command.kind != "UNION":
        return left
    if left.kind != right.kind:
        return UNKNOWN
    parts = {name: part for name, part in left.parts.items() if right.parts.get(name) == part}
    return Contents(left.kind, _all([left.columns, right.columns]), parts, tuple(dict.fromkeys(left.more + right.more)))


def _unnested(name: str, source: Contents, schema: Schema | None) -> Contents:
    """Return the contents of rows of UNNEST.

    The rows of nodes, edges or paths keep this kind, unless the element replaces the field id, source, target or key.
    """
    if source.kind in ("nodes", "edges", "paths") and name not in _FIXED_NAMES:
        return evolve(source, more=tuple(dict.fromkeys((*source.more, name))))
    parts = {column: part for column, part in source.own_parts().items() if column != name}
    return Contents("rows", _all([fields_in(source, schema), (name,)]), parts)


_FIXED_NAMES = frozenset({"id", "source", "target", "key"})


def _joined(command: gasl.Join, sides: Sequence[Contents], schema: Schema | None) -> Contents:
    if len(sides) < 2:
        return Contents("rows")
    left, right = sides
    own, others = fields_in(left, schema), fields_in(right, schema)
    parts: dict[str, Part] = dict(left.own_parts())
    if command.name is not None:
        columns = _all([own, (command.name.text,)])
        if right.kind in ("nodes", "edges", "paths"):
            parts[command.name.text] = right.kind
    else:
        renamed = None if own is None or others is None else joined_names(own, others, joined_on(command))
        columns = _all([own, None if renamed is None else tuple(renamed.values())])
        parts.update(
            (renamed[name], part) for name, part in right.own_parts().items() if renamed is not None and name in renamed
        )
    if command.similar is not None and columns is not None:
        columns = (*columns, "similarity")
    return Contents("rows", columns, parts)


def fields_in(held: Contents, schema: Schema | None) -> tuple[str, ...] | None:
    """Return all fields that the items of a variable may have, or None if the fields are unknown."""
    if held.columns is not None or held.kind not in ("nodes", "edges", "paths"):
        return held.columns
    if held.kind == "paths":
        return "source", "target", "length", "nodes", "edges", *held.more
    if schema is None:
        return None
    if held.kind == "nodes":
        return tuple(dict.fromkeys(("id", *schema.node_attributes, *held.more)))
    keys = ("key",) if schema.multi else ()
    return tuple(dict.fromkeys(("source", "target", *keys, *schema.edge_attributes, *held.more)))


def _all(sides: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    names: dict[str, None] = {}
    for side in sides:
        if side is None:
            return None
        names.update(dict.fromkeys(side))
    return tuple(names)


def _labelled(items: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields of classified items. If the items already have a field ``label``, it becomes ``item.label``."""
    kept = "item.label"
    while kept in items:
        kept = f"item.{kept}"
    names = (kept if name == "label" else name for name in items)
    return (*names, "label")
