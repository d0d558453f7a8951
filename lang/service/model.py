"""What the service is asked with and what it answers: values, all positions in code points of the text as given."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from attrs import field, frozen

from ..catalogue.operations import BUILTIN, Signature
from ..catalogue.schema import Attribute, Schema
from ..diagnostic import printable
from ..printer.gasl_printer import format_text
from ..source import Span
from ..trees.gasl import StateType
from ..trees.lwt import MISSING

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
    """A text that may stand at the cursor: ``span`` is what it replaces, ``text`` by what, exactly as the language writes it.

    ``detail`` is a few words beside it, ``documentation`` markdown. ``rank`` orders: 0 is best, no two have the same. ``match``
    is what typing goes on filtering by (the text without quotes and backticks).
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
    """What there is to say of the text under ``span``, in markdown. What comes from data is escaped for markdown."""

    text: str
    span: Span


@frozen
class Symbol:
    """Something that a text defines: ``span`` is all of it, ``name_span`` its name."""

    name: str
    kind: SymbolKind
    span: Span
    name_span: Span
    detail: str = ""
    children: "tuple[Symbol, ...]" = ()


@frozen
class Place:
    """Where something is defined or named in the text."""

    span: Span
    defines: bool = False


class Token(NamedTuple):
    """A piece of the text and what it is. Tokens come in order, do not overlap, and never go over a line's end.

    A file has ten thousand of them, so they are tuples.
    """

    start: int
    end: int
    type: TokenType

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.start, self.end)


@frozen
class Fold:
    """Lines (from 1, both inclusive) that can be folded into the first."""

    first_line: int
    last_line: int
    kind: Literal["region", "comment"] = "region"


@frozen
class StateKey:
    """A declared key of the state."""

    type: StateType
    description: str = ""


@frozen
class Variable:
    """A variable that is bound before the text runs: what it holds in a few words ("12 nodes"), and its fields.

    ``many``: it is a list, and the fields are those of its items.
    """

    holds: str = ""
    fields: tuple[str, ...] = ()
    many: bool = False


@frozen
class Known:
    """What is known beside the text. Everything may be missing; then it is neither offered nor checked.

    ``variables`` are GASL's variables, an expression's names or, in LWT, values of earlier steps (a REPL's), by name. ``input`` is
    the run's input. ``models`` are the names that the host offers, ``measures`` the engine's algorithms (None: nothing is known of
    them), ``ceiling`` the most that a cap may be; ``operations`` are the built-in ones and the plugins'.
    """

    schema: Schema | None = None
    state: Mapping[str, StateKey] | None = None
    variables: Mapping[str, Variable] = field(factory=dict)
    input: Any = MISSING
    models: Collection[str] | None = None
    measures: Collection[str] | None = None
    ceiling: Mapping[str, float] | None = None
    operations: Mapping[str, Signature] = field(default=BUILTIN)


# Texts of data as markdown: nothing in a name, a value or a prompt can become markup, or a picture of it grow without end.

_LONGEST = 60
_OFFERED = 10
_MARKUP = frozenset("\\`*_{}[]()<>#+-!|~&$")


def excerpt(text: str, most: int = _LONGEST) -> str:
    """Return ``text`` on one line, cut, with nothing in it that a terminal would obey."""
    flat = " ".join(text[: most * 4].split())
    return printable(flat if len(flat) <= most and len(text) <= most * 4 else flat[: most - 1] + "…")


def plain(text: str, most: int = 400) -> str:
    """Return ``text`` as words of markdown: what would be markup is escaped."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in excerpt(text, most))


def code(text: str, most: int = _LONGEST) -> str:
    """Return ``text`` as code inside a line."""
    shown = excerpt(text, most)
    fence = "`"
    while fence in shown:
        fence += "`"
    pad = " " if shown[:1] == "`" or shown[-1:] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else ""


def block(text: str, language: str, most: int = 2_000) -> str:
    """Return ``text`` as a block of code, cut."""
    shown = "\n".join(printable(line) for line in (text if len(text) <= most else text[: most - 1] + "…").split("\n"))
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}{language}\n{shown}\n{fence}"


def listed(texts: Iterable[str], total: int | None = None) -> str:
    """Return texts, which are markdown, in a row, at most ten, and how many more there are."""
    known = list(texts)
    shown = known[:_OFFERED]
    more = (len(known) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def value_text(value: Any) -> str:
    """Return a scalar as GASL writes it."""
    if isinstance(value, str):
        return format_text(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return repr(value)


def of_attribute(attribute: Attribute) -> str:
    """Say what is known of an attribute: its types, on how many it is, its frequent values."""
    types = ", ".join(
        f"{kind} ({count:,})" if len(attribute.types) > 1 else kind for kind, count in attribute.types.items()
    )
    lines = [f"{types or 'of unknown type'}, on {attribute.count:,}"]
    if attribute.values:
        shown = [f"{code(value_text(value))} ({count:,})" for value, count in attribute.values[:_OFFERED]]
        lines.append("Frequent values: " + listed(shown, attribute.distinct or len(attribute.values)))
    return "\n\n".join(lines)
