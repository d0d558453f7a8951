"""What a state is made of: LIST, DICT and COUNTER nodes, none of which ever changes. The state itself is a DICT without a name."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from attrs import evolve, field, frozen
from orjson import Fragment

from ....lang.trees.gasl import StateType
from ...state import StateError
from .identities import Items, whole
from .tables import EMPTY_TABLE, Table, digest
from .values import added, as_text, joined, number, parsed, plain
from .vectors import EMPTY, Vector

__all__ = ["NOTHING", "CounterNode", "DictNode", "ListNode", "Node", "counted", "find", "put", "summed", "walk"]


def _no_evidence() -> Items:
    return Items(EMPTY, whole)


def _described(node: "Node") -> bytes:
    """Return what a node's digest begins with. A complete one's is what it was before there were marks."""
    marks = [list(node.incomplete)] if node.incomplete else []
    return as_text([node.type, node.description, *marks])


@frozen(eq=False)
class ListNode:
    """``evidence`` has, by index, tuples of canonical JSON texts; it ends with the last item that has any.

    ``incomplete``, here and in the others: why what it holds is not the whole answer.
    """

    type: ClassVar[StateType] = "LIST"
    description: str | None = None
    items: Items = field(factory=Items)
    evidence: Vector = EMPTY
    incomplete: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """The digest of all that it holds."""
        return digest(_described(self), self.items.digest, self.evidence.digest)

    @property
    def size(self) -> int:
        """How many items."""
        return len(self.items)

    def emptied(self) -> "ListNode":
        """Return it without items."""
        return ListNode(self.description)

    def value(self) -> list[Any]:
        """Return the items as plain JSON."""
        items: list[Any] = parsed(self.text())
        return items

    def text(self) -> bytes:
        """Return the items as JSON text."""
        return joined(self.items.vector)

    def proof(self) -> list[Any]:
        """Return the evidence as plain JSON, by index."""
        proof: list[Any] = parsed(self.proof_text())
        return proof

    def proof_text(self) -> bytes:
        """Return the evidence as JSON text."""
        return joined(b"[%b]" % b",".join(texts) for texts in self.evidence)


@frozen(eq=False)
class CounterNode:
    """``count`` is a number or a table of numbers."""

    type: ClassVar[StateType] = "COUNTER"
    description: str | None = None
    count: "int | float | Table" = 0
    evidence: Items = field(factory=_no_evidence)
    incomplete: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """The digest of all that it holds."""
        held = self.count.digest if isinstance(self.count, Table) else b"n" + as_text(self.count)
        return digest(_described(self), held, b"|", self.evidence.digest)

    @property
    def size(self) -> int:
        """How many counts."""
        return len(self.count) if isinstance(self.count, Table) else 1

    def emptied(self) -> "CounterNode":
        """Return it at 0."""
        return CounterNode(self.description)

    def value(self) -> Any:
        """Return the number, or the object of numbers."""
        return plain(self.count)

    def proof(self) -> list[Any]:
        """Return the evidence as plain JSON."""
        proof: list[Any] = parsed(self.proof_text())
        return proof

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
        """The digest of all that it holds."""
        parts = (self.children.digest, self.fields.digest, self.evidence.digest)
        return digest(_described(self), *parts)

    @property
    def size(self) -> int:
        """How many fields and declared keys."""
        return len(self.fields) + len(self.children)

    def emptied(self) -> "DictNode":
        """Return it without fields; the keys declared in it stay, emptied."""
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
        """Return it with these keys set."""
        return evolve(self, children=self.children.updated(children))


Node: TypeAlias = ListNode | DictNode | CounterNode

NOTHING = DictNode()
"""The state in which nothing is declared."""


def find(root: DictNode, key: str) -> Node | None:
    """Return what is declared under a key; None where nothing is."""
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
    """Return the state with ``node`` under ``key``, whose parents are declared DICTs (else ``KeyError``)."""
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


# How a COUNTER counts: one number, or a number per key.


def counted(key: str, value: Any) -> float | dict[str, float]:
    """Return what a checked value adds: a number, or numbers per key. Raises ``StateError`` (schema_mismatch).

    Rows are as ``COUNT ... BY field`` gives them: objects of one field, the same in all, and ``count``. A label that is no
    text is the key by its JSON text (``null``, ``3``).
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
            raise _wrong(key, f"; row {at} is none of these")
        label = row[next(iter(names))]
        if isinstance(label, list | dict):
            raise _wrong(key, f"; the label of row {at} is no single value")
        name = label if isinstance(label, str) else as_text(label).decode()
        counts[name] = _sum(key, counts.get(name, 0), row["count"])
    return counts


def summed(key: str, old: Any, given: float | dict[str, float]) -> Any:
    """Return a counter's count with ``given`` added; the same object where nothing changes."""
    if isinstance(old, Table):
        if not isinstance(given, dict):
            message = f"{key} counts per key; one number can't be added to that"
            raise StateError(message, status="schema_mismatch", hint="REPLACE what it holds, or RESET it first")
        sums = {name: _sum(key, old.get(name) or 0, count) for name, count in given.items()}
        return old.updated({name: total for name, total in sums.items() if not _equal(total, old.get(name))})
    if not isinstance(given, dict):
        total = _sum(key, old, given)
        return old if _equal(total, old) else total
    if not given:
        return old
    if not _equal(old, 0):
        message = f"{key} holds one number; counts per key can't be added to that"
        raise StateError(message, status="schema_mismatch", hint="REPLACE what it holds, or RESET it first")
    return Table.of(given)


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _sum(key: str, one: float, other: float) -> float:
    total = added(one, other)
    if total is None:
        raise StateError(f"{key} would grow beyond 64 bits", status="schema_mismatch")
    return total


def _wrong(key: str, why: str) -> StateError:
    message = f"{key} is a COUNTER; it takes a number, an object of numbers, or rows of a label and a count{why}"
    return StateError(message, status="schema_mismatch")
