"""Check a Formula Seed before it runs: faults found by the parser, and faults that need the whole seed and its contexts.

Modules by subject: ``names`` (and expressions), ``extraction`` (fields and reviews), ``steps``; ``context`` has the
input of the rules. A new rule is a function in one of them, with an entry in that module's ``LINTS``
and in ``lang.catalogue.rules.seed_rules``.
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
"""All rules that check a seed."""
_MOST = 1_000
"""Maximum number of diagnostics of one seed; more usually have one cause."""


def check(
    seed: FormulaSeed, *, contexts: Sequence[Mapping[str, Any]] | None = None, kept: Kept | None = None
) -> list[Diagnostic]:
    """Return the diagnostics of ``seed`` in source order: those of the parser and those of the rules.

    ``contexts`` are the contexts that the seed will run on, ``kept`` the result of its filter on their reviews; None if unknown.
    Never raises for faults in a seed.
    """
    return sorted(_found(Context(seed, contexts, kept)), key=sort_key)


def _found(context: Context) -> Iterable[Diagnostic]:
    """Return the diagnostics of the rules; after the limit is reached, the remaining rules are skipped."""
    found = dict.fromkeys(context.seed.diagnostics)
    for rule in LINTS:
        for diagnostic in rule.find(context):
            found[diagnostic] = None
            if len(found) >= _MOST:
                return found
    return found
