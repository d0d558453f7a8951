"""What the service is asked with and what it answers: values, all positions in code points of the text as given."""

from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

from attrs import field, frozen

from ..gasl import StateType
from ..lwt import MISSING
from ..operations import BUILTIN, Signature
from ..schema import Schema
from ..source import Span

__all__ = [
    "LANGUAGES", "Completion", "CompletionKind", "Fold", "Hover", "Known", "Language", "Place", "StateKey", "Symbol",
    "SymbolKind", "Token", "TokenType", "Variable",
]  # fmt: skip

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
