"""A Formula Seed as it was read: what to keep, what to extract, what to compute. Both JSON forms are this. Seeds 000 and 002.

Declarative operations are lowered to expressions: a ``where`` is a list of boolean expressions over one extraction, a
``case`` rule is a boolean expression. Spans point into the JSON document.
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

__all__ = [
    "IN_PARTS",
    "Aggregate",
    "Case",
    "CaseRule",
    "Const",
    "DefineFilter",
    "Extracted",
    "FieldType",
    "FilterUse",
    "Form",
    "Formula",
    "FormulaSeed",
    "Keep",
    "KeepMatch",
    "Lookup",
    "Match",
    "ReviewHandling",
    "SeedStep",
    "Strategy",
    "Where",
]  # fmt: skip

Form = Literal["000", "002"]
FieldType = Literal["enum", "int", "float", "bool", "text", "list"]
Strategy = Literal["truncate_head", "truncate_tail", "split"]
KeepMatch = Literal["substring", "word", "regex"]
"""How keywords are found in a review."""
Match = Literal["exact", "substring_first", "substring_max", "word_first", "word_max"]
"""How a lookup compares."""


@frozen
class Keep(Node):
    """Which reviews are kept: those with one of the keywords. Without keywords, all."""

    keywords: tuple[str, ...] = ()
    match: KeepMatch = "substring"


@frozen
class Extracted(Node):
    """A field that a model extracts from each review. ``values`` are an enum's, each with its meaning ("" where none is given)."""

    name: str
    type: FieldType
    values: Mapping[str, str] = field(factory=dict)
    doc: str = ""


@frozen
class ReviewHandling(Node):
    """What becomes of a review that is longer than ``max_length`` characters: its beginning or its end is kept, or it is split.

    ``shared``: characters of a part that the next one begins with.
    """

    max_length: int = 2000
    strategy: Strategy = "truncate_head"
    shared: int = 0


IN_PARTS = ReviewHandling(8000, "split", 200)
"""What becomes of long reviews where a seed says nothing: all of them is read."""


@frozen
class FilterUse(Node):
    """``"$F": true`` or ``"$F": false`` in a ``where``: the filter ``name`` holds, or does not."""

    name: str
    holds: bool = True


Where: TypeAlias = tuple[Expr | FilterUse, ...]
"""All of these must hold for an extraction; a comparison with null does not hold."""


@frozen
class DefineFilter(Node):
    """A condition on an extraction, for other steps to use. It has no value."""

    name: str
    where: Where


@frozen
class Aggregate(Node):
    """A number, or another value, over the extractions for which ``where`` holds (None: all).

    ``element`` is evaluated for each; a null is skipped. ``count`` has no element. ``default``: of nothing, for max and min.
    """

    name: str
    operation: Literal["count", "sum", "max", "min"]
    element: Expr | None = None
    where: Where | None = None
    default: Any = None


@frozen
class Lookup(Node):
    """What stands in a table under a key that the source (a string, or each string of a list) matches; else ``default``."""

    name: str
    source: FieldName | Name
    table: tuple[tuple[str, Any], ...]
    match: Match = "exact"
    default: Any = None


@frozen
class CaseRule(Node):
    """``then`` is the value where ``test`` is true. With a source, the test compares it already."""

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
    """An expression over what was computed before, the context, and ``extractions``. A step of the formula form, or ``expr``."""

    name: str
    expr: Expr
    text: str = field(default="", eq=False)
    """The expression as it is written."""


@frozen
class Const(Node):
    """A literal JSON value."""

    name: str
    value: Any


SeedStep: TypeAlias = DefineFilter | Aggregate | Lookup | Case | Formula | Const


@frozen(slots=False)
class FormulaSeed:
    """A seed that can be checked and run. Read it with ``knotwork.seed.load``.

    ``prompt`` is the formula form's ``extraction_prompt`` (None: built from the fields). ``outputs`` are the names to return, in order.
    ``document`` is the JSON as it was read; ``diagnostics`` are what reading it found.
    """

    task_name: str = ""
    keep: Keep = Keep()
    fields: tuple[Extracted, ...] = ()
    prompt: str | None = None
    review_handling: ReviewHandling = IN_PARTS
    passes: Literal[1, 2] = 1
    allow_invalid: float = 0.0
    """The share of a context's kept reviews that may have no value for a field, and the context is complete all the same."""
    steps: tuple[SeedStep, ...] = ()
    outputs: tuple[str, ...] = ()
    form: Form = "002"
    source: Source = attrs.field(default=Source(""), eq=False, repr=False)
    document: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    diagnostics: tuple[Diagnostic, ...] = attrs.field(default=(), eq=False, repr=False)
    tree: Any = attrs.field(default=None, eq=False, repr=False)
    """The document with the places of its parts, as ``lang.documents`` reads it; None for a seed that a program made."""

    @cached_property
    def field_by_name(self) -> Mapping[str, Extracted]:
        """The extracted fields by name."""
        return {found.name: found for found in self.fields}

    @cached_property
    def step_by_name(self) -> Mapping[str, SeedStep]:
        """The steps by name."""
        return {step.name: step for step in self.steps}
