"""Check a Formula Seed before it runs: faults found by the parser, and faults that need the whole seed and its contexts.

Modules by subject: ``names`` (and expressions), ``extraction`` (fields and reviews), ``steps``; ``context`` has the input of the
lints. A new lint is a function with the decorator ``lint`` or ``lint_of_steps`` in one of the modules, and a rule in
``lang.catalogue.rules``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...diagnostic import Diagnostic, sort_key
from ...trees.seed import FormulaSeed
from . import extraction, names, steps  # noqa: F401  # they register their lints
from .context import Context, Kept, lint

__all__ = ["Kept", "check"]

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
    """Return the diagnostics of the rules; the remaining lints are skipped after the limit."""
    found = dict.fromkeys(context.seed.diagnostics)
    for diagnostic in lint.run(context):
        found[diagnostic] = None
        if len(found) >= _MOST:
            break
    return found
