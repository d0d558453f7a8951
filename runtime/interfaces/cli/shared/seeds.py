"""Reads and checks Formula Seeds, against contexts where they are given."""

from typing import Any

from .....lang.diagnostic import Diagnostic, sort_key
from .....lang.documents.seed import read_seed
from .....lang.linter.seed import check
from .....lang.seed import FormulaSeed
from .....lang.source import Source
from .checked import Checked
from .exit import Misused

__all__ = ["check_seed"]


def check_seed(source: Source, given: Any = None) -> Checked:
    """Read and check one seed, against a context or a list of contexts. Raises ``Misused`` for an input that is neither."""
    read = read_seed(source)
    readable = read.seed or read.draft
    if readable is None:
        return Checked(read.diagnostics, source)
    checked = check(readable) if given is None else _against(readable, given)
    found = dict.fromkeys((*checked, *read.diagnostics))
    return Checked(tuple(sorted(found, key=sort_key)), source, seed=readable, size=len(readable.steps))


def _against(seed: FormulaSeed, given: Any) -> list[Diagnostic]:
    from ....formulas.reviews import ContextError  # late: most checks have no reviews
    from ....formulas.seeds import check as check_with

    try:
        return check_with(seed, given)
    except ContextError as error:
        hint = 'the input of a seed is a context, or a list of them: {"name": "Cafe", "reviews": [{"text": "..."}]}'
        raise Misused(str(error), hint) from None
