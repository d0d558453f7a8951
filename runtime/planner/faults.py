"""What is wrong with what a planner wrote: the linter's diagnostics, and those that only a ranking has.

``RANK001`` to ``RANK007`` are told in full in ``lang.rules.ranking``: a model sees the codes, and ``knotwork rules`` explains them.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...lang.diagnostic import Diagnostic, all_as_json
from ...lang.source import Source
from ..commands.excerpts import clipped

__all__ = ["as_lines", "as_objects", "excerpts", "fault", "told"]

_MOST = 20
"""Diagnostics that a model is shown; most of them have one cause."""


_LINES, _LINE, _MESSAGE = 12_000, 3_000, 500
"""Characters of all diagnostics in a prompt, of one of them, of the message of one that is longer."""
_MARK = 100
"""Characters that may say what is left out before a place."""


def fault(code: str, message: str, *hints: str) -> Diagnostic:
    """Return an error without a place."""
    return Diagnostic(code, "error", message, None, tuple(hint for hint in hints if hint))


def as_objects(diagnostics: Sequence[Diagnostic], source: Source) -> tuple[dict[str, Any], ...]:
    """Return the errors among ``diagnostics``, or all where there is none, as JSON objects."""
    errors = [each for each in diagnostics if each.severity == "error"] or list(diagnostics)
    return tuple(all_as_json(errors[:_MOST], source))


def as_lines(objects: Sequence[dict[str, Any]]) -> str:
    """Return diagnostics for a prompt, one JSON object a line, in at most 12,000 characters."""
    lines: list[str] = []
    left = _LINES
    for each in objects:
        line = json.dumps(each, ensure_ascii=False)
        if len(line) > _LINE:  # what it says, without the edits that it offers
            line = json.dumps(
                {**each, "message": clipped(str(each["message"]), _MESSAGE), "hints": [], "edits": []},
                ensure_ascii=False,
            )
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def excerpts(text: str, places: Sequence[tuple[int, int]], most: int) -> str:
    """Return ``text`` in at most ``most`` characters: all of it, or its beginning and what is around ``places`` (from, to).

    What is left out is marked with the offsets at which the text goes on.
    """
    if len(text) <= most:
        return text
    spans = [(0, 0), *((max(0, start), min(len(text), end)) for start, end in places[:_MOST])]
    around = (most // len(spans) - _MARK) // 2
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        start, end = max(0, start - around), min(len(text), start + around)
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    made = [text[kept[0][0] : kept[0][1]]]
    for (_, before), (start, end) in pairwise(kept):
        made.append(f"\n[… {start - before:,} characters left out; from offset {start}:]\n{text[start:end]}")
    if kept[-1][1] < len(text):
        made.append(f"\n[… {len(text) - kept[-1][1]:,} characters left out]")
    return "".join(made)


def told(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the first error in one sentence, with its hint."""
    first = next((each for each in diagnostics if each.severity == "error"), None) or diagnostics[0]
    hint = f" ({first.hints[0]})" if first.hints else ""
    more = sum(each.severity == "error" for each in diagnostics) - 1
    return f"{first.message}{hint} [{first.code}]" + (f", and {more} more" if more > 0 else "")
