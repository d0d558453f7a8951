"""The call cache: answers in SQLite, keyed by the request's content. Equal concurrent requests share one call."""

import asyncio
import copy
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from attrs import define, evolve, field
from blake3 import blake3

from ..sqlite_store import SQLiteStore, Table
from . import BudgetExceeded, Completion, LLMError, Notice, Options, TimedOut, Usage
from .json_schema import canonical
from .middleware import TIMEOUT, Client, Layer, Patience, asked_for, checked, fitting
from .shared_cache import SharedCache, StoredAnswer

_VERSION = 1
_TABLE = Table(
    what="the call cache",
    make="CREATE TABLE IF NOT EXISTS answers_1"
    " (key BLOB PRIMARY KEY, text TEXT NOT NULL, finish_reason TEXT NOT NULL, model TEXT NOT NULL,"
    " digest BLOB NOT NULL,"
    " prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP)"
    " WITHOUT ROWID",
    find="SELECT text, finish_reason, model, digest, prompt_tokens, completion_tokens FROM answers_1 WHERE key = ?",
    insert="INSERT OR REPLACE INTO answers_1 (key, text, finish_reason, model, digest, prompt_tokens, completion_tokens)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)",
    probe="SELECT count(*) FROM (SELECT 1 FROM answers_1 LIMIT 1)",
)


def request_key(identity: str, prompt: str, options: Mapping[str, Any] | Options) -> bytes:
    """Return the request's 32-byte key: a hash of the model's spec, the prompt, the request's options and the sample index."""
    request = [_VERSION, identity, prompt, asked_for(options), options.get("sample", 0)]
    return blake3(canonical(request)).digest()


@define(eq=False)
class _Flight:
    """A running call. It has a separate task, so that it continues for the other callers if one caller is cancelled."""

    task: "asyncio.Task[Completion]"
    waiting: int = 0
    listeners: list[Callable[[Notice], None]] = field(factory=list)


class Cached(Layer):
    """Returns earlier answers from the SQLite file ``path``, which is created with mode 0600, its folder with mode 0700.

    ``identity`` is the model's spec. The cache is the outermost layer, so only complete, validated answers are stored. In an
    answer from the cache, ``cached`` is set, and usage and cost are 0. If the file is damaged, locked or not writable, ``warn``
    is called once and the cache is disabled, but the run continues. ``busy`` is the number of seconds to wait while another
    process writes. An answer that is not in the file is looked up in ``shared``; new answers are stored in both. If another
    process is making the same call, the cache waits for the answer of that call, at most as long as the call's timeout. The
    time spent waiting does not count against the timeout.
    """

    def __init__(
        self, inner: Client, path: Path, identity: str, *, warn: Callable[[str], None] | None = None, busy: float = 2.0,
        shared: SharedCache | None = None,
    ) -> None:  # fmt: skip
        super().__init__(inner)
        self._shared = shared
        self._shelf = SQLiteStore(path, _TABLE, warn=warn, busy=busy)
        self._identity = identity
        self._flights: dict[bytes, _Flight] = {}
        self._closed = False

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the stored answer to this request or, if there is none, get an answer from the inner client and store it."""
        try:
            key = request_key(self._identity, prompt, options)
        except (
            TypeError,
            ValueError,
        ):  # a lone surrogate or an invalid schema: the inner layers report the fault
            return await self._inner.generate(prompt, **options)
        await self._shelf.opened()
        while True:
            if (kept := self._find(key)) is not None and (found := fitting(kept, options)) is not None:
                return found
            flight = self._flights.get(key)
            joined = flight is not None
            if flight is None:
                flight = self._start_flight(key, prompt, options)
            if (notify := options.get("notify")) is not None:
                flight.listeners.append(notify)
            try:
                answer = await self._await_flight(key, flight)
            except LLMError as error:
                if joined and isinstance(error, TimedOut | BudgetExceeded):
                    continue  # the other caller's timeout or budget was exceeded
                if joined:
                    error = copy.copy(error)
                    error.usage = Usage()
                raise error from None
            return _free(answer) if joined and not answer.cached else answer

    async def aclose(self) -> None:
        """Cancel the running calls; close the file and the inner client."""
        if self._closed:
            return
        self._closed = True
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._shared is not None:
            await self._shared.aclose()
        await self._shelf.aclose()
        await super().aclose()

    def _start_flight(self, key: bytes, prompt: str, options: Options) -> _Flight:
        def notify(notice: Notice) -> None:
            for listener in flight.listeners:
                listener(notice)

        asked: Options = {**options, "notify": notify}
        flight = _Flight(asyncio.create_task(self._call_and_store(key, prompt, asked)))
        self._flights[key] = flight
        flight.task.add_done_callback(lambda task: self._remove(key, flight))
        return flight

    def _remove(self, key: bytes, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if flight.task.done() and not flight.task.cancelled():
            flight.task.exception()  # mark the exception as retrieved, because no caller is left

    async def _call_and_store(self, key: bytes, prompt: str, options: Options) -> Completion:
        if self._shared is None:
            answer = await self._inner.generate(prompt, **options)
            if not self._shelf.broken:
                await self._shelf.keep(_row(key, answer, options))
            return answer
        started = time.monotonic()
        kept = await self._shared.find(key, options.get("timeout", TIMEOUT))
        Patience.waited(options, time.monotonic() - started)
        if kept is not None:
            stored = _completion(key, kept[1:])
            if stored is not None and (found := checked(stored, options)) is not None:
                if not self._shelf.broken:
                    await self._shelf.keep(kept)
                return found
        try:
            answer = await self._inner.generate(prompt, **options)
            row = _row(key, answer, options)
        except BaseException:
            self._shared.release(key)  # another process may make the call
            raise
        self._shared.keep(row)  # first, because the caller may be cancelled while the file is written
        if not self._shelf.broken:
            await self._shelf.keep(row)
        return answer

    async def _await_flight(self, key: bytes, flight: _Flight) -> Completion:
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                # The last caller was cancelled: the task must end, and no new caller may join it.
                self._remove(key, flight)
                flight.task.cancel()
                await asyncio.wait([flight.task])

    def _find(self, key: bytes) -> Completion | None:
        """Return the stored answer to a request; None if it is missing or damaged."""
        row = self._shelf.find(key)
        if row is None:
            return None
        found = _completion(key, row)
        if found is None:
            self._shelf.give_up("an answer in it is damaged")
        return found


def _completion(key: bytes, row: tuple[Any, ...]) -> Completion | None:
    """Return the answer in a row; None if it is damaged."""
    text, finish_reason, model, digest, *counts = row
    if not isinstance(text, str) or digest != _digest(key, text):
        return None
    return _free(Completion(text=text, finish_reason=finish_reason, model=model, usage=Usage(*counts)))


def _row(key: bytes, answer: Completion, options: Options) -> StoredAnswer:
    text, usage = _stored_text(answer, options), answer.usage
    return StoredAnswer(
        key, text, answer.finish_reason, answer.model, _digest(key, text), usage.prompt_tokens, usage.completion_tokens
    )


def _digest(key: bytes, text: str) -> bytes:
    """Return a checksum that detects damaged text, because SQLite has no checksums."""
    return blake3(key + text.encode()).digest(length=8)


def _stored_text(answer: Completion, options: Options) -> str:
    """Return the text to store: the original answer if it can be parsed to the same text again, else the parsed text."""
    if answer.raw:
        again = fitting(evolve(answer, text=answer.raw, raw=""), options)
        if again is not None and again.text == answer.text:
            return answer.raw
    return answer.text


def _free(answer: Completion) -> Completion:
    return evolve(answer, usage=Usage(), attempts=0, cached=True, cost=0.0, original=answer.usage)
