"""The tree of a Formula Seed: reviews to keep, fields to extract, steps to compute. Both JSON forms (000 and 002) use this tree.

Declarative operations become expressions. A ``where`` becomes a list of boolean expressions over one extraction. The condition of a
``case`` rule becomes one boolean expression. Spans refer to the JSON document.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import attrs
from attrs import field, frozen

from ..diagnostic import Diagnostic
from ..source import Source
from . import Node, walk
from .expr import Expr, Name
from .expr import Field as FieldName

Form = Literal["000", "002"]
FieldType = Literal["enum", "int", "float", "bool", "text", "list"]
MetaType = Literal["int", "float", "bool", "text", "list"]
"""Type of a declared key of the reviews' metadata."""
Strategy = Literal["truncate_head", "truncate_tail", "split"]
KeepMatch = Literal["substring", "word", "regex"]
"""Match mode of the keywords."""
Match = Literal["exact", "substring_first", "substring_max", "word_first", "word_max"]
"""Match mode of a lookup's keys."""


@frozen
class Keep(Node):
    """The selection of reviews. A review is kept if it contains one of the keywords. Without keywords, all reviews are kept."""

    keywords: tuple[str, ...] = ()
    match: KeepMatch = "substring"


@frozen
class Extracted(Node):
    """A field that a model extracts from each review. ``values`` maps each value of an enum to its meaning ("" if not given).

    If ``ordered`` is true, the values of the enum are listed from the lowest to the highest. An evaluation can then weigh the
    distance between two values.
    """

    name: str
    type: FieldType
    values: Mapping[str, str] = field(factory=dict)
    doc: str = ""
    ordered: bool = False


@frozen
class Example(Node):
    """A text and the extraction that is right for it, which the prompt shows to the model. ``extraction`` maps fields to values."""

    text: str
    extraction: Mapping[str, Any] = field(factory=dict)


@frozen
class Resolve(Node):
    """Maps the different spellings of one thing to one name, the most frequent spelling.

    Resolving takes place between extraction and compute. The spellings are the values of ``field``; their names are stored in
    the new field ``target``. Two spellings whose similarity is above ``same_above`` are equal; if it is below ``ask_above``,
    they are different. The model decides all other pairs if ``method`` is "llm"; if it is "fuzzy", these pairs are different.
    ``scope`` says which spellings are compared with each other: those in the reviews of one context, or of all contexts.
    """

    field: str
    target: str
    method: Literal["llm", "fuzzy"] = "llm"
    scope: Literal["context", "run"] = "context"
    same_above: float = 0.95
    ask_above: float = 0.6


@frozen
class ReviewHandling(Node):
    """The treatment of a review of more than ``max_length`` characters: its beginning or its end is kept, or it is split.

    ``shared`` is the number of characters that a part shares with the next part.
    """

    max_length: int = 2000
    strategy: Strategy = "truncate_head"
    shared: int = 0


IN_PARTS = ReviewHandling(8000, "split", 200)
"""The default treatment of long reviews: the complete review is read in parts."""


@frozen
class FilterUse(Node):
    """The use of a filter in a ``where``.

    For ``"$F": true``, the filter ``name`` must be true; for ``"$F": false``, it must not be true.
    """

    name: str
    holds: bool = True


Where: TypeAlias = tuple[Expr | FilterUse, ...]
"""Conditions that must all be true for an extraction. A comparison with null is not true."""


@frozen
class DefineFilter(Node):
    """A filter: a condition on an extraction that other steps can use. A filter is a step without a value."""

    name: str
    where: Where


@frozen
class Aggregate(Node):
    """A number, or another value, that is computed over extractions.

    If there is a ``where``, only extractions that fulfil it are used. ``element`` is evaluated for each extraction, and nulls
    are skipped. The operation ``count`` has no element. If there are no values, ``default`` is the result of max and min.
    """

    name: str
    operation: Literal["count", "sum", "max", "min"]
    element: Expr | None = None
    where: Where | None = None
    default: Any = None


@frozen
class Lookup(Node):
    """The value in a table under a key that the source matches.

    If no key matches, the value is ``default``. The source is a string or a list of strings.
    """

    name: str
    source: FieldName | Name
    table: tuple[tuple[str, Any], ...]
    match: Match = "exact"
    default: Any = None


@frozen
class CaseRule(Node):
    """One rule of a case. ``then`` is the value if ``test`` is true. If the case has a source, ``test`` includes the comparison with it."""

    test: Expr
    then: Any


@frozen
class Case(Node):
    """A step whose value is the value of the first rule with a true test. If no test is true, the value is ``otherwise``."""

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


@frozen
class Tally(Node):
    """How often each value of ``element`` occurs in the extractions for which ``where`` is true: ``[{"value", "count"}, ...]``.

    The list is ordered by count (largest first), then by value. ``top`` is the maximum length of the list (None: all values).
    Nulls are skipped. If ``element`` is a list, its items are counted.
    """

    name: str
    element: FieldName
    top: int | None = None
    where: Where | None = None


@frozen
class Reduce(Node):
    """A value that a model writes about all matching reviews of a context. This happens between extraction and compute.

    ``sources`` are the parts of each review that the model reads: fields, or None for the text of the review. ``type`` is the
    type of the value; with ``cite``, each item of the value names the reviews that support it.
    """

    name: str
    sources: tuple[FieldName | None, ...]
    prompt: str
    type: Literal["text", "list"] = "text"
    where: Where | None = None
    cite: bool = False


SeedStep: TypeAlias = DefineFilter | Aggregate | Lookup | Case | Formula | Const | Tally | Reduce


@frozen(slots=False)
class FormulaSeed:
    """A seed that can be checked and run. Load it with ``knotwork.seed.load``.

    ``prompt`` is the ``extraction_prompt`` of the formula form. If ``prompt`` is None, the prompt is built from the fields. ``outputs``
    are the names to return, in order. ``document`` is the parsed JSON; ``diagnostics`` are the faults found in parsing.
    """

    task_name: str = ""
    keep: Keep = Keep()
    fields: tuple[Extracted, ...] = ()
    prompt: str | None = None
    meta: Mapping[str, MetaType] = attrs.field(factory=dict)
    """The declared keys of the reviews' metadata, in addition to ``stars``, ``useful`` and ``date``, and their types."""
    examples: tuple[Example, ...] = ()
    """Texts with their extractions, which the prompt shows to the model."""
    resolve: tuple[Resolve, ...] = ()
    review_handling: ReviewHandling = IN_PARTS
    passes: Literal[1, 2] = 1
    allow_invalid: float = 0.0
    """Maximum share of a context's kept reviews that may lack a value for a field; above this share the context is incomplete."""
    steps: tuple[SeedStep, ...] = ()
    """The entries of ``reduce``, then the steps of ``compute``."""
    outputs: tuple[str, ...] = ()
    form: Form = "002"
    source: Source = attrs.field(default=Source(""), eq=False, repr=False)
    document: Mapping[str, Any] = attrs.field(factory=dict, eq=False, repr=False)
    diagnostics: tuple[Diagnostic, ...] = attrs.field(default=(), eq=False, repr=False)
    tree: Any = attrs.field(default=None, eq=False, repr=False)
    """The document as a tree with the places of its parts, from ``lang.documents``; None for a seed that was built in code."""

    @cached_property
    def field_by_name(self) -> Mapping[str, Extracted]:
        """Maps the name of each extracted field to the field."""
        return {found.name: found for found in self.fields}

    @property
    def extracts_only(self) -> bool:
        """Whether the seed computes nothing: it has neither steps nor outputs, and its results are the extractions."""
        return not self.steps and not self.outputs

    @cached_property
    def reduce(self) -> tuple[Reduce, ...]:
        """The steps whose value a model writes. This happens before all other steps are computed."""
        return tuple(step for step in self.steps if isinstance(step, Reduce))

    @cached_property
    def row_fields(self) -> Mapping[str, Extracted]:
        """Maps names to the fields that steps may use: the extracted fields, and those that ``resolve`` adds."""
        extracted = self.field_by_name
        added = {
            each.target: Extracted(
                each.target, extracted[each.field].type if each.field in extracted else "text", span=each.span
            )
            for each in self.resolve
        }
        return {**added, **extracted}

    @cached_property
    def step_by_name(self) -> Mapping[str, SeedStep]:
        """Maps the name of each step to the step."""
        return {step.name: step for step in self.steps}

    @cached_property
    def value_by_name(self) -> Mapping[str, SeedStep]:
        """Maps the name of each step that has a value (all steps except filters) to the step."""
        return {step.name: step for step in self.steps if not isinstance(step, DefineFilter)}

    @cached_property
    def context_fields(self) -> tuple[str, ...]:
        """The fields of the context that steps read, in order."""
        fields = (node for step in self.steps for node in walk(step) if isinstance(node, FieldName))
        return tuple(dict.fromkeys(each.name for each in fields if each.namespace == "context"))
