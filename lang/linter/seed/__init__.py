"""Checks a Formula Seed before it costs anything: what reading found, and what only the whole seed and its contexts show.

Rooms by subject: ``names``, ``fields``, ``expressions``, ``steps``, ``reviews``; ``compared`` finds comparisons, ``registry`` is what
a rule is given. A new rule is a function in one of the rooms, its entry in that room's ``LINTS`` and in ``lang.rules``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...diagnostic import Diagnostic, sort_key
from ...seed import FormulaSeed
from . import expressions, fields, names, reviews, steps
from .registry import Context, Kept, Lint

__all__ = ["LINTS", "Kept", "check"]

LINTS: tuple[Lint, ...] = (*names.LINTS, *fields.LINTS, *expressions.LINTS, *steps.LINTS, *reviews.LINTS)
"""All rules that look at a seed."""
_MOST = 1_000
"""Diagnostics of one seed; nobody reads more, and most of them have one cause."""


def check(
    seed: FormulaSeed, *, contexts: Sequence[Mapping[str, Any]] | None = None, kept: Kept | None = None
) -> list[Diagnostic]:
    """Return what is wrong with ``seed``, in the order of place: what reading it found and what the rules find.

    ``contexts`` are what the seed will run on, ``kept`` what its filter keeps of their reviews; None where nothing is known.
    Never raises for what a seed says.
    """
    context = Context(seed, contexts, kept)
    found = dict.fromkeys(seed.diagnostics)
    for rule in LINTS:
        for diagnostic in rule.find(context):
            found[diagnostic] = None
            if len(found) >= _MOST:
                return sorted(found, key=sort_key)
    return sorted(found, key=sort_key)
