"""What the first two steps are answered with, as pydantic models: the JSON Schema that models get. Imports pydantic: import it late."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...lang.documents.seed.model import OPERATIONS, FieldModel

__all__ = [
    "ConditionModel",
    "ConditionsModel",
    "ConditionsSchema",
    "GraphModel",
    "GraphSchema",
    "NodeModel",
    "OutputModel",
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


_Name = Field(min_length=1, max_length=100, description="Letters, digits and underscores; unique.")


class ConditionModel(_Strict):
    """Something that the task asks of a review, of its metadata, or of the place."""

    model_config = ConfigDict(title="Condition")

    name: str = _Name
    uses: list[str] = Field(
        description="What it is about: extraction.FIELD, meta.KEY, context.KEY, or the name of another condition."
    )
    meaning: str = Field(max_length=10_000, description="When it holds, with all values and limits of the task.")


class OutputModel(_Strict):
    """A value that the task wants."""

    model_config = ConfigDict(title="Output")

    name: str = _Name
    meaning: str = Field(max_length=10_000, description="How the task defines it, with all its numbers.")


class ConditionsModel(_Strict):
    """What a task looks at and what it wants: the first step."""

    model_config = ConfigDict(title="Conditions")

    task_name: str = Field(default="", max_length=1_000, description="A short name of the task.")
    keywords: list[str] = Field(max_length=5_000, description="A review without any of these words is of no interest.")
    fields: list[Any] = Field(max_length=200, description="What has to be read out of each review, by a reader.")
    conditions: list[Any] = Field(max_length=500, description="What is asked of reviews.")
    outputs: list[Any] = Field(min_length=1, max_length=500, description="The values that are wanted.")


class ConditionsSchema(ConditionsModel):
    """What a task looks at and what it wants."""

    model_config = ConfigDict(title="Conditions")

    fields: list[FieldModel] = Field(description="What has to be read out of each review, by a reader.")
    conditions: list[ConditionModel] = Field(description="What is asked of reviews.")
    outputs: list[OutputModel] = Field(min_length=1, description="The values that are wanted.")


class NeedModel(_Strict):
    """What a node is computed from."""

    model_config = ConfigDict(title="Need")

    name: str = Field(description="extraction.FIELD, meta.KEY, context.KEY, or the name of another node.")
    values: list[str] = Field(default=[], description="Of an enum field: the values that count here.")


class NodeModel(_Strict):
    """A value, or a filter, with what it is computed from."""

    model_config = ConfigDict(title="Node")

    name: str = _Name
    op: str = Field(description="The kind of node.")
    needs: list[NeedModel] = Field(max_length=500, description="All that it is computed from.")
    rule: str = Field(max_length=10_000, description="How it is computed, with all numbers of the task.")


class _NodeSchema(NodeModel):
    """A value, or a filter, with what it is computed from."""

    model_config = ConfigDict(title="Node")

    op: Literal["define_filter", "count", "sum", "max", "min", "lookup", "expr", "const", "case"] = Field(
        description="The kind of node."
    )


class GraphModel(_Strict):
    """How all that is wanted is computed: the second step."""

    model_config = ConfigDict(title="Graph")

    nodes: list[Any] = Field(
        min_length=1, max_length=1_000, description="The nodes, what is needed first before what needs it."
    )
    unneeded: list[str] = Field(default=[], description="Fields of the first step that turn out not to be needed.")


class GraphSchema(GraphModel):
    """How all that is wanted is computed."""

    model_config = ConfigDict(title="Graph")

    nodes: list[_NodeSchema] = Field(min_length=1, description="The nodes, what is needed first before what needs it.")


NODES: dict[str, type[BaseModel]] = dict.fromkeys(OPERATIONS, NodeModel)
"""The shape of a node by its operation: the seed's own operations, all of one shape."""
