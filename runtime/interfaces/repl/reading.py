"""A text in its pieces: what is run at once, in which language, and where the next one begins."""

from collections.abc import Iterator

from attrs import frozen

from ....lang.source import Source, Span
from .languages import Language, expression_of, is_more_of_a_command, language_of
from .wholeness import Growing, is_whole

__all__ = ["Growing", "Language", "Piece", "expression_of", "is_whole", "language_of", "piece_at", "pieces"]


@frozen(slots=False)
class _Placed(Source):
    """A text whose first line is a later one of a file."""

    first_line: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column in the file."""
        line, column = super().position(offset)
        return line + self.first_line - 1, column

    def line_span(self, line: int) -> Span:
        """Return the span of a line that the file numbers so."""
        return super().line_span(line - self.first_line + 1)


@frozen
class Piece:
    """What is run at once: a command, a block, a row of steps, an expression, a dot command.

    ``first_line`` is where it begins (from 1) in the text that it is from; ``name`` is that text's.
    """

    text: str
    language: Language
    first_line: int = 1
    name: str = "<input>"

    @property
    def source(self) -> Source:
        """The text at its place, so that a picture has the line's number in the file."""
        return _Placed(self.text, self.name, self.first_line) if self.first_line > 1 else Source(self.text, self.name)


@frozen
class _Lines:
    """Lines that belong together, from one number to before another."""

    start: int
    end: int
    language: Language


def pieces(text: str, name: str = "<input>", first_line: int = 1) -> Iterator[Piece]:
    """Yield what ``text`` holds, in its order; it begins with line ``first_line`` of what is called ``name``.

    Steps that stand together are one piece: they run side by side where they can. What is not whole at the
    end is a piece all the same: running it says what is missing.
    """
    lines = text.replace("\r\n", "\n").split("\n")

    def piece(found: _Lines) -> Piece:
        return Piece("\n".join(lines[found.start : found.end]), found.language, found.start + first_line, name)

    held: _Lines | None = None
    for found in _parts(lines):
        if found.language == "remark":
            if held is not None and held.language == "lwt" and "".join(lines[found.start : found.end]).strip():
                held = _Lines(held.start, found.end, "lwt")
        elif held is not None and held.language == found.language == "lwt":
            held = _Lines(held.start, found.end, "lwt")
        else:
            if held is not None:
                yield piece(held)
            held = found
    if held is not None:
        yield piece(held)


def piece_at(text: str, at: int) -> tuple[Piece, int]:
    """Return the piece in which a place is, and where the piece begins."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    found, start = Piece(text, language_of(text)), 0
    for piece in pieces(text):
        begins = starts[piece.first_line - 1]
        if begins <= at:
            found, start = piece, begins
    return (found, start) if at <= start + len(found.text) else (Piece("", "expr"), at)


def _parts(lines: list[str]) -> Iterator[_Lines]:
    start = 0
    while start < len(lines):
        growing, end = Growing(), start
        while end == start or (end < len(lines) and not growing.is_closed and growing.takes(lines[end])):
            growing.add(lines[end])
            end += 1
        language = language_of("\n".join(lines[start:end]))
        # A command over several lines is refused as one: its first line alone would be run, or have an error of its own.
        while language == "gasl" and end < len(lines) and is_more_of_a_command(lines[end]):
            end += 1
        yield _Lines(start, end, language)
        start = end
