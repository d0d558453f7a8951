"""Reads text files in blocks, also compressed (``.gz``): decodes them, finds invalid bytes, limits the decompressed size."""

import codecs
import csv
import gzip
import io
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

from attrs import define

from .port import MAX_CELL, TableError

BLOCK = 1 << 20
"""Number of bytes that are read at once."""
MAX_LINE = 64 << 20
"""Maximum number of characters of a line."""
_BOMB_FROM = 64 << 20
"""The compression ratio of a file is checked after this many decompressed bytes."""
_BOMB_RATIO = 200
"""Maximum ratio of the decompressed to the compressed size. Real tables have a ratio between 3 and 50."""
_csv_limit = threading.Lock()


@contextmanager
def csv_cell_limit() -> Iterator[None]:
    """Allow CSV cells of up to ``MAX_CELL`` characters. The limit of the csv module is a global setting, so it is restored."""
    with _csv_limit:
        before = csv.field_size_limit(MAX_CELL)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def known_encoding(encoding: str) -> str:
    """Return the codec's own name of a text encoding. Raises ``TableError`` for an unknown encoding."""
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise TableError(f"unknown encoding {encoding!r:.60}", "such as utf-8, latin-1, cp1252 or utf-16") from None
    if not getattr(found, "_is_text_encoding", True):
        raise TableError(f"{encoding!r:.60} is not an encoding of text", "such as utf-8, latin-1, cp1252 or utf-16")
    return found.name


_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # begins with the mark of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding that a byte order mark at the beginning of a file states; None without a mark."""
    return next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), None)


@define
class TextStream:
    """A text file, read line by line from its beginning.

    If bytes that are not valid in the encoding are read, ``is_faulty`` becomes true and these bytes are decoded as lone
    surrogates. ``faulty_bytes`` then returns whether a row's text contains such bytes. If ``content`` is given, it is read in place of
    the file.
    """

    path: Path
    encoding: str = "utf-8"
    content: bytes | None = None
    is_faulty: bool = False

    def lines(self) -> Iterator[str]:
        """Yield the lines with their line ends: ``\\n``, ``\\r\\n`` or ``\\r``. Raises ``TableError``."""
        rest = ""
        for text in self._texts():
            rest += text
            end = max(rest.rfind("\n"), rest.rfind("\r", 0, -1)) + 1  # a last "\r" may be the first half of a line end
            if not end:
                if len(rest) > MAX_LINE:
                    raise TableError(f"{self.path} has a line with more than {MAX_LINE:,} characters", "is it a table?")
                continue
            yield from io.StringIO(rest[:end], newline="")  # splits at these line ends only, and keeps them
            rest = rest[end:]
        yield from io.StringIO(rest, newline="")

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes of the file, decompressed. Raises ``TableError``."""
        if self.content is not None:
            for at in range(0, len(self.content), BLOCK):
                yield self.content[at : at + BLOCK]
            return
        try:
            with open(self.path, "rb") as raw:
                yield from (
                    self._decompressed(raw) if self.path.suffix.lower() == ".gz" else iter(lambda: raw.read(BLOCK), b"")
                )
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{self.path} is not a complete gzip file: {error}") from None
        except OSError as error:
            raise TableError(f"{self.path} can't be read: {error.strerror or error}") from None

    def _decompressed(self, raw: IO[bytes]) -> Iterator[bytes]:
        size = 0
        with gzip.GzipFile(fileobj=raw) as file:
            while block := file.read(BLOCK):
                size += len(block)
                if size > _BOMB_FROM and size > _BOMB_RATIO * raw.tell():
                    raise TableError(
                        f"{self.path} expands to more than {_BOMB_RATIO} times its size",
                        "decompress it first if that is intended",
                    )
                yield block

    def _texts(self) -> Iterator[str]:
        blocks = self.blocks()
        first = next(blocks, b"")
        name = self.encoding
        if known_encoding(name) == "utf-8":
            name = marked_encoding(first) or "utf-8"
        decoder = codecs.getincrementaldecoder(name)("strict")
        for block in chain([first], blocks):
            yield self._decoded(decoder, block, False)
        yield self._decoded(decoder, b"", True)

    def _decoded(self, decoder: codecs.IncrementalDecoder, block: bytes, final: bool) -> str:
        state = decoder.getstate()
        try:
            return decoder.decode(block, final)
        except UnicodeDecodeError as error:
            self.is_faulty = True
            decoder.setstate(state)
            decoder.errors = "surrogateescape"
            try:
                return decoder.decode(block, final)
            except UnicodeDecodeError:  # an encoding without single bytes, such as UTF-16
                raise TableError(f"{self.path} is not {error.encoding}: {error.reason}", "save it as UTF-8") from None


def faulty_bytes(text: str) -> bool:
    """Return whether a decoded text contains bytes that are not valid in the file's encoding."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
