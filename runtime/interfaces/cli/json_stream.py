"""Reads JSON values one at a time: one value per line, values that span several lines, or the elements of one list.

Files of contexts and results may be larger than memory. An invalid value is reported with its line, and later values are still read.
"""

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

from attrs import define, frozen

from ....lang.diagnostic import json_words

MAX_VALUE = 64 << 20
"""Maximum size of one value in bytes."""

_CHUNK = 1 << 16
_STRING = rb'(?:[^"\\\n]+|\\[^\n])*+'
_INSIDE = re.compile(_STRING)
_AT_BASE, _DEEPER = (re.compile(rb'"%b"|["{}\[\]\n%b]' % (_STRING, more)) for more in (b",", b""))
_MARK = b"\xef\xbb\xbf"
"""The byte order mark, which some editors write at the beginning of a file."""


class NotJSON(Exception):
    """Raised if no part of the text is JSON. ``looks_like`` is the text's probable kind."""

    def __init__(self, looks_like: Literal["csv", "text"]) -> None:
        super().__init__(looks_like)
        self.looks_like = looks_like


@frozen
class Item:
    """A value. ``index`` counts from 0; ``line`` is the line where the value begins, from 1.

    ``fault`` is the reason why the value is invalid; "" if it is valid.
    """

    index: int
    line: int
    value: Any = None
    fault: str = ""


def values(stream: BinaryIO | io.FileIO, limit: int = MAX_VALUE) -> Iterator[Item]:
    """Yield every value in order. Invalid values are also yielded and have an index; blank lines are ignored.

    A value longer than ``limit`` bytes is invalid. Raises ``NotJSON`` if no part of the text resembles JSON.
    Raises ``OSError`` if reading fails.
    """
    head, whole = _head(stream, limit)
    rest = io.BufferedReader(_Chain(head.removeprefix(_MARK), None if whole else stream), _CHUNK)
    match _layout(head.removeprefix(_MARK), limit):
        case "list":
            yield from _pieces(rest, limit, depth=1)
        case "spread":
            yield from _pieces(rest, limit, depth=0)
        case _:
            yield from _lines(rest, limit)


class _Chain(io.RawIOBase):
    """A stream of the bytes that were already read, followed by the rest of the original stream."""

    def __init__(self, head: bytes, stream: BinaryIO | io.FileIO | None) -> None:
        self._head = memoryview(head)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into ``buffer``; return the number of bytes, 0 at the end."""
        size = len(buffer)
        if self._head:
            given = bytes(self._head[:size])
            self._head = self._head[size:]
        else:
            given = _read(self._stream, size) if self._stream is not None else b""
        buffer[: len(given)] = given
        return len(given)


def _read(stream: BinaryIO | io.FileIO, size: int) -> bytes:
    """Return the available bytes, at least one unless the stream has ended. So lines from a pipe are processed on arrival."""
    read = getattr(stream, "read1", stream.read)
    return bytes(read(size))


def _head(stream: BinaryIO | io.FileIO, limit: int) -> tuple[bytes, bool]:
    """Return enough of the stream's beginning to detect the layout of the values, and whether this is the entire stream."""
    head, seen = bytearray(), -1
    while len(head) <= limit:
        chunk = _read(stream, _CHUNK)
        head += chunk
        if not chunk:
            return bytes(head), True
        if seen < 0 and (begin := _first(head)) is not None:
            if head[begin] != 0x7B:  # the layout is known: the text does not begin with an object
                break
            if (seen := head.find(b"\n", max(begin, len(head) - len(chunk)))) >= 0 and _is_value(head[begin:seen]):
                break
    return bytes(head), False


def _first(head: bytearray) -> int | None:
    """Return the offset of the first character that is not whitespace; None if there is no such character so far."""
    text = head[:_CHUNK].removeprefix(_MARK)
    blank = len(text) - len(text.lstrip())
    return None if blank == len(text) else min(len(head), _CHUNK) - len(text) + blank


def _layout(head: bytes, limit: int) -> Literal["list", "spread", "lines"]:
    """Return the layout of the values. It is "lines" if the first line is a value, or if the first value is invalid."""
    text = head.lstrip()
    if text[:1] == b"[":
        return "list"
    if text[:1] != b"{":
        lines = [line.lstrip() for line in text.splitlines()]
        if text and not any(line[:1] == b"{" for line in lines):
            raise NotJSON("csv" if b"," in lines[0] or b"\t" in lines[0] or b";" in lines[0] else "text")
        return "lines"
    first, newline, _ = text.partition(b"\n")
    if not newline or _is_value(first):
        return "lines"
    found = next(_pieces(io.BytesIO(text), limit, depth=0), None)
    return "spread" if found is not None and not found.fault else "lines"


def _is_value(text: bytes | bytearray) -> bool:
    return not _parsed(0, 0, bytes(text)).fault


def _lines(stream: "io.BufferedReader[Any]", limit: int) -> Iterator[Item]:
    number, index = 0, 0
    while line := stream.readline(limit + 1):
        number += 1
        if len(line) > limit and not line.endswith(b"\n"):
            while (more := stream.readline(_CHUNK)) and not more.endswith(b"\n"):
                pass
            yield Item(index, number, fault=_too_long(limit))
        elif line.strip():
            yield _parsed(index, number, line)
        else:
            continue
        index += 1


@define
class _Splitter:
    """Finds the ends of values by brackets and quotes only, so that other errors in the values do not matter.

    ``base`` is the nesting depth of the values: 1 for the elements of a list, otherwise 0.
    """

    base: int
    depth: int = 0
    line: int = 1
    in_string: bool = False
    escaped: bool = False
    ended: bool = False
    more: bool = False

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield the pieces of values in ``chunk``, each with a flag that is True if the value ends after the piece."""
        at = begin = 0
        while at < len(chunk):
            if self.in_string:
                at = self._string(chunk, at)
                continue
            found = (_AT_BASE if self.depth == self.base else _DEEPER).search(chunk, at)
            if found is None:
                break
            at = found.end()
            mark = found[0]
            if mark == b"\n":
                self.line += 1
                if self.depth == self.base and not chunk[begin:at].strip():
                    begin = at
            elif mark[0] == 0x22:
                self.in_string = mark == b'"'
            elif mark in b"{[":
                self.depth += 1
                if self.depth == 1 == self.base:  # the opening bracket of the list
                    begin = at
            elif mark in b"}]":
                self.depth -= 1
                if self.depth < self.base or (self.base == 0 and self.depth <= 0):
                    self.depth = max(self.depth, 0)
                    self.ended = self.base == 1
                    yield chunk[begin : at - (self.base == 1)], True
                    begin = at
                    if self.ended:
                        self.more = bool(chunk[at:].strip())
                        return
            elif self.depth == self.base == 1:  # a comma between elements
                yield chunk[begin : at - 1], True
                begin = at
        if begin < len(chunk):
            yield chunk[begin:], False

    def _string(self, chunk: bytes, at: int) -> int:
        """Continue reading inside a string; return the position up to which ``chunk`` was read."""
        if not self.escaped:
            at = _INSIDE.match(chunk, at).end()  # type: ignore[union-attr]  # the pattern always matches
            if at == len(chunk):
                return at
        mark = chunk[at]
        self.line += mark == 0x0A
        self.in_string = self.escaped or mark != 0x22
        self.escaped = not self.escaped and mark == 0x5C
        return at + 1


def _pieces(stream: Any, limit: int, depth: int) -> Iterator[Item]:
    """Yield the elements of a list (``depth`` 1), or consecutive values that span several lines (``depth`` 0)."""
    splitter, held, size, index, line = _Splitter(depth), list[bytes](), 0, 0, 1
    while not splitter.ended and (chunk := _read(stream, _CHUNK)):
        for piece, ends in splitter.feed(chunk):
            if not size and (text := piece.lstrip()):
                newlines = piece.count(b"\n", 0, len(piece) - len(text))
                line = splitter.line - piece.count(b"\n") + newlines  # ``splitter.line`` is the last line of the piece
            if size or piece.strip():
                size += len(piece)
                if size <= limit:
                    held.append(piece)
            if ends and size:
                text = b"".join(held)
                yield _parsed(index, line, text) if size <= limit else Item(index, line, fault=_too_long(limit))
                index, size = index + 1, 0
                held.clear()
    if depth == 1 and splitter.ended:
        if splitter.more or any(chunk.strip() for chunk in iter(lambda: _read(stream, _CHUNK), b"")):
            yield Item(index, splitter.line, fault="there is text after the end of the list")
        return
    if size:
        last = _parsed(index, line, b"".join(held)) if depth == 1 and size <= limit else None
        whole = last is not None and isinstance(last.value, dict)
        yield (
            last if last is not None and whole else Item(index, line, fault="the text ends before the end of the value")
        )
        index += 1
        if not whole:
            return
    if depth == 1:
        yield Item(index, splitter.line, fault="the closing ] of the list is missing")


def _too_long(limit: int) -> str:
    return f"it is larger than the limit of {limit >> 20} MiB"


def _parsed(index: int, line: int, data: bytes) -> Item:
    """Parse one value."""
    try:
        text = data.decode()
        value = json.loads(text)
        if "\\u" in text or "NaN" in text or "Infinity" in text:
            # Such a string or number in a review makes only that review invalid. Elsewhere it could not be written to the results.
            about = (
                {name: each for name, each in value.items() if name != "reviews"} if isinstance(value, dict) else value
            )
            json.dumps(about, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeDecodeError as error:
        return Item(index, line, fault=f"it is not text in UTF-8 (byte {error.start} is {data[error.start]:#04x})")
    except UnicodeEncodeError:
        return Item(index, line, fault="it contains a lone surrogate (half a character, such as \\ud800)")
    except json.JSONDecodeError as error:
        return Item(index, line, fault=f"it is not JSON: {json_words(error)} (column {error.colno})")
    except RecursionError:
        return Item(index, line, fault="it is nested too deeply")
    except ValueError as error:
        fault = (
            "NaN and Infinity are not JSON numbers" if "JSON compliant" in str(error) else str(error).partition(";")[0]
        )
        return Item(index, line, fault=f"it is not JSON: {fault}")
    return Item(index, line, value)
