"""The direct client: plain chat completions over aiohttp, without an SDK.

A call needs a fraction of the CPU time of the same call through the ``openai`` SDK (``tests/bench/bench_calls.py``). The limits
on bodies, the retries, the reasons for failures and the masking of keys are the same as in ``BoundedClient`` (``http``). Every
request is counted in the ``Watch`` of its call.
"""

import asyncio
import json
import random
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from math import isfinite
from typing import Any

import aiohttp
import httpx2
import orjson
from yarl import URL

from . import LLMError, Unavailable
from .http import (
    CLOSED,
    CONNECT_TIMEOUT,
    FIRST_WAIT,
    LONGEST_WAIT,
    MAX_BODY,
    NO_CONNECTION,
    NOBODY,
    SPENT,
    Watch,
    connection_hint,
    current_watch,
    decoded,
    may_retry,
    tls_context,
    tls_reason,
)
from .service_errors import retry_after
from .trace_header import OUTGOING

_KEPT = 4.0
"""Seconds that an unused connection is kept. Common servers close it after 5 seconds; no request should arrive then."""
_LONGEST_FIELD = 64 * 1024
_MOST_FIELDS = 256
_BREAKS = (aiohttp.ClientError, OSError)
_UNCONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class FailedRequest(Exception):
    """Raised if the server answers with an error status and the request is not repeated, or not repeated again."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(response.status_code)
        self.response = response

    @property
    def param(self) -> str | None:
        """The parameter that the server names as the cause of the error."""
        try:
            found = json.loads(self.response.content)
        except (ValueError, RecursionError):
            return None
        error = found.get("error", found) if isinstance(found, dict) else None
        param = error.get("param") if isinstance(error, dict) else None
        return param if isinstance(param, str) else None


class RefusedRequest(FailedRequest):
    """Raised for the statuses 400, 404 and 422: the server may refuse only a part of the request."""


class DirectClient:
    """Sends JSON bodies to one address and returns the bodies of the answers.

    ``headers`` are sent with each request. ``key`` is replaced by ``***`` in answers. A request that failed for a temporary
    reason is repeated at most ``max_retries`` times: after the time that the server asks for or, if it asks for none, after 0.5
    s, 1 s, 2 s and so on (at most 8 s, minus a random part of up to a quarter). A client belongs to the event loop of its first
    request.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, key: str = "", max_retries: int = 2) -> None:
        self._url = URL(url)
        self._key = key.encode()
        self._max_retries = max_retries
        self._headers = {**headers, **_PROTOCOL}
        self._session: aiohttp.ClientSession | None = None

    async def post(self, body: Mapping[str, Any]) -> bytes:
        """Send ``body`` and return the body of the answer.

        Raises ``FailedRequest``, ``BodyTooLarge``, ``BodyUnreadable``, ``Unavailable``, and the error of a budget that allows no
        repetition.
        """
        watch = current_watch()
        content = _encoded(body)
        left = self._max_retries
        while True:
            wait = 0.0
            sent = watch.sent
            try:
                await watch.turn()
                watch.sending()
            except LLMError:  # neither the budget nor the pace allows another attempt
                watch.sent = sent
                raise
            try:
                status, headers, answer = await self._send(content)
            except _BREAKS as error:
                watch.reason, watch.lost = _reason(error), not isinstance(error, _UNCONNECTED)
                watch.unconnected()
                if not left:
                    raise Unavailable(watch.reason, hint=connection_hint(watch.reason)) from None
            else:
                if 200 <= status < 300:
                    return answer
                wait = self._pause(status, headers, answer, watch, left)
            turn = self._max_retries - left
            left -= 1
            await asyncio.sleep(wait or min(FIRST_WAIT * 2**turn, LONGEST_WAIT) * (1 - random.random() / 4))  # noqa: S311

    def _pause(self, status: int, headers: Mapping[str, str], answer: bytes, watch: Watch, left: int) -> float:
        """Return the seconds that the server asks to wait before a retry; raise ``FailedRequest`` if there is no retry."""
        # The body is already decoded, and the reason phrase is not the server's, as with the SDK's own HTTP client.
        kept = [pair for pair in headers.items() if pair[0].lower() not in SPENT]
        response = httpx2.Response(status, headers=kept, content=answer)
        if may_retry(response, watch) and left:
            return retry_after(response.headers)
        refused = status in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
        raise (RefusedRequest if refused else FailedRequest)(response)

    async def _send(self, content: bytes) -> tuple[int, Mapping[str, str], bytes]:
        if self._session is None:
            self._session = _session(self._url, self._headers)
        trace = {"traceparent": traceparent} if (traceparent := OUTGOING.get()) else None
        async with self._session.post(self._url, data=content, headers=trace, allow_redirects=False) as response:
            try:
                answer = await _body(response)
            except BaseException:
                response.close()  # the rest of the body is not read
                raise
        if self._key:
            answer = answer.replace(self._key, b"***")
        return response.status, response.headers, answer

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


_PROTOCOL = {"Accept": "application/json", "Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}


def _encoded(body: Mapping[str, Any]) -> bytes:
    """Return ``body`` as JSON. Raises ``ValueError`` for NaN, infinity and lone surrogates."""
    if not any(isinstance(value, float) and not isfinite(value) for value in body.values()):
        try:
            return orjson.dumps(body)
        except TypeError:  # an integer over 64 bits
            pass
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _session(url: URL, headers: Mapping[str, str]) -> aiohttp.ClientSession:
    # The certificates are those of the SDKs: the system's, or those in SSL_CERT_FILE or SSL_CERT_DIR.
    context: ssl.SSLContext | bool = True
    if url.scheme == "https":
        context = tls_context()
        context.set_alpn_protocols(["http/1.1"])
    return aiohttp.ClientSession(
        headers=headers,
        connector=aiohttp.TCPConnector(ssl=context, limit=0, keepalive_timeout=_KEPT),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        auto_decompress=False,
        max_line_size=_LONGEST_FIELD,
        max_field_size=_LONGEST_FIELD,
        max_headers=_MOST_FIELDS,
    )


async def _body(response: aiohttp.ClientResponse) -> bytes:
    encoding = response.headers.get("Content-Encoding", "")
    length = response.content_length
    if not encoding and length is not None and length <= MAX_BODY:
        return await response.read()
    return b"".join([piece async for piece in decoded(response.content.iter_any(), encoding)])


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return NO_CONNECTION
    return (tls_reason(error) or NOBODY) if isinstance(error, aiohttp.ClientConnectorError) else CLOSED
