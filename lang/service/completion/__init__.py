"""Completion for all languages."""

import re

from ...catalogue.rules import RULES
from ...source import Span
from ..model import Completion, Known, Language, Reading, plain
from .place import Candidate, over_the_rest, ranked

__all__ = ["completions"]


def completions(reading: Reading, offset: int, known: Known) -> tuple[Completion, ...]:
    """See ``service.complete``. The module for a language is imported on its first use."""
    found: tuple[Completion, ...]
    match reading.language:
        case "gasl":
            from .gasl_completion import complete_gasl as complete
        case "lwt":
            from .lwt_completion import complete_lwt as complete
        case "expr":
            from .place import complete_expr as complete
        case "seed":
            from .seed_completion import complete_seed as complete
    found = complete(reading.source, offset, known)
    if not found and reading.language in ("lwt", "gasl"):
        found = complete_ignored(reading.text, offset, reading.language)
    return over_the_rest(found, reading.text, offset)


# Completes the codes in an ignore comment: ``# knotwork: ignore[LWT024]``.

_OPEN = re.compile(r"[ \t]*#[ \t]*knotwork:[ \t]*ignore\[(?:[A-Za-z0-9]+[ \t]*,[ \t]*)*(?P<typed>[A-Za-z0-9]*)")


def complete_ignored(text: str, offset: int, language: Language) -> tuple[Completion, ...]:
    """Return the codes that are allowed in an ignore comment at ``offset``.

    Warnings and hints of the language can be ignored, but not its errors.
    """
    match = _OPEN.fullmatch(text, text.rfind("\n", 0, offset) + 1, offset)
    if match is None:
        return ()
    named = (
        Candidate(code, "value", plain(rule.name), match=code)
        for code, rule in RULES.items()
        if code.startswith(language.upper()) and rule.severity != "error"
    )
    return ranked(named, match["typed"], Span(match.start("typed"), offset))
