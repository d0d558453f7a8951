"""The tools of a ranking's second phase, called in text: which calls stand in what a model wrote.

A call stands alone: on a line of its own, or over several lines where its text does. Before it may stand a bullet, a number, "Action:",
``x =`` or ``tools.``, around it what marks text, behind it a remark; calls as JSON count too. So prose that mentions ``done()`` is prose.
What begins like a call and can't be read is a fault, and nothing behind it counts: an edit is never passed over on the way to ``done()``.
"""

import re
from typing import Any

from attrs import define, field, frozen

from ...lang import literals
from ...lang.diagnostic import Diagnostic, nearest
from .arguments import AFTER, CLOSE, Reader
from .faults import fault
from .jsoncalls import json_calls

__all__ = ["LONGEST", "PARAMETERS", "Call", "Calls", "read_calls"]

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
LONGEST = 60_000
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
    """Return the calls that stand alone in ``text``. Never raises.

    What a model imagines to be told (from a line "Observation:" on, outside of a step's text) is not looked at.
    """
    if len(text) > LONGEST:
        return Calls((), fault("RANK007", f"the answer has {len(text):,} characters", f"at most {LONGEST:,}"))
    found = _Scan(text).read()
    if not found.calls and found.fault is None:  # JSON in another dress, on its own
        return _alone(text)
    return found


def _alone(text: str) -> Calls:
    """Return the call that a text is as a whole: ``{"tool": ..., "arguments": {...}}`` as the answers' ladder reads it."""
    value = literals.read(text) if text.lstrip().startswith(("{", "`")) and "arguments" in text else None
    made = _of_json([value.value]) if isinstance(value, literals.Reading) else []
    return Calls(()) if not made else Calls((), made[0]) if isinstance(made[0], Diagnostic) else Calls((made[0],))


@define
class _Scan:
    """One answer, read from its beginning to its end."""

    text: str
    calls: list[Call] = field(factory=list)

    def read(self) -> Calls:
        """Return what stands in it."""
        text, at = self.text, 0
        reader = Reader(text, self._next)
        imagined = _IMAGINED.search(text)
        for _ in range(_HEADS):
            head = _HEAD.search(text, at)
            while imagined is not None and imagined.start() < at:  # in a step's text
                imagined = _IMAGINED.search(text, at)
            end = imagined.start() if imagined is not None else len(text)
            over = head is None or head.start() >= end or len(self.calls) == _MOST
            doubt = _MENTIONED.search(text, at, end if head is None or over else head.start())
            if head is None or over:
                return self._with(_passed_over(doubt[1]) if doubt is not None and self.calls else None)
            made = self._made(reader, head)
            if doubt is not None and (isinstance(made, Diagnostic) or made[0]):
                return self._with(_passed_over(doubt[1]))
            if isinstance(made, Diagnostic):
                return self._with(made)
            for each in made[0]:
                if isinstance(each, Diagnostic):
                    return self._with(each)
                self.calls.append(each)
                if each.tool == "done" or len(self.calls) == _MOST:
                    return self._with(None)
            at = made[1]
        return self._with(None)

    def _with(self, wrong: Diagnostic | None) -> Calls:
        return Calls(tuple(self.calls), wrong)

    def _next(self, at: int) -> int:
        """Return where the next line begins that looks like a call."""
        heads = (head.start() for head in _HEAD.finditer(self.text, at) if head["name"] in PARAMETERS)
        return next(heads, len(self.text))

    def _made(self, reader: Reader, head: "re.Match[str]") -> tuple[list[Call | Diagnostic], int] | Diagnostic:
        """Return the calls that begin at ``head`` (none where it is prose) and where to go on; or what is wrong."""
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
    """Return the calls that a model made as JSON: ``{"tool": ..., "arguments": {...}}``. Other objects are none."""
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
        if isinstance(given, str):  # as services write them
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
    """Return the arguments that begin at ``at`` and where the call ends; what is wrong with them; or where the prose goes on."""
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
        if name in ("lwt_insert", "lwt_set"):  # the parenthesis is missing behind a step that is whole
            return found, at
        return at if not parameters and not _stands_alone(text, at) else _wanted(name)
    after = AFTER.match(text, closed.end())
    if after is not None:
        return found, after.end()
    return _passed_over(name) if parameters else closed.end()


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


def _passed_over(name: str) -> Diagnostic:
    return fault(
        "RANK004",
        f"{name} does not stand alone on its line, and nothing from it on was carried out",
        f"write it alone, without a word beside it: {_signature(name)}",
    )


def _unreadable() -> Diagnostic:
    return fault("RANK004", "a call in JSON can't be read", '{"tool": "lwt_delete", "arguments": {"idx": 0}}')


def _signature(name: str) -> str:
    quoted = [parameter if kind is int else f'"{parameter}"' for parameter, kind in PARAMETERS[name]]
    return f"{name}({', '.join(quoted)})"


def _signatures() -> str:
    return ", ".join(map(_signature, PARAMETERS))
