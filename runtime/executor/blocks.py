"""``TRY ... CATCH ANY ... FINALLY ... END``: a block whose changes of the state are there together or not at all.

What fails takes the state back to where the block began; variables that were bound stay bound (they live for the plan, and
CATCH may want to look at them). Nothing is committed before the outermost block ends.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from ...lang.trees.gasl import Try
from ..context import ContextStore
from ..records import ExecutionRecord, ExecutionResult
from .parts import Parts
from .recording import Place

__all__ = ["run_try"]

_ERROR = "error"
"""The variable that CATCH has: ``${error.message}``, ``.status``, ``.command``."""


async def run_try(flow: Parts, block: Try, place: Place) -> tuple[ExecutionResult, tuple[ExecutionRecord, ...]]:
    """Run a block. CATCH takes what stopped its body, but not a cancellation; FINALLY always runs."""
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
            with _bound(flow.session.context, failed):
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
def _bound(context: ContextStore, failed: ExecutionRecord) -> Iterator[None]:
    """Bind what was caught, and afterwards what had the name before."""
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
    """Return what the block came to: partial where what one of its commands did, and was not taken back, is."""
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
