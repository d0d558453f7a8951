"""Which edits of a plan are made without asking: those that keep every command, and every word that says something.

An edit that makes a remark of a line, or only takes words away, leads to a plan that runs and does less than was meant. An edit that puts
one name in the place of another leads to a plan that answers another question. Such a fault goes back to the model instead.
"""

import re
from collections import Counter
from collections.abc import Sequence

from ...lang.diagnostic import Diagnostic, Edit, is_slip, is_spelling
from ...lang.linter.gasl.graph import BUILT_IN, HAS_THIS_VALUE
from ...lang.parse.gasl.lines import COMMANDS

__all__ = ["keeping", "keeps_all", "names_the_same"]

_WORD = re.compile(r"\w+")
_ESCAPE = re.compile(r'\\[nrtbf"\\/]')
_COMMAND = re.compile(rf"\b(?:{'|'.join(COMMANDS)})\b")
_FILLERS = frozenset({"a", "all", "an", "every", "key", "of", "state", "the", "then", "variable"})
"""Words that the language does not have, and that mean nothing more in it. DISTINCT and UNIQUE mean something."""
_SPARE = {
    "GASL005": frozenset({"try", "block"}),  # END TRY
    "GASL014": frozenset({"from", "order", "ordered", "sort", "sorted"}),  # SELECT * FROM x; RANK x ORDER BY f
}
"""By code: words of other languages that stand beside the one that is kept."""
_LAYOUT = frozenset({"GASL029", "GASL030", "GASL060"})
"""A fence, a bullet, a field that is listed twice: what is removed is no part of a command, or stands there still."""


_OF_THE_GRAPH = frozenset({"GASL070", "GASL071", "GASL073"})
"""Whose edits put a name or value of the graph in the place of another: ``county`` may be in the graph, and ``country`` be meant.

A slip of the hand is mended all the same where the field that was meant has the very value that is asked for, or is the language's own."""
_OF_THE_PLAN = frozenset({"GASL050", "GASL055", "GASL061", "GASL062", "GASL064", "PLAN002"})
"""Whose edits put a name of the plan itself, of the state, or of the settings in the place of another."""
_NEVER = frozenset({"GASL056"})
"""Whose edits decide between two readings."""
_NAME = re.compile(r"""["'`]*[^\W\d][\w.\- ]*["'`]*""")


def keeping(found: Sequence[Diagnostic], text: str) -> list[Diagnostic]:
    """Return the errors of ``text`` whose edits may be made together: each keeps all that was said, none touches another's."""
    made: list[Diagnostic] = []
    taken: list[Edit] = []
    for each in found:
        if each.severity != "error" or not keeps_all(each, text) or not names_the_same(each, text):
            continue
        if not any(_touch(edit, other) for edit in each.edits for other in taken):
            made.append(each)
            taken += each.edits
    return made


def keeps_all(diagnostic: Diagnostic, text: str) -> bool:
    """Say whether a diagnostic of ``text`` has edits, and these leave every command, and every word with a meaning, in it."""
    before, after = Counter[str](), Counter[str]()
    for edit in diagnostic.edits:
        old = text[edit.span.start : edit.span.end]
        if edit.text.strip() == "#":
            if old.strip() != "#:" and (not old.strip() or _COMMAND.search(_rest(text, edit.span.end))):
                return False
            continue
        before.update(_words(old))
        after.update(_words(edit.text))
    lost, gained = before - after, after - before
    spare = _FILLERS | _SPARE.get(diagnostic.code, frozenset())
    return bool(diagnostic.edits) and (bool(gained) or diagnostic.code in _LAYOUT or set(lost) <= spare)


def names_the_same(diagnostic: Diagnostic, text: str) -> bool:
    """Say whether a name that the edits put for another is that name, spelt as it has to be."""
    if diagnostic.code in _NEVER:
        return False
    if diagnostic.code not in _OF_THE_GRAPH | _OF_THE_PLAN:
        return True
    for edit in diagnostic.edits:
        old, new = text[edit.span.start : edit.span.end], edit.text
        if not (_NAME.fullmatch(old) and _NAME.fullmatch(new)):
            continue  # something is put in, as a DECLARE, or a number is written as one
        one, other = old.strip("\"'`"), new.strip("\"'`")
        same_end = diagnostic.code == "GASL061" and one.rpartition(".")[2] == other.rpartition(".")[2]
        of_language = any(other in names for names in BUILT_IN.values())
        may_slip = (
            of_language
            or diagnostic.code in _OF_THE_PLAN - {"GASL062"}
            or any(HAS_THIS_VALUE in each for each in diagnostic.hints)
        )
        slip = may_slip and is_slip(one, other)
        if not (is_spelling(one, other) or slip or same_end):
            return False
    return True


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(_ESCAPE.sub(" ", text))]


def _rest(text: str, at: int) -> str:
    """Return what stands between ``at`` and the end of the line."""
    end = text.find("\n", at)
    return text[at : end if end >= 0 else len(text)]


def _touch(one: Edit, other: Edit) -> bool:
    a, b = one.span, other.span
    return (a.start < b.end and b.start < a.end) or a == b
