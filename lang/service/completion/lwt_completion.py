"""Completion for LWT scripts."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

from attrs import evolve, frozen

from ...catalogue.operations import OptionSpec, Signature
from ...parse.lookahead import Met
from ...parse.lwt import parse_lwt
from ...parse.lwt.engine import automaton, follow, read_script, reference_pattern
from ...parse.lwt.shapes import HEAD, ID
from ...printer.lwt_printer import format_lwt, format_value
from ...source import Source, Span
from ...trees.lwt import MISSING, RESERVED, Call, Option, Script, Word
from ..model import Completion, Known, Variable, block, excerpt, plain, value_text
from .gasl_completion import complete_gasl
from .lwt_strings import call_at, spec_at, strings_for
from .place import MARK, Before, Candidate, Tongue, Way, complete_expr, found_by, ranked, words

# Finds candidates for a place in a script: operations, options and their values, references to steps and into the input.

_STEP_HEAD = re.compile(rf"^[ \t]*+\((?P<id>{ID})\)[ \t]*+=(?!=)", re.MULTILINE)
_NAMED = re.compile(rf"\{{\((?P<id>{ID})\)\}}")
_OPTION = re.compile(r"([A-Za-z_]\w*)[ \t]*=(?!=)")
_ACCESSOR = re.compile(r"\[([^\[\]\n]*)\]")
_BARE = re.compile(r"[\w.\-]+")
_NO_REFERENCE = frozenset({"json", "expression", "string", "strings", "columns", "int", "float", "type", "name"})
"""Kinds of arguments and options that must be constants."""
_QUOTE_MARKS = frozenset({'"', "'", '"""', "'''"})
_OPENING = _QUOTE_MARKS | {"[", "{"}
_BEGINS: Mapping[str, frozenset[str]] = {
    "template": _QUOTE_MARKS, "expression": _QUOTE_MARKS, "condition": _QUOTE_MARKS, "string": _QUOTE_MARKS, "type": _QUOTE_MARKS,
    "name": frozenset(),
    "list": frozenset({"["}), "call": frozenset(), "int": frozenset(), "float": frozenset(), "nothing": frozenset(),
    "strings": _QUOTE_MARKS | {"["}, "columns": _QUOTE_MARKS | {"["},
}  # fmt: skip
"""Maps each kind of value to the characters with which such a value may begin. Other kinds may begin with any character."""


def step_ids(text: str) -> dict[str, int]:
    """Return the ids of steps with their offsets, found without parsing. If an id occurs twice, its last offset is returned."""
    return {match["id"]: match.start("id") for match in _STEP_HEAD.finditer(text)}


def heads(text: str) -> Iterator[Candidate]:
    """Yield the heads of missing steps. Missing steps are those that are only referenced, and the step ``final``."""
    known = step_ids(text)
    wanted = dict.fromkeys(match["id"] for match in _NAMED.finditer(text))
    for name in (*wanted, "final"):
        if name not in known and name not in RESERVED:
            yield Candidate(
                f"({name})=", "step", "missing step" if name in wanted else "final step", match=f"({name})="
            )


def references(text: str, known: Known, own: str, in_each: bool, at: int) -> Iterator[Candidate]:
    """Yield the references that are allowed in the step ``own``. First come the steps above, nearest first, and then the steps below."""
    if in_each:
        yield Candidate("{(item)}", "variable", "the current element of EACH", match="item")
        yield Candidate("{(index)}", "variable", "the index of the element, from 0", match="index")
    ids = step_ids(text)
    for name, offset in sorted(ids.items(), key=lambda each: (each[1] > at, -each[1] if each[1] <= at else each[1])):
        if name != own:
            described = partial(_step_text, text, name, offset)
            yield Candidate(f"{{({name})}}", "step", match=name, described=described)
    for name, variable in known.variables.items():
        if name not in ids and re.fullmatch(ID, name):
            yield Candidate(f"{{({name})}}", "variable", excerpt(variable.holds), match=name)
    yield Candidate("{(input)}", "variable", "the input of the run", match="input")


def _step_text(text: str, name: str, offset: int) -> tuple[str, str]:
    end = text.find("\n", offset)
    end = end if end >= 0 else len(text)
    whole = text[text.rfind("\n", 0, offset) + 1 : end]
    return excerpt(text[offset + len(name) + 1 : end].lstrip("= \t")), block(whole, "lwt", 600)


def accessors(text: str, name: str, way: str, known: Known, quote: str) -> Iterator[Candidate]:
    """Yield the keys of the value at the end of a reference. The value must be known, so it must come from the input or a CONST step."""
    value = _value(text, name, known)
    for part in _ACCESSOR.findall(way):
        value = _part(value, part.strip("\\\"'"))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str):
                said = json.dumps(key, ensure_ascii=False)
                if quote and not _BARE.fullmatch(key):
                    continue  # quotes inside the key would need further escapes
                yield Candidate(f"[{key}]" if quote else f"[{said}]", "key", excerpt(_value_summary(inner)), match=key)
    elif isinstance(value, list) and value:
        yield Candidate("[0]", "key", "the first element", match="0")
        yield Candidate("[-1]", "key", "the last element", match="-1")


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


def _value_summary(value: Any) -> str:
    if isinstance(value, list | Mapping):
        what = "items" if isinstance(value, list) else "keys"
        return f"{len(value):,} {what}"
    return value_text(value)


# Finds candidates inside calls.


def _takes_call(outer: Call, way: Way, known: Known) -> bool:
    """Return whether the argument of ``outer`` at the cursor must be a call."""
    signature = known.operations.get(outer.operation)
    place = len(outer.arguments) - 1
    in_option = any(isinstance(node, Option) for node, _ in way)
    parameters = signature.parameters if signature is not None else ()
    return not in_option and place < len(parameters) and parameters[place].kind == "call"


def bare_name_candidates(way: Way, known: Known) -> Iterator[Candidate]:
    """Yield the candidates for a name without quotes at the cursor: operations, option names, or values of an option."""
    holder, attribute = way[-1]
    if isinstance(holder, Call) and attribute == "operation":
        outer = next((node for node, _ in reversed(way[:-1]) if isinstance(node, Call)), None)
        if outer is not None and not _takes_call(outer, way, known):
            return
        for name, signature in known.operations.items():
            if outer is None or signature.repeatable:
                yield Candidate(name, "operation", plain(signature.doc), _example(signature))
    elif isinstance(holder, Option):
        yield from options_of(way, known)
    elif isinstance(holder, Word):
        option = way[-2][0] if len(way) > 1 else None
        spec = spec_at(way, known)
        if isinstance(option, Option) and spec is not None and spec.kind in ("type", "name"):
            yield from (Candidate(value, "value", f"{spec.name}={value}", plain(spec.doc)) for value in spec.values)


def options_of(way: Way, known: Known) -> Iterator[Candidate]:
    """Yield the options that can still be added to the call around the cursor."""
    call = call_at(way)
    signature = known.operations.get(call.operation) if call is not None else None
    if call is None or signature is None:
        return
    given = {option.name for option in call.options}
    for name in sorted(signature.option_names, key=lambda name: name not in signature.required):
        spec = signature.option(name)
        if name not in given and spec is not None:
            yield Candidate(f"{name}=", "option", _kind(spec), plain(spec.doc), match=name)


def takes_references(way: Way, known: Known) -> bool:
    """Return whether a reference is allowed at the cursor. Constants can't contain references."""
    kind = kind_at(way, known)
    return kind is None or (kind != "nothing" and kind not in _NO_REFERENCE)


def kind_at(way: Way, known: Known) -> str | None:
    """Return the kind of the argument or option at the cursor.

    Return "nothing" after the last argument, and None if the kind is unknown.
    """
    call, spec = call_at(way), spec_at(way, known)
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
    """Return whether a value of the kind may begin with the character ``sign``.

    The result is also true if ``sign`` never begins a value.
    """
    if sign not in _OPENING or kind is None:
        return True
    return sign in _BEGINS.get(kind, _OPENING)


def numbers_for(way: Way, known: Known) -> Iterator[Candidate]:
    """Yield an example of a number for the option at the cursor. The example is the smallest number that the option allows."""
    spec = spec_at(way, known)
    if spec is not None and spec.kind in ("int", "float") and spec.minimum is not None:
        limits = f"{spec.minimum:,} to {spec.maximum:,}" if spec.maximum is not None else f"{spec.minimum:,} or greater"
        yield Candidate(f"{spec.minimum}", "value", limits, plain(spec.doc))


def embedded_in(way: Way, text: str, offset: int, known: Known) -> tuple[str, list[str]]:
    """Return the language of the string at the cursor, and the names that an expression there can use.

    For a prompt, the language is "". The names are the names of the options after the expression.
    """
    call, spec = call_at(way), spec_at(way, known)
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


def _example(signature: Signature) -> str:
    return block(signature.example, "lwt") if signature.example else ""


# Finds the place of the cursor in a script: a head, a reference, a string or a word. Only the step around the cursor is parsed.

_HEAD_LINE = re.compile(rf"^[ \t]*+(?={HEAD.pattern})", re.MULTILINE)
_REFERENCE = re.compile(
    rf"\{{\(?(?P<name>[\w.\-]*)\Z|\{{\((?P<of>{ID})\)\}}(?P<way>(?:\[[^\[\]\n]*\])*)\[(?P<key>[^\[\]\n]*)\Z"
)
_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_NEW_HEAD = re.compile(r"^[ \t]*+\([\w.\-]*\Z|^[ \t]*+\Z", re.MULTILINE)
_QUOTES = frozenset({"DOUBLE", "SINGLE", "TRIPLE_DOUBLE", "TRIPLE_SINGLE"})
_TEXTS = frozenset({"DOUBLE_TEXT", "SINGLE_TEXT"})
_LONGEST_STEP = 20_000
_MOST_HEADS = 4


@frozen
class Cursor:
    """The incomplete text at the cursor. ``begin`` is the offset of its start, and ``typed`` is the part before the cursor.

    ``before`` is the step's text up to ``begin``. If the incomplete text is in a reference, ``of`` is the name, and ``way`` are
    the accessors before the incomplete one. If the cursor is in a string, ``quote`` is the quote of the string.
    """

    kind: Literal["word", "reference", "accessor", "head", "string"]
    begin: int
    typed: str
    before: Before
    of: str = ""
    way: str = ""
    quote: str = ""


def cursor_at(text: str, offset: int) -> Cursor | None:
    """Return the incomplete text at ``offset``; None in a comment, between steps, or if the step is invalid before ``offset``."""
    line = text.rfind("\n", 0, offset) + 1
    if text[line:offset].lstrip().startswith("#"):
        return None
    for start in _starts(text, offset):
        found = _in_step(text, start, offset)
        if found is not None:
            return found
    if _NEW_HEAD.match(text, line, offset):
        return _head(text, line, offset)
    return None


def _head(text: str, line: int, offset: int) -> Cursor:
    begin = line + len(text[line:offset]) - len(text[line:offset].lstrip())
    states = tuple(automaton().follower("start").states)
    return Cursor("head", begin, text[begin:offset], Before("", states))


def _starts(text: str, offset: int) -> list[int]:
    """Return possible starts of the step around ``offset``, nearest first.

    Several starts are possible, because text like a head may be part of a string.
    """
    from_ = max(0, offset - _LONGEST_STEP)
    return [match.end() for match in _HEAD_LINE.finditer(text, from_, offset)][-_MOST_HEADS:][::-1]


def _in_step(text: str, start: int, offset: int) -> Cursor | None:
    reference = _REFERENCE.search(text, max(start, text.rfind("{", start, offset)), offset)
    if reference:
        before = _before(text, start, reference.start())
        if before is not None and "REFERENCE" in automaton().accepts(before[0].states):
            quote = _open_quote(before)
            if reference["of"]:
                key = reference["key"].lstrip("\"'\\")
                at = offset - len(reference["key"]) - 1
                return Cursor("accessor", at, key, before[0], reference["of"], reference["way"], quote)
            if quote or reference[0].startswith("{("):
                return Cursor("reference", reference.start(), reference["name"], before[0], quote=quote)
    whole = _before(text, start, offset)
    if whole is not None and (quote := _open_quote(whole)):
        opened = next(met for met in reversed(whole[1]) if met.terminal in _QUOTES)
        before = _before(text, start, opened.start)
        return Cursor("string", opened.start, text[opened.end : offset], before[0], quote=quote) if before else None
    word = _WORD.search(text, max(start, offset - 200), offset)
    begin = word.start() if word else offset
    before = _before(text, start, begin)
    if before is None or "HEAD" in automaton().accepts(before[0].states):
        return None
    return Cursor("word", begin, text[begin:offset], before[0])


def _before(text: str, start: int, begin: int) -> tuple[Before, list[Met]] | None:
    follower = follow(text, start, begin)
    return (Before(text[start:begin], tuple(follower.states)), follower.met) if follower is not None else None


def _open_quote(before: tuple[Before, list[Met]]) -> str:
    """Return the quote of the string that is open at the end of a text; "" if no string is open."""
    if not _TEXTS.intersection(automaton().accepts(before[0].states)):
        return ""
    opened = next((met for met in reversed(before[1]) if met.terminal in _QUOTES), None)
    return automaton().samples[opened.terminal] if opened is not None else ""


def complete_lwt(source: Source, offset: int, known: Known) -> tuple[Completion, ...]:
    """See ``service.complete``."""
    text = source.text
    cursor = cursor_at(text, offset)
    if cursor is None:
        return ()
    match cursor.kind:
        case "head":
            found: Iterator[Candidate] = heads(text)
        case "reference":
            found = _closed(_references(text, cursor, known), text, offset, ")}")
        case "accessor":
            inner = accessors(text, cursor.of, cursor.way, known, cursor.quote)
            found = _closed(inner, text, offset, "]")
        case "string":
            if inner_ones := _embedded(text, offset, cursor, known):
                return inner_ones
            found = _strings(text, offset, cursor, known)
        case "word":
            found = _words(text, cursor, known)
    return ranked(found, cursor.typed, Span(cursor.begin, offset))


def _tongue() -> Tongue:
    return Tongue(automaton(), read_script, lambda items: format_lwt(Script(tuple(items))), blank="")


def _closed(candidates: Iterator[Candidate], text: str, offset: int, closing: str) -> Iterator[Candidate]:
    """Yield the candidates.

    Closing characters that already follow the cursor are removed from them, because editors add such characters.
    """
    there = next((closing[at:] for at in range(len(closing)) if text.startswith(closing[at:], offset)), "")
    for each in candidates:
        said = each.text.removesuffix(there) if there else each.text
        yield evolve(each, text=said, match=each.compared)


def _references(text: str, cursor: Cursor, known: Known) -> Iterator[Candidate]:
    found = found_by(_tongue(), cursor.before, f"{{({MARK})}}", "REFERENCE")
    if found is None or not takes_references(found[0], known):
        return
    calls = [node for node, _ in found[0] if isinstance(node, Call)]
    own = cursor.before.text[1 : cursor.before.text.find(")")]
    yield from references(text, known, own, len(calls) > 1, cursor.begin)


def _strings(text: str, offset: int, cursor: Cursor, known: Known) -> Iterator[Candidate]:
    way = _in_string(cursor)
    if way is None:
        return
    closing = "" if text.startswith(cursor.quote, offset) else cursor.quote
    for each in strings_for(way, known, text, offset):
        if not set(each) & set("\"'\\{\n"):
            yield Candidate(f"{cursor.quote}{each}{closing}", "value", match=each)


def _embedded(text: str, offset: int, cursor: Cursor, known: Known) -> tuple[Completion, ...]:
    """Return the completions in a string that is a program or an expression.

    After an escape, or after a reference in a program, no completions are returned. There the value of the string differs from its source
    text.
    """
    typed = cursor.typed
    found = _in_string(cursor)
    if found is None or "\\" in typed:
        return ()
    language, names = embedded_in(found, text, offset, known)
    if language == "expr":  # in an expression, a reference is treated as a name
        typed = re.sub(reference_pattern(), lambda match: "r" * len(match[0]), typed)
    if "{(" in typed:
        return ()
    inner: tuple[Completion, ...] = ()
    if language == "gasl":
        inner = complete_gasl(Source(typed), len(typed), evolve(known, variables={}))
    elif language == "expr":
        inner = complete_expr(Source(typed), len(typed), Known(variables=dict.fromkeys(names, Variable())))
    begin = cursor.begin + len(cursor.quote)
    fitting = [each for each in inner if not set(each.text) & {cursor.quote[0], "\\", "{"}]
    if kind_at(found, known) == "condition" and any(each.kind == "function" for each in fitting):
        # A value is allowed wherever a function is allowed. The only values that a condition can name are those of steps.
        own = cursor.before.text[1 : cursor.before.text.find(")")]
        values = references(text, known, own, False, cursor.begin)
        fitting[:0] = ranked(values, text[begin + fitting[0].span.start : offset], fitting[0].span)
    return tuple(evolve(each, span=each.span.shift(begin), rank=rank) for rank, each in enumerate(fitting))


def _in_string(cursor: Cursor) -> Way | None:
    terminal = next(name for name, said in automaton().spellings.items() if said == (cursor.quote,))
    found = found_by(_tongue(), cursor.before, f"{cursor.quote}{MARK}{cursor.quote}", *_string(terminal))
    return found[0] if found is not None else None


def _string(terminal: str) -> tuple[str, ...]:
    return terminal, "SINGLE_TEXT" if "SINGLE" in terminal else "DOUBLE_TEXT", terminal


def _words(text: str, cursor: Cursor, known: Known) -> Iterator[Candidate]:
    tongue, before = _tongue(), cursor.before
    accepted = tongue.automaton.accepts(before.states)
    if "NAME" in accepted:
        for written, terminals in (
            (MARK, ("NAME",)),
            (f"{MARK}(", ("NAME", "_OPEN")),
            (f"{MARK}=", ("NAME", "_EQUALS")),
        ):
            found = found_by(tongue, before, written, *terminals)
            if found is not None:
                yield from bare_name_candidates(found[0], known)
    if "DOUBLE" in accepted:
        found = found_by(tongue, before, f'"{MARK}"', *_string("DOUBLE"))
        for each in strings_for(found[0], known, text, cursor.begin) if found else ():
            yield Candidate(json.dumps(each, ensure_ascii=False), "value", match=each)
    if "REFERENCE" in accepted:
        yield from _references(text, cursor, known)
    if not cursor.typed:
        kind = None
        if "DOUBLE" in accepted and found is not None:
            kind = kind_at(found[0], known)
            yield from numbers_for(found[0], known)
        for found_word in words(tongue, before):
            if found_word.terminal not in ("BRACE", "BACKSLASH") and may_begin(found_word.text, kind):
                yield Candidate(found_word.text, "punctuation")
