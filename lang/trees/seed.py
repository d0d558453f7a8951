"""The tree of a Formula Seed: reviews to keep, fields to extract, steps to compute. Both JSON forms (000 and 002) use it.

Declarative operations become expressions: a ``where`` becomes a list of boolean expressions over one extraction, the
condition of a ``case`` rule becomes one boolean expression. Spans refer to the JSON document.
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
    """The selection of reviews: a review is kept if it contains one of the keywords. Without keywords all reviews are kept."""

    keywords: tuple[str, ...] = ()
    match: KeepMatch = "substring"


@frozen
class Extracted(Node):
    """A field that a model extracts from each review. ``values`` maps each value of an enum to its meaning ("" if not given)."""

    name: str
    type: FieldType
    values: Mapping[str, str] = field(factory=dict)
    doc: str = ""


@frozen
class ReviewHandling(Node):
    """The treatment of a review longer than ``max_length`` characters: its beginning or its end is kept, or it is split.

    ``shared`` is the number of characters that a part shares with the next part.
    """

    max_length: int = 2000
    strategy: Strategy = "truncate_head"
    shared: int = 0


IN_PARTS = ReviewHandling(8000, "split", 200)
"""The default treatment of long reviews: the whole review is read, in parts."""


@frozen
class FilterUse(Node):
    """``"$F": true`` or ``"$F": false`` in a ``where``: the filter ``name`` must be true, or must not be true."""

    name: str
    holds: bool = True


Where: TypeAlias = tuple[Expr | FilterUse, ...]
"""Conditions that must all be true for an extraction. A comparison with null is not true."""


@frozen
class DefineFilter(Node):
    """A filter: a condition on an extraction that other steps can use. This step has no value."""

    name: str
    where: Where


@frozen
class Aggregate(Node):
    """A number, or another value, computed over the extractions for which ``where`` is true (None: all extractions).

    ``element`` is evaluated for each extraction, and nulls are skipped; the operation ``count`` has no element. ``default`` is the
    result of max and min if there are no values.
    """

    name: str
    operation: Literal["count", "sum", "max", "min"]
    element: Expr | None = None
    where: Where | None = None
    default: Any = None


@frozen
class Lookup(Node):
    """The table's value under a key that the source matches, else ``default``. The source is a string or a list of strings."""

    name: str
    source: FieldName | Name
    table: tuple[tuple[str, Any], ...]
    match: Match = "exact"
    default: Any = None


@frozen
class CaseRule(Node):
    """``then`` is the value if ``test`` is true. If the case has a source, ``test`` includes the comparison with the source."""

    test: Expr
    then: Any


@frozen
class Case(Node):
    """The value of the first rule whose test is true, or else ``otherwise``."""

    name: str
    rules: tuple[CaseRule, ...]
    otherwise: Any = None


@frozen
class Formula(Node):
    """An expression over earlier values, the context and ``extractions``: any step of the formula form, or an ``expr`` step."""

    name: str
    expr: Expr
    text: str = field(default="", eq=False)
    """The expression as written."""


@frozen
class Const(Node):
    """A step with a literal JSON value."""

    name: str
    value: Any


SeedStep: TypeAlias = DefineFilter | Aggregate | Lookup | Case | Formula | Const


@frozen(slots=False)
class FormulaSeed:
    """A seed that can be checked and run. Load it with ``knotwork.seed.load``.

    ``prompt`` is the ``extraction_prompt`` of the formula form (None: the prompt is built from the fields). ``outputs`` are the names
    to return, in order. ``document`` is the parsed JSON; ``diagnostics`` are the faults found in parsing.
    """

    task_name: str = ""
    keep: Keep = Keep()
    fields: tuple[Extracted, ...] = ()
    prompt: str | None = None
    review_handling: ReviewHandling = IN_PARTS
    passes: Literal[1, 2] = 1
    allow_invalid: float = 0.0
    """Maximum share of a context's kept reviews that may lack a value for a field; above this share the context is incomplete."""
    steps: tuple[SeedStep, ...] = ()
    outputs: tuple[str, ...] = ()
    form: Form = "002"
    source: Source = attrs.field(default=Source(""), eq=False, repr=False)
    document: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    diagnostics: tuple[Diagnostic, ...] = attrs.field(default=(), eq=False, repr=False)
    tree: Any = attrs.field(default=None, eq=False, repr=False)
    """The document as a tree with the places of its parts, from ``lang.documents``; None for a seed that a program built."""

    @cached_property
    def field_by_name(self) -> Mapping[str, Extracted]:
        """The extracted fields by name."""
        return {found.name: found for found in self.fields}

    @cached_property
    def step_by_name(self) -> Mapping[str, SeedStep]:
        """The steps by name."""
        return {step.name: step for step in self.steps}
