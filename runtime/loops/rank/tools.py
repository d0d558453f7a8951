"""Finds the tool calls in a model's text, for the second phase of a ranking.

A call has its own line, or several lines if its text has line breaks. A bullet, a number, "Action:", ``x =`` or ``tools.`` may
precede the call, markup may surround it, and a remark may follow it. Calls written as JSON are also recognized. A mention of ``done()`` in
prose is not a call. Text that begins like a call but can't be read is a fault, and everything after it is ignored, so that no edit
before ``done()`` is skipped.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field, frozen

from ....lang import literals
from ....lang.diagnostic import Diagnostic, nearest
from ....lang.parse.lwt import parse_lwt
from ....lang.source import Source
from .draft_script import ranking_error

# Reads tool calls that a model writes as JSON in its text, either one after the other or in a list.

_DECODER = json.JSONDecoder()
_MEANT = re.compile(r'"(?:tool|name|function)"\s*+:\s*+"(?:done|lwt_|read")')
_LOOKED_AT = 300
"""Maximum characters at the beginning of an object in which a call is recognized."""


def json_calls(text: str, at: int) -> tuple[list[Any] | None, int]:
    """Return the JSON values at ``at`` (None for a call that is not valid JSON) and the position to continue from."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        meant = _MEANT.search(text, at, at + _LOOKED_AT)
        return (None if meant else []), at + 1
    return (value if isinstance(value, list) else [value]), end


# The arguments of a tool call as text: numbers, paths, and steps. Quotes inside a step need no escapes: the step ends at the first
# quote that is followed by the end of the call, if the text before the quote is one step without faults. If no quote fits, the text
# is read up to the end of a line before the next call, and the linter reports the faults in it. Text that can be read in neither
# way is not an argument.

_REMARK = r"(?:(?:#|//|/\*|--|[\u2013\u2014\u2192]|->|:|- )[^\n]*|,?[ \t]*(?:and[ \t]+)?then[ \t]*:?[ \t]*)?"
AFTER = re.compile(rf"[ \t]*+[;.,]?\**+`{{0,3}}+\**+[ \t]*+\|?+(?:</tool_call>)?[ \t]*+{_REMARK}[ \t]*+(?=\r?\n|\Z)")
"""Text that may follow a call on its line: closing markup, and a marked remark."""
CLOSE = re.compile(r"\s*+,?\s*+\)")
_NUMBER = re.compile(r"\s*(?:\"(-?\d{1,9})\"|'(-?\d{1,9})'|(-?\d{1,9}))\s*(?=[,)])")
_STRINGS = (
    re.compile(r'\s*"""(?P<body>.*?)"""\s*(?=[,)])', re.DOTALL),
    re.compile(r"\s*'''(?P<body>.*?)'''\s*(?=[,)])", re.DOTALL),
    re.compile(r'\s*"(?P<body>[^"\\]*(?:\\.[^"\\]*)*)"\s*(?=[,)])', re.DOTALL),
    re.compile(r"\s*'(?P<body>[^'\\]*(?:\\.[^'\\]*)*)'\s*(?=[,)])", re.DOTALL),
)
_ESCAPED = re.compile(r"\\([\"'\\])")
_OPENED = re.compile(r"\s*(\"\"\"|'''|\"|'|\u201c)?")
_CURLY = {"\u201c": "\u201d"}
_LOOSE_END = re.compile(r"(?P<quote>[\"'\u201d]{0,3})(?<![ \t])[ \t]*+\)(?=[^)]|\Z)")
_STEP = re.compile(r"\s*\([\w.\-]{1,80}\)\s*=\s*[A-Z]\w*\s*\(")
_LINE_END = re.compile(r"[ \t]*+(?=\r?\n|\Z)")
_TRIES = 48
"""Maximum number of possible ends of one step that are tried."""
_PARSED = 60_000
"""Maximum characters of one answer that are parsed to find the ends of steps."""


@define
class Reader:
    """Reads the arguments of one answer's calls. ``next_call`` returns the position of the next line that begins a call."""

    text: str
    next_call: Callable[[int], int]
    _left: int = _PARSED

    def number(self, at: int) -> tuple[int, int] | None:
        """Return the integer that begins at ``at``, and the offset of its end."""
        written = _NUMBER.match(self.text, at)
        return None if written is None else (int(written[1] or written[2] or written[3]), written.end())

    def path(self, at: int) -> tuple[str, int] | None:
        """Return the path that begins at ``at``, and its end, which is before the closing parenthesis."""
        if (written := self._quoted(at)) is not None:
            return written
        end = self.text.find("\n", at)
        return self._unescaped(at, len(self.text) if end < 0 else end)

    def step(self, at: int) -> tuple[str, int] | None:
        """Return the step that begins at ``at``, and its end: before the closing parenthesis, or at a line end if ``)`` is missing."""
        if (written := self._quoted(at)) is not None:
            return written
        return self._parsed(at) or self._unescaped(at, self.next_call(at))

    def _quoted(self, at: int) -> tuple[str, int] | None:
        """Read a string that is quoted and escaped as in a programming language."""
        for pattern in _STRINGS:
            found = pattern.match(self.text, at)
            closed = CLOSE.match(self.text, found.end()) if found is not None else None
            if found is not None and closed is not None and AFTER.match(self.text, closed.end()):
                return _ESCAPED.sub(r"\1", found["body"]), found.end()
        return None

    def _parsed(self, at: int) -> tuple[str, int] | None:
        """Read a step up to the first position where the step is complete and the call is closed, or else up to the end of a line."""
        quote, start = self._opened(at)
        if not _STEP.match(self.text, start):
            return None
        for missing in (False, True):
            for end, behind in self._ends(start, quote, missing=missing):
                body = (
                    _ESCAPED.sub(r"\1", self.text[start:end]) if "\\" in self.text[start:end] else self.text[start:end]
                )
                if self._is_step(body):
                    return body, behind
        return None

    def _ends(self, start: int, quote: str, *, missing: bool) -> Iterator[tuple[int, int]]:
        """Yield the possible ends of a step, each with the end of its closing quote; ``missing``: the call lacks its ``)``."""
        at = start
        for _ in range(_TRIES):
            at = self.text.find(f"){quote}", at)
            if at < 0:
                return
            at += 1
            behind = at + len(quote)
            if missing:
                if _LINE_END.match(self.text, behind):
                    yield at, behind
                continue
            closed = CLOSE.match(self.text, behind)
            if closed is not None and AFTER.match(self.text, closed.end()):
                yield at, behind

    def _is_step(self, body: str) -> bool:
        """Return whether ``body`` is one step without faults; False once the limit of parsed characters is exceeded."""
        self._left -= len(body)
        if self._left < 0:
            return False
        read = parse_lwt(Source(body, "<step>"), "strict")
        return len(read.steps) == 1 and not read.diagnostics

    def _opened(self, at: int) -> tuple[str, int]:
        """Return the closing quote that matches the opening quote at ``at`` ("" if there is no quote), and the start of the text."""
        opened = _OPENED.match(self.text, at)
        quote = (opened[1] or "") if opened else ""
        return _CURLY.get(quote, quote), opened.end() if opened else at

    def _unescaped(self, at: int, following: int) -> tuple[str, int] | None:
        """Read a string with unescaped quotes, or without quotes: up to the end of a line before ``following``."""
        text = self.text
        quote, start = self._opened(at)
        if not quote and text[start : start + 1] not in ("(", "i"):  # neither a step nor a path such as items[5]
            return None
        found = (end for end in _LOOSE_END.finditer(text, start, following) if end["quote"].endswith(quote))
        ends = [end for end in found if AFTER.match(text, end.end())]
        if not ends:
            return None
        if not quote:
            end = ends[0] if text[start] == "i" else ends[-1]
            close = text.index(")", end.end("quote"))
            return text[start:close].strip(), close
        end = ends[-1]
        return _ESCAPED.sub(r"\1", text[start : end.end("quote") - len(quote)]), end.end("quote")


PARAMETERS: dict[str, tuple[tuple[str, type], ...]] = {
    "done": (),
    "lwt_list": (),
    "lwt_insert": (("idx", int), ("step", str)),
    "lwt_set": (("idx", int), ("step", str)),
    "lwt_delete": (("idx", int),),
    "read": (("path", str),),
}
"""Maps each tool to its parameters: name and type."""
_SAME = {"index": "idx", "i": "idx", "text": "step", "lwt": "step"}
_MOST = 20
"""Maximum number of calls in one answer."""
_HEADS = 100
"""Maximum number of positions where a call might begin; every such position may require a scan of the rest of the answer."""
LONGEST = 60_000
"""Maximum characters of an answer that are read."""


@frozen
class Call:
    """A tool call: the name of the tool, and a mapping from parameters to arguments."""

    tool: str
    arguments: dict[str, Any] = field(factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in self.arguments.values())
        return f"{self.tool}({told})"


@frozen
class Calls:
    """The calls of an answer in order, and the fault of the first unreadable call; nothing after the fault is run."""

    calls: tuple[Call, ...]
    fault: Diagnostic | None = None


# All quantifiers are possessive, so that a line of 100,000 spaces is scanned only once.
_BEFORE = (
    r"[ \t]*+(?:(?:[-*>•→|]|\d{1,3}[.)])[ \t]++)*+"
    r"(?:\**+(?:Next )?(?:Action|Tool|Call|Step)(?: \d++)?\**+[ \t]*+:\**+[ \t]*+)?`{0,3}+\**+`{0,3}+[ \t]*+"
)
_DRESS = r"(?P<dress>(?:await[ \t]++|[A-Za-z_]\w{0,40}+[ \t]*+=[ \t]*+|(?:tools?|functions?|lwt|self)\.)*+)"
_HEAD = re.compile(
    rf"^(?:{_BEFORE}{_DRESS}(?P<name>[A-Za-z_]\w{{0,40}}+)[ \t]*+(?P<open>[(]|\[(?=\d)|(?<=[ \t])(?=\d))"
    r"|[ \t]*+(?:<tool_call>[ \t]*+)?(?P<json>[{\[](?=\s*+[{\"\]])))",
    re.MULTILINE,
)
_IMAGINED = re.compile(
    r"^[ \t]*+\**+(?:Observation|Result|Tool result|Output)s?\**+[ \t]*+:", re.MULTILINE | re.IGNORECASE
)
_MENTIONED = re.compile(r"\b(lwt_insert|lwt_set|lwt_delete)[ \t]*+\(\s*+(?:[\"'\u201c\d]|(?:idx|index|i)\s*+=)")
_NAMED = re.compile(r"\s*([A-Za-z_]\w{0,20})\s*=(?!=)\s*")
_CLOSED = re.compile(r"\)[ \t]*+[;.]?`{0,3}+[ \t\r]*+\Z")


def read_calls(text: str) -> Calls:
    """Return the calls in ``text`` that are on their own lines. Faults in the text never raise an exception.

    Everything after a line "Observation:" is ignored, because the model invented that tool result; inside a step, such a line
    is plain text.
    """
    if len(text) > LONGEST:
        return Calls(
            (), ranking_error("RANK007", f"the answer has {len(text):,} characters", f"the maximum is {LONGEST:,}")
        )
    found = _Scan(text).read()
    if not found.calls and found.fault is None:  # the complete text may be a JSON call in another notation
        return _single_json_call(text)
    return found


def _single_json_call(text: str) -> Calls:
    """Read ``text`` leniently as a single JSON call: ``{"tool": ..., "arguments": {...}}``; return no calls for other text."""
    value = literals.read(text) if text.lstrip().startswith(("{", "`")) and "arguments" in text else None
    made = _of_json([value.value]) if isinstance(value, literals.Reading) else []
    return Calls(()) if not made else Calls((), made[0]) if isinstance(made[0], Diagnostic) else Calls((made[0],))


@define
class _Scan:
    """One answer, scanned from its beginning to its end."""

    text: str
    calls: list[Call] = field(factory=list)

    def read(self) -> Calls:
        """Return the calls of the answer."""
        text, at = self.text, 0
        reader = Reader(text, self._next)
        imagined = _IMAGINED.search(text)
        for _ in range(_HEADS):
            head = _HEAD.search(text, at)
            while imagined is not None and imagined.start() < at:  # the match is inside a step's text
                imagined = _IMAGINED.search(text, at)
            end = imagined.start() if imagined is not None else len(text)
            over = head is None or head.start() >= end or len(self.calls) == _MOST
            doubt = _MENTIONED.search(text, at, end if head is None or over else head.start())
            if head is None or over:
                return self._result(_passed_over(doubt[1]) if doubt is not None and self.calls else None)
            made = self._calls_at(reader, head)
            if doubt is not None and (isinstance(made, Diagnostic) or made[0]):
                return self._result(_passed_over(doubt[1]))
            if isinstance(made, Diagnostic):
                return self._result(made)
            for each in made[0]:
                if isinstance(each, Diagnostic):
                    return self._result(each)
                self.calls.append(each)
                if each.tool == "done" or len(self.calls) == _MOST:
                    return self._result(None)
            at = made[1]
        return self._result(None)

    def _result(self, wrong: Diagnostic | None) -> Calls:
        return Calls(tuple(self.calls), wrong)

    def _next(self, at: int) -> int:
        """Return the position of the next line that looks like a call."""
        heads = (head.start() for head in _HEAD.finditer(self.text, at) if head["name"] in PARAMETERS)
        return next(heads, len(self.text))

    def _calls_at(self, reader: Reader, head: "re.Match[str]") -> tuple[list[Call | Diagnostic], int] | Diagnostic:
        """Return the calls that begin at ``head`` (none for prose) and the position to continue from, or the fault."""
        if head["json"]:
            values, end = json_calls(self.text, head.start("json"))
            if values is None:
                return _unreadable()
            return _of_json(values), end
        name, at = head["name"], head.end()
        if name not in PARAMETERS:
            alone = head["open"] == "(" and not head["dress"] and _stands_alone(self.text, at)
            return _unknown(name) if alone else ([], at)
        edits = name in ("lwt_insert", "lwt_set", "lwt_delete")
        if head["open"] != "(":
            return _wanted(name) if edits else ([], at)
        made = _arguments(reader, at, name)
        if isinstance(made, Diagnostic):
            quoted = name == "read" and self.text[at : at + 1] in ('"', "'")
            return made if edits or quoted or _stands_alone(self.text, at) else ([], at)
        return ([], made) if isinstance(made, int) else ([Call(name, made[0])], made[1])


def _of_json(values: list[Any]) -> list[Call | Diagnostic]:
    """Return the calls that a model wrote as JSON: ``{"tool": ..., "arguments": {...}}``. Other objects are ignored."""
    made: list[Call | Diagnostic] = []
    for value in values:
        if not isinstance(value, dict):
            continue
        name = value.get("tool") or value.get("name")
        given = next((value[key] for key in ("arguments", "parameters", "args") if key in value), None)
        if not isinstance(name, str) or (given is None and name not in PARAMETERS):
            continue
        if name not in PARAMETERS:
            made.append(_unknown(name))
            continue
        if isinstance(given, str):  # model services send arguments as a JSON string
            read = literals.read(given or "{}")
            given = read.value if isinstance(read, literals.Reading) else None
        arguments = {_SAME.get(key, key): each for key, each in given.items()} if isinstance(given, dict) else {}
        fits = all(type(arguments.get(parameter)) is kind for parameter, kind in PARAMETERS[name])
        made.append(
            Call(name, {parameter: arguments[parameter] for parameter, _ in PARAMETERS[name]})
            if fits
            else _wanted(name)
        )
    return made


def _arguments(reader: Reader, at: int, name: str) -> tuple[dict[str, Any], int] | Diagnostic | int:
    """Return the arguments that begin at ``at`` and the end of the call.

    For an unreadable call, return the fault; for prose, return the end of the prose.
    """
    text, parameters, found = reader.text, PARAMETERS[name], dict[str, Any]()
    for number, (parameter, kind) in enumerate(parameters):
        if named := _NAMED.match(text, at):
            if _SAME.get(named[1], named[1]) != parameter:
                return _wanted(name)
            at = named.end()
        read = reader.number(at) if kind is int else reader.step(at) if parameter == "step" else reader.path(at)
        if read is None:
            return _wanted(name)
        found[parameter], at = read
        if number < len(parameters) - 1:
            if text[at : at + 1] != ",":
                return _wanted(name)
            at += 1
    closed = CLOSE.match(text, at)
    if closed is None:
        if name in ("lwt_insert", "lwt_set"):  # the step is complete, but the closing parenthesis is missing
            return found, at
        return at if not parameters and not _stands_alone(text, at) else _wanted(name)
    after = AFTER.match(text, closed.end())
    if after is not None:
        return found, after.end()
    return _passed_over(name) if parameters else closed.end()


def _stands_alone(text: str, at: int) -> bool:
    """Return whether the parenthesis opened at ``at`` is closed at the end of the line, as in an intended call."""
    end = text.find("\n", at)
    return _CLOSED.search(text[at : end if end >= 0 else len(text)]) is not None


def _unknown(name: str) -> Diagnostic:
    like = nearest(name, PARAMETERS)
    return ranking_error(
        "RANK004", f"unknown tool {name[:40]!r}", f"did you mean {like}?" if like else f"the tools are {_signatures()}"
    )


def _wanted(name: str) -> Diagnostic:
    return ranking_error("RANK004", f"invalid call of {name}", f"write {_signature(name)}")


def _passed_over(name: str) -> Diagnostic:
    return ranking_error(
        "RANK004",
        f"{name} is not on a separate line; this call and all later ones were not run",
        f"write only the call on its line: {_signature(name)}",
    )


def _unreadable() -> Diagnostic:
    return ranking_error("RANK004", "a call in JSON can't be read", '{"tool": "lwt_delete", "arguments": {"idx": 0}}')


def _signature(name: str) -> str:
    quoted = [parameter if kind is int else f'"{parameter}"' for parameter, kind in PARAMETERS[name]]
    return f"{name}({', '.join(quoted)})"


def _signatures() -> str:
    return ", ".join(map(_signature, PARAMETERS))
