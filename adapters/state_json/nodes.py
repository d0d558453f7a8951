"""The nodes of a state: LIST, DICT and COUNTER, all immutable. The state itself is a DICT without a name."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, TypeAlias

import orjson
from attrs import evolve, field, frozen
from blake3 import blake3
from orjson import Fragment

from ...lang.trees.gasl import StateType
from ..state import Evidence, StateError
from .log.codec import encode_to_keep, encoded_copy
from .persistent import EMPTY, EMPTY_TABLE, Table, Vector, digest

# JSON values that enter the state are checked, copied and serialised once. Inside the state, a value is its JSON text, which is
# immutable and keeps the order of keys. Only an object in a DICT is a table, so that a deep merge takes time only for what is merged.

Field: TypeAlias = "bytes | Table"
"""The value of a DICT's field: JSON text, or a table if the value is an object."""

_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


def whole_text(what: str, value: Any) -> bytes:
    """Return an external value as JSON text. Raises ``StateError`` with the path if the value is not JSON.

    The nesting limit is two levels below the codec's limit, because a journal record wraps the value in a list in an object.
    """
    return whole_copy(what, value)[0]


def whole_copy(what: str, value: Any) -> tuple[bytes, Any]:
    """Return the result of ``whole_text``, and a copy of the value decoded from that text. Raises ``StateError``."""
    try:
        text, copy = encoded_copy([[value]])
        return text[2:-2], copy[0][0]
    except ValueError as error:
        place = str(error).replace("$[0][0]", "$", 1)
        raise mismatch(f"{what} can't be stored: {place}") from None


def mismatch(message: str, hint: str = "") -> StateError:
    """Return the error for a value or a key of the wrong type."""
    return StateError(message, status="schema_mismatch", hint=hint)


def as_text(value: Any) -> bytes:
    """Return a value as JSON text. The value was decoded from JSON text, so it needs no check."""
    return encode_to_keep(value)


def parsed(text: bytes) -> Any:
    """Return the value of a JSON text, a new object in each call."""
    return orjson.loads(text)


def evidence_text(evidence: Evidence) -> bytes:
    """Return a checked piece of evidence as canonical JSON text."""
    return encode_to_keep(evidence, sort_keys=True)


def field_of(value: Any) -> Field:
    """Return a checked value in the form stored in a DICT."""
    if isinstance(value, dict):
        return Table.of({name: field_of(part) for name, part in value.items()})
    return as_text(value)


def plain(value: Any) -> Any:
    """Return the content of a DICT or a COUNTER as a JSON value, a new object in each call."""
    if isinstance(value, Table):
        return {name: plain(part) for name, part in value.items()}
    return parsed(value) if isinstance(value, bytes) else value


def joined(texts: Iterable[bytes]) -> bytes:
    """Return the JSON text of a list whose elements have these texts."""
    return b"[%b]" % b",".join(texts)


def as_fragment(value: Any) -> Any:
    """Return the content of a DICT or a COUNTER in a form that ``as_text`` accepts, without parsing its texts."""
    if isinstance(value, Table):
        return {name: as_fragment(part) for name, part in value.items()}
    return orjson.Fragment(value) if isinstance(value, bytes) else value


def number(value: Any) -> bool:
    """Return whether a value is a number. True and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def added(one: float, other: float) -> float | None:
    """Return the sum; None if the sum is an integer beyond 64 bits or not a finite number."""
    try:
        total = one + other
    except OverflowError:
        return None
    if isinstance(total, int):
        return total if _SMALLEST <= total <= _LARGEST else None
    return total if total - total == 0 else None


def texts_of(values: Sequence[Any]) -> list[bytes]:
    """Return checked values as JSON texts."""
    return [encode_to_keep(value) for value in values]


# The index of a list's items maps identities to positions and is shared by the versions of the list.
# Successive versions share one dictionary: an entry belongs to a version only if its position is below the version's length. If a
# version is extended a second time (after a fork or a rolled-back block), the second extension gets its own layer on top. So a fork
# takes no time, and appending takes time only for the appended items.

_LAYERS = 8  # maximum number of layers that a look-up searches


def identity(written: bytes) -> bytes:
    """Return an item's identity as a key: ``id`` if the item is an object with a non-null ``id``, else the whole item.

    Both are canonical JSON that keeps the written form of numbers: 1, 1.0, true and "1" are four identities.
    """
    return identity_of(orjson.loads(written))


def identity_of(value: Any) -> bytes:
    """Return the ``identity`` of an item given as a value."""
    if isinstance(value, dict) and value.get("id") is not None:
        key = b"i" + orjson.dumps(value["id"], option=orjson.OPT_SORT_KEYS)
    else:
        key = b"j" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return key if len(key) <= 32 else b"#" + blake3(key).digest()


def content_key(written: bytes) -> bytes:
    """Return the identity of an item that is compared as a whole; ``written`` is canonical JSON."""
    return written if len(written) <= 32 else b"#" + blake3(written).digest()


class _Layer:
    """Maps identities to positions from ``bound`` on, for versions with at least ``bound`` items; ``under`` has the others."""

    __slots__ = ("_end", "_lock", "bound", "depth", "own", "under")

    def __init__(self, under: "_Layer | None", bound: int) -> None:
        self.own: dict[bytes, int] = {}
        self.under = under
        self.bound = bound
        self.depth: int = under.depth + 1 if under is not None else 0
        self._end = bound
        self._lock = Lock()  # forks may be used in other threads

    def find(self, key: bytes, length: int) -> int | None:
        layer: _Layer | None = self
        while layer is not None:
            position = layer.own.get(key)
            if position is not None and position < length:
                return position
            length, layer = min(length, layer.bound), layer.under
        return None

    def extended(self, keys: Sequence[bytes], length: int) -> "_Layer":
        """Return the index for a version of ``length`` items with ``keys`` appended."""
        with self._lock:
            if self._end == length:
                for position, key in enumerate(keys, length):
                    self.own.setdefault(key, position)
                self._end = length + len(keys)
                return self
        return self._above(length).extended(keys, length)

    def _above(self, length: int) -> "_Layer":
        if self.depth < _LAYERS:
            return _Layer(self, length)
        layers, bound = list[tuple[_Layer, int]](), length
        layer: _Layer = self
        while layer.under is not None:
            layers.append((layer, bound))
            bound, layer = min(bound, layer.bound), layer.under
        flat = _Layer(layer, min(bound, length))
        if sum(len(each.own) for each, _ in layers) > len(layer.own) // 2:
            layers.append((layer, bound))
            flat = _Layer(None, 0)
        for each, most in reversed(layers):
            for key, position in list(each.own.items()):
                if position < most:
                    flat.own.setdefault(key, position)
        flat._end = length
        return flat


@frozen(eq=False)
class Items:
    """JSON texts in order, with an index by identity that is built on first use."""

    vector: Vector = EMPTY
    identify: Callable[[bytes], bytes] = identity
    _index: list[_Layer] = field(factory=list)

    def __len__(self) -> int:
        return len(self.vector)

    def _layer(self) -> _Layer:
        if not self._index:
            layer = _Layer(None, 0)
            layer.extended([self.identify(written) for written in self.vector], 0)
            self._index.append(layer)
        return self._index[0]

    def merged(self, texts: Sequence[bytes], keys: Sequence[bytes]) -> "tuple[Items, list[int]]":
        """Return the items with those of ``texts`` appended that are new, and the position of each of ``texts``.

        ``keys`` are the identities of ``texts``.
        """
        layer, length = self._layer(), len(self.vector)
        new: dict[bytes, int] = {}
        written: list[bytes] = []
        positions = []
        for text, key in zip(texts, keys, strict=True):
            position = layer.find(key, length)
            if position is None:
                position = new.setdefault(key, length + len(new))
                if position == length + len(written):
                    written.append(text)
            positions.append(position)
        if not written:
            return self, positions
        return Items(self.vector.extended(written), self.identify, [layer.extended(list(new), length)]), positions

    def spliced(self, keep: int, texts: Sequence[bytes]) -> "Items":
        """Return the first ``keep`` items followed by ``texts``, without merging."""
        vector = self.vector.prefix(keep).extended(texts)
        if not self._index or not keep:
            return Items(vector, self.identify)
        return Items(vector, self.identify, [self._index[0].extended([self.identify(t) for t in texts], keep)])

    @property
    def digest(self) -> bytes:
        """The digest of the items in order."""
        return self.vector.digest


def _described(node: "Node") -> bytes:
    """Return the start of a node's digest. A complete node has no mark in it, for compatibility with older states."""
    marks = [list(node.incomplete)] if node.incomplete else []
    return as_text([node.type, node.description, *marks])


@frozen(eq=False)
class ListNode:
    """A LIST. ``evidence`` has a tuple of canonical JSON texts for each index, up to the last item that has evidence.

    ``incomplete``, here and in the other nodes: the reasons why the content is not the whole answer.
    """

    type: ClassVar[StateType] = "LIST"
    description: str | None = None
    items: Items = field(factory=Items)
    evidence: Vector = EMPTY
    incomplete: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """The digest of the whole content."""
        return digest(_described(self), self.items.digest, self.evidence.digest)

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.items)

    def emptied(self) -> "ListNode":
        """Return the node with no items."""
        return ListNode(self.description)

    def value(self) -> Any:
        """Return the items as plain JSON, a list."""
        return parsed(self.text())

    def text(self) -> bytes:
        """Return the items as JSON text."""
        return joined(self.items.vector)

    def proof(self) -> Any:
        """Return the evidence as plain JSON, a list by index."""
        return parsed(self.proof_text())

    def proof_text(self) -> bytes:
        """Return the evidence as JSON text."""
        return joined(b"[%b]" % b",".join(texts) for texts in self.evidence)


@frozen(eq=False)
class CounterNode:
    """A COUNTER. ``count`` is a number or a table of numbers."""

    type: ClassVar[StateType] = "COUNTER"
    description: str | None = None
    count: "int | float | Table" = 0
    evidence: Items = field(factory=lambda: Items(EMPTY, content_key))
    incomplete: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """The digest of the whole content."""
        held = self.count.digest if isinstance(self.count, Table) else b"n" + as_text(self.count)
        return digest(_described(self), held, b"|", self.evidence.digest)

    @property
    def size(self) -> int:
        """Number of counts."""
        return len(self.count) if isinstance(self.count, Table) else 1

    def emptied(self) -> "CounterNode":
        """Return the node with the count 0."""
        return CounterNode(self.description)

    def value(self) -> Any:
        """Return the number, or the object of numbers."""
        return plain(self.count)

    def proof(self) -> Any:
        """Return the evidence as plain JSON, a list."""
        return parsed(self.proof_text())

    def proof_text(self) -> bytes:
        """Return the evidence as JSON text."""
        return joined(self.evidence.vector)


@frozen(eq=False)
class DictNode:
    """A DICT. ``children``: the keys declared in it; ``fields``: its data; ``evidence``: canonical JSON texts by field."""

    type: ClassVar[StateType] = "DICT"
    description: str | None = None
    children: Table = EMPTY_TABLE
    fields: Table = EMPTY_TABLE
    evidence: Table = EMPTY_TABLE
    incomplete: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """The digest of the whole content."""
        parts = (self.children.digest, self.fields.digest, self.evidence.digest)
        return digest(_described(self), *parts)

    @property
    def size(self) -> int:
        """Number of fields and declared keys."""
        return len(self.fields) + len(self.children)

    def emptied(self) -> "DictNode":
        """Return the node without fields; its declared keys stay and are emptied."""
        return DictNode(self.description, Table.of({name: node.emptied() for name, node in self.children.items()}))

    def value(self) -> dict[str, Any]:
        """Return the fields as plain JSON, the declared keys first."""
        held = {name: node.value() for name, node in self.children.items()}
        return held | {name: plain(value) for name, value in self.fields.items()}

    def proof(self) -> dict[str, Any]:
        """Return the evidence as plain JSON, by field."""
        return {name: [parsed(text) for text in texts] for name, texts in self.evidence.items()}

    def proof_text(self) -> bytes:
        """Return the evidence as JSON text."""
        return as_text({name: Fragment(joined(texts)) for name, texts in self.evidence.items()})

    def with_children(self, children: Mapping[str, "Node"]) -> "DictNode":
        """Return the node with these keys set."""
        return evolve(self, children=self.children.updated(children))


Node: TypeAlias = ListNode | DictNode | CounterNode

NOTHING = DictNode()
"""The state without declarations."""


def find(root: DictNode, key: str) -> Node | None:
    """Return the node declared under a key; None if the key is not declared."""
    node: Node = root
    for part in key.split("."):
        if not isinstance(node, DictNode):
            return None
        child: Node | None = node.children.get(part)
        if child is None:
            return None
        node = child
    return node


def put(root: DictNode, key: str, node: Node) -> DictNode:
    """Return the state with ``node`` under ``key``. Raises ``KeyError`` if a parent of ``key`` is not a declared DICT."""
    first, _, rest = key.partition(".")
    if rest:
        parent = root.children.get(first)
        if not isinstance(parent, DictNode):
            raise KeyError(key)
        node = put(parent, rest, node)
    return root.with_children({first: node})


def walk(node: Node, key: str = "") -> Iterator[tuple[str, Node]]:
    """Yield the declared keys below ``node`` with their nodes, parents first, in the order of declaration."""
    if isinstance(node, DictNode):
        for name, child in node.children.items():
            path = f"{key}.{name}" if key else name
            yield path, child
            yield from walk(child, path)


# Additions to a COUNTER: one number, or one number per key.


def counted(key: str, value: Any) -> float | dict[str, float]:
    """Return the amount that a checked value adds: a number, or numbers per key. Raises ``StateError`` (schema_mismatch).

    Rows have the form of ``COUNT ... BY field``: objects with ``count`` and one other field, which is the same in all rows. If a
    label is not a string, its JSON text (``null``, ``3``) is the key.
    """
    if number(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, dict):
        for name, count in value.items():
            if not number(count):
                raise _wrong(key, f"; {name[:60]} has no number")
        return value
    if isinstance(value, list):
        return _rows(key, value)
    raise _wrong(key, "")


def _rows(key: str, rows: list[Any]) -> dict[str, float]:
    counts: dict[str, float] = {}
    names = set[str]()
    for at, row in enumerate(rows):
        names |= set(row) - {"count"} if isinstance(row, dict) else set()
        if not isinstance(row, dict) or len(row) != 2 or len(names) != 1 or not number(row.get("count")):
            raise _wrong(key, f"; row {at} has another form")
        label = row[next(iter(names))]
        if isinstance(label, list | dict):
            raise _wrong(key, f"; the label of row {at} is not a single value")
        name = label if isinstance(label, str) else as_text(label).decode()
        counts[name] = _sum(key, counts.get(name, 0), row["count"])
    return counts


def summed(key: str, old: Any, given: float | dict[str, float]) -> Any:
    """Return the count ``old`` with ``given`` added; ``old`` itself if nothing changes."""
    if isinstance(old, Table):
        if not isinstance(given, dict):
            raise mismatch(f"{key} counts per key; a single number can't be added", _REPLACE)
        sums = {name: _sum(key, old.get(name) or 0, count) for name, count in given.items()}
        return old.updated({name: total for name, total in sums.items() if not _equal(total, old.get(name))})
    if not isinstance(given, dict):
        total = _sum(key, old, given)
        return old if _equal(total, old) else total
    if not given:
        return old
    if not _equal(old, 0):
        raise mismatch(f"{key} is a single number; counts per key can't be added", _REPLACE)
    return Table.of(given)


_REPLACE = "REPLACE its content, or RESET it first"


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _sum(key: str, one: float, other: float) -> float:
    total = added(one, other)
    if total is None:
        raise mismatch(f"{key} would exceed 64 bits")
    return total


def _wrong(key: str, why: str) -> StateError:
    return mismatch(f"{key} is a COUNTER; it takes a number, an object of numbers, or rows of a label and a count{why}")
