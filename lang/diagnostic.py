"""Diagnostics: a diagnostic describes a fault, its place in a text, and its fix.

The same value is printed for a person (``picture``), written as JSON for a program (``as_json``) and sent back to a
model. The JSON has the shape ``{code, severity, message, file, span: {start, end, line, column, end_line, end_column} | null,
hints: [str], edits: [{start, end, text}]}``. Offsets count code points from 0; lines and columns count from 1.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from .source import Source, Span
from .unicode_forms import canonical

Severity = Literal["error", "warning", "info"]


@frozen
class Edit:
    """Replaces the text at ``span`` with ``text``."""

    span: Span
    text: str

    def shift(self, by: int) -> "Edit":
        """Return the edit moved ``by`` code points to the right."""
        return Edit(self.span.shift(by), self.text)


@frozen
class Diagnostic:
    """One fault or remark. All ``edits`` together are one fix; ``hints`` are sentences for the reader."""

    code: str
    severity: Severity
    message: str
    span: Span | None = None
    hints: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    def moved(self, move: Callable[[Span], Span]) -> "Diagnostic":
        """Return the diagnostic with ``move`` applied to its span and to the spans of its edits."""
        edits = tuple(Edit(move(edit.span), edit.text) for edit in self.edits)
        return evolve(self, span=move(self.span) if self.span else None, edits=edits)


def sort_key(diagnostic: Diagnostic) -> tuple[int, str, str]:
    """Return the sort key of a diagnostic: place, then code, then message."""
    return (diagnostic.span.start if diagnostic.span else -1, diagnostic.code, diagnostic.message)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether one of the diagnostics is an error."""
    return any(diagnostic.severity == "error" for diagnostic in diagnostics)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the author of ``name`` most likely meant, or None.

    If there are more known names, a higher similarity is required: a loose similarity to one of a thousand names is likely a coincidence.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    # A name that looks the same, in another Unicode form, would not help.
    form = None if name.isascii() else canonical(name)
    candidates = [each for each in known if form is None or each == name or canonical(each) != form]
    if not candidates or len(name) > 200:
        return None
    folded = {candidate.casefold(): candidate for candidate in reversed(candidates)}
    if name.casefold() in folded:
        return folded[name.casefold()]
    threshold = 0.5 if len(candidates) <= 5 else 0.6 if len(candidates) <= 100 else 0.7
    found = process.extractOne(name.casefold(), folded.keys(), scorer=OSA.normalized_similarity, score_cutoff=threshold)
    return folded[found[0]] if found else None


def suggestion(name: str, known: Sequence[str], listed: int = 8, none: str = "") -> str:
    """Return a hint for an unknown name: the most similar known name or, without one, at most ``listed`` known names.

    Returns the text ``none`` if ``known`` is empty.
    """
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near}?"
    return f"available: {', '.join(known[:listed])}{', ...' if len(known) > listed else ''}" if known else none


_SEPARATORS = str.maketrans("", "", " _-.\t")


def is_spelling(written: str, meant: str) -> bool:
    """Return whether two names differ only in case, spaces, ``_``, ``-`` and ``.``."""
    return _folded(written) == _folded(meant)


def is_slip(written: str, meant: str) -> bool:
    """Return whether ``written`` is ``meant`` with one typing error: a letter omitted, doubled or wrong, or two letters swapped.

    Differences between short names, and different digits, are never typing errors: ``x2`` is not ``x1``, and ``cat`` is not ``car``.
    """
    from rapidfuzz.distance import OSA

    one, other = _folded(written), _folded(meant)
    if one == other:
        return True
    digits = [[c for c in name if c.isdigit()] for name in (one, other)]
    return digits[0] == digits[1] and min(len(one), len(other)) >= 5 and OSA.distance(one, other) == 1


def _folded(name: str) -> str:
    return name.casefold().translate(_SEPARATORS)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` with ``edits`` applied. If two edits overlap, the first in the text is applied and the other is skipped."""
    pieces, done = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < done:
            continue
        pieces += [text[done : edit.span.start], edit.text]
        done = edit.span.end
    pieces.append(text[done:])
    return "".join(pieces)


def compatible(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics, without edits that conflict: all remaining edits can be applied together, in one pass.

    If edits of two diagnostics are equal, overlap, or insert text at the same place, only one of the diagnostics keeps its edits: the
    error, or else the first. The other diagnostic loses all its edits, because a partial fix can do harm. A check of the edited text
    reports the other diagnostic again if it still applies.
    """
    found = tuple(diagnostics)
    starts: list[int] = []
    ends: list[int] = []
    dropped = set()
    for number in sorted(range(len(found)), key=lambda number: found[number].severity != "error"):
        spans = [edit.span for edit in found[number].edits]
        if any(_meets(span, starts, ends) for span in spans):
            dropped.add(number)
            continue
        for span in spans:
            at = bisect_left(starts, span.start)
            starts.insert(at, span.start)
            ends.insert(at, span.end)
    return tuple(evolve(each, edits=()) if number in dropped else each for number, each in enumerate(found))


def _meets(span: Span, starts: list[int], ends: list[int]) -> bool:
    """Return whether ``span`` overlaps one of the spans given by ``starts`` and ``ends``, or starts at the same place.

    The given spans are in order and do not overlap each other.
    """
    at = bisect_left(starts, span.start)
    return (at < len(starts) and (starts[at] == span.start or starts[at] < span.end)) or (
        at > 0 and ends[at - 1] > span.start
    )


def all_as_json(diagnostics: Iterable[Diagnostic], source: Source) -> list[dict[str, Any]]:
    """Return the diagnostics of one text as JSON objects whose edits can all be applied together."""
    return [as_json(diagnostic, source) for diagnostic in compatible(diagnostics)]


def as_json(diagnostic: Diagnostic, source: Source) -> dict[str, Any]:
    """Return the diagnostic as the JSON object that all interfaces use (see the module's docstring)."""
    where = None
    if diagnostic.span is not None:
        line, column = source.position(diagnostic.span.start)
        end_line, end_column = source.position(diagnostic.span.end)
        where = {
            "start": diagnostic.span.start,
            "end": diagnostic.span.end,
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
        }
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": source.name,
        "span": where,
        "hints": list(diagnostic.hints),
        "edits": [{"start": e.span.start, "end": e.span.end, "text": e.text} for e in diagnostic.edits],
    }


WIDTH = 110
"""Maximum number of source columns in a picture; a longer line is cut to the part around the fault."""
_LEAST = 10


def picture(diagnostic: Diagnostic, source: Source, width: int = WIDTH) -> str:
    """Return the diagnostic as text for a person: place, message, the line with a caret under the fault, and the hints.

    ``width`` is the maximum number of source columns.
    """
    head = f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"
    lines = [head]
    if diagnostic.span is not None:
        line, column = source.position(diagnostic.span.start)
        lines.append(f"  --> {printable(source.name)}:{line}:{column}")
        if source.text:
            lines += _excerpt(source, diagnostic.span, line, column, max(width, _LEAST))
    lines += [f"  = help: {hint}" for hint in diagnostic.hints]
    return "\n".join(lines)


def _excerpt(source: Source, span: Span, line: int, column: int, width: int) -> Sequence[str]:
    text = source.line(line)
    length = max(1, min(span.end, source.line_span(line).end) - span.start)
    first = column - 1
    cut = max(0, first - width // 2) if len(text) > width else 0
    shown = text[cut : cut + width]
    before = printable(shown[: first - cut])
    marked = printable(shown[first - cut : first - cut + length])
    body = before + marked + printable(shown[first - cut + length :])
    left, right = ("…" if cut else ""), ("…" if cut + width < len(text) else "")
    gutter = f"{line:>4}"
    carets = " " * (_columns(before) + len(left)) + "^" * max(1, _columns(marked))
    return (f"{gutter} | {left}{body}{right}", f"{'':>4} | {carets}")


JOINERS = frozenset("\u200c\u200d")
"""Invisible characters that some scripts and emoji need inside words."""


def printable(text: str) -> str:
    """Return ``text`` made safe for a terminal: tabs become one space, control characters and surrogates become escapes.

    A joiner stays between two visible characters.
    """
    if text.isprintable():
        return text
    return "".join(
        " " if c == "\t" else c if c.isprintable() or _joins(text, at) else c.encode("unicode_escape").decode("ascii")
        for at, c in enumerate(text)
    )


def _joins(text: str, at: int) -> bool:
    around = text[at - 1 : at] + text[at + 1 : at + 2]
    return text[at] in JOINERS and len(around) == 2 and around.isprintable() and " " not in around


def _columns(text: str) -> int:
    """Return the width of ``text`` in terminal columns. A wide East Asian character takes two columns. A combining character takes none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) or c in JOINERS else 2 if east_asian_width(c) in "WF" else 1 for c in text)


# Messages for JSON errors.

_FAULTS: Mapping[str, str] = {
    "Extra data": "unexpected text after the JSON value: {found}",
    "Unterminated string": "a string has no closing quote",
    "Expecting ',' delimiter": "a comma, or a closing bracket, is missing before {found}",
    "Expecting ':' delimiter": "a colon is missing before {found}",
    "Expecting property name": "a key in double quotes is missing before {found}",
    "Illegal trailing comma": "a comma precedes a closing bracket",
    "Invalid control character": "a string has an unescaped line break or control character",
    "Invalid \\uXXXX": "\\u needs four hexadecimal digits",
    "Invalid \\escape": "unknown escape {found}",
    "Unexpected UTF-8 BOM": "it begins with a byte order mark",
}
"""Maps the beginning of each message of Python's JSON decoder to the clause that replaces it."""
_FOUND = 24


def json_words(error: json.JSONDecodeError) -> str:
    """Return a clause that says why a text is not valid JSON. ``error`` is the decoder's error, which holds the text and the position."""
    text, at = error.doc, error.pos
    if not text.strip():
        return "it is empty"
    if at >= len(text.rstrip()):
        return "it ends too early"
    rest = " ".join(text[at : at + 4 * _FOUND].split())
    quote = '"' if "'" in rest else "'"
    shown = f"{quote}{rest if len(rest) <= _FOUND else rest[:_FOUND] + '...'}{quote}"
    told = next((told for begins, told in _FAULTS.items() if error.msg.startswith(begins)), None)
    if told is not None:
        return told.format(found=shown)
    return f"it begins with {shown}" if not text[:at].strip() else f"a value is missing before {shown}"
