"""Expressions without quotes around them: ``when={(score)} > 3``, ``EXPR(n + 1, n={(a)})``."""

import re
from collections.abc import Iterator

from ...diagnostic import Edit
from ...source import Span
from ..fault import Fault, fault, shown
from .broken import Broken
from .tails import REFERENCE

__all__ = ["bare_expression"]

_BEGIN = re.compile(r"(?P<what>\bwhen[ \t]{0,9}=|=[ \t]{0,9}EXPR[ \t]{0,9}\()\s{0,9}(?=[^\s\"'=])")
_END = re.compile(r"\s{0,99}(?:,\s{0,99}[A-Za-z_]\w{0,60}[ \t]{0,9}=(?!=)|,?\s{0,99}\))")
_LONGEST = 2_000
"""Code points of an expression that is looked for; a longer one stands in quotes."""
_LONGEST_STEP = 20_000
"""Code points of a step that is read again for each place where the expression may end."""
_MOST_ENDS = 4


def bare_expression(step: Broken) -> Fault | None:
    """Return the fault of an expression that stands without quotes, with the edits that put them there."""
    text, at = step.text, step.failure.offset
    if step.failure.after not in ("value", "name", "open", "equals") or step.failure.quote:
        return None
    if step.trimmed - step.start > _LONGEST_STEP:
        return None
    begun = [found for found in _BEGIN.finditer(text, step.start, min(at + 1, step.stop)) if found.end() <= at]
    if not begun or at - begun[-1].end() > _LONGEST:
        return None
    begin = begun[-1].end()
    if unopened := _unopened(step, begin):
        return unopened
    for end in _ends(step, begin, at):
        mark = _mark(text[begin:end])
        edits = (Edit(Span(begin, begin), mark), Edit(Span(end, end), mark))
        if mark and _is_paired(text[begin:end]) and step.mended_by(*edits):
            head = "when=" if begun[-1]["what"].startswith("when") else "EXPR("
            hint = f"write {head}{mark}{shown(text[begin:end], 60)}{mark}"
            return fault("LWT005", "an expression stands in quotes", begin, end, hint, edits=edits)
    return None


_CLOSING = re.compile(r"[\"'](?=\s{0,9}(?:[,;]\s{0,9}[A-Za-z_]\w{0,60}[ \t]*[=:]|,?\s{0,9}\)|\s{0,9}\Z))")


def _unopened(step: Broken, begin: int) -> Fault | None:
    """An expression that has its closing quote only: the first quote before options or the end that nothing in it pairs."""
    text, end = step.text, min(step.trimmed, begin + _LONGEST)
    for found in _CLOSING.finditer(text, begin, end):
        mark, at = found[0], found.start()
        inside = re.sub(REFERENCE, "", text[begin:at])
        edit = Edit(Span(begin, begin), mark)
        if mark not in inside and step.furthered_by(edit):
            hint = f"write {mark} before it"
            return fault(
                "LWT005",
                "an expression stands in quotes; this has no opening quote",
                begin,
                begin + 1,
                hint,
                edits=(edit,),
            )
    return None


def _ends(step: Broken, begin: int, at: int) -> Iterator[int]:
    """Yield where the expression may end: before an option behind it, else before a parenthesis, the last one first."""
    found = list(_END.finditer(step.text, at, min(step.trimmed, begin + _LONGEST)))
    options = [match.start() for match in found if match[0].rstrip()[-1] == "="]
    closing = [match.start() for match in found if match[0].rstrip()[-1] == ")"]
    yield from options[:_MOST_ENDS]
    yield from reversed(closing[-_MOST_ENDS:])


def _mark(expression: str) -> str:
    """Return the quote that nothing in the expression ends; nothing where it has both. Those in references end no string."""
    own = re.sub(REFERENCE, "", expression)
    return '"' if '"' not in own else "'" if "'" not in own else ""


def _is_paired(expression: str) -> bool:
    """Say whether each quote in the expression has its other one."""
    own = re.sub(REFERENCE, "", expression)
    return re.sub(r"\"[^\"]*\"|'[^']*'", "", own).count('"') == 0 and own.count("'") % 2 == 0
