"""Fills the cache by batches: collects the requests that the cache lacks, submits them, waits, and caches the answers.

The folder of the run has the requests and the answers of each batch (``batch-1.jsonl``, ``batch-1-answers.jsonl``). Its journal has the
records ``{"record": "batch", "number", "step", ...}``: ``planned`` (the batches of a round, whose files are stored), then ``intent``,
``file`` and ``submitted`` (``adapters.llm.batches``), then ``answered`` or ``failed``. A resumed run continues at the last record.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, Unpack

import orjson
from attrs import define, field, frozen

from ...adapters.llm import BadRequest, Completion, LLMError, NotConfigured, Options, Unavailable, Usage
from ...adapters.llm.batch_model import BatchedModel, BatchModel, Open
from ...adapters.llm.batches import (
    FIRST_POLL,
    LONGEST_POLL,
    SETTLED,
    BatchFile,
    BatchJournal,
    BatchLine,
    BatchRun,
    BatchService,
    BatchUnclear,
    batch_files,
)
from ...adapters.llm.budget import Ledger, Price
from ...adapters.llm.cache import Cached
from ...adapters.llm.middleware import Again, Client, Layer, ModelCheck, Validated
from ...adapters.llm.shared_cache import SharedCache
from ...adapters.permissions import write_private

__all__ = ["BATCH_SHARE", "MOST_ROUNDS", "BatchFailed", "BatchOptions", "BatchWaiting", "CacheBatches"]

MOST_ROUNDS = 3
"""How often the requests of a run are submitted: requests that the first batch left open go into the second, and so on."""
BATCH_SHARE = 0.5
"""The price of a batch as a share of the price of calls."""
POLL = "KNOTWORK_BATCH_POLL"
"""The environment variable with the seconds between two questions for a batch's state, for tests."""


class BatchWaiting(LLMError):
    """Raised if a run ends while its batches continue at the service.

    ``batches`` are their ids. ``is_interrupted`` is true if the user has ended the run.
    """

    kind = "batch_waiting"

    def __init__(self, batches: Sequence[str], *, is_interrupted: bool = False) -> None:
        self.batches, self.is_interrupted = tuple(batches), is_interrupted
        if batches:
            several = len(batches) > 1
            said = f"the batch{'es' if several else ''} {', '.join(batches)} continue{'' if several else 's'} at the service"
        else:
            said = "no batch was submitted"
        super().__init__(said, hint="resume the run to get the answers", attempts=0)


class BatchFailed(LLMError):
    """Raised if the service refused a batch. It has no answers and costs nothing; a resumed run submits its requests again."""

    kind = "batch_failed"


@frozen
class BatchOptions:
    """How a run uses batches.

    ``finish_live`` makes the calls that the batches left open; otherwise they fail. ``wait`` is false to end after a submission.
    After an interrupted submission, ``batch_id`` is the batch that it made, and ``is_lost`` means that it made none.
    """

    finish_live: bool = False
    wait: bool = True
    batch_id: str = ""
    is_lost: bool = False


class BatchRecord(BatchJournal, Protocol):
    """The record of a run; ``runtime.runs.journal.RunRecorder`` is one."""

    run_id: str
    path: Path

    @property
    def batches(self) -> Sequence[Mapping[str, Any]]:
        """The records about batches of earlier processes."""
        ...


@define
class _Round:
    """The batches that were planned together; ``ended`` maps the batches that have ended to the last word of the service."""

    numbers: tuple[int, ...]
    ended: dict[int, str] = field(factory=dict)
    failed: set[int] = field(factory=set)

    @property
    def open(self) -> tuple[int, ...]:
        """The batches that have not ended."""
        return tuple(number for number in self.numbers if number not in self.ended and number not in self.failed)


@define
class CacheBatches:
    """Fills the cache in the file ``cache`` with answers of ``model``, whose spec is ``identity``, by batches of ``service``.

    ``ledger`` counts the batches at half of ``price``. ``say`` receives messages. When ``cancel`` is set, waiting ends. Several models may
    fill their caches at the same time: ``gate`` lets them submit one after the other, so that at most one submission is interrupted.
    """

    model: BatchedModel
    service: BatchService
    identity: str
    cache: Path
    ledger: Ledger
    price: Price | None
    record: BatchRecord
    given: BatchOptions = field(factory=BatchOptions)
    say: Callable[[str], None] = lambda text: None
    cancel: asyncio.Event | None = None
    shared: Callable[[], SharedCache | None] = lambda: None
    gate: asyncio.Lock = field(factory=asyncio.Lock)
    usage: Usage = field(factory=Usage, init=False)
    calls: int = field(default=0, init=False)
    cost: float = field(default=0.0, init=False)
    _rounds: list[_Round] = field(factory=list, init=False)
    _held: tuple[int, Usage, float] = field(default=(0, Usage(), 0.0), init=False)
    """The maximum cost of the unfinished batches. The ledger counts it, because other models may plan batches at the same time."""
    _run: BatchRun = field(init=False)
    _client: BatchModel = field(init=False)
    _checked: ModelCheck = field(init=False)

    def __attrs_post_init__(self) -> None:
        limits = poll_seconds()
        self._run = BatchRun(
            self.service, self.record, self.record.run_id, self.record.batches, sleep=self._sleep, polls=limits[:2],
            settled=limits[2], tell=lambda text: self.say(text),
        )  # fmt: skip
        self._client = BatchModel(self.model, self.identity, is_limited=self.ledger.limits_size)
        self._checked = ModelCheck(_Kept(self._client), self.model.model, lambda text: self.say(f"warning: {text}"))
        for record in self.record.batches:
            self._recall(record)

    async def fill(self, make_calls: Callable[[Client], Awaitable[None]]) -> Mapping[bytes, LLMError]:
        """Fill the cache, and return the failures of the calls that the batches left open; {} with ``finish_live``.

        ``make_calls`` makes all calls of the run; it is called before the first batch and after each round. Raises ``BatchWaiting``,
        ``BatchFailed``, ``BatchUnclear``, ``BudgetExceeded`` and the errors of the service.
        """
        for each in self._rounds:
            for number in each.ended:
                self._client.take(self._stored_answers(number), self._requests(number))
        while True:
            if self._rounds and self._rounds[-1].open:
                try:
                    await self._finish(self._rounds[-1])
                except _Interrupted:
                    ids = [self._run.batches[number] for number in self._rounds[-1].open if number in self._run.batches]
                    raise BatchWaiting(ids, is_interrupted=True) from None
            self._client.begin()
            failures = await self._pass(make_calls)
            self._check_interrupt()
            answered = [each for each in self._rounds if each.ended]
            is_cancelled = any("cancelled" in each.ended.values() for each in answered)
            if not self._client.pending or len(answered) >= MOST_ROUNDS or is_cancelled:
                self._report(len(self._client.pending))
                return {} if self.given.finish_live else failures
            self._plan()

    async def aclose(self) -> None:
        """Close all connections."""
        await self.service.aclose()
        await self.model.aclose()

    async def _pass(self, make_calls: Callable[[Client], Awaitable[None]]) -> Mapping[bytes, LLMError]:
        faults: list[str] = []
        client = Cached(
            Validated(Again(self._checked)), self.cache, self.identity, warn=faults.append, shared=self.shared()
        )
        calls = Open(client, self.identity)
        try:
            await make_calls(calls)
        finally:
            await client.aclose()
        if faults:  # without the cache, the run would make all calls again
            raise NotConfigured(f"a batch fills the cache, and the cache can't be used: {faults[0]}", attempts=0)
        return calls.failures

    def _plan(self) -> None:
        """Store the files of the next round. Raises ``BudgetExceeded`` if the answers may exceed the budget."""
        client = self._client
        try:
            files = list(
                batch_files(
                    client.pending.items(), most_requests=self.service.most_requests, most_bytes=self.service.most_bytes
                )
            )
        except ValueError as error:
            raise BadRequest(str(error), hint="shorten the prompt", attempts=0) from None
        need = Usage.sum(client.bounds.values())
        self.ledger.check(len(client.pending), need, self._cost(client.bounds.values()) or 0.0)
        first = 1 + max((number for each in self._rounds for number in each.numbers), default=0)
        numbers = tuple(range(first, first + len(files)))
        for number, file in zip(numbers, files, strict=True):
            self._store(self._path(number), file.content)
        bound, cost = [need.prompt_tokens, need.completion_tokens], self._cost(client.bounds.values())
        self._run.note(first, step="planned", numbers=numbers, calls=len(client.pending), bound=bound, cost=cost)
        self._hold(len(client.pending), need, cost or 0.0)
        self._rounds.append(_Round(numbers))

    async def _finish(self, each: _Round) -> None:
        """Submit the batches of a round that are not submitted yet, wait for them, and take their answers."""
        ids: dict[int, str] = {}
        unclear = self.given.batch_id
        for number in each.open:
            file = self._file(number)
            is_new = number not in self._run.batches
            async with self.gate:
                ids[number] = await self._run.submit(number, file, batch_id=unclear, is_lost=self.given.is_lost)
            unclear = "" if ids[number] == unclear else unclear
            if is_new:
                self.say(f"batch {number}: {len(file.keys):,} requests, submitted as {ids[number]}")
            else:
                self.say(f"batch {number}: submitted before as {ids[number]}")
        if not self.given.wait:
            running = [id for id in ids.values() if (await self.service.state(id)).status == "running"]
            if running:
                raise BatchWaiting(running)
        fault = ""
        for number, id in ids.items():
            state = await self._run.wait(id)
            if state.status == "failed":
                self._run.note(number, step="failed", fault=state.fault)
                each.failed.add(number)
                fault = fault or f"the service refused the batch {id}: {state.fault or state.word}"
                continue
            requests = self._requests(number)
            try:
                answers = await self._run.answers(state, list(requests))
            except BatchUnclear:
                self._run.note(number, step="foreign", id=id)
                raise
            lines = b"".join(
                orjson.dumps([line.key, line.status, line.body, line.fault]) + b"\n" for line in answers.lines.values()
            )
            self._store(self._answers_path(number), lines)
            usages, calls = self._client.usages(answers.lines), len(requests)
            usage, cost = Usage.sum(usages), self._cost(usages)
            good = sum(line.status == 200 for line in answers.lines.values())
            self._run.note(
                number, step="answered", word=state.word, calls=calls, answers=good, lost=len(answers.lost), unknown=answers.unknown,
                usage=[usage.prompt_tokens, usage.completion_tokens], cost=cost,
            )  # fmt: skip
            each.ended[number] = state.word
            self._charge(calls, usage, cost)
            self._client.take(answers.lines, requests)
            odd = "".join(
                f"; {count:,} {what}"
                for count, what in (
                    (answers.repeated, "further lines for the same requests were not used"),
                    (answers.unknown, "lines belong to no request"),
                )
                if count
            )
            self.say(f"batch {number}: {state.word}, {good:,} of {calls:,} requests answered{odd}")
        self._hold(0, Usage(), 0.0)
        if fault:
            raise BatchFailed(
                fault,
                hint="a resumed run submits its requests again; it may help to wait until other batches have ended",
            )

    def _hold(self, calls: int, usage: Usage, cost: float) -> None:
        """Let the ledger count these calls, tokens and dollars in place of those that were held before."""
        before_calls, before, before_cost = self._held
        self.ledger.charge(calls - before_calls, usage - before, cost - before_cost)
        self._held = (calls, usage, cost)

    def _charge(self, calls: int, usage: Usage, cost: float | None) -> None:
        self.calls += calls
        self.usage += usage
        self.cost += cost or 0.0
        self.ledger.charge(calls, usage, cost or 0.0)

    def _cost(self, usages: Iterable[Usage]) -> float | None:
        """Return the cost of calls in a batch; None if the price is unknown."""
        return None if self.price is None else sum(map(self.price.of, usages)) * BATCH_SHARE

    def _report(self, open_calls: int) -> None:
        if not self.calls:
            return
        batches = sum(len(each.ended) for each in self._rounds)
        told = f"batches: {batches}, {self.calls:,} requests, {self.usage.prompt_tokens:,} + {self.usage.completion_tokens:,} tokens"
        if self.price is not None and not self.price.is_free:
            told += f", ${self.cost:.4f} (half price)"
        left = f"; {open_calls:,} requests are open and {'are made live' if self.given.finish_live else 'fail'}"
        self.say(told + (left if open_calls else ""))

    def _recall(self, record: Mapping[str, Any]) -> None:
        """Take a record of an earlier process."""
        number = record["number"]
        match record["step"]:
            case "planned":
                self._rounds.append(_Round(tuple(record["numbers"])))
                if "bound" in record:
                    self._hold(record["calls"], Usage(*record["bound"]), record["cost"] or 0.0)
            case "answered":
                self._rounds[-1].ended[number] = record["word"]
                self._release_ended()
                self._charge(record["calls"], Usage(*record["usage"]), record["cost"])
            case "failed":
                self._rounds[-1].failed.add(number)
                self._release_ended()

    def _release_ended(self) -> None:
        """Release the held calls, tokens and dollars if all batches of the last round have ended."""
        if not self._rounds[-1].open:
            self._hold(0, Usage(), 0.0)

    async def _sleep(self, seconds: float) -> None:
        if self.cancel is None:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self.cancel.wait(), seconds)
        if self.cancel.is_set():
            raise _Interrupted

    def _check_interrupt(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise BatchWaiting((), is_interrupted=True)

    @staticmethod
    def _store(path: Path, content: bytes) -> None:
        try:
            write_private(path, content)
        except OSError as error:
            raise Unavailable(f"{path} can't be written: {error.strerror or error}", hint="resume the run") from error

    def _path(self, number: int) -> Path:
        return self.record.path / f"batch-{number}.jsonl"

    def _answers_path(self, number: int) -> Path:
        return self.record.path / f"batch-{number}-answers.jsonl"

    def _file(self, number: int) -> BatchFile:
        """Return the stored file of a batch."""
        content = self._path(number).read_bytes()
        return BatchFile(tuple(orjson.loads(line)["custom_id"] for line in content.splitlines()), content)

    def _requests(self, number: int) -> dict[str, Mapping[str, Any]]:
        found = map(orjson.loads, self._path(number).read_bytes().splitlines())
        return {request["custom_id"]: request for request in found}

    def _stored_answers(self, number: int) -> dict[str, BatchLine]:
        found = map(orjson.loads, self._answers_path(number).read_bytes().splitlines())
        return {key: BatchLine(key, status, body, fault) for key, status, body, fault in found}


class _Interrupted(Exception):
    """Raised if the run is cancelled while it waits for a batch."""


class _Kept(Layer):
    """Passes calls on; closing the layers of a pass does not close the model, which the next pass needs."""

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        return await self._inner.generate(prompt, **options)

    async def aclose(self) -> None:
        """Do nothing."""


def poll_seconds(environ: Mapping[str, str] = os.environ) -> tuple[float, float, float]:
    """Return the shortest and the longest time between two polls, and the time after which a submission is listed, in seconds."""
    with suppress(ValueError, KeyError):
        seconds = float(environ[POLL])
        return seconds, seconds, seconds
    return FIRST_POLL, LONGEST_POLL, SETTLED
