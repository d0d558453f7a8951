"""Parses JSON strictly, records positions, and reports faults with fixes.

Trailing commas, comments, single quotes, unescaped quotes inside strings, Python's literals, and prose or fences around the JSON
are reported with exact edits, and parsing continues after them. Repeated keys, NaN, integers of more than 64 bits, unpaired
surrogates, more than 64 levels and more than 4 MiB are rejected. No function is recursive. See
``docs/design/README.md#parsing``.
"""

import json
import math
import re
from typing import Any

from attrs import define, field

from ..diagnostic import Diagnostic, Edit, sort_key
from ..source import Source, Span
from .inner_quotes import Inner, quotes_inside
from .json_tree import (
    CLOSING,
    JsonNode,
    JsonPath,
    JsonRead,
    Scalar,
    StringMap,
    json_fault,
    path_text,
    read_number,
    read_string,
    read_word,
)

__all__ = ["JsonNode", "StringMap", "not_json", "path_text", "read_json"]


MAX_SIZE = 4 * 1024 * 1024
"""Maximum size of a document in bytes of UTF-8."""
MAX_DEPTH = 64
"""Maximum nesting depth of lists and objects."""
MAX_VALUES = 100_000
"""Maximum number of values in one document. This limits the memory that a document needs."""
_MOST_FAULTS = 100

_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|#[^\n]*", re.DOTALL)
_FENCE = re.compile(r"```[ \t]*+[A-Za-z0-9]*+[ \t]*+\r?\n(?P<inside>.*?)```", re.DOTALL)
_PROSE = re.compile(r"[^\W\d]\w*+(?:[ \t]++[^\W\d]\w*+){2}")
"""Three consecutive words after the end of a value."""
_BARE_KEY = re.compile(r"[^\W\d][\w-]*")


def read_json(source: Source | str) -> JsonRead:
    """Read a JSON text. Never raises an error for a faulty text; ``root`` is None if nothing could be read.

    If there are diagnostics, ``root`` is the part that could be read, as if their edits had been applied.
    """
    source = Source(source) if isinstance(source, str) else source
    if len(source.text) > MAX_SIZE or len(source.text.encode("utf-8", "surrogatepass")) > MAX_SIZE:
        message = f"the document is larger than {MAX_SIZE // 1024**2} MiB"
        return JsonRead(None, source, (json_fault("JSON011", message, 0, 0),))
    reader = _Reader(source.text)
    root = reader.document()
    return JsonRead(root, source, tuple(sorted(reader.found, key=sort_key)))


class _Stop(Exception):
    """Raised if parsing cannot continue; the fault has already been recorded."""


@define
class _Open:
    """An object or a list that is still being read."""

    start: int
    is_object: bool
    fields: dict[str, JsonNode] = field(factory=dict)
    keys: dict[str, Span] = field(factory=dict)
    items: list[JsonNode] = field(factory=list)
    key: str = ""
    comma: int | None = None
    """The offset of the last comma, if nothing follows it yet."""

    def put(self, node: JsonNode) -> None:
        if self.is_object:
            self.fields[self.key] = node
        else:
            self.items.append(node)
        self.comma = None

    @property
    def last(self) -> JsonNode:
        """Return the value that was added last."""
        return self.fields[self.key] if self.is_object else self.items[-1]

    def replace(self, node: JsonNode) -> None:
        """Replace the value that was added last with ``node``."""
        if self.is_object:
            self.fields[self.key] = node
        else:
            self.items[-1] = node

    def closed(self, end: int) -> JsonNode:
        if self.is_object:
            value: Any = {key: node.value for key, node in self.fields.items()}
        else:
            value = [node.value for node in self.items]
        return JsonNode(value, self.start, end, self.fields, self.keys, self.items)


@define
class _Reader:
    text: str
    found: list[Diagnostic] = field(factory=list)
    at: int = 0
    end: int = 0
    stack: list[_Open] = field(factory=list)
    values: int = 0

    def document(self) -> JsonNode | None:
        try:
            self._choose_range()
            root = self._value()
            self._nothing_behind()
        except _Stop:
            return None
        return root

    def note(self, code: str, message: str, start: int, end: int, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        self._keep(json_fault(code, message, start, end, *hints, edits=edits))

    def _keep(self, diagnostic: Diagnostic) -> None:
        self.found.append(diagnostic)
        if len(self.found) >= _MOST_FAULTS:
            raise _Stop

    def stop(self, code: str, message: str, start: int, end: int, *hints: str) -> _Stop:
        """Record a fault after which reading cannot continue, and return the exception to raise."""
        self.found.append(json_fault(code, message, start, end, *hints))
        return _Stop()

    # Text around the document

    def _choose_range(self) -> None:
        """Find the start and the end of the JSON document in the text. A model may write prose and fences around the document."""
        text = self.text
        self.end = len(text)
        if text.startswith("\ufeff"):
            self.note("JSON002", "the document begins with a byte order mark", 0, 1, edits=(Edit(Span(0, 1), ""),))
            self.at = 1
        self._skip()
        if self.at < self.end and text[self.at] in "{[":
            return
        begin = self.at
        fence = _FENCE.search(text, begin)
        if fence and fence["inside"].strip()[:1] in ("{", "[") and fence["inside"].strip():
            start = fence.start("inside")
            stop = start + len(fence["inside"].rstrip(" \t").removesuffix("\n"))
            what = "code fence around the document"
            edits = (Edit(Span(begin, start), ""), Edit(Span(stop, self.end), ""))
            self.note("JSON002", what, fence.start(), fence.start() + 3, "remove everything but the JSON", edits=edits)
            self.at, self.end = start, stop
            return
        places = [place for place in (text.find("{", begin), text.find("[", begin)) if place >= 0]
        if self._is_scalar() or not places:
            return
        start = text.find("{", begin) if "{" in text[begin:] else min(places)
        edit = Edit(Span(begin, start), "")
        self.note("JSON002", "text before the document", begin, start, "remove everything but the JSON", edits=(edit,))
        self.at = start

    def _is_scalar(self) -> bool:
        """Return whether the complete text is a string, a number or a word."""
        try:
            json.loads(self.text[self.at :].strip()[:MAX_SIZE], parse_int=float)
        except (ValueError, RecursionError):
            return False
        return True

    def _nothing_behind(self) -> None:
        self._skip()
        if self.at < self.end:
            edit = Edit(Span(self.at, len(self.text)), "\n")
            hint = "remove everything but the JSON"
            self.note("JSON002", "text after the document", self.at, self.end, hint, edits=(edit,))

    # The contents of the document

    def _skip(self) -> None:
        """Skip white space and comments. Report the comments, because JSON does not allow them."""
        while True:
            blank = _BLANK.match(self.text, self.at, self.end)
            self.at = blank.end() if blank else self.at
            if self.at >= self.end or self.text[self.at] not in "/#":
                return
            comment = _COMMENT.match(self.text, self.at, self.end)
            if comment is None:
                return
            edit = Edit(Span(*comment.span()), "")
            self.note("JSON004", "JSON does not allow comments", *comment.span(), "remove it", edits=(edit,))
            self.at = comment.end()

    def _path(self) -> JsonPath:
        """Return the path of the value at the current position."""
        return [open_.key if open_.is_object else len(open_.items) for open_ in self.stack]

    def _last_path(self) -> JsonPath:
        """Return the path of the last value read."""
        path = list(self._path())
        last = path[-1]
        return [*path[:-1], last - 1 if isinstance(last, int) else last]

    def _value(self) -> JsonNode:
        """Read one value with all its contents."""
        while True:
            node = self._scalar_or_opening()
            while node is not None:
                if not self.stack:
                    return node
                self.stack[-1].put(node)
                node = self._next_or_closing()

    def _scalar_or_opening(self) -> JsonNode | None:
        """Return a scalar, or an empty object or list. At any other object or list, go to its first value and return None."""
        self._skip()
        text, at = self.text, self.at
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.stop("JSON011", f"the document has more than {MAX_VALUES:,} values", at, at + 1)
        if at >= self.end:
            raise self._unfinished()
        c = text[at]
        if c in "{[":
            if len(self.stack) >= MAX_DEPTH:
                raise self.stop("JSON011", f"the document is nested more than {MAX_DEPTH} levels deep", at, at + 1)
            self.stack.append(_Open(at, c == "{"))
            self.at += 1
            return self._first()
        scalar = self._scalar(c)
        if scalar.fault:
            self._keep(scalar.fault)
        self.at = scalar.end
        return JsonNode(scalar.value, at, scalar.end, faulty=scalar.fault is not None)

    def _scalar(self, c: str) -> Scalar:
        if c in CLOSING:
            scalar = read_string(self.text, self.at)
            if scalar is None or scalar.end > self.end:
                raise self.stop("JSON010", "a string has no closing quote", self.at, self.at + 1)
            return scalar
        if c in "-+.0123456789":
            return read_number(self.text, self.at)
        word = read_word(self.text, self.at)
        if word is None:
            place = path_text(self._path())
            raise self.stop("JSON001", f"a value is missing at {place}" if self.stack else "this is not JSON",
                            self.at, self.at + 1)  # fmt: skip
        if not self.stack and isinstance(word.value, str):
            raise self.stop("JSON001", "this is not JSON", self.at, word.end, "a document must begin with `{` or `[`")
        return word

    def _first(self) -> JsonNode | None:
        """Go to the first value of the object or list that was just opened. If it is empty, close it and return it."""
        self._skip()
        open_ = self.stack[-1]
        if self.at < self.end and self.text[self.at] == ("}" if open_.is_object else "]"):
            return self._close()
        if open_.is_object:
            self._key(open_)
        return None

    def _next_or_closing(self) -> JsonNode | None:
        """Read the text after a value: up to the next value, or through the closing bracket. Return the closed object or list, or None."""
        open_ = self.stack[-1]
        close = "}" if open_.is_object else "]"
        value_end = self.at
        self._skip()
        if self.at >= self.end:
            raise self._unfinished(whole=True)
        if self.text[self.at] == ",":
            comma = self.at
            while self.at < self.end and self.text[self.at] == ",":
                self.at += 1
                self._skip()
            if self.at < self.end and self.text[self.at] == close:
                edit = Edit(Span(comma, self.at), self.text[comma : self.at].replace(",", ""))
                self.note("JSON003", f"surplus comma before the closing `{close}`", comma, comma + 1, edits=(edit,))
                return self._close()
            if (extra := self.text.count(",", comma, self.at)) > 1 and "/" not in self.text[comma : self.at]:
                edit = Edit(Span(comma, self.at), self.text[comma : self.at].replace(",", "", extra - 1))
                self.note("JSON003", "surplus comma", comma, comma + 1, edits=(edit,))
        elif self.text[self.at] == close:
            return self._close()
        elif self.text[self.at] in "}]":
            raise self.stop(
                "JSON010", f"a `{close}` is missing before this `{self.text[self.at]}`", self.at, self.at + 1,
                f"it would close {path_text(self._path()[:-1])}",
            )  # fmt: skip
        elif self.at == value_end and (inner := self._inner_quotes(open_.last.start, value_end)) is not None:
            open_.replace(JsonNode(inner.value, open_.last.start, inner.end, faulty=True))
            self.at = inner.end
            return self._next_or_closing()
        elif _PROSE.match(self.text, self.at, self.end):
            raise self._left_for_prose()
        elif self._begins_something():
            edit = Edit(Span(value_end, value_end), ",")
            where = path_text(self._last_path())
            self.note("JSON003", f"a comma is missing after {where}", self.at, self.at + 1, edits=(edit,))
        else:
            raise self.stop("JSON001", f"unexpected `{self.text[self.at]}` after {path_text(self._last_path())}",
                            self.at, self.at + 1)  # fmt: skip
        if open_.is_object:
            self._key(open_)
        return None

    def _inner_quotes(self, start: int, at: int) -> Inner | None:
        """Report the unescaped quotes inside a string.

        The string seems to end at ``at``, after the first of these quotes. Return None for other text.

        If it is unclear which quotes are inner quotes, parsing stops without an edit: otherwise the pieces would be misread as separate
        strings.
        """
        if self.text[start] != '"' or (inner := quotes_inside(self.text, start, at, self.end)) is None:
            return None
        where = path_text(self._last_path())
        hint = 'write `\\"` inside a string'
        if not inner.end:
            raise self.stop("JSON012", f"a quote inside {where} needs a backslash before it", at - 1, at, hint)
        edits = tuple(Edit(Span(place, place), "\\") for place in inner.quotes)
        message = f"each quote inside {where} needs a backslash before it"
        self.note("JSON012", message, inner.quotes[0], inner.quotes[-1] + 1, hint, edits=edits)
        return inner

    def _begins_something(self) -> bool:
        c = self.text[self.at]
        return c in '{["' or c in CLOSING or c.isalnum() or c in "-_"

    def _close(self) -> JsonNode:
        self.at += 1
        return self.stack.pop().closed(self.at)

    def _key(self, open_: _Open) -> None:
        """Read a key and its colon."""
        start = self.at
        if start >= self.end:
            raise self._unfinished()
        bare = _BARE_KEY.match(self.text, start, self.end)
        if self.text[start] in CLOSING:
            scalar = self._scalar(self.text[start])
            if scalar.fault:
                self._keep(scalar.fault)
            key, self.at = scalar.value, scalar.end
        elif bare:
            key, self.at = bare[0], bare.end()
            edit = Edit(Span(start, self.at), json.dumps(key, ensure_ascii=False))
            self.note("JSON005", f"the key `{key[:40]}` has no quotes", start, self.at, edits=(edit,))
        else:
            raise self.stop("JSON001", "a key in double quotes is missing", start, start + 1)
        if key in open_.fields:
            open_.key = key
            message = f"duplicate key {path_text(self._path())}"
            self.note("JSON009", message, start, self.at, "remove one of them, because one value would be lost")
        open_.key = key
        open_.keys[key] = Span(start, self.at)
        end = self.at
        self._skip()
        if self.at < self.end and self.text[self.at] == ":":
            self.at += 1
        elif self.at < self.end and self.text[self.at] == "=":
            edit = Edit(Span(self.at, self.at + 1), ":")
            self.note("JSON003", "a colon must separate key and value", self.at, self.at + 1, edits=(edit,))
            self.at += 1
        elif self.at < self.end and self._begins_something():
            edit = Edit(Span(end, end), ":")
            self.note(
                "JSON003", f"a colon is missing after the key {path_text(self._path())}", start, end, edits=(edit,)
            )
        elif self.at >= self.end:
            raise self._unfinished()
        else:
            raise self.stop("JSON001", f"a colon is missing after the key {path_text(self._path())}", start, end)

    def _unfinished(self, whole: bool = False) -> _Stop:
        """Report that the text ends too early, because an incomplete text is never accepted.

        ``whole`` is true if the last value is complete.
        """
        if not self.stack:
            return self.stop(
                "JSON001", "the document is empty", 0, min(1, len(self.text)), "a document must begin with `{` or `[`"
            )
        open_ = self.stack[-1]
        what = path_text(self._path()[:-1])
        close = "}" if open_.is_object else "]"
        message = f"the text ends before the `{close}` of {what}"
        hints = ["the text may have been cut off"]
        if whole:
            hints.append(f"if nothing else is missing, write `{self._closing()}` at the end")
        return self.stop("JSON010", message, open_.start, open_.start + 1, *hints)

    def _left_for_prose(self) -> _Stop:
        """Report prose inside an open object or list.

        Without this report, its words would be read as unquoted values with missing commas.
        """
        message = f"prose begins before the `{self._closing()[0]}` of {path_text(self._path()[:-1])}"
        hint = f"if nothing else is missing, replace it with `{self._closing()}`"
        return self.stop("JSON010", message, self.at, self.end, hint)

    def _closing(self) -> str:
        """Return the brackets that close all open objects and lists."""
        return "".join("}" if each.is_object else "]" for each in reversed(self.stack))


# Checks whether a Python object can be written as a JSON document.


def not_json(document: Any) -> str | None:
    """Return the reason why a Python object cannot be written as JSON, or None if it can. A cycle counts as too deep."""
    stack: list[tuple[Any, int]] = [(document, 0)]
    seen = 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            return f"it is nested more than {MAX_DEPTH} levels deep" if depth > MAX_DEPTH else "it has too many values"
        if isinstance(value, dict):
            if odd := next((key for key in value if not isinstance(key, str)), None):
                return f"the key {odd!r:.40} is not a string"
            stack += [(inner, depth + 1) for inner in value.values()]
        elif isinstance(value, list | tuple):
            stack += [(inner, depth + 1) for inner in value]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{value} is not a JSON number"
        elif value is not None and not isinstance(value, str | int | float):
            return f"a {type(value).__name__} is not a JSON value"
    return None
