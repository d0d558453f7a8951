"""Checks a Formula Seed before it costs anything: what reading found, and what only the whole seed and its contexts show.

Rooms by subject: ``names``, ``fields``, ``expressions``, ``steps``, ``reviews``; ``compared`` finds comparisons, ``facts`` is what a
step says by itself, ``registry`` what a rule is given, ``looking`` which steps it looks at. A new rule is a function in one of the
rooms, its entry in that room's ``LINTS`` and in ``lang.rules``.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from ...diagnostic import Diagnostic, sort_key
from ...trees.seed import FormulaSeed
from . import extraction, names, steps
from . import names as expressions
from .context import Context, Kept, Lint, Looked, Looking
from .facts import facts_of

__all__ = ["LINTS", "Kept", "Looked", "check", "check_again"]

LINTS: tuple[Lint, ...] = (
    *names.LINTS,
    *extraction.LINTS,
    *expressions.EXPRESSION_LINTS,
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
    return sorted(_found(Context(seed, contexts, kept))[0], key=sort_key)


def check_again(
    seed: FormulaSeed, tokens: Sequence[Hashable], before: Looked | None
) -> tuple[list[Diagnostic], Looked | None]:
    """Return what ``check`` does, and what this leaves for the check of a seed like it; ``before`` is what one before has left.

    ``tokens`` stand for the steps: where one is the same, so is all that the step says, but for its place.
    """
    known = {} if before is None else before.facts
    facts = [known[token] if token in known else facts_of(step) for token, step in zip(tokens, seed.steps, strict=True)]
    context = Context(seed)
    fields = {field.name: (field.type, tuple(field.values)) for field in seed.fields}
    around = (seed.form, fields, context.unread_fields, context.has_fields)
    meanings: dict[str, Hashable] = {
        name: (context.are_filters.get(name), name in context.counts) for name in context.names
    }
    looking = Looking.after(before, tokens, facts, around, meanings)
    found, is_all = _found(Context(seed, looking=looking))
    return sorted(found, key=sort_key), looking.looked(around, meanings) if is_all else before


def _found(context: Context) -> tuple[Iterable[Diagnostic], bool]:
    """Return what is found, and whether all rules were asked."""
    found = dict.fromkeys(context.seed.diagnostics)
    for rule in LINTS:
        for diagnostic in rule.find(context):
            found[diagnostic] = None
            if len(found) >= _MOST:
                return found, False
    return found, True
