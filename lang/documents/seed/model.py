"""The shapes of Formula Seeds 000 and 002. Models and clients get their JSON Schemas.

This module imports pydantic, which is slow, so import it only when it is needed. Functions in other modules check conditions,
tables and expressions, because their messages are better; the schemas describe these parts too.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from ...trees.seed import FieldType, KeepMatch, Match, Strategy

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
    "description": "All must hold. Keys: extraction.FIELD, meta.KEY, context.KEY, $FILTER, or the name of a step before.",
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
        "description": "The values of an enum: a list, or each with its meaning.",
    }),
]  # fmt: skip


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class FieldModel(_Strict):
    """What a model extracts from each review."""

    model_config = ConfigDict(title="Field")

    name: Name = Field(description="The name by which steps know the field.")
    type: FieldType | None = Field(default=None, description="An enum where values stand.")
    values: Values = None
    description: str = Field(default="", max_length=10_000, description="What is to be extracted.")


class FilterModel(_Strict):
    """Which reviews are kept: those with one of the keywords."""

    model_config = ConfigDict(title="Filter")

    keywords: list[str] = Field(
        default=[], description="A review with one of these is kept; without keywords, all are."
    )
    match: KeepMatch = Field(default="substring", description="How keywords are found.")


class ExtractModel(_Strict):
    """What is extracted from each review that is kept."""

    model_config = ConfigDict(title="Extract")

    fields: list[Any] = Field(description="The fields to extract.")
    prompt: str | None = Field(
        default=None, min_length=1, max_length=100_000,
        description="Asked instead of what is made of the fields; {review_text} stands for the review.",
    )  # fmt: skip


class ReviewHandlingModel(_Strict):
    """What becomes of a long review."""

    model_config = ConfigDict(title="ReviewHandling")

    max_length: int = Field(default=2000, ge=1, le=10_000_000, description="Characters of a review that are sent.")
    strategy: Strategy = Field(default="truncate_head", description="Keep the beginning or the end, or split it.")


class _Step(_Strict):
    name: Name = Field(description="The name of the value; later steps use it.")


class DefineFilter(_Step):
    """A condition for other steps, used as $NAME."""

    op: Literal["define_filter"]
    extraction: Where | None = Field(default=None, description="Conditions on extracted fields, by their bare names.")
    where: Where | None = None


class Count(_Step):
    """How many extractions there are for which all of where holds."""

    op: Literal["count"]
    where: Where | None = None


class Sum(_Step):
    """The sum of an expression, or a field, over the extractions for which all of where holds."""

    op: Literal["sum"]
    expr: Expression | None = Field(default=None, description="Over extraction., meta., context. and steps before.")
    field: str | None = Field(default=None, description="extraction.FIELD or meta.KEY, instead of an expression.")
    where: Where | None = None


class _Extreme(_Step):
    field: str | None = Field(default=None, description="extraction.FIELD or meta.KEY.")
    expr: Expression | None = Field(default=None, description="An expression, instead of a field.")
    where: Where | None = None
    default: Any = Field(default=None, description="The value where nothing matches.")


class Max(_Extreme):
    """The greatest value over the extractions for which all of where holds."""

    op: Literal["max"]


class Min(_Extreme):
    """The least value over the extractions for which all of where holds."""

    op: Literal["min"]


class Lookup(_Step):
    """What stands in a table under a key that the source matches."""

    op: Literal["lookup"]
    source: str = Field(description="context.KEY, or the name of a step before.")
    table: dict[str, Any] = Field(description="Values by keys.")
    match: Match = Field(default="exact", description="How keys are found in the source.")
    default: Any = Field(default=None, description="The value where no key matches.")


class Formula(_Step):
    """An expression over steps before and context."""

    op: Literal["expr"]
    expr: Expression = Field(description="One expression over steps before, context.KEY and extractions.")


class Const(_Step):
    """A literal value."""

    op: Literal["const"]
    value: Any = Field(description="Any JSON value.")


class When(_Strict):
    """The value then where the test is true."""

    when: Any = Field(description="The test, such as N > 3; with a source also < 4, or a value.")
    then: Any = Field(description="Any JSON value.")


class Else(_Strict):
    """The value where no rule before is true."""

    otherwise: Any = Field(alias="else", description="Any JSON value.")


class Case(_Step):
    """The value of the first rule that is true."""

    op: Literal["case"]
    source: str | None = Field(default=None, description="What the rules compare: a step before, or context.KEY.")
    rules: Annotated[list[Any], Field(min_length=1)] = Field(description="Rules in order; else comes last.")


class _CaseSchema(Case):
    """The value of the first rule that is true."""

    model_config = ConfigDict(title="Case")

    rules: list[When | Else] = Field(min_length=1, description="Rules in order; else comes last.")


OPERATIONS: dict[str, type[BaseModel]] = {
    "define_filter": DefineFilter, "count": Count, "sum": Sum, "max": Max, "min": Min, "lookup": Lookup, "expr": Formula,
    "const": Const, "case": Case,
}  # fmt: skip
"""Maps each operation of the declarative form to the shape of its step."""


class Seed002Model(_Strict):
    """A Formula Seed: which reviews to keep, what to extract from each, what to compute."""

    model_config = ConfigDict(title="FormulaSeed")

    task_name: str = Field(default="", max_length=1_000, description="The name of the task.")
    filter: FilterModel = Field(default=FilterModel(), description="Which reviews are kept.")
    extract: ExtractModel = Field(default=ExtractModel(fields=[]), description="What is extracted from each review.")
    review_handling: ReviewHandlingModel = Field(
        default=ReviewHandlingModel(max_length=8000, strategy="split"),
        description="What long reviews become. Without it they are read in parts of 8,000 characters that share 200.",
    )
    passes: int = Field(default=1, ge=1, le=2, description="2: extract twice and reconcile what differs.")
    allow_invalid: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The share of kept reviews that may lack a field, and the context is complete.",
    )
    compute: list[Any] = Field(description="The steps, in the order of their dependencies.")
    output: list[str] = Field(description="The names of the steps to return.")


class _ExtractSchema(ExtractModel):
    """What is extracted from each review that is kept."""

    model_config = ConfigDict(title="Extract")

    fields: list[FieldModel] = Field(description="The fields to extract.")


class SeedSchemaModel(Seed002Model):
    """A Formula Seed: which reviews to keep, what to extract from each, what to compute."""

    extract: _ExtractSchema = Field(
        default=_ExtractSchema(fields=[]), description="What is extracted from each review."
    )
    compute: list[
        Annotated[
            DefineFilter | Count | Sum | Max | Min | Lookup | Formula | Const | _CaseSchema, Field(discriminator="op")
        ]
    ] = Field(description="The steps, in the order of their dependencies.")


class Step000Model(_Step):
    """One step: a name and a formula."""

    model_config = ConfigDict(title="Step")

    formula: Expression = Field(description="One expression over steps before, context.KEY and extractions.")


class Seed000Model(_Strict):
    """A Formula Seed whose steps are formulas."""

    model_config = ConfigDict(title="FormulaSeed000")

    task_name: str = Field(default="", max_length=1_000, description="The name of the task.")
    filter_keywords: list[str] = Field(default=[], description="A review with one of these is kept.")
    extraction_fields: list[Any] = Field(default=[], description="The fields to extract.")
    extraction_prompt: str | None = Field(
        default=None, min_length=1, max_length=100_000,
        description="The question about each review; {review_text} stands for the review.",
    )  # fmt: skip
    review_handling: ReviewHandlingModel = Field(
        default=ReviewHandlingModel(max_length=8000, strategy="split"),
        description="What long reviews become. Without it they are read in parts of 8,000 characters that share 200.",
    )
    passes: int = Field(default=1, ge=1, le=2, description="2: extract twice and reconcile what differs.")
    allow_invalid: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="The share of kept reviews that may lack a field, and the context is complete.",
    )
    compute_dag: list[Any] = Field(description="The steps, in the order of their dependencies.")
    output_fields: list[str] = Field(description="The names of the steps to return.")


class SeedSchema000Model(Seed000Model):
    """A Formula Seed whose steps are formulas."""

    extraction_fields: list[FieldModel] = Field(default=[], description="The fields to extract.")
    compute_dag: list[Step000Model] = Field(description="The steps, in the order of their dependencies.")
