"""The results of a script for the rows of a table, and these results as a table. See ``docs/reference/tables.md#scripts``."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import orjson
from attrs import define, field, frozen

from ...adapters.llm import Usage
from ...adapters.llm.budget import Price
from ...adapters.tables.cells import column_types, json_row
from ...adapters.tables.port import Column, ColumnType
from ..models.caller import Spent
from ..results import NO_USAGE, Run, add_costs, plain, usage_json
from ..seeds.result_store import ResultSource
from ..seeds.result_tables import value_of

RowStatus = Literal["complete", "partial", "failed", "not_asked"]
"""``not_asked``: no model was asked about the row, because a limit or an earlier failure allows no further call."""
_MOST_COLUMNS = 200
"""Maximum number of columns for the keys of objects; objects with more keys are written as JSON."""
FINAL = "final"


@frozen
class RowResult:
    """The result of a script for one row. ``final`` is the value of the final step, as JSON; None if the row failed.

    ``index`` is the position of the row in the table, from 0. ``name`` and ``keys`` are those of the row. ``error`` is the first
    failure of the row's steps, with the step ("" if the row is complete). ``cost`` is in US dollars (None: unknown).
    """

    index: int
    name: str
    status: RowStatus
    keys: tuple[Any, ...] = ()
    final: Any = None
    error: str = ""
    kind: str = ""
    """The kind of the failure, such as "budget" or "timeout"."""
    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON, as it is stored in the folder of a run."""
        return {
            "index": self.index, "name": self.name, "status": self.status, "keys": list(self.keys), "final": self.final,
            "error": self.error or None, "kind": self.kind, "calls": self.calls, **usage_json(self.usage), "cost": self.cost,
            "seconds": round(self.seconds, 3),
        }  # fmt: skip

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "RowResult":
        """Return the result that ``as_json`` wrote."""
        return cls(
            document["index"], document["name"], document["status"], tuple(document["keys"]), document["final"],
            document["error"] or "", document.get("kind", ""), document["calls"],
            Usage(document["prompt_tokens"], document["completion_tokens"], document.get("estimated", False)),
            document["cost"], document["seconds"],
        )  # fmt: skip


def result_of(row: Any, run: Run) -> RowResult:
    """Return the result of the finished ``run`` for the ``TableRow`` ``row``."""
    status: RowStatus = "complete" if run.status == "complete" else "failed" if run.output is None else "partial"
    error, kind = ("", "") if status == "complete" else _first_failure(run)
    if (
        status == "failed"
        and not run.calls
        and any(s.failed is not None and s.failed.is_unasked for s in run.steps.values())
    ):
        status = "not_asked"
    final = None if run.output is None else _json_value(plain(run.value))
    return RowResult(
        row.index, row.name, status, row.keys, final, error, kind, run.calls, run.usage, run.cost, run.seconds
    )


def _json_value(value: Any) -> Any:
    """Return a value as JSON can hold it: integers of more than 64 bits become texts, as in tables."""
    try:
        return orjson.loads(json_row([value]))[0]
    except (TypeError, ValueError, RecursionError):  # half a surrogate pair, or a plugin's value
        return json.dumps(value, default=str)


def _first_failure(run: Run) -> tuple[str, str]:
    """Return the first failure of a run as a message, and its kind."""
    for step in run.steps.values():
        if step.failed is not None:
            return f"({step.id}): {step.reason}", step.failed.kind
        for item in step.failed_items:
            return f"({step.id}){'' if item.item is None else f' item {item.item}'}: {item.message}", item.kind
    skipped = next((step for step in run.steps.values() if step.status == "skipped" and not step.unmet), None)
    return (f"({skipped.id}): {skipped.reason}" if skipped is not None else "the script has errors"), ""


@define
class RowTotals:
    """The totals of a run over rows. ``statuses`` counts the results of this process by status.

    ``before`` is the number of rows that an earlier process finished, ``calls`` the number of requests sent, ``cost`` is in US
    dollars (None: unknown). ``stopped`` is the failure after which no further row was run ("" if there was none). ``prices``
    maps specs to known prices.
    """

    statuses: Counter[str] = field(factory=Counter)
    before: int = 0
    cancelled: bool = False
    stopped: str = ""
    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    seconds: float = 0.0
    run_id: str = ""
    warnings: list[str] = field(factory=list)
    prices: Mapping[str, Price] = field(factory=dict)

    def add(self, result: RowResult) -> None:
        """Count one result."""
        self.statuses[result.status] += 1
        self.pay(result)

    def pay(self, spent: RowResult | Spent) -> None:
        """Add the cost of a result, or of a row that was cancelled."""
        self.calls += spent.calls
        self.usage += spent.usage
        self.cost = add_costs(self.cost, spent.cost)

    @property
    def rows(self) -> int:
        """Number of rows with a result, including those of an earlier process."""
        return self.statuses.total() + self.before

    @property
    def status(self) -> str:
        """complete, partial (some rows are not complete), failed (no row has an output) or cancelled."""
        if self.cancelled:
            return "cancelled"
        if self.statuses["complete"] + self.before == self.rows:
            return "complete"
        return "failed" if self.statuses["failed"] + self.statuses["not_asked"] == self.rows else "partial"


# Results as a table. The types of the columns of the final value come from the values, because a script need not declare them.


@frozen
class TableOfRows:
    """The results as a table, a row for each input row: ``index``, key columns, ``status``, the final value, ``error``, figures.

    If all final values are objects, each of their keys has a column ``final.KEY``; otherwise the column ``final`` has the value.
    Use ``of`` to create it.
    """

    key: tuple[Column, ...]
    final: tuple[Column, ...]
    is_object: bool
    columns: tuple[Column, ...] = field(init=False)

    @columns.default
    def _default_columns(self) -> tuple[Column, ...]:
        own = [Column("index", "int")]
        middle = [Column("status")]
        last = [
            Column("error"),
            *(Column(name, "int") for name in _FIGURES),
            Column("estimated", "bool"),
            Column("cost", "float"),
        ]
        taken = {each.name for each in (*own, *middle, *self.final, *last)}
        keys = []
        for column in self.key:
            name = column.name
            while name in taken:
                name = f"key_{name}"
            taken.add(name)
            keys.append(Column(name, column.type, column.source_type))
        return (*own, *keys, *middle, *self.final, *last)

    @classmethod
    def of(cls, source: ResultSource, key: Sequence[Column] = ()) -> "TableOfRows":
        """Return the table for these results, which are read once to find the columns of the final value."""
        is_object, has_value = True, False
        kinds = _Kinds()
        whole = _Kinds()
        for document in source.documents():
            value = document[FINAL]
            if value is None:
                continue
            has_value = True
            whole.add({FINAL: value})
            is_object = is_object and isinstance(value, dict)
            if is_object:
                kinds.add(value)
                is_object = len(kinds.samples) <= _MOST_COLUMNS
        if is_object and has_value and kinds.samples:
            return cls(tuple(key), tuple(Column(f"{FINAL}.{name}", kind) for name, kind in kinds.types()), True)
        found = dict(whole.types())
        return cls(tuple(key), (Column(FINAL, found.get(FINAL, "text")),), False)

    def rows(self, source: ResultSource) -> Iterator[list[Any]]:
        """Yield the rows in the order of the input."""
        names = [column.name.removeprefix(f"{FINAL}.") for column in self.final]
        for document in source.documents():
            value = document[FINAL]
            values = [(value or {}).get(name) for name in names] if self.is_object else [value]
            yield [
                document["index"], *document["keys"], document["status"],
                *(_cell(each, column.type) for each, column in zip(values, self.final, strict=True)),
                document["error"], *(document[name] for name in _FIGURES), document.get("estimated", False), document["cost"],
            ]  # fmt: skip

    def objects(self, source: ResultSource) -> Iterator[dict[str, Any]]:
        """Yield the rows as JSON objects with the same names, in which ``final`` is the value itself."""
        keys = [column.name for column in self.columns[1 : 1 + len(self.key)]]
        for document in source.documents():
            yield {
                "index": document["index"], **dict(zip(keys, document["keys"], strict=True)), "status": document["status"],
                FINAL: document[FINAL], "error": document["error"], **{name: document[name] for name in _FIGURES},
                "estimated": document.get("estimated", False), "cost": document["cost"],
            }  # fmt: skip


_FIGURES = ("calls", "prompt_tokens", "completion_tokens")


@define
class _Kinds:
    """Collects the types of the values of keys. Only one value of each type is held."""

    samples: dict[str, dict[type, Any]] = field(factory=dict)

    def add(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self.samples.setdefault(name, {}).setdefault(type(value), value)

    def types(self) -> list[tuple[str, ColumnType]]:
        rows = ({name: value} for name, kinds in self.samples.items() for value in kinds.values())
        return [(name, "json" if kind == "list" else kind) for name, kind in column_types(rows).items()]


def _cell(value: Any, kind: ColumnType) -> Any:
    if kind == "json":
        return None if value is None else orjson.dumps(value).decode()
    return value_of(value, kind)


@define
class RowsInMemory:
    """Results that are held in memory."""

    results: Sequence[RowResult]

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the results in the order of the rows."""
        return (each.as_json() for each in sorted(self.results, key=lambda result: result.index))
