"""A text that was read: its tree, names, tokens and faults, each worked out once, for whoever asks several things of one text."""

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

__all__ = ["Reading", "Text", "diagnosed", "read", "seed_schemas"]


_T = TypeVar("_T")


@frozen(slots=False, eq=False)
class Reading:
    """A text in a language, and all that reading it gives. Whatever is asked for first is worked out then, and kept with it."""

    language: Language
    source: Source
    _notes: dict[Hashable, Any] = field(factory=dict, init=False, repr=False)

    @property
    def text(self) -> str:
        """What was read."""
        return self.source.text

    @cached_property
    def script(self) -> Script:
        """The text as a script, read strictly."""
        return parse_lwt(self.source)

    @cached_property
    def program(self) -> Program:
        """The text as a GASL program."""
        return parse_gasl(self.source)

    @cached_property
    def expression(self) -> ExprRead:
        """The text as an expression."""
        return parse_expr(self.text)

    def parsed(self, expression: str) -> ExprRead:
        """Return an expression that stands in the text, read once however often it stands there."""
        return self.once(("expression", expression), lambda _: parse_expr(expression))

    @cached_property
    def seed(self) -> "SeedRead":
        """The text as a seed."""
        from ..documents.seed import seed_in

        return seed_in(self.document)

    @cached_property
    def document(self) -> "JsonRead":
        """The text as a JSON document."""
        from ..documents.json_text import read_json

        return read_json(self.source)

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        """What reading alone found wrong; nothing beside the text counts for it."""
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
        """Where the steps or commands stand."""
        match self.language:
            case "lwt":
                return tuple(step.span for step in self.script.steps)
            case "gasl":
                return tuple(statement.span for statement in self.program.statements)
        return ()

    def once(self, what: Hashable, find: "Callable[[Reading], _T]") -> _T:
        """Return what ``find`` makes of the text, which the rooms here that ask more than once have worked out once."""
        if what not in self._notes:
            self._notes[what] = find(self)
        found: _T = self._notes[what]
        return found


Text: TypeAlias = Reading | Source | str
"""A text as the service takes it: one that was read need not be read again."""


def read(language: Language, text: Text) -> Reading:
    """Return the reading of a text. Raises ``ValueError`` for one that was read as another language."""
    if isinstance(text, Reading):
        if text.language != language:
            raise ValueError(f"the text was read as {text.language}, not as {language}")
        return text
    return Reading(language, Source(text) if isinstance(text, str) else text)


@cache
def seed_schemas() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the JSON Schemas of seeds: of the declarative form and of the formula form. They are made from models, slowly."""
    from ..documents import seed as seeds

    return seeds.SEED_SCHEMA, seeds.SEED_SCHEMA_000


# The checker of each language, given what is known beside the text.

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
            found = reading.seed
            seed = found.seed or found.draft
            contexts = [known.input] if isinstance(known.input, Mapping) else None
            return found.diagnostics if seed is None else tuple(check_seed(seed, contexts=contexts))
