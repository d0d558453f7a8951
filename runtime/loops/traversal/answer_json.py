"""Finds the JSON in a model's answer: the complete text, a fenced block, or an object in prose. Fixes or reports faults in the JSON."""

import re
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from ....lang.diagnostic import Diagnostic, apply_edits, has_errors
from ....lang.documents.json_text import read_json
from ....lang.literals import Reading, read
from ....lang.source import Source

ENDS = ("complete", "COMPLETE", "final_answer", "answer")
"""Keys of an object that may hold the answer."""
_KEYS = frozenset(
    {"decision", "hypothesis", "why", "next_actions", "confidence", "rationale", "evidence", "plan", "plan_id", *ENDS}
)
"""Keys that an answer may have, besides ``commands`` and ``config``."""
_FAULTY_JSON = re.compile(r"""\{\s*["']?[A-Za-z_]+["']?\s*:""")
"""Pattern of the beginning of an object that may be the answer."""
_PUNCTUATION = frozenset({"JSON002", "JSON003", "JSON004", "JSON005", "JSON006", "JSON008", "JSON012"})
"""Codes of faults in JSON whose edits change only punctuation, so the meaning is certain."""
_JSON_ROUNDS = 3
_TRIES = 3
"""Maximum number of braces in prose at which the beginning of an object is tried."""


@frozen
class Unreadable:
    """The answer does not have one of the three forms; ``reason`` is a clause that says why.

    If the answer is faulty JSON, ``source`` is its text and ``diagnostics`` are its faults.
    """

    reason: str
    source: Source | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


@frozen
class AnswerValues:
    """The candidate values of an answer. ``remark`` reports fixed faults in the JSON, ``faults`` are the faults without a certain fix."""

    values: tuple[Any, ...] = ()
    remark: str = ""
    faults: Unreadable | None = None


def answer_values(text: str) -> AnswerValues:
    """Return the values in a text. If the text contains only an object with faulty punctuation, fix the faults or report them."""
    readable = tuple(values(text))
    begins = _FAULTY_JSON.search(text)
    if readable or begins is None:
        return AnswerValues(readable)
    written = source = Source(text[begins.start() :], "<answer>")
    first = found = read_json(source).diagnostics
    fixed: dict[str, None] = {}
    for _ in range(_JSON_ROUNDS):
        if not found or not all(each.code in _PUNCTUATION and each.edits for each in found):
            break
        fixed |= dict.fromkeys(each.message for each in found)
        source = Source(apply_edits(source.text, (edit for each in found for edit in each.edits)), "<answer>")
        value = read(source.text)
        if isinstance(value, Reading) and isinstance(value.value, dict):
            return AnswerValues((value.value,), f"the JSON of the answer was fixed: {'; '.join(fixed)}")
        found = read_json(source).diagnostics
    return AnswerValues(faults=Unreadable("it is not valid JSON", written, tuple(first)) if has_errors(first) else None)


def values(text: str) -> Iterator[Any]:
    """Yield candidate values: the value of the complete text (or of its fenced block), then objects in prose."""
    found = read(text)
    if isinstance(found, Reading):
        yield found.value
        return
    begin = -1
    for _ in range(_TRIES):
        begin = text.find("{", begin + 1)
        if begin < 0:
            return
        end = _closing(text, begin)
        found = read(text[begin:end])
        if isinstance(found, Reading) and isinstance(found.value, dict):
            yield found.value
        elif end == len(text) and text[begin + 1 :].lstrip()[:1] == '"':
            return  # the object is faulty or truncated; objects inside it are not the answer
        begin = end - 1 if end < len(text) else begin


def _closing(text: str, begin: int) -> int:
    """Return the end of the object that begins at ``begin``. Return the end of the text if the object is not closed."""
    depth, quoted, at = 0, False, begin
    while at < len(text):
        character = text[at]
        if quoted:
            if character == "\\":
                at += 1
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth <= 0:
                return at + 1
        at += 1
    return len(text)


def key_faults(text: str) -> tuple[Diagnostic, ...]:
    """Return the faults of a plan without commands: unknown keys, or the missing key."""
    from ....lang.documents.plan import read_plan  # imports pydantic

    found = read_plan(Source(text, "<answer>")).diagnostics
    unknown = [
        each
        for each in found
        if each.code == "PLAN002" and each.span and text[each.span.start : each.span.end].strip("\"'") not in _KEYS
    ]
    return tuple(unknown or [each for each in found if each.code == "PLAN003" and each.message.startswith("commands")])
