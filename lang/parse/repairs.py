"""Faults in a text, and the edits that repair them.

A ``Fault`` holds a diagnostic, and whether the lenient parser applies its edits and continues. ``repair`` applies edits and maps
spans back to the original text. ``reads_as_text`` recognises prose.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

import attrs
from attrs import evolve, frozen

from ..diagnostic import Diagnostic, Edit, sort_key
from ..source import Span
from ..trees import Node


@frozen
class Fault:
    """A fault in a text. If ``accepted``, the lenient parser applies the edits and reports the diagnostic as a warning.

    ``supposed`` are edits that are not offered, because the text may have another meaning. Parsing continues as if they had
    been applied. Therefore, later faults are found too.
    """

    diagnostic: Diagnostic
    accepted: bool = False
    supposed: tuple[Edit, ...] = ()

    def moved(self, move: Callable[[Span], Span]) -> "Fault":
        """Return the fault with ``move`` applied to all its spans."""
        supposed = tuple(Edit(move(edit.span), edit.text) for edit in self.supposed)
        return evolve(self, diagnostic=self.diagnostic.moved(move), supposed=supposed)

    @property
    def without_edits(self) -> "Fault":
        """Return the fault without the edits that it offers."""
        return evolve(self, diagnostic=evolve(self.diagnostic, edits=()))

    @property
    def as_warning(self) -> Diagnostic:
        """Return the diagnostic as the lenient parser reports it."""
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
    """Return a fault with an error at ``[start, end)``. The fault is accepted only if ``accepted`` is true and there are ``edits``."""
    diagnostic = Diagnostic(code, "error", message, Span(start, end), tuple(hint for hint in hints if hint), edits)
    return Fault(diagnostic, accepted and bool(edits))


class Unbuildable(Exception):
    """Raised for text that matches a grammar but cannot become a node.

    Reasons are deep nesting, numbers out of range and invalid escapes.
    """

    def __init__(
        self, code: str, message: str, span: Span, hints: tuple[str, ...] = (), edits: tuple[Edit, ...] = ()
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.span, self.hints, self.edits = code, message, span, hints, edits

    def as_fault(self, edits: tuple[Edit, ...] = ()) -> Fault:
        """Return this error as a fault with the given edits."""
        return fault(self.code, self.message, self.span.start, self.span.end, *self.hints, edits=edits)


def without_mark(text: str) -> str:
    """Return the text with a space in place of its byte order mark. All offsets stay the same."""
    return " " + text[1:] if text.startswith("\ufeff") else text


def in_order(diagnostics: Iterable[Diagnostic], length: int) -> tuple[Diagnostic, ...]:
    """Return the diagnostics in source order. A span that extends past the end of the text is cut at ``length``."""

    def within(span: Span) -> Span:
        return span if span.end <= length else Span(min(span.start, length), length)

    placed = (evolve(each, span=within(each.span)) if each.span else each for each in diagnostics)
    return tuple(sorted(placed, key=sort_key))


def shortened(text: str, limit: int = 30) -> str:
    """Return ``text`` shortened for a message, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


# Applies edits to a text and maps spans of the repaired text back to the original.

_N = TypeVar("_N", bound=Node)


@frozen
class Repaired:
    """A repaired text. The replacement of ``_edits[k]`` begins at ``_starts[k]`` in ``text``; ``_edits`` are in source order."""

    text: str
    _starts: tuple[int, ...]
    _edits: tuple[Edit, ...]

    def back(self, offset: int) -> int:
        """Return the offset in the original text for ``offset`` in the repaired text."""
        found = bisect_right(self._starts, offset) - 1
        if found < 0:
            return offset
        edit = self._edits[found]
        within = offset - self._starts[found]
        if within < len(edit.text):
            return min(edit.span.start + within, edit.span.end)
        return edit.span.end + within - len(edit.text)

    def back_span(self, span: Span) -> Span:
        """Return the span in the original text for ``span`` in the repaired text."""
        start = self.back(span.start)
        return Span(start, max(start, self.back(span.end)))


def back(chain: Sequence[Repaired], span: Span) -> Span:
    """Return the span in the original text that corresponds to ``span`` in the last text of a chain of repairs."""
    for repaired in reversed(chain):
        span = repaired.back_span(span)
    return span


def repair(text: str, edits: Iterable[Edit]) -> Repaired:
    """Apply ``edits`` to ``text``. If two edits overlap, the one that begins later is skipped."""
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
    """Return ``node`` with ``move`` applied to every span in its tree. Recursive: ``MAX_DEPTH`` limits the depth of a tree."""

    def moved(value: Any) -> Any:
        if isinstance(value, Node):
            return respan(value, move)
        if isinstance(value, tuple):
            return tuple(moved(item) for item in value)
        return value

    kind: Any = type(node)
    fields = {name: moved(getattr(node, name)) for name in _names(kind)}
    return type(node)(**fields, span=move(node.span))


# Recognises lines that are certainly prose, outside commands and steps, so that they can become comments without loss. A line
# that may be part of the program gets no such edit: a client that applies all edits automatically would run an incomplete
# program.

_ASKED = (
    "SHOW LIST DISPLAY PRINT RETURN GIVE TELL ASK DESCRIBE SUMMARIZE SORT ORDER FILTER GET FETCH SEARCH LOOKUP LOAD SAVE STORE"
    " KEEP PUT ADD INSERT MERGE CREATE DEFINE DROP DELETE REMOVE CLEAR CALL RUN EXECUTE USE EXPORT IMPORT OUTPUT WRITE READ"
    " TAKE GROUP SUM AVERAGE COMPUTE CALCULATE COMPARE CHECK VERIFY EXTRACT LABEL TRAVERSE EXPAND FOLLOW LIMIT WHERE AND OR THEN"
    " ELSE"
)
_REQUESTS = frozenset(_ASKED.split())
"""First words of lines that request an action: such a line must not become a comment."""

_TOLD = re.compile(
    r"\b(?:is|are|was|were|be|been|will|would|can|could|should|must|may|might|has|have|had|does|did|do(?:es)?n't|let's|i|i'm|i'll|we"
    r"|we'll|you|your|it|its|it's|they|them|their|this|these|that|those|here|here's|below|above|follows?|following|please|sure|okay"
    r"|certainly|hope|helps|note|let me|let us)\b",
    re.IGNORECASE,
)
"""Words that occur in sentences but not in queries."""

_ENDED = re.compile(r"[.:!?][)\]\"'*_`]{0,3}\Z")
_RULE = re.compile(r"[-=*_~ \t]{3,}|\|.*\||(?:={2,}|-{3,}|\*{3,})[\w \t]{1,60}(?:={2,}|-{3,}|\*{3,})")
_REMARK = re.compile(r"--(?!-)|//|/\*|\*/")
_WORD = re.compile(r"[^\W\d][\w']*")


def is_ended(line: str) -> bool:
    """Return whether the line ends like a sentence or a heading."""
    return _ENDED.search(line) is not None


def is_remark(line: str) -> bool:
    """Return whether the line begins like a comment in another language, or is a horizontal rule or a table row."""
    return _REMARK.match(line) is not None or _RULE.fullmatch(line) is not None


def reads_as_text(line: str, before: str = "") -> bool:
    """Return whether a stripped line is a sentence, a heading, or the continuation of ``before``, the line of text above it."""
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
