"""What a place of a script takes: operations, options and their values, references to steps and into the input."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ...catalogue.operations import OptionSpec, Signature
from ...parse.lwt import parse_lwt
from ...parse.lwt.shapes import ID
from ...printer.lwt import format_value
from ...trees.lwt import MISSING, RESERVED, Call, Option, Word
from ..model import Known, block, excerpt, plain, value_text
from .place import Candidate, Way

__all__ = [
    "accessors", "embedded_in", "heads", "kind_at", "may_begin", "named", "numbers_for", "references", "strings_for", "takes_references",
]  # fmt: skip

_HEAD_LINE = re.compile(rf"^[ \t]*+\((?P<id>{ID})\)[ \t]*+=(?!=)", re.MULTILINE)
_NAMED = re.compile(rf"\{{\((?P<id>{ID})\)\}}")
_OPTION = re.compile(r"([A-Za-z_]\w*)[ \t]*=(?!=)")
_ACCESSOR = re.compile(r"\[([^\[\]\n]*)\]")
_BARE = re.compile(r"[\w.\-]+")
_NO_REFERENCE = frozenset({"json", "expression", "string", "strings", "int", "float", "type", "name"})
"""Kinds of arguments and options that are constants."""
_QUOTES = frozenset({'"', "'", '"""', "'''"})
_OPENING = _QUOTES | {"[", "{"}
_BEGINS: Mapping[str, frozenset[str]] = {
    "template": _QUOTES, "expression": _QUOTES, "condition": _QUOTES, "string": _QUOTES, "type": _QUOTES, "name": frozenset(),
    "list": frozenset({"["}), "call": frozenset(), "int": frozenset(), "float": frozenset(), "nothing": frozenset(),
    "strings": _QUOTES | {"["},
}  # fmt: skip
"""The signs that a value of a kind may begin with; of other kinds, any."""


def step_ids(text: str) -> dict[str, int]:
    """Return the ids of steps with where their heads' ids stand, found without reading the steps; the last of two counts."""
    return {match["id"]: match.start("id") for match in _HEAD_LINE.finditer(text)}


def heads(text: str) -> Iterator[Candidate]:
    """Yield heads for the steps that are referred to and are not there, and for the final one."""
    known = step_ids(text)
    wanted = dict.fromkeys(match["id"] for match in _NAMED.finditer(text))
    for name in (*wanted, "final"):
        if name not in known and name not in RESERVED:
            yield Candidate(f"({name})=", "step", "referred to" if name in wanted else "the result", match=f"({name})=")


def references(text: str, known: Known, own: str, in_each: bool, at: int) -> Iterator[Candidate]:
    """Yield references to what may be referred to in the step ``own``: steps above first, then those below."""
    if in_each:
        yield Candidate("{(item)}", "variable", "the element that EACH is at", match="item")
        yield Candidate("{(index)}", "variable", "its number, from 0", match="index")
    ids = step_ids(text)
    for name, offset in sorted(ids.items(), key=lambda each: (each[1] > at, -each[1] if each[1] <= at else each[1])):
        if name != own:
            described = partial(_said, text, name, offset)
            yield Candidate(f"{{({name})}}", "step", match=name, described=described)
    for name, variable in known.variables.items():
        if name not in ids and re.fullmatch(ID, name):
            yield Candidate(f"{{({name})}}", "variable", excerpt(variable.holds), match=name)
    yield Candidate("{(input)}", "variable", "what the run is given", match="input")


def _said(text: str, name: str, offset: int) -> tuple[str, str]:
    end = text.find("\n", offset)
    end = end if end >= 0 else len(text)
    whole = text[text.rfind("\n", 0, offset) + 1 : end]
    return excerpt(text[offset + len(name) + 1 : end].lstrip("= \t")), block(whole, "lwt", 600)


def accessors(text: str, name: str, way: str, known: Known, quote: str) -> Iterator[Candidate]:
    """Yield the keys of what stands at a reference's end, where it is known: the input, and what CONST says."""
    value = _value(text, name, known)
    for part in _ACCESSOR.findall(way):
        value = _part(value, part.strip("\\\"'"))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str):
                said = json.dumps(key, ensure_ascii=False)
                if quote and not _BARE.fullmatch(key):
                    continue  # quotes of its own would want escapes of their own
                yield Candidate(f"[{key}]" if quote else f"[{said}]", "key", excerpt(_shown(inner)), match=key)
    elif isinstance(value, list) and value:
        yield Candidate("[0]", "key", "the first", match="0")
        yield Candidate("[-1]", "key", "the last", match="-1")


def _value(text: str, name: str, known: Known) -> Any:
    if name == "input":
        return known.input
    offset = step_ids(text).get(name)
    if offset is None:
        return MISSING
    end = text.find("\n(", offset)
    steps = parse_lwt(text[offset - 1 : end if end >= 0 else len(text)]).steps
    if len(steps) == 1 and steps[0].call.operation == "CONST" and steps[0].call.arguments:
        try:
            return json.loads(format_value(steps[0].call.arguments[0]))
        except ValueError:
            return MISSING
    return MISSING


def _part(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key, MISSING)
    if isinstance(value, list) and re.fullmatch(r"-?[0-9]{1,9}", key):
        return value[int(key)] if -len(value) <= int(key) < len(value) else MISSING
    return MISSING


def _shown(value: Any) -> str:
    if isinstance(value, list | Mapping):
        what = "items" if isinstance(value, list) else "keys"
        return f"{len(value):,} {what}"
    return value_text(value)


# Calls


def _takes_call(outer: Call, way: Way, known: Known) -> bool:
    """Say whether a call may stand where the mark is in ``outer``: as the argument that is one."""
    signature = known.operations.get(outer.operation)
    place = len(outer.arguments) - 1
    in_option = any(isinstance(node, Option) for node, _ in way)
    parameters = signature.parameters if signature is not None else ()
    return not in_option and place < len(parameters) and parameters[place].kind == "call"


def named(way: Way, known: Known) -> Iterator[Candidate]:
    """Yield what a bare name at the mark may be: an operation, an option's name, an option's value."""
    holder, attribute = way[-1]
    if isinstance(holder, Call) and attribute == "operation":
        outer = next((node for node, _ in reversed(way[:-1]) if isinstance(node, Call)), None)
        if outer is not None and not _takes_call(outer, way, known):
            return
        for name, signature in known.operations.items():
            if outer is None or name == "LLM":  # the only one that runs for each element
                yield Candidate(name, "operation", plain(signature.doc), _described(signature))
    elif isinstance(holder, Option):
        yield from options_of(way, known)
    elif isinstance(holder, Word):
        option = way[-2][0] if len(way) > 1 else None
        spec = _spec(way, known)
        if isinstance(option, Option) and spec is not None and spec.kind in ("type", "name"):
            yield from (Candidate(value, "value", f"{spec.name}={value}", plain(spec.doc)) for value in spec.values)


def options_of(way: Way, known: Known) -> Iterator[Candidate]:
    """Yield the options of the call around the mark that it does not have yet."""
    call = _call(way)
    signature = known.operations.get(call.operation) if call is not None else None
    if call is None or signature is None:
        return
    given = {option.name for option in call.options}
    for name in sorted(signature.option_names, key=lambda name: name not in signature.required):
        spec = signature.option(name)
        if name not in given and spec is not None:
            yield Candidate(f"{name}=", "option", _kind(spec), plain(spec.doc), match=name)


def strings_for(way: Way, known: Known) -> Iterator[str]:
    """Yield the texts that the option at the mark may have."""
    spec = _spec(way, known)
    if spec is None:
        return
    if spec.name in ("model", "judge"):
        yield from known.models or ()
    elif spec.kind == "string":
        yield from spec.values


def _call(way: Way) -> Call | None:
    return next((node for node, _ in reversed(way) if isinstance(node, Call)), None)


def _spec(way: Way, known: Known) -> OptionSpec | None:
    call = _call(way)
    option = next((node for node, _ in reversed(way) if isinstance(node, Option)), None)
    signature = known.operations.get(call.operation) if call is not None else None
    return signature.option(option.name) if option is not None and signature is not None else None


def takes_references(way: Way, known: Known) -> bool:
    """Say whether a reference may be meant where the mark stands: not in what must be a constant."""
    kind = kind_at(way, known)
    return kind is None or (kind != "nothing" and kind not in _NO_REFERENCE)


def kind_at(way: Way, known: Known) -> str | None:
    """Return the kind of the argument or option at the mark, "nothing" where no more arguments are taken, None of an unknown call."""
    call, spec = _call(way), _spec(way, known)
    if spec is not None:
        return spec.kind
    signature = known.operations.get(call.operation) if call is not None else None
    if call is None or signature is None:
        return None
    if any(isinstance(node, Option) for node, _ in way):
        return None
    place = max(0, len(call.arguments) - 1)
    return signature.parameters[place].kind if place < len(signature.parameters) else "nothing"


def may_begin(sign: str, kind: str | None) -> bool:
    """Say whether a value of a kind may begin with a sign of the grammar; signs that begin no value may stand wherever they can."""
    if sign not in _OPENING or kind is None:
        return True
    return sign in _BEGINS.get(kind, _OPENING)


def numbers_for(way: Way, known: Known) -> Iterator[Candidate]:
    """Yield the least number that the option at the mark takes, which says what it takes."""
    spec = _spec(way, known)
    if spec is not None and spec.kind in ("int", "float") and spec.minimum is not None:
        most = f" to {spec.maximum:,}" if spec.maximum is not None else " on"
        yield Candidate(f"{spec.minimum}", "value", f"from {spec.minimum:,}{most}", plain(spec.doc))


def embedded_in(way: Way, text: str, offset: int, known: Known) -> tuple[str, list[str]]:
    """Return the language of the string at the mark, "" for a prompt, and what an expression may name: the options behind it."""
    call, spec = _call(way), _spec(way, known)
    in_option = any(isinstance(node, Option) for node, _ in way)
    if in_option or call is None:
        return ("expr", []) if spec is not None and spec.kind == "condition" else ("", [])
    signature = known.operations.get(call.operation)
    place = len(call.arguments) - 1
    if signature is not None and place < len(signature.parameters) and signature.parameters[place].kind == "expression":
        end = text.find("\n", offset)
        return "expr", _OPTION.findall(text, offset, end if end >= 0 else len(text))
    return ("gasl", []) if call.operation == "GASL" else ("", [])


def _kind(spec: OptionSpec) -> str:
    return " | ".join(spec.values) if spec.values else spec.kind


def _described(signature: Signature) -> str:
    return block(signature.example, "lwt") if signature.example else ""
