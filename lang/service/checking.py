"""The checker of each language, given what is known beside the text."""

from collections.abc import Mapping

from ..diagnostic import Diagnostic
from ..linter.expr import check_expr
from ..linter.gasl import check as check_gasl
from ..linter.lwt import check as check_lwt
from ..linter.seed import check as check_seed
from .model import Known
from .reading import Reading

__all__ = ["diagnosed"]

_Found = list[tuple[Known, tuple[Diagnostic, ...]]]


def diagnosed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    """See ``service.diagnose``. With the same known as before, it is what was said then."""
    kept: _Found = reading.once("diagnostics", lambda _: [])
    for given, found in tuple(kept):
        if given is known:
            return found
    made = _diagnosed(reading, known)
    kept[:] = [(known, made)]
    return made


def _diagnosed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    match reading.language:
        case "gasl":
            state = None if known.state is None else {key: each.type for key, each in known.state.items()}
            return tuple(
                check_gasl(
                    reading.program, schema=known.schema, state=state, ceiling=known.ceiling,
                    measures=known.measures, variables=known.variables, models=known.models,
                )
            )  # fmt: skip
        case "lwt":
            return tuple(
                check_lwt(
                    reading.script, input=known.input, operations=known.operations, models=known.models, given=known.variables
                )
            )  # fmt: skip
        case "expr":
            read = reading.expression
            if read.expr is None:
                return read.diagnostics
            names = tuple(known.variables) or None
            return (*read.diagnostics, *check_expr(read.expr, names=names))
        case "seed":
            if not isinstance(known.input, Mapping):
                return reading.check_seed()
            found = reading.seed
            seed = found.seed or found.draft
            return found.diagnostics if seed is None else tuple(check_seed(seed, contexts=[known.input]))
