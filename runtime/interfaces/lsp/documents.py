"""The documents that are open in the editor, with their current text and parse result."""

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

# Converts between offsets and editor positions. Lines end with LF, CRLF or CR; columns count units of the negotiated encoding.

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE = re.compile(r"\r\n?|\n")
_WIDE = {
    "utf-8": re.compile(r"[^\x00-\x7f]"), "utf-16": re.compile(r"[\U00010000-\U0010ffff]"), "utf-32": re.compile(r"(?!)"),
}  # fmt: skip
"""For each encoding, matches the characters that take more than one unit ("wide" characters)."""
_Wide = tuple[list[int], list[int]]
"""Two lists for one line: the end of each wide character, and the surplus of units over characters before this end.

The first entries are the line's start and 0.
"""


@frozen(slots=False)
class Text:
    """A text with the starts of its lines. Columns count units of ``encoding``; offsets count code points.

    As the protocol requires, a position after the end of a line means the end of that line, and a position after the last line means
    the end of the text.
    """

    text: str = field(repr=False)
    encoding: Encoding = "utf-16"

    @cached_property
    def starts(self) -> list[int]:
        """The start of each line; the first is 0."""
        return [0, *(match.end() for match in _LINE.finditer(self.text))]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether the text is ASCII; columns then count code points in every encoding."""
        return self.text.isascii()

    @property
    def counts_code_points(self) -> bool:
        """Whether columns count code points in this text's encoding."""
        return self.encoding == "utf-32" or self.is_ascii

    def _line(self, number: int) -> Span:
        """Return the span of line ``number`` (counted from 0) without its line ending."""
        starts = self.starts
        start = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else len(self.text)
        while end > start and number + 1 < len(starts) and self.text[end - 1] in "\r\n":
            end -= 1
        return Span(start, end)

    def offset(self, position: Position) -> int:
        """Return the offset of a position. The position may be outside the text."""
        if position.line < 0:
            return 0
        if position.line >= len(self.starts):
            return len(self.text)
        line = self._line(position.line)
        units = max(0, position.character)
        if self.counts_code_points:
            return min(line.start + units, line.end)
        ends, more = self._wide(position.line)
        # Find the last wide character before the position. A position inside a wide character counts as before that character.
        passed = bisect_right(range(len(ends)), units, key=lambda at: ends[at] - line.start + more[at]) - 1
        at = line.start + units - more[passed]
        following = ends[passed + 1] - 1 if passed + 1 < len(ends) else line.end
        return min(at, following, line.end)

    def position(self, offset: int) -> Position:
        """Return the position of an offset. An offset outside the text counts as the nearest end of the text."""
        offset = max(0, min(offset, len(self.text)))
        number = bisect_right(self.starts, offset) - 1
        return Position(number, self.column(number, offset))

    def column(self, number: int, offset: int) -> int:
        """Return the number of units before ``offset`` in line ``number``. The offset is in this line or at its end."""
        start = self.starts[number]
        if self.counts_code_points:
            return offset - start
        ends, more = self._wide(number)
        return offset - start + more[bisect_right(ends, offset) - 1]

    @cached_property
    def _wides(self) -> dict[int, _Wide]:
        return {}

    def _wide(self, number: int) -> _Wide:
        """Return the wide characters of a line.

        The wide characters are computed once, because a line may have 100,000 of them and may be queried 100,000 times.
        """
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
        """Return a protocol range as a span of offsets. A range that ends before its start becomes an empty span."""
        start = self.offset(given.start)
        return Span(start, max(start, self.offset(given.end)))

    def replaced(self, given: Range | None, text: str) -> "Text":
        """Return the text with the range ``given`` (None means the complete text) replaced by ``text``."""
        if given is None:
            return Text(text, self.encoding)
        span = self.span(given)
        made = Text(self.text[: span.start] + text + self.text[span.end :], self.encoding)
        if "\r" not in text and "\r" not in self.text[max(0, span.start - 1) : span.end + 1]:
            # Only the line starts in the replaced text change; later line starts move. If a \r is adjacent, two line ends may have
            # merged, so the starts of all lines are computed again when they are needed.
            starts, by = self.starts, len(text) - (span.end - span.start)
            first, last = bisect_right(starts, span.start), bisect_right(starts, span.end)
            new = [span.start + match.end() for match in _LINE.finditer(text)]
            made.__dict__["starts"] = [*starts[:first], *new, *(start + by for start in starts[last:])]
        return made


def _width(letter: str, encoding: Encoding) -> int:
    """Return the number of units of a wide character."""
    code = ord(letter)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


LARGEST = 4_000_000
"""Maximum number of characters of a document. The parsers of the languages do not read longer texts."""


@define(eq=False)
class _Reader:
    """Parses the successive versions of one document. The first caller parses a version; later callers wait for the result."""

    _lock: Lock = field(factory=Lock, init=False)
    _last: Reading | None = field(default=None, init=False)

    def read(self, language: Language, source: Source) -> Reading:
        """Return the parse result of a text. If the text is unchanged, return the stored result."""
        with self._lock:
            last = self._last
            if last is None or last.source is not source:
                last = Reading(language, source)
                last.faults  # noqa: B018  # parses the text now; otherwise two threads would parse it twice
                self._last = last
            return last


@frozen
class Snapshot:
    """A document at one moment."""

    uri: str
    version: int
    language: Language
    text: Text
    source: Source
    _reader: _Reader = field(factory=_Reader, repr=False, eq=False)

    def read(self) -> Reading:
        """Return the parse result of the text. All callers, in all threads, get the same object."""
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
        """Return a snapshot of the current document. The same object is returned until the document changes."""
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
    """The open documents, each stored under its URI. Documents in unsupported languages are not stored."""

    encoding: Encoding = "utf-16"
    _open: dict[str, Document] = field(factory=dict, init=False)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open.values()))

    def get(self, uri: str) -> Document | None:
        """Return the open document with this URI, or None."""
        return self._open.get(uri)

    def open(self, item: types.TextDocumentItem) -> Document | None:
        """Store a document that was opened, and return it; None if its language is not supported."""
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
    """Return the path of a URI; None if the URI does not name a file on this machine (``untitled:``, a remote file)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "%00" in parts.path:
        return None
    return Path(url2pathname(parts.path))
