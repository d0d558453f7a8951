"""Checks a Formula Seed before it costs anything: what reading found, and what only the whole seed and its contexts show.

Modules by subject: ``names`` (and expressions), ``extraction`` (fields and reviews), ``steps``; ``facts`` is what a step says by
itself, ``context`` what a rule is given. A new rule is a function in one of them, its entry in that module's ``LINTS`` and in
``lang.catalogue.rules.seed_rules``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...diagnostic import Diagnostic, sort_key
from ...trees.seed import FormulaSeed
from . import extraction, names, steps
from .context import Context, Kept, Lint

__all__ = ["LINTS", "Kept", "check"]

LINTS: tuple[Lint, ...] = (
    *names.LINTS,
    *extraction.LINTS,
    *names.EXPRESSION_LINTS,
    *steps.LINTS,
    *extraction.REVIEW_LINTS,
)
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
    return sorted(_found(Context(seed, contexts, kept)), key=sort_key)


def _found(context: Context) -> Iterable[Diagnostic]:
    """Return what is found; once there is too much, the rest of the rules is not asked."""
    found = dict.fromkeys(context.seed.diagnostics)
    for rule in LINTS:
        for diagnostic in rule.find(context):
            found[diagnostic] = None
            if len(found) >= _MOST:
                return found
    return found
