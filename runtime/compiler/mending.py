"""Mends an answer by the edits that its diagnostics have, without a call, as far as these are sure. What was mended is told.

An edit that guesses which name was meant is sure only where one slip of the hand lies between the two: "negatve" is "negative", while
"neutral" may be any of an enum's values, and is left to the model.
"""

import re
from collections.abc import Callable, Sequence

from attrs import frozen

from ...lang.diagnostic import Diagnostic, Edit, apply_edits, is_slip
from ..commands.excerpts import clipped
from .results import Judged, Mended

__all__ = ["Repaired", "is_sure", "mend"]

_ROUNDS = 40
_GUESSES = frozenset({
    "SEED002", "SEED008", "SEED040", "SEED044", "SEED045", "SEED047", "SEED049", "EXPR050", "EXPR051", "EXPR052", "EXPR054", "EXPR056",
    "EXPR057", "EXPR058", "EXPR059",
})  # fmt: skip
"""Codes whose edits may be a guess at a name."""
_WORD = re.compile(r"""["'$]{0,2}[\w .]{1,200}["']?""")
_SHOWN = 80
_BRACKETS = 3
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
"""A text in quotes, or a bracket outside of one."""


@frozen
class Repaired:
    """An answer after mending: what is left is in ``judged``."""

    judged: Judged
    mended: tuple[Mended, ...] = ()


def mend(text: str, judge: Callable[[str], Judged]) -> Repaired:
    """Judge ``text`` and make all sure edits of its errors, again and again, while there are fewer errors each time."""
    judged, told = judge(text), list[Mended]()
    for _ in range(_ROUNDS):
        if judged.rewritten is not None:
            text, why = judged.rewritten
            told.append(Mended("", why))
            judged = judge(text)
            continue
        source = judged.source.text
        chosen = _apart(_sure(judged))
        if not chosen:
            closed = _closed(judged, judge)
            if closed is None:
                break
            judged, put_in = closed
            told.append(put_in)
            continue
        after = judge(apply_edits(source, [edit for each in chosen for edit in each.edits]))
        if len(chosen) > 1 and not _is_better(after, judged):  # one of them may spoil what the others mend
            chosen = chosen[:1]
            after = judge(apply_edits(source, chosen[0].edits))
        if not _is_better(after, judged):
            break
        told += [_told(each, source) for each in chosen]
        judged = after
    return Repaired(judged, tuple(told))


def _closed(judged: Judged, judge: Callable[[str], Judged]) -> tuple[Judged, Mended] | None:
    """Put in the last brackets, where they alone are missing behind another one: what stands before them is whole.

    The model has ended its answer itself then; one that was cut off at a limit never comes here, and ends anywhere.
    """
    text = judged.source.text.rstrip()
    if len(judged.errors) != 1 or not judged.errors[0].code.startswith("JSON") or text[-1:] not in ("]", "}"):
        return None
    missing = _missing(text)
    if not 0 < len(missing) <= _BRACKETS:
        return None
    after = judge(text + missing)
    if any(each.code.startswith("JSON") for each in after.errors):
        return None
    return after, Mended(judged.errors[0].code, clipped(judged.errors[0].message, 300), f"`{missing}` put in")


def _missing(text: str) -> str:
    """Return the brackets that are open at the end of ``text``, closed; nothing where they don't match."""
    open_: list[str] = []
    for found in _BRACKET.finditer(text):
        mark = found[0]
        if mark in ("{", "["):
            open_.append("}" if mark == "{" else "]")
        elif mark in ("}", "]") and (not open_ or open_.pop() != mark):
            return ""
    return "".join(reversed(open_))


def _sure(judged: Judged) -> list[Diagnostic]:
    """Return the errors that can be mended, but of an expression all or none: half mended it may say something else."""
    sure = [each for each in judged.errors if each not in judged.offered and is_sure(each, judged.source.text)]
    left = {_place(each) for each in judged.errors if each.code.startswith("EXPR") and each not in sure}
    return [each for each in sure if not each.code.startswith("EXPR") or _place(each) not in left]


def _place(diagnostic: Diagnostic) -> str:
    """Return the path with which messages about an expression begin."""
    return diagnostic.message.partition(": ")[0]


def _is_better(after: Judged, before: Judged) -> bool:
    """Fewer errors; or as many, of which none was there, or the first stands further on: only so many are told at a time."""
    broken, still = _broken(before), _broken(after)
    if broken != still:
        return still < broken  # what a text says is known when it can be read
    if len(after.errors) != len(before.errors):
        return len(after.errors) < len(before.errors)
    seen = {(each.code, each.message) for each in before.errors}
    return not any((each.code, each.message) in seen for each in after.errors) or _first(after) > _first(before)


def _broken(judged: Judged) -> int:
    return sum(each.code.startswith("JSON") for each in judged.errors)


def _first(judged: Judged) -> int:
    return min((each.span.start for each in judged.errors if each.span is not None), default=0)


def is_sure(diagnostic: Diagnostic, text: str) -> bool:
    """Say whether the edits of a diagnostic of ``text`` can be made without asking anybody."""
    if not diagnostic.edits:
        return False
    return diagnostic.code not in _GUESSES or all(_is_alike(edit, text) for edit in diagnostic.edits)


def _is_alike(edit: Edit, text: str) -> bool:
    old, new = text[edit.span.start : edit.span.end], edit.text
    if not old or not _WORD.fullmatch(old) or not _WORD.fullmatch(new):
        return True  # no guess at a name: something is put in, or written in another form
    one, other = _bare(old), _bare(new)
    if one == other or (min(len(one), len(other)) >= 3 and one in (other, other.rpartition(".")[2])):
        return True
    return is_slip(one, other)


def _bare(name: str) -> str:
    return re.sub(r"[\s_\"'$]", "", name).casefold()


def _apart(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics whose edits don't touch those of one before: a fix is made whole or not."""
    made: list[Diagnostic] = []
    taken: list[Edit] = []
    for each in found:
        if not any(_overlap(edit, other) for edit in each.edits for other in taken):
            made.append(each)
            taken += each.edits
    return made


def _overlap(one: Edit, other: Edit) -> bool:
    a, b = one.span, other.span
    return (a.start < b.end and b.start < a.end) or (a.start == b.start and (a.end == a.start or b.end == b.start))


def _told(diagnostic: Diagnostic, text: str) -> Mended:
    edits = diagnostic.edits
    old = clipped(text[edits[0].span.start : edits[0].span.end], _SHOWN)
    new = clipped(edits[0].text, _SHOWN)
    how = f"`{old}` became `{new}`" if old and new else f"`{old}` left out" if old else f"`{new}` put in"
    more = f", and {len(edits) - 1} more" if len(edits) > 1 else ""
    return Mended(diagnostic.code, clipped(diagnostic.message, 300), how + more)
