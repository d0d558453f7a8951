"""The HTTP client that the SDKs use: it limits the size of bodies, reports retries and masks keys. Also parses bodies.

The SDKs perform the retries. Every request goes through ``BoundedClient.send``, which counts attempts, keeps bodies within
``MAX_BODY``, and tells the SDK which failures to retry.
"""

import asyncio
import json
import os
import re
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import httpx2
from attrs import define, field

from . import BadAnswer, LLMError, NotConfigured, Notice, RateLimited, Truncated, Unavailable, Usage
from .json_schema import read_json, read_json_bytes
from .keys import hidden
from .pace import PACED, PacedCall
from .pools import Pools
from .proxies import Proxy, client_for
from .service_errors import in_band_error, retry_after, status_error, web_page
from .trace_header import OUTGOING

MAX_BODY = 4 * 1024 * 1024
"""Maximum bytes of a body, both before and after decompression."""

CONNECT_TIMEOUT = 10.0
"""Maximum number of seconds for opening a connection."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds to wait before the first repetition of a request, and their maximum. They double each time, as in the SDKs."""

_PIECE = 64 * 1024
_LEFTOVER = 0.2  # seconds
_OWN_HEADERS = re.compile(
    "host|accept|accept-encoding|connection|user-agent|content-type|content-length|authorization|x-api-key"
    "|anthropic-version|idempotency-key|x-stainless-.*"
)
CLOSED = "the connection was closed before the answer was complete"
_BREAKS = (httpx2.RequestError, OSError)
"""Exceptions raised when a connection breaks inside a body. TLS errors are OSErrors, which httpx does not convert."""
NO_CONNECTION = f"no connection within {CONNECT_TIMEOUT:g} s"
NOBODY = "no connection: no server answers at this address"
NO_TLS = "no encrypted connection: "
SPENT = frozenset(("content-encoding", "content-length", "transfer-encoding", "x-should-retry"))


@define
class Watch:
    """One call at the HTTP level: the number of requests sent, the reason for the last failure, and the deadline.

    A request may take ``span`` seconds, and the call may last until ``deadline`` (event loop time). ``scope`` is the call's
    timeout, which is extended when the SDK is about to retry. ``fault`` is an error that was hidden from the SDK; the caller
    gets it instead of the SDK's error. ``lost`` is true if the last request had reached the server when the connection broke,
    so that the server may have answered the request and charged for it. ``keys`` are masked in notices.
    """

    notify: Callable[[Notice], None] | None
    deadline: float
    span: float
    keys: tuple[str, ...] = ()
    scope: asyncio.Timeout | None = None
    sent: int = 0
    reason: str = ""
    lost: bool = False
    fault: Exception | None = None
    paced: PacedCall | None = field(factory=PACED.get)

    async def turn(self) -> None:
        """Wait for the turn of a repeated request; the wait extends the time of the call. Raises the failure that ends all calls."""
        call = self.paced
        if call is None or not self.sent:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        if self.scope is not None and not self.scope.expired():
            self.scope.reschedule(None)
        try:
            await call.pace.turn(call)
        finally:
            self.deadline += loop.time() - began
            self.put_off(0)

    def unconnected(self) -> None:
        """Note that a request found no server."""
        if self.paced is not None:
            self.paced.pace.unreachable(self.paced)

    def sending(self) -> None:
        """Count a request; report it if it repeats an earlier request."""
        self.sent += 1
        if self.paced is not None:
            self.paced.is_sent = True
        if self.sent > 1 and self.reason and self.notify is not None:
            self.notify(Notice("retry", self.sent, hidden(self.reason, *self.keys), self.lost))
        self.reason, self.lost = "", False

    def put_off(self, wait: float) -> None:
        """Extend the timeout for the next request, which starts in ``wait`` seconds."""
        if self.scope is not None and not self.scope.expired():
            now = asyncio.get_running_loop().time()
            self.scope.reschedule(min(self.deadline, now + wait + self.span))


_WATCH: ContextVar[Watch] = ContextVar("knotwork_llm_call")


def current_watch() -> Watch:
    """Return the ``Watch`` of the running call. Raises ``LookupError`` outside ``watching``."""
    return _WATCH.get()


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Use ``watch`` for the requests that this task sends inside the block."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


class BodyTooLarge(Exception):
    """Raised if a body is larger than ``MAX_BODY``."""


class BodyUnreadable(Exception):
    """Raised if a body does not match its Content-Encoding."""


class Broken(Truncated):
    """Raised if the connection breaks inside a response's body and the SDK does not retry."""


class BoundedClient(httpx2.AsyncClient):
    """The HTTP client under an SDK: no redirects, bounded bodies, retries reported to the call's ``Watch``.

    ``key`` is replaced by ``***`` in responses. If ``foreign``, the service is not the SDK's own, so only protocol headers are sent;
    settings that the SDK reads from the environment (organisation, custom headers) are not sent. ``plain`` is true if the address is http,
    without TLS. With a ``proxy``, all requests go through it, with a single pool.
    """

    def __init__(
        self, *, key: str = "", foreign: bool = False, plain: bool = False, proxy: Proxy | None = None
    ) -> None:
        # A TLS context without certificate authorities accepts no certificate, and is fast to create.
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else tls_context()
        mounts = {} if proxy else {"all://": Pools(lambda: httpx2.AsyncHTTPTransport(verify=verify))}
        super().__init__(
            verify=verify,
            trust_env=False,
            proxy=proxy.url if proxy else None,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT),
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            follow_redirects=False,
            mounts=mounts,
        )
        self._key = key.encode()
        self._foreign = foreign
        self._proxy = proxy

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send ``request``. Reads a failed response's complete body (up to ``MAX_BODY``), and marks the response as retryable or not."""
        watch = current_watch()
        before = watch.sent
        try:
            await watch.turn()
            watch.sending()
        except LLMError as error:  # neither the budget nor the pace allows another attempt
            watch.fault, watch.sent = error, before
            return httpx2.Response(400, headers={"x-should-retry": "false"}, content=b"", request=request)
        if self._foreign:
            only_protocol_headers(request)
        request.headers["accept-encoding"] = "gzip, deflate"
        if traceparent := OUTGOING.get():
            request.headers["traceparent"] = traceparent
        options["follow_redirects"] = False
        try:
            response = await super().send(request, stream=True, **options)
            # The returned response has a decoded, complete body. The code below decides about a retry, not the server.
            headers = httpx2.Headers([pair for pair in response.headers.multi_items() if pair[0] not in SPENT])
            if stream and response.is_success:
                return httpx2.Response(
                    response.status_code, headers=headers, stream=_Bounded(response), request=request,
                    extensions=response.extensions,
                )  # fmt: skip
            body = b"".join([piece async for piece in _pieces(response)])
        except _BREAKS as error:
            watch.reason = _connection_reason(error, self._proxy)
            watch.lost = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol)
            watch.unconnected()
            raise
        except (BodyTooLarge, BodyUnreadable) as error:
            # The error is not raised here, because one SDK treats any exception as a connection error and retries.
            watch.fault = error
            return httpx2.Response(400, headers={"x-should-retry": "false"}, content=b"", request=request)
        if self._key:
            body = body.replace(self._key, b"***")
        whole = httpx2.Response(response.status_code, headers=headers, content=body, request=request)
        if not whole.is_success:
            whole.headers["x-should-retry"] = "true" if may_retry(whole, watch) else "false"
        return whole


def bounded_client(url: str, *, key: str, foreign: bool) -> BoundedClient:
    """Return the client for requests to ``url``, through the proxy of the environment. Raises ``NotConfigured``."""
    plain = url.startswith("http://")
    return client_for(url, lambda proxy: BoundedClient(key=key, foreign=foreign, plain=plain, proxy=proxy))


def only_protocol_headers(request: httpx2.Request) -> None:
    """Remove the headers that an SDK adds for its own service, such as those for which the environment has settings."""
    for name in [name for name in request.headers if not _OWN_HEADERS.fullmatch(name)]:
        del request.headers[name]


class _Bounded(httpx2.AsyncByteStream):
    """A response's decoded and bounded body. Closing this body closes the underlying response."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(_pieces(self._response)) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


async def _pieces(response: httpx2.Response) -> Any:
    """Yield the pieces of a response's decoded body, and close the response; see ``decoded``."""
    try:
        async with (
            aclosing(response.aiter_raw()) as raw,
            aclosing(decoded(raw, response.headers.get("content-encoding", ""))) as pieces,
        ):
            async for piece in pieces:
                yield piece
    finally:
        await response.aclose()


async def decoded(raw: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a body after its Content-Encoding is undone.

    Raises ``BodyTooLarge`` before more than ``MAX_BODY`` bytes are in memory, and ``BodyUnreadable`` if the body does not have the
    encoding.
    """
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise BodyUnreadable("the body has a content encoding that was not requested")
    decoder = zlib.decompressobj(wbits=47) if encoding not in ("", "identity") else None
    came = given = 0
    try:
        async for part in raw:
            came += len(part)
            if came > MAX_BODY:
                raise BodyTooLarge
            if decoder is None:
                yield part
                continue
            while part:
                piece = decoder.decompress(part, _PIECE)
                part = decoder.unconsumed_tail
                given += len(piece)
                if given > MAX_BODY:
                    raise BodyTooLarge
                if piece:
                    yield piece
        if decoder is not None and came and not decoder.eof:
            raise BodyUnreadable("the compressed body is cut off")
    except zlib.error:
        raise BodyUnreadable("the body can't be decompressed") from None


_UNAVAILABLE = 503


def may_retry(response: httpx2.Response, watch: Watch) -> bool:
    """Return whether a request with this failed ``response`` may be repeated within its call's time.

    Note the reason in ``watch``. If the request may be repeated, the timeout is extended by the time that the server asks to
    wait.
    """
    failure = status_error(response)
    watch.reason, call = failure.message, watch.paced
    if call is not None:
        if isinstance(failure, RateLimited) or response.status_code == _UNAVAILABLE:
            call.overloaded(f"the server answered {response.status_code}")
        if isinstance(failure, RateLimited):
            return False  # the pace of all calls decides
        if isinstance(failure, Unavailable):
            call.pace.unreachable(call)
    wait = retry_after(response.headers)
    transient = isinstance(failure, Unavailable | RateLimited)
    if not transient or wait > watch.deadline - asyncio.get_running_loop().time():
        return False
    watch.put_off(wait)
    return True


def _connection_reason(error: Exception, proxy: Proxy | None) -> str:
    if proxy is not None and isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
        return f"{proxy.name} makes no connection: {str(error) or 'no answer'}"
    if isinstance(error, httpx2.ConnectTimeout):
        return NO_CONNECTION
    if isinstance(error, httpx2.ConnectError):
        return tls_reason(error) or NOBODY
    if isinstance(error, httpx2.UnsupportedProtocol):
        return "the address is not an http(s) URL"
    return CLOSED


def tls_context() -> ssl.SSLContext:
    """Return a context with the system's certificates, or with those of the environment. Raises ``NotConfigured``."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        named = " and ".join(f"{name}={os.environ[name]}" for name in _CERTIFICATES if os.environ.get(name))
        reason = f"the certificates can't be read ({named or 'the system'}): {error.strerror or error}"
        raise NotConfigured(reason, hint="correct or unset the variable") from None


_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def tls_reason(error: BaseException | None) -> str:
    """Return why a server was reached, but no encrypted connection was made; "" if ``error`` has another cause."""
    while error is not None and not (
        isinstance(error, ssl.SSLError) and hasattr(error, "reason")
    ):  # aiohttp's have none
        error = error.__cause__ or error.__context__
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{NO_TLS}the server's certificate is not accepted: {error.verify_message}"
    return f"{NO_TLS}{(error.reason or 'TLS failed').replace('_', ' ').lower()}" if error is not None else ""


def connection_hint(reason: str) -> str:
    """Return advice for the ``reason`` of a ``Watch``; "" if the reason is unknown."""
    if reason.startswith("the proxy "):
        return "is the proxy running? NO_PROXY names hosts that are reached without it"
    if reason.startswith(NO_TLS):
        return "does the server speak https? SSL_CERT_FILE names a file with the certificates to accept"
    if reason in (NOBODY, NO_CONNECTION):
        return "is the server running? Its address comes from --llm, KNOTWORK_LLM or a ..._BASE_URL variable"
    return ""


async def server_events(response: httpx2.Response) -> Any:
    """Yield the ``data`` of each server-sent event, as text; an incomplete last event is omitted.

    Raises ``Broken`` if the connection breaks, ``BadAnswer`` if the stream is not UTF-8.
    """
    held = b""
    data: list[bytes] = []
    try:
        async with aclosing(response.aiter_bytes()) as parts:
            async for part in parts:
                *lines, held = (held + part).split(b"\n")
                for line in lines:
                    line = line.rstrip(b"\r")
                    if line.startswith(b"data:"):
                        data.append(line[5:].removeprefix(b" "))
                    elif not line and data:
                        yield _decoded(b"\n".join(data))
                        data = []
    except _BREAKS:
        raise Broken("the connection broke before the stream was complete") from None
    if held.startswith(b"data:"):
        data.append(held[5:].strip())
    if data:
        last = b"\n".join(data)
        try:
            json.loads(last)
        except (ValueError, RecursionError):
            if last != b"[DONE]":
                return
        yield _decoded(last)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadAnswer("the stream is not UTF-8") from None


async def whole_body(response: httpx2.Response) -> bytes:
    """Return a response's body; raise ``Broken`` if the connection breaks inside it."""
    try:
        return await response.aread()
    except _BREAKS:
        raise Broken(CLOSED) from None


def unfinished(error: LLMError, parts: list[str], usage: Usage) -> LLMError:
    """Add the received parts of a stream to the ``error`` that ended it, and return ``error``. The usage may be incomplete."""
    if isinstance(error, Truncated | BadAnswer):
        error.text = "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        error.lost = True
    error.usage = usage
    return error


def body_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in a response's body; raise ``BadAnswer`` if it is cut off, is not an object, or has duplicate keys."""
    try:
        return answer_object(read_json_bytes(content), "the body")
    except UnicodeDecodeError:
        raise BadAnswer("the body is not UTF-8") from None
    except ValueError as error:
        if content.lstrip()[:1] == b"<":
            raise web_page() from None
        raise BadAnswer(f"the body is not complete JSON: {error}") from None


def event_object(data: str) -> dict[str, Any]:
    """Return a stream event's JSON object.

    Raises ``BadAnswer`` if the event is not a JSON object; raises the error that the event reports. Lone surrogates are accepted,
    because the other half may come with the next event.
    """
    try:
        return answer_object(read_json(data, halves=True), "a part of the stream")
    except ValueError as error:
        raise BadAnswer(f"a part of the stream is not complete JSON: {error}") from None


def answer_object(value: Any, what: str) -> dict[str, Any]:
    """Return ``value`` if it is an object; raise ``BadAnswer`` otherwise, and the error that the object reports."""
    if not isinstance(value, dict):
        raise BadAnswer(f"{what} is not a JSON object")
    if value.get("error"):
        raise in_band_error(value["error"])
    return value


async def finish_stream(events: Any, response: httpx2.Response) -> None:
    """Close a stream. The rest of a finished stream is read first, for a short time, so that the connection can be reused."""
    with suppress(LLMError, httpx2.HTTPError, TimeoutError, BodyTooLarge, BodyUnreadable):
        async with asyncio.timeout(_LEFTOVER):
            async for _ in events:
                pass
    await events.aclose()
    with suppress(httpx2.HTTPError):
        await response.aclose()


def count(usage: Any, name: str) -> int:
    """Return the token count ``name`` from a usage object; 0 if missing."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0
