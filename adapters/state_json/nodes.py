"""The nodes of a state: LIST, DICT and COUNTER, all immutable. The state itself is a DICT without a name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import orjson
from attrs import evolve, field, frozen
from orjson import Fragment

from ...lang.trees.gasl import StateType
from ..state import Evidence, StateError
from .item_index import Items, content_key
from .log.codec import encode_to_keep, encoded_copy
from .persistent import EMPTY, EMPTY_TABLE, Table, Vector, digest

# JSON values that enter the state are checked, copied and serialised once. Inside the state, a value is its JSON text, which is
# immutable and keeps the order of keys. Only an object in a DICT is a table, so that the time of a deep merge depends only on the merged
# value.

Field: TypeAlias = "bytes | Table"
"""The value of a DICT's field: JSON text, or a table if the value is an object."""

_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


def whole_text(what: str, value: Any) -> bytes:
    """Return an external value as JSON text. Raises ``StateError`` with the path if the value is not JSON.

    The nesting limit is two levels below the codec's limit, because a journal record wraps the value in an object and a list.
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
    """Return the value of JSON text, as a new object in each call."""
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
    """Return the content of a DICT or a COUNTER as a JSON value, as a new object in each call."""
    if isinstance(value, Table):
        return {name: plain(part) for name, part in value.items()}
    return parsed(value) if isinstance(value, bytes) else value


def joined(texts: Iterable[bytes]) -> bytes:
    """Return the JSON text of a list whose elements have these texts."""
    return b"[%b]" % b",".join(texts)


def as_fragment(value: Any) -> Any:
    """Return the content of a DICT or a COUNTER in a form that ``as_text`` accepts. Its texts are not parsed."""
    if isinstance(value, Table):
        return {name: as_fragment(part) for name, part in value.items()}
    return orjson.Fragment(value) if isinstance(value, bytes) else value


def number(value: Any) -> bool:
    """Return whether a value is a number. Booleans do not count as numbers."""
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


def _described(node: "Node") -> bytes:
    """Return the start of a node's digest. It has reasons only for an incomplete node, so older digests stay the same."""
    marks = [list(node.incomplete)] if node.incomplete else []
    return as_text([node.type, node.description, *marks])


@frozen(eq=False)
class ListNode:
    """A LIST. ``evidence`` contains a tuple of canonical JSON texts for each index, up to the last item that has evidence.

    Here and in the other nodes, ``incomplete`` are the reasons why the content is not the complete answer.
    """

    type: ClassVar[StateType] = "LIST"
    description: str | None = None
    items: Items = field(factory=Items)
    evidence: Vector = EMPTY
    incomplete: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """The digest of the complete content."""
        return digest(_described(self), self.items.digest, self.evidence.digest)

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.items)

    def emptied(self) -> "ListNode":
        """Return a copy of this LIST without items."""
        return ListNode(self.description)

    def value(self) -> Any:
        """Return the items as plain JSON, a list."""
        return parsed(self.text())

    def text(self) -> bytes:
        """Return the items as JSON text."""
        return joined(self.items.vector)

    def proof(self) -> Any:
        """Return the evidence as plain JSON: a list with an element for each index."""
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
        """The digest of the complete content."""
        held = self.count.digest if isinstance(self.count, Table) else b"n" + as_text(self.count)
        return digest(_described(self), held, b"|", self.evidence.digest)

    @property
    def size(self) -> int:
        """Number of counts."""
        return len(self.count) if isinstance(self.count, Table) else 1

    def emptied(self) -> "CounterNode":
        """Return a copy of this COUNTER with the count reset to 0."""
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
    """A DICT. ``children`` are its declared keys, ``fields`` its data; ``evidence`` maps fields to canonical JSON texts."""

    type: ClassVar[StateType] = "DICT"
    description: str | None = None
    children: Table = EMPTY_TABLE
    fields: Table = EMPTY_TABLE
    evidence: Table = EMPTY_TABLE
    incomplete: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """The digest of the complete content."""
        parts = (self.children.digest, self.fields.digest, self.evidence.digest)
        return digest(_described(self), *parts)

    @property
    def size(self) -> int:
        """Number of fields and declared keys."""
        return len(self.fields) + len(self.children)

    def emptied(self) -> "DictNode":
        """Return a copy of this DICT without fields; its declared keys are kept and emptied."""
        return DictNode(self.description, Table.of({name: node.emptied() for name, node in self.children.items()}))

    def value(self) -> dict[str, Any]:
        """Return the fields as plain JSON, the declared keys first."""
        held = {name: node.value() for name, node in self.children.items()}
        return held | {name: plain(value) for name, value in self.fields.items()}

    def proof(self) -> dict[str, Any]:
        """Return the evidence as plain JSON: an object that maps each field to its evidence."""
        return {name: [parsed(text) for text in texts] for name, texts in self.evidence.items()}

    def proof_text(self) -> bytes:
        """Return the evidence as JSON text."""
        return as_text({name: Fragment(joined(texts)) for name, texts in self.evidence.items()})

    def with_children(self, children: Mapping[str, "Node"]) -> "DictNode":
        """Return a copy of this DICT with these declared keys set."""
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
    """Return the amount that a checked value adds: a number, or a number for each key. Raises ``StateError`` (schema_mismatch).

    Rows have the form of ``COUNT ... BY field``: objects with ``count`` and one other field, which is the same in all rows. If a
    label is not a string, its JSON text (``null``, ``3``) is the key.
    """
    if number(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, dict):
        for name, count in value.items():
            if not number(count):
                raise _wrong(key, f"; the value of {name[:60]} is not a number")
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
            raise _wrong(key, f"; row {at} does not have this form")
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
    return mismatch(
        f"{key} is a COUNTER; it takes a number, an object of numbers, or rows with a label and a count{why}"
    )
