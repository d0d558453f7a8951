"""Positions in text: a source file and the spans that point into it. Offsets count code points from 0."""

from bisect import bisect_right
from functools import cached_property

from attrs import field, frozen


@frozen(order=True)
class Span:
    """The half-open range ``[start, end)`` of a source, in code points."""

    start: int
    end: int

    def covers(self, offset: int) -> bool:
        """Return whether ``offset`` is inside the span."""
        return self.start <= offset < self.end

    def shift(self, by: int) -> "Span":
        """Return the span moved ``by`` code points to the right."""
        return Span(self.start + by, self.end + by)

    def __or__(self, other: "Span") -> "Span":
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)
"""The span of nodes that were built in code instead of parsed from text."""


@frozen(slots=False)
class Source:
    """A text and its display name (a path, ``<stdin>``, ``<model>``)."""

    text: str = field(repr=False)
    name: str = "<text>"

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find, position = self.text.find, -1
        while (position := find("\n", position + 1)) >= 0:
            starts.append(position + 1)
        return starts

    @property
    def line_count(self) -> int:
        """Return the number of lines of the text. A text without a newline has one line."""
        return len(self._line_starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of ``offset``. Both count from 1. The column is counted in code points."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_span(self, line: int) -> Span:
        """Return the span of the line with the number ``line``, without its line ending. Lines count from 1."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < self.line_count else len(self.text)
        if end > start and self.text[end - 1] == "\r":
            end -= 1
        return Span(start, end)

    def line(self, line: int) -> str:
        """Return the text of the line with the number ``line``, without its line ending. Lines count from 1."""
        return self.slice(self.line_span(line))

    def slice(self, span: Span) -> str:
        """Return the text at ``span``."""
        return self.text[span.start : span.end]
