"""Reads an evaluation (``*.eval.json``), and reports faults with their positions in the JSON.

The model below is the only description of the shape; ``docs/reference/evaluation.schema.json`` is its JSON Schema.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field

from ..diagnostic import Diagnostic, has_errors, sort_key
from ..source import Source
from .json_text import JsonNode, read_json
from .shape import Misfit, json_schema, misfits

if TYPE_CHECKING:
    EVALUATION_SCHEMA: dict[str, Any]
    """The JSON Schema (draft 2020-12) of an evaluation."""


def __getattr__(name: str) -> Any:
    # Building the schema takes time, so it is built only when it is used.
    if name == "EVALUATION_SCHEMA":
        return json_schema(EvaluationModel)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_Text = Annotated[str, Field(min_length=1, max_length=10_000)]


class CandidateModel(BaseModel):
    """A candidate: a model, or the results of a finished run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    llm: Annotated[
        _Text | None, Field(description="Spec of the model, such as openai:gpt-5-mini (default: the default model)")
    ] = None
    target: Annotated[
        _Text | None, Field(description="Another target of the same kind, such as an earlier version of the seed")
    ] = None
    results: Annotated[_Text | None, Field(description="File with the results of a finished run; no call is made")] = (
        None
    )
    models: Annotated[dict[str, _Text] | None, Field(description="Models of a script: each name with its spec")] = None
    options: Annotated[
        dict[str, Any] | None, Field(description="Options of the calls and of the target, such as temperature")
    ] = None


class EvaluationModel(BaseModel):
    """An evaluation: what is evaluated, on which labelled items, with which models. Paths are relative to the file's folder."""

    model_config = ConfigDict(extra="forbid", strict=True)

    target: Annotated[_Text, Field(description="A seed, a script, rank:ITEMS, ask:GRAPH or answer")]
    gold: Annotated[_Text, Field(description="Table with the labelled items")]
    gold_query: Annotated[_Text | None, Field(description="SELECT that yields the labelled items, for a database")] = (
        None
    )
    contexts: Annotated[_Text | None, Field(description="Contexts of a seed, or a table with their reviews")] = None
    query: Annotated[_Text | None, Field(description="SELECT that yields the reviews, for a database")] = None
    group: Annotated[_Text | None, Field(description="Column of the table whose equal values make a context")] = None
    text: Annotated[_Text | None, Field(description="Column of the table with the text of a review")] = None
    columns: Annotated[
        dict[str, _Text] | None,
        Field(description="Further columns of the table: each name in the seed with its column"),
    ] = None
    candidates: Annotated[
        dict[str, CandidateModel] | None,
        Field(description="Candidates by name; the first one is compared with the others"),
    ] = None
    filter: Annotated[bool, Field(description="Whether the filter of the seed applies")] = True
    repeat: Annotated[int, Field(ge=1, le=20, description="Number of samples of each item")] = 1
    tolerance: Annotated[float, Field(ge=0, description="Largest error of a number that counts as right")] = 0.0
    threshold: Annotated[float, Field(ge=0, le=1, description="Minimum score of an accepted answer")] = 0.8
    k: Annotated[int, Field(ge=1, le=1000, description="Number of places that hit_k considers")] = 10
    require: Annotated[
        list[_Text] | None, Field(description="Requirements: expressions over the numbers of the report")
    ] = None
    max_failed: Annotated[float, Field(ge=0, le=1, description="Largest share of labels without an answer")] = 0.05
    target_accuracy: Annotated[
        float | None,
        Field(gt=0, lt=1, description="Accuracy that a cascade from the first to the second candidate should reach"),
    ] = None
    baseline: Annotated[_Text | None, Field(description="Saved baseline to compare with")] = None


class _Outside(EvaluationModel):
    """The shape of an evaluation without the contents of its candidates, whose names are not fixed."""

    candidates: dict[str, Any] | None = None


@frozen
class EvaluationRead:
    """An evaluation that was read. ``document`` is None if the text has errors; ``root`` is the document with positions."""

    document: Mapping[str, Any] | None
    diagnostics: tuple[Diagnostic, ...]
    source: Source
    root: JsonNode | None = None


_CODES = {"unknown": "EVAL002", "missing": "EVAL003", "type": "EVAL004", "value": "EVAL005"}


def read_evaluation(source: Source | str) -> EvaluationRead:
    """Read an evaluation. Never raises an error for an invalid text: ``diagnostics`` contains the errors."""
    source = Source(source, "<evaluation>") if isinstance(source, str) else source
    read = read_json(source)
    if read.root is None:
        return EvaluationRead(None, read.diagnostics, source, None)
    found = [*read.diagnostics, *map(_fault, misfits(_Outside, read.root))]
    candidates = read.root.fields.get("candidates")
    for name, node in ({} if candidates is None else candidates.fields).items():
        found += map(_fault, misfits(CandidateModel, node, ("candidates", name)))
    told = tuple(sorted(found, key=sort_key))
    return EvaluationRead(None if has_errors(told) else read.root.value, told, source, read.root)


def _fault(misfit: Misfit) -> Diagnostic:
    if not misfit.path:
        message = misfit.message.replace("the document must be an object", "an evaluation must be an object")
        return Diagnostic("EVAL001", "error", message, misfit.span, ("an evaluation has target, gold and candidates",))
    return Diagnostic(_CODES[misfit.kind], "error", misfit.message, misfit.span, misfit.hints, misfit.edits)
