"""Data types of the language service, and ``Reading``: a parsed text whose results are computed once for several queries.

All positions count the code points of the given text.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from attrs import field, frozen

from ..catalogue.operations import BUILTIN, Signature
from ..catalogue.schema import Attribute, Schema
from ..diagnostic import Diagnostic, printable
from ..linter.expr import check_expr
from ..linter.gasl import check as check_gasl
from ..linter.lwt import check as check_lwt
from ..linter.seed import check as check_seed
from ..parse.expr import ExprRead, parse_expr
from ..parse.gasl import parse_gasl
from ..parse.lwt import parse_lwt
from ..printer.gasl_printer import format_text
from ..source import Source, Span
from ..trees.gasl import Program, StateType
from ..trees.lwt import MISSING, Script

if TYPE_CHECKING:
    from ..documents.json_tree import JsonRead
    from ..documents.seed import SeedRead

Language = Literal["lwt", "gasl", "expr", "seed"]

LANGUAGES: tuple[Language, ...] = ("lwt", "gasl", "expr", "seed")

CompletionKind = Literal[
    "keyword", "command", "operation", "function", "method", "option", "value", "variable", "step", "key", "field",
    "measure", "model", "setting", "property", "name", "punctuation",
]  # fmt: skip

TokenType = Literal[
    "keyword", "command", "variable", "step", "function", "string", "number", "operator", "comment", "property", "type"
]

SymbolKind = Literal["step", "variable", "key", "command", "block", "field", "computation", "condition", "output"]


@frozen
class Completion:
    """A completion that is allowed at the cursor. The completion replaces ``span`` with ``text``, which is in the syntax of the language.

    ``detail`` is a short description, and ``documentation`` is Markdown. ``rank`` is unique; the best completion has rank 0. While the
    user types, editors filter by ``match``, which is the text without quotes and backticks.
    """

    text: str
    kind: CompletionKind
    span: Span
    detail: str = ""
    documentation: str = ""
    rank: int = 0
    match: str = ""


@frozen
class Hover:
    """The description of the text at ``span``, in Markdown. Text from data is escaped."""

    text: str
    span: Span


@frozen
class Symbol:
    """A definition in a text. ``span`` is the span of the complete definition, and ``name_span`` is the span of its name."""

    name: str
    kind: SymbolKind
    span: Span
    name_span: Span
    detail: str = ""
    children: "tuple[Symbol, ...]" = ()


@frozen
class Place:
    """A place in the text that contains a name. ``defines`` is true if the place defines the name."""

    span: Span
    defines: bool = False


class Token(NamedTuple):
    """A part of the text with its type. Tokens are in order, do not overlap, and never extend over several lines.

    A file has thousands of tokens, so they are tuples.
    """

    start: int
    end: int
    type: TokenType

    @property
    def span(self) -> Span:
        """The span of the token."""
        return Span(self.start, self.end)


@frozen
class Fold:
    """Lines that can be folded into the first of these lines. Lines count from 1. The first and the last line are included."""

    first_line: int
    last_line: int
    kind: Literal["region", "comment"] = "region"


@frozen
class StateKey:
    """A key that the state declares."""

    type: StateType
    description: str = ""


@frozen
class Variable:
    """A variable that is bound before the text runs. ``holds`` is a short description of its value, such as "12 nodes".

    ``fields`` are the fields of the value. If ``many`` is true, the value is a list, and ``fields`` are the fields of its items.
    """

    holds: str = ""
    fields: tuple[str, ...] = ()
    many: bool = False


@frozen
class Known:
    """Data from outside the text. Missing data is neither offered in completions nor checked.

    ``variables`` maps names to variables. In GASL, they are the variables that are already bound. In expressions, they are the
    available names. In LWT, they are the values of earlier steps of a REPL session. ``input`` is the input of the run.
    ``files`` are the names of the files that a script may name: those in its folder and below it.
    ``models`` are the names of the host's models, and ``measures`` are the algorithms of the graph engine; each is None if
    unknown. ``ceiling`` maps caps to maximum values. ``operations`` contains the operations of the language and of plugins.
    """

    schema: Schema | None = None
    state: Mapping[str, StateKey] | None = None
    variables: Mapping[str, Variable] = field(factory=dict)
    input: Any = MISSING
    models: Collection[str] | None = None
    measures: Collection[str] | None = None
    ceiling: Mapping[str, float] | None = None
    operations: Mapping[str, Signature] = field(default=BUILTIN)
    files: Collection[str] = ()


# Converts data to Markdown: names, values and prompts are escaped and truncated.

_LONGEST = 60
_OFFERED = 10
_MARKUP = frozenset("\\`*_{}[]()<>#+-!|~&$")


def excerpt(text: str, most: int = _LONGEST) -> str:
    """Return ``text`` on one line, truncated to ``most`` characters, with control characters escaped."""
    flat = " ".join(text[: most * 4].split())
    return printable(flat if len(flat) <= most and len(text) <= most * 4 else flat[: most - 1] + "…")


def plain(text: str, most: int = 400) -> str:
    """Return ``text`` as Markdown on one line: truncated, with markup escaped."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in excerpt(text, most))


def code(text: str, most: int = _LONGEST) -> str:
    """Return ``text`` as inline code in Markdown, truncated."""
    shown = excerpt(text, most)
    fence = "`"
    while fence in shown:
        fence += "`"
    pad = " " if shown[:1] == "`" or shown[-1:] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else ""


def block(text: str, language: str, most: int = 2_000) -> str:
    """Return ``text`` as a code block in Markdown, truncated."""
    shown = "\n".join(printable(line) for line in (text if len(text) <= most else text[: most - 1] + "…").split("\n"))
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}{language}\n{shown}\n{fence}"


def joined(texts: Iterable[str], total: int | None = None) -> str:
    """Join the first ten Markdown strings with commas, and add the number of further strings.

    ``total`` is the number of all strings; the default is the number of ``texts``.
    """
    known = list(texts)
    shown = known[:_OFFERED]
    more = (len(known) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def value_text(value: Any) -> str:
    """Return a scalar as it is written in GASL."""
    if isinstance(value, str):
        return format_text(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return repr(value)


def of_attribute(attribute: Attribute) -> str:
    """Return a description of an attribute.

    The description names the types of the attribute, the number of items that have it, and its frequent values.
    """
    types = ", ".join(
        f"{kind} ({count:,})" if len(attribute.types) > 1 else kind for kind, count in attribute.types.items()
    )
    lines = [f"{types or 'of unknown type'}, on {attribute.count:,}"]
    if attribute.values:
        shown = [f"{code(value_text(value))} ({count:,})" for value, count in attribute.values[:_OFFERED]]
        lines.append("Frequent values: " + joined(shown, attribute.distinct or len(attribute.values)))
    return "\n\n".join(lines)


_T = TypeVar("_T")


@frozen(slots=False, eq=False)
class Reading:
    """A text in a language, with its parse results. Each result is computed on first use and cached."""

    language: Language
    source: Source
    _notes: dict[Hashable, Any] = field(factory=dict, init=False, repr=False)

    @property
    def text(self) -> str:
        """The text."""
        return self.source.text

    @cached_property
    def script(self) -> Script:
        """The text as a script, parsed strictly."""
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
        """Parse an expression that occurs in the text. Equal expressions are parsed only once."""
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
        """The faults that the parser found. These faults depend only on the text."""
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
        """The spans of the steps or commands; empty for expressions and seeds."""
        match self.language:
            case "lwt":
                return tuple(step.span for step in self.script.steps)
            case "gasl":
                return tuple(statement.span for statement in self.program.statements)
        return ()

    def once(self, what: Hashable, find: "Callable[[Reading], _T]") -> _T:
        """Return the result of ``find`` for this reading. It is computed only once and then cached under the key ``what``."""
        if what not in self._notes:
            self._notes[what] = find(self)
        found: _T = self._notes[what]
        return found


Text: TypeAlias = Reading | Source | str
"""The types of texts that the service accepts. A ``Reading`` is not parsed again."""


def read(language: Language, text: Text) -> Reading:
    """Return ``text`` as a ``Reading``. Raises ``ValueError`` if ``text`` is a ``Reading`` in another language."""
    if isinstance(text, Reading):
        if text.language != language:
            raise ValueError(f"the text was read as {text.language}, not as {language}")
        return text
    return Reading(language, Source(text) if isinstance(text, str) else text)


@cache
def seed_schemas() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return two JSON Schemas of seeds, for the declarative form and for the formula form.

    The schemas are cached, because pydantic creates them slowly.
    """
    from ..documents import seed as seeds

    return seeds.SEED_SCHEMA, seeds.SEED_SCHEMA_000


# Runs the checker of each language with data from outside the text.

_Found = list[tuple[Known, tuple[Diagnostic, ...]]]


def diagnostics_of(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    """See ``service.diagnose``. The result for the same ``known`` object is cached."""
    kept: _Found = reading.once("diagnostics", lambda _: [])
    for given, found in tuple(kept):
        if given is known:
            return found
    made = _diagnose(reading, known)
    kept[:] = [(known, made)]
    return made


def _diagnose(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
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
