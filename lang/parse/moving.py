"""What reading a changed text again takes: the pieces of a text that were read, found again in another, and trees moved to where
their text stands there.

A piece is found by what it says, not by where it stood: however many places changed, all that is written as before is kept. Its trees
are moved when they are asked for, what was worked out of it is kept with it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import attrs

from ..source import Span
from ..trees import Node

__all__ = ["Kept", "Pieces", "move"]

_N = TypeVar("_N", bound=Node)
_T = TypeVar("_T")
_ALIKE = 8
"""Pieces with the same first line that are told apart; any more are read again."""


@attrs.frozen(eq=False, slots=False)
class Kept(Generic[_N]):
    """A piece of a text, and what was read of it.

    It stands in ``[start, end)``. ``column`` is how far from its line's beginning it starts; that line, and ``text``, which is all
    from ``start`` on that counted for it, must be the same for it to be read the same. ``is_last``: behind that was the text's end.
    ``is_faulty``: it had faults, which may be others elsewhere.
    """

    start: int
    end: int
    line: str
    column: int
    text: str
    is_last: bool
    is_faulty: bool
    _read: tuple[_N, ...]
    _read_at: int
    _notes: dict[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, text: str, start: int, end: int, seen: int, items: Sequence[_N], *, is_faulty: bool = False
    ) -> "Kept[_N]":
        """Return the piece of ``text`` in ``[start, end)``, for which nothing counted behind the line's end at ``seen``."""
        line, column = _line(text, start)
        said = text[start : seen + 1]
        return cls(start, end, line, column, said, seen >= len(text), is_faulty, tuple(items), start)

    @cached_property
    def items(self) -> tuple[_N, ...]:
        """What was read, as it is where the piece stands."""
        by = self.start - self._read_at
        return move(self._read, by) if by else self._read

    def note(self, of: str, find: Callable[[tuple[_N, ...], int], _T]) -> _T:
        """Return what ``find`` says of the trees, wherever the piece stands: it is given them with the offset at which they begin."""
        if of not in self._notes:
            self._notes[of] = find(self._read, self._read_at)
        found: _T = self._notes[of]
        return found

    def at(self, start: int) -> "Kept[_N]":
        """Return the piece as it is where it starts at ``start``."""
        if start == self.start:
            return self
        end = self.end + start - self.start
        return Kept(
            start,
            end,
            self.line,
            self.column,
            self.text,
            self.is_last,
            self.is_faulty,
            self._read,
            self._read_at,
            self._notes,
        )

    def stands(self, text: str, start: int) -> bool:
        """Say whether all that counted for the piece is in ``text`` at ``start``; what is before it on its line is known to be."""
        return text.startswith(self.text, start) and (not self.is_last or start + len(self.text) == len(text))


@attrs.frozen(eq=False, slots=False)
class Pieces(Generic[_N]):
    """The pieces of a text in their order, to be found in another text."""

    parts: tuple[Kept[_N], ...] = ()

    @property
    def items(self) -> tuple[_N, ...]:
        """All that was read."""
        return tuple(item for part in self.parts for item in part.items)

    @cached_property
    def _by_place(self) -> Mapping[int, Kept[_N]]:
        return {part.start: part for part in self.parts if not part.is_faulty}

    @cached_property
    def _by_line(self) -> Mapping[tuple[str, int], Sequence[Kept[_N]]]:
        found: dict[tuple[str, int], list[Kept[_N]]] = {}
        for part in self._by_place.values():
            alike = found.setdefault((part.line, part.column), [])
            if len(alike) < _ALIKE:
                alike.append(part)
        return found

    def find(self, text: str, start: int) -> Kept[_N] | None:
        """Return what begins at ``start`` of ``text``, if it was read before; the one that stood there, if there are several."""
        line = _line(text, start)
        same = self._by_place.get(start)
        if same is not None and (same.line, same.column) == line and same.stands(text, start):
            return same
        found = next((each for each in self._by_line.get(line, ()) if each.stands(text, start)), None)
        return found.at(start) if found is not None else None


def _line(text: str, start: int) -> tuple[str, int]:
    """Return the line in which ``start`` stands, and how far from its beginning."""
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    return text[begin : end if end >= 0 else len(text)], start - begin


def move(items: Sequence[_N], by: int) -> tuple[_N, ...]:
    """Return trees as they are where their text stands ``by`` further on. The given ones stay as they are: others may hold them.

    A node that stands in two places of a tree (``JOIN a WITH b ON id``) still does.
    """
    return tuple(_moved(item, by, {}) for item in items)


def _moved(value: Any, by: int, done: dict[int, Any]) -> Any:
    kind = value.__class__
    if kind is tuple:
        return tuple([_moved(each, by, done) for each in value])
    writers = _WRITERS.get(kind)
    if writers is None:
        if not isinstance(value, Node):
            return value
        writers = _WRITERS[kind] = _writers(kind)
    if (made := done.get(id(value))) is not None:
        return made
    made = done[id(value)] = _create(kind)
    span = value.span
    _put(made, Span(span.start + by, span.end + by))
    for name, write in writers:
        held = getattr(value, name)
        write(made, held if held.__class__ in _PLAIN else _moved(held, by, done))
    return made


# A file of ten thousand lines has eighty thousand nodes, half of which move with each key. To make them by their classes' __init__ would
# cost as much as reading them, so they are written field by field.
_PLAIN = frozenset({str, int, float, bool, type(None)})
_Write = Callable[[Any, Any], None]
_WRITERS: dict[type, tuple[tuple[str, _Write], ...]] = {}
_create = object.__new__
_put: _Write = Node.__dict__["span"].__set__


def _writers(kind: type[Node]) -> tuple[tuple[str, _Write], ...]:
    """Return how each field of a kind of node but its span is written."""
    return tuple((each.name, _slot(kind, each.name)) for each in attrs.fields(kind) if each.name != "span")


def _slot(kind: type, name: str) -> _Write:
    """Return what writes a slot of a frozen class; a class without slots is none of our trees."""
    return next(each.__dict__[name] for each in kind.__mro__ if name in each.__dict__).__set__  # type: ignore[no-any-return]
