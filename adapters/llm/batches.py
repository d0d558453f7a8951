"""Batches: files of requests that a service answers within a day, at a lower price. Each batch is submitted once, whatever is interrupted.

What is about to be done, the file and the batch are written to a journal before and after each step. After an interruption, the service is
asked for the batch of the run; if that does not decide whether the batch was submitted, nothing is submitted.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import orjson
from attrs import define, evolve, field, frozen
from blake3 import blake3

from . import LLMError, TimedOut, Unavailable

__all__ = [
    "BatchAnswers",
    "BatchFile",
    "BatchJournal",
    "BatchLine",
    "BatchRun",
    "BatchService",
    "BatchState",
    "BatchUnclear",
    "batch_files",
]

CHAT_ENDPOINT: Final = "/v1/chat/completions"
"""The path to which requests for chat completions are addressed in a batch, whatever the base address is."""
FIRST_POLL, LONGEST_POLL = 60.0, 600.0
"""Seconds between two questions for a batch's state: a tenth of its age, within these limits."""
SETTLED = 60.0
"""Seconds after which a submission without an answer, if it made a batch, is in the service's list of batches."""
_READS = 3
"""How often the answers of a batch are read from the start if the connection breaks."""


class BatchUnclear(LLMError):
    """Raised if it is unknown whether a batch was submitted. Nothing is submitted; the user must decide."""

    kind = "batch_unclear"


@frozen
class BatchState:
    """The state of a batch: ``running``, ``ended`` (also expired or cancelled; some answers may exist), or ``failed`` (no answers).

    ``word`` is the service's own word for the state, ``files`` the ids of the files with answers and errors, ``fault`` why it failed.
    """

    id: str
    status: Literal["running", "ended", "failed"]
    word: str
    files: tuple[str, ...] = ()
    fault: str = ""


@frozen
class BatchLine:
    """The result of one request: the status and body of its response. ``status`` is 0 if it has no response; ``fault`` says why."""

    key: str
    status: int
    body: Mapping[str, Any] = field(factory=dict)
    fault: str = ""


@frozen
class BatchFile:
    """A file of requests, a JSON object in each line, and the keys of the requests in this order."""

    keys: tuple[str, ...]
    content: bytes

    @property
    def digest(self) -> str:
        """A hash of the content."""
        return blake3(self.content).hexdigest(length=16)


@frozen
class BatchAnswers:
    """The ``lines`` of a batch by the keys of its requests.

    ``lost`` are the keys without a line, ``unknown`` is the number of lines that belong to no request, and ``repeated`` the number of
    further lines for a request that has a line.
    """

    lines: Mapping[str, BatchLine]
    lost: tuple[str, ...]
    unknown: int
    repeated: int = 0


class BatchService(Protocol):
    """A service's batch API. Every method raises ``LLMError``.

    A file has at most ``most_requests`` lines and ``most_bytes`` bytes. If ``has_files`` is false, the requests are submitted without an
    upload. If ``has_marks`` is false, ``find`` compares times and sizes.
    """

    most_requests: int
    most_bytes: int
    has_files: bool
    has_marks: bool

    async def check(self) -> None:
        """Raise ``LLMError`` if the service has no batch API, or can't be used with this key."""
        ...

    async def upload(self, name: str, content: bytes) -> str:
        """Store a file of requests; return its id."""
        ...

    async def submit(self, file: str, content: bytes, run: str, number: int) -> str:
        """Submit a file once, without repetitions, and return the batch's id. The batch is marked with the run and its number.

        ``file`` is the id of the stored file ("" for a service without files), ``content`` its content.
        """
        ...

    async def find(self, run: str, number: int, since: float, requests: int) -> Sequence[str] | None:
        """Return the ids of the batches with these marks; None if the service can't tell.

        A service without marks returns the batches with this number of requests that were made after ``since`` (seconds since 1970).
        """
        ...

    async def state(self, batch: str) -> BatchState:
        """Return the state of a batch."""
        ...

    def lines(self, state: BatchState) -> AsyncGenerator[BatchLine, None]:
        """Yield the lines of all files of a batch that has ended."""
        ...

    async def cancel(self, batch: str) -> None:
        """Cancel a batch. Answers that exist can still be read when it has ended."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class BatchJournal(Protocol):
    """An append-only journal; ``runtime.runs.journal.Journal`` is one."""

    @property
    def damage(self) -> str:
        """Why nothing more is written; "" if all is written."""
        ...

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record."""
        ...

    def sync(self) -> None:
        """Wait until all records are on disk."""
        ...


def batch_files(
    requests: Iterable[tuple[str, Mapping[str, Any]]], *, most_requests: int, most_bytes: int
) -> Iterator[BatchFile]:
    """Yield files with all ``requests``, pairs of key and line, within the limits of a service.

    Raises ``ValueError`` for a line that is larger than a file may be, and for a key that occurs twice.
    """
    keys: list[str] = []
    lines: list[bytes] = []
    size, seen = 0, set[str]()
    for key, request in requests:
        line = orjson.dumps(request) + b"\n"
        if len(line) > most_bytes:
            raise ValueError(f"a request has {len(line):,} bytes; a file of a batch has at most {most_bytes:,}")
        if key in seen:
            raise ValueError(f"the key {key[:80]!r} occurs twice")
        seen.add(key)
        if len(keys) == most_requests or size + len(line) > most_bytes:
            yield BatchFile(tuple(keys), b"".join(lines))
            keys, lines, size = [], [], 0
        keys.append(key)
        lines.append(line)
        size += len(line)
    if keys:
        yield BatchFile(tuple(keys), b"".join(lines))


def _worth(line: BatchLine) -> int:
    return (line.status > 0) + (line.status == 200)


_DECIDE = "look it up at the service; resume the run with --batch-id ID if the batch exists, else with --batch-lost"


@frozen
class _Begun:
    """The journal's record of a batch: the hash and number of its requests, its stored file, its id, and the time of the intent."""

    digest: str
    file: str = ""
    id: str = ""
    requests: int = 0
    time: float = 0.0
    foreign: tuple[str, ...] = ()  # similar batches that belong to other runs


@define
class BatchRun:
    """The batches of the run ``run``. ``records`` are the journal's earlier records, of which those of other kinds are ignored.

    ``polls`` are the shortest and the longest time between two requests for a batch's state. ``settled`` is the age from which a submission
    that the service does not list counts as failed. All are in seconds. ``tell`` receives a message before a wait that is not for a batch.
    """

    service: BatchService
    journal: BatchJournal
    run: str
    records: Iterable[Mapping[str, Any]] = ()
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    polls: tuple[float, float] = (FIRST_POLL, LONGEST_POLL)
    settled: float = SETTLED
    tell: Callable[[str], None] = lambda text: None
    _begun: dict[int, _Begun] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for record in self.records:
            if record.get("record") == "batch":
                self._take(record)

    @property
    def batches(self) -> dict[int, str]:
        """The ids of the submitted batches, by number."""
        return {number: begun.id for number, begun in self._begun.items() if begun.id}

    async def submit(self, number: int, file: BatchFile, *, batch_id: str = "", is_lost: bool = False) -> str:
        """Submit a file as the batch ``number`` of the run, unless the journal or the service says that it was submitted; return its id.

        If the submission was interrupted, ``batch_id`` is the batch that it made, and ``is_lost`` means that it made none. Raises
        ``BatchUnclear`` if neither is given and the service can't tell, or if the file is not the one that was submitted. Raises
        ``Unavailable`` if the journal can't be written, because the batch might be submitted again later.
        """
        begun = self._begun.get(number)
        if begun is not None and begun.id:
            self._check_file(number, begun, file)
            return begun.id
        if begun is not None:
            self._check_file(number, begun, file)
            may_exist = begun.file or not self.service.has_files  # the file is stored before the batch is submitted
            if may_exist and not is_lost and (found := batch_id or await self._found(number, self.settled)):
                return self._submitted(number, found)
        self.note(number, step="intent", digest=file.digest, requests=len(file.keys), time=time.time())
        stored = "" if begun is None else begun.file
        if not stored and self.service.has_files:
            stored = await self.service.upload(f"{self.run}-{number}.jsonl", file.content)
            self.note(number, step="file", file=stored)
        try:
            made = await self.service.submit(stored, file.content, self.run, number)
        except Unavailable as error:  # the service may have made the batch
            found = await self._found(number, 0.0)
            if not found:
                raise Unavailable(
                    f"no reply to the submission of batch {number}, and the service does not list it: {error.message}",
                    hint="resume the run; if the service does not list the batch after a minute either, it is submitted again",
                ) from None
            return self._submitted(number, found)
        return self._submitted(number, made)

    async def wait(self, batch: str, *, within: float | None = None) -> BatchState:
        """Return the state of ``batch`` when it has ended or failed. Raises ``TimedOut`` after ``within`` seconds; the batch continues."""
        began = time.monotonic()
        while True:
            try:
                state = await self.service.state(batch)
            except Unavailable as error:
                state = BatchState(batch, "running", error.message)
            if state.status != "running":
                return state
            age = time.monotonic() - began
            if within is not None and age >= within:
                raise TimedOut(f"the batch {batch} is not finished ({state.word})")
            first, longest = self.polls
            await self.sleep(min(max(age / 10, first), longest))

    async def answers(self, state: BatchState, keys: Sequence[str]) -> BatchAnswers:
        """Return the answers of a batch with the requests ``keys``.

        Of several lines for one request, the first answer counts (status 200), else the first line with a response.
        """
        asked, lines, unknown, repeated = set(keys), dict[str, BatchLine](), 0, 0
        for reading in range(_READS):
            unknown = repeated = 0
            lines.clear()
            try:
                async for line in self.service.lines(state):
                    if line.key not in asked:
                        unknown += 1
                        continue
                    earlier = lines.setdefault(line.key, line)
                    repeated += earlier is not line
                    if _worth(line) > _worth(earlier):
                        lines[line.key] = line
                break
            except Unavailable:
                if reading == _READS - 1:
                    raise
        if unknown and not lines:
            raise BatchUnclear(
                f"the batch {state.id} has no answer to a request of this run, so it is the batch of another run",
                hint="resume the run with --batch-id and the id of its batch, or with --batch-lost if there is none",
            )
        return BatchAnswers(lines, tuple(key for key in keys if key not in lines), unknown, repeated)

    async def cancel(self) -> tuple[str, ...]:
        """Cancel all submitted batches that are running; return their ids."""
        cancelled = []
        for number, begun in self._begun.items():
            batch = begun.id
            if not batch and (begun.file or not self.service.has_files):
                if not self.service.has_marks:  # a batch of the same size may be another's
                    raise BatchUnclear(
                        f"the submission of batch {number} was interrupted, so its id is unknown",
                        hint="cancel it at the service",
                    )
                batch = await self._found(number, 0.0)
            if batch and (await self.service.state(batch)).status == "running":
                await self.service.cancel(batch)
                cancelled.append(batch)
        return tuple(cancelled)

    async def _found(self, number: int, settled: float) -> str:
        """Return the id of the batch that an interrupted submission made; "" if it made none.

        A submission that is younger than ``settled`` seconds may still reach the list of the service, so the list is read again then.
        """
        begun = self._begun[number]
        while True:
            found = await self.service.find(self.run, number, begun.time, begun.requests)
            if found is None:
                raise BatchUnclear(
                    f"the submission of batch {number} was interrupted, and the service can't tell whether the batch exists",
                    hint=_DECIDE,
                )
            others = {batch for other, batch in self.batches.items() if other != number} | {*begun.foreign}
            found = [batch for batch in found if batch not in others]
            if len(found) > 1:
                raise BatchUnclear(
                    f"the submission of batch {number} was interrupted, and {len(found)} batches may be this batch: "
                    f"{', '.join(found[:10])}",
                    hint=_DECIDE,
                )
            left = begun.time + settled - time.time()
            if found or left <= 0 or settled <= 0:
                return found[0] if found else ""
            self.tell(
                f"batch {number}: its submission was interrupted, and the service does not list it yet; the list is read again in "
                f"{math.ceil(min(left, settled))} s, before the batch is submitted again"
            )
            await self.sleep(min(left, settled))

    def _check_file(self, number: int, begun: _Begun, file: BatchFile) -> None:
        if begun.digest != file.digest:
            raise BatchUnclear(
                f"the requests of batch {number} are not those that were submitted",
                hint="resume the run with the same contexts, options and cache, or begin a new run",
            )

    def _submitted(self, number: int, batch: str) -> str:
        self.note(number, step="submitted", id=batch)
        return batch

    def note(self, number: int, **what: Any) -> None:
        """Write a record about the batch ``number``, and wait until it is on disk. Raises ``Unavailable`` if that fails."""
        record = {"record": "batch", "number": number, **what}
        self.journal.append(record)
        self.journal.sync()
        if self.journal.damage:
            raise Unavailable(f"a batch is not submitted without a journal: {self.journal.damage}")
        self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        number, begun = record["number"], self._begun.get(record["number"])
        if record["step"] == "intent":
            kept = begun.file if begun is not None and begun.digest == record["digest"] else ""
            self._begun[number] = _Begun(
                record["digest"], kept, requests=record.get("requests", 0), time=record.get("time", 0.0),
                foreign=() if begun is None else begun.foreign,
            )  # fmt: skip
        elif begun is not None and record["step"] == "file":
            self._begun[number] = evolve(begun, file=record["file"])
        elif begun is not None and record["step"] == "submitted":
            self._begun[number] = evolve(begun, id=record["id"])
        elif begun is not None and record["step"] == "foreign":
            self._begun[number] = evolve(begun, id="", foreign=(*begun.foreign, record["id"]))
