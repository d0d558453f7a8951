"""Results and records of GASL commands. See ``docs/design/gasl.md#execution``."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from ...adapters.graph import Caps, GraphAdapter
from ...adapters.llm import LLM, Usage
from ...adapters.state import Evidence, StateStore
from ...lang.diagnostic import Diagnostic
from ..events import Events
from ..excerpts import abridged, cut, storable

# The variables of a plan: the values, with evidence, that commands bind to the names after ``AS``. See
# ``docs/design/gasl.md#execution``.


@frozen
class Value:
    """A JSON value with evidence: for each item of a list by index; for any other value at index 0.

    ``evidence`` may be lazy: a sequence that computes its elements on access, so that a million found nodes cost nothing
    until they are stored. ``incomplete`` has the reasons why the value is incomplete (empty if it is complete); values
    computed from an incomplete value inherit its reasons.
    """

    value: Any
    evidence: Sequence[Sequence[Evidence]] = ()
    incomplete: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of items of a list, or of keys of an object; 0 for null, and 1 for any other value."""
        if isinstance(self.value, list | dict):
            return len(self.value)
        return 0 if self.value is None else 1

    def evidence_at(self, index: int) -> Sequence[Evidence]:
        """Return the evidence of the item at ``index``; empty if the item has no evidence."""
        return self.evidence[index] if index < len(self.evidence) else ()


@define
class ContextStore:
    """The variables of a plan by name. Variables last for one plan; only the state is persistent."""

    _values: dict[str, Value] = field(factory=dict)
    _fields: dict[str, tuple[Value, tuple[str, ...] | None]] = field(factory=dict, eq=False, repr=False)

    def set(self, var: str, value: Any) -> None:
        """Bind ``var`` to a ``Value``, or to a plain JSON value without evidence."""
        self._values[var] = value if isinstance(value, Value) else Value(value)

    def get(self, var: str) -> Any:
        """Return the plain value of ``var``. Raises ``KeyError``."""
        return self._values[var].value

    def value(self, var: str) -> Value | None:
        """Return the ``Value`` of ``var`` with its evidence; None if ``var`` is not bound."""
        return self._values.get(var)

    def fields(self, var: str) -> tuple[str, ...] | None:
        """Return all fields of the items of ``var``, in order of first occurrence; None unless its value is a list of objects.

        The result is cached, so each value is scanned only once.
        """
        bound = self._values.get(var)
        if bound is None:
            return None
        known = self._fields.get(var)
        if known is None or known[0] is not bound:
            known = self._fields[var] = (bound, _fields_of(bound.value))
        return known[1]

    def exists(self, var: str) -> bool:
        """Return whether ``var`` is bound."""
        return var in self._values

    def forget(self, var: str) -> None:
        """Unbind ``var``, if it is bound."""
        self._values.pop(var, None)

    def names(self) -> tuple[str, ...]:
        """Return the bound names, in the order of binding."""
        return tuple(self._values)

    def clear(self) -> None:
        """Unbind all variables."""
        self._values.clear()

    def copy(self) -> "ContextStore":
        """Return an independent store with the same variables."""
        return ContextStore(dict(self._values))

    def summary(self, max_items: int = 5) -> dict[str, Any]:
        """Return ``{name: {"kind", "count", "sample"}}``; each sample has at most ``max_items`` items."""
        return {name: _summary(bound, max_items) for name, bound in self._values.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)


def _fields_of(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    found: dict[str, None] = {}
    for item in value:
        if not isinstance(item, dict):
            return None
        if found.keys() != item.keys():
            found.update(dict.fromkeys(item))
    return tuple(found) if value else None


def _summary(bound: Value, most: int) -> Mapping[str, Any]:
    value = bound.value
    if isinstance(value, list):
        return {"kind": "list", "count": len(value), "sample": value[:most]}
    if isinstance(value, dict):
        return {"kind": "object", "count": len(value), "sample": dict(list(value.items())[:most])}
    return {"kind": "value", "count": bound.count, "sample": value}


Status = Literal["success", "empty", "partial", "binding_failure", "schema_mismatch", "error", "cancelled"]

STOPPING: frozenset[Status] = frozenset({"error", "binding_failure", "schema_mismatch"})
"""The statuses that stop a plan with ``stop_on_error``."""


@frozen
class ExecutionResult:
    """The result of a runner: a value, a count and metadata.

    ``value`` is bound to the command's variable; ``count`` is the number of its items or fields, or the value if it is a number.
    ``summary`` is the object for the history (``{"count": 1475}`` and other data to save). ``caps_hit`` names the
    caps that cut the result short. ``message`` states in one sentence what is wrong or missing, ``hint`` a near match or a
    fix. ``failed_items`` are items for which a model gave no result (id and reason). ``used`` names the method that computed
    the result. ``kind`` is the kind of a model's error (``LLMError.kind``) if a model call failed. ``incomplete_from`` names
    the incomplete variables and keys that the result was computed from. ``written`` is the value that a command wrote to the
    state; None if it wrote nothing.
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
    kind: str = ""
    incomplete_from: tuple[str, ...] = ()
    written: Value | None = None

    @classmethod
    def of_items(
        cls, items: list[Any], evidence: Any = (), summary: Mapping[str, Any] | None = None, **rest: Any
    ) -> "ExecutionResult":
        """Return the result with the value ``items``: a success, or empty."""
        count = len(items)
        return cls(
            "success" if items else "empty", Value(items, evidence), count, {"count": count, **(summary or {})}, **rest
        )


@frozen
class ExecutionRecord:
    """The record of one executed command. Times are ISO 8601 in UTC; ``duration`` is in seconds.

    ``step`` counts the commands of a state's outermost level from 1, over all its plans; a nested command has the same
    ``step`` and its own ``part`` ("1", "2.1"). ``value`` is the plain JSON value (None if there is none). ``metrics`` has
    count, shape, caps_hit, calls, tokens and so on, if known. ``error`` is ``{"message", "hint", "kind"?, "diagnostic"?,
    "diagnostics"?}`` if the status is not a success. ``nested`` are the records of the commands that the command ran (a branch,
    the body of a TRY). ``rolled_back``: the command's state changes were undone.
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
    part: str = ""
    rolled_back: bool = False

    @property
    def ok(self) -> bool:
        """Whether the command succeeded, succeeded partly, or found nothing."""
        return self.status not in STOPPING and self.status != "cancelled"

    @property
    def label(self) -> str:
        """``step``, followed by a point and ``part`` if the command is nested: "3", "3.1"."""
        return f"{self.step}.{self.part}" if self.part else str(self.step)


def plan_status(records: Sequence[ExecutionRecord]) -> Status:
    """Return the status of a whole plan from the records of its outermost level.

    The status is cancelled if any record is cancelled; the last record's status if that record ended the plan (a failure, or
    empty); partial if an earlier record failed or is partial; else success. A plan without commands is a success. Never raises.
    """
    if any(record.status == "cancelled" for record in records):
        return "cancelled"
    if not records:
        return "success"
    if (last := records[-1].status) in STOPPING or last == "empty":
        return last
    return "partial" if any(not record.ok or record.status == "partial" for record in records) else "success"


def last_with_value(records: Sequence[ExecutionRecord]) -> ExecutionRecord | None:
    """Return the last record that bound a variable, also among nested records; None if no record did."""
    for record in reversed(records):
        if (found := last_with_value(record.nested)) is not None:
            return found
        if record.variable is not None:
            return record
    return None


_COMMAND = 2_000
"""Maximum characters of a command in the history; ``replay.commands`` has the complete text."""


def as_history(record: ExecutionRecord, most: int = 200) -> dict[str, Any]:
    """Return the record as a history entry: keys of the state object first; inputs and outputs are cut to ``most`` characters."""
    entry: dict[str, Any] = {
        "step": record.step,
        "command": kept_text(record.command),
        "why": record.why and cut(record.why, max(1_000, most)),
        "summary": abridged(dict(record.summary), most),
        "provenance_summary": abridged(dict(record.provenance_summary), most),
        "started_at": record.started_at,
        "finished_at": record.finished_at,
        "duration": record.duration,
        "status": record.status,
        "plan_id": cut(record.plan_id, most),
        "metrics": abridged(dict(record.metrics), most),
    }
    if record.part:
        entry["part"] = record.part
    if record.variable is not None:
        entry["variable"] = record.variable
        entry["output"] = abridged(record.value, most)
    if record.error is not None:
        entry["error"] = abridged(dict(record.error), max(1_000, most))
    return {name: storable(value) for name, value in entry.items()}


def kept_text(command: str) -> str:
    """Return a command's text as the history stores it."""
    return str(storable(cut(command, _COMMAND)))


# The environment of a GASL command runner: the ports, the variables, and the settings of the running plan.


@define
class Session:
    """One running plan. Runners may read all attributes, but change only ``context`` and ``state``, as described at ``Runner``.

    ``models`` are the clients that ``SET llm.model`` may name; the name is then in ``options["model"]``. The other
    ``options`` are the current model options (temperature, max_tokens ...). ``caps`` are the current caps, ``ceiling`` the
    maximum to which SET may raise the caps. ``chunks`` returns the text of a chunk by its id, for snippets. ``plan_id`` is the id
    of the plan. ``label`` names the command in events ("3", "3.1"). ``chosen`` are the caps that SET changed in this plan.
    ``resting`` has, while a branch is running, the incomplete variables that its condition read, with the reasons: the
    results of the branch depend on them. ``cancel`` is set when the plan is cancelled; the task of the running command is
    then cancelled too. ``recalled`` has the answers of PROCESS and CLASSIFY that left items open, by question: the same
    command then asks only about the open items.
    """

    graph: GraphAdapter
    state: StateStore
    llm: LLM | None = None
    models: Mapping[str, LLM] = field(factory=dict)
    context: ContextStore = field(factory=ContextStore)
    caps: Caps = field(factory=Caps)
    ceiling: Caps = field(
        factory=lambda: Caps(max_path_length=8, max_results=10_000_000, max_paths=1_000_000, timeout_s=600.0)
    )
    options: dict[str, Any] = field(factory=dict)
    max_concurrency: int = 8
    events: Events | None = None
    chunks: Callable[[str], str | None] = lambda chunk: None
    plan_id: str = ""
    label: str = ""
    chosen: frozenset[str] = frozenset()
    resting: Mapping[str, tuple[str, ...]] = field(factory=dict)
    cancel: asyncio.Event | None = None
    recalled: dict[Any, Any] = field(factory=dict)


Runner = Callable[[Any, Session], Awaitable[ExecutionResult]]
"""``async (command, session) -> ExecutionResult``: the function that runs one kind of command.

The dispatcher binds the result's value to the command's variable and turns ``StateError``, ``AdapterError`` and ``LLMError``
into statuses. A runner that changes the state calls ``session.state.stage`` and never commits.
"""
