"""Anthropic's batch API, through the ``anthropic`` SDK: batches of messages. The API has neither files nor metadata of batches."""

import json
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx2
from anthropic import AnthropicError, APIConnectionError, APIStatusError, AsyncAnthropic

from ..addresses import service_address
from . import BadAnswer
from .batches import BatchLine, BatchState
from .http import CONNECT_TIMEOUT
from .keys import hidden
from .proxies import client_for
from .service_errors import BatchCalls

MOST_REQUESTS = 100_000
MOST_BYTES = 256 * 1024 * 1024 - 1024
"""The limits of a batch; the body of the submission has some bytes besides the requests."""
_SECONDS = 300.0
_SKEW = 300.0
"""Seconds by which the clocks of this machine and the service may differ."""
_WINDOW = 3_600.0
"""Seconds after an intent in which its submission made a batch, if it made one."""
_LISTED = 100
_STATUSES = {"overloaded_error": 529, "api_error": 500, "rate_limit_error": 429, "timeout_error": 408}
"""The statuses of failed requests that may succeed later; all other failures have the status 400."""


class AnthropicBatches(BatchCalls):
    """The batch API of Anthropic; a ``BatchService``. The requests are submitted with the batch, and a batch has no marks.

    Questions are repeated if the service fails, submissions never. A submission that got no answer raises ``Unavailable``.
    """

    most_requests, most_bytes, has_files, has_marks = MOST_REQUESTS, MOST_BYTES, False, False
    faults = (AnthropicError, *BatchCalls.faults)
    refused, broken = APIStatusError, APIConnectionError

    def __init__(self, *, api_key: str, base_url: str | None = None, max_retries: int = 4) -> None:
        self._key = api_key
        address = service_address(base_url, "ANTHROPIC_BASE_URL")
        timeout = httpx2.Timeout(_SECONDS, connect=CONNECT_TIMEOUT)
        client = client_for(
            address,
            lambda proxy: httpx2.AsyncClient(timeout=timeout, trust_env=False, proxy=proxy.url if proxy else None),
        )
        self._sdk = AsyncAnthropic(
            api_key=api_key, base_url=base_url, max_retries=max_retries, http_client=client, open_telemetry=False
        )

    async def check(self) -> None:
        """Raise the errors of ``BatchService``."""
        await self._with_port_errors(self._sdk.messages.batches.list(limit=1))

    async def upload(self, name: str, content: bytes) -> str:
        """Return "": the requests are submitted with the batch."""
        return ""

    async def submit(self, file: str, content: bytes, run: str, number: int) -> str:
        """Submit the requests in ``content``, and return the batch's id. The request is never repeated."""
        requests = [json.loads(line) for line in content.splitlines()]
        made = self._sdk.with_options(max_retries=0).messages.batches.create(requests=requests)
        return (await self._with_port_errors(made)).id

    async def find(self, run: str, number: int, since: float, requests: int) -> Sequence[str]:
        """Return the ids of the batches with this number of requests that were made in the hour after ``since``."""
        first, last = (datetime.fromtimestamp(since + seconds, UTC) for seconds in (-_SKEW, _WINDOW))

        async def found() -> list[str]:
            ids = []
            async for batch in self._sdk.messages.batches.list(limit=_LISTED):  # latest first
                if batch.created_at < first:
                    break
                if batch.created_at <= last and _size(batch.request_counts) == requests:
                    ids.append(batch.id)
            return ids

        return await self._with_port_errors(found())

    async def state(self, batch: str) -> BatchState:
        """Return the state of a batch."""
        found = await self._with_port_errors(self._sdk.messages.batches.retrieve(batch))
        if found.processing_status != "ended":
            return BatchState(batch, "running", found.processing_status)
        counts = found.request_counts
        word = "cancelled" if found.cancel_initiated_at else "expired" if counts.expired else "completed"
        return BatchState(batch, "ended", word)

    async def lines(self, state: BatchState) -> AsyncGenerator[BatchLine, None]:
        """Yield the lines of the batch's results. Raises ``BadAnswer`` for a line that is not such a line."""
        try:
            async for found in await self._sdk.messages.batches.results(state.id):
                yield self._line(found)
            return
        except self.faults as error:
            failure = self._failure(error)
        raise failure

    async def cancel(self, batch: str) -> None:
        """Cancel a batch."""
        await self._with_port_errors(self._sdk.messages.batches.cancel(batch))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sdk.close()

    def _line(self, found: Any) -> BatchLine:
        told = json.loads(hidden(found.to_json(), self._key))
        try:
            key, result = str(told["custom_id"]), told["result"]
            match result["type"]:
                case "succeeded":
                    return BatchLine(key, 200, result["message"])
                case "errored":
                    error = result["error"]["error"]
                    return BatchLine(
                        key, _STATUSES.get(error["type"], 400), {"error": error}, str(error["message"])[:300]
                    )
                case "expired" | "canceled" as word:
                    return BatchLine(key, 0, fault=f"the request {'expired' if word == 'expired' else 'was cancelled'}")
        except (KeyError, TypeError):
            pass
        raise BadAnswer("a line of the batch's answers is not an answer", text=str(told)[:200])


def _size(counts: Any) -> int:
    return sum((counts.canceled, counts.errored, counts.expired, counts.processing, counts.succeeded))
