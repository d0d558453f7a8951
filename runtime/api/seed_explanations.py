"""Explains the values of a seed, finds the extractions that decide them, and converts seeds. No model is called."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...lang.documents.seed import Converted
    from ...lang.evaluate.seed.explanation import Explanation
    from ...lang.evaluate.seed.sensitivity import Sensitivity
    from ..seeds.compute import SeedTree


def explain(seed: "SeedTree", extractions: Any, context: Mapping[str, Any] | None, name: str) -> "Explanation":
    """Explain the value of the step ``name``. ``extractions`` is as for ``compute``.

    Raises ``ValueError`` for an unknown name, and ``ResultFault`` for an invalid row.
    """
    from ...lang.evaluate.seed.explanation import explain as tell
    from ..seeds.seed_results import read_extractions, read_reduced

    rows = [found.row for found in read_extractions(extractions) if not found.failed]
    return tell(seed, rows, context or {}, name, reduced=read_reduced(extractions))


def sensitivity(
    seed: "SeedTree", extractions: Any, context: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None
) -> "Sensitivity":
    """Return each extraction whose removal or change would by itself change an output. ``extractions`` is as for ``compute``.

    ``outputs`` are the names of the values to analyse. None means every output of the seed that failed, or that is a text or a
    boolean. Raises
    ``ResultFault`` for an invalid row, and ``ValueError`` for an unknown name.
    """
    from ..seeds.compute import ResultComputer
    from ..seeds.seed_results import read_extractions, read_reduced

    found = read_extractions(extractions)
    return ResultComputer.of(seed).sensitivity(found, context or {}, outputs, read_reduced(extractions))


def convert(seed: "SeedTree") -> "Converted":
    """Convert a seed to the declarative form. Never raises: formulas that this form can't express are kept, and listed in the result."""
    from ...lang.documents.seed import convert as rewrite

    return rewrite(seed)
