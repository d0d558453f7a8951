"""``ON`` and ``BRANCH``: commands that run another one or not."""

from collections.abc import Mapping, Sequence

from ...lang.evaluate.conditions import matches
from ...lang.trees.gasl import Branch, On, OnStatus, Statement
from ..commands.bindings import bound
from ..context import Value
from ..dispatcher import failure, incomplete_sources, resting_on
from ..records import ExecutionRecord, ExecutionResult, Status
from .parts import Parts
from .recording import Place

__all__ = ["handles", "run_branch", "run_on"]

Went = tuple[ExecutionResult, tuple[ExecutionRecord, ...], str | None]

_NAMED: Mapping[OnStatus, frozenset[Status]] = {
    "EMPTY": frozenset({"empty"}),
    "ERROR": frozenset({"error", "binding_failure"}),
    "PARTIAL": frozenset({"partial"}),
    "SCHEMA_MISMATCH": frozenset({"schema_mismatch"}),
}
"""Which statuses an ON takes. A binding failure has no name of its own; it is an ERROR."""


def handles(following: Sequence[Statement], record: ExecutionRecord) -> bool:
    """Say whether one of the ONs directly after a command is for what became of its variable."""
    for statement in following:
        command = statement.command
        if not isinstance(command, On) or command.source.text != record.variable:
            return False
        if record.status in _NAMED[command.status]:
            return True
    return False


async def run_on(flow: Parts, command: On, place: Place) -> Went:
    """Run what follows THEN if the last command that gave the variable ended so. It is asked once, where it stands."""
    status = flow.statuses.get(command.source.text)
    if status not in _NAMED[command.status]:
        said = {"taken": False, "was": status} if status else {"taken": False}
        return ExecutionResult(summary=said), (), None
    return _as_its_own(await flow.part(command.then, place, 1), {"taken": True})


async def run_branch(flow: Parts, command: Branch, place: Place) -> Went:
    """Run what follows THEN if the condition is true, else, also when it is unknown, what follows ELSE."""
    try:
        condition = bound(command.condition, flow.session)
        answer = None if condition is None else matches(condition, {})
    except Exception as error:  # a condition that can't be evaluated fails its command, as in the dispatcher
        return failure(error, flow.session), (), None
    sources = incomplete_sources(command, flow.session)
    said = {"condition": answer, "taken": "THEN" if answer else "ELSE" if command.otherwise is not None else None}
    chosen = command.then if answer else command.otherwise
    if chosen is None:
        return resting_on(ExecutionResult(summary=said), sources), (), None
    before, flow.session.resting = flow.session.resting, sources
    try:
        record = await flow.part(chosen, place, 1)
    finally:
        flow.session.resting = before
    return _as_its_own(record, said)


def _as_its_own(record: ExecutionRecord, said: Mapping[str, object]) -> Went:
    """Return what became of the command that was run as what became of the one that ran it."""
    error = record.error or {}
    result = ExecutionResult(
        record.status, None if record.value is None else Value(record.value), record.metrics.get("count"),
        summary={**said, **record.summary}, message=error.get("message", ""), hint=error.get("hint", ""),
        caps_hit=tuple(record.metrics.get("caps_hit", ())), incomplete_from=tuple(record.metrics.get("incomplete_from", ())),
    )  # fmt: skip
    return result, (record,), record.variable
