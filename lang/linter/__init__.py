"""The parts that the rules of every language share: a rule with its code, did-you-mean, and comments that ignore a code."""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

import attrs
from attrs import define, field, frozen

from ..catalogue.rules import RULES
from ..diagnostic import Diagnostic, nearest
from ..source import NOWHERE, Span
from ..trees import Node

__all__ = ["Commented", "Lint", "Suggestions", "lint", "silence"]

C = TypeVar("C")


@attrs.frozen
class Lint(Generic[C]):
    """A rule: its code and its function, which takes the context of a language."""

    code: str
    find: Callable[[C], Iterable[Diagnostic]]


def lint(code: str) -> Callable[[Callable[[C], Iterable[Diagnostic]]], Lint[C]]:
    """Return a decorator that makes a function the rule for ``code``."""
    return lambda find: Lint(code, find)


_MOST = 50
"""Maximum number of different names looked up in one check; a text with more faults has one cause."""


@attrs.define(eq=False)
class Suggestions:
    """The did-you-means of one check. ``names``: maximum number of known names compared in all look-ups together.

    ``near`` looks a name up among known ones.
    """

    names: float = math.inf
    near: Callable[[str, Collection[str]], str | None] = nearest
    _asked: dict[tuple[str, int], tuple[Collection[str], str | None]] = attrs.field(factory=dict, init=False)
    _looked_at: int = attrs.field(default=0, init=False)

    @property
    def has_enough(self) -> bool:
        """Return whether the limit of look-ups is reached."""
        return len(self._asked) >= _MOST or self._looked_at >= self.names

    def find(self, name: str, known: Collection[str]) -> str | None:
        """Return the known name that was most likely meant; None after many different names were looked up."""
        if self.has_enough:
            return None
        key = (name, id(known))
        if key not in self._asked:
            self._looked_at += len(known)
            self._asked[key] = (known, self.near(name, known))  # a stored collection keeps its identity
        return self._asked[key][1]


# Ignore comments, ``# knotwork: ignore[CODE]`` above a step or a command, silence its diagnostics in every language.
# Several codes are separated by commas; without brackets all codes are meant. Other comments may be in between, a blank line may
# not. Syntax errors cannot be silenced, because nothing can run. Other diagnostics of an unreadable step or command can be.

_IGNORE = re.compile(r"#[ \t]*knotwork:[ \t]*ignore\b[ \t]*(?:\[(?P<codes>[^\[\]]*)\])?")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


@frozen
class Commented:
    """The language-specific part: the target of a comment, and the rule that reports a comment that silences nothing.

    ``is_comment`` separates comments from their targets, ``is_trailing`` finds comments after their target; ``blocks`` are the
    lists of items inside an item.
    """

    noun: str
    code: str
    is_comment: Callable[[Node], bool]
    is_trailing: Callable[[Node], bool] = lambda item: False
    blocks: Callable[[Node], Sequence[Sequence[Node]]] = lambda item: ()


@define
class _Ignore:
    """An ignore comment, its target, and the codes that it has silenced. No codes: all."""

    span: Span
    codes: tuple[str, ...]
    target: Node | None = None
    is_unread: bool = False
    used: set[str] = field(factory=set)

    def takes(self, code: str) -> bool:
        return not self.codes or code in self.codes


def silence(
    items: Sequence[Node], text: str, found: Iterable[Diagnostic], language: Commented,
    report: Callable[[str, str, Span, str], Diagnostic],
) -> list[Diagnostic]:  # fmt: skip
    """Return ``found`` without the silenced diagnostics, plus a diagnostic for each comment that silences nothing.

    ``report`` makes a diagnostic of a code, a message, a place and a hint.
    """
    if "knotwork:" not in text:
        return list(found)
    finder = _Finder(text, language, items[-1].span.end if items else 0)
    finder.block(items, ())
    starts = sorted(finder.by_start)
    kept = [each for each in found if not _silenced(each, finder.by_start, starts)]
    for ignore in finder.found:
        kept += _unused(ignore, language, report)
    return kept


@define
class _Finder:
    """Finds the comments and their targets: for the start of each target, all comments that apply there."""

    text: str
    language: Commented
    last: int
    """The end of the last item of the whole text."""
    found: list[_Ignore] = field(factory=list)
    by_start: dict[int, list[_Ignore]] = field(factory=dict)

    def block(self, items: Sequence[Node], around: tuple[_Ignore, ...]) -> None:
        pending: list[_Ignore] = []
        previous: Node | None = None
        behind: Node | None = None
        for item in items:
            if pending and previous is not None and self._is_unread(previous.span.end, item.span.start, pending):
                pending = []
            if pending and previous is not None and self._are_apart(previous, item):
                pending = []
            previous = item
            if not self.language.is_comment(item):
                for ignore in pending:
                    ignore.target = item
                holds = (*around, *pending)
                self.by_start.setdefault(item.span.start, []).extend(holds)
                for block in self.language.blocks(item):
                    self.block(block, holds)
                pending, behind = [], item
            elif match := _IGNORE.match(getattr(item, "text", "")):
                codes = [code.strip().upper() for code in (match["codes"] or "").split(",")]
                ignore = _Ignore(item.span, tuple(code for code in codes if code))
                self.found.append(ignore)
                if self.language.is_trailing(item) and behind is not None:
                    ignore.target = behind
                    self.by_start.setdefault(behind.span.start, []).append(ignore)
                else:
                    pending.append(ignore)
        if pending and previous is not None and not around and items[-1].span.end == self.last:
            self._is_unread(previous.span.end, len(self.text), pending)

    def _is_unread(self, start: int, stop: int, pending: list[_Ignore]) -> bool:
        """Return whether text that could not be read begins right after ``start``; it is then the target of the comments."""
        between = self.text[start : max(start, stop)]
        if not between.strip() or _BLANK_LINE.match(between.lstrip(" \t\r")):
            return False
        first = start + len(between) - len(between.lstrip())
        target = Node(span=Span(first, start + len(between.rstrip())))
        for ignore in pending:
            ignore.target, ignore.is_unread = target, True
        self.by_start.setdefault(first, []).extend(pending)
        return True

    def _are_apart(self, before: Node, after: Node) -> bool:
        """Return whether a blank line is between the two."""
        if NOWHERE in (before.span, after.span):
            return False
        return _BLANK_LINE.search(self.text, before.span.end, max(before.span.end, after.span.start)) is not None


def _silenced(diagnostic: Diagnostic, by_start: dict[int, list[_Ignore]], starts: list[int]) -> bool:
    if diagnostic.span is None:
        return False
    at = bisect_right(starts, diagnostic.span.start) - 1
    if at < 0:
        return False
    silenced = False
    for ignore in by_start[starts[at]]:
        if ignore.target and ignore.target.span.covers(diagnostic.span.start) and ignore.takes(diagnostic.code):
            ignore.used.add(diagnostic.code)
            silenced = True
    return silenced


def _unused(
    ignore: _Ignore, language: Commented, report: Callable[[str, str, Span, str], Diagnostic]
) -> list[Diagnostic]:
    code, span = language.code, ignore.span
    if code in ignore.codes:
        return []
    if ignore.target is None:
        message = f"this ignore comment stands above no {language.noun}"
        return [report(code, message, span, f"put it directly above the {language.noun} it is for")]
    if ignore.is_unread:
        return []  # the rules did not check its target
    if not ignore.codes:
        message = "this ignore comment silences nothing"
        return [] if ignore.used else [report(code, message, span, "leave it out")]
    found = []
    for each in ignore.codes:
        if each not in RULES:
            found.append(report(code, f"there is no rule `{each}`", span, "leave it out"))
        elif each not in ignore.used:
            message = f"nothing here has the code {each}, so the comment silences nothing"
            found.append(report(code, message, span, f"leave {each} out"))
    return found
