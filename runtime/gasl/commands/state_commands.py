"""REQUIRE and ASSERT, which test conditions for continuing a plan, and DECLARE, RESET and UPDATE, which change the state."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....adapters.state import DeclareKey, Evidence, MergeInto, ReplaceWith, ResetKey, counted_label
from ....lang.evaluate.conditions import bind, evaluate, length, look_up
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees import walk
from ....lang.trees.conditions import Comparison, Condition, Length, NullTest, Variable
from ....lang.trees.gasl import Assert, Declare, Require, Reset, Update
from ...excerpts import clipped, excerpt
from ..records import ExecutionResult, Session, Value
from .bindings import refusing, unbound, variables
from .evidence import MOST, bounded, united

_SHOWN = 200
_VALUES = 5


@refusing
async def run_require(command: Require, session: Session) -> ExecutionResult:
    """Run REQUIRE EXISTS: fail with ``binding_failure`` if the name is not bound. A name that is bound to an empty list exists."""
    if not session.context.exists(command.source.text):
        raise unbound(command.source.text, session)
    return ExecutionResult("success")


@refusing
async def run_assert(command: Assert, session: Session) -> ExecutionResult:
    """Run ASSERT: if the condition is not true, fail with the status ``empty`` if the tested value is empty, else ``error``."""
    values = variables(session)
    truth = evaluate(bind(command.condition, values), lambda field: None)
    if truth:
        return ExecutionResult("success")
    tested = _left_sides(command.condition, values)
    values_text = "; ".join(f"{name} is {excerpt(value, _SHOWN)}" for name, value, _ in tested[:_VALUES])
    outcome = "is unknown" if truth is None else "does not hold"
    message = f"the assertion {outcome}: {clipped(format_condition(command.condition), _SHOWN)}"
    empty = any(nothing for _, _, nothing in tested)
    return ExecutionResult(
        "empty" if empty else "error", message=f"{message}; {values_text}" if values_text else message
    )


def _left_sides(condition: Condition, values: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return each compared variable in the condition: its name, its value, and whether it is a left side that is empty."""
    found: dict[str, tuple[str, Any, bool]] = {}
    for node in walk(condition):
        if not isinstance(node, Comparison | NullTest):
            continue
        left = node.left
        variable = left.operand if isinstance(left, Length) else left
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


# DECLARE, RESET and UPDATE: the only commands that change the state. They stage changes; the executor commits them.

_PIECES = 16_384
"""Maximum pieces of evidence that the rows of one UPDATE add to a COUNTER; every key gets at least one piece."""


@refusing
async def run_declare(command: Declare, session: Session) -> ExecutionResult:
    """Declare a key. Raises ``StateError``."""
    key = command.key.text
    session.state.stage(DeclareKey(key, command.type, command.description))
    size = _size(session, key)
    return ExecutionResult(
        "success", None, size, {"key": key, "type": command.type, "count": size}, written=Value(None)
    )


@refusing
async def run_reset(command: Reset, session: Session) -> ExecutionResult:
    """Reset a key: empty it, but keep its declaration. Raises ``StateError``."""
    key = command.key.text
    before = _size(session, key)
    session.state.stage(ResetKey(key))
    size = _size(session, key)
    return ExecutionResult(
        "success", None, size, {"key": key, "count": size, "removed": before - size}, written=Value(None)
    )


@refusing
async def run_update(command: Update, session: Session) -> ExecutionResult:
    """Update a key with a variable and its evidence; the count is the new size of the key. Raises ``StateError``.

    The state decides which values a key accepts. The evidence is stored, too. Each field of an object gets the evidence of the
    object; each key of a COUNTER gets the evidence of its row of counts; a number gets the combined evidence.
    """
    key = command.key.text
    value = session.context.value(command.source.text)
    if value is None:
        raise unbound(command.source.text, session)
    kind = session.state.snapshot().kind(key)
    before = _size(session, key)
    evidence: Sequence[Sequence[Evidence]] | Mapping[str, Sequence[Evidence]] = value.evidence
    if kind == "DICT" and isinstance(value.value, dict):
        pieces = value.evidence_at(0)
        evidence = dict.fromkeys(value.value, pieces) if pieces else ()
    elif kind == "COUNTER":
        evidence = _of_counts(value)
    change = ReplaceWith if command.mode == "REPLACE" else MergeInto
    reasons = (*value.incomplete, *(reason for each in session.resting.values() for reason in each))
    session.state.stage(change(key, value.value, evidence, tuple(dict.fromkeys(reasons))))
    size = _size(session, key)
    summary = {"key": key, "count": size, "added": size - before, "mode": command.mode or "MERGE"}
    return ExecutionResult("success", None, size, summary, written=value)


def _of_counts(value: Value) -> Sequence[Sequence[Evidence]]:
    """Return evidence for a COUNTER: in the evidence of a row of counts, ``key`` of each piece names the counted key.

    With many keys, each key has fewer pieces; ``more`` in the last piece of a key counts the omitted pieces.
    """
    rows = value.value if isinstance(value.value, list) else []
    labels = [counted_label(row) for row in rows]
    if not rows or None in labels:  # the value is a number, or a value that the state rejects
        return [pieces] if (pieces := united(value.evidence)) else ()
    most = max(1, min(MOST, _PIECES // len(rows)))
    return [
        [{**piece, "key": label} for piece in bounded(value.evidence_at(at), most)] for at, label in enumerate(labels)
    ]


def _size(session: Session, key: str) -> int:
    snapshot = session.state.snapshot()
    return snapshot.declared(key)[0].size if snapshot.kind(key) is not None else 0


RUNNERS = {
    Declare: run_declare,
    Reset: run_reset,
    Update: run_update,
    Require: run_require,
    Assert: run_assert,
}
