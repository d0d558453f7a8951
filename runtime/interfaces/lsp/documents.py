"""The documents that are open in the editor: their texts as the client last said, and what is kept of each."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from attrs import define, field, frozen
from lsprotocol import types

from ....lang.service import Language
from ....lang.source import Source
from .settings import language_of
from .texts import Encoding, Text

__all__ = ["Document", "Documents", "Snapshot", "path_of"]

LARGEST = 4_000_000
"""Characters of a document; no language here reads more."""


@frozen
class Snapshot:
    """A document as it is at one moment."""

    uri: str
    version: int
    language: Language
    text: Text
    source: Source


@define(eq=False)
class Document:
    """An open document. ``serial`` counts its changes, whatever the client's versions are."""

    uri: str
    language: Language
    version: int
    text: Text
    path: Path | None
    serial: int = 0
    _snapshot: Snapshot | None = field(default=None, init=False)

    def snapshot(self) -> Snapshot:
        """Return the document as it is now; the same object as long as nothing changes."""
        if self._snapshot is None:
            name = str(self.path) if self.path is not None else self.uri
            source = Source(self.text.text, name)
            self._snapshot = Snapshot(self.uri, self.version, self.language, self.text, source)
        return self._snapshot

    def change(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Make the client's changes, one after the other."""
        text = self.text
        for change in changes:
            text = text.replaced(getattr(change, "range", None), change.text)
        self.text, self.version, self._snapshot = text, version, None
        self.serial += 1


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
