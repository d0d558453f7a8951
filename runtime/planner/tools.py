"""The tools of seed 001's second phase, called in text: which calls stand in what a model wrote.

A call stands alone: on a line of its own, or over several lines where its text does. Before it may stand a bullet, a number or
"Action:", around it backticks; that is all. So prose that mentions ``done()`` is prose. A text between quotes ends where a quote is
followed by the rest of the call; one whose inner quotes are not escaped ends at the last quote and parenthesis before the next call.
"""

import re
from typing import Any

from attrs import field, frozen

from ...lang import ladder
from ...lang.diagnostic import Diagnostic, nearest
from .faults import fault

__all__ = ["PARAMETERS", "Call", "Calls", "read_calls"]

PARAMETERS: dict[str, tuple[tuple[str, type], ...]] = {
    "done": (),
    "lwt_list": (),
    "lwt_insert": (("idx", int), ("step", str)),
    "lwt_set": (("idx", int), ("step", str)),
    "lwt_delete": (("idx", int),),
    "read": (("path", str),),
}
"""The tools and what they take."""
_SAME = {"index": "idx", "i": "idx", "text": "step", "lwt": "step"}
_MOST = 20
"""Calls of one answer."""
_HEADS = 100
"""Places where a call might begin; each may cost a look at the rest of the answer."""
_LONGEST = 100_000
"""Characters of an answer that are looked at."""


@frozen
class Call:
    """A call of a tool: its name and its arguments by name."""

    tool: str
    arguments: dict[str, Any] = field(factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in self.arguments.values())
        return f"{self.tool}({told})"


@frozen
class Calls:
    """The calls of an answer in order, and what stands like a call and is none: what follows it is not carried out."""

    calls: tuple[Call, ...]
    fault: Diagnostic | None = None


# Possessive throughout: a line of a hundred thousand blanks is looked at once.
_BEFORE = (
    r"[ \t]*+(?:(?:[-*>•]|\d{1,3}[.)])[ \t]++)*+"
    r"(?:\**+(?:Next )?(?:Action|Tool|Call)(?: \d++)?\**+[ \t]*+:\**+[ \t]*+)?`{0,3}+[ \t]*+"
)
_HEAD = re.compile(rf"^{_BEFORE}(?P<name>[A-Za-z_]\w{{0,40}})[ \t]*+\(", re.MULTILINE)
_AFTER = re.compile(r"[ \t]*+[;.]?`{0,3}+[ \t]*+(?=\r?\n|\Z)")
_IMAGINED = re.compile(
    r"^[ \t]*+\**+(?:Observation|Result|Tool result|Output)s?\**+[ \t]*+:", re.MULTILINE | re.IGNORECASE
)
_NAMED = re.compile(r"\s*([A-Za-z_]\w{0,20})\s*=(?!=)\s*")
_NUMBER = re.compile(r"\s*(?:\"(-?\d{1,9})\"|'(-?\d{1,9})'|(-?\d{1,9}))\s*(?=[,)])")
_STRINGS = (
    re.compile(r'\s*"""(?P<body>.*?)"""\s*(?=[,)])', re.DOTALL),
    re.compile(r"\s*'''(?P<body>.*?)'''\s*(?=[,)])", re.DOTALL),
    re.compile(r'\s*"(?P<body>[^"\\]*(?:\\.[^"\\]*)*)"\s*(?=[,)])', re.DOTALL),
    re.compile(r"\s*'(?P<body>[^'\\]*(?:\\.[^'\\]*)*)'\s*(?=[,)])", re.DOTALL),
)
_ESCAPED = re.compile(r"\\([\"'\\])")
_CLOSED = re.compile(r"\)[ \t]*+[;.]?`{0,3}+[ \t\r]*+\Z")
_CLOSE = re.compile(r"\s*+,?\s*+\)")
_OPENED = re.compile(r"\s*(\"\"\"|'''|\"|')?")
_LOOSE_END = re.compile(r"(?P<quote>[\"']{0,3})(?<![ \t])[ \t]*+\)[ \t]*+[;.]?`{0,3}+[ \t]*+(?=\r?\n|\Z)")


def read_calls(text: str) -> Calls:
    """Return the calls that stand alone in ``text``. Never raises.

    What a model imagines to be told (from a line "Observation:" on) is not looked at.
    """
    if len(text) > _LONGEST:
        return Calls((), fault("RANK007", f"the answer has {len(text):,} characters", f"at most {_LONGEST:,}"))
    if (native := _native(text)) is not None:
        return Calls((native,)) if isinstance(native, Call) else Calls((), native)
    imagined = _IMAGINED.search(text)
    text = text[: imagined.start()] if imagined else text
    calls: list[Call] = []
    at = 0
    for _ in range(_HEADS):
        head = _HEAD.search(text, at)
        if head is None or len(calls) == _MOST:
            break
        name = _SAME.get(head["name"], head["name"])
        if name not in PARAMETERS:
            if _stands_alone(text, head.end()):
                return Calls(tuple(calls), _unknown(head["name"]))
            at = head.end()
            continue
        made = _arguments(text, head.end(), name)
        if isinstance(made, int):  # prose that goes on behind the name
            at = made
        elif isinstance(made, Diagnostic):
            if _stands_alone(text, head.end()):
                return Calls(tuple(calls), made)
            at = head.end()
        else:
            arguments, at = made
            calls.append(Call(name, arguments))
            if name == "done":
                break
    return Calls(tuple(calls))


def _native(text: str) -> Call | Diagnostic | None:
    """Return the call that a model made by its own means: ``{"tool": ..., "arguments": {...}}``. None for any other text."""
    read = ladder.read(text) if text.lstrip().startswith(("{", "`")) and '"arguments"' in text else None
    if not isinstance(read, ladder.Reading) or not isinstance(read.value, dict):
        return None
    name, given = str(read.value.get("tool") or read.value.get("name")), read.value.get("arguments")
    if name not in PARAMETERS:
        return _unknown(name)
    arguments = {_SAME.get(key, key): value for key, value in given.items()} if isinstance(given, dict) else {}
    for parameter, kind in PARAMETERS[name]:
        if type(arguments.get(parameter)) is not kind:
            return _wanted(name)
    return Call(name, {parameter: arguments[parameter] for parameter, _ in PARAMETERS[name]})


def _arguments(text: str, at: int, name: str) -> tuple[dict[str, Any], int] | Diagnostic | int:
    """Return the arguments that begin at ``at`` and where the call ends; what is wrong with them; or where the prose goes on."""
    parameters, found = PARAMETERS[name], dict[str, Any]()
    for number, (parameter, kind) in enumerate(parameters):
        last = number == len(parameters) - 1
        if named := _NAMED.match(text, at):
            if _SAME.get(named[1], named[1]) != parameter:
                return _wanted(name)
            at = named.end()
        if kind is int:
            written = _NUMBER.match(text, at)
            if written is None:
                return _wanted(name)
            found[parameter], at = int(written[1] or written[2] or written[3]), written.end()
        else:
            read = _text(text, at, last)
            if read is None:
                return _wanted(name)
            found[parameter], at = read
        if not last:
            if text[at : at + 1] != ",":
                return _wanted(name)
            at += 1
    closed = _CLOSE.match(text, at)
    if closed is None:
        return at if not parameters else _wanted(name)
    after = _AFTER.match(text, closed.end())
    return closed.end() if after is None else (found, after.end())


def _text(text: str, at: int, last: bool) -> tuple[str, int] | None:
    """Return the text that begins at ``at`` and where it ends, which is before the parenthesis where it is the last argument."""
    for pattern in _STRINGS:
        found = pattern.match(text, at)
        if found is None:
            continue
        closed = _CLOSE.match(text, found.end()) if last else None
        if not last or (closed is not None and _AFTER.match(text, closed.end())):
            return _ESCAPED.sub(r"\1", found["body"]), found.end()
    return _loose(text, at) if last else None


def _loose(text: str, at: int) -> tuple[str, int] | None:
    """Read a text with quotes in it that are not escaped, or without quotes: up to the end of a line before the next call."""
    opened = _OPENED.match(text, at)
    quote, start = (opened[1] or "", opened.end()) if opened else ("", at)
    following = next((head.start() for head in _HEAD.finditer(text, start) if head["name"] in PARAMETERS), len(text))
    if not quote and text[start : start + 1] not in ("(", "i"):  # a step, or a path: items[5]
        return None
    ends = [end for end in _LOOSE_END.finditer(text, start, following) if end["quote"].endswith(quote)]
    if not ends:
        return None
    if not quote:
        end = ends[0] if text[start] == "i" else ends[-1]
        close = text.index(")", end.end("quote"))
        return text[start:close].strip(), close
    end = ends[-1]
    return _ESCAPED.sub(r"\1", text[start : end.end("quote") - len(quote)]), end.end("quote")


def _stands_alone(text: str, at: int) -> bool:
    """Say whether what opens at ``at`` closes at the end of its line: then it was meant as a call."""
    end = text.find("\n", at)
    return _CLOSED.search(text[at : end if end >= 0 else len(text)]) is not None


def _unknown(name: str) -> Diagnostic:
    like = nearest(name, PARAMETERS)
    return fault(
        "RANK004", f"there is no tool {name[:40]!r}", f"did you mean {like}?" if like else f"there are: {_signatures()}"
    )


def _wanted(name: str) -> Diagnostic:
    return fault("RANK004", f"{name} is not called like this", f"it is {_signature(name)}")


def _signature(name: str) -> str:
    quoted = [parameter if kind is int else f'"{parameter}"' for parameter, kind in PARAMETERS[name]]
    return f"{name}({', '.join(quoted)})"


def _signatures() -> str:
    return ", ".join(map(_signature, PARAMETERS))
