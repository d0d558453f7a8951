"""The common lint framework of all languages: registration, context, suggestions for names, ignore comments, sorting."""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from attrs import define, field, frozen

from ..catalogue.rules import RULES
from ..diagnostic import Diagnostic, Edit, Severity, nearest, sort_key
from ..source import NOWHERE, Span
from ..trees import Node

C = TypeVar("C")


@frozen
class Lint(Generic[C]):
    """The check for one code. If ``needs_all_steps`` is true, its diagnostics are valid only if all steps could be read."""

    code: str
    find: Callable[[C], Iterable[Diagnostic]]
    needs_all_steps: bool = False


class Lints(Generic[C]):
    """The lints of a language, in the order in which they are defined.

    The decorator ``@lint("CODE")`` registers a function as a lint.
    """

    def __init__(self) -> None:
        self.all: list[Lint[C]] = []

    def __call__(
        self, code: str, *, needs_all_steps: bool = False
    ) -> Callable[[Callable[[C], Iterable[Diagnostic]]], Callable[[C], Iterable[Diagnostic]]]:
        """Return a decorator that registers a function as the lint for ``code``. The function takes the language's context."""

        def register(find: Callable[[C], Iterable[Diagnostic]]) -> Callable[[C], Iterable[Diagnostic]]:
            self.all.append(Lint(code, find, needs_all_steps))
            return find

        return register

    def run(self, context: C) -> Iterator[Diagnostic]:
        """Yield the diagnostics of all lints."""
        for each in self.all:
            yield from each.find(context)


_MOST = 50
"""Maximum number of different unknown names looked up in one check. If a text has more of them, they usually have a single cause."""


@define(eq=False)
class Suggestions:
    """The suggestions for unknown names in one check.

    All look-ups together compare at most ``names`` known names. ``near`` is the function that finds the most similar name.
    """

    names: float = math.inf
    near: Callable[[str, Collection[str]], str | None] = nearest
    _asked: dict[tuple[str, int], tuple[Collection[str], str | None]] = field(factory=dict, init=False)
    _looked_at: int = field(default=0, init=False)

    @property
    def has_enough(self) -> bool:
        """Return whether a limit of the look-ups is reached."""
        return len(self._asked) >= _MOST or self._looked_at >= self.names

    def find(self, name: str, known: Collection[str]) -> str | None:
        """Return the known name that was most likely meant, or None. Always None after too many look-ups."""
        if self.has_enough:
            return None
        key = (name, id(known))
        if key not in self._asked:
            self._looked_at += len(known)
            self._asked[key] = (known, self.near(name, known))  # the stored reference keeps the id of ``known`` unique
        return self._asked[key][1]


@frozen(slots=False)
class LintContext:
    """The input of the lints. Each language adds its text and the data that its lints share."""

    _suggestions: Suggestions = field(factory=Suggestions, init=False, eq=False, repr=False)

    def severity(self, code: str) -> Severity:
        """Return the severity of ``code`` in the catalogue."""
        return RULES[code].severity

    def diagnostic(
        self, code: str, message: str, span: Span | None, *hints: str, edits: Iterable[Edit] = (),
        severity: Severity | None = None,
    ) -> Diagnostic:  # fmt: skip
        """Return a diagnostic; its default severity is that of the catalogue. A diagnostic without a place in a text has no edits."""
        kept = tuple(edits) if span is not None and span != NOWHERE else ()
        return Diagnostic(code, severity or self.severity(code), message, span, tuple(filter(None, hints)), kept)

    def suggestion(self, name: str, known: Collection[str]) -> str | None:
        """Return the known name that was most likely meant, or None. Always None after too many look-ups."""
        return self._suggestions.find(name, known)

    @property
    def has_enough(self) -> bool:
        """Return whether the limit of look-ups for suggestions is reached."""
        return self._suggestions.has_enough


# An ignore comment ``# knotwork: ignore[CODE]`` above a step or a command silences the diagnostics of that step or command with
# this code. This holds for every language. Several codes are separated by commas; without brackets all codes are silenced.
# Other comments between the comment and its target are allowed, a blank line is not. Syntax errors can't be silenced, because
# the text can't run. Other diagnostics of a step or command that could not be read can be silenced.

_IGNORE = re.compile(r"#[ \t]*knotwork:[ \t]*ignore\b[ \t]*(?:\[(?P<codes>[^\[\]]*)\])?")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


@frozen
class Commented:
    """Describes how ignore comments are used in a language.

    ``noun`` is the word for the items that comments apply to. ``code`` is the rule that reports comments without effect. ``is_comment``
    tests whether an item is a comment. ``is_trailing`` tests whether a comment follows its target on the same line. ``blocks`` returns the
    lists of items inside an item.
    """

    noun: str
    code: str
    is_comment: Callable[[Node], bool]
    is_trailing: Callable[[Node], bool] = lambda item: False
    blocks: Callable[[Node], Sequence[Sequence[Node]]] = lambda item: ()


@define
class _Ignore:
    """An ignore comment: its codes, its target, and the codes that it has silenced. A comment without codes silences all codes."""

    span: Span
    codes: tuple[str, ...]
    target: Node | None = None
    is_unread: bool = False
    used: set[str] = field(factory=set)

    def takes(self, code: str) -> bool:
        return not self.codes or code in self.codes


def silence(
    items: Sequence[Node], text: str, found: Iterable[Diagnostic], language: Commented, context: LintContext
) -> list[Diagnostic]:
    """Return ``found`` without the silenced diagnostics. For each comment that silences nothing, a diagnostic is added."""
    if "knotwork:" not in text:
        return list(found)
    finder = _Finder(text, language, items[-1].span.end if items else 0)
    finder.block(items, ())
    starts = sorted(finder.by_start)
    kept = [each for each in found if not _silenced(each, finder.by_start, starts)]
    for ignore in finder.ignores:
        kept += _unused(ignore, language, context)
    return kept


def sorted_with(
    parsed: Sequence[Diagnostic], found: Iterable[Diagnostic], items: Sequence[Node], text: str, language: Commented,
    context: LintContext,
) -> list[Diagnostic]:  # fmt: skip
    """Return the diagnostics of the parser and of the lints (``found``) in source order. Silenced diagnostics are omitted.

    The parser's errors cannot be silenced.
    """
    errors = [diagnostic for diagnostic in parsed if diagnostic.severity == "error"]
    remarks = [diagnostic for diagnostic in parsed if diagnostic.severity != "error"]
    return sorted([*errors, *silence(items, text, [*remarks, *found], language, context)], key=sort_key)


@define
class _Finder:
    """Finds ignore comments and their targets. ``by_start`` maps the start of each target to all comments that apply there."""

    text: str
    language: Commented
    last: int
    """The end of the last item of the complete text."""
    ignores: list[_Ignore] = field(factory=list)
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
                self.ignores.append(ignore)
                if self.language.is_trailing(item) and behind is not None:
                    ignore.target = behind
                    self.by_start.setdefault(behind.span.start, []).append(ignore)
                else:
                    pending.append(ignore)
        if pending and previous is not None and not around and items[-1].span.end == self.last:
            self._is_unread(previous.span.end, len(self.text), pending)

    def _is_unread(self, start: int, stop: int, pending: list[_Ignore]) -> bool:
        """Return whether unreadable text begins right after ``start``. If so, this text becomes the target of the comments ``pending``."""
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
        """Return whether a blank line separates the two items."""
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


def _unused(ignore: _Ignore, language: Commented, context: LintContext) -> list[Diagnostic]:
    code, span = language.code, ignore.span
    if code in ignore.codes:
        return []
    if ignore.target is None:
        message = f"this ignore comment is not above a {language.noun}"
        return [
            context.diagnostic(code, message, span, f"move it directly above the {language.noun} to which it applies")
        ]
    if ignore.is_unread:
        return []  # the target could not be read, so the lints did not check it
    if not ignore.codes:
        message = "this ignore comment has no effect"
        return [] if ignore.used else [context.diagnostic(code, message, span, "remove it")]
    found = []
    for each in ignore.codes:
        if each not in RULES:
            found.append(context.diagnostic(code, f"unknown rule `{each}`", span, "remove it"))
        elif each not in ignore.used:
            message = f"this comment has no effect: no diagnostic here has the code {each}"
            found.append(context.diagnostic(code, message, span, f"remove {each}"))
    return found
