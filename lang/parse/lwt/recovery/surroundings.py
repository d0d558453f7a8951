"""Cleans the lines around the steps of a script that a model wrote: labels before heads, fences, prose in any language.

The lenient parser turns text without steps into comments. Text that may be a step, or part of a step, is kept and reported as an error.
There is one exception: if all steps of a script are inside code fences, the text outside the fences is removed. See
``docs/design/lwt.md#syntax``.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from attrs import define, field, frozen

from ....diagnostic import Diagnostic, Edit
from ....source import Span
from ....trees.lwt import Call
from ...repairs import shortened
from ..engine import StepRead, read_step
from ..shapes import (
    BAD_HEAD,
    BULLET,
    ELISION,
    EMPTY_LINES,
    HEAD,
    ID,
    INVISIBLE,
    OPERATION,
    end_of_line,
    first_shown,
    next_head,
)
from .diagnosis import ends_a_call, explain_bad_head, is_text, plans_a_call

MAX_FENCES = 10_000
"""Maximum number of lines with the mark of a code fence in a text. The lines between fences are explained separately."""


MOST_BROKEN = 200
"""Maximum number of invalid steps that are parsed in a text; later steps are examined only line by line."""


@frozen
class Stage:
    """The result of one stage: its edits, in any order, and the diagnostics that report these edits."""

    edits: tuple[Edit, ...]
    diagnostics: tuple[Diagnostic, ...]


def warned(message: str, start: int, end: int, hint: str, edits: list[Edit], code: str = "LWT001") -> Diagnostic:
    """Return a warning about text that is removed or changed by ``edits``."""
    return Diagnostic(code, "warning", message, Span(start, end), (hint,), tuple(edits))


_UNSEEN = re.compile(rf"[{INVISIBLE}]")
_DRESSED_HEAD = re.compile(
    rf"(?P<mark>\*\*|__|`|\*)\((?P<id>{ID})(?:\)(?P=mark)[ \t]*=|\)[ \t]*=(?P=mark))[ \t]*(?=\w+[ \t]*\()"
)
_LONGEST_DRESSED = 100_000
_LATER_HEAD = re.compile(rf"\((?P<id>{ID})\)[ \t]*=[ \t]*[A-Za-z]\w*[ \t]*\((?=[ \t\r\n]*[\"'{{\[\w])")
_WORD = re.compile(r"[^\W\d_]{2,}")
_STEP_WORD = re.compile(r"(?i)steps?\b")
_FENCE_PREFIX = re.compile(r"[ \t]*(?:[-*+>\u2022]|\d{1,3}[.)])[ \t]+(?=`{3,}|~{3,})")
_PLAIN = re.compile(rf"([ \t\r{INVISIBLE}]*+)[^\W\d_][^\n(]*+(?=\n|\Z)")
"""A line that begins with a letter and has no opening parenthesis. It cannot be a head, a fence or a comment, so it is text."""
_FENCE_MARK = re.compile(r"[ \t]*+(?P<mark>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^\n`]*+)$", re.MULTILINE)
_FENCE_LINE = re.compile("^" + _FENCE_MARK.pattern, re.MULTILINE)
LINE_WITH_FENCE = re.compile(r"^[^\n]*?(?P<mark>`{3}|~{3})", re.MULTILINE)
"""A line that may open or close a code fence. The search takes linear time, because it begins only at starts of lines."""
_HEADING = re.compile(rf"#{{1,6}}[ \t]*[^\n(]{{0,60}}(?=\({ID}\)[ \t]*=[ \t]*[A-Za-z]\w*[ \t]*\()")
_CALL_BEHIND = re.compile(r"[ \t]*(?:\w+[ \t]*\(|[\"'\[{(]|-?\d|$|\Z)", re.MULTILINE)

_CALL = re.compile(rf"{OPERATION}[ \t]{{0,4}}\(")
_ASSIGNED = re.compile(rf"\w+[ \t]*:?=(?!=)[ \t]*(?:[\"'](?!\"\"|'')|\{{\(|{OPERATION}\b|\w+\([\"'{{])")
_NO_EQUALS = re.compile(rf"\({ID}\)[ \t]*{OPERATION}\b")
_ONLY_MARKS = re.compile(r"[\"'`\])}>,;.\s]*\Z")
_OPENS_TEXT = re.compile(r"(?:\"\"\"|''')\Z")


def _may_be_a_step(line: str) -> bool:
    """Return whether a line between steps may be a step or part of a step, rather than prose."""
    if _ONLY_MARKS.match(line) or _OPENS_TEXT.search(line):
        return False
    if (
        _NO_EQUALS.match(line)
        or (line[0] in "([{\"'`" and ("{(" in line or _CALL.search(line)))
        or _CALL.match(line)
        or _ASSIGNED.match(line)
    ):
        return True
    return ends_a_call(line)


@define
class _Line:
    """A line, or all lines of a step. ``first`` is the offset of its first visible character.

    ``kind`` is "step", "broken" (an invalid step), "fence", "text" or "comment". ``fence`` is the number of the enclosing fence.
    """

    kind: str
    start: int
    first: int
    end: int
    fence: int
    name: str = ""
    call: Any = None
    prefix_end: int = -1
    has_words_behind: bool = False


@define
class _Lines:
    """Splits text into lines. A step with all its lines counts as one line."""

    text: str
    found: list[_Line] = field(factory=list)
    fence: str = ""
    fences: int = 0
    broken: int = 0

    @property
    def within(self) -> int:
        """Return the number of the enclosing code fence, 0 outside fences."""
        return self.fences if self.fence else 0

    def gather(self) -> None:
        """Classify every line."""
        text, at = self.text, 0
        while at < len(text):
            if plain := _PLAIN.match(text, at):
                end = plain.end()
                self.found.append(_Line("text", at, plain.end(1), end, self.within))
                at = end + 1
                continue
            if blank := EMPTY_LINES.match(text, at):
                at = blank.end()
                continue
            end = end_of_line(text, at)
            first = first_shown(text, at, end)
            at = self._take(at, first, end) + 1

    def _take(self, at: int, first: int, end: int) -> int:
        text = self.text
        prefix = _FENCE_PREFIX.match(text, at)
        if mark := _FENCE_MARK.match(text, prefix.end() if prefix else first):
            opened = self.fence
            if not opened:
                self.fence = mark["mark"]
                self.fences += 1
            elif mark["mark"].startswith(opened) and not mark["info"].strip():
                self.fence = ""
            self.found.append(_Line("fence", at, first, end, self.fences, prefix_end=prefix.end() if prefix else -1))
            return end
        if first == end:
            return end
        if text[first] == "#" and not self._is_heading(first):
            self.found.append(_Line("comment", at, first, end, self.within))
            return end
        head = self._head(first, end)
        if head is None:
            self.found.append(_Line("text", at, first, end, self.within))
            return end
        return self._take_step(at, first, head)

    def _is_heading(self, first: int) -> bool:
        return not self.fence and self.text.startswith("##", first) and _HEADING.match(self.text, first) is not None

    def _head(self, first: int, end: int) -> int | None:
        """Return the offset of the step's head on this line. A prefix may come before the head. Return None if the line has no head."""
        text = self.text
        if dressed := _DRESSED_HEAD.match(text, first):
            return dressed.start()
        bullet = BULLET.match(text, first)
        at = bullet.end() if bullet else first
        if head := HEAD.match(text, at):
            return at if _CALL_BEHIND.match(text, head.end()) else None
        later = _LATER_HEAD.search(text, first, end)
        return later.start() if later else None

    def _take_step(self, at: int, first: int, head: int) -> int:
        text = self.text
        dressed = _DRESSED_HEAD.match(text, head)
        name = dressed["id"] if dressed else text[head + 1 : text.index(")", head)]
        if self.broken >= MOST_BROKEN:
            read, behind = None, 0
        elif dressed:
            right = f"({name})="
            read = read_step(right + text[dressed.end() : dressed.end() + _LONGEST_DRESSED], 0)
            behind = dressed.end() - len(right)
        else:
            read, behind = read_step(text, head), 0
        if isinstance(read, StepRead):
            end = end_of_line(text, read.end + behind)
            rest = text[read.end + behind : end].strip()
            has_words = _WORD.search(rest) is not None
            self.found.append(_Line("step", at, first, end, self.within, name, read.step.call, head, has_words))
            if self.fence and rest.startswith(self.fence):
                self.fence = ""
            return end
        self.broken += 1
        end = self._stop(head)
        self.found.append(_Line("broken", at, first, end, self.within, name, None, head))
        return end

    def _stop(self, head: int) -> int:
        """Return the last place where an invalid step may end.

        The step must end before the next head, and before the end of the fence around the step.
        """
        text = self.text
        stop = next_head(text, head)
        if self.fence:
            depth = 0
            for mark in _FENCE_LINE.finditer(text, end_of_line(text, head), stop):
                depth += 1 if mark["info"].strip() else -1
                if depth < 0:
                    stop = mark.start()
                    break
        return max(stop - 1, head) if stop < len(text) else len(text)


def take_off_lines(text: str) -> Stage:
    """Remove text before heads, and turn prose into comments."""
    lines = _Lines(text)
    lines.gather()
    edits: list[Edit] = []
    told: list[Diagnostic] = []

    def tell(message: str, start: int, end: int, hint: str, made: list[Edit], code: str = "LWT001") -> None:
        edits.extend(made)
        told.append(warned(message, start, end, hint, made, code))

    _prefixes(text, lines.found, tell)
    steps = [line for line in lines.found if line.kind in ("step", "broken")]
    inside = {line.name: line for line in steps if line.fence}
    for line in steps if inside else ():
        if not line.fence:
            _compare(text, line, inside.get(line.name), tell, told)
    outside = [line for line in steps if not line.fence and line.kind != "text"]
    holding = {line.fence for line in inside.values()}
    names = {line.name for line in lines.found if line.kind in ("step", "broken")}
    calls = {line.call for line in lines.found if line.kind == "step"}
    for group in _groups(lines.found):
        _prose(
            text, group, names, calls, tell, is_outside=bool(inside) and not outside and group[0].fence not in holding
        )
    return Stage(tuple(edits), tuple(told))


_Tell = Callable[..., None]


def _compare(text: str, line: _Line, inside: _Line | None, tell: _Tell, told: list[Diagnostic]) -> None:
    """Report a step outside the code fences that contain other steps. ``inside`` is the step with the same id that is in a fence."""
    end = min(line.end, end_of_line(text, line.first))
    if inside is None:
        message = f"step ({line.name}) is outside the code fence that contains other steps; it is read too"
        tell(message, line.first, end, "move it into the fence, or make it a comment with #", [], "LWT036")
    elif line.call is None or line.call != inside.call:
        if _ELIDED.search(text, line.first, end):
            line.kind, line.end = "text", end
            return
        message = f"step ({line.name}) differs inside and outside a code fence: it is unclear which step to use"
        told.append(Diagnostic("LWT014", "error", message, Span(line.first, end), ("keep only one of them",)))


_MOST_REMARKS = 500
"""Maximum number of consecutive lines of text that become comments. If a group has more lines, it is removed."""
_ODD = re.compile(r"[(){=:.\u2026]")
_ELIDED = re.compile(r"\.\.\.|\u2026")


def _prefixes(text: str, lines: list[_Line], tell: _Tell) -> None:
    """Remove text before heads and fences. A line that only mentions a step counts as text."""
    proper = {line.name for line in lines if line.kind in ("step", "broken") and _is_proper(text, line)}
    for line in lines:
        if line.kind == "fence" and line.prefix_end >= 0:
            end = min(line.end + 1, len(text))
            message, edits = "a code fence is not part of a script", [Edit(Span(line.start, end), "")]
            tell(message, line.first, line.end, "remove the line", edits, "LWT036")
        unseen = _UNSEEN.search(text, line.start, line.first)
        if unseen:
            message = f"invisible character U+{ord(unseen[0]):04X} at the beginning of the line"
            tell(message, *unseen.span(), "remove it", [Edit(Span(line.start, line.first), "")], "LWT037")
        if line.kind not in ("step", "broken"):
            continue
        if dressed := _DRESSED_HEAD.match(text, line.prefix_end):
            right = f"({dressed['id']})="
            span = Span(dressed.start(), dressed.end())
            message = f"the head of step ({dressed['id']}) has the markup {dressed['mark']}"
            tell(message, span.start, span.end, f"write {right}", [Edit(span, right)], "LWT037")
        if line.prefix_end <= line.first:
            continue
        prefix = text[line.first : line.prefix_end]
        words = [word for word in _WORD.findall(prefix) if not _STEP_WORD.match(word)]
        if BULLET.match(text, line.first):
            continue  # read_piece explains it
        if words and (line.name in proper or not _is_label(line, prefix, words)):
            line.kind = "text"
            line.end = end_of_line(text, line.first)
            continue
        if plans_a_call(prefix):
            continue  # explain_lines reports the line
        span = Span(line.first, line.prefix_end)
        edit = Edit(span, f"# {prefix.strip()}\n" if words and "<" not in prefix and "#" not in prefix else "")
        message = f"unexpected {shortened(prefix)!r} before the head of the step, which must begin its line"
        tell(message, span.start, span.end, "remove it", [edit], "LWT037")


def _is_proper(text: str, line: _Line) -> bool:
    return line.prefix_end <= line.first or BULLET.match(text, line.first) is not None


def _is_label(line: _Line, prefix: str, words: list[str]) -> bool:
    """Return whether the words before a head are a label of the step. If not, the line is a sentence that mentions a step."""
    if prefix.rstrip()[-1:].isalnum():
        return line.kind == "step" and len(words) <= 2 and not line.has_words_behind
    return True


def _groups(lines: list[_Line]) -> Iterator[list[_Line]]:
    """Yield the groups of consecutive lines of text."""
    group: list[_Line] = []
    for line in lines:
        if line.kind == "text" and (not group or (group[-1].end + 1 >= line.start and group[-1].fence == line.fence)):
            group.append(line)
            continue
        if group:
            yield group
        group = [line] if line.kind == "text" else []
    if group:
        yield group


def _prose(
    text: str, group: list[_Line], names: Collection[str], calls: Collection[Call], tell: _Tell, *, is_outside: bool
) -> None:
    """Turn lines of text into comments. ``explain_lines`` explains possible steps, and groups that are certainly prose."""
    bodies = [text[line.first : line.end].strip() for line in group]
    if all(map(is_text, bodies, ["", *bodies])):
        return
    steplike: list[_Line] = []
    left: list[_Line] = []
    for line, body in zip(group, bodies, strict=True):
        if not _ODD.search(body):
            continue  # most lines: a step has at least one of these characters
        later = _LATER_HEAD.search(body)
        is_planned = plans_a_call(body, calls, is_outside=is_outside)
        is_steplike = is_planned or _may_be_a_step(body) or bool(later and later["id"] not in names)
        if is_steplike:
            steplike.append(line)
        if is_planned or (not is_outside and (is_steplike or ELISION.match(body) or _may_be_a_head(body, names))):
            left.append(line)
    apart = {line.start for line in left}
    taken = [line for line in group if line.start not in apart]
    if not taken:
        return
    if len(taken) == len(group) > _MOST_REMARKS:
        edits = [Edit(Span(group[0].start, group[-1].end), "")]
    else:
        edits = [Edit(Span(line.first, line.first), "# ") for line in taken]
    odd = [line for line in steplike if line.start not in apart]
    first = odd[0] if odd else taken[0]
    if odd:
        message = "this line looks like a step but is outside the code fence of the script; it is ignored"
        hint = "move it into the fence if it is a step"
    else:
        message = "this line is not a step" if len(taken) == 1 else f"these {len(taken)} lines are not steps"
        hint = "a comment is a line that begins with #"
    tell(message, first.first, first.end, hint, edits)


def _may_be_a_head(line: str, names: Collection[str]) -> bool:
    """Return whether a line may be meant as the head of a step.

    A line that only describes one of the steps ``names`` does not count.
    """
    bullet = BULLET.match(line)
    line = line[bullet.end() :] if bullet else line
    bad = BAD_HEAD.match(line)
    if bad is None:
        return explain_bad_head(line, 0, len(line)) is not None
    if re.match(r"[ \t]*(?:[A-Za-z]\w*[ \t]*\(|[\"'])", line[bad.end() :]):
        return True
    return re.fullmatch(ID, bad["id"]) is not None and bad["id"] not in names
