"""The documents that are open in the editor: their texts as the client last said, and what is kept of each."""

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

__all__ = ["Document", "Documents", "Encoding", "Snapshot", "Text", "path_of"]


# A text as an editor counts it: lines end with \n, \r\n or \r, and columns count units of the encoding that was agreed on.

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE = re.compile(r"\r\n?|\n")
_WIDE = {
    "utf-8": re.compile(r"[^\x00-\x7f]"), "utf-16": re.compile(r"[\U00010000-\U0010ffff]"), "utf-32": re.compile(r"(?!)"),
}  # fmt: skip
"""Characters of more than one unit."""
_Wide = tuple[list[int], list[int]]
"""Where the wide characters of a line end, and how many units more than characters there are up to there; before them 0 and 0."""


@frozen(slots=False)
class Text:
    """A text, where its lines begin, and how positions in it are counted. Offsets count code points.

    A position behind a line's end is at its end, one behind the last line is the text's end: so the protocol wants it.
    """

    text: str = field(repr=False)
    encoding: Encoding = "utf-16"

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins; the first at 0."""
        return [0, *(match.end() for match in _LINE.finditer(self.text))]

    @cached_property
    def is_ascii(self) -> bool:
        """Say whether columns are code points in any encoding."""
        return self.text.isascii()

    @property
    def counts_code_points(self) -> bool:
        """Say whether columns are code points in this encoding."""
        return self.encoding == "utf-32" or self.is_ascii

    def _line(self, number: int) -> Span:
        """Return line ``number`` (from 0) without its ending."""
        starts = self.starts
        start = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else len(self.text)
        while end > start and number + 1 < len(starts) and self.text[end - 1] in "\r\n":
            end -= 1
        return Span(start, end)

    def offset(self, position: Position) -> int:
        """Return the offset of a position, which may lie anywhere."""
        if position.line < 0:
            return 0
        if position.line >= len(self.starts):
            return len(self.text)
        line = self._line(position.line)
        units = max(0, position.character)
        if self.counts_code_points:
            return min(line.start + units, line.end)
        ends, more = self._wide(position.line)
        # Behind which wide character it is; one that it lies inside of is not behind it, so the position is before that.
        passed = bisect_right(range(len(ends)), units, key=lambda at: ends[at] - line.start + more[at]) - 1
        at = line.start + units - more[passed]
        following = ends[passed + 1] - 1 if passed + 1 < len(ends) else line.end
        return min(at, following, line.end)

    def position(self, offset: int) -> Position:
        """Return where an offset is; one beside the text is moved into it."""
        offset = max(0, min(offset, len(self.text)))
        number = bisect_right(self.starts, offset) - 1
        return Position(number, self.column(number, offset))

    def column(self, number: int, offset: int) -> int:
        """Return how many units line ``number`` has before ``offset``, which is in it or at its end."""
        start = self.starts[number]
        if self.counts_code_points:
            return offset - start
        ends, more = self._wide(number)
        return offset - start + more[bisect_right(ends, offset) - 1]

    @cached_property
    def _wides(self) -> dict[int, _Wide]:
        return {}

    def _wide(self, number: int) -> _Wide:
        """Return the wide characters of a line, looked for once: a line may have a hundred thousand, and as many questions."""
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
        """Return a span as the protocol says it."""
        return Range(self.position(span.start), self.position(span.end))

    def span(self, given: Range) -> Span:
        """Return a range as offsets; one that ends before it begins is empty."""
        start = self.offset(given.start)
        return Span(start, max(start, self.offset(given.end)))

    def replaced(self, given: Range | None, text: str) -> "Text":
        """Return the text with what stands under ``given`` (None: all of it) replaced."""
        if given is None:
            return Text(text, self.encoding)
        span = self.span(given)
        made = Text(self.text[: span.start] + text + self.text[span.end :], self.encoding)
        if "\r" not in text and "\r" not in self.text[max(0, span.start - 1) : span.end + 1]:
            # Only line ends in what was taken out and put in changed, and those behind moved. Where a \r is near, two ends may have
            # become one, so that the lines are counted anew.
            starts, by = self.starts, len(text) - (span.end - span.start)
            first, last = bisect_right(starts, span.start), bisect_right(starts, span.end)
            new = [span.start + match.end() for match in _LINE.finditer(text)]
            made.__dict__["starts"] = [*starts[:first], *new, *(start + by for start in starts[last:])]
        return made


def _width(letter: str, encoding: Encoding) -> int:
    """Return how many units a character has."""
    code = ord(letter)
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


LARGEST = 4_000_000
"""Characters of a document; no language here reads more."""


@define(eq=False)
class _Reader:
    """Reads the successive texts of one document. Whoever needs one first reads it, whoever needs it then waits for that."""

    _lock: Lock = field(factory=Lock, init=False)
    _last: Reading | None = field(default=None, init=False)

    def read(self, language: Language, source: Source) -> Reading:
        """Return the reading of a text: of the last one, the same."""
        with self._lock:
            last = self._last
            if last is None or last.source is not source:
                last = Reading(language, source)
                last.faults  # noqa: B018  # reads it: two threads would else read it twice
                self._last = last
            return last


@frozen
class Snapshot:
    """A document as it is at one moment."""

    uri: str
    version: int
    language: Language
    text: Text
    source: Source
    _reader: _Reader = field(factory=_Reader, repr=False, eq=False)

    def read(self) -> Reading:
        """Return the reading of the text: the same for all who ask, from any thread."""
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
        """Return the document as it is now; the same object as long as nothing changes."""
        if self._snapshot is None:
            name = str(self.path) if self.path is not None else self.uri
            source = Source(self.text.text, name)
            self._snapshot = Snapshot(self.uri, self.version, self.language, self.text, source, self._reader)
        return self._snapshot

    def change(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Make the client's changes, one after the other."""
        text = self.text
        for change in changes:
            text = text.replaced(getattr(change, "range", None), change.text)
        self.text, self.version, self._snapshot = text, version, None


@define(eq=False)
class Documents:
    """The open documents by URI; those in other languages are not kept."""

    encoding: Encoding = "utf-16"
    _open: dict[str, Document] = field(factory=dict, init=False)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open.values()))

    def get(self, uri: str) -> Document | None:
        """Return the open document under ``uri``, or None."""
        return self._open.get(uri)

    def open(self, item: types.TextDocumentItem) -> Document | None:
        """Keep a document that was opened; None for one in no language of ours."""
        self._open.pop(item.uri, None)
        language = language_of(unquote(item.uri), item.language_id)
        if language is None:
            return None
        document = Document(item.uri, language, item.version, Text(item.text, self.encoding), path_of(item.uri))
        self._open[item.uri] = document
        return document

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._open.pop(uri, None)


def path_of(uri: str) -> Path | None:
    """Return the file that a URI names; None where it names no file of this machine (``untitled:``, a remote one)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "%00" in parts.path:
        return None
    return Path(url2pathname(parts.path))
