"""REQUIRE and ASSERT: what must hold for a plan to go on, and the values that made it fail."""

from typing import Any

from ...lang.evaluate.conditions import bind, evaluate, length, look_up
from ...lang.printer.gasl import format_condition
from ...lang.trees.conditions import Comparison, Condition, Length, NullTest, Variable
from ...lang.trees.gasl import Assert, Require
from ...lang.trees.node import walk
from ..records import ExecutionResult
from ..session import Session
from .bindings import refusing, unbound, variables
from .excerpts import clipped, excerpt

__all__ = ["run_assert", "run_require"]

_SHOWN = 200
_VALUES = 5


@refusing
async def run_require(command: Require, session: Session) -> ExecutionResult:
    """REQUIRE EXISTS: ``binding_failure`` where nothing is bound to the name. An empty list exists."""
    if not session.context.exists(command.source.text):
        raise unbound(command.source.text, session)
    return ExecutionResult("success")


@refusing
async def run_assert(command: Assert, session: Session) -> ExecutionResult:
    """ASSERT: fails where the condition is not true. ``empty`` when what it tests is empty, else ``error``."""
    values = variables(session)
    truth = evaluate(bind(command.condition, values), lambda field: None)
    if truth:
        return ExecutionResult("success")
    tested = _tested(command.condition, values)
    told = "; ".join(f"{name} is {_shown(value)}" for name, value, _ in tested[:_VALUES])
    outcome = "is unknown" if truth is None else "does not hold"
    message = f"the assertion {outcome}: {clipped(format_condition(command.condition), _SHOWN)}"
    empty = any(nothing for _, _, nothing in tested)
    return ExecutionResult("empty" if empty else "error", message=f"{message}; {told}" if told else message)


def _tested(condition: Condition, values: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return what the condition looks at on its left sides: name, value, and whether there is nothing in it."""
    found: dict[str, tuple[str, Any, bool]] = {}
    for node in walk(condition):
        if not isinstance(node, Comparison | NullTest):
            continue
        left = node.left
        variable = left.variable if isinstance(left, Length) else left
        if not isinstance(variable, Variable):
            continue
        value = look_up(values.get(variable.name), variable.path)
        nothing = value is None or length(value) == 0
        name = _name(variable)
        if isinstance(left, Length):
            name, value = f"LEN {name}", length(value)
        found[name] = (name, value, nothing)
        right = getattr(node, "right", None)
        if isinstance(right, Variable):
            name = _name(right)
            found.setdefault(name, (name, look_up(values.get(right.name), right.path), False))
    return list(found.values())


def _name(variable: Variable) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in variable.path)
    return f"${{{variable.name}{path}}}"


def _shown(value: Any) -> str:
    return excerpt(value, _SHOWN)
