"""The documents that are open in the editor: their texts as the client last said, and what is kept of each."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from attrs import define, field, frozen
from lsprotocol import types

from ....lang.service import Language, Reading
from ....lang.source import Source
from .settings import language_of
from .texts import Encoding, Text

__all__ = ["Document", "Documents", "Snapshot", "path_of"]

LARGEST = 4_000_000
"""Characters of a document; no language here reads more."""


@define(eq=False)
class _Reader:
    """Reads the successive texts of one document. Whoever needs one first reads it, whoever needs it then waits for that."""

    _lock: Lock = field(factory=Lock, init=False)
    _last: Reading | None = field(default=None, init=False)

    def read(self, language: Language, source: Source) -> Reading:
        """Return the reading of a text: of the last one, the same; of another, a new one that goes on from the last."""
        with self._lock:
            last = self._last
            if last is None or last.source is not source:
                last = Reading(language, source) if last is None else last.changed(source)
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
