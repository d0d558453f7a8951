"""Reads JSON with positions, strictly, and says what is wrong with it so that it can be put right.

Trailing commas, comments, single quotes, quotes inside texts, Python's literals, prose and fences around are told with exact
edits, and reading goes on behind them. Refused: a key twice, NaN, integers over 64 bits, half surrogate pairs, more than 64
levels, more than 4 MiB. Nothing recurses. See ``docs/design/README.md#parsing``.
"""

import json
import math
import re
from itertools import islice
from typing import Any, NamedTuple

from attrs import define, field

from ..diagnostic import Diagnostic, Edit, sort_key
from ..source import Source, Span
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


# Finds the quotes that a model wrote inside a JSON text without their backslashes: ``"say "yes" to it"``.
# Nothing is taken for one that a missing comma or a missing quote explains as well: each pair has to stand as quotes do in writing,
# and the text has to end on the same line where JSON goes on.

_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*+(?P<quote>")')
_GOES_ON = re.compile(r"[ \t]*+(?:,?[ \t]*+\r?\n|[,}\]])")
"""What follows a text that ends: a comma, a closing bracket, the end of the line."""
_BEFORE_OPENING = frozenset(" \t(=<>[{,'")
_AFTER_CLOSING = frozenset(" \t)]}.;!?'\"-")
_NEVER_INSIDE = frozenset(" \t\r\n(=<>[{,:")
"""What no quotation ends with; most of it begins none either."""
_OPENING, _CLOSING = re.compile(r"[(\[{]"), re.compile(r"[)\]}]")
_FAR = 10_000
"""Characters behind the first quote that are looked at."""
_MOST = 100
"""Quotes inside one text; with more it is no slip."""


class Inner(NamedTuple):
    """Where the quotes inside a text stand, where the text ends (0: not to be told), and what it says with their backslashes."""

    quotes: tuple[int, ...]
    end: int = 0
    value: str = ""


def quotes_inside(text: str, start: int, at: int, end: int) -> Inner | None:
    """Look whether the text that began at ``start`` was not over at ``at``, right behind the quote that seemed to end it.

    None where that quote does not look like one that opens a quotation. Looks no further than the line and ``end``.
    """
    if not _opens(text, at - 1, end) and at - 1 != start + 1:
        return None
    stop = text.find("\n", at, min(end, at + _FAR))
    stop = min(end, at + _FAR) if stop < 0 else stop
    quotes, depth, seen = [at - 1], 0, start
    for found in islice(_QUOTE.finditer(text, at, stop), _MOST):
        place = found.start("quote")
        depth += len(_OPENING.findall(text, seen, place)) - len(_CLOSING.findall(text, seen, place))
        seen, closing = place, len(quotes) % 2 == 1
        # Inside brackets a quote and a comma are a list in the text, ("a", "b"), and end nothing.
        if depth <= 0 and _GOES_ON.match(text, place + 1, end):
            return _whole(text, start, quotes, place) if not closing else Inner(tuple(quotes))
        if not (_closes if closing else _opens)(text, place, end):
            break
        quotes.append(place)
    return Inner(tuple(quotes))


def _whole(text: str, start: int, quotes: list[int], last: int) -> Inner:
    """Return the text up to its last quote; unsure where backslashes alone don't make it JSON."""
    pieces = [text[begin:end] for begin, end in zip([start, *quotes], [*quotes, last + 1], strict=True)]
    read = read_string("\\".join(pieces), 0)
    if read is None or read.fault is not None:
        return Inner(tuple(quotes))
    return Inner(tuple(quotes), last + 1, read.value)


def _opens(text: str, at: int, end: int) -> bool:
    """Say whether the quote at ``at`` stands as one that opens a quotation: something before it, a word behind."""
    following = text[at + 1 : at + 2] if at + 1 < end else ""
    return text[at - 1] in _BEFORE_OPENING and bool(following) and following not in _NEVER_INSIDE | _AFTER_CLOSING


def _closes(text: str, at: int, end: int) -> bool:
    """Say whether the quote at ``at`` stands as one that closes a quotation: a word before it, none behind."""
    following = text[at + 1 : at + 2] if at + 1 < end else ""
    # A comma behind it is one of a list in brackets: everywhere else the text would end there.
    return text[at - 1] not in _NEVER_INSIDE and (following in _AFTER_CLOSING or following == ",") and bool(following)


MAX_SIZE = 4 * 1024 * 1024
"""Bytes of UTF-8."""
MAX_DEPTH = 64
"""Lists and objects inside one another."""
MAX_VALUES = 100_000
"""Values in one document: a bound on memory."""
_MOST_FAULTS = 100

_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|#[^\n]*", re.DOTALL)
_FENCE = re.compile(r"```[ \t]*+[A-Za-z0-9]*+[ \t]*+\r?\n(?P<inside>.*?)```", re.DOTALL)
_PROSE = re.compile(r"[^\W\d]\w*+(?:[ \t]++[^\W\d]\w*+){2}")
"""Three words in a row, where a value has ended."""
_BARE_KEY = re.compile(r"[^\W\d][\w-]*")


def read_json(source: Source | str) -> JsonRead:
    """Read a JSON text. Never raises for what the text says; ``root`` is None where nothing could be made of it.

    Where there are diagnostics, ``root`` is what the text says once their edits are made, as far as it was understood.
    """
    source = Source(source) if isinstance(source, str) else source
    if len(source.text) > MAX_SIZE or len(source.text.encode("utf-8", "surrogatepass")) > MAX_SIZE:
        message = f"the document is larger than {MAX_SIZE // 1024**2} MiB"
        return JsonRead(None, source, (json_fault("JSON011", message, 0, 0),))
    reader = _Reader(source.text)
    root = reader.document()
    return JsonRead(root, source, tuple(sorted(reader.found, key=sort_key)))


class _Stop(Exception):
    """Reading can't go on; what is wrong was noted."""


@define
class _Open:
    """An object or a list that is being read."""

    start: int
    is_object: bool
    fields: dict[str, JsonNode] = field(factory=dict)
    keys: dict[str, Span] = field(factory=dict)
    items: list[JsonNode] = field(factory=list)
    key: str = ""
    comma: int | None = None
    """Where the comma stands that was read last, with nothing behind it yet."""

    def put(self, node: JsonNode) -> None:
        if self.is_object:
            self.fields[self.key] = node
        else:
            self.items.append(node)
        self.comma = None

    @property
    def last(self) -> JsonNode:
        """What was put in last."""
        return self.fields[self.key] if self.is_object else self.items[-1]

    def replace(self, node: JsonNode) -> None:
        """Put ``node`` where what was put in last stands."""
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
        """Note a fault behind which nothing can be read, and return what to raise."""
        self.found.append(json_fault(code, message, start, end, *hints))
        return _Stop()

    # What stands around

    def _choose_range(self) -> None:
        """Find where the document begins and ends: a model writes prose and fences around it."""
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
            what = "a code fence stands around the document"
            edits = (Edit(Span(begin, start), ""), Edit(Span(stop, self.end), ""))
            self.note("JSON002", what, fence.start(), fence.start() + 3, "leave out all but the JSON", edits=edits)
            self.at, self.end = start, stop
            return
        places = [place for place in (text.find("{", begin), text.find("[", begin)) if place >= 0]
        if self._is_scalar() or not places:
            return
        start = text.find("{", begin) if "{" in text[begin:] else min(places)
        edit = Edit(Span(begin, start), "")
        self.note(
            "JSON002", "text stands before the document", begin, start, "leave out all but the JSON", edits=(edit,)
        )
        self.at = start

    def _is_scalar(self) -> bool:
        """Say whether the text as a whole is a string, a number or a word."""
        try:
            json.loads(self.text[self.at :].strip()[:MAX_SIZE], parse_int=float)
        except (ValueError, RecursionError):
            return False
        return True

    def _nothing_behind(self) -> None:
        self._skip()
        if self.at < self.end:
            edit = Edit(Span(self.at, len(self.text)), "\n")
            hint = "leave out all but the JSON"
            self.note("JSON002", "text stands behind the document", self.at, self.end, hint, edits=(edit,))

    # What stands in it

    def _skip(self) -> None:
        """Go over blanks, and over comments, which JSON doesn't have."""
        while True:
            blank = _BLANK.match(self.text, self.at, self.end)
            self.at = blank.end() if blank else self.at
            if self.at >= self.end or self.text[self.at] not in "/#":
                return
            comment = _COMMENT.match(self.text, self.at, self.end)
            if comment is None:
                return
            edit = Edit(Span(*comment.span()), "")
            self.note("JSON004", "JSON has no comments", *comment.span(), "leave it out", edits=(edit,))
            self.at = comment.end()

    def _path(self) -> JsonPath:
        """Return where reading is."""
        return [open_.key if open_.is_object else len(open_.items) for open_ in self.stack]

    def _last_path(self) -> JsonPath:
        """Return where the value stands that was read last."""
        path = list(self._path())
        last = path[-1]
        return [*path[:-1], last - 1 if isinstance(last, int) else last]

    def _value(self) -> JsonNode:
        """Read a whole value, whatever is in it."""
        while True:
            node = self._scalar_or_opening()
            while node is not None:
                if not self.stack:
                    return node
                self.stack[-1].put(node)
                node = self._next_or_closing()

    def _scalar_or_opening(self) -> JsonNode | None:
        """Read a scalar, or go into an object or a list up to its first value; return it if it is empty."""
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
                raise self.stop("JSON011", f"the document is nested deeper than {MAX_DEPTH} levels", at, at + 1)
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
            raise self.stop("JSON001", f"a value is missing at {place}" if self.stack else "this is no JSON",
                            self.at, self.at + 1)  # fmt: skip
        if not self.stack and isinstance(word.value, str):
            raise self.stop("JSON001", "this is no JSON", self.at, word.end, "a document begins with `{` or `[`")
        return word

    def _first(self) -> JsonNode | None:
        """Go to the first value of what was just opened; close it if there is none."""
        self._skip()
        open_ = self.stack[-1]
        if self.at < self.end and self.text[self.at] == ("}" if open_.is_object else "]"):
            return self._close()
        if open_.is_object:
            self._key(open_)
        return None

    def _next_or_closing(self) -> JsonNode | None:
        """Read what follows a value: a comma and the way to the next value, or the closing bracket."""
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
                self.note("JSON003", f"a comma stands before the closing `{close}`", comma, comma + 1, edits=(edit,))
                return self._close()
            if (extra := self.text.count(",", comma, self.at)) > 1 and "/" not in self.text[comma : self.at]:
                edit = Edit(Span(comma, self.at), self.text[comma : self.at].replace(",", "", extra - 1))
                self.note("JSON003", "there is a comma too many", comma, comma + 1, edits=(edit,))
        elif self.text[self.at] == close:
            return self._close()
        elif self.text[self.at] in "}]":
            raise self.stop(
                "JSON010", f"a `{close}` is missing before this `{self.text[self.at]}`", self.at, self.at + 1,
                f"what it would close is {path_text(self._path()[:-1])}",
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
            raise self.stop("JSON001", f"`{self.text[self.at]}` can't follow {path_text(self._last_path())}",
                            self.at, self.at + 1)  # fmt: skip
        if open_.is_object:
            self._key(open_)
        return None

    def _inner_quotes(self, start: int, at: int) -> Inner | None:
        """Tell the quotes inside a text, the first of which has cut it short at ``at``; None where none has.

        Where it isn't plain which quotes are inside, nothing is offered and nothing read on: the pieces would pass for texts.
        """
        if self.text[start] != '"' or (inner := quotes_inside(self.text, start, at, self.end)) is None:
            return None
        where = path_text(self._last_path())
        hint = 'write `\\"` inside a text'
        if not inner.end:
            raise self.stop("JSON012", f"a quote inside {where} needs a backslash before it", at - 1, at, hint)
        edits = tuple(Edit(Span(place, place), "\\") for place in inner.quotes)
        message = f"the quotes inside {where} need a backslash before each"
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
            self.note("JSON005", f"the key `{key[:40]}` stands without quotes", start, self.at, edits=(edit,))
        else:
            raise self.stop("JSON001", "a key is missing: a text in double quotes", start, start + 1)
        if key in open_.fields:
            open_.key = key
            message = f"the key {path_text(self._path())} stands twice"
            self.note("JSON009", message, start, self.at, "one of the two would be lost: leave one out")
        open_.key = key
        open_.keys[key] = Span(start, self.at)
        end = self.at
        self._skip()
        if self.at < self.end and self.text[self.at] == ":":
            self.at += 1
        elif self.at < self.end and self.text[self.at] == "=":
            edit = Edit(Span(self.at, self.at + 1), ":")
            self.note("JSON003", "a key and its value have a colon between them", self.at, self.at + 1, edits=(edit,))
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
        """Say where the text ends too early, ``whole``: behind a value; the beginning of something is never taken for the whole."""
        if not self.stack:
            return self.stop(
                "JSON001", "there is no JSON here", 0, min(1, len(self.text)), "a document begins with `{` or `[`"
            )
        open_ = self.stack[-1]
        what = path_text(self._path()[:-1])
        close = "}" if open_.is_object else "]"
        message = f"the text ends before the `{close}` of {what}"
        hints = ["an answer that was cut off ends like this"]
        if whole:
            hints.append(f"if nothing else is missing, write `{self._closing()}` at the end")
        return self.stop("JSON010", message, open_.start, open_.start + 1, *hints)

    def _left_for_prose(self) -> _Stop:
        """Say that prose begins where something is open: its words are no values that lack quotes and commas."""
        message = f"prose begins before the `{self._closing()[0]}` of {path_text(self._path()[:-1])}"
        hint = f"if nothing else is missing, write `{self._closing()}` instead of it"
        return self.stop("JSON010", message, self.at, self.end, hint)

    def _closing(self) -> str:
        """Return the brackets that close all that is open."""
        return "".join("}" if each.is_object else "]" for each in reversed(self.stack))


# Says whether a Python object is a JSON document, before it is written as one.


def not_json(document: Any) -> str | None:
    """Say what keeps a Python object from being JSON, or return None. A cycle is a depth without end."""
    stack: list[tuple[Any, int]] = [(document, 0)]
    seen = 0
    while stack:
        value, depth = stack.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            return f"it is nested deeper than {MAX_DEPTH} levels" if depth > MAX_DEPTH else "it has too many values"
        if isinstance(value, dict):
            if odd := next((key for key in value if not isinstance(key, str)), None):
                return f"the key {odd!r:.40} is no text"
            stack += [(inner, depth + 1) for inner in value.values()]
        elif isinstance(value, list | tuple):
            stack += [(inner, depth + 1) for inner in value]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{value} is no number of JSON"
        elif value is not None and not isinstance(value, str | int | float):
            return f"a {type(value).__name__} is no JSON value"
    return None
