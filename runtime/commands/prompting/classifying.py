"""CLASSIFY: a model gives every item exactly one of the labels, a question an item.

One item a question: the answer is then one of a few texts, which servers and the local model enforce by grammar; equal items
are equal questions, so a cache answers them once.
"""

from typing import Any

from ....adapters.state import Evidence
from ....lang.trees.gasl import Classify
from ...context import Value
from ...records import ExecutionResult, Status
from ...results import Failed
from ...session import Session
from ..bindings import refusing, rows_of
from ..evidence import derived
from ..excerpts import excerpt
from .asking import Answer, Asker, Unanswered
from .showing import shown
from .wording import build_classify_prompt

__all__ = ["run_classify"]


@refusing
async def run_classify(command: Classify, session: Session) -> ExecutionResult:
    """CLASSIFY: each item with its ``label``, in the order of the items. What is no object stands under ``value``.

    A field that is called ``label`` already is kept as ``item.label``. An item that got none is left out and named.
    """
    source = rows_of(command.source, session)
    if not source.items:
        return ExecutionResult(
            "empty", Value([]), 0, {"count": 0}, message=f"{source.name} is empty: no model was asked"
        )
    asker = Asker(session)
    labels = tuple(dict.fromkeys(command.labels))
    ids = shown(source.items, name=source.name).ids
    answers: list[Answer | None] = [None] * len(source.items)
    failed: dict[int, Failed] = {}

    async def classify(index: int) -> None:
        prompt = build_classify_prompt(excerpt(source.items[index]), command.instruction, labels)
        try:
            answers[index] = await asker.ask(prompt, index, kind=labels)
        except Unanswered as unanswered:
            failed[index] = unanswered.failed

    await asker.each(len(source.items), classify)
    asker.settle(not failed)
    made = [(index, answer) for index, answer in enumerate(answers) if answer is not None]
    items = [_labelled(source.items[index], answer.text) for index, answer in made]

    def evidence(at: int) -> tuple[Evidence, ...]:
        index, answer = made[at]
        return (answer.evidence(asker.temperature, [ids[index]], [ids[index]]), *source.value.evidence_at(index))

    status: Status = "success"
    message = hint = kind = ""
    if failed:
        first = failed[min(failed)]
        status = "partial" if items else "schema_mismatch" if _all_unfit(failed) else "error"
        message = f"{len(failed):,} of {len(source.items):,} items got no label: {first.message}"
        hint, kind = first.hint, first.kind
    counts = {label: sum(answer.text == label for _, answer in made) for label in labels}
    value = Value(items, derived(len(items), evidence, [source.value])) if status in ("success", "partial") else None
    unlabelled = tuple({"id": ids[index], "reason": failed[index].message} for index in sorted(failed))
    summary = {"count": len(items), "labels": counts}
    return asker.metered(
        ExecutionResult(
            status, value, len(items), summary, message=message, hint=hint, failed_items=unlabelled, kind=kind
        )
    )


def _all_unfit(failed: dict[int, Failed]) -> bool:
    return all(failure.kind == "bad_answer" for failure in failed.values())


def _labelled(item: Any, label: str) -> dict[str, Any]:
    row = dict(item) if isinstance(item, dict) else {"value": item}
    if "label" in row:
        name = "item.label"
        while name in row:
            name = f"item.{name}"
        row = {name if field == "label" else field: value for field, value in row.items()}
    return {**row, "label": label}
