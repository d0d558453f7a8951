"""Batches for evaluations of seeds: checks the options, and fills the caches of the candidates by batches before the evaluation runs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from ..errors import RequestError
from ..limits import call_options
from ..loops.evaluate.call_record import CallScope, CollectedCalls, EvaluationRecorder, StoredEvaluation
from ..loops.evaluate.evaluation import Candidate, EvaluationSettings
from ..loops.evaluate.gold import Gold
from ..loops.evaluate.seed_target import SETTINGS, SeedTarget
from ..models.cache_batches import BatchOptions, BatchWaiting
from ..runs.journal import hash_of
from . import seed_batches
from .evaluation_targets import PlannedCandidate
from .seed_models import OPTIONS as PANEL
from .seed_workers import WorkerOptions

if TYPE_CHECKING:
    from ..seeds.seed_results import Extraction
    from .clients import ModelOpener


def resumed_batches(given: BatchOptions | None, stored: StoredEvaluation | None) -> BatchOptions | None:
    """Return the options for batches; an evaluation that began with batches is always resumed with them. Raises ``RequestError``."""
    if stored is None or given is None or stored.uses_batches:
        return BatchOptions() if stored is not None and stored.uses_batches and given is None else given
    message = "the evaluation began without batches"
    raise RequestError("batch", message, "resume it without batches, or start a new one")


def check(planned: Sequence[PlannedCandidate], *, cache: Any, workers: WorkerOptions, record: bool) -> None:
    """Raise ``RequestError`` or ``NotConfigured`` if the evaluation of these candidates can't use batches."""
    asked = [each for each in planned if each.llm is not None]
    if not asked:
        raise RequestError("batch", "no model is called", "leave batch out")
    for each in asked:
        if not isinstance(each.target, SeedTarget):
            message = (
                f"{each.target.name} is not a seed: its calls depend on earlier answers, so a batch can't collect them"
            )
            raise RequestError("batch", message, "run without batch")
    is_panel = any(name in each.options for each in asked for name in PANEL)
    seed_batches.check([each.llm for each in asked], cache=cache, workers=workers.workers, is_panel=is_panel)
    if not record:
        message = "an evaluation with batches is stored, so that no batch is submitted twice"
        raise RequestError("batch", message, "give record=True")


async def check_services(planned: Sequence[PlannedCandidate]) -> None:
    """Raise ``LLMError`` if the service of a candidate has no batch API, or can't be used."""
    for spec in dict.fromkeys(each.llm for each in planned if isinstance(each.llm, str)):
        await seed_batches.check_service(spec)


@frozen
class EvaluationBatches:
    """Fills the caches of an evaluation. ``cache`` is as for ``ModelOpener``; ``opener`` has the budget of all candidates."""

    planned: Sequence[PlannedCandidate]
    gold: Gold
    settings: EvaluationSettings
    cache: Any
    opener: "ModelOpener"
    given: BatchOptions

    async def fill(
        self, candidates: Sequence[Candidate], recorder: EvaluationRecorder, events: Any, cancel: asyncio.Event | None,
        say: Callable[[str], None] | None = None,
    ) -> list[Candidate]:  # fmt: skip
        """Fill the caches, and return the candidates with clients that do not make the calls that the batches left open.

        The batches of all candidates run at the same time. ``say`` receives messages (default: as for ``seed.run_many``). Raises
        ``BatchWaiting`` with the batches of all candidates that continue, ``BatchFailed`` and other ``LLMError``s.
        """
        gate = asyncio.Lock()
        told = say or seed_batches.teller(events)
        several = sum(each.llm is not None for each in self.planned) > 1

        async def filled(planned: PlannedCandidate, candidate: Candidate) -> Candidate:
            if planned.llm is None:
                return candidate
            name = f"{planned.name}: " if several else ""
            assert isinstance(planned.target, SeedTarget)  # noqa: S101 - ``check`` refuses other targets
            for seed, _, _ in planned.target.runs(self.gold.items):
                if seed.outputs and (live := seed_batches.live_calls(seed)):
                    told(name + live)
            return await self._filled(
                planned, candidate, recorder, events, cancel, lambda text: told(name + text), gate
            )

        pairs = list(zip(self.planned, candidates, strict=True))
        found = await asyncio.gather(*(filled(*pair) for pair in pairs), return_exceptions=True)
        faults = [each for each in found if isinstance(each, BaseException)]
        waiting = [each for each in faults if isinstance(each, BatchWaiting)]
        for fault in faults:
            if not isinstance(fault, BatchWaiting):
                raise fault
        if waiting:
            ids = [id for each in waiting for id in each.batches]
            raise BatchWaiting(ids, is_interrupted=any(each.is_interrupted for each in waiting))
        return [each for each in found if isinstance(each, Candidate)]

    async def _filled(
        self, planned: PlannedCandidate, candidate: Candidate, recorder: EvaluationRecorder, events: Any,
        cancel: asyncio.Event | None, say: Callable[[str], None], gate: asyncio.Lock,
    ) -> Candidate:  # fmt: skip
        from ...adapters.llm.batch_model import Unanswered
        from ..models.factory import identity_of

        spec = str(planned.llm)
        journal = _CandidateJournal(recorder, planned.name, spec)

        async def make(client: Any) -> None:
            await self._make(planned, client, recorder, cancel)

        failures, spent = await seed_batches.fill_cache(
            spec, self.cache, self.opener, journal, self.given, make, events=events, cancel=cancel, say=say, gate=gate
        )
        client = Unanswered(candidate.client, identity_of(spec), failures)
        return evolve(candidate, client=client, batches=spent)

    async def _make(
        self, planned: PlannedCandidate, client: Any, recorder: EvaluationRecorder, cancel: asyncio.Event | None
    ) -> None:
        """Make the calls of all repeats of a candidate. Calls whose answers are recorded are not made."""
        from ..seeds.batch_requests import ExtractionCalls

        own = dict(planned.options)
        ask = {name: own.pop(name) for name in SETTINGS if name in own}.get("ask", "auto")
        target = planned.target
        assert isinstance(target, SeedTarget)  # noqa: S101 - ``check`` refuses other targets
        async with asyncio.TaskGroup() as group:
            for repeat in range(self.settings.repeat):
                scope = CallScope(planned.name, repeat, target.samples, recorder.saved(planned.name, repeat))
                recorded = scope.recorded(client, CollectedCalls(scope.saved))
                for seed, contexts, _ in target.runs(self.gold.items):
                    calls = ExtractionCalls(
                        seed,
                        str(planned.llm),
                        _NoExtractions(),
                        None,
                        ask,
                        call_options(own),
                        self.settings.strict_types,
                    )
                    numbered = [evolve(context, index=number) for number, context in enumerate(contexts)]
                    group.create_task(calls.make(numbered, recorded, cancel))


@define
class _CandidateJournal:
    """The part of an evaluation's record that is about the batches of one candidate; a ``cache_batches.BatchRecord``."""

    recorder: EvaluationRecorder
    candidate: str
    spec: str
    run_id: str = field(init=False)
    path: Path = field(init=False)

    def __attrs_post_init__(self) -> None:
        part = hash_of(self.candidate.encode("utf-8", "surrogatepass"))[:8]
        self.run_id = f"{self.recorder.run_id}.{part}"
        self.path = self.recorder.path / f"batches-{part}"
        self.path.mkdir(mode=0o700, exist_ok=True)

    @property
    def batches(self) -> Sequence[Mapping[str, Any]]:
        """The records about the candidate's batches of earlier processes."""
        return [record for record in self.recorder.batches if record["candidate"] == self.candidate]

    @property
    def damage(self) -> str:
        """Why nothing more is written; "" if all is written."""
        return self.recorder.damage

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record."""
        self.recorder.append({**record, "candidate": self.candidate, "model": self.spec, "batch_run": self.run_id})

    def sync(self) -> None:
        """Wait until all records are on disk."""
        self.recorder.sync()


class _NoExtractions:
    """A record of extractions that has none: an evaluation records its calls instead."""

    run_id = ""
    damage = ""
    calls: Any = None

    def recall_extraction(self, context: int, review: Any, digest: str) -> "Extraction | None":
        """Return None."""
        return None

    def extracted(self, context: int, read: Any) -> None:
        """Do nothing."""

    def context_done(self, result: Any) -> None:
        """Do nothing."""

    def priced(self, prices: Any) -> None:
        """Do nothing."""

    def end(self, *args: Any, **more: Any) -> None:
        """Do nothing."""
