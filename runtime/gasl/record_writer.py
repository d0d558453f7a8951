"""Converts the result of a command to its record: adds times, metrics and a provenance summary. Also records model answers."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Unpack

from attrs import define, field, frozen

from ...adapters.llm import LLM, Completion, LLMError, Options, Usage
from ...adapters.llm.cache import request_key
from ...adapters.llm.middleware import Own
from ...adapters.state import Evidence, StateError, StateStore
from ...lang.diagnostic import as_json
from ...lang.source import Source
from .records import ExecutionRecord, ExecutionResult, Value
from .relation import FoundRows, Relation, head_of

_FIELDS = 100
"""Maximum number of field names in a shape."""
_KEYS = 20
"""Maximum number of keys of an object in a shape."""
_LOOKED_AT = 1_000
"""Maximum number of items whose fields are collected for a shape."""
_COUNTED_ROWS = ("nulls", "mismatched", "equal_texts", "mixed", "examples")
"""The parts of a summary that count rows which a command could not use. They are copied to the metrics."""
_COUNTED = 500
_PIECES = 500
"""Maximum number of items whose evidence is read to count the sources."""


@frozen
class Clock:
    """A start time, both as a date for display and as a counter value for measuring durations."""

    at: datetime
    began: float

    @classmethod
    def start(cls) -> "Clock":
        """Start a clock now."""
        return cls(datetime.now(UTC), perf_counter())

    def seconds(self) -> float:
        """Return the seconds since the start."""
        return perf_counter() - self.began


@frozen
class Place:
    """The position of a command: its plan, its number and part, its text and its reason."""

    plan_id: str
    step: int
    part: str
    text: str
    why: str | None

    @property
    def label(self) -> str:
        """The number, followed by a point and the part if the command is nested: "3", "3.1"."""
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
    seconds, summary = clock.seconds(), result.summary
    held = None if result.value is None else result.value.held
    if result.shown is not None:
        held = head_of(held, result.shown)
    if result.count is not None and "count" not in summary:
        summary = {"count": result.count, **summary}
    return ExecutionRecord(
        place.step, place.plan_id, place.text, place.why, result.status,
        iso(clock.at), iso(), round(seconds, 6),
        summary, _metrics(result), _provenance(result, nested), _error(result, source),
        held, variable, tuple(nested), place.part,
    )  # fmt: skip


def iso(at: datetime | None = None) -> str:
    """Return a time (default: now) in UTC, as ISO 8601 with milliseconds."""
    return (at or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _metrics(result: ExecutionResult) -> dict[str, Any]:
    """Return the known metrics out of count, shape, caps hit, method and model usage."""
    metrics: dict[str, Any] = {}
    if result.count is not None:
        metrics["count"] = result.count
    if result.value is not None:
        metrics["shape"] = shape_of(result.value.held)
    if result.caps_hit:
        metrics["caps_hit"] = list(result.caps_hit)
    if result.incomplete_from:
        metrics["incomplete_from"] = list(result.incomplete_from)
    if result.used:
        metrics["used"] = result.used
    if result.notes:
        metrics["notes"] = list(result.notes)
    metrics |= {name: result.summary[name] for name in _COUNTED_ROWS if name in result.summary}
    if result.calls or result.cached or result.usage != Usage():
        metrics["calls"] = result.calls
        mark = {"estimated": True} if result.usage.estimated else {}
        metrics["tokens"] = {"prompt": result.usage.prompt_tokens, "completion": result.usage.completion_tokens, **mark}
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
    """Return ``{"kind", "items"?, "fields"?}``; ``fields`` are the fields of an object, or of the first 1,000 items of a list."""
    if isinstance(value, list | Relation):
        shape: dict[str, Any] = {"kind": "list", "items": len(value)}
        known = value.first_fields(_LOOKED_AT) if isinstance(value, FoundRows) and len(value) else None
        if known is not None:
            shape["fields"] = list(known)[:_FIELDS]
        elif len(value) and isinstance(value[0], dict):
            named = dict.fromkeys(name for item in value[:_LOOKED_AT] if isinstance(item, dict) for name in item)
            shape["fields"] = list(named)[:_FIELDS]
        return shape
    if isinstance(value, dict):
        return {"kind": "object", "items": len(value), "fields": list(value)[:_KEYS]}
    return {"kind": "null" if value is None else _SCALARS.get(type(value), "value")}


_SCALARS: Mapping[type, str] = {str: "text", bool: "boolean", int: "integer", float: "float"}


def _provenance(result: ExecutionResult, nested: Sequence[ExecutionRecord]) -> dict[str, Any]:
    """Return the provenance summary of the value that a command bound or wrote; the summary of a written value is never empty."""
    if result.written is not None:
        return provenance_of(result.written) or {"items": 0, "sources": 0}
    found = provenance_of(result.value)
    parts = [each.provenance_summary for each in nested if each.provenance_summary and not each.rolled_back]
    if found or not parts:
        return found
    # Several commands may share sources, so the highest of their counts is a lower bound of the number of sources.
    return {
        "items": sum(part["items"] for part in parts),
        "sources": max(part["sources"] for part in parts),
        "commands": len(parts),
    }


def provenance_of(value: Value | None) -> dict[str, Any]:
    """Return ``{"items", "sources"}``: the number of items with evidence, and the number of different sources.

    If the evidence is long, only the sources of the first items are counted; ``counted`` is then the number of these items.
    """
    if value is None or not len(value.evidence):
        return {}
    sources: set[str] = set()
    looked = pieces = 0
    counts = getattr(value.evidence, "counts", None)  # without sources, the pieces need not be computed
    while looked < min(len(value.evidence), _COUNTED) and pieces < _PIECES:
        if counts is not None:
            looked, pieces = looked + 1, pieces + counts(looked)
            continue
        found = value.evidence[looked]
        for piece in found:
            sources.update(_sources(piece))
        looked, pieces = looked + 1, pieces + len(found)
    made: dict[str, Any] = {"items": len(value.evidence), "sources": len(sources)}
    return made if looked == len(value.evidence) else {**made, "counted": looked}


def _sources(piece: Evidence) -> list[str]:
    """Return the sources that a piece of evidence names: ids from the graph, or the citations of a model."""
    for name in ("source_id", "doc_id", "file_path", "cited"):
        if found := piece.get(name):
            return [str(each) for each in found] if isinstance(found, list | tuple) else [str(found)]
    return []


def _error(result: ExecutionResult, source: Source | None) -> Mapping[str, Any] | None:
    """Return the error object of a result that is not a success; for an empty result, the hint suggests similar values."""
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


# A layer that saves model answers in the state, so that a session can be replayed without calling the models.
# The key of an answer has three parts: the request, the step of the command, and the turn, which numbers equal requests of a step
# in order. The request is hashed (``adapters.llm.cache.request_key``) with the model's name in the plan instead of its spec, so
# that a replay does not have to know the model.
# Shape: ``{"request": hex, "step": int, "turn": int, "text", "model", "finish_reason",
# "repaired", "prompt_tokens", "completion_tokens"}``, with ``"cached": true`` if no model was called. For a failed call:
# ``{"request", "step", "turn", "error": {"kind", "message", "hint", "text"}}``; ``text`` is the answer if it was invalid.


def request_of(name: str, prompt: str, options: Any) -> str | None:
    """Return the request part of an answer's key; None if the request can't be written as JSON."""
    try:
        return request_key(f"gasl:{name}", prompt, options).hex()
    except (TypeError, ValueError):
        return None


@define
class Turns:
    """Counts how often each request was made in the running step."""

    step: int = 0
    _counts: Counter[str] = field(factory=Counter)

    def begin(self, step: int) -> None:
        """Reset the counts for a new step."""
        self.step = step
        self._counts.clear()

    def next(self, request: str) -> int:
        """Return 0 for the first occurrence of ``request``, 1 for the second, and so on."""
        turn = self._counts[request]
        self._counts[request] += 1
        return turn


def _as_record(answer: Completion) -> dict[str, Any]:
    record: dict[str, Any] = {
        "text": answer.text,
        "model": answer.model,
        "finish_reason": answer.finish_reason,
        "repaired": answer.repaired,
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
        **({"estimated": True} if answer.usage.estimated else {}),
    }
    return {**record, "cached": True} if answer.cached else record


class AnswerRecorder(Own):
    """Forwards requests to ``inner``, the model with this ``name`` in the plan ("" is the default), and records the answers."""

    def __init__(self, inner: LLM, name: str, state: StateStore, turns: Turns, warn: Callable[[str], None]) -> None:
        self._inner = inner
        self._name = name
        self._state = state
        self._turns = turns
        self._warn = warn

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer; exceptions raised by the inner client pass through."""
        request = request_of(self._name, prompt, options)
        if request is None:
            return await self._inner.generate(prompt, **options)
        kept: dict[str, Any] = {"request": request, "step": self._turns.step, "turn": self._turns.next(request)}
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            text = getattr(error, "text", "")
            said = {"kind": error.kind, "message": error.message, "hint": error.hint, "text": text}
            self._keep({**kept, "error": said})
            raise
        self._keep({**kept, **_as_record(answer)})
        return answer

    def record(self, prompt: str, answer: Completion, options: Mapping[str, Any]) -> None:
        """Record an answer that the caller already has, as if the inner client had just returned it."""
        request = request_of(self._name, prompt, options)
        if request is not None:
            turn = self._turns.next(request)
            self._keep({"request": request, "step": self._turns.step, "turn": turn, **_as_record(answer)})

    async def aclose(self) -> None:
        """Do nothing: the owner of the inner client closes it."""

    def _keep(self, answer: dict[str, Any]) -> None:
        try:
            self._state.answered(answer)
        except StateError as error:
            self._warn(f"a model's answer can't be stored for replay: {error.message}")
