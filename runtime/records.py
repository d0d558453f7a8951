"""What a GASL command gives: a result while it runs, and the record that is kept of it. Seed 003, "ExecutionRecord"."""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from ..adapters.llm import Usage
from ..lang.diagnostic import Diagnostic
from .context import Value

__all__ = ["STOPPING", "ExecutionRecord", "ExecutionResult", "Status", "as_history"]

Status = Literal["success", "empty", "partial", "binding_failure", "schema_mismatch", "error", "cancelled"]

STOPPING: frozenset[Status] = frozenset({"error", "binding_failure", "schema_mismatch"})
"""The statuses that stop a plan whose config says ``stop_on_error``."""


@frozen
class ExecutionResult:
    """What a runner gives. Seed 003: "holds value, count, metadata".

    ``value`` is bound to the command's variable; ``count`` are its items, fields or the number itself. ``summary`` is seed
    003's object for the history (``{"count": 1475}`` and what else is worth keeping). ``caps_hit`` names the caps that cut it
    short. ``message`` says in a sentence what was not as wanted, ``hint`` what is near or what to do; ``failed_items`` are
    items that a model gave nothing for (id and reason). ``used`` says how it was computed.
    """

    status: Status = "success"
    value: Value | None = None
    count: int | None = None
    summary: Mapping[str, Any] = field(factory=dict)
    caps_hit: tuple[str, ...] = ()
    calls: int = 0
    usage: Usage = field(factory=Usage)
    cost: float | None = None
    cached: int = 0
    used: str = ""
    message: str = ""
    hint: str = ""
    failed_items: tuple[Mapping[str, Any], ...] = ()
    diagnostic: Diagnostic | None = None


@frozen
class ExecutionRecord:
    """What happened to one command. Times are ISO 8601 in UTC; ``duration`` is seconds.

    ``value`` is the plain JSON value (None where there is none); ``metrics`` has count, shape, caps_hit, calls, tokens and so
    on, where known; ``error`` is ``{"message", "hint", "diagnostic"?}`` where the status is not a success. ``nested`` are the
    records of what the command ran (a branch, the body of a TRY).
    """

    step: int
    plan_id: str
    command: str
    why: str | None
    status: Status
    started_at: str
    finished_at: str
    duration: float
    summary: Mapping[str, Any] = field(factory=dict)
    metrics: Mapping[str, Any] = field(factory=dict)
    provenance_summary: Mapping[str, Any] = field(factory=dict)
    error: Mapping[str, Any] | None = None
    value: Any = field(default=None, repr=False)
    variable: str | None = None
    nested: "tuple[ExecutionRecord, ...]" = ()

    @property
    def ok(self) -> bool:
        """Whether the command did what it says, all or part of it, or found nothing."""
        return self.status not in STOPPING and self.status != "cancelled"


def as_history(record: ExecutionRecord, most: int = 200) -> dict[str, Any]:
    """Return the record as an entry of the history: seed 003's keys first, inputs and outputs truncated to ``most`` characters."""
    raise NotImplementedError
