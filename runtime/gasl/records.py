"""Results and records of GASL commands. See ``docs/design/gasl.md#execution``."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field, frozen

from ...adapters.graph import Caps, GraphAdapter
from ...adapters.llm import LLM, Usage
from ...adapters.state import Evidence, StateStore
from ...lang.diagnostic import Diagnostic
from ..events import Events
from ..excerpts import abridged, cut, storable
from .relation import Relation, fields_of_items, plain_of

if TYPE_CHECKING:
    from ...lang.linter.gasl.contents import Contents
    from ..models.caller import Spent

# The variables of a plan: the values, with evidence, that commands bind to the names after ``AS``. See
# ``docs/design/gasl.md#execution``.


@frozen
class Value:
    """A JSON value with evidence. A list has evidence for each item, by index; any other value has its evidence at index 0.

    ``held`` is the value, or a relation whose items are built on access; ``value`` has a list in place of a relation.

    ``evidence`` may be lazy: a sequence that computes its elements on access, so that a million found nodes cost nothing until
    they are stored. ``incomplete`` has the reasons why the value is incomplete (empty if it is complete); values computed from
    an incomplete value inherit its reasons. ``graph_items`` is the kind of the items if all are complete nodes, edges or paths
    of the graph; such items have computed fields too. If a command returned the value, ``contents`` is the description that the
    linter would use for it in a complete program.
    """

    held: Any = field(alias="value")
    evidence: Sequence[Sequence[Evidence]] = ()
    incomplete: tuple[str, ...] = ()
    graph_items: Literal["", "nodes", "edges", "paths"] = ""
    contents: "Contents | None" = field(default=None, eq=False, repr=False)

    @property
    def value(self) -> Any:
        """The plain value. The items of a relation are built on the first access."""
        return plain_of(self.held)

    @property
    def count(self) -> int:
        """Number of items of a list, or of keys of an object; 0 for null, and 1 for any other value."""
        if isinstance(self.held, list | dict | Relation):
            return len(self.held)
        return 0 if self.held is None else 1

    def evidence_at(self, index: int) -> Sequence[Evidence]:
        """Return the evidence of the item at ``index``; empty if the item has no evidence."""
        return self.evidence[index] if index < len(self.evidence) else ()


@define
class ContextStore:
    """The variables of a plan with their values. Variables last for one plan; only the state is persistent."""

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
        """Return all fields of the items of ``var``, in order of first occurrence. Return None unless the value is a list of objects.

        The result is cached, so each value is scanned only once.
        """
        bound = self._values.get(var)
        if bound is None:
            return None
        known = self._fields.get(var)
        if known is None or known[0] is not bound:
            known = self._fields[var] = (bound, _fields_of(bound.held))
        return known[1]

    def contents(self, var: str) -> "Contents | None":
        """Return the linter's description of the value of ``var``. Return None if no command has bound ``var``."""
        bound = self._values.get(var)
        return None if bound is None else bound.contents

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
    return fields_of_items(value) if isinstance(value, list | Relation) else None


def _summary(bound: Value, most: int) -> Mapping[str, Any]:
    value = bound.held
    if isinstance(value, list | Relation):
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

    ``value`` is bound to the command's variable; ``count`` is the number of its items or fields, or the value if it is a
    number. ``summary`` is the object for the history (``{"count": 1475}`` and other data to save). ``caps_hit`` names the caps
    that cut the result short. ``message`` states in one sentence what is wrong or missing; ``hint`` suggests a similar name or
    a fix. ``failed_items`` are the items (id and reason) for which a model gave no result. ``used`` names the method that
    computed the result. ``kind`` is the kind of a model's error (``LLMError.kind``) if a model call failed. ``incomplete_from``
    names the incomplete variables and keys from which the result was computed. ``written`` is the value that the command wrote
    to the state; None if the command wrote nothing. If the value has more items than the record, ``shown`` is the number of
    items in the record. ``notes`` are sentences about what the result covers, whatever the status.
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
    shown: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of_items(
        cls, items: "list[Any] | Relation", evidence: Any = (), summary: Mapping[str, Any] | None = None, **rest: Any
    ) -> "ExecutionResult":
        """Return the result with the value ``items``. Its status is success, or empty if ``items`` is empty."""
        count = len(items)
        return cls(
            "success" if items else "empty", Value(items, evidence), count, {"count": count, **(summary or {})}, **rest
        )


@frozen
class ExecutionRecord:
    """The record of one executed command. Times are ISO 8601 in UTC; ``duration`` is in seconds.

    ``step`` is the number of the command, from 1, among the outermost commands of all plans of a state. A nested command has the
    ``step`` of the outermost command, and its own ``part`` ("1", "2.1"). ``held`` is the value, or a relation, of at most
    ``max_results`` items. ``metrics`` has count, shape, caps_hit, calls, tokens and so on, if known. ``error`` is
    ``{"message", "hint", "kind"?, "diagnostic"?, "diagnostics"?}`` if the status is not a success. ``nested`` are the records of
    the commands that the command ran (a branch, the body of a TRY). ``rolled_back`` is true if the command's state changes were undone.
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
    held: Any = field(default=None, repr=False, alias="value")
    variable: str | None = None
    nested: "tuple[ExecutionRecord, ...]" = ()
    part: str = ""
    rolled_back: bool = False

    @property
    def value(self) -> Any:
        """The plain value; None if the record has no value. The items of a relation are built on the first access."""
        return plain_of(self.held)

    @property
    def ok(self) -> bool:
        """Whether the command succeeded, succeeded partly, or found nothing."""
        return self.status not in STOPPING and self.status != "cancelled"

    @property
    def label(self) -> str:
        """``step``, followed by a point and ``part`` if the command is nested: "3", "3.1"."""
        return f"{self.step}.{self.part}" if self.part else str(self.step)


_SAID = 5
"""Maximum number of columns, and of operations, that a sentence about unused rows names."""


def unused_rows(metrics: Mapping[str, Any]) -> str:
    """Return a sentence about nulls in computed columns, operands of the wrong type and values of several types; "" if none occurred.

    For nulls that AGGREGATE ignored, the sentence has only the count, not the reason.
    """
    parts = []
    for column, reasons in _items_of(metrics, "nulls"):
        counts = reasons.items() if isinstance(reasons, Mapping) else [("ignored", reasons)]
        parts += [f"{column}: {_number(count)} null ({reason})" for reason, count in counts]
    examples = metrics.get("examples")
    for text, count in _items_of(metrics, "mismatched"):
        if some := _some(examples, text, count):
            parts.append(f"{text} left out {_rows(count)} whose values have another type{some}")
        else:
            parts.append(f"{text} is unknown for {_rows(count)}, because of the types of the values")
    for text, counts in _items_of(metrics, "equal_texts"):
        for name, verb in (("left_out", "left out"), ("kept", "kept")):
            if count := counts.get(name) if isinstance(counts, Mapping) else None:
                parts.append(
                    f"{text} {verb} {_rows(count)} with the same value in another type{_some(examples, text, count)}"
                )
    for text, kinds in _items_of(metrics, "mixed"):
        if isinstance(kinds, Mapping):
            ordered = " before ".join(
                f"{_number(count)} {kind}{'' if count == 1 else 's'}" for kind, count in kinds.items()
            )
            others = sum(count for count in list(kinds.values())[1:] if isinstance(count, int))
            parts.append(f"{text} sorts {ordered}{_some(examples, text, others)}")
    return "; ".join(parts)


def _items_of(metrics: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    """Return the first entries of a part of the metrics. The metrics may come from a file that was edited."""
    found = metrics.get(name)
    return list(found.items())[:_SAID] if isinstance(found, Mapping) else []


def _number(count: Any) -> str:
    return f"{count:,}" if isinstance(count, int) else str(count)


def _rows(count: Any) -> str:
    return f"{_number(count)} {'row' if count == 1 else 'rows'}"


def _some(examples: Any, text: str, count: Any) -> str:
    """Return the examples under ``text``, of ``count`` values, in parentheses; "" without examples."""
    found = examples.get(text) if isinstance(examples, Mapping) else None
    if not found or not isinstance(found, list | tuple):
        return ""
    more = ", …" if isinstance(count, int) and count > len(found) else ""
    return f" ({', '.join(map(str, found))}{more})"


def coverage(metrics: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sentences about what a result covers: its notes, the message of a success, and the unused rows.

    Every display of a command shows them.
    """
    notes = metrics.get("notes")
    found = [*(notes if isinstance(notes, list | tuple) else ()), metrics.get("remark"), unused_rows(metrics)]
    return tuple(dict.fromkeys(str(each) for each in found if each))


def coverage_of(record: ExecutionRecord) -> tuple[str, ...]:
    """Return ``coverage`` of a command and of the commands that it ran."""
    inner = [note for nested in record.nested for note in coverage_of(nested)]
    return tuple(dict.fromkeys((*coverage(record.metrics), *inner)))


def plan_status(records: Sequence[ExecutionRecord]) -> Status:
    """Return the status of a complete plan from the records of its outermost level.

    The status is cancelled if any record is cancelled. Otherwise, if the last record failed or is empty, the plan has the status
    of this record. Otherwise, the status is partial if the last record is partial, or if an earlier record failed or is partial.
    An earlier record that is partial only because it omits items of its variable does not count. In all other cases, also for a
    plan without commands, the status is success. Never raises.
    """
    if any(record.status == "cancelled" for record in records):
        return "cancelled"
    if not records:
        return "success"
    if (last := records[-1].status) in STOPPING or last == "empty":
        return last
    if last == "partial" or any(not record.ok for record in records):
        return "partial"
    return (
        "partial"
        if any(each.status == "partial" and not _is_only_shown_in_part(each) for each in records)
        else "success"
    )


def _is_only_shown_in_part(record: ExecutionRecord) -> bool:
    """Return whether a record is partial only because it omits items of its variable."""
    return "shown" in record.summary and list(record.metrics.get("caps_hit", ())) == ["max_results"]


def last_with_value(records: Sequence[ExecutionRecord]) -> ExecutionRecord | None:
    """Return the last record that bound a variable or explained a command, also among nested records; None if no record did."""
    for record in reversed(records):
        if (found := last_with_value(record.nested)) is not None:
            return found
        if record.variable is not None or (record.value is not None and record.command[:7].upper() == "EXPLAIN"):
            return record
    return None


_COMMAND = 2_000
"""Maximum characters of a command in the history; ``replay.commands`` has the complete text."""


def as_history(record: ExecutionRecord, most: int = 200) -> dict[str, Any]:
    """Return the record as a history entry. Inputs and outputs are cut to ``most`` characters."""
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
    if isinstance(
        fields := (record.metrics.get("shape") or {}).get("fields"), list
    ):  # a planner needs the names of all columns
        entry["metrics"]["shape"]["fields"] = [cut(str(name), most) for name in fields]
    if notes := record.metrics.get("notes"):  # a note that is cut would not say what the result covers
        entry["metrics"]["notes"] = [cut(str(note), 1_000) for note in notes]
    if record.part:
        entry["part"] = record.part
    if record.variable is not None:
        entry["variable"] = record.variable
        entry["output"] = abridged(record.held, most)
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

    ``models`` are the clients that ``SET llm.model`` may name; the name is then in ``options["model"]``. The other ``options``
    are the current model options (temperature, max_tokens ...). ``caps`` are the current caps, ``ceiling`` the maximum to which
    SET may raise the caps. ``chunks`` maps the id of a chunk to its text, for snippets. ``plan_id`` is the id of the plan.
    ``label`` names the command in events ("3", "3.1"). ``chosen`` are the caps that SET changed in this plan. While a branch is
    running, ``resting`` has the incomplete variables that its condition read, with the reasons, because the results of the
    branch depend on them. ``cancel`` is set when the plan is cancelled; the task of the running command is then cancelled too.
    ``recalled`` maps questions of PROCESS and CLASSIFY to answers that left items open: the same command then asks only about
    these items. ``parameters`` maps the names of parameters to the values that were given to the program from outside;
    ``declared`` has the values that PARAM bound; ``missing`` names the parameters without a value.
    """

    graph: GraphAdapter
    state: StateStore
    llm: LLM | None = None
    models: Mapping[str, LLM] = field(factory=dict)
    context: ContextStore = field(factory=ContextStore)
    caps: Caps = field(factory=Caps)
    ceiling: Caps = field(
        factory=lambda: Caps(
            max_path_length=8,
            max_results=10_000_000,
            max_paths=1_000_000,
            timeout_s=600.0,
            max_pattern_edges=10,
            max_examined=10_000_000_000,
        )
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
    parameters: Mapping[str, Any] = field(factory=dict)
    declared: dict[str, Value] = field(factory=dict)
    missing: tuple[str, ...] = ()
    spent: "Spent | None" = None
    """The cost of the running command's model calls; None if the command has not asked a model."""


Runner = Callable[[Any, Session], Awaitable[ExecutionResult]]
"""``async (command, session) -> ExecutionResult``: the function that runs one kind of command.

The dispatcher binds the result's value to the command's variable and turns ``StateError``, ``AdapterError`` and ``LLMError``
into statuses. A runner that changes the state calls ``session.state.stage`` and never commits.
"""
