"""Checks of a Formula Seed before it runs: the parser's faults, and faults that need the complete seed and its contexts.

The lints are in the modules ``names`` (also expressions), ``extraction`` (fields and reviews), ``declarations`` (metadata, examples,
resolved fields) and ``steps``; ``context`` provides the input of the lints. To add a lint, write a function with the decorator
``lint`` or ``lint_of_steps`` in one of the modules, and a rule in ``lang.catalogue.rules``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...diagnostic import Diagnostic, sort_key
from ...trees.seed import FormulaSeed
from . import declarations, extraction, names, steps  # noqa: F401  # they register their lints
from .context import Context, FilterCounts, lint

__all__ = ["FilterCounts", "check"]

_MOST = 1_000
"""Maximum number of diagnostics of one seed; more diagnostics usually have a common cause."""


def check(
    seed: FormulaSeed, *, contexts: Sequence[Mapping[str, Any]] | None = None, kept: FilterCounts | None = None
) -> list[Diagnostic]:
    """Return the diagnostics of ``seed`` from the parser and from the rules, in source order.

    ``contexts`` are the contexts that the seed will run on. ``kept`` is the result of the seed's filter on the reviews in these contexts.
    Both are None if unknown. Faults in a seed never raise an exception.
    """
    return sorted(_lint_diagnostics(Context(seed, contexts, kept)), key=sort_key)


def _lint_diagnostics(context: Context) -> Iterable[Diagnostic]:
    """Return the distinct diagnostics of the parser and of the rules.

    If their number reaches the limit, the remaining lints are skipped.
    """
    found = dict.fromkeys(context.seed.diagnostics)
    for diagnostic in lint.run(context):
        found[diagnostic] = None
        if len(found) >= _MOST:
            break
    return found
