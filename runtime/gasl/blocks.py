"""Runs ``TRY ... CATCH ANY ... FINALLY ... END``: a block whose state changes are applied together or not at all.

Also runs ON and BRANCH. A failure rolls the state back to the start of the block. Bound variables stay bound, because variables
last for the complete plan and CATCH may read them. Nothing is committed before the outermost block ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import attrs
from attrs import frozen

from ...lang.evaluate.conditions import counted, matches
from ...lang.linter.gasl.written_names import with_written_names
from ...lang.trees.gasl import Branch, Command, Item, On, OnStatus, Statement, Try
from .commands.bindings import bound
from .dispatcher import failure, incomplete_sources, resting_on
from .record_writer import Place
from .records import ContextStore, ExecutionRecord, ExecutionResult, Session, Status, Value

# The interface of a running plan that compound commands (a block, a branch) use.


@frozen
class Ran:
    """The records of a sequence of commands, and the record of the command that stopped the sequence early, if any."""

    records: tuple[ExecutionRecord, ...]
    stopped: ExecutionRecord | None = None


class Parts(Protocol):
    """The interface of a running plan that its compound commands use.

    ``statuses`` maps each variable to the status of the command that last produced it.
    """

    session: Session
    statuses: dict[str, Status]

    async def sequence(self, items: Sequence[Item], place: Place, first: int) -> Ran:
        """Run the statements of a block as parts of the command at ``place``, numbered from ``first``. Every failure stops a block."""
        ...

    async def part(self, command: Command, place: Place, number: int) -> ExecutionRecord:
        """Run a command that is contained in another command, and add it to the history."""
        ...

    def shielded(self) -> AbstractContextManager[None]:
        """Let commands run even if the plan is cancelled."""
        ...


_ERROR = "error"
"""The variable that CATCH binds, with the fields ``message``, ``status`` and ``command``: ``${error.message}``."""


async def run_try(flow: Parts, block: Try, place: Place) -> tuple[ExecutionResult, tuple[ExecutionRecord, ...]]:
    """Run a block. CATCH handles a failure of the body, but not a cancellation; FINALLY always runs."""
    state = flow.session.state
    mark = state.mark()
    records: list[ExecutionRecord] = []
    body = await flow.sequence(block.body, place, 1)
    records += body.records
    failed, caught = body.stopped, None
    if failed is not None:
        state.back(mark)
        records = _rolled_back(records)
        if failed.status != "cancelled" and block.caught is not None:
            caught = failed
            with _error_variable(flow.session.context, failed):
                rescue = await flow.sequence(block.caught, place, len(records) + 1)
            failed = rescue.stopped
            records += rescue.records
            if failed is not None:
                state.back(mark)
                records = _rolled_back(records)
    if block.always is not None:
        with flow.shielded():
            last = await flow.sequence(block.always, place, len(records) + 1)
        records += last.records
        if last.stopped is not None:
            state.back(mark)
            records = _rolled_back(records)
            if failed is None or last.stopped.status == "cancelled":
                failed = last.stopped
    return _result(failed, caught, records), tuple(records)


def _rolled_back(records: Sequence[ExecutionRecord]) -> list[ExecutionRecord]:
    return [attrs.evolve(record, rolled_back=True, nested=tuple(_rolled_back(record.nested))) for record in records]


@contextmanager
def _error_variable(context: ContextStore, failed: ExecutionRecord) -> Iterator[None]:
    """Bind the caught error to the variable ``error``, and restore the variable's previous binding afterwards."""
    before = context.value(_ERROR)
    culprit = _culprit(failed)
    message = (culprit.error or {}).get("message", "") or culprit.status
    context.set(_ERROR, {"message": message, "status": culprit.status, "command": culprit.command})
    try:
        yield
    finally:
        if before is None:
            context.forget(_ERROR)
        else:
            context.set(_ERROR, before)


def _culprit(record: ExecutionRecord) -> ExecutionRecord:
    """Return the innermost record that failed."""
    while (inner := next((r for r in reversed(record.nested) if r.status == record.status), None)) is not None:
        record = inner
    return record


def _result(
    failed: ExecutionRecord | None, caught: ExecutionRecord | None, records: Sequence[ExecutionRecord]
) -> ExecutionResult:
    """Return the block's result: a failure, or partial if a command that was not rolled back is partial, or success."""
    summary: dict[str, object] = {}
    if failed is not None and failed.summary.get("asserted") is False:
        summary["asserted"] = False
    if caught is not None:
        culprit = _culprit(caught)
        message = (culprit.error or {}).get("message", "")
        summary["caught"] = {"status": culprit.status, "message": message, "command": culprit.command}
    if failed is None:
        part = next((each for each in records if each.status == "partial" and not each.rolled_back), None)
        if part is None:
            return ExecutionResult(summary=summary)
        said = part.error or {}
        return ExecutionResult(
            "partial", summary=summary, message=said.get("message", ""), hint=said.get("hint", ""),
            caps_hit=tuple(part.metrics.get("caps_hit", ())), incomplete_from=tuple(part.metrics.get("incomplete_from", ())),
        )  # fmt: skip
    error = failed.error or {}
    return ExecutionResult(failed.status, summary=summary, message=error.get("message", ""), hint=error.get("hint", ""))


# ``ON`` and ``BRANCH``: commands that run another command conditionally.

Outcome = tuple[ExecutionResult, tuple[ExecutionRecord, ...], str | None]

_NAMED: Mapping[OnStatus, frozenset[Status]] = {
    "EMPTY": frozenset({"empty"}),
    "ERROR": frozenset({"error", "binding_failure"}),
    "PARTIAL": frozenset({"partial"}),
    "SCHEMA_MISMATCH": frozenset({"schema_mismatch"}),
}
"""Maps each keyword of ON to the statuses that it handles. A binding failure has no separate keyword; ERROR handles it."""


def handles(following: Sequence[Statement], record: ExecutionRecord) -> bool:
    """Return whether one of the ON commands directly after a command handles the status of the command's variable."""
    for statement in following:
        command = statement.command
        if not isinstance(command, On) or command.source.text != record.variable:
            return False
        if record.status in _NAMED[command.status]:
            return True
    return False


async def run_on(flow: Parts, command: On, place: Place) -> Outcome:
    """Run the command after THEN if the variable's last producer ended with ON's status. The status is tested only once."""
    status = flow.statuses.get(command.source.text)
    if status not in _NAMED[command.status]:
        said = {"taken": False, "was": status} if status else {"taken": False}
        return ExecutionResult(summary=said), (), None
    return _result_of_part(await flow.part(command.then, place, 1), {"taken": True})


async def run_branch(flow: Parts, command: Branch, place: Place) -> Outcome:
    """Run the command after THEN if the condition is true, and the command after ELSE if the condition is false or unknown."""
    try:
        named = with_written_names(command.condition, lambda: flow.session.graph.schema)
        condition = bound(named, flow.session)
        with counted() as tally:
            answer = None if condition is None else matches(condition, {})
    except Exception as error:  # if the condition can't be evaluated, BRANCH fails
        return failure(error, flow.session), (), None
    sources = incomplete_sources(command, flow.session)
    said: dict[str, object] = {
        "condition": answer,
        "taken": "THEN" if answer else "ELSE" if command.otherwise is not None else None,
    }
    said |= tally.counts
    chosen = command.then if answer else command.otherwise
    if chosen is None:
        return resting_on(ExecutionResult(summary=said), sources), (), None
    before, flow.session.resting = flow.session.resting, sources
    try:
        record = await flow.part(chosen, place, 1)
    finally:
        flow.session.resting = before
    return _result_of_part(record, said)


def _result_of_part(record: ExecutionRecord, said: Mapping[str, object]) -> Outcome:
    """Convert the record of the executed command to the result of the ON or BRANCH that ran it."""
    error = record.error or {}
    result = ExecutionResult(
        record.status, None if record.held is None else Value(record.held), record.metrics.get("count"),
        summary={**said, **record.summary}, message=error.get("message", ""), hint=error.get("hint", ""),
        caps_hit=tuple(record.metrics.get("caps_hit", ())), incomplete_from=tuple(record.metrics.get("incomplete_from", ())),
    )  # fmt: skip
    return result, (record,), record.variable
