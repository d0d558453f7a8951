"""Removes text that a model writes around a script, such as thinking blocks, code fences, JSON, HTML entities, quotes and prose.

The lenient parser removes this text before it reads steps. For each removed part, the parser reports a warning (LWT001, LWT036,
LWT037) with edits. Steps in strings are never removed. Invalid text between the steps inside a fence is not removed either. A
line that may be a step, or part of a step, is removed only if the script is inside a fence and the line is outside it.
Otherwise the line stays and is an error. The time of every stage is proportional to the length of the text.
"""

import ast
import html
import json
import re
from collections.abc import Callable
from typing import Any

from ....diagnostic import Diagnostic, Edit
from ....source import Span
from ...repairs import shortened
from ..engine import StepRead, read_step
from ..shapes import HEAD, ID, end_of_line, first_shown
from .diagnosis import plans_a_call
from .surroundings import MOST_BROKEN, Stage, take_off_lines, warned

_NOTHING = Stage((), ())


# Thinking blocks

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think"
_OPENING = re.compile(
    rf"<(?:{_NAMES})(?:[ \t][^<>\n]{{0,80}})?>|\[THINK\]|\u25c1think\u25b7|<\|begin_of_thought\|>|<\|channel\|>analysis(?:<\|message\|>)?",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    rf"</(?:{_NAMES})[ \t]*>|\[/THINK\]|\u25c1/think\u25b7|<\|end_of_thought\|>|<\|channel\|>final(?:<\|message\|>)?",
    re.IGNORECASE,
)


def open_thought(text: str, start: int) -> int | None:
    """Return the end of the thinking block that begins at ``start``.

    Return -1 if the block is not closed, and None if no block begins there.
    """
    opening = _OPENING.match(text, start)
    if opening is None:
        return None
    closing = _CLOSING.search(text, opening.end())
    return closing.end() if closing else -1


def _thoughts(text: str) -> Stage:
    """Remove thinking blocks, including drafts of steps inside them."""
    if not _OPENING.search(text) and not _CLOSING.search(text):
        return _NOTHING
    found: list[Diagnostic] = []
    taken: list[Edit] = []
    at = done = broken = 0
    while at < len(text):
        end = end_of_line(text, at)
        first = first_shown(text, at, end)
        if HEAD.match(text, first) and broken < MOST_BROKEN:
            read = read_step(text, first)
            if isinstance(read, StepRead):
                at = read.end
                continue
            broken += 1
        is_head = HEAD.match(text, first) is not None
        opening = _OPENING.match(text, first) or (None if is_head else _OPENING.search(text, first, end))
        closing = None if is_head else _CLOSING.search(text, first, end)
        if opening and not (closing and closing.start() < opening.start()):
            closing = _CLOSING.search(text, opening.end())
            start, stop = opening.start(), closing.end() if closing else len(text)
        elif closing:
            opening, start, stop = None, done, closing.end()
        else:
            at = end + 1
            continue
        name = shortened(opening[0] if opening else closing[0] if closing else "")
        heads = sum(1 for line in text[start:stop].splitlines() if HEAD.match(line.lstrip()))
        drafts = (
            f"; the {_steps(heads)} in it {'is a draft and is' if heads == 1 else 'are drafts and are'} ignored"
            if heads
            else ""
        )
        edit = Edit(Span(start, stop), "")
        taken.append(edit)
        if closing is None:
            message = f"{name} is not closed, so no script follows the thinking block{drafts}"
            hint = "close the thinking block, and write the script after it"
            found.append(
                Diagnostic("LWT001", "error", message, Span(start, opening.end() if opening else stop), (hint,))
            )
        else:
            place = (start, opening.end()) if opening else (closing.start(), closing.end())
            where = "between {} and its end" if opening else "before {}"
            message = f"the text {where.format(name)} is a thinking block, not script{drafts}"
            found.append(warned(message, *place, "remove the thinking block", [edit]))
        at = done = stop
    return Stage(tuple(taken), tuple(found))


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


# JSON, lists of strings, entities

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[\[\]{}]', re.DOTALL)
_VALUE_START = re.compile(r"""^[ \t]*(?:[\w]{1,30}[ \t]*[:=][ \t]*)?(?=[\[{"'])""", re.MULTILINE)
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\\r?\n|\\.",
    re.DOTALL,
)
_QUOTED_LINE = re.compile(
    rf"""^[ \t\-*\d.\[]*(?P<text>(?P<quote>["'])\({ID}\)[ \t]*=(?:\\.|(?!(?P=quote))[^\\\n])*(?P=quote))[ \t]*[,;\]]{{0,2}}[ \t\r]*$""",
    re.MULTILINE,
)
_HEAD_LINE = re.compile(rf"^[ \t]*\({ID}\)[ \t]*=(?!=)", re.MULTILINE)
_CALL_LINE = re.compile(rf"^[ \t]*\({ID}\)[ \t]*=[ \t]*\w+[ \t]*\(", re.MULTILINE)
_ASIDE = re.compile(r"think|thought|reason|analysis|explanation|comment|note|draft|example", re.IGNORECASE)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_MOST_VALUES = 20


def _strings(text: str) -> Stage:
    """Extract steps from the strings in JSON or a Python list, and from lines that each consist of one string."""
    if not re.search(rf"""["'](?:\s|\\n|```\w*)*\({ID}\)[ \t]*=""", text):
        return _NOTHING
    first = _CALL_LINE.search(text)
    lines = [match for match in _QUOTED_LINE.finditer(text) if "\\" in match["text"]]
    tried = 0
    for start in _VALUE_START.finditer(text):
        if (first and start.start() > first.start()) or tried == _MOST_VALUES:
            break
        tried += 1
        region = _region(text, start.end())
        if region is None or (len(lines) > 1 and text[start.end()] in "\"'"):
            continue
        strings = _scripts_in(text, start.end(), region)
        if isinstance(strings, Diagnostic):
            return Stage((), (strings,))
        if strings:
            edits = _unquoting_edits(text, start.start(), region, strings)
            what = "a string" if len(strings) == 1 else f"{len(strings)} strings"
            message = f"the steps are in {what} in JSON or a list; they are read as lines of a script"
            warning = warned(message, start.end(), start.end() + 1, "write the steps without quotes around them", edits)
            return Stage(tuple(edits), (warning,))
    if not lines or first:
        return _NOTHING
    edits = [
        edit
        for line in lines
        for edit in _unquoting_edits(text, line.start(), line.end(), [Span(line.start("text"), line.end("text"))])
    ]
    message = f"{_steps(len(lines))} in quotes, each as a string"
    begin = lines[0].start("text")
    warning = warned(message, begin, begin + 1, "write the steps without quotes around them", edits)
    return Stage(tuple(edits), (warning,))


def _region(text: str, start: int) -> int | None:
    """Return the end of the string or the value in brackets that begins at ``start``; None if it is not closed."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if depth == 0 and token.start() != start:
            return None
        mark = token[0]
        depth += (mark in "[{") - (mark in "]}")
        if depth <= 0:
            return token.end()
    return None


def _decoded(text: str) -> Any:
    """Return the value of text that is JSON or a Python literal; None if it is neither."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _scripts_in(text: str, start: int, end: int) -> list[Span] | Diagnostic:
    """Return the spans, including the quotes, of the strings that contain steps. Return an error if several of them may be the script."""
    value = _decoded(text[start:end])
    if value is None or len(text) > 1_000_000:
        return []
    paths: list[tuple[str, ...]] = []
    texts: list[str] = []

    def gather(each: Any, path: tuple[str, ...]) -> None:
        if isinstance(each, str):
            paths.append(path)
            texts.append(each)
        elif isinstance(each, list | tuple):
            for item in each:
                gather(item, path)
        elif isinstance(each, dict):
            for key, item in each.items():
                gather(item, (*path, str(key)))

    gather(value, ())
    tokens = [
        Span(token.start(), token.end())
        for token in _TOKEN.finditer(text, start, end)
        if token[0][0] in "\"'" and not re.compile(r"[ \t\r\n]*:").match(text, token.end(), end)
    ]
    if len(tokens) != len(texts):
        return []
    held = [
        (path, token)
        for path, each, token in zip(paths, texts, tokens, strict=True)
        if (_HEAD_LINE.search(each) or any(map(plans_a_call, each.splitlines())))
        and not any(_ASIDE.search(key) for key in path)
    ]
    groups = list(dict.fromkeys(path for path, _ in held))
    if len(groups) > 1:
        names = " and ".join(".".join(group) or "the list" for group in groups[:3])
        message = f"{names} contain steps: it is unclear which of them is the script"
        return Diagnostic("LWT001", "error", message, held[0][1], ("write only the script",))
    return [token for _, token in held]


def _unquoting_edits(text: str, start: int, end: int, strings: list[Span]) -> list[Edit]:
    """Return the edits that replace ``[start, end)`` with the contents of ``strings``, separated by line breaks."""
    edits: list[Edit] = []
    done, between = start, ""
    for span in strings:
        edits.append(Edit(Span(done, span.start + 1), between))
        for escape in _ESCAPE.finditer(text, span.start + 1, span.end - 1):
            edits.append(Edit(Span(escape.start(), escape.end()), _unescaped(escape[0])))
        done, between = span.end - 1, "\n"
    edits.append(Edit(Span(done, end), "\n" if text[end : end_of_line(text, end)].strip() else ""))
    return edits


def _unescaped(escape: str) -> str:
    if escape[1] in "ux":
        if escape[1] == "x":
            return chr(int(escape[2:], 16))
        return str(json.loads(f'"{escape}"'))
    if escape[-1] == "\n":
        return ""
    return _SIMPLE.get(escape[1], escape)


_ENTITY = re.compile(r"&(?:quot|apos|lt|gt|amp|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,6});")
_ENTITY_PROMPT = re.compile(r"=[ \t]*[A-Za-z]\w*[ \t]*\([ \t]*&(?:quot|apos|#34|#39|#x22|#x27);")


def _entities(text: str) -> Stage:
    """Replace HTML entities with their characters, if the quotes of the prompts are written as entities."""
    first = _ENTITY_PROMPT.search(text)
    if not first:
        return _NOTHING
    edits = [
        Edit(Span(each.start(), each.end()), html.unescape(each[0]).replace("\xa0", " "))
        for each in _ENTITY.finditer(text)
    ]
    message = "the script contains HTML entities; they are read as their characters"
    hint = 'write " for &quot;, and so on'
    return Stage(tuple(edits), (warned(message, first.start(), first.end(), hint, edits),))


# Quotation

_QUOTATION = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)


def _quotation(text: str) -> Stage:
    """Remove ``> `` at the start of quoted lines, if one of these lines is a step."""
    found: list[Diagnostic] = []
    taken: list[Edit] = []
    if not re.search(r"^[ \t]*>", text, re.MULTILINE):
        return _NOTHING
    for region in _QUOTATION.finditer(text):
        marks = list(_QUOTE_MARK.finditer(text, region.start(), region.end()))
        bare = _QUOTE_MARK.sub("", region[0])
        if len(marks) < 2 or not re.search(rf"\({ID}\)[ \t]*=", bare):
            continue
        edits = [Edit(Span(mark.start(), mark.end()), "") for mark in marks]
        message = f"{len(marks)} lines begin with > and are read as a quotation"
        found.append(warned(message, *marks[0].span(), "remove the >", edits, "LWT037"))
        taken += edits
    return Stage(tuple(taken), tuple(found))


STAGES: tuple[Callable[[str], Stage], ...] = (_thoughts, _entities, _quotation, _strings, take_off_lines)
"""The stages of removal, in order. The input of each stage is the text that the previous stage produced."""


def is_wrapped(text: str) -> bool:
    """Return whether a comment contains a step, as in the Markdown heading ``# (a)=LLM(...)``.

    In this case, even a valid text may contain steps that were not read.
    """
    return re.search(rf"^[ \t]*#[^\n]*\({ID}\)[ \t]*=[ \t]*\w+[ \t]*\(", text, re.MULTILINE) is not None
