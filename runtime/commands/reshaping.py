"""SELECT: projection and filter of a variable's items."""

from typing import Any

from ...lang.evaluate.conditions import bind, compiled
from ...lang.trees.gasl import SelectFields, SelectWhere
from ..context import Value
from ..records import ExecutionResult
from ..session import Session
from .bindings import beside, rows_of, variables
from .evidence import picked
from .fields import MISSING, check_field, read
from .near import known_of_items, near

__all__ = ["run_select_fields", "run_select_where"]


@beside
def run_select_fields(command: SelectFields, session: Session) -> ExecutionResult:
    """SELECT ... FIELDS: each item becomes an object of exactly these fields, a dotted one under its dotted name.

    What an item lacks is null; what no item has is ``schema_mismatch``. The evidence stays.
    """
    rows = rows_of(command.source, session)
    for path in command.fields:
        check_field(rows, path)
    wanted = [(path.text, path.parts) for path in command.fields]
    items = [{name: _null(read(item, parts)) for name, parts in wanted} for item in rows.items]
    message = "" if items else f"{rows.name} is empty"
    return _result(items, Value(items, picked(rows.value, range(len(items)))), message)


@beside
def run_select_where(command: SelectWhere, session: Session) -> ExecutionResult:
    """SELECT ... WHERE: the items for which the condition is true. What is no object has no fields."""
    rows = rows_of(command.source, session)
    condition = bind(command.where, variables(session))
    holds = compiled(condition).holds
    kept = [index for index, item in enumerate(rows.items) if holds(item if isinstance(item, dict) else {})]
    items = [rows.items[index] for index in kept]
    message = hint = ""
    if not rows.items:
        message = f"{rows.name} is empty"
    elif not items:
        message = f"no item of {rows.name} satisfies the condition"
        hint = near(condition, known_of_items(rows.items))
    return _result(items, Value(items, picked(rows.value, kept)), message, hint)


def _null(value: Any) -> Any:
    return None if value is MISSING else value


def _result(items: list[Any], value: Value, message: str, hint: str = "") -> ExecutionResult:
    status: Any = "success" if items else "empty"
    return ExecutionResult(status, value, len(items), {"count": len(items)}, used="scan", message=message, hint=hint)
