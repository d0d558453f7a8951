"""Completion of the codes in a comment that silences remarks: ``# knotwork: ignore[LWT024]``."""

import re

from ...rules import RULES
from ...source import Span
from ..markdown import plain
from ..model import Completion, Language
from .ranking import Candidate, ranked

__all__ = ["complete_ignored"]

_OPEN = re.compile(r"[ \t]*#[ \t]*knotwork:[ \t]*ignore\[(?:[A-Za-z0-9]+[ \t]*,[ \t]*)*(?P<typed>[A-Za-z0-9]*)")


def complete_ignored(text: str, offset: int, language: Language) -> tuple[Completion, ...]:
    """Return the codes that may stand at ``offset``: those of remarks on the language; an error can't be silenced."""
    match = _OPEN.fullmatch(text, text.rfind("\n", 0, offset) + 1, offset)
    if match is None:
        return ()
    named = (
        Candidate(code, "value", plain(rule.name), match=code)
        for code, rule in RULES.items()
        if code.startswith(language.upper()) and rule.severity != "error"
    )
    return ranked(named, match["typed"], Span(match.start("typed"), offset))
