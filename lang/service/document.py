"""A parsed text: its tree, names, tokens and faults, each computed once, for several queries of one text."""

from collections.abc import Callable, Hashable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from attrs import field, frozen

from ..diagnostic import Diagnostic
from ..linter.expr import check_expr
from ..linter.gasl import check as check_gasl
from ..linter.lwt import check as check_lwt
from ..linter.seed import check as check_seed
from ..parse.expr import ExprRead, parse_expr
from ..parse.gasl import parse_gasl
from ..parse.lwt import parse_lwt
from ..source import Source, Span
from ..trees.gasl import Program
from ..trees.lwt import Script
from .model import Known, Language

if TYPE_CHECKING:
    from ..documents.json_tree import JsonRead
    from ..documents.seed import SeedRead

_T = TypeVar("_T")


@frozen(slots=False, eq=False)
class Reading:
    """A text in a language, and the results of parsing it. Each is computed on first use and cached."""

    language: Language
    source: Source
    _notes: dict[Hashable, Any] = field(factory=dict, init=False, repr=False)

    @property
    def text(self) -> str:
        """Return the text."""
        return self.source.text

    @cached_property
    def script(self) -> Script:
        """Return the text as a script, parsed strictly."""
        return parse_lwt(self.source)

    @cached_property
    def program(self) -> Program:
        """Return the text as a GASL program."""
        return parse_gasl(self.source)

    @cached_property
    def expression(self) -> ExprRead:
        """Return the text as an expression."""
        return parse_expr(self.text)

    def parsed(self, expression: str) -> ExprRead:
        """Return an expression in the text, parsed once however often it occurs."""
        return self.once(("expression", expression), lambda _: parse_expr(expression))

    @cached_property
    def seed(self) -> "SeedRead":
        """Return the text as a seed."""
        from ..documents.seed import seed_in

        return seed_in(self.document)

    @cached_property
    def document(self) -> "JsonRead":
        """Return the text as a JSON document."""
        from ..documents.json_text import read_json

        return read_json(self.source)

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        """Return the parser's faults, which depend only on the text."""
        match self.language:
            case "lwt":
                return self.script.diagnostics
            case "gasl":
                return self.program.diagnostics
            case "seed":
                return self.seed.diagnostics
            case "expr":
                return self.expression.diagnostics

    @property
    def items(self) -> tuple[Span, ...]:
        """Return the spans of the steps or commands."""
        match self.language:
            case "lwt":
                return tuple(step.span for step in self.script.steps)
            case "gasl":
                return tuple(statement.span for statement in self.program.statements)
        return ()

    def once(self, what: Hashable, find: "Callable[[Reading], _T]") -> _T:
        """Return the result of ``find`` for the text, computed once per key ``what``."""
        if what not in self._notes:
            self._notes[what] = find(self)
        found: _T = self._notes[what]
        return found


Text: TypeAlias = Reading | Source | str
"""A text as the service takes it: a ``Reading`` is not parsed again."""


def read(language: Language, text: Text) -> Reading:
    """Return the reading of a text. Raises ``ValueError`` for a reading in another language."""
    if isinstance(text, Reading):
        if text.language != language:
            raise ValueError(f"the text was read as {text.language}, not as {language}")
        return text
    return Reading(language, Source(text) if isinstance(text, str) else text)


@cache
def seed_schemas() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the JSON Schemas of seeds: declarative form and formula form. They are made from pydantic models, which is slow."""
    from ..documents import seed as seeds

    return seeds.SEED_SCHEMA, seeds.SEED_SCHEMA_000


# The checker of each language, given data from outside the text.

_Found = list[tuple[Known, tuple[Diagnostic, ...]]]


def diagnosed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    """See ``service.diagnose``. The result for the same ``known`` object is cached."""
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
            found = reading.seed
            seed = found.seed or found.draft
            contexts = [known.input] if isinstance(known.input, Mapping) else None
            return found.diagnostics if seed is None else tuple(check_seed(seed, contexts=contexts))
