"""The checker of each language, given what is known beside the text."""

from collections.abc import Mapping

from ..diagnostic import Diagnostic
from ..linter.expr import check_expr
from ..linter.gasl import check as check_gasl
from ..linter.lwt import check as check_lwt
from ..linter.seed import check as check_seed
from . import reading
from .model import Known, Language

__all__ = ["diagnosed"]


def diagnosed(language: Language, text: str, known: Known) -> tuple[Diagnostic, ...]:
    """See ``service.diagnose``."""
    match language:
        case "gasl":
            state = None if known.state is None else {key: each.type for key, each in known.state.items()}
            return tuple(
                check_gasl(
                    reading.program(text), schema=known.schema, state=state, ceiling=known.ceiling,
                    measures=known.measures, variables=known.variables, models=known.models,
                )
            )  # fmt: skip
        case "lwt":
            return tuple(
                check_lwt(reading.script(text), input=known.input, operations=known.operations, models=known.models)
            )
        case "expr":
            read = reading.expression(text)
            if read.expr is None:
                return read.diagnostics
            names = tuple(known.variables) or None
            return (*read.diagnostics, *check_expr(read.expr, names=names))
        case "seed":
            found = reading.seed(text)
            seed = found.seed or found.draft
            contexts = [known.input] if isinstance(known.input, Mapping) else None
            return found.diagnostics if seed is None else tuple(check_seed(seed, contexts=contexts))
