"""Which candidates fit to what was typed, and in which order: what begins so, then what has a part that does, then the rest."""

import re
from collections.abc import Callable, Iterable

from attrs import frozen

from ...source import Span
from ..model import Completion, CompletionKind

__all__ = ["MOST", "Candidate", "ranked"]

MOST = 200
"""Completions of one place."""
_LOOKED_AT = 20_000
_LONGEST = 2_000
_PARTS = re.compile(r"[^\W_]+")


@frozen
class Candidate:
    """A completion that may or may not fit. ``match`` is what is compared to what was typed (default: the text)."""

    text: str
    kind: CompletionKind
    detail: str = ""
    documentation: str = ""
    match: str = ""
    described: Callable[[], tuple[str, str]] | None = None
    """Gives detail and documentation where these cost something: of a thousand variables two hundred are shown."""

    @property
    def about(self) -> tuple[str, str]:
        """Detail and documentation."""
        return (self.detail, self.documentation) if self.described is None else self.described()

    @property
    def compared(self) -> str:
        """What is compared to what was typed."""
        return self.match or self.text


def ranked(candidates: Iterable[Candidate], typed: str, span: Span) -> tuple[Completion, ...]:
    """Return the candidates that fit, the best first, at most ``MOST``. Those that fit alike keep their order."""
    seen: set[str] = set()
    scored: list[tuple[int, int, Candidate]] = []
    for place, candidate in enumerate(candidates):
        if place >= _LOOKED_AT:
            break
        if candidate.text in seen or len(candidate.text) > _LONGEST:
            continue
        score = _score(typed, candidate.compared)
        if score is not None:
            seen.add(candidate.text)
            scored.append((score, place, candidate))
    scored.sort(key=lambda each: each[:2])
    return tuple(
        Completion(each.text, each.kind, span, *each.about, rank, each.compared)
        for rank, (_, _, each) in enumerate(scored[:MOST])
    )


def _score(typed: str, text: str) -> int | None:
    """Return how well ``text`` fits, 0 best; None where it does not."""
    if not typed or text.startswith(typed):
        return 0
    wanted, known = typed.casefold(), text.casefold()
    if known.startswith(wanted):
        return 1
    starts = {match.start() for match in _PARTS.finditer(known)}
    if any(known.startswith(wanted, start) for start in starts):
        return 2
    if len(wanted) < 2:
        return None
    if wanted in known:
        return 3
    return _fuzzy(wanted, known, starts)


def _fuzzy(wanted: str, known: str, starts: set[int]) -> int | None:
    """Return how far the letters of ``wanted`` are apart in ``known``; None where they are not there in order and near each other.

    The first of them begins a part.
    """
    at = next((start for start in sorted(starts) if known[start] == wanted[0]), -1)
    first = at
    for letter in wanted[1:]:
        if at < 0:
            return None
        at = known.find(letter, at + 1)
    return 4 + at - first if 0 <= at - first <= 2 * len(wanted) + 1 and at >= 0 else None
