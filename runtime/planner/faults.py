"""What is wrong with what a planner wrote: the linter's diagnostics, and those that only a ranking has.

``RANK001`` to ``RANK007`` are told in full in ``lang.rules.ranking``: a model sees the codes, and ``knotwork rules`` explains them.
"""

import json
from collections.abc import Sequence
from typing import Any

from ...lang.diagnostic import Diagnostic, as_json
from ...lang.source import Source

__all__ = ["as_lines", "as_objects", "fault", "told"]

_MOST = 20
"""Diagnostics that a model is shown; most of them have one cause."""


def fault(code: str, message: str, *hints: str) -> Diagnostic:
    """Return an error without a place."""
    return Diagnostic(code, "error", message, None, tuple(hint for hint in hints if hint))


def as_objects(diagnostics: Sequence[Diagnostic], source: Source) -> tuple[dict[str, Any], ...]:
    """Return the errors among ``diagnostics``, or all where there is none, as JSON objects."""
    errors = [each for each in diagnostics if each.severity == "error"] or list(diagnostics)
    return tuple(as_json(each, source) for each in errors[:_MOST])


def as_lines(objects: Sequence[dict[str, Any]]) -> str:
    """Return diagnostics for a prompt, one JSON object a line."""
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in objects)


def told(diagnostics: Sequence[Diagnostic]) -> str:
    """Return the first error in one sentence, with its hint."""
    first = next((each for each in diagnostics if each.severity == "error"), None) or diagnostics[0]
    hint = f" ({first.hints[0]})" if first.hints else ""
    more = sum(each.severity == "error" for each in diagnostics) - 1
    return f"{first.message}{hint} [{first.code}]" + (f", and {more} more" if more > 0 else "")
