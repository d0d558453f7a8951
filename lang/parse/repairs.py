"""A fault of a text: its diagnostic, and whether a lenient reading makes the diagnostic's edits and goes on."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import attrs
from attrs import evolve, frozen

from ..diagnostic import Diagnostic, Edit
from ..source import Span
from ..trees import Node

__all__ = ["Fault", "Repaired", "fault", "is_ended", "is_remark", "reads_as_text", "repair", "respan", "shown"]


@frozen
class Fault:
    """One thing wrong. ``accepted``: the lenient reading takes the text as edited, and the diagnostic is a warning.

    ``supposed`` are edits that are never offered, because the text has another reading: reading goes on as if they were made, so
    that the faults behind this one are found too.
    """

    diagnostic: Diagnostic
    accepted: bool = False
    supposed: tuple[Edit, ...] = ()

    @property
    def as_warning(self) -> Diagnostic:
        """The diagnostic as the lenient reading reports it."""
        return evolve(self.diagnostic, severity="warning")


def fault(
    code: str,
    message: str,
    start: int,
    end: int,
    *hints: str,
    edits: tuple[Edit, ...] = (),
    accepted: bool = False,
) -> Fault:
    """Build an error over ``[start, end)``; what can't be edited can't be accepted."""
    diagnostic = Diagnostic(code, "error", message, Span(start, end), tuple(hint for hint in hints if hint), edits)
    return Fault(diagnostic, accepted and bool(edits))


def shown(text: str, limit: int = 30) -> str:
    """Return ``text`` short enough for a message, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


# Edits applied to a text, and the way back: from spans of the repaired text to spans of the text as it was given.

_N = TypeVar("_N", bound=Node)


@frozen
class Repaired:
    """A repaired text. ``_starts[k]`` is where edit k's replacement begins in it; ``_edits`` are in place order."""

    text: str
    _starts: tuple[int, ...]
    _edits: tuple[Edit, ...]

    def back(self, offset: int) -> int:
        """Return the offset in the given text for ``offset`` in the repaired one."""
        found = bisect_right(self._starts, offset) - 1
        if found < 0:
            return offset
        edit = self._edits[found]
        within = offset - self._starts[found]
        if within < len(edit.text):
            return min(edit.span.start + within, edit.span.end)
        return edit.span.end + within - len(edit.text)

    def back_span(self, span: Span) -> Span:
        """Return the span in the given text for ``span`` in the repaired one."""
        start = self.back(span.start)
        return Span(start, max(start, self.back(span.end)))


def repair(text: str, edits: Iterable[Edit]) -> Repaired:
    """Make ``edits`` in ``text``; of two that overlap the later one by place is left out."""
    pieces: list[str] = []
    made: list[Edit] = []
    starts: list[int] = []
    done = length = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < done:
            continue
        kept = text[done : edit.span.start]
        length += len(kept)
        starts.append(length)
        made.append(edit)
        pieces += [kept, edit.text]
        length += len(edit.text)
        done = edit.span.end
    pieces.append(text[done:])
    return Repaired("".join(pieces), tuple(starts), tuple(made))


@cache
def _names(kind: type[Node]) -> tuple[str, ...]:
    return tuple(a.name for a in attrs.fields(kind) if a.name != "span")


def respan(node: _N, move: Callable[[Span], Span]) -> _N:
    """Return ``node`` with every span in it moved. Recursive: trees are at most ``builder.MAX_DEPTH`` deep."""

    def moved(value: Any) -> Any:
        if isinstance(value, Node):
            return respan(value, move)
        if isinstance(value, tuple):
            return tuple(moved(item) for item in value)
        return value

    kind: Any = type(node)
    fields = {name: moved(getattr(node, name)) for name in _names(kind)}
    return type(node)(**fields, span=move(node.span))


# Which lines outside of commands and steps are text by all signs, so that nothing is lost where they become remarks.
# A line that only may be text gets no such edit: who makes the edits of a check without a look would run a program with a part of
# it left out.

_ASKED = (
    "SHOW LIST DISPLAY PRINT RETURN GIVE TELL ASK DESCRIBE SUMMARIZE SORT ORDER FILTER GET FETCH SEARCH LOOKUP LOAD SAVE STORE"
    " KEEP PUT ADD INSERT MERGE CREATE DEFINE DROP DELETE REMOVE CLEAR CALL RUN EXECUTE USE EXPORT IMPORT OUTPUT WRITE READ"
    " TAKE GROUP SUM AVERAGE COMPUTE CALCULATE COMPARE CHECK VERIFY EXTRACT LABEL TRAVERSE EXPAND FOLLOW LIMIT WHERE AND OR THEN"
    " ELSE"
)
_REQUESTS = frozenset(_ASKED.split())
"""First words of a line that asks for something: left out, something would be missing."""

_TOLD = re.compile(
    r"\b(?:is|are|was|were|be|been|will|would|can|could|should|must|may|might|has|have|had|does|did|do(?:es)?n't|let's|i|i'm|i'll|we"
    r"|we'll|you|your|it|its|it's|they|them|their|this|these|that|those|here|here's|below|above|follows?|following|please|sure|okay"
    r"|certainly|hope|helps|note|let me|let us)\b",
    re.IGNORECASE,
)
"""Words of sentences, which no query has."""

_ENDED = re.compile(r"[.:!?][)\]\"'*_`]{0,3}\Z")
_RULE = re.compile(r"[-=*_~ \t]{3,}|\|.*\||(?:={2,}|-{3,}|\*{3,})[\w \t]{1,60}(?:={2,}|-{3,}|\*{3,})")
_REMARK = re.compile(r"--(?!-)|//|/\*|\*/")
_WORD = re.compile(r"[^\W\d][\w']*")


def is_ended(line: str) -> bool:
    """Say whether the line ends as a sentence or a heading does."""
    return _ENDED.search(line) is not None


def is_remark(line: str) -> bool:
    """Say whether the line begins as a remark of another language does, or is a rule or a row of a table."""
    return _REMARK.match(line) is not None or _RULE.fullmatch(line) is not None


def reads_as_text(line: str, before: str = "") -> bool:
    """Say whether a line without blanks around it is a sentence, a heading, or goes on with the text ``before`` it."""
    body = line.lstrip("*_>#- \t")
    word = _WORD.match(body)
    if not word or word[0].upper() in _REQUESTS:
        return False
    if len(word[0]) > 1 and word[0].isupper() and not is_ended(body):
        return False
    if line.endswith("**"):
        return True  # a heading in bold
    goes_on = bool(before) and not is_ended(before) and body[0].islower()
    return goes_on or is_ended(body) or _TOLD.search(body) is not None
