"""Shapes of Formula Seeds 000 and 002. The JSON Schemas of these shapes are given to models and clients.

This module imports pydantic, which is slow, so import it only when it is needed. Functions in other modules check conditions,
tables and expressions, because their messages are better; the schemas describe these parts too.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from ...trees.seed import FieldType, KeepMatch, Match, MetaType, Strategy

_NAME = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 100}
_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_ORDERED = {"type": ["string", "number"]}
_LIST = {"type": "array", "items": _SCALAR, "minItems": 1}
_OPERATORS: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        "==": _SCALAR, "!=": _SCALAR, "in": _LIST, "not_in": _LIST, ">": _ORDERED, ">=": _ORDERED, "<": _ORDERED,
        "<=": _ORDERED, "exists": {"type": "boolean"},
        "between": {"type": "array", "items": _ORDERED, "minItems": 2, "maxItems": 2},
    },
}  # fmt: skip
_WHERE = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"anyOf": [_SCALAR, _OPERATORS]},
    "description": "All must hold. Keys: extraction.FIELD, meta.KEY, context.KEY, $FILTER, or the name of an earlier step.",
}

Name = Annotated[str, Field(min_length=1, max_length=100), WithJsonSchema(_NAME)]
Where = Annotated[dict[str, Any], WithJsonSchema(_WHERE)]
Expression = Annotated[str, Field(min_length=1, max_length=10_000)]
Values = Annotated[
    Any,
    WithJsonSchema({
        "anyOf": [
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
        ],
        "description": "The values of an enum: a list, or an object that maps each value to its meaning.",
    }),
]  # fmt: skip

Meta = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "additionalProperties": {"enum": list(get_args(MetaType))}}),
]


def _without_default(schema: dict[str, Any]) -> None:
    """Remove the default from a part of a schema: the part may be missing, but an empty part has another meaning."""
    schema.pop("default", None)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class FieldModel(_Strict):
    """A field that a model extracts from each review."""

    model_config = ConfigDict(title="Field")

    name: Name = Field(description="The name of the field in steps.")
    type: FieldType | None = Field(
        default=None, description="The type of the value; by default, enum if there are values."
    )
    values: Values = None
    description: str = Field(default="", max_length=10_000, description="What to extract.")
    ordered: bool = Field(
        default=False, description="Whether the values of an enum are listed from the lowest to the highest."
    )


class FilterModel(_Strict):
    """Which reviews to keep: those that contain one of the keywords."""

    model_config = ConfigDict(title="Filter")

    keywords: list[str] = Field(
        default=[], description="Reviews that contain one of these are kept; without keywords, all reviews are kept."
    )
    match: KeepMatch = Field(default="substring", description="How keywords are matched.")


class ExampleModel(_Strict):
    """A text with its extraction, which the model is shown."""

    model_config = ConfigDict(title="Example")

    text: str = Field(min_length=1, description="The text, as in a review.")
    extraction: dict[str, Any] = Field(description="The right value of each field; a field that is left out is null.")


_EXAMPLES = "Texts with their extractions, at most 20, which the model is shown."


class ExtractModel(_Strict):
    """What to extract from each review that is kept."""

    model_config = ConfigDict(title="Extract")

    fields: list[Any] = Field(description="The fields to extract.")
    prompt: str | None = Field(
        default=None, min_length=1, max_length=100_000,
        description="The prompt, instead of one made from the fields; {review_text} is replaced by the review.",
    )  # fmt: skip
    examples: list[Any] = Field(default=[], description=_EXAMPLES)


class ReviewHandlingModel(_Strict):
    """How to handle a long review."""

    model_config = ConfigDict(title="ReviewHandling")

    max_length: int = Field(
        default=2000, ge=1, le=10_000_000, description="Maximum number of characters that are sent at once."
    )
    strategy: Strategy = Field(
        default="truncate_head", description="Keep the beginning, keep the end, or split the review."
    )


class _Step(_Strict):
    name: Name = Field(description="The name of the value; later steps use it.")


class DefineFilter(_Step):
    """A condition for other steps, used as $NAME."""

    op: Literal["define_filter"]
    extraction: Where | None = Field(default=None, description="Conditions on extracted fields, by field name.")
    where: Where | None = None


class Count(_Step):
    """The number of extractions for which all conditions of where hold."""

    op: Literal["count"]
    where: Where | None = None


class Sum(_Step):
    """The sum of an expression or a field over the extractions for which all conditions of where hold."""

    op: Literal["sum"]
    expr: Expression | None = Field(default=None, description="Over extraction., meta., context. and earlier steps.")
    field: str | None = Field(default=None, description="extraction.FIELD or meta.KEY, instead of an expression.")
    where: Where | None = None


class _Extreme(_Step):
    field: str | None = Field(default=None, description="extraction.FIELD or meta.KEY.")
    expr: Expression | None = Field(default=None, description="An expression, instead of a field.")
    where: Where | None = None
    default: Any = Field(default=None, description="The value if no extraction matches.")


class Max(_Extreme):
    """The largest value over the extractions for which all conditions of where hold."""

    op: Literal["max"]


class Min(_Extreme):
    """The smallest value over the extractions for which all conditions of where hold."""

    op: Literal["min"]


class Lookup(_Step):
    """The value in a table for a key that the source matches."""

    op: Literal["lookup"]
    source: str = Field(description="context.KEY, or the name of an earlier step.")
    table: dict[str, Any] = Field(description="An object that maps keys to values.")
    match: Match = Field(default="exact", description="How keys are matched with the source.")
    default: Any = Field(default=None, description="The value if no key matches.")


class Formula(_Step):
    """An expression over earlier steps and the context."""

    op: Literal["expr"]
    expr: Expression = Field(description="One expression over earlier steps, context.KEY and extractions.")


class Const(_Step):
    """A literal value."""

    op: Literal["const"]
    value: Any = Field(description="Any JSON value.")


class When(_Strict):
    """The value of then, if the test is true."""

    when: Any = Field(description="The test, such as N > 3; with a source, also < 4 or a value.")
    then: Any = Field(description="Any JSON value.")


class Else(_Strict):
    """The value if no earlier rule is true."""

    otherwise: Any = Field(alias="else", description="Any JSON value.")


class Case(_Step):
    """The value of the first rule that is true."""

    op: Literal["case"]
    source: str | None = Field(default=None, description="What the rules compare: an earlier step, or context.KEY.")
    rules: Annotated[list[Any], Field(min_length=1)] = Field(description="Rules in order; else comes last.")


class _CaseSchema(Case):
    """The value of the first rule that is true."""

    model_config = ConfigDict(title="Case")

    rules: list[When | Else] = Field(min_length=1, description="Rules in order; else comes last.")


class Tally(_Step):
    """How often each value of a field occurs in the extractions for which all conditions of where hold."""

    op: Literal["tally"]
    field: str = Field(description="extraction.FIELD or meta.KEY.")
    top: int | None = Field(default=None, ge=1, le=10_000, description="Maximum number of values; by default, all.")
    where: Where | None = None


class ResolveModel(_Strict):
    """Maps the different spellings of one thing to one name, the most frequent spelling."""

    model_config = ConfigDict(title="Resolve")

    field: str = Field(description="The field with the spellings: a text, or a list of texts.")
    target: Name = Field(alias="as", description="The new field with the names; steps use extraction.NAME.")
    method: Literal["llm", "fuzzy"] = Field(
        default="llm", description="Who decides doubtful pairs: the model, or nobody."
    )
    scope: Literal["context", "run"] = Field(default="context", description="Whose spellings are compared.")
    same_above: float = Field(default=0.95, ge=0, le=1, description="Pairs with a higher similarity are the same.")
    ask_above: float = Field(default=0.6, ge=0, le=1, description="Pairs with a lower similarity are different.")


class ReduceModel(_Step):
    """A value that a model writes about all matching reviews of a context."""

    model_config = ConfigDict(title="Reduce")

    sources: Annotated[list[str], Field(min_length=1)] = Field(
        alias="from", description="What the model reads of each review: extraction.FIELD, meta.KEY, or text."
    )
    where: Where | None = None
    prompt: str = Field(min_length=1, max_length=100_000, description="What the model writes.")
    type: Literal["text", "list"] = Field(
        default="text", description="The type of the value: a text, or a list of texts."
    )
    cite: bool = Field(default=False, description="Whether each item names the reviews that support it.")


OPERATIONS: dict[str, type[BaseModel]] = {
    "define_filter": DefineFilter, "count": Count, "sum": Sum, "max": Max, "min": Min, "lookup": Lookup, "expr": Formula,
    "const": Const, "case": Case, "tally": Tally,
}  # fmt: skip
"""Maps each operation of the declarative form to the shape of its step."""


_COMPUTE = "The steps, in the order of their dependencies."
_RESOLVE = "Fields whose spellings get one name, at most 20; after extraction, before reduce."
_REDUCE = "Values that a model writes about all reviews of a context, at most 20; before compute."


class Seed002Model(_Strict):
    """A Formula Seed: which reviews to keep, what to extract from each, and what to compute."""

    model_config = ConfigDict(title="FormulaSeed", json_schema_extra={"dependentRequired": {"compute": ["output"]}})

    task_name: str = Field(default="", max_length=1_000, description="The name of the task.")
    meta: Meta = Field(default={}, description="The keys of the reviews that steps use as meta.KEY, with their types.")
    filter: FilterModel = Field(default=FilterModel(), description="Which reviews to keep.")
    extract: ExtractModel = Field(default=ExtractModel(fields=[]), description="What to extract from each review.")
    review_handling: ReviewHandlingModel = Field(
        default=ReviewHandlingModel(max_length=8000, strategy="split"),
        description="How to handle long reviews. By default, they are split into parts of 8,000 characters that share 200.",
    )
    passes: int = Field(default=1, ge=1, le=2, description="2 means: extract twice and reconcile the differences.")
    allow_invalid: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The share of kept reviews that may lack a field while the context still counts as complete.",
    )
    resolve: list[Any] = Field(default=[], description=_RESOLVE)
    reduce: list[Any] = Field(default=[], description=_REDUCE)
    compute: list[Any] = Field(default=[], description=_COMPUTE, json_schema_extra=_without_default)
    output: list[str] = Field(
        default=[], description="The names of the steps to return.", json_schema_extra=_without_default
    )
    tuned_from: dict[str, Any] | None = Field(
        default=None,
        description="Written by knotwork seed tune: the seed, the gold table and the scores behind this seed.",
    )


class _ExtractSchema(ExtractModel):
    """What to extract from each review that is kept."""

    model_config = ConfigDict(title="Extract")

    fields: list[FieldModel] = Field(description="The fields to extract.")
    examples: list[ExampleModel] = Field(default=[], max_length=20, description=_EXAMPLES)


class SeedSchemaModel(Seed002Model):
    """A Formula Seed: which reviews to keep, what to extract from each, and what to compute."""

    extract: _ExtractSchema = Field(default=_ExtractSchema(fields=[]), description="What to extract from each review.")
    compute: list[
        Annotated[
            DefineFilter | Count | Sum | Max | Min | Lookup | Formula | Const | _CaseSchema | Tally,
            Field(discriminator="op"),
        ]
    ] = Field(default=[], description=_COMPUTE, json_schema_extra=_without_default)
    resolve: list[ResolveModel] = Field(default=[], max_length=20, description=_RESOLVE)
    reduce: list[ReduceModel] = Field(default=[], max_length=20, description=_REDUCE)


class Step000Model(_Step):
    """One step: a name and a formula."""

    model_config = ConfigDict(title="Step")

    formula: Expression = Field(description="One expression over earlier steps, context.KEY and extractions.")


class Seed000Model(_Strict):
    """A Formula Seed whose steps are formulas."""

    model_config = ConfigDict(title="FormulaSeed000")

    task_name: str = Field(default="", max_length=1_000, description="The name of the task.")
    filter_keywords: list[str] = Field(default=[], description="Reviews that contain one of these are kept.")
    extraction_fields: list[Any] = Field(default=[], description="The fields to extract.")
    extraction_prompt: str | None = Field(
        default=None, min_length=1, max_length=100_000,
        description="The prompt for each review; {review_text} is replaced by the review.",
    )  # fmt: skip
    review_handling: ReviewHandlingModel = Field(
        default=ReviewHandlingModel(max_length=8000, strategy="split"),
        description="How to handle long reviews. By default, they are split into parts of 8,000 characters that share 200.",
    )
    passes: int = Field(default=1, ge=1, le=2, description="2 means: extract twice and reconcile the differences.")
    allow_invalid: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The share of kept reviews that may lack a field while the context still counts as complete.",
    )
    compute_dag: list[Any] = Field(description="The steps, in the order of their dependencies.")
    output_fields: list[str] = Field(description="The names of the steps to return.")


class SeedSchema000Model(Seed000Model):
    """A Formula Seed whose steps are formulas."""

    extraction_fields: list[FieldModel] = Field(default=[], description="The fields to extract.")
    compute_dag: list[Step000Model] = Field(description="The steps, in the order of their dependencies.")
