"""The accessor ladder: the sequence of notations in which a text is read as a value.

The notations are tried in this order: JSON, a Python literal, the first fenced block, an unquoted bracket list (``[Canada, Peru]``). The
first notation in which the complete text can be read is used. Values are JSON values: tuples and sets become lists. No function here
evaluates text as code or raises an exception, whatever the size, depth or contents of the text. See ``docs/design/lwt.md#meaning``.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, Literal

from attrs import frozen

from .unicode_forms import is_text

How = Literal["json", "python", "fence", "bracket list", "literal"]

MAX_TEXT = 16_000_000
"""Maximum length of a text in code points; a longer text is unreadable."""
MAX_DEPTH = 200
"""Maximum nesting depth of lists and objects."""
MAX_DIGITS = 300
"""Maximum number of digits of an integer: about the length of the largest floats, and far below Python's own limit."""


@frozen
class Reading:
    """The JSON value that was read from a text, and the notation in which the text was read."""

    value: Any
    how: How


@frozen
class Unreadable:
    """The text can't be read as a value in any of the notations; ``reason`` is a clause for a message."""

    reason: str


class WrittenInt(int):
    """An integer with the text from which it was read: -0, 1_000."""

    written: str

    def __new__(cls, value: int, written: str) -> "WrittenInt":
        """Return the integer ``value``, which was read from ``written``."""
        made = super().__new__(cls, value)
        made.written = written
        return made


class WrittenFloat(float):
    """A number with a fraction or an exponent, with the text from which it was read: 1.10, 1e3."""

    written: str

    def __new__(cls, text: str) -> "WrittenFloat":
        """Return the number that ``text`` is."""
        made = super().__new__(cls, text)
        made.written = text
        return made


def plain_numbers(value: Any) -> Any:
    """Return a value without the texts of its numbers."""
    if isinstance(value, WrittenInt):
        return int(value)
    if isinstance(value, WrittenFloat):
        return float(value)
    if isinstance(value, dict):
        return {key: plain_numbers(each) for key, each in value.items()}
    return [plain_numbers(each) for each in value] if isinstance(value, list) else value


def written_json(value: Any) -> str:
    """Return a value as JSON, with its numbers as they were written."""
    if isinstance(value, WrittenInt | WrittenFloat):
        return value.written
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key, ensure_ascii=False)}: {written_json(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(written_json, value))}]"
    return json.dumps(value, ensure_ascii=False)


class _Refused(Exception):
    """Raised if a text can't be read in one notation. The message is the reason; it is empty if the text is in another notation."""


def read(text: str, *, written: bool = False) -> Reading | Unreadable:
    """Read ``text`` in the first notation that fits the complete text. Never raises an exception.

    With ``written``, numbers have the text from which they were read.
    """
    if len(text) > MAX_TEXT:
        return Unreadable(f"it is longer than {MAX_TEXT:,} characters")
    stripped = text.strip().removeprefix("\ufeff").strip()
    for how, rung in _RUNGS:
        try:
            value = rung(stripped, written)
            if "\\u" in stripped.lower() and not is_text(json.dumps(value, ensure_ascii=False)):
                return Unreadable("it contains a lone surrogate, which is not valid text")
            return Reading(value, how)
        except _Refused as refused:
            if str(refused):  # the notation was recognised but has a fault, so later notations are not tried
                return Unreadable(str(refused))
    return Unreadable("it is not JSON, a Python literal or a list")


def is_json(text: str) -> bool:
    """Return whether ``text`` is valid JSON."""
    try:
        _json(text.strip())
    except _Refused:
        return False
    return True


def read_literal(text: str, *, written: bool = False) -> tuple[Any] | Unreadable | None:
    """Read ``text`` as a Python literal or as JSON with trailing commas. Return None if it is neither. Never raises an exception.

    With ``written``, numbers have the text from which they were read.
    """
    try:
        return (_python(text.strip(), written),)
    except _Refused as refused:
        return Unreadable(str(refused)) if str(refused) else None


def is_too_deep(value: Any) -> bool:
    """Return whether the lists and objects of ``value`` are nested more than ``MAX_DEPTH`` deep."""
    try:
        _checked_depth(value)
    except _Refused:
        return True
    return False


def kind_of(value: object) -> str:
    """Return the JSON kind of ``value`` with its article, for a message: "an object", "a list", "a string"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else type(value).__name__


def _json(text: str, written: bool = False) -> Any:
    if not text or text[0] not in '{["-0123456789tfn':
        raise _Refused
    try:
        integer, number = (_written_integer, _written_float) if written else (_integer, _float)
        return _checked_depth(json.loads(text, object_pairs_hook=_object, parse_int=integer, parse_float=number,
                                         parse_constant=_constant))  # fmt: skip
    except RecursionError:
        raise _Refused(f"it is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError:
        raise _Refused from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(f"duplicate key {short(twice)}")
    return made


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _Refused(f"an integer has more than {MAX_DIGITS} digits")
    return int(digits)


def _written_integer(digits: str) -> int:
    return WrittenInt(_integer(digits), digits)


def _written_float(text: str) -> float:
    _float(text)
    return WrittenFloat(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused("a number is too large")
    return value


def _constant(name: str) -> Any:
    raise _Refused(f"{name} is not a JSON value")


def _checked_depth(value: Any) -> Any:
    """Return ``value``, or refuse it if it is nested too deeply. Other code walks the value recursively; this function does not."""
    level, depth = [value], 0
    while level := [
        child
        for container in level
        if isinstance(container, dict | list)
        for child in (container.values() if isinstance(container, dict) else container)
        if isinstance(child, dict | list)
    ]:
        depth += 1
        if depth >= MAX_DEPTH:
            raise _Refused(f"it is nested more than {MAX_DEPTH} levels deep")
    return value


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<open>[\[({]) | (?P<close>[\])}]) | (?P<comma>,) | (?P<colon>:)
    | (?P<word>(?:True|False|None|true|false|null)\b)
    | (?P<number>[-+]?(?:(?:\d+(?:_\d+)*)?\.\d+|\d+\.|0+|[1-9]\d*(?:_\d+)*)(?:[eE][-+]?\d+)?(?![\w.]))
    | (?P<raw>[rR](?:'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"))
    | (?P<long>[uU]?(?:'''(?:[^'\\]|\\.|'(?!''))*'''|\"""(?:[^"\\]|\\.|"(?!""))*\"""))
    | (?P<string>[uU]?(?:'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"))
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_CLOSES = {"[": "]", "(": ")", "{": "}"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {"\n": "", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLAIN = ("\\", "'", '"')
_USUAL = {None, "\n", *"bfnrt"}
"""The characters behind a backslash in escapes of both JSON and Python; None stands for the code of a character."""


def _python(text: str, written: bool = False) -> Any:
    """Read a Python literal. JSON's words and trailing commas are accepted too, because models mix the notations.

    ``ast.literal_eval`` is not used, because it warns about ``"\\d"``, loses the order of a set and duplicate keys, and
    needs a hundred times as much memory as the text.
    """
    stack: list[_Container] = []
    position, end = 0, len(text)
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            raise _Refused
        position = token.end()
        kind, word = token.lastgroup, token[token.lastgroup or 0]
        value: Any
        if kind == "open":
            if len(stack) >= MAX_DEPTH:
                raise _Refused(f"it is nested more than {MAX_DEPTH} levels deep")
            stack.append(_Container(word))
            continue
        if kind in ("comma", "colon"):
            if not stack:
                raise _Refused
            (stack[-1].comma if kind == "comma" else stack[-1].colon)()
            continue
        if kind == "close":
            if not stack or _CLOSES[stack[-1].opening] != word:
                raise _Refused
            value = stack.pop().finished()
        elif kind == "word":
            value = _WORDS[word]
        elif kind == "number":
            digits = word.replace("_", "")
            is_whole = re.fullmatch(r"[-+]?\d+", digits) is not None
            value = _integer(digits) if is_whole else _float(digits)
            value = value if not written else WrittenInt(value, word) if is_whole else WrittenFloat(word)
        else:
            value = _unquoted(word, kind or "")
        if not stack:
            if text[position:].strip():
                raise _Refused
            return value
        stack[-1].put(value)
    raise _Refused


_ABSENT = object()


class _Container:
    """A list, tuple, set or dict whose end has not been read yet."""

    def __init__(self, opening: str) -> None:
        self.opening = opening
        self.items: list[Any] = []
        self.pairs: list[tuple[str, Any]] = []
        self.key: Any = _ABSENT
        self.value: Any = _ABSENT
        self.commas = 0

    def put(self, value: Any) -> None:
        if self.value is not _ABSENT:
            raise _Refused
        self.value = value

    def colon(self) -> None:
        if self.opening != "{" or self.value is _ABSENT or self.key is not _ABSENT or self.items:
            raise _Refused
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            raise _Refused("a key of an object is not a string")
        self.key, self.value = str(self.value), _ABSENT

    def comma(self) -> None:
        if self.value is _ABSENT:
            raise _Refused
        self.commas += 1
        if self.key is not _ABSENT:
            self.pairs.append((self.key, self.value))
            self.key = _ABSENT
        elif self.pairs:
            raise _Refused
        else:
            self.items.append(self.value)
        self.value = _ABSENT

    def finished(self) -> Any:
        if self.value is not _ABSENT:
            self.comma()
            self.commas -= 1
        elif self.key is not _ABSENT:
            raise _Refused
        if self.opening == "{" and not self.items:
            return _object(self.pairs)
        if self.opening == "{" and any(
            isinstance(item, dict) for item in self.items
        ):  # {{...}} of a template is not a set
            raise _Refused
        if self.opening == "(" and len(self.items) == 1 and not self.commas:
            return self.items[0]
        return self.items


def _unquoted(written: str, kind: str) -> str:
    if kind == "raw":
        return written[2:-1]
    body = written.lstrip("uU")
    body = body[3:-3] if kind == "long" else body[1:-1]
    if "\\" not in body:
        return body
    if is_doubtful(body):
        raise _Refused(f"a string has a backslash that is not escaped: {short(body)}")
    if any(each[5] in ("a", "v") for each in _ESCAPE.finditer(body)):  # \alpha is not a bell and four letters
        raise _Refused
    return _ESCAPE.sub(_escaped, body)


def is_doubtful(text: str) -> bool:
    r"""Return whether some backslashes of ``text`` begin no escape, so that ``\t`` beside them may be two characters: ``C:\data\temp``."""
    found = {each[5] for each in _ESCAPE.finditer(text)} - {*_PLAIN, "/"}
    return 0 < len(found & _USUAL) < len(found)


def _escaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        if int(code, 16) > 0x10FFFF:
            raise _Refused
        return chr(int(code, 16))
    if match[4]:
        return chr(int(match[4], 8))
    plain = match[5]
    return _ESCAPED.get(plain, plain if plain in _PLAIN else "\\" + plain)


_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)([^\n]*+)$", re.MULTILINE)


def _fence(text: str, written: bool = False) -> Any:
    """Read the contents of the first fenced block.

    The block begins at a line that begins with a fence, and ends at a line with only a fence.
    """
    opening: re.Match[str] | None = None
    for line in _FENCE.finditer(text) if "```" in text or "~~~" in text else ():
        if opening is None:
            opening = line
        elif line[1].startswith(opening[1]) and not line[2].strip():
            body, reason = text[opening.end() : line.start()].strip(), ""
            for rung in (_json, _python, _bracket_list):
                try:
                    return rung(body, written)
                except _Refused as refused:
                    reason = reason or str(refused)
            raise _Refused(reason)
    raise _Refused


_COMMENT = re.compile(r"(?:^|\s)//|/\*")


def _bracket_list(text: str, written: bool = False) -> list[str]:
    body = text[1:-1]
    if text[:1] != "[" or text[-1:] != "]" or any(c in body for c in "[]{}") or _COMMENT.search(body):
        raise _Refused
    items: list[str] = []
    depth = start = 0
    for position, char in enumerate(body):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth <= 0:
            items.append(body[start:position].strip())
            start = position + 1
    last = body[start:].strip()
    if last:
        items.append(last)
    if not items or not all(map(_ITEM.fullmatch, items)):
        raise _Refused
    return [item[1:-1] if len(item) > 1 and item[0] == item[-1] and item[0] in "\"'" else item for item in items]


_ITEM = re.compile(r"""(?!\.\.\.$|\u2026$)(?:"[^"]*+"|'[^']*+'|[^"'](?:.*[^"])?)""", re.DOTALL)
"""An item of an unquoted list: in quotes or without quotes, but not half in quotes (a comma inside them), and not an ellipsis."""


_RUNGS: tuple[tuple[How, Callable[[str, bool], Any]], ...] = (
    ("json", _json),
    ("python", _python),
    ("fence", _fence),
    ("bracket list", _bracket_list),
)


def short(text: str, most: int = 60) -> str:
    """Return ``text`` in quotes for a message. At most ``most`` characters are shown, not counting the quotes."""
    return json.dumps(text if len(text) <= most else text[: most - 1] + "…", ensure_ascii=False)
