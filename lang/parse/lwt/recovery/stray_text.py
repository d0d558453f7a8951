"""What is wrong with text that stands outside the steps: prose, fences, bullets, heads that are none."""

import re

from ....diagnostic import Edit
from ....source import Span
from ...repairs import Fault, fault, shown
from ...stray_text import is_remark, reads_as_text
from ..shapes import (
    BAD_HEAD,
    BRACKETED_HEAD,
    COLON_HEAD,
    ELISION,
    EMPTY_LINES,
    FENCE,
    HEAD,
    ID,
    LOOSE_HEAD,
    end_of_line,
    skip_blank,
    start_of_line,
)

__all__ = ["ends_a_call", "explain_bad_head", "explain_bullet", "explain_lines", "explain_rest", "is_text"]

_FULL_ID = re.compile(rf"{ID}\Z")
_SKETCH = re.compile(r"[+<>…]|\.\.\.|\b[nNi] ?[+\-]")


def explain_bullet(text: str, start: int, end: int) -> Fault:
    """Explain the bullet, number or markup ``[start, end)`` before a head."""
    return fault(
        "LWT037",
        f"{shown(text[start:end])!r} stands before the step's head; a head stands at the start of its line",
        start,
        end,
        "remove it",
        edits=(Edit(Span(start, end), ""),),
        accepted=True,
    )


def explain_bad_head(text: str, start: int, stop: int) -> Fault | None:
    """Explain the line at ``start`` if it was meant as a step's head but is none."""
    bad = BAD_HEAD.match(text, start)
    if bad:
        name = bad["id"].strip()
        span = (bad.start("id"), max(bad.end("id"), bad.start("id") + 1))
        if _SKETCH.search(name):
            return fault(
                "LWT010",
                f"({shown(name)}) is no step but a pattern for steps: this is a sketch of a script",
                *span,
                "write every step out, each with its own id, like (0), (1), (2)",
            )
        mended = re.sub(r"[^\w\-.]+", "_", name).strip("_.-")
        mended = re.sub(r"\.(?=\.)|[.\-]+\Z", "", mended)
        # "fin al" was meant as (final) where that is referred to, else as (fin_al).
        joined = re.sub(r"[ \t]+", "", name)
        meant = joined == "final" or f"{{({joined})}}" in text
        good = joined if meant and _FULL_ID.match(joined) else mended if _FULL_ID.match(mended) else ""
        return fault(
            "LWT007",
            f"{shown(name)!r} can't be a step's id" if name else "this step has no id",
            *span,
            "an id has letters, digits, _ and -, in parts joined by dots: c1, final, 2.rev.0",
            edits=(Edit(Span(bad.start("id"), bad.end("id")), good),) if good else (),
        )
    other = BRACKETED_HEAD.match(text, start) or COLON_HEAD.match(text, start)
    if other:
        return _malformed(text, start, other, other["id"])
    loose = LOOSE_HEAD.match(text, start)
    if loose and loose["id"] and _FULL_ID.match(loose["id"].strip()):
        if loose["open"] != "(" and loose["sign"] in ("", ":") and not loose["close"]:
            return None  # "NOTE: LLM(...)" and "the LLM(...)" are prose
        return _malformed(text, start, loose, loose["id"].strip())
    return None


def _malformed(text: str, start: int, head: re.Match[str], name: str) -> Fault:
    right = f"({name})={head['op']}"
    return fault(
        "LWT008",
        f"a step begins with (id)=OPERATION; this one begins with {shown(head[0])!r}",
        start,
        head.end(),
        f"write {right}(",
        edits=(Edit(Span(start, head.end()), right),),
    )


_MOST_LINES = 2_000
"""Faults of lines that are explained at once."""


def explain_lines(text: str, start: int, stop: int) -> tuple[list[Fault], int]:
    """Explain the lines of ``[start, stop)``: none of them begins a step. Lines of prose that touch are one fault.

    Return also where reading goes on: at ``stop``, or before it, behind a line that is the last of very many faults.
    """
    found: list[Fault] = []
    prose: list[tuple[int, int]] = []

    def flush() -> None:
        if prose:
            found.append(_prose(text, prose))
            prose.clear()

    at = start
    while at < stop:
        if blank := EMPTY_LINES.match(text, at, stop):
            flush()
            at = blank.end()
            continue
        end = text.find("\n", at, stop)
        if end < 0:
            end = stop
        first = end - len(text[at:end].lstrip())
        sign = text[first] if first < end else "#"
        if sign == "#":
            flush()
        elif sign in "`~" and FENCE.match(text, at):
            flush()
            whole = Span(start_of_line(text, at), min(end + 1, len(text)))
            found.append(
                fault(
                    "LWT036",
                    "a code fence is no part of a script",
                    first,
                    end,
                    "remove the line",
                    edits=(Edit(whole, ""),),
                    accepted=True,
                )
            )
        elif sign in "(.\u2026" and ELISION.match(text, at):
            flush()
            found.append(
                fault(
                    "LWT010",
                    "steps are left out here: this is a sketch of a script",
                    first,
                    end,
                    "write every step out, or remove the line",
                )
            )
        else:
            prose.append((first, end))
        at = end + 1
        if len(found) >= _MOST_LINES and not prose:
            return found, min(at, stop)
    flush()
    return found, stop


def _prose(text: str, lines: list[tuple[int, int]]) -> Fault:
    start, end = lines[0][0], lines[-1][1]
    bodies = [text[first:last].strip() for first, last in lines]
    sure = all(map(is_text, bodies, ["", *bodies]))
    what = "this line is no step" if len(lines) == 1 else f"these {len(lines)} lines are no steps"
    hint = 'a step looks like (id)=LLM("..."); a note is a line that starts with #'
    inside = HEAD.search(text, start, end)
    if inside:
        hint = "a step's head stands at the start of a line; begin a new line before it"
    return fault(
        "LWT001",
        what,
        start,
        min(end, end_of_line(text, start)),
        hint,
        # What only may be text gets no edit, and is not left out by the lenient reading either: it may have been a step.
        edits=tuple(Edit(Span(first, first), "# ") for first, _ in lines) if sure else (),
        accepted=True,
    )


_STEPLIKE = re.compile(
    r"""["'`{}\[\]()]|\w+[ \t]*:?=(?!=)|.*(?:\b(?:LLM|CONST|EACH|EXPR|GASL|SEED|ANSWER)[ \t]*[("'\[{]|\{\()"""
)
_LABELLED = re.compile(r"[A-Za-z][\w ]{0,40}:[ \t]")
"""``REMAINING: 5``: what is asked for beside the steps."""


def is_text(line: str, before: str) -> bool:
    """Say whether the line is text by all signs, and nothing of a step; ``before`` is the line of text above it, or ""."""
    if is_remark(line):
        return True
    if ends_a_call(line):
        return False
    return not _STEPLIKE.match(line) and (_LABELLED.match(line) is not None or reads_as_text(line, before))


_ENUMERATOR = re.compile(r"\(?\w{1,3}\)[ \t]+")
_PROMPT_END = re.compile(r"[\"'\w\]}][ \t]*\)[ \t]*[;,.]?\Z")


def ends_a_call(line: str) -> bool:
    """Say whether a line has more closing parentheses than opening ones, the last at its end: what is left of a step may."""
    if ")" not in line:
        return False
    body = _ENUMERATOR.sub("", line, count=1)
    return body.count(")") > body.count("(") and _PROMPT_END.search(body) is not None


def explain_rest(text: str, start: int, end: int) -> tuple[Fault, int]:
    """Explain the text ``[start, end)`` behind a step on its line. Return also where reading goes on."""
    first = skip_blank(text, start)
    head = HEAD.search(text, first, end)
    if head and text[first] != "#":
        between = text[first : head.start()].strip()
        return (
            fault(
                "LWT006",
                "a second step begins on this line",
                head.start(),
                head.end(),
                "each step stands on a line of its own",
                edits=(Edit(Span(start, head.start()), "\n"),) if not between or not between.isalnum() else (),
                accepted=True,
            ),
            head.start(),
        )
    rest = text[first:end].strip()
    if rest.startswith("#"):
        message, hint, edit = "a comment stands on a line of its own", "move it above the step", "\n" + rest
    elif re.search(r"\w", rest):
        message = f"{shown(rest)!r} stands behind the step's last parenthesis"
        hint, edit = "a step ends at its closing parenthesis", "\n# " + rest
    else:
        message = f"{shown(rest)!r} stands behind the step's last parenthesis"
        hint, edit = "remove it", ""
    return (
        fault("LWT006", message, first, first + len(rest), hint, edits=(Edit(Span(start, end), edit),), accepted=True),
        end,
    )
