"""What the session says to one at the prompt, as it is typed in a notebook: ``%kw log`` in place of ``.log``."""

import re

from attrs import evolve

from ..repl.dots import DOTS
from ..repl.outcome import Outcome

__all__ = ["as_typed_here"]

_DOT = re.compile(rf"(?<![\w./~-])\.(?=(?:{'|'.join(DOTS)})\b(?![./]))")
_GRAPH = "knotwork repl GRAPH opens one"
_LOCKED = "if it is a prompt or a notebook,"


def as_typed_here(outcome: Outcome) -> Outcome:
    """Return an outcome whose words name what a notebook has; values stay as they are."""
    return evolve(
        outcome,
        message=_words(outcome.message),
        hint=_words(outcome.hint),
        summary=_words(outcome.summary),
        notes=tuple(map(_words, outcome.notes)),
    )


def _words(text: str) -> str:
    if not text:
        return text
    text = _DOT.sub("%kw ", text).replace("%kw quit", "%kw close").replace(_GRAPH, "%kw open GRAPH opens one")
    return text.replace(_LOCKED, "if it is a prompt or a notebook (%kw close there),")
