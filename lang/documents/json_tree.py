"""A JSON document as a tree with positions, and a mapping from positions in a string's value to positions in the file."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from attrs import field, frozen

from ..diagnostic import Diagnostic, Edit
from ..source import Source, Span

JsonPath: TypeAlias = Sequence[str | int]
"""The path from the root to a value: keys and indexes."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def path_text(path: JsonPath) -> str:
    """Return a path for a message, such as ``commands[3].why``. An unusual key is quoted; the root is ``the document``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif len(part) <= 100 and _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            shown = part if len(part) <= 40 else part[:39] + "…"
            text += f"[{json.dumps(shown, ensure_ascii=False)}]"
    return text or "the document"


@frozen(eq=False)
class JsonNode:
    """A value with its span. ``value`` is plain JSON (dict, list, str, int, float, bool, None).

    For an object, ``fields`` maps its keys to values and ``keys`` maps them to their spans. For a list, ``items`` are its values.
    ``faulty`` is true if the text of a scalar has a fault; its value is then a guess or null.
    """

    value: Any
    start: int
    end: int
    fields: Mapping[str, "JsonNode"] = field(factory=dict, repr=False)
    keys: Mapping[str, Span] = field(factory=dict, repr=False)
    items: Sequence["JsonNode"] = field(default=(), repr=False)
    faulty: bool = False

    @property
    def span(self) -> Span:
        """Return the span of the value."""
        return Span(self.start, self.end)

    def at(self, path: JsonPath) -> "JsonNode | None":
        """Return the node at ``path``, or None."""
        node: JsonNode | None = self
        for part in path:
            if node is None:
                return None
            node = node.fields.get(part) if isinstance(part, str) else _element(node.items, part)
        return node

    def nearest_span(self, path: JsonPath) -> Span:
        """Return the span of the value at ``path``.

        If that value is missing, return the span of the innermost value that would contain it.
        """
        node = self
        for part in path:
            below = node.at((part,))
            if below is None:
                return node.span
            node = below
        return node.span

    def key_span(self, path: JsonPath) -> Span | None:
        """Return the span of the key of the field at ``path``, or None."""
        parent = self.at(path[:-1])
        last = path[-1] if path else None
        return parent.keys.get(last) if parent is not None and isinstance(last, str) else None


def _element(items: Sequence[JsonNode], index: int) -> JsonNode | None:
    return items[index] if 0 <= index < len(items) else None


@frozen
class JsonRead:
    """Result of reading a JSON text: the tree, and the diagnostics.

    The tree is the part that could be read, or None if nothing could be read.
    """

    root: JsonNode | None
    source: Source
    diagnostics: tuple[Diagnostic, ...] = ()


_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


@frozen(slots=False)
class StringMap:
    """Maps offsets in the value of a string to offsets in the file. In the file, the string may contain escapes.

    ``text`` is the complete file, and ``span`` is the span of the string literal with its quotes.
    """

    text: str = field(repr=False)
    span: Span

    @cached_property
    def _breaks(self) -> tuple[list[int], list[int]]:
        """Return two lists of offsets: where each escape ends in the value, and where it ends in the file."""
        decoded, raw = [0], [self.span.start + 1]
        position, end = self.span.start + 1, self.span.end - 1
        for begin, stop in self._escapes(position, end):
            decoded.append(decoded[-1] + (begin - position) + 1)
            raw.append(stop)
            position = stop
        return decoded, raw

    def _escapes(self, position: int, end: int) -> Iterator[tuple[int, int]]:
        find = self.text.find
        while (at := find("\\", position, end)) >= 0:
            match = _SURROGATES.match(self.text, at, end) or _ESCAPE.match(self.text, at, end)
            position = match.end() if match else at + 1
            yield at, position

    def offset(self, offset: int) -> int:
        """Return the offset in the file for ``offset`` in the value of the string.

        The end of the value corresponds to the closing quote.
        """
        decoded, raw = self._breaks
        at = bisect_right(decoded, offset) - 1
        return min(raw[at] + offset - decoded[at], self.span.end - 1)

    def located(self, span: Span) -> Span:
        """Return the span in the file for a span in the value of the string."""
        start = self.offset(span.start)
        return Span(start, max(start, self.offset(span.end)))

    def edit(self, edit: Edit) -> Edit:
        """Return the edit of the file for an edit of the value of the string. The text of the edit is escaped."""
        quote = self.text[self.span.start : self.span.start + 1]
        text = json.dumps(edit.text, ensure_ascii=False)[1:-1]
        return Edit(self.located(edit.span), text.replace("'", "\\'") if quote == "'" else text)


# Reads the scalars of a JSON text (strings, numbers and words), and recognizes their common faults.
# Each function reads the text at an offset, and returns the value, its end, and a fault with exact edits or None.

CLOSING = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201e": "\u201c", "\u2018": "\u2019"}
"""Maps opening quotes of strings to closing quotes. JSON allows only the first pair."""

_STRING = re.compile(r'"[^"\\\x00-\x1f\ud800-\udfff]*"')
_BODY = {
    quote: re.compile(rf"(?:[^{re.escape(close)}\\]++|\\.)*+{re.escape(close)}", re.DOTALL)
    for quote, close in CLOSING.items()
}
_FAULTY = re.compile(r'[\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\.?', re.DOTALL)
_LONE = re.compile(r"[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBERISH = re.compile(r"[+-]?(?:Infinity|NaN|[0-9.][0-9A-Za-z_.+-]*)")
_WORD = re.compile(r"[^\W\d]\w*")

_WORDS = {"true": True, "false": False, "null": None}
_MEANT = {"True": True, "False": False, "None": None, "TRUE": True, "FALSE": False, "NULL": None, "Null": None,
          "undefined": None, "nil": None}  # fmt: skip
_MOST_EDITS = 200
"""Maximum number of edits in one string. More faults are not typing errors."""


class Scalar(NamedTuple):
    """A value, the offset of the end of its text, and its fault or None."""

    value: Any
    end: int
    fault: Diagnostic | None = None


def json_fault(code: str, message: str, start: int, end: int, *hints: str, edits: tuple[Edit, ...] = ()) -> Diagnostic:
    """Return an error at ``[start, end)``."""
    return Diagnostic(code, "error", message, Span(start, end), tuple(hint for hint in hints if hint), edits)


def read_string(text: str, at: int) -> Scalar | None:
    """Read the string whose opening quote is at ``at``; any kind of quote is accepted. Return None if the string is not closed."""
    match = _STRING.match(text, at)
    if match:
        return Scalar(text[at + 1 : match.end() - 1], match.end())
    quote = text[at]
    body = _BODY[quote].match(text, at + 1)
    if body is None:
        return None
    end = body.end()
    raw = text[at + 1 : end - 1]
    if quote == '"':
        try:
            value = json.loads(text[at:end])
        except ValueError:
            return _repaired(text, at, end)
        return _string_of(value, at, end)
    value = _decoded(raw)
    edits = () if _LONE.search(value) else (Edit(Span(at, end), json.dumps(value, ensure_ascii=False)),)
    kind = "single" if quote == "'" else "typographic"
    fault = json_fault("JSON005", f"a string has {kind} quotes", at, end, "JSON needs double quotes", edits=edits)
    return Scalar(value, end, fault)


def _string_of(value: str, at: int, end: int) -> Scalar:
    if _LONE.search(value):
        message = "a string contains a lone surrogate, which is not valid text"
        return Scalar(_LONE.sub("\ufffd", value), end, json_fault("JSON008", message, at, end))
    return Scalar(value, end)


def _repaired(text: str, at: int, end: int) -> Scalar:
    """Return the value of a string that contains raw control characters or invalid escapes, and the edits that fix it."""
    edits: list[Edit] = []
    first = at
    for match in _FAULTY.finditer(text, at + 1, end - 1):
        found = match[0]
        if len(found) > 1 and (found[1] in '"\\/bfnrt' or len(found) == 6):
            continue
        new = json.dumps(found)[1:-1] if found < " " else "'" if found == "\\'" else "\\" + found
        if not edits:
            first = match.start()
        edits.append(Edit(Span(*match.span()), new))
    raw = text[first : first + 1]
    if raw < " ":
        what = {"\n": "a line break", "\t": "a tab", "\r": "a carriage return"}.get(raw, "a control character")
        message, hint = f"a string contains {what}", f"write `{json.dumps(raw)[1:-1]}`"
    else:
        message = f"unknown escape `{text[first : first + 2]}`"
        hint = "write `\\\\` for a backslash"
    fixes = tuple(edits) if len(edits) <= _MOST_EDITS else ()
    return Scalar(
        _decoded(text[at + 1 : end - 1]), end, json_fault("JSON008", message, first, first + 1, hint, edits=fixes)
    )


_DECODE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/", "'": "'"}


def _decoded(raw: str) -> str:
    """Return the most likely value of a faulty string."""

    def character(match: re.Match[str]) -> str:
        body = match[1]
        return chr(int(body[1:], 16)) if len(body) == 5 else _SIMPLE.get(body, match[0])

    value = _DECODE.sub(character, raw)
    return _LONE.sub("\ufffd", value.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def read_number(text: str, at: int) -> Scalar:
    """Read the number at ``at``. The text at ``at`` begins with a digit, a sign or a decimal point."""
    whole = _NUMBERISH.match(text, at)
    end = whole.end() if whole else at + 1
    match = _NUMBER.match(text, at)
    if match is None or match.end() != end:
        return _odd_number(text, at, end)
    if match[1] is None and match[2] is None:
        if end - at > 20 or not -(2**63) <= (value := int(match[0])) < 2**63:
            message = f"the number {_cut(match[0])} does not fit in 64 bits"
            return Scalar(None, end, json_fault("JSON007", message, at, end, "write it as a string"))
        return Scalar(value, end)
    number = float(match[0]) if end - at <= 1000 else math.inf
    if not math.isfinite(number):
        return Scalar(None, end, json_fault("JSON007", f"the number {_cut(match[0])} is too large", at, end))
    return Scalar(number, end)


_PLUS = re.compile(r"\+?(-?)(\d*)(?:\.(\d*))?([eE][+-]?\d+)?")


def _odd_number(text: str, at: int, end: int) -> Scalar:
    word = text[at:end]
    if word.lstrip("+-") in ("NaN", "Infinity"):
        fault = json_fault("JSON007", f"{word} is not allowed in JSON", at, end, "remove it, or write null")
        return Scalar(None, end, fault)
    match = _PLUS.fullmatch(word)
    if match is None or not (match[2] or match[3]) or len(word) > 30:
        return Scalar(None, end, json_fault("JSON007", f"`{_cut(word)}` is not a valid number", at, end))
    meant = f"{match[1]}{match[2].lstrip('0') or '0'}{'.' + (match[3] or '0') if match[3] is not None else ''}{match[4] or ''}"
    edit = Edit(Span(at, end), meant)
    fault = json_fault("JSON007", f"`{word}` is not a valid number", at, end, f"write `{meant}`", edits=(edit,))
    return Scalar(json.loads(meant), end, fault)


def read_word(text: str, at: int) -> Scalar | None:
    """Read ``true``, ``false``, ``null``, their names in other languages, or an unquoted word. Return None for anything else."""
    match = _WORD.match(text, at)
    if match is None:
        return None
    word, end = match[0], match.end()
    if word in _WORDS:
        return Scalar(_WORDS[word], end)
    if word in _MEANT:
        meant = json.dumps(_MEANT[word])
        edit = Edit(Span(at, end), meant)
        message = f"`{word}` is written `{meant}` in JSON"
        return Scalar(_MEANT[word], end, json_fault("JSON006", message, at, end, edits=(edit,)))
    if word in ("NaN", "Infinity"):
        return _odd_number(text, at, end)
    edit = Edit(Span(at, end), json.dumps(word, ensure_ascii=False))
    message = f"`{_cut(word)}` has no quotes"
    return Scalar(word, end, json_fault("JSON005", message, at, end, "a string needs double quotes", edits=(edit,)))


def _cut(text: str) -> str:
    return text if len(text) <= 30 else text[:29] + "…"
