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

# JSON values entering the state: checked, copied and serialised once. Inside, a value is its text, which is immutable.
# An object in a DICT is a separate table, so that a deep merge costs only what is merged. Everything else is JSON text, with its
# keys in the original order.

Field: TypeAlias = "bytes | Table"
"""A DICT's field: JSON text, or a table if it is an object."""

_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


def whole_text(what: str, value: Any) -> bytes:
    """Return an external value as JSON text. Raises ``StateError`` with the place if it is not JSON.

    Its nesting limit is two levels below the codec's: a journal record wraps it in a list in an object.
    """
    return whole_copy(what, value)[0]


def whole_copy(what: str, value: Any) -> tuple[bytes, Any]:
    """Return the result of ``whole_text``, and the value of that text, not shared with the caller. Raises ``StateError``."""
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
    """Return a value as text; the value comes from a text, so it has been checked."""
    return encode_to_keep(value)


def parsed(text: bytes) -> Any:
    """Return the value of a text, a new object each time."""
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
    """Return the JSON value of the content of a DICT or a COUNTER, a new object each time."""
    if isinstance(value, Table):
        return {name: plain(part) for name, part in value.items()}
    return parsed(value) if isinstance(value, bytes) else value


def joined(texts: Iterable[bytes]) -> bytes:
    """Return texts joined as the text of a list."""
    return b"[%b]" % b",".join(texts)


def as_fragment(value: Any) -> Any:
    """Return the content of a DICT or a COUNTER as ``as_text`` accepts it, without parsing the texts."""
    if isinstance(value, Table):
        return {name: as_fragment(part) for name, part in value.items()}
    return orjson.Fragment(value) if isinstance(value, bytes) else value


def number(value: Any) -> bool:
    """Return whether a value is a number. True and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def added(one: float, other: float) -> float | None:
    """Return the sum; None if it is an integer beyond 64 bits or not a finite number."""
    try:
        total = one + other
    except OverflowError:
        return None
    if isinstance(total, int):
        return total if _SMALLEST <= total <= _LARGEST else None
    return total if total - total == 0 else None


def texts_of(values: Sequence[Any]) -> list[bytes]:
    """Return checked values as texts."""
    return [encode_to_keep(value) for value in values]


# Index of a list's items, from identity to position, shared by the versions of the list.
# Successive versions share one dictionary: an entry counts for a version only if its position is below the version's
# length. A version that is extended a second time (a fork, a rolled-back block) gets its own layer above. So a fork costs
# nothing, and appending costs only the appended items.

_LAYERS = 8  # maximum layers of a look-up


def identity(written: bytes) -> bytes:
    """Return an item's identity as a key: its ``id`` if it is an object with a non-null ``id``, else the whole item.

    Both are canonical JSON as written: 1, 1.0, true and "1" are four identities.
    """
    return identity_of(orjson.loads(written))


def identity_of(value: Any) -> bytes:
    """Return the ``identity`` of an item given as a value."""
    if isinstance(value, dict) and value.get("id") is not None:
        key = b"i" + orjson.dumps(value["id"], option=orjson.OPT_SORT_KEYS)
    else:
        key = b"j" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return key if len(key) <= 32 else b"#" + blake3(key).digest()


def whole(written: bytes) -> bytes:
    """Return the identity of an item that is compared as a whole; ``written`` is canonical."""
    return written if len(written) <= 32 else b"#" + blake3(written).digest()


class _Layer:
    """Positions by identity, for versions of at least ``bound`` items; earlier positions are in ``under``."""

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
        """Return the items with the new ones of ``texts`` appended, and the position of each of ``texts``.

        ``keys`` are the results of ``identify`` for each.
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
        vector = self.vector.taken(keep).extended(texts)
        if not self._index or not keep:
            return Items(vector, self.identify)
        return Items(vector, self.identify, [self._index[0].extended([self.identify(t) for t in texts], keep)])

    @property
    def digest(self) -> bytes:
        """The digest of the items in order."""
        return self.vector.digest


def _described(node: "Node") -> bytes:
    """Return the start of a node's digest. For a complete node it has no mark, for compatibility with older states."""
    marks = [list(node.incomplete)] if node.incomplete else []
    return as_text([node.type, node.description, *marks])


@frozen(eq=False)
class ListNode:
    """``evidence`` has, by index, tuples of canonical JSON texts; it ends with the last item that has evidence.

    ``incomplete``, here and in the other nodes: why the content is not the whole answer.
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
        """Return the node without items."""
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
    """``count`` is a number or a table of numbers."""

    type: ClassVar[StateType] = "COUNTER"
    description: str | None = None
    count: "int | float | Table" = 0
    evidence: Items = field(factory=lambda: Items(EMPTY, whole))
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
        """Return the node at 0."""
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
    """``children`` are the keys declared in it, ``fields`` its data, ``evidence`` tuples of canonical JSON texts by field."""

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
        """Return the node without fields; its declared keys stay, emptied."""
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
    """Return the node declared under a key; None if there is none."""
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
    """Return the state with ``node`` under ``key``; its parents must be declared DICTs (else ``KeyError``)."""
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


# Addition to a COUNTER: one number, or a number per key.


def counted(key: str, value: Any) -> float | dict[str, float]:
    """Return the amount that a checked value adds: a number, or numbers per key. Raises ``StateError`` (schema_mismatch).

    Rows have the form of ``COUNT ... BY field``: objects with one field, the same in all, and ``count``. A label that is not a
    text becomes a key as its JSON text (``null``, ``3``).
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
    """Return a counter's count with ``given`` added; the same object if nothing changes."""
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
