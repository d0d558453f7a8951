"""Reads the fields in conditions from the live graph, and defines the names with a special meaning.

For a node, ``id`` is its id, ``degree`` its number of edges (a loop counts twice), ``in_degree`` and ``out_degree`` the numbers
of edges that enter and leave the node (in an undirected graph both equal the degree). For an edge, ``source`` and ``target``
are the ids of its ends (in an undirected graph in NetworkX's order: the end that was added first comes first), ``key`` is its
key in a multigraph, and ``source.x`` and ``target.x`` are the field ``x`` of an end. An attribute that has one of these names
is called ``attr.NAME``, for example ``attr.id``.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from time import monotonic
from typing import Any, Literal, overload

from ...lang.evaluate.conditions import ConditionError, Predicate, Reader, look_up
from ...lang.evaluate.conditions.values import example_of, id_text
from ...lang.trees.conditions import Field
from ..graph import AdapterError, Caps, Item, NodeId, Stoppable

# Conversion of the values in a NetworkX graph to JSON:
# NumPy scalars and arrays: number, text, boolean or list; tuples and sets: lists (sets in a fixed order); dates, times: ISO 8601
# text; enumerations: their value; decimals and fractions: float; bytes: text, invalid UTF-8 escaped; NaN: null; infinity: null in
# items, the number itself in conditions; mappings: objects with string keys; anything else: its ``str()``.
_SIMPLE_TYPES = frozenset({str, int, bool, type(None)})
_DEEPEST = 200


def plain(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as a JSON value (infinities are kept); containers are copied.

    Raises ``AdapterError`` if ``value`` has more than 200 nested levels.
    """
    kind = value.__class__
    if kind in _SIMPLE_TYPES:
        return value
    if kind is float:
        return value if value == value else None
    if depth > _DEEPEST:
        raise AdapterError(f"an attribute nests more than {_DEEPEST} levels deep")
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    return _other(value, depth)


def _other(value: Any, depth: int) -> Any:
    import datetime
    import decimal
    import enum
    import fractions

    if type(value).__module__ == "numpy":
        return plain(value.tolist(), depth + 1)
    if isinstance(value, Set):
        from ...lang.evaluate.conditions import sort_key

        return sorted((plain(item, depth + 1) for item in value), key=sort_key)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return plain(value.value, depth + 1)
    if isinstance(value, decimal.Decimal | fractions.Fraction):
        return plain(float(value), depth + 1)
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    for simple in (bool, int, float, str):
        if isinstance(value, simple):
            return simple(value)
    return str(value)


def item_value(value: Any) -> Any:
    """Return ``value`` as items show it: the result of ``plain``, with null for infinities, which JSON does not have."""
    kind = value.__class__
    if kind in _SIMPLE_TYPES:
        return value
    shown = plain(value)
    return _finite(shown) if shown.__class__ in (float, list, dict) else shown


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value


def node_id(node: Any) -> NodeId:
    """Return the item id of a graph node: a string or an integer. Other values are converted.

    A float such as 2.0 is the integer 2: to NetworkX they are one node, and an edge may name it in either form.
    """
    if node.__class__ is str or node.__class__ is int:
        return node
    if type(node).__module__ == "numpy":
        return node_id(node.item())
    if node.__class__ is float and node.is_integer() and abs(node) <= LARGEST:
        return int(node)
    return str(node)


# Conversion of values to JSON in UTF-8 with 64-bit integers, which the state and the models require.

LARGEST = 2**63 - 1
_FITTING_DEEPEST = 200


def fit_id(node: Any) -> str | int:
    """Return the id of a node, or the key of an edge, in the form that JSON items need: a string or a 64-bit integer."""
    shown = node_id(node)
    if isinstance(shown, str):
        return fit_text(shown)
    return shown if abs(shown) <= LARGEST else digits(shown)


def is_fit(value: Any) -> bool:
    """Return whether a value can be written as JSON without conversion."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii() or fit_text(value) is value)
    if kind is int:
        return bool(-LARGEST - 1 <= value <= LARGEST)
    if kind is float:
        return math.isfinite(value)
    if kind is list or kind is dict:
        return _fits(value)
    return kind is bool or value is None


def _fits(value: Any, depth: int = 0) -> bool:
    if depth > _FITTING_DEEPEST:
        return False
    if type(value) is list:
        return all(_fits(item, depth + 1) for item in value)
    if type(value) is dict:
        return all(type(name) is str and is_fit(name) and _fits(item, depth + 1) for name, item in value.items())
    return is_fit(value)


def fit_text(text: str) -> str:
    """Return ``text`` with lone surrogates, which UTF-8 can't encode, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def json_value(value: Any) -> Any:
    """Return ``value`` as it is written to JSON in UTF-8: integers beyond 64 bits as texts, lone surrogates replaced."""
    return _bounded(item_value(value))


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return fit_text(value)
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    if isinstance(value, dict):
        return {fit_text(name): _bounded(item) for name, item in value.items()}
    if type(value) is int and not -LARGEST - 1 <= value <= LARGEST:
        return digits(value)
    return value


def digits(value: int) -> str:
    """Return an integer as text: decimal if Python's limit on digits allows it, else hexadecimal."""
    return str(value) if value.bit_length() <= 4000 else hex(value)


# The scan of every node or edge in the live graph. Its results are always correct, however the graph was modified.

Kind = Literal["nodes", "edges"]
_CHUNK, _WIDE_CHUNK = 8192, 64
"""Numbers of rows between two checks of the clock: for compiled conditions, and for wide conditions, which are much slower."""


class Deadline:
    """The deadline of a search. ``hit`` is true once ``passed`` has returned true. ``ended`` returns whether the caller has cancelled."""

    def __init__(self, seconds: float, ended: Callable[[], bool] = lambda: False) -> None:
        self._end = monotonic() + seconds
        self.ended = ended
        self.hit = False

    @classmethod
    def of(cls, caps: Caps) -> "Deadline":
        """Return the deadline of a search that starts now and is limited by ``caps``."""
        return cls(caps.timeout_s, caps.ended) if isinstance(caps, Stoppable) else cls(caps.timeout_s)

    @property
    def seconds_left(self) -> float:
        """The seconds until the deadline; 0 if it has passed."""
        return max(0.0, self._end - monotonic())

    def half(self) -> "Deadline":
        """Return the deadline of a part of the search that may use half of the time left."""
        return Deadline(self.seconds_left / 2, self.ended)

    def passed(self) -> bool:
        """Return whether the time limit has passed or the caller has cancelled."""
        self.hit = self.hit or monotonic() > self._end or self.ended()
        return self.hit


def rows_of(graph: Any, kind: Kind) -> Iterator[tuple[Any, ...]]:
    """Yield ``(node, attributes)`` or ``(source, target, key, attributes)`` in graph order; key is None outside multigraphs."""
    if kind == "nodes":
        return iter(graph.nodes.items())
    if graph.is_multigraph():
        return iter(graph.edges(keys=True, data=True))
    return ((source, target, None, data) for source, target, data in graph.edges(data=True))


def scan(
    rows: Iterable[tuple[Any, ...]], predicate: Predicate | None, most: int | None, deadline: Deadline
) -> tuple[list[tuple[Any, ...]], int]:
    """Return at most ``most`` rows for which the predicate is true, and the number of rows examined."""
    found: list[tuple[Any, ...]] = []
    examined = 0
    source = iter(rows)
    largest = _CHUNK if predicate is None or predicate.made == "code" else _WIDE_CHUNK
    while not deadline.passed() and (most is None or len(found) < most):
        # Start with small chunks, because the first rows are often enough for a small LIMIT.
        chunk = list(islice(source, min(largest, 64 + 4 * examined)))
        if not chunk:
            break
        examined += len(chunk)
        found += chunk if predicate is None else predicate.select(chunk)
    return (found if most is None else found[:most]), examined


DEGREES = ("degree", "in_degree", "out_degree")
"""Computed fields of nodes."""

Readers = Callable[[Field], Reader]


def reserved(kind: str, multi: bool) -> frozenset[str]:
    """Return the names with a special meaning for ``kind`` ("nodes" or "edges")."""
    if kind == "nodes":
        return frozenset({"id", *DEGREES})
    return frozenset({"source", "target", "key"} if multi else {"source", "target"})


def degree_of(graph: Any, name: str) -> Any:
    """Return NetworkX's view of the degree field ``name``."""
    return graph.degree if name == "degree" or not graph.is_directed() else getattr(graph, name)


def attribute_reader(path: tuple[str, ...], names: frozenset[str], argument: int) -> Reader:
    """Return a reader of an attribute. ``argument`` is the index of the row's element that contains the attributes."""
    if len(path) == 1:
        return Reader((argument,), key=path[0])
    if len(path) == 2 and path[0] == "attr" and path[1] in names:
        whole, name = ".".join(path), path[1]

        def renamed(data: Mapping[str, Any]) -> Any:
            return data[whole] if whole in data else data.get(name)

        return Reader((argument,), function=renamed)
    return Reader((argument,), function=lambda data: look_up(data, path))


def node_readers(graph: Any) -> Readers:
    """Return the field readers for rows ``(node, attributes)``."""
    degrees = {name: degree_of(graph, name) for name in DEGREES}

    def read(at: Field) -> Reader:
        if at.quantifier is not None:
            raise ConditionError(f"{at.quantifier.upper()} {'.'.join(at.path)} is only allowed for paths")
        if at.path == ("id",):
            return Reader((0,), function=node_id)
        if len(at.path) == 1 and at.path[0] in degrees:
            degree = degrees[at.path[0]]
            return Reader((0,), function=lambda node: degree[node])
        return attribute_reader(at.path, reserved("nodes", False), 1)

    return read


def edge_readers(graph: Any) -> Readers:
    """Return the field readers for rows ``(source, target, key, attributes)``; the key is None outside multigraphs."""
    names = reserved("edges", graph.is_multigraph())
    of_node, attributes = node_readers(graph), graph.nodes

    def read(at: Field) -> Reader:
        if at.quantifier is not None:
            raise ConditionError(f"{at.quantifier.upper()} {'.'.join(at.path)} is only allowed for paths")
        first, rest = at.path[0], at.path[1:]
        if first in ("source", "target"):
            end = 0 if first == "source" else 1
            if not rest:
                return Reader((end,), function=node_id)
            inner = of_node(Field(rest))
            return Reader((end,), function=lambda node: inner.read(node, attributes[node]))
        if at.path == ("key",) and "key" in names:
            return Reader((2,), function=node_id)
        return attribute_reader(at.path, names, 3)

    return read


def row_label(row: Sequence[Any]) -> str:
    """Return a name for the node, the edge or the path of a row: its id, or the ids of its ends."""
    ends = row[:1]
    if len(row) > 2:
        ends = row[:2]
    elif not isinstance(row[1], Mapping):  # the nodes and the edges of a path
        ends = (row[0][0], row[0][-1])
    return " → ".join(id_text(node_id(node)) for node in ends)


def examples_of(rows: Iterable[tuple[Any, ...]], reader: Reader) -> Iterator[str]:
    """Yield a description of each row with its value."""
    return (example_of(row_label(row), plain(reader.read(*row))) for row in rows)


def readers_of(graph: Any, kind: Kind) -> Readers:
    """Return the field readers for the rows of ``kind``."""
    return node_readers(graph) if kind == "nodes" else edge_readers(graph)


# Items: the external form of a node, an edge and a path. See ``docs/design/gasl.md#items``.

_NODE = reserved("nodes", False)
_IDS = frozenset({str, int})
_SIMPLE = frozenset({str, int, bool, type(None)})
_EDGE, _KEYED_EDGE = reserved("edges", False), reserved("edges", True)


def node_item(node: Any, attributes: Mapping[Any, Any]) -> Item:
    """Return ``{"id", ...attributes}``. An attribute named ``id`` or like a degree field is shown as ``attr.NAME``."""
    item: Item = {"id": node if node.__class__ in _IDS else node_id(node)}
    _add(item, attributes, _NODE)
    return item


def edge_item(source: Any, target: Any, key: Any, attributes: Mapping[Any, Any]) -> Item:
    """Return ``{"source", "target", "key"?, ...attributes}``. If the argument ``key`` is None, the item has no key."""
    item: Item = {
        "source": source if source.__class__ in _IDS else node_id(source),
        "target": target if target.__class__ in _IDS else node_id(target),
    }
    if key is not None:
        item["key"] = node_id(key)
    _add(item, attributes, _EDGE if key is None else _KEYED_EDGE)
    return item


def _add(item: Item, attributes: Mapping[Any, Any], own: frozenset[str]) -> None:
    """Add the attributes to an item. An attribute with the name of an own field (``own``) becomes ``attr.NAME``."""
    for name, value in attributes.items():
        if value.__class__ is float:
            value = value if value - value == 0 else None
        elif value.__class__ not in _SIMPLE:
            value = item_value(value)
        if name in own:
            item[f"attr.{name}"] = value
        else:
            item[name if name.__class__ is str else str(name)] = value


def path_item(nodes: Sequence[Any], edges: Sequence[Item]) -> Item:
    """Return ``{"source", "target", "length", "nodes": [id...], "edges": [edge...]}``."""
    ids = [node_id(node) for node in nodes]
    return {"source": ids[0], "target": ids[-1], "length": len(edges), "nodes": ids, "edges": list(edges)}


class Items(Sequence[Item]):
    """Search results as a sequence whose items are built on access.

    The length is known at once. ``rows`` are the results; ``build`` creates an item from a row. ``settle`` rechecks rows and
    returns the rows that still match. If ``settle`` is given, every row is rechecked before its item is returned; if a row
    fails, all rows are rechecked. Therefore attributes written without NetworkX's methods can shorten the sequence, but every
    returned item matches.
    """

    def __init__(
        self,
        rows: Sequence[Any],
        build: Callable[[Any], Item],
        settle: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
    ) -> None:
        self._rows = rows
        self._build = build
        self._settle = settle

    def _settled(self) -> Sequence[Any]:
        if self._settle is not None:
            self._rows, self._settle = self._settle(self._rows), None
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        if not isinstance(at, slice):
            if not -len(self) <= at < len(self):
                raise IndexError("item index out of range")
            at %= len(self)
            return self[at : at + 1][0]
        rows = self._rows[at]
        if self._settle is not None:
            chosen = self._settle(rows)
            rows = chosen if len(chosen) == len(rows) else self._settled()[at]
        return [self._build(row) for row in rows]

    def __iter__(self) -> Iterator[Item]:
        return map(self._build, self._settled())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self._settled()) == len(other) and all(
                mine == its for mine, its in zip(self, other, strict=True)
            )
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # unhashable, like a list

    def __repr__(self) -> str:
        return f"<{len(self._rows):,} items>"
