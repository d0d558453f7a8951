"""Removes a model's thinking and other text around its answer, and finds the one JSON object in the answer.

The object is searched for in this order: the complete text as JSON, the text without the model's thinking, a fenced block, and
the one object in prose. Comments, trailing commas, other quotes and Python literals are accepted only if strict JSON is not found.
Two different objects are refused, and a truncated object is never completed. Reading takes linear time; an answer of more than
``MAX_ANSWER`` characters is unreadable. No function here raises an exception, whatever the text. See
``docs/design/types.md#coercion``.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from .diagnostic import Diagnostic, apply_edits
from .documents.json_text import read_json
from .literals import (
    MAX_DEPTH,
    Unreadable,
    WrittenFloat,
    WrittenInt,
    is_doubtful,
    is_too_deep,
    kind_of,
    plain_numbers,
    read_literal,
    short,
)

ReadAs = Literal["exact", "thinking", "fenced", "embedded", "literal"]
MAX_ANSWER = 200_000
"""Maximum number of characters of an answer; a longer answer is unreadable."""

TWO_OBJECTS = "it has two different objects; answer with one object"
"""The reason why an answer with several objects is unreadable."""

_MOST_CLOSINGS = 8
"""Maximum number of closing thinking tags, counted from the end; the text after each of them is tried as a complete answer."""
_MOST_GROUPS = 1_000
"""Maximum number of groups of braces in an answer that are examined."""
_TAG = re.compile(r"<(/?)(think|thinking|thought|thoughts|reasoning|analysis|scratchpad|reflection)\s*>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)([^\n]*+)$", re.MULTILINE)


@frozen
class ObjectRead:
    """The object in an answer, and how the object was found. ``exact`` means that the object is the complete text.

    ``keys`` maps a wanted key to the key that the answer has in its place, which differs in letter case.
    """

    value: dict[str, Any]
    read_as: ReadAs
    keys: Mapping[str, str] = field(factory=dict)


@frozen
class CutOff(Unreadable):
    """The text ends too early: inside an object, or inside the model's thinking."""


Span: TypeAlias = tuple[int, int]


def without_thinking(text: str, kept: Sequence[Span] = ()) -> str | CutOff:
    """Return the text after the last closing tag of the model's thinking; ``CutOff`` if the thinking is not closed.

    The closing tags are ``</think>``, ``</thinking>``, ``</reasoning>`` and similar tags (see ``_TAG``). Tags inside the spans
    ``kept`` are ignored, because these are the spans of complete values. Text without tags is returned unchanged.
    """
    if "<" not in text:
        return text
    begin, opened = 0, False
    index = 0
    for tag in _TAG.finditer(text):
        while index < len(kept) and kept[index][1] <= tag.start():
            index += 1
        if index < len(kept) and kept[index][0] <= tag.start():
            continue
        opened = not tag[1]
        if tag[1]:
            begin = tag.end()
    return CutOff("it ends inside the thinking: </think> is missing") if opened else text[begin:]


def complete_objects(text: str) -> list[Span]:
    """Return the spans of the complete JSON objects in ``text``."""
    return [
        span
        for span in _spans(text)[:_MOST_GROUPS]
        if min(span) >= 0 and isinstance(_value_of(text[slice(*span)]), tuple)
    ]


def is_json_value(text: str) -> bool:
    """Return whether ``text`` is an object, a list or a string in JSON."""
    bare = text.strip()
    return bare[:1] in ("{", "[", '"') and isinstance(_parsed(bare), tuple)


def fenced_blocks(text: str) -> Iterator[tuple[Span, Span]]:
    """Yield the span of each fenced block of ``text``, and the span of the block's contents. Unclosed blocks are ignored."""
    if "```" not in text and "~~~" not in text:
        return
    opening: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opening is None:
            opening = line
        elif line[1].startswith(opening[1]) and not line[2].strip():
            yield (opening.start(), line.end()), (opening.end(), line.start())
            opening = None


def read_object(text: str, wanted: Collection[str] = (), *, written: bool = False) -> ObjectRead | Unreadable:
    """Return the one JSON object in ``text``. Never raises an exception.

    An object in prose is accepted only if it has at least one of the keys ``wanted``. If ``wanted`` is empty, every object is
    accepted. A key that differs from a wanted key in letter case only is that key (``ObjectRead.keys``). With ``written``, the
    numbers in the object are ``WrittenNumber``.
    """
    found = _found_object(text, wanted)
    if isinstance(found, Unreadable):
        return found
    value = found.value if written else plain_numbers(found.value)
    keyed = with_wanted_keys(value, wanted)
    return keyed if isinstance(keyed, Unreadable) else evolve(found, value=keyed[0], keys=keyed[1])


def with_wanted_keys(
    value: dict[str, Any], wanted: Collection[str]
) -> tuple[dict[str, Any], dict[str, str]] | Unreadable:
    """Return an object with the wanted keys in their own letter case, and the keys that it has in their place."""
    names = {name.casefold(): name for name in wanted}
    if not names or len(names) < len(set(wanted)) or names.keys().isdisjoint(map(str.casefold, value)):
        return value, {}
    made: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    for key, each in value.items():
        name = names.get(key.casefold(), key)
        if name in made and not _same(made[name], each):
            return Unreadable(f"it has two different values of {short(name)}")
        if name != key and name not in value:
            renamed[name] = key
        made[name] = each
    return made, renamed


def _found_object(text: str, wanted: Collection[str]) -> ObjectRead | Unreadable:
    if len(text) > MAX_ANSWER:
        return Unreadable(f"it has {len(text):,} characters; the maximum is {MAX_ANSWER:,}")
    whole = text.strip().removeprefix("\ufeff").strip()
    if not whole:
        return Unreadable("it is empty")
    exact = _parsed(whole)
    if isinstance(exact, Unreadable):
        return exact
    if exact is not None:
        return _object(exact[0], "exact")
    for tag in [tag for tag in _TAG.finditer(whole) if tag[1]][-_MOST_CLOSINGS:]:
        rest = whole[tag.end() :].strip()
        if _is_braced(rest) and isinstance(exact := _parsed(rest), tuple):
            return _object(exact[0], "thinking")
    complete: list[Span] = []
    if _TAG.search(whole):  # a tag inside a value is text
        complete = complete_objects(whole)
    answer = without_thinking(whole, complete)
    if isinstance(answer, CutOff):
        return answer
    answer = answer.strip()
    if len(answer) != len(whole) and (exact := _parsed(answer)) is not None:
        return exact if isinstance(exact, Unreadable) else _object(exact[0], "thinking")
    return _embedded_object(answer, wanted)


def _object(value: Any, read_as: ReadAs) -> ObjectRead | Unreadable:
    if not isinstance(value, dict):
        return Unreadable(f"it is {kind_of(value)}, not an object")
    return ObjectRead(value, read_as)


def _embedded_object(answer: str, wanted: Collection[str]) -> ObjectRead | Unreadable:
    """Return the one object in a text that contains more than a JSON value."""
    blocks = list(fenced_blocks(answer))
    candidates: list[tuple[dict[str, Any], ReadAs]] = []
    unreadable: Unreadable | None = None
    fenced = [inner for _, inner in blocks if _is_braced(answer[inner[0] : inner[1]].strip())]
    if fenced:  # braces in the prose around the blocks cannot hide their contents
        pieces = [(inner, True) for inner in fenced]
        ends = [0, *(outer[1] for outer, _ in blocks)]
        starts = [*(outer[0] for outer, _ in blocks), len(answer)]
        pieces += [((begin, end), False) for begin, end in zip(ends, starts, strict=True)]
    else:
        pieces = [((0, len(answer)), False)]
    for (begin, end), is_block in pieces:
        piece = answer[begin:end]
        spans = _spans(piece)
        if len(spans) > _MOST_GROUPS:
            return Unreadable(f"it has more than {_MOST_GROUPS:,} groups of braces")
        for start, stop in spans:
            if start < 0:
                unreadable = unreadable or Unreadable("it has a surplus }")
                continue
            if stop < 0:
                if end == len(answer):
                    return CutOff("it ends inside an object: it was cut off")
                unreadable = unreadable or Unreadable("it has braces that are not closed")
                continue
            inner = piece[start:stop]
            found = _value_of(inner)
            if isinstance(found, Unreadable):
                unreadable = unreadable or found
            elif found is None:
                folded = inner.casefold()
                keys = any(json.dumps(key).casefold() in folded or repr(key).casefold() in folded for key in wanted)
                if keys or (not wanted and re.search(r"[\"']\s*+:", inner)):
                    unreadable = unreadable or Unreadable(
                        f"it contains an object that is not valid JSON: {short(inner)}"
                    )
            elif isinstance(found[0], dict):
                value: dict[str, Any] = found[0]
                if not wanted or not {key.casefold() for key in wanted}.isdisjoint(map(str.casefold, value)):
                    candidates.append((value, found[1] or ("fenced" if is_block else "embedded")))
    if unreadable is not None or not candidates:
        return unreadable or Unreadable(_nothing(wanted))
    first, read_as = candidates[0]
    if any(not _same(value, first) for value, _ in candidates[1:]):
        return Unreadable(TWO_OBJECTS)
    return ObjectRead(first, read_as)


def _nothing(wanted: Collection[str]) -> str:
    if not wanted:
        return "it has no JSON object"
    return f"it has no JSON object with {' or '.join(map(short, list(wanted)[:5]))}"


def _value_of(text: str) -> tuple[Any, Literal["", "literal"]] | Unreadable | None:
    """Return the value of ``text`` as JSON, or else as a Python literal or nearly valid JSON; None if it is none of them."""
    exact = _parsed(text)
    if exact is not None:
        return exact if isinstance(exact, Unreadable) else (exact[0], "")
    literal = read_literal(text, written=True) or corrected(text)
    return literal if literal is None or isinstance(literal, Unreadable) else (literal[0], "literal")


_CORRECTIONS = 3


def corrected(text: str) -> tuple[Any] | Unreadable | None:
    """Return the value of nearly valid JSON that has one reading, with numbers as written; None for other text.

    Comments, surplus commas, other quotes around strings, raw line breaks in strings and Python's words are corrected. A missing
    comma or quote is not.
    """
    if not text or text[0] not in "{[" or is_doubtful(text):
        return None
    for _ in range(_CORRECTIONS):  # edits that overlap are applied one after the other
        found = read_json(text).diagnostics
        if not found or not all(_is_certain(each, text) for each in found):
            return None
        text = apply_edits(text, (edit for each in found for edit in each.edits))
        if (value := _parsed(text)) is not None:
            return value
    return None


def _is_certain(fault: Diagnostic, text: str) -> bool:
    """Return whether a fault in JSON has one possible correction."""
    if not fault.edits or fault.span is None:
        return False
    match fault.code:
        case "JSON003":  # a surplus comma is removed; a missing comma would be inserted
            return all(edit.span.start < edit.span.end for edit in fault.edits)
        case "JSON005":  # another kind of quotes; an unquoted word may be prose
            return not text[fault.span.start].isalnum()
        case _:
            return fault.code in ("JSON004", "JSON006", "JSON008")


def _is_braced(text: str) -> bool:
    return text.startswith("{") and text.endswith("}")


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true and 1 are different."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def is_finite(value: Any) -> bool:
    """Return whether a JSON value contains neither NaN nor infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _written_int(digits: str) -> WrittenInt:
    return WrittenInt(int(digits), digits)


def _parsed(text: str) -> tuple[Any] | Unreadable | None:
    """Parse ``text`` as JSON and return its value in a tuple; return None if its syntax is not JSON.

    If the syntax is valid, but the value is not allowed, return ``Unreadable``.
    """
    if not text or text[0] not in '{["-0123456789tfnNI':
        return None
    faults: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) != len(found):
            faults.append("an object has a duplicate key")
        return made

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_int=_written_int, parse_float=WrittenFloat)
    except RecursionError:
        return Unreadable(f"it is nested more than {MAX_DEPTH} levels deep")
    except ValueError as error:  # also an integer of thousands of digits
        return None if isinstance(error, json.JSONDecodeError) else Unreadable("it has a number that is too long")
    if faults:
        return Unreadable(faults[0])
    if is_too_deep(value):
        return Unreadable(f"it is nested more than {MAX_DEPTH} levels deep")
    if "\\ud" in text.lower() or not text.isascii():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return Unreadable("it contains a lone surrogate, which is not valid text")
    return (value,)


_MARK = re.compile(r"[{}\"']|(?<=[{\[(,:])\s*+'")


def _spans(text: str) -> list[Span]:
    """Return the spans of the outermost ``{...}`` in ``text``; if a brace is missing, its offset is -1.

    Quotes count only inside braces. An apostrophe opens a string only where a value or a key may begin.
    """
    found: list[Span] = []
    depth = start = 0
    position, end = 0, len(text)
    while position < end:
        mark = _MARK.search(text, position)
        if mark is None:
            break
        char, position = mark[0][-1], mark.end()
        if char == "{":
            if not depth:
                start = mark.start()
            depth += 1
        elif char == "}":
            if not depth:
                found.append((-1, position))
                continue
            depth -= 1
            if not depth:
                found.append((start, position))
        elif depth and (char == '"' or text[mark.start() - 1] in "{[(,:" or len(mark[0]) > 1):
            position = _behind_string(text, position, char)
    if depth:
        found.append((start, -1))
    return found


def _behind_string(text: str, position: int, quote: str) -> int:
    """Return the offset after the next closing ``quote``, searched from ``position``.

    If the quote is missing, return the end of ``text``.
    """
    while True:
        close = text.find(quote, position)
        if close < 0:
            return len(text)
        slashes = close
        while slashes > position and text[slashes - 1] == "\\":
            slashes -= 1
        if (close - slashes) % 2 == 0:
            return close + 1
        position = close + 1


# Quotes and marks around a short answer

BLANK = " \t\r\n\f\v\u00a0\ufeff\u200b\u200e\u200f\u2060"
_AROUND = (
    ("***", "***"), ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"),
    ("‘", "’"), ("«", "»"), ("「", "」"),
)  # fmt: skip
_ROUNDS = 6


def bare_text(text: str) -> str:
    """Return a short answer without surrounding spaces, pairs of quotes and Markdown emphasis marks, and without a final period."""
    text, period = text.strip(BLANK), False
    for _ in range(_ROUNDS):
        if not period and text.endswith(".") and len(text) > 1:
            text, period = text[:-1].rstrip(BLANK), True
        inner = inner_text(text)
        if inner is None:
            break
        text = inner
    if not period and text.endswith(".") and len(text) > 1:
        text = text[:-1].rstrip(BLANK)
    return text


def inner_text(text: str) -> str | None:
    """Return ``text`` without the quotes or the Markdown emphasis marks that enclose it; None if it is not enclosed."""
    for opening, closing in _AROUND:
        if len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : -len(closing)]
            if opening[0] not in inner and closing[0] not in inner:
                return inner.strip(BLANK)
    return None
