"""A parsed Formula Seed: reviews to keep, fields to extract, steps to compute. Used for both JSON forms. Seeds 000 and 002.

Declarative operations become expressions: a ``where`` is a list of boolean expressions over one extraction, a
``case`` rule is a boolean expression. Spans refer to the JSON document.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import attrs
from attrs import field, frozen

from ..diagnostic import Diagnostic
from ..source import Source
from . import Node
from .expr import Expr, Name
from .expr import Field as FieldName

Form = Literal["000", "002"]
FieldType = Literal["enum", "int", "float", "bool", "text", "list"]
Strategy = Literal["truncate_head", "truncate_tail", "split"]
KeepMatch = Literal["substring", "word", "regex"]
"""How keywords are matched in a review."""
Match = Literal["exact", "substring_first", "substring_max", "word_first", "word_max"]
"""How a lookup matches keys."""


@frozen
class Keep(Node):
    """Selection of reviews: those with one of the keywords; without keywords, all."""

    keywords: tuple[str, ...] = ()
    match: KeepMatch = "substring"


@frozen
class Extracted(Node):
    """A field that a model extracts from each review. ``values`` are an enum's values with their meanings ("" if none)."""

    name: str
    type: FieldType
    values: Mapping[str, str] = field(factory=dict)
    doc: str = ""


@frozen
class ReviewHandling(Node):
    """Treatment of a review longer than ``max_length`` characters: its beginning or end is kept, or it is split.

    ``shared``: number of characters that a part shares with the next one.
    """

    max_length: int = 2000
    strategy: Strategy = "truncate_head"
    shared: int = 0


IN_PARTS = ReviewHandling(8000, "split", 200)
"""Default treatment of long reviews: the whole review is read, in parts."""


@frozen
class FilterUse(Node):
    """``"$F": true`` or ``"$F": false`` in a ``where``: the filter ``name`` must be true, or not."""

    name: str
    holds: bool = True


Where: TypeAlias = tuple[Expr | FilterUse, ...]
"""All of these must be true for an extraction; a comparison with null is not true."""


@frozen
class DefineFilter(Node):
    """A condition on an extraction, for use in other steps. It has no value."""

    name: str
    where: Where


@frozen
class Aggregate(Node):
    """A number, or another value, over the extractions for which ``where`` is true (None: all).

    ``element`` is evaluated for each; nulls are skipped. ``count`` has no element. ``default``: the result over none, for max and
    min.
    """

    name: str
    operation: Literal["count", "sum", "max", "min"]
    element: Expr | None = None
    where: Where | None = None
    default: Any = None


@frozen
class Lookup(Node):
    """The value in a table for a key that the source (a string, or each string of a list) matches; else ``default``."""

    name: str
    source: FieldName | Name
    table: tuple[tuple[str, Any], ...]
    match: Match = "exact"
    default: Any = None


@frozen
class CaseRule(Node):
    """``then`` is the value if ``test`` is true. If the case has a source, the test already compares it."""

    test: Expr
    then: Any


@frozen
class Case(Node):
    """The value of the first rule whose test is true; else ``otherwise``."""

    name: str
    rules: tuple[CaseRule, ...]
    otherwise: Any = None


@frozen
class Formula(Node):
    """An expression over earlier values, the context, and ``extractions``: a step of the formula form, or ``expr``."""

    name: str
    expr: Expr
    text: str = field(default="", eq=False)
    """The expression as written."""


@frozen
class Const(Node):
    """A literal JSON value."""

    name: str
    value: Any


SeedStep: TypeAlias = DefineFilter | Aggregate | Lookup | Case | Formula | Const


@frozen(slots=False)
class FormulaSeed:
    """A seed that can be checked and run. Load it with ``knotwork.seed.load``.

    ``prompt`` is the formula form's ``extraction_prompt`` (None: built from the fields). ``outputs`` are the names to return, in
    order. ``document`` is the parsed JSON; ``diagnostics`` are the findings of parsing.
    """

    task_name: str = ""
    keep: Keep = Keep()
    fields: tuple[Extracted, ...] = ()
    prompt: str | None = None
    review_handling: ReviewHandling = IN_PARTS
    passes: Literal[1, 2] = 1
    allow_invalid: float = 0.0
    """Maximum share of a context's kept reviews without a value for a field, up to which the context is complete."""
    steps: tuple[SeedStep, ...] = ()
    outputs: tuple[str, ...] = ()
    form: Form = "002"
    source: Source = attrs.field(default=Source(""), eq=False, repr=False)
    document: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    diagnostics: tuple[Diagnostic, ...] = attrs.field(default=(), eq=False, repr=False)
    tree: Any = attrs.field(default=None, eq=False, repr=False)
    """The document with the places of its parts, from ``lang.documents``; None for a seed made by a program."""

    @cached_property
    def field_by_name(self) -> Mapping[str, Extracted]:
        """The extracted fields by name."""
        return {found.name: found for found in self.fields}

    @cached_property
    def step_by_name(self) -> Mapping[str, SeedStep]:
        """The steps by name."""
        return {step.name: step for step in self.steps}
