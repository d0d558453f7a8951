"""Workers for evaluations: checks the options, and describes the jobs of seeds to the workers of ``seed_workers``.

Reviews of seeds are extracted by workers. Of all other targets, workers make the calls (``models.distributed_client``).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ..limits import call_options
from ..loops.evaluate.call_record import CallScope, EvaluationRecorder
from ..loops.evaluate.evaluation import EvaluationSettings, job_name
from ..loops.evaluate.gold import Gold
from ..loops.evaluate.seed_target import SETTINGS, SeedTarget
from . import seed_workers
from .evaluation_targets import PlannedCandidate
from .seed_models import OPTIONS as PANEL
from .seed_workers import WorkerJob, WorkerOptions, WorkerSetup

if TYPE_CHECKING:
    from ...adapters.llm.budget import Ledger
    from ..models.chunk_queue import Workers


def check_workers(given: WorkerOptions, planned: Sequence[PlannedCandidate], max_concurrency: int) -> None:
    """Raise ``RequestError`` if the evaluation of these candidates can't be distributed."""
    if given.workers is None:
        return
    models = [model for each in planned if each.llm is not None for model in _models(each)]
    given.check(models, max_concurrency)


def _models(planned: PlannedCandidate) -> list[Any]:
    """Return the models of a candidate: the model of the run, the voters, the stronger model, and the named models."""
    vote, escalate = planned.options.get("vote"), planned.options.get("escalate")
    voters = vote if isinstance(vote, list | tuple) else ()  # a vote of another form is refused later
    return [planned.llm, *voters, *([] if escalate is None else [escalate]), *planned.models.values()]


def distributes_calls(given: WorkerOptions, planned: Sequence[PlannedCandidate]) -> bool:
    """Return whether workers make the calls of the evaluation. For seeds, they extract the reviews instead."""
    return given.workers is not None and not any(isinstance(each.target, SeedTarget) for each in planned)


def open_workers(
    given: WorkerOptions, planned: Sequence[PlannedCandidate], gold: Gold, settings: EvaluationSettings,
    limits: Mapping[str, Any], ledger: "Ledger", recorder: EvaluationRecorder | None,
) -> "AbstractAsyncContextManager[Workers | None]":  # fmt: skip
    """Return a context manager that starts the workers of an evaluation (None: no workers, or no model is called).

    There is a job for each run of a seed: for each candidate and repeat, those of ``SeedTarget.runs``. ``recorder`` has the
    answers that an earlier process saved. Entering raises ``EngineError``.
    """
    jobs = {} if given.workers is None else _jobs(planned, gold, settings, recorder)
    opening = {name: limits[name] for name in ("price", "rate") if limits.get(name) is not None}
    setup = WorkerSetup(jobs, opening, limits.get("cache"), settings.max_concurrency)
    return seed_workers.open_workers(given if jobs else WorkerOptions(), setup, ledger)


def _jobs(
    planned: Sequence[PlannedCandidate], gold: Gold, settings: EvaluationSettings, recorder: EvaluationRecorder | None
) -> dict[str, WorkerJob]:
    jobs: dict[str, WorkerJob] = {}
    for each in planned:
        if each.llm is None or not isinstance(each.target, SeedTarget):
            continue
        own = dict(each.options)
        models = {name: own.pop(name) for name in PANEL if name in own}
        more = {name: own.pop(name) for name in SETTINGS if name in own}
        for repeat in range(settings.repeat):
            saved = {} if recorder is None else recorder.saved(each.name, repeat)
            scope = CallScope(each.name, repeat, each.target.samples, saved)
            for number, (seed, _, _) in enumerate(each.target.runs(gold.items)):
                jobs[job_name(each.name, repeat, number)] = WorkerJob(
                    seed, each.llm, each.llm, models, more.get("ask", "auto"), call_options(own), settings.strict_types, scope
                )  # fmt: skip
    return jobs
