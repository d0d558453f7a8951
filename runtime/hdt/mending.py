"""Which edits of a plan are made without asking: those that keep every command, and every word that says something.

An edit that makes a remark of a line, or only takes words away, leads to a plan that runs and does less than was meant. Such a fault goes
back to the model instead.
"""

import re
from collections import Counter
from collections.abc import Sequence

from ...lang.diagnostic import Diagnostic, Edit
from ...lang.parse.gasl.lines import COMMANDS

__all__ = ["keeping", "keeps_all"]

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


def keeping(found: Sequence[Diagnostic], text: str) -> list[Diagnostic]:
    """Return the errors of ``text`` whose edits may be made together: each keeps all that was said, none touches another's."""
    made: list[Diagnostic] = []
    taken: list[Edit] = []
    for each in found:
        if each.severity != "error" or not keeps_all(each, text):
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


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(_ESCAPE.sub(" ", text))]


def _rest(text: str, at: int) -> str:
    """Return what stands between ``at`` and the end of the line."""
    end = text.find("\n", at)
    return text[at : end if end >= 0 else len(text)]


def _touch(one: Edit, other: Edit) -> bool:
    a, b = one.span, other.span
    return (a.start < b.end and b.start < a.end) or a == b
