"""DECLARE, RESET and UPDATE: the only commands that change the state. They stage; who runs the plan commits."""

from collections.abc import Mapping, Sequence

from ...adapters.state import DeclareKey, Evidence, MergeInto, ReplaceWith, ResetKey, counted_label
from ...lang.trees.gasl import Declare, Reset, Update
from ..context import Value
from ..records import ExecutionResult
from ..session import Session
from .bindings import refusing, unbound
from .evidence import MOST, bounded, united

__all__ = ["run_declare", "run_reset", "run_update"]

_PIECES = 16_384
"""Pieces of evidence that the rows of one UPDATE bring to a COUNTER at most, but one for each key."""


@refusing
async def run_declare(command: Declare, session: Session) -> ExecutionResult:
    """DECLARE a key. Raises ``StateError``."""
    key = command.key.text
    session.state.stage(DeclareKey(key, command.type, command.description))
    size = _size(session, key)
    return ExecutionResult(
        "success", None, size, {"key": key, "type": command.type, "count": size}, written=Value(None)
    )


@refusing
async def run_reset(command: Reset, session: Session) -> ExecutionResult:
    """RESET a key: empty it, keep its declaration. Raises ``StateError``."""
    key = command.key.text
    before = _size(session, key)
    session.state.stage(ResetKey(key))
    size = _size(session, key)
    return ExecutionResult(
        "success", None, size, {"key": key, "count": size, "removed": before - size}, written=Value(None)
    )


@refusing
async def run_update(command: Update, session: Session) -> ExecutionResult:
    """UPDATE a key with a variable and its evidence; the count is what the key has now. Raises ``StateError``.

    What takes what is the state's to say. The evidence goes along: of an object to each of its fields, of rows of counts to each key of a
    COUNTER, of a number united.
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
    return ExecutionResult(
        "success",
        None,
        size,
        {"key": key, "count": size, "added": size - before, "mode": command.mode or "MERGE"},
        written=value,
    )


def _of_counts(value: Value) -> Sequence[Sequence[Evidence]]:
    """Return a COUNTER's evidence: each piece of a row of counts says in ``key`` which count it is of.

    With many keys each has fewer pieces; ``more`` in a key's last piece counts the items that it has beside.
    """
    rows = value.value if isinstance(value.value, list) else []
    labels = [counted_label(row) for row in rows]
    if not rows or None in labels:  # a number; what is no counts at all is refused by the state
        return [pieces] if (pieces := united(value.evidence)) else ()
    most = max(1, min(MOST, _PIECES // len(rows)))
    return [
        [{**piece, "key": label} for piece in bounded(value.evidence_at(at), most)] for at, label in enumerate(labels)
    ]


def _size(session: Session, key: str) -> int:
    snapshot = session.state.snapshot()
    return snapshot.declared(key)[0].size if snapshot.kind(key) is not None else 0
