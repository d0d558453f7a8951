"""Runs an evaluation: each candidate answers the labelled items, then all answers are scored and compared.

Candidates and repeats run one after another; the items of a candidate run concurrently. With a recorder, each answered call is saved.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from attrs import define, evolve, field, frozen

from ...events import Events
from ...models.caller import Spent
from ...models.chunk_queue import Workers
from .agreement import cohen_kappa, krippendorff_alpha
from .call_record import CallFigures, CollectedCalls, EvaluationRecorder, RecordedCalls
from .escalation import escalations
from .evaluation_report import CandidateReport, EvaluationReport, answers_in_order, compare_with_first
from .field_scores import Answer, score_field
from .gold import Gold
from .targets import AskSettings, Target

MOST_REPEATS = 20


@frozen
class Candidate:
    """A candidate: a target with a model. ``answers`` are the answers of a finished run (None: the model is called).

    ``client`` is the open model; ``spec`` is its spec. ``models`` are named models of a script, ``options`` are further
    settings of the target.
    """

    name: str
    target: Target
    client: Any = None
    spec: str = ""
    models: Mapping[str, Any] = field(factory=dict)
    options: Mapping[str, Any] = field(factory=dict)
    answers: Mapping[tuple[int, str], Answer] | None = None
    notes: tuple[str, ...] = ()
    batches: Spent = field(factory=Spent)
    """The cost of the batches that filled the cache with its answers."""


@frozen
class EvaluationSettings:
    """The settings of an evaluation.

    ``repeat`` is the number of samples of each item. ``tolerance`` is used for numbers, ``threshold`` for judges, and ``k`` for
    rankings. ``target_accuracy`` is the accuracy that a cascade should reach.
    """

    repeat: int = 1
    tolerance: float = 0.0
    threshold: float = 0.8
    k: int = 10
    max_concurrency: int = 8
    strict_types: bool = False
    max_failed: float = 0.05
    target_accuracy: float | None = None
    agreement: bool = True


@define
class Progress:
    """The progress of an evaluation. ``changed`` is called after each answer."""

    candidates: int = 0
    candidate: str = ""
    done: int = 0
    items: int = 0
    changed: Callable[[], None] = lambda: None


async def evaluate(
    gold: Gold, candidates: Sequence[Candidate], settings: EvaluationSettings, *, recorder: EvaluationRecorder | None = None,
    events: Events | None = None, cancel: asyncio.Event | None = None, progress: Progress | None = None,
    workers: Workers | None = None,
) -> EvaluationReport:  # fmt: skip
    """Ask all candidates, score their answers and compare them. ``workers`` extract the reviews of seeds in other processes.

    When ``cancel`` is set, the calls are stopped, and items without an answer have the status "unanswered". Requirements and
    the comparison with a baseline are added by ``gate``. The caller closes the clients and the recorder.
    """
    began, progress = perf_counter(), progress or Progress()
    cells = sum(len(item.labels) for item in gold.items)
    progress.items = cells * settings.repeat * sum(each.answers is None for each in candidates)
    progress.candidates = len(candidates)
    reports = []
    for candidate in candidates:
        progress.candidate = candidate.name
        figures, started = CallFigures(), perf_counter()
        figures.add(candidate.batches.calls, candidate.batches.usage, candidate.batches.cost)
        every = [candidate.answers] if candidate.answers is not None else []
        if candidate.answers is None:
            for repeat in range(settings.repeat):
                every.append(
                    await _ask(gold, candidate, repeat, settings, figures, recorder, events, cancel, progress, workers)
                )
        figures.seconds = round(perf_counter() - started, 3)
        report = _scored(gold, candidate, every, figures, settings)
        reports.append(report)
        if recorder is not None:
            answered = sum(scores.counts["answered"] for scores in report.fields.values())
            recorder.candidate_done(candidate.name, report.items, answered)
    first = candidates[0].target
    is_cancelled = cancel is not None and cancel.is_set()
    stopped = any(report.share("unanswered") for report in reports)
    status = "cancelled" if is_cancelled else "stopped" if stopped else "complete"
    return EvaluationReport(
        first.name, first.kind, gold, {report.name: report for report in reports}, compare_with_first(reports, gold),
        agreement=annotator_agreement(gold) if settings.agreement else {}, status=status, reason=_reason(reports),
        run_id=recorder.run_id if recorder is not None else "", path=recorder.path if recorder is not None else None,
        seconds=perf_counter() - began, texts=tuple(first.text(item) for item in gold.items), notes=_notes(gold),
        max_failed=settings.max_failed, thresholds=escalations(reports, gold, settings.target_accuracy),
    )  # fmt: skip


def job_name(candidate: str, repeat: int, number: int) -> str:
    """Return the name of a job of the workers: run ``number`` of a candidate's target in one repeat."""
    return f"{repeat}/{number} {candidate}"


async def _ask(
    gold: Gold, candidate: Candidate, repeat: int, settings: EvaluationSettings, figures: CallFigures,
    recorder: EvaluationRecorder | None, events: Events | None, cancel: asyncio.Event | None, progress: Progress,
    workers: Workers | None = None,
) -> dict[tuple[int, str], Answer]:  # fmt: skip
    """Return one answer of the candidate for each item and column."""
    found: dict[tuple[int, str], Answer] = {}
    if cancel is not None and cancel.is_set():
        return found

    def take(number: int, column: str, answer: Answer) -> None:
        if (number, column) not in found:
            progress.done += 1
        found[number, column] = answer
        progress.changed()

    def recorded(client: Any, name: str = "") -> RecordedCalls:
        return RecordedCalls(client, recorder, figures, candidate.name, repeat, candidate.target.samples, name)

    def take_calls(calls: CollectedCalls) -> None:
        calls.include(figures, recorder)

    def workers_of(number: int) -> Workers | None:
        if workers is None:
            return None
        return evolve(workers, job=job_name(candidate.name, repeat, number), on_calls=take_calls)

    if recorder is not None:
        earlier = recorder.earlier_failures(candidate.name, repeat)
        figures.add(earlier.calls, earlier.usage, earlier.cost)
    asking = AskSettings(
        candidate.spec, {name: recorded(model, name) for name, model in candidate.models.items()}, settings.max_concurrency,
        settings.strict_types, candidate.options, events, cancel, recorded, workers_of,
    )  # fmt: skip
    await candidate.target.answer(gold.items, recorded(candidate.client), asking, take)
    return found


def _scored(
    gold: Gold,
    candidate: Candidate,
    every: Sequence[Mapping[tuple[int, str], Answer]],
    figures: CallFigures,
    settings: EvaluationSettings,
) -> CandidateReport:
    fields, answers = {}, {}
    repeats: list[dict[str, list[Answer]]] = [{} for _ in every[1:]]
    for column, expected in gold.columns.items():
        items = gold.labelled(column)
        if not items:
            continue
        first, *more = (answers_in_order(gold, column, found) for found in every)
        answers[column] = first
        for place, each in enumerate(more):
            repeats[place][column] = each
        fields[column] = score_field(
            expected, [item.labels[column] for item in items], first, [item.group for item in items], repeats=more,
            tolerance=settings.tolerance, threshold=settings.threshold, k=settings.k,
        )  # fmt: skip
    return CandidateReport(
        candidate.name, candidate.spec, candidate.target.name, fields, figures, answers, repeats, candidate.notes
    )


def _reason(reports: Sequence[CandidateReport]) -> str:
    """Return the first known reason why an item is unanswered; "" if no reason is known."""
    for report in reports:
        for answers in report.answers.values():
            for answer in answers:
                if answer.status == "unanswered" and answer.error:
                    return answer.error
    return ""


def _notes(gold: Gold) -> tuple[str, ...]:
    notes = [
        f"{count:,} items are left out of {column}: the annotators' labels are tied"
        for column, count in gold.ties.items()
    ]
    if gold.left_out:
        notes.append(
            f"{gold.left_out:,} labelled rows of {gold.name} are left out, because their reviews were not picked at random (column picked)"
        )
    if gold.repeated:
        noun = "label repeats" if gold.repeated == 1 else "labels repeat"
        notes.append(f"{gold.repeated:,} {noun} the label of an earlier row of {gold.name} and count once")
    notes += [
        f"{count:,} labels of {column} are in another letter case or Unicode form than the label that they mean"
        for column, count in gold.respelled.items()
    ]
    if gold.unused:
        notes.append(f"columns of {gold.name} that were not used: {', '.join(gold.unused[:12])}")
    return tuple(notes)


def annotator_agreement(gold: Gold) -> dict[str, dict[str, Any]]:
    """Return the agreement of the annotators for each column with labels or numbers.

    It is Cohen's kappa for labels of two annotators, and Krippendorff's alpha for numbers and for more annotators.
    """
    names = gold.annotators
    found: dict[str, dict[str, Any]] = {}
    if len(names) < 2:
        return found
    for column, expected in gold.columns.items():
        if expected.kind not in ("label", "flag", "accept", "number", "score"):
            continue
        rows = [[said.get(name) for name in names] for said in gold.votes[column]]
        labels = list(expected.labels) or None
        if len(names) == 2 and expected.kind not in ("number", "score"):
            weights: Any = "quadratic" if expected.ordered else None
            made = cohen_kappa([row[0] for row in rows], [row[1] for row in rows], weights, labels)
            found[column] = {"method": "Cohen's kappa", **made.as_json()}
        else:
            level: Any = (
                "interval" if expected.kind in ("number", "score") else "ordinal" if expected.ordered else "nominal"
            )
            made = krippendorff_alpha(rows, level, None if level == "interval" else labels)
            found[column] = {"method": "Krippendorff's alpha", **made.as_json()}
        found[column]["annotators"] = len(names)
    return found
