"""From a command's result to its record: times, metrics, provenance in brief, the entry in the history."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from attrs import frozen

from ...adapters.state import Evidence
from ...lang.diagnostic import as_json
from ...lang.source import Source
from .records import ExecutionRecord, ExecutionResult
from .variables import Value

__all__ = ["Clock", "Place", "provenance_of", "recorded", "shape_of"]

_FIELDS = 20
"""Field names that a shape lists."""
_COUNTED = 500
"""Items whose evidence is looked at to count the sources."""


@frozen
class Clock:
    """When something began: for a person, and to take the time from."""

    at: datetime
    began: float

    @classmethod
    def start(cls) -> "Clock":
        """Begin now."""
        return cls(datetime.now(UTC), perf_counter())

    def seconds(self) -> float:
        """Return the seconds since then."""
        return perf_counter() - self.began


@frozen
class Place:
    """Where a command stands: its plan, its number and part, its text and why it is there."""

    plan_id: str
    step: int
    part: str
    text: str
    why: str | None

    @property
    def label(self) -> str:
        """The number, with the part behind a point."""
        return f"{self.step}.{self.part}" if self.part else str(self.step)


def recorded(
    place: Place,
    clock: Clock,
    result: ExecutionResult,
    source: Source | None = None,
    *,
    variable: str | None = None,
    nested: Sequence[ExecutionRecord] = (),
) -> ExecutionRecord:
    """Return the record of a command that ended with ``result``."""
    seconds = clock.seconds()
    return ExecutionRecord(
        place.step, place.plan_id, place.text, place.why, result.status,
        _iso(clock.at), _iso(datetime.now(UTC)), round(seconds, 6),
        _summary(result), _metrics(result), _provenance(result, nested), _error(result, source),
        None if result.value is None else result.value.value, variable, tuple(nested), place.part,
    )  # fmt: skip


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _summary(result: ExecutionResult) -> Mapping[str, Any]:
    if result.count is None or "count" in result.summary:
        return result.summary
    return {"count": result.count, **result.summary}


def _metrics(result: ExecutionResult) -> dict[str, Any]:
    """Return what is known: count, shape, caps hit, how it was computed, what the model took."""
    metrics: dict[str, Any] = {}
    if result.count is not None:
        metrics["count"] = result.count
    if result.value is not None:
        metrics["shape"] = shape_of(result.value.value)
    if result.caps_hit:
        metrics["caps_hit"] = list(result.caps_hit)
    if result.incomplete_from:
        metrics["incomplete_from"] = list(result.incomplete_from)
    if result.used:
        metrics["used"] = result.used
    if result.calls or result.cached or result.usage.total:
        metrics["calls"] = result.calls
        metrics["tokens"] = {"prompt": result.usage.prompt_tokens, "completion": result.usage.completion_tokens}
        if result.cached:
            metrics["cached"] = result.cached
        if result.cost is not None:
            metrics["cost"] = result.cost
    if result.status == "success" and result.message:
        metrics["remark"] = result.message
    if result.failed_items:
        metrics["failed_items"] = list(result.failed_items)
    return metrics


def shape_of(value: Any) -> dict[str, Any]:
    """Return ``{"kind", "items"?, "fields"?}``: the fields are those of the value, or of a list's first item."""
    if isinstance(value, list):
        shape: dict[str, Any] = {"kind": "list", "items": len(value)}
        if value and isinstance(value[0], dict):
            shape["fields"] = list(value[0])[:_FIELDS]
        return shape
    if isinstance(value, dict):
        return {"kind": "object", "items": len(value), "fields": list(value)[:_FIELDS]}
    return {"kind": "null" if value is None else _SCALARS.get(type(value), "value")}


_SCALARS: Mapping[type, str] = {str: "text", bool: "boolean", int: "integer", float: "float"}


def _provenance(result: ExecutionResult, nested: Sequence[ExecutionRecord]) -> dict[str, Any]:
    """Return the provenance in brief of what a command bound, or of what it wrote: then it is never empty."""
    if result.written is not None:
        return provenance_of(result.written) or {"items": 0, "sources": 0}
    found = provenance_of(result.value)
    parts = [each.provenance_summary for each in nested if each.provenance_summary and not each.rolled_back]
    if found or not parts:
        return found
    # Sources of several commands may be the same ones: at least those of the one that has most.
    return {
        "items": sum(part["items"] for part in parts),
        "sources": max(part["sources"] for part in parts),
        "commands": len(parts),
    }


def provenance_of(value: Value | None) -> dict[str, Any]:
    """Return ``{"items", "sources"}``: items that have evidence, and different sources that it names.

    With more than 500 items the sources are those of the first ones, and ``counted`` says of how many.
    """
    if value is None or not len(value.evidence):
        return {}
    sources: set[str] = set()
    looked = min(len(value.evidence), _COUNTED)
    for index in range(looked):
        for piece in value.evidence[index]:
            sources.update(_sources(piece))
    made: dict[str, Any] = {"items": len(value.evidence), "sources": len(sources)}
    return made if looked == len(value.evidence) else {**made, "counted": looked}


def _sources(piece: Evidence) -> list[str]:
    """Return the documents that a piece of evidence names: by the graph's own ids; a model's by what it cites."""
    for name in ("source_id", "doc_id", "file_path", "cited"):
        if found := piece.get(name):
            return [str(each) for each in found] if isinstance(found, list | tuple) else [str(found)]
    return []


def _error(result: ExecutionResult, source: Source | None) -> Mapping[str, Any] | None:
    """Return what was not as wanted; an empty result says what is near."""
    if result.status == "success" or (not result.message and result.diagnostic is None):
        return None
    error: dict[str, Any] = {"message": result.message or (result.diagnostic.message if result.diagnostic else "")}
    if result.hint:
        error["hint"] = result.hint
    if result.kind:
        error["kind"] = result.kind
    if result.diagnostic is not None:
        error["diagnostic"] = as_json(result.diagnostic, source or Source(""))
    return error
