"""A repairer without a thought: it applies the edits that errors offer, over and over, and does nothing else.

What it reaches is what a program can reach that gets only ``knotwork check --format json``.
"""

from collections.abc import Callable
from typing import Any

from attrs import frozen
from knotwork.lang.diagnostic import Edit, apply_edits, as_json
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.source import Source, Span
from knotwork.lang.trees.lwt import Mode

__all__ = ["Repair", "edits_of", "errors", "repair"]

ROUNDS = 12


@frozen
class Repair:
    """The text after the last round, the errors that are left in it, and how many there were before each round."""

    text: str
    left: list[dict[str, Any]]
    counts: list[int]


def reported(text: str, mode: Mode) -> list[dict[str, Any]]:
    """Return what ``check --format json`` says."""
    source = Source(text)
    return [as_json(diagnostic, source) for diagnostic in check(parse_lwt(source, mode))]


def errors(text: str, mode: Mode) -> list[dict[str, Any]]:
    """Return the errors among them."""
    return [found for found in reported(text, mode) if found["severity"] == "error"]


def repair(text: str, mode: Mode, wanted: Callable[[dict[str, Any]], bool] | None = None) -> Repair:
    """Apply the edits of all errors (of what is ``wanted``) at once, until there are none or nothing changes."""
    counts = []
    for _ in range(ROUNDS):
        found = [one for one in reported(text, mode) if (wanted or _is_error)(one)]
        counts.append(len(found))
        after = apply_edits(text, edits_of(found))
        if after == text:
            break
        text = after
    return Repair(text, errors(text, mode), counts)


def _is_error(found: dict[str, Any]) -> bool:
    return bool(found["severity"] == "error")


def edits_of(found: list[dict[str, Any]]) -> list[Edit]:
    """Return the edits of the diagnostics, but of two whose edits overlap only the first's: a fix is made whole or not."""
    made: list[Edit] = []
    for one in found:
        edits = [Edit(Span(edit["start"], edit["end"]), edit["text"]) for edit in one["edits"]]
        if not any(_overlap(edit.span, other.span) for edit in edits for other in made):
            made += edits
    return made


def _overlap(a: Span, b: Span) -> bool:
    return (a.start < b.end and b.start < a.end) or (a.start == b.start and (a.end == a.start or b.end == b.start))
