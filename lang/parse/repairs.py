"""A fault of a text: its diagnostic, and whether a lenient reading makes the diagnostic's edits and goes on."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import attrs
from attrs import evolve, frozen

from ..diagnostic import Diagnostic, Edit
from ..source import Span
from ..trees.node import Node

__all__ = ["Fault", "Repaired", "fault", "repair", "respan", "shown"]


@frozen
class Fault:
    """One thing wrong. ``accepted``: the lenient reading takes the text as edited, and the diagnostic is a warning.

    ``supposed`` are edits that are never offered, because the text has another reading: reading goes on as if they were made, so
    that the faults behind this one are found too.
    """

    diagnostic: Diagnostic
    accepted: bool = False
    supposed: tuple[Edit, ...] = ()

    @property
    def as_warning(self) -> Diagnostic:
        """The diagnostic as the lenient reading reports it."""
        return evolve(self.diagnostic, severity="warning")


def fault(
    code: str,
    message: str,
    start: int,
    end: int,
    *hints: str,
    edits: tuple[Edit, ...] = (),
    accepted: bool = False,
) -> Fault:
    """Build an error over ``[start, end)``; what can't be edited can't be accepted."""
    diagnostic = Diagnostic(code, "error", message, Span(start, end), tuple(hint for hint in hints if hint), edits)
    return Fault(diagnostic, accepted and bool(edits))


def shown(text: str, limit: int = 30) -> str:
    """Return ``text`` short enough for a message, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


# Edits applied to a text, and the way back: from spans of the repaired text to spans of the text as it was given.


_N = TypeVar("_N", bound=Node)


@frozen
class Repaired:
    """A repaired text. ``_starts[k]`` is where edit k's replacement begins in it; ``_edits`` are in place order."""

    text: str
    _starts: tuple[int, ...]
    _edits: tuple[Edit, ...]

    def back(self, offset: int) -> int:
        """Return the offset in the given text for ``offset`` in the repaired one."""
        found = bisect_right(self._starts, offset) - 1
        if found < 0:
            return offset
        edit = self._edits[found]
        within = offset - self._starts[found]
        if within < len(edit.text):
            return min(edit.span.start + within, edit.span.end)
        return edit.span.end + within - len(edit.text)

    def back_span(self, span: Span) -> Span:
        """Return the span in the given text for ``span`` in the repaired one."""
        start = self.back(span.start)
        return Span(start, max(start, self.back(span.end)))


def repair(text: str, edits: Iterable[Edit]) -> Repaired:
    """Make ``edits`` in ``text``; of two that overlap the later one by place is left out."""
    pieces: list[str] = []
    made: list[Edit] = []
    starts: list[int] = []
    done = length = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < done:
            continue
        kept = text[done : edit.span.start]
        length += len(kept)
        starts.append(length)
        made.append(edit)
        pieces += [kept, edit.text]
        length += len(edit.text)
        done = edit.span.end
    pieces.append(text[done:])
    return Repaired("".join(pieces), tuple(starts), tuple(made))


@cache
def _names(kind: type[Node]) -> tuple[str, ...]:
    return tuple(a.name for a in attrs.fields(kind) if a.name != "span")


def respan(node: _N, move: Callable[[Span], Span]) -> _N:
    """Return ``node`` with every span in it moved. Recursive: trees are at most ``builder.MAX_DEPTH`` deep."""

    def moved(value: Any) -> Any:
        if isinstance(value, Node):
            return respan(value, move)
        if isinstance(value, tuple):
            return tuple(moved(item) for item in value)
        return value

    kind: Any = type(node)
    fields = {name: moved(getattr(node, name)) for name in _names(kind)}
    return type(node)(**fields, span=move(node.span))
