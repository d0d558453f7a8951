"""OpenAI's batch API, through the ``openai`` SDK: files of requests, batches, and their answers."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Literal

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError

from ..addresses import service_address
from . import BadAnswer, BadRequest, NotConfigured
from .batches import CHAT_ENDPOINT, BatchLine, BatchState
from .http import CONNECT_TIMEOUT, MAX_BODY, only_protocol_headers
from .json_schema import read_json_bytes
from .keys import hidden
from .proxies import client_for
from .service_errors import BatchCalls

MOST_REQUESTS = 50_000
MOST_BYTES = 200 * 1024 * 1024
"""The limits of a file."""
_ENDED = frozenset(("completed", "expired", "cancelled"))
_RUN, _NUMBER = "knotwork_run", "knotwork_batch"
_SECONDS = 300.0
_LISTED = 100
_SKEW = 3_600.0
"""Seconds by which the clocks of this machine and the service may differ."""
_NO_KEY = "none"
"""The key that the SDK sends to a server that needs no key."""


class OpenAIBatches(BatchCalls):
    """The batch API of OpenAI, or of another service with the same API at ``base_url``; a ``BatchService``.

    Questions are repeated if the service fails, submissions never. A submission that got no answer raises ``Unavailable``.
    """

    most_requests, most_bytes, has_files, has_marks = MOST_REQUESTS, MOST_BYTES, True, True
    faults = (OpenAIError, *BatchCalls.faults)
    refused, broken = APIStatusError, APIConnectionError

    def __init__(self, *, api_key: str | None, base_url: str | None = None, max_retries: int = 4) -> None:
        self._key = api_key or ""
        hooks: dict[str, list[Callable[..., Any]]] = {"request": [_own_headers]} if base_url else {}
        address = service_address(base_url, "OPENAI_BASE_URL")
        timeout = httpx2.Timeout(_SECONDS, connect=CONNECT_TIMEOUT)
        client = client_for(
            address,
            lambda proxy: httpx2.AsyncClient(
                timeout=timeout, event_hooks=hooks, trust_env=False, proxy=proxy.url if proxy else None
            ),
        )
        self._sdk = AsyncOpenAI(
            api_key=api_key or _NO_KEY, base_url=base_url, max_retries=max_retries, http_client=client
        )

    async def check(self) -> None:
        """Raise ``NotConfigured`` if the server has no batch API, and the errors of ``BatchService``."""
        try:
            await self._with_port_errors(self._listed())
        except BadAnswer:
            missing = True
        except BadRequest as error:
            missing = True
            if not error.message.startswith(("404", "405", "501")):
                raise
        else:
            missing = False
        if missing:
            raise NotConfigured("the server has no batch API", hint="run without --batch")

    async def _listed(self) -> None:
        async for _ in self._sdk.batches.list(limit=1):
            return

    async def upload(self, name: str, content: bytes) -> str:
        """Store a file of requests; return its id. If the service fails in between, it may keep the file twice, which costs nothing."""
        return (await self._with_port_errors(self._sdk.files.create(file=(name, content), purpose="batch"))).id

    async def submit(self, file: str, content: bytes, run: str, number: int) -> str:
        """Submit the stored file ``file``, and return the batch's id. The request is never repeated."""
        made = self._sdk.with_options(max_retries=0).batches.create(
            input_file_id=file, endpoint=CHAT_ENDPOINT, completion_window="24h", metadata={_RUN: run, _NUMBER: str(number)}
        )  # fmt: skip
        return (await self._with_port_errors(made)).id

    async def find(self, run: str, number: int, since: float, requests: int) -> Sequence[str]:
        """Return the ids of the batches that were submitted with these marks after ``since``."""

        async def found() -> list[str]:
            ids = []
            async for batch in self._sdk.batches.list(limit=_LISTED):  # latest first
                if batch.created_at < since - _SKEW:
                    break
                marks = batch.metadata or {}
                if (marks.get(_RUN), marks.get(_NUMBER)) == (run, str(number)):
                    ids.append(batch.id)
            return ids

        return await self._with_port_errors(found())

    async def state(self, batch: str) -> BatchState:
        """Return the state of a batch."""
        found = await self._with_port_errors(self._sdk.batches.retrieve(batch))
        status: Literal["running", "ended", "failed"] = "ended" if found.status in _ENDED else "running"
        if found.status == "failed":
            status = "failed"
        files = tuple(file for file in (found.output_file_id, found.error_file_id) if file)
        faults = [error.message or error.code or "" for error in (found.errors.data if found.errors else None) or ()]
        return BatchState(batch, status, found.status, files, hidden("; ".join(faults[:3])[:300], self._key))

    async def lines(self, state: BatchState) -> AsyncGenerator[BatchLine, None]:
        """Yield the lines of the files with answers and errors. Raises ``BadAnswer`` for a line that is not such a line."""
        for file in state.files:
            try:
                async with self._sdk.files.with_streaming_response.content(file) as response:
                    async for line in _lines(response.iter_bytes()):
                        yield self._line(line)
                continue
            except self.faults as error:
                failure = self._failure(error)
            raise failure

    async def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        await self._with_port_errors(self._sdk.batches.cancel(batch))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sdk.close()

    def _line(self, line: bytes) -> BatchLine:
        try:
            found = read_json_bytes(line.replace(self._key.encode(), b"***") if len(self._key) >= 8 else line)
            response, error = found.get("response") or {}, found.get("error") or {}
            fault = str(error.get("message") or error.get("code") or "") if isinstance(error, dict) else str(error)
            body = response.get("body")
            return BatchLine(
                str(found["custom_id"]), int(response.get("status_code") or 0), body if isinstance(body, dict) else {}, fault[:300]
            )  # fmt: skip
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BadAnswer(
                "a line of the batch's answers is not an answer", text=line[:200].decode(errors="replace")
            ) from None


async def _own_headers(request: httpx2.Request) -> None:
    only_protocol_headers(request)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the lines that are not empty; raise ``BadAnswer`` before a line of more than ``MAX_BODY`` bytes is in memory."""
    held = b""
    async for piece in pieces:
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
        if len(held) > MAX_BODY:
            raise BadAnswer(f"a line of the batch's answers is larger than {MAX_BODY >> 20} MiB")
    if held.strip():
        yield held
