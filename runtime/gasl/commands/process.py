"""PROCESS and CLASSIFY. In PROCESS a model derives rows from items, in concurrent batches; each row cites its items.

Rows are checked separately. A failed batch affects only its own items; a row that is still invalid after one repair is dropped and
reported.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, field

from ....adapters.state import Evidence
from ....lang.literals import short
from ....lang.trees.gasl import Classify, Column, Process
from ...excerpts import clipped, excerpt
from ...results import Failed
from ..records import STOPPING, ExecutionResult, Session, Status, Value
from .bindings import Rows, refusing, rows_of
from .evidence import derived, united
from .model_answers import Fault, Judged, Row, rows
from .model_calls import (
    Answer,
    Asker,
    PromptItems,
    Unanswered,
    batches,
    build_again_prompt,
    build_classify_prompt,
    build_process_prompt,
    build_repair_prompt,
    process_schema,
    prompt_items,
)

_MOST_ROUNDS = 20
"""Maximum number of rounds, per run of the command, in which the model is called again for open items."""
_LISTED = 5
_TOO_MUCH = frozenset({"prompt_too_long", "truncated"})
"""Failures that smaller batches may avoid."""


@define
class _Batch:
    """One batch: the indices of its items, the answer and its rows, or the failure. ``halves`` are the parts of a split batch.

    ``open`` are the items without a row; ``differing`` are the items with rows that contradict each other.
    """

    indices: Sequence[int]
    rows: Sequence[Row] = ()
    answer: Answer | None = None
    faults: Sequence[Fault] = ()
    failed: Failed | None = None
    open: Sequence[int] = ()
    differing: Sequence[int] = ()
    shown: Sequence[int] = ()
    halves: "Sequence[_Batch]" = ()

    def parts(self) -> "Iterator[_Batch]":
        """Yield the batches into which this batch was finally split, or only this batch, in the order of the items."""
        if not self.halves:
            yield self
        for half in self.halves:
            yield from half.parts()


@define
class _Work:
    """The data shared by all batches of a command."""

    command: Process
    rows: Rows
    shown: PromptItems
    asker: Asker
    cite: str
    batches: list[_Batch] = field(factory=list)

    @property
    def incomplete(self) -> str:
        """The reason that the prompt gives for an incomplete list of items; "" if the list is complete."""
        return clipped("; ".join(self.rows.value.incomplete), 800)

    async def do(self, number: int) -> None:
        """Call the model for one batch, or for its halves if the batch is too large for the model."""
        await self._ask_or_split(self.batches[number], number)

    async def _ask_or_split(self, batch: _Batch, number: int) -> None:
        try:
            await self._ask_batch(batch, number)
        except Unanswered as unanswered:
            indices = batch.indices
            if unanswered.failed.kind not in _TOO_MUCH or len(indices) == 1:
                batch.failed = unanswered.failed
                return
            self.asker.retried(f"{unanswered.failed.message}; split into halves", number)
            middle = len(indices) // 2
            batch.halves = [_Batch(indices[:middle]), _Batch(indices[middle:])]
            for half in batch.halves:
                await self._ask_or_split(half, number)
            return
        await self._ask_open_items(batch, number)

    async def _ask_open_items(self, batch: _Batch, number: int) -> None:
        """When the command is run again, call the model only for the items that a recalled answer left open."""
        last, left = batch, [*batch.open, *batch.differing]
        for round_ in range(1, _MOST_ROUNDS + 1):
            silent = not last.rows and not last.faults  # the answer has no result for any item
            if not left or silent or last.answer is None or not last.answer.free:
                return
            again = _Batch(left)
            try:
                await self._ask_batch(again, number, round_)
            except Unanswered as unanswered:
                again.failed = unanswered.failed
            else:
                if not again.rows and not again.faults:  # no result for these items this time, either
                    last.open = []
                    return
            settled = [index for index in last.indices if index not in left]
            rows = [row for row in last.rows if not set(row.cited) <= set(left)]
            last.halves = [_Batch(settled, rows, last.answer, last.faults, shown=last.shown or last.indices), again]
            last, left = again, [*again.open, *again.differing]

    async def _ask_batch(self, batch: _Batch, number: int, round_: int = 0) -> None:
        """Call the model; request one repair of invalid rows, unless a lower layer already has. Raises ``Unanswered``."""
        references = [self.shown.references[index] for index in batch.indices]
        lines = "\n".join(self.shown.line(index) for index in batch.indices)
        columns = self.command.returning
        prompt = build_process_prompt(
            lines, self.command.instruction, columns, cite=self.cite, first=references[0], incomplete=self.incomplete
        )
        if round_:
            prompt = build_again_prompt(prompt, round_)
        schema = process_schema(columns, references, cite=self.cite)
        known = self.shown.known(batch.indices)
        answer, judged = await self._ask(prompt, number, schema, known)
        if judged.faults and not answer.repaired:
            self.asker.retried(str(judged.faults[0]), number)
            again = build_repair_prompt(prompt, answer.text, [str(fault) for fault in judged.faults])
            try:
                second, rejudged = await self._ask(again, number, schema, known)
            except Unanswered:
                pass  # the valid rows of the first answer are used
            else:
                if rejudged.usable and len(rejudged.rows) >= len(judged.rows):
                    answer, judged = second, rejudged
        batch.answer, batch.rows, batch.faults = answer, judged.rows, judged.faults
        cited = {index for row in judged.rows for index in row.cited}
        batch.open = [index for index in batch.indices if index not in cited]
        batch.differing = _differing(judged.rows) if columns else []

    async def _ask(
        self, prompt: str, number: int, schema: dict[str, Any], known: dict[str, int]
    ) -> tuple[Answer, Judged]:
        """Return an answer and its valid rows; an answer that a lower layer rejected may also have valid rows."""
        try:
            answer = await self.asker.ask(prompt, number, schema=schema)
        except Unanswered as unanswered:
            if unanswered.answer is None:
                raise
            judged = rows(unanswered.answer.text, known, self.command.returning, self.cite)
            if not judged.rows:
                raise
            return unanswered.answer, judged
        return answer, rows(answer.text, known, self.command.returning, self.cite)


def _differing(made: Sequence[Row]) -> list[int]:
    """Return the items with several unequal rows that cite only this item: either a row is wrong, or each row is incomplete."""
    first: dict[int, dict[str, Any]] = {}
    found: dict[int, None] = {}
    for row in made:
        if len(row.cited) == 1 and first.setdefault(row.cited[0], row.fields) != row.fields:
            found[row.cited[0]] = None
    return list(found)


@refusing
async def run_process(command: Process, session: Session) -> ExecutionResult:
    """Run PROCESS. When the command is run again, the model is called only for the items in ``failed_items``.

    ``failed_items`` has the items of failed batches, the items without a row, the dropped rows and, with RETURNING, the items with
    differing rows that cite only this item.
    """
    source = rows_of(command.source, session)
    if not source.items:
        return ExecutionResult.of_items([], message=f"{source.name} is empty: no model was called")
    seen = prompt_items(source.items, name=source.name)
    work = _Work(command, source, seen, Asker(session), _cite_name(command.returning))
    parts = await asyncio.to_thread(batches, seen)
    work.batches = [_Batch(indices) for indices in parts]
    await work.asker.each(len(work.batches), work.do)
    work.batches = [part for batch in work.batches for part in batch.parts()]
    result = _result(work)
    work.asker.settle(result.status in ("success", "empty"))
    return result


def _cite_name(columns: Sequence[Column]) -> str:
    names, cite = {column.name for column in columns}, "ids"
    while cite in names:
        cite = f"cited_{cite}"
    return cite


def _result(work: _Work) -> ExecutionResult:
    made = [
        (batch.shown or batch.indices, batch.answer, row)
        for batch in work.batches
        if batch.answer is not None
        for row in batch.rows
    ]
    if any(batch.shown for batch in work.batches):  # later rounds added rows: restore the order of the items
        made.sort(key=lambda each: min(each[2].cited))
    items = [row.fields for _, _, row in made]

    def evidence(at: int) -> Sequence[Evidence]:
        indices, answer, row = made[at]
        shown_ids, cited = ([work.shown.ids[index] for index in among] for among in (indices, row.cited))
        own = united([work.rows.value.evidence_at(index) for index in row.cited])
        return (answer.evidence(work.asker.temperature, shown_ids, cited), *own)

    failures = _failures(work)
    cited = len({index for _, _, row in made for index in row.cited})
    status, message, hint = _outcome(work, len(items), cited)
    kept = status not in STOPPING
    value = Value(items, derived(len(items), evidence, [work.rows.value])) if kept else None
    summary = {"count": len(items), "batches": len(work.batches), "items": len(work.rows), "cited": cited}
    kind = next((batch.failed.kind for batch in work.batches if batch.failed is not None), "")
    numbers = Counter(name for _, _, row in made for name in row.numbers)
    notes = [f"{name}: {count:,} number{'s' * (count != 1)} read as text" for name, count in numbers.items()]
    return work.asker.metered(
        ExecutionResult(
            status, value, len(items), summary, message=message, hint=hint, failed_items=tuple(failures), kind=kind,
            notes=tuple(notes),
        )
    )  # fmt: skip


def _failures(work: _Work) -> list[dict[str, Any]]:
    failures: list[dict[str, Any]] = []
    for number, batch in enumerate(work.batches, 1):
        if batch.failed is not None:
            failures += [{"id": work.shown.ids[index], "reason": batch.failed.message} for index in batch.indices]
        named: set[int] = set()
        for fault in batch.faults:
            if not fault.rows:  # an error in the complete answer
                named |= set(batch.indices)
                failures += [{"id": work.shown.ids[i], "batch": number, "reason": fault.reason} for i in batch.indices]
                continue
            named |= set(fault.cited)
            cited = [work.shown.ids[index] for index in fault.cited]
            where: dict[str, Any] = {"id": cited[0] if len(cited) == 1 else None, "batch": number}
            if fault.row is not None:
                where["row"] = fault.row
            failures.append({**where, "reason": fault.reason})
        if any(each.rows for each in work.batches):
            left = [index for index in batch.open if index not in named]
            failures += [{"id": work.shown.ids[i], "batch": number, "reason": _WITHOUT_ROW} for i in left]
        failures += [
            {"id": work.shown.ids[i], "batch": number, "reason": _difference(batch, i)} for i in batch.differing
        ]
    return failures


_WITHOUT_ROW = "no row cites it"


def _difference(batch: _Batch, index: int) -> str:
    """Return a message about how the rows of an item differ."""
    first, *others = [row.fields for row in batch.rows if row.cited == (index,)]
    other = next(each for each in others if each != first)
    name = next(name for name in first if first[name] != other.get(name))
    return f"its rows differ: {short(name)} is {_value(first[name])} and {_value(other.get(name))}"


def _value(value: Any) -> str:
    return short(value) if isinstance(value, str) else str(value)[:40]


def _listed_ids(work: _Work, indices: Sequence[int]) -> str:
    listed = ", ".join(str(work.shown.ids[index])[:40] for index in indices[:_LISTED])
    return f"{listed}{', ...' if len(indices) > _LISTED else ''}"


def _outcome(work: _Work, count: int, cited: int) -> tuple[Status, str, str]:
    """Return the status, message and hint for all batches together."""
    failed = [batch.failed for batch in work.batches if batch.failed is not None]
    told = []
    if failed:
        told.append(f"{len(failed)} of {len(work.batches)} batches failed: {failed[0].message}")
    unfit = _unfit(work)
    told += unfit
    message = "; ".join(told)
    if len(failed) == len(work.batches):
        shape = all(failure.kind == "bad_answer" for failure in failed)
        return "schema_mismatch" if shape else "error", message, failed[0].hint
    if not count:
        if unfit:
            return "schema_mismatch", f"no valid row: {message}", ""
        if failed:
            return "partial", message, failed[0].hint
        return "empty", "the model returned no rows for the items", ""
    left = [index for batch in work.batches if batch.failed is None for index in batch.open]
    if left:
        told.append(f"cited {cited:,} of {len(work.rows):,} items; no row for {_listed_ids(work, left)}")
    differing = [index for batch in work.batches for index in batch.differing]
    if differing:
        told.append(f"rows differ for {_listed_ids(work, differing)}")
    hint = (
        failed[0].hint if failed else "run the command again to ask only about these items" if left or differing else ""
    )
    return "partial" if failed or unfit or left or differing else "success", "; ".join(told), hint


def _unfit(work: _Work) -> list[str]:
    """Return at most two messages: the number of dropped rows, and the number of unusable answers, each with the first reason."""
    faults = [fault for batch in work.batches for fault in batch.faults]
    told = []
    if left := [fault for fault in faults if fault.rows]:
        rows = sum(fault.rows for fault in left)
        told.append(f"{rows:,} {'row was' if rows == 1 else 'rows were'} dropped: {left[0]}")
    if useless := [fault for fault in faults if not fault.rows]:
        told.append(f"{len(useless)} of {len(work.batches)} answers can't be used: {useless[0]}")
    return told


# CLASSIFY: a model assigns exactly one label to every item, in one call per item.
# So the answer is one of a few strings, which servers and the local model enforce by a grammar. Equal items give equal prompts, so
# with a cache the model is called only once for equal items.


@refusing
async def run_classify(command: Classify, session: Session) -> ExecutionResult:
    """Run CLASSIFY: return each item with its ``label``, in the order of the items. A non-object becomes ``{"value", "label"}``.

    An existing field ``label`` is renamed to ``item.label``. Items without a label are dropped and reported.
    """
    source = rows_of(command.source, session)
    if not source.items:
        return ExecutionResult.of_items([], message=f"{source.name} is empty: no model was called")
    asker = Asker(session)
    labels = tuple(dict.fromkeys(command.labels))
    ids = prompt_items(source.items, name=source.name).ids
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
        unfit = all(failure.kind == "bad_answer" for failure in failed.values())
        status = "partial" if items else "schema_mismatch" if unfit else "error"
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


def _labelled(item: Any, label: str) -> dict[str, Any]:
    row = dict(item) if isinstance(item, dict) else {"value": item}
    if "label" in row:
        name = "item.label"
        while name in row:
            name = f"item.{name}"
        row = {name if field == "label" else field: value for field, value in row.items()}
    return {**row, "label": label}


RUNNERS = {
    Process: run_process,
    Classify: run_classify,
}
