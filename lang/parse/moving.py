"""What reading a changed text again takes: where two texts differ, and trees moved to where their text stands now."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import attrs

from ..node import Node
from ..source import Span

__all__ = ["Change", "Kept", "difference", "move"]

_N = TypeVar("_N", bound=Node)
_BLOCK = 4096


@attrs.frozen
class Change:
    """Where a text differs from the one before: what stood in ``[start, end)`` is other text, and what is behind moved by ``by``."""

    start: int
    end: int
    by: int


def difference(before: str, after: str) -> Change:
    """Return the shortest change of one piece that makes ``after`` of ``before``."""
    most = min(len(before), len(after))
    start = _same(before, after, most)
    same = 0
    while same < most - start:
        size = min(_BLOCK, most - start - same)
        old, new = len(before) - same, len(after) - same
        if before[old - size : old] != after[new - size : new]:
            while before[old - 1] == after[new - 1]:
                old, new = old - 1, new - 1
            same = len(before) - old
            break
        same += size
    return Change(start, len(before) - same, len(after) - len(before))


def _same(before: str, after: str, most: int) -> int:
    """Return how many characters the texts have in common at the beginning."""
    at = 0
    while at < most and before[at : at + _BLOCK] == after[at : at + _BLOCK]:
        at += _BLOCK
    at = min(at, most)
    while at < most and before[at] == after[at]:
        at += 1
    return at


@attrs.define(eq=False)
class Kept(Generic[_N]):
    """A piece of a text that was read without a fault, and what came of it: ``[start, end)``, and up to ``seen`` nothing else counted."""

    start: int
    end: int
    seen: int
    items: Sequence[_N]
    _nodes: tuple[Node, ...] | None = attrs.field(default=None, init=False)

    def shift(self, by: int) -> None:
        """Move the piece and its trees in place: see ``move``."""
        self.start, self.end, self.seen = self.start + by, self.end + by, self.seen + by
        if self._nodes is None:
            self._nodes = tuple(_nodes(self.items))
        move(self._nodes, by)

    def stays(self, change: Change) -> bool:
        """Say whether all that counted for the piece stands before the change."""
        return self.seen < change.start

    def moves(self, change: Change, line: int) -> bool:
        """Say whether the piece stands behind the change, on a line of its own that begins at ``line``."""
        return line > change.end


_put: Callable[[Node, Span], None] = Node.__dict__["span"].__set__


def move(nodes: Iterable[Node], by: int) -> None:
    """Move the spans of ``nodes`` by ``by``, in place: only for trees that nobody else holds.

    Trees are frozen, and making all of them anew would cost as much as reading them; but a span takes no part in equality.
    """
    for node in nodes:
        span = node.span
        _put(node, Span(span.start + by, span.end + by))


def _nodes(items: Iterable[Node]) -> Iterable[Node]:
    """Yield every node once: one may stand in two places of a tree (``JOIN a WITH b ON id``)."""
    stack: list[Any] = list(items)
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if isinstance(current, tuple):
            stack.extend(current)
        elif isinstance(current, Node) and id(current) not in seen:
            seen.add(id(current))
            yield current
            stack.extend(getattr(current, name) for name in _fields(type(current)))


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(kind: type) -> tuple[str, ...]:
    """Name the fields of a class that may hold nodes. Computed once for each class."""
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(each.name for each in attrs.fields(kind) if each.name != "span")
    return names
