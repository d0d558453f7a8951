"""The documents open in the editor: the latest text of each, and its parse result."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Literal
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from attrs import define, field, frozen
from lsprotocol import types
from lsprotocol.types import Position, Range

from ....lang.service import Language, Reading
from ....lang.source import Source, Span
from .workspace import language_of

# Text positions as an editor counts them: lines end with LF, CRLF or CR, and columns count units of the negotiated encoding.

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE = re.compile(r"\r\n?|\n")
_WIDE = {
    "utf-8": re.compile(r"[^\x00-\x7f]"), "utf-16": re.compile(r"[\U00010000-\U0010ffff]"), "utf-32": re.compile(r"(?!)"),
}  # fmt: skip
"""Characters that take more than one unit."""
_Wide = tuple[list[int], list[int]]
"""The ends of a line's wide characters, and the surplus of units over characters up to each; 0 and 0 before the first."""


@frozen(slots=False)
class Text:
    """A text, with the starts of its lines and the unit of its positions. Offsets count code points.

    A position after a line's end is at its end, one after the last line is the text's end, as the protocol requires.
    """

    text: str = field(repr=False)
    encoding: Encoding = "utf-16"

    @cached_property
    def starts(self) -> list[int]:
        """The start of each line; the first is 0."""
        return [0, *(match.end() for match in _LINE.finditer(self.text))]

    @cached_property
    def is_ascii(self) -> bool:
        """Return whether columns are code points in any encoding."""
        return self.text.isascii()

    @property
    def counts_code_points(self) -> bool:
        """Return whether columns are code points in this encoding."""
        return self.encoding == "utf-32" or self.is_ascii

    def _line(self, number: int) -> Span:
        """Return the span of line ``number`` (from 0) without its ending."""
        starts = self.starts
        start = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else len(self.text)
        while end > start and number + 1 < len(starts) and self.text[end - 1] in "\r\n":
            end -= 1
        return Span(start, end)

    def offset(self, position: Position) -> int:
        """Return the offset of a position, which may be outside of the text."""
        if position.line < 0:
            return 0
        if position.line >= len(self.starts):
            return len(self.text)
        line = self._line(position.line)
        units = max(0, position.character)
        if self.counts_code_points:
            return min(line.start + units, line.end)
        ends, more = self._wide(position.line)
        # Find the last wide character before the position; a position inside a wide character is before it.
        passed = bisect_right(range(len(ends)), units, key=lambda at: ends[at] - line.start + more[at]) - 1
        at = line.start + units - more[passed]
        following = ends[passed + 1] - 1 if passed + 1 < len(ends) else line.end
        return min(at, following, line.end)

    def position(self, offset: int) -> Position:
        """Return the position of an offset; an offset outside of the text is clamped."""
        offset = max(0, min(offset, len(self.text)))
        number = bisect_right(self.starts, offset) - 1
        return Position(number, self.column(number, offset))

    def column(self, number: int, offset: int) -> int:
        """Return the number of units of line ``number`` before ``offset``, which is in the line or at its end."""
        start = self.starts[number]
        if self.counts_code_points:
            return offset - start
        ends, more = self._wide(number)
        return offset - start + more[bisect_right(ends, offset) - 1]

    @cached_property
    def _wides(self) -> dict[int, _Wide]:
        return {}

    def _wide(self, number: int) -> _Wide:
        """Return the wide characters of a line, computed once: a line may have a hundred thousand, and as many queries."""
        known = self._wides.get(number)
        if known is None:
            starts = self.starts
            start, end = starts[number], starts[number + 1] if number + 1 < len(starts) else len(self.text)
            ends, more = [start], [0]
            for match in _WIDE[self.encoding].finditer(self.text, start, end):
                ends.append(match.end())
                more.append(more[-1] + _width(match[0], self.encoding) - 1)
            known = self._wides[number] = ends, more
        return known

    def range(self, span: Span) -> Range:
        """Return a span as a protocol range."""
        return Range(self.position(span.start), self.position(span.end))

    def span(self, given: Range) -> Span:
        """Return a range as offsets; a range that ends before it begins is empty."""
        start = self.offset(given.start)
        return Span(start, max(start, self.offset(given.end)))

    def replaced(self, given: Range | None, text: str) -> "Text":
        """Return the text with ``given`` (None: all of it) replaced."""
        if given is None:
            return Text(text, self.encoding)
        span = self.span(given)
        made = Text(self.text[: span.start] + text + self.text[span.end :], self.encoding)
        if "\r" not in text and "\r" not in self.text[max(0, span.start - 1) : span.end + 1]:
            # Only line starts in the replaced text change, and later ones move. If a \r is adjacent, two line ends may have
            # merged, so all lines are counted again.
            starts, by = self.starts, len(text) - (span.end - span.start)
            first, last = bisect_right(starts, span.start), bisect_right(starts, span.end)
            new = [span.start + match.end() for match in _LINE.finditer(text)]
            made.__dict__["starts"] = [*starts[:first], *new, *(start + by for start in starts[last:])]
        return made


def _width(letter: str, encoding: Encoding) -> int:
    """Return the number of units of a character."""
    code = ord(letter)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


LARGEST = 4_000_000
"""Maximum characters of a document; no language here reads more."""


@define(eq=False)
class _Reader:
    """Parses the successive texts of one document. The first caller parses a text, later callers wait for the result."""

    _lock: Lock = field(factory=Lock, init=False)
    _last: Reading | None = field(default=None, init=False)

    def read(self, language: Language, source: Source) -> Reading:
        """Return the parse result of a text; the stored one if the text is unchanged."""
        with self._lock:
            last = self._last
            if last is None or last.source is not source:
                last = Reading(language, source)
                last.faults  # noqa: B018  # reads it: two threads would else read it twice
                self._last = last
            return last


@frozen
class Snapshot:
    """A document at one time."""

    uri: str
    version: int
    language: Language
    text: Text
    source: Source
    _reader: _Reader = field(factory=_Reader, repr=False, eq=False)

    def read(self) -> Reading:
        """Return the parse result of the text: the same object for all callers, in any thread."""
        return self._reader.read(self.language, self.source)


@define(eq=False)
class Document:
    """An open document."""

    uri: str
    language: Language
    version: int
    text: Text
    path: Path | None
    _reader: _Reader = field(factory=_Reader, init=False)
    _snapshot: Snapshot | None = field(default=None, init=False)

    def snapshot(self) -> Snapshot:
        """Return the present document; the same object as long as it does not change."""
        if self._snapshot is None:
            name = str(self.path) if self.path is not None else self.uri
            source = Source(self.text.text, name)
            self._snapshot = Snapshot(self.uri, self.version, self.language, self.text, source, self._reader)
        return self._snapshot

    def change(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Apply the client's changes in order."""
        text = self.text
        for change in changes:
            text = text.replaced(getattr(change, "range", None), change.text)
        self.text, self.version, self._snapshot = text, version, None


@define(eq=False)
class Documents:
    """The open documents by URI; documents in other languages are not stored."""

    encoding: Encoding = "utf-16"
    _open: dict[str, Document] = field(factory=dict, init=False)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open.values()))

    def get(self, uri: str) -> Document | None:
        """Return the open document under ``uri``, or None."""
        return self._open.get(uri)

    def open(self, item: types.TextDocumentItem) -> Document | None:
        """Store a document that was opened; None if its language is not supported."""
        self._open.pop(item.uri, None)
        language = language_of(unquote(item.uri), item.language_id)
        if language is None:
            return None
        document = Document(item.uri, language, item.version, Text(item.text, self.encoding), path_of(item.uri))
        self._open[item.uri] = document
        return document

    def close(self, uri: str) -> None:
        """Remove a document."""
        self._open.pop(uri, None)


def path_of(uri: str) -> Path | None:
    """Return the file of a URI; None if it is not a file on this machine (``untitled:``, a remote one)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "%00" in parts.path:
        return None
    return Path(url2pathname(parts.path))
