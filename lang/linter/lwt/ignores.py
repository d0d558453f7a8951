"""Ignore comments: ``# knotwork: ignore[LWT012]`` above a step silences what is said about it.

Several codes are parted by commas; without brackets all are meant. Faults of syntax can't be silenced: there is no
step to run.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable

from attrs import define, field

from ...diagnostic import Diagnostic
from ...lwt import Comment, Step
from ...rules import RULES
from ...source import NOWHERE
from .registry import Context

__all__ = ["silence"]

CODE = "LWT032"
_IGNORE = re.compile(r"#[ \t]*knotwork:[ \t]*ignore\b[ \t]*(?:\[(?P<codes>[^\[\]]*)\])?")

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


@define
class _Ignore:
    """An ignore comment, the step below it, and what it has silenced. No codes: all."""

    comment: Comment
    codes: tuple[str, ...]
    step: Step | None = None
    used: set[str] = field(factory=set)

    def takes(self, code: str) -> bool:
        return not self.codes or code in self.codes


def silence(context: Context, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return what is ``found`` without what ignore comments silence, and with the comments that silence nothing."""
    ignores = _ignores(context)
    if not ignores:
        return list(found)
    by_step: dict[int, list[_Ignore]] = {}
    for ignore in ignores:
        if ignore.step is not None:
            by_step.setdefault(ignore.step.span.start, []).append(ignore)
    starts = sorted(by_step)
    kept = []
    for diagnostic in found:
        if not _silenced(diagnostic, by_step, starts):
            kept.append(diagnostic)
    for ignore in ignores:
        kept += _unused(context, ignore)
    return kept


def _silenced(diagnostic: Diagnostic, by_step: dict[int, list[_Ignore]], starts: list[int]) -> bool:
    if diagnostic.span is None:
        return False
    at = bisect_right(starts, diagnostic.span.start) - 1
    if at < 0:
        return False
    silenced = False
    for ignore in by_step[starts[at]]:
        if ignore.step and ignore.step.span.covers(diagnostic.span.start) and ignore.takes(diagnostic.code):
            ignore.used.add(diagnostic.code)
            silenced = True
    return silenced


def _ignores(context: Context) -> list[_Ignore]:
    """Find the ignore comments and the step that each stands above; comments may come between, a blank line may not."""
    found: list[_Ignore] = []
    pending: list[_Ignore] = []
    text = context.script.source.text
    previous: Comment | Step | None = None
    for item in context.script.items:
        if pending and previous is not None and _are_apart(text, previous, item):
            pending = []
        previous = item
        if isinstance(item, Step):
            for ignore in pending:
                ignore.step = item
            pending = []
        elif match := _IGNORE.match(item.text):
            codes = [code.strip().upper() for code in (match["codes"] or "").split(",")]
            ignore = _Ignore(item, tuple(code for code in codes if code))
            found.append(ignore)
            pending.append(ignore)
    return found


def _are_apart(text: str, before: Comment | Step, after: Comment | Step) -> bool:
    """Say whether a blank line stands between the two."""
    if NOWHERE in (before.span, after.span):
        return False
    return _BLANK_LINE.search(text, before.span.end, max(before.span.end, after.span.start)) is not None


def _unused(context: Context, ignore: _Ignore) -> list[Diagnostic]:
    if CODE in ignore.codes:
        return []
    span = ignore.comment.span
    if ignore.step is None:
        message = "this ignore comment stands above no step"
        return [context.found(CODE, message, span, "put it directly above the step it is for")]
    if not ignore.codes:
        message = "this ignore comment silences nothing"
        return [] if ignore.used else [context.found(CODE, message, span, "leave it out")]
    found = []
    for code in ignore.codes:
        if code not in RULES:
            found.append(context.found(CODE, f"there is no rule `{code}`", span, "leave it out"))
        elif code not in ignore.used:
            message = f"nothing here has the code {code}, so the comment silences nothing"
            found.append(context.found(CODE, message, span, f"leave {code} out"))
    return found
