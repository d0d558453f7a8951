"""Base class of the SDK adapters: runs a call under its deadline and translates every fault into an ``LLMError``."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Unpack

import httpx2
from attrs import evolve, frozen

from . import (
    BadAnswer,
    BadRequest,
    Completion,
    EmptyAnswer,
    LLMError,
    NotConfigured,
    Options,
    TimedOut,
    Truncated,
    Unavailable,
    Usage,
    WrongKey,
    with_usage,
)
from .answers import answer_format, instructions, prose_of, unwrap
from .conversation import earlier_turns, require_supported
from .deltas import DeltaSender
from .http import (
    FIRST_WAIT,
    LONGEST_WAIT,
    MAX_BODY,
    NO_CONNECTION,
    NO_TLS,
    NOBODY,
    BodyTooLarge,
    BodyUnreadable,
    BoundedClient,
    Broken,
    Watch,
    answer_object,
    body_object,
    bounded_client,
    connection_hint,
    event_object,
    finish_stream,
    server_events,
    unfinished,
    watching,
    whole_body,
)
from .keys import hidden
from .middleware import Own, Patience
from .service_errors import status_error, web_page
from .strict_schema import Strictness
from .tools import marked, offered

DEFAULT_TIMEOUT = 120.0
"""Default timeout of an entire call in seconds."""


class Stream(Protocol):
    """A streamed answer that is still arriving: the text so far, the usage, and the finish reason (None: not finished)."""

    parts: list[str]
    usage: Usage
    finish: Any

    def take(self, event: Mapping[str, Any]) -> bool:
        """Add an event; return whether it is the last event."""
        ...

    def completion(self) -> Completion:
        """Return the complete answer; raise the matching ``LLMError`` otherwise."""
        ...


@frozen
class _Refusal:
    """A response that may name a refused parameter, with the attributes of the SDKs' exceptions."""

    response: httpx2.Response
    param: Any


class SDKModel(Own, ABC):
    """A model behind an SDK: runs one call under its deadline, and translates every fault into an ``LLMError``.

    ``base_url`` None means the SDK's default address. ``stream=True`` requests a stream and joins its parts. ``timeout`` is the
    default timeout of a call in seconds. ``max_retries`` is the maximum number of times that the SDK repeats a failed request.
    ``hide`` contains other keys to mask in answers. If a server names a parameter that it refuses, the parameter is omitted
    from then on; if the parameter defines the output's shape, the prompt requests the shape instead.

    An adapter sets ``_sdk``, its SDK's client. The methods of an adapter create and send requests (``_request``, ``_create``), find the
    refused parameter in an error (``_refusal``), and read answers (``_read_body``, ``_streamed``).
    """

    names_address: bool = True
    """Whether messages name the address of the service. A server for others sets it to False."""
    unsupported: Mapping[str, str] = {}
    """The options that the service can't take: a reason for each name."""
    _sdk: Any
    _strict: Strictness

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        stream: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = 2,
        hide: Sequence[str] = (),
    ) -> None:
        key = api_key or ""
        if key and not (key.isascii() and key.isprintable()):
            raise NotConfigured("the key has invalid characters", hint="remove line breaks and quotes from it")
        if base_url is not None:
            try:
                valid = httpx2.URL(base_url).scheme in ("http", "https")
            except httpx2.InvalidURL:
                valid = False
            if not valid:
                raise NotConfigured("the model's address is not an http(s) URL")
        self.model = model
        self._keys = (key, *hide)
        self._stream = stream
        self._timeout = timeout
        self._max_retries = max_retries
        self._refused: set[str] = set()
        self._address = base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @property
    @abstractmethod
    def address(self) -> str:
        """The address of the service."""

    def _bounded_client(self) -> BoundedClient:
        """Return the HTTP client for the SDK. Raises ``NotConfigured`` if a proxy can't be used."""
        return bounded_client(self.address, key=self._keys[0], foreign=self._address is not None)

    def _prepare(self, options: Options) -> None:
        """Load what the call needs, such as an SDK. The time, a second or more, does not count against the call's timeout."""

    @abstractmethod
    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        """Return the base class of the SDK's exceptions; if the SDK is not loaded, an empty tuple."""

    @abstractmethod
    def _refusals(self) -> tuple[type[Exception], ...]:
        """Return the exceptions, with ``response`` and ``param``, that may name a refused parameter."""

    @abstractmethod
    def _request(self, prompt: str, options: Options, skip: set[str]) -> dict[str, Any]:
        """Return the SDK's arguments for a request without the parameters ``skip``."""

    @abstractmethod
    async def _create(self, request: dict[str, Any]) -> Any:
        """Send the request; return the SDK's raw response."""

    @abstractmethod
    def _refusal(self, error: Any, request: Mapping[str, Any]) -> str | None:
        """Return the name of the optional part of ``request`` that the server refuses; None if it refuses no such part.

        Later requests omit this part too, unless the error concerns only the schema of this request.
        """

    @abstractmethod
    def _read_body(self, body: Mapping[str, Any], options: Options) -> Completion:
        """Return the complete answer in a body; raise the matching ``LLMError`` otherwise."""

    @abstractmethod
    def _streamed(self, options: Options) -> Stream:
        """Return a reader of a stream's events."""

    async def aclose(self) -> None:
        """Close all connections; the model can't be used afterwards."""
        await self._sdk.close()

    async def _ask(self, prompt: str, options: Options) -> Completion:
        """Send the request and read the answer. If the server refuses a parameter, send the request again without it."""
        skip = set(self._refused)
        while True:
            request = self._request(prompt, options, skip)
            try:
                answer = await self._send(request, options)
                break
            except self._refusals() as error:
                if (name := self._refusal(error, request)) is None:
                    raise
                skip.add(name)
        return self._finished(answer, options)

    def _finished(self, answer: Completion, options: Options) -> Completion:
        """Return the answer in the form that the call asked for."""
        shape = answer_format(options)
        answer = self._strict.restored(answer, None if shape is None else shape[0])
        return self._unwrapped(marked(answer, options), shape, options)

    def batch_answer(self, status: int, body: Mapping[str, Any], options: Options) -> Completion:
        """Return the complete answer in a response of a batch; raise the matching ``LLMError`` otherwise."""
        if not 200 <= status < 300:
            failure = status_error(httpx2.Response(status), body)
            failure.message = hidden(failure.message, *self._keys)
            failure.args = (failure.message,)
            raise failure
        answer = self._finished(self._read_body(answer_object(body, "the body"), options), options)
        return evolve(answer, text=hidden(answer.text, *self._keys), model=hidden(answer.model, *self._keys))

    def batch_refusal(self, status: int, body: Mapping[str, Any], prompt: str, options: Options) -> None:
        """If a response refuses a parameter of a request, omit this parameter from later requests."""
        error = body.get("error")
        param = error.get("param") if isinstance(error, dict) else None
        self._refusal(
            _Refusal(httpx2.Response(status, json=body), param), self._request(prompt, options, set(self._refused))
        )

    async def _send(self, request: dict[str, Any], options: Options) -> Completion:
        """Send the request through the SDK and read the answer."""
        raw = await self._create(request)
        response: httpx2.Response = raw.http_response
        if request.get("stream") and "json" not in (kind := response.headers.get("content-type", "")):
            if "html" in kind:
                raise web_page()
            return await _read_stream(response, self._streamed(options), self._sender(options))
        return self._read_body(body_object(await whole_body(response)), options)

    def _sender(self, options: Options) -> DeltaSender | None:
        """Return a sender for the parts of the answer; None if the call has no listener."""
        listener = options.get("on_delta")
        return None if listener is None else DeltaSender(listener, self._keys)

    def _unwrapped(self, answer: Completion, shape: tuple[dict[str, Any], bool] | None, options: Options) -> Completion:
        if shape is None or not shape[1]:
            return answer
        text = unwrap(answer.text, as_json="choices" not in options)
        return evolve(answer, text=text, raw="" if text is answer.text else prose_of(answer.text))

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return one complete answer; raise the matching ``LLMError`` (see the table in ``adapters.llm``).

        ``timeout`` (seconds) covers the entire call, including the SDK's retries and the waiting times between them.
        """
        require_supported(self.unsupported, options)
        self._prepare(options)
        timeout = options.get("timeout", self._timeout)
        whole = max(timeout.whole, timeout) if isinstance(timeout, Patience) else timeout
        watch = Watch(options.get("notify"), asyncio.get_running_loop().time() + whole, timeout, self._keys)
        try:
            for text in (prompt, options.get("system", ""), *(turn["content"] for turn in earlier_turns(options))):
                text.encode()
            with watching(watch):
                async with asyncio.timeout(timeout) as watch.scope:
                    answer = await self._ask_until_complete(prompt, options, watch)
        except Exception as error:
            failure = self._failure(error, watch, timeout)
        else:
            text, model = (hidden(each, *self._keys) for each in (answer.text, answer.model))
            answer = with_usage(answer, prompt, options)
            return Completion(text, answer.finish_reason, answer.usage, max(watch.sent, 1), model)
        failure.attempts = max(watch.sent, 1)
        failure.resent = failure.resent or isinstance(failure, Unavailable)  # repeated already
        unfinished = isinstance(failure, TimedOut | Truncated | EmptyAnswer | BadAnswer)
        failure.lost = failure.lost or ((watch.lost or unfinished) and not failure.usage.total)
        # The error is raised outside the handler, so that it does not reference the SDK's exception (with the request and its key).
        raise failure

    async def _ask_until_complete(self, prompt: str, options: Options, watch: Watch) -> Completion:
        """Send the request; repeat it if the connection breaks inside the answer, because no SDK repeats a broken stream."""
        while True:
            try:
                return await self._ask(prompt, options)
            except Broken as error:
                wait = min(FIRST_WAIT * 2 ** (watch.sent - 1), LONGEST_WAIT)
                late = asyncio.get_running_loop().time() + wait >= watch.deadline
                if watch.sent > self._max_retries or late:
                    cut = Truncated(error.message, text=error.text, usage=error.usage)
                    cut.lost, cut.resent = True, watch.sent > 1
                    raise cut from None
                watch.reason, watch.lost = error.message, True
                watch.put_off(wait)
            await asyncio.sleep(wait)

    def _failure(self, error: Exception, watch: Watch, timeout: float) -> LLMError:
        failure = self._translated(watch.fault or error, watch, timeout)
        if isinstance(failure, Unavailable):
            failure.is_unreached = watch.reason in (NOBODY, NO_CONNECTION) or watch.reason.startswith(NO_TLS)
        is_about_service = isinstance(failure, Unavailable | WrongKey | TimedOut) or getattr(
            failure, "is_wrong_address", False
        )
        place = f" ({self.address})"
        if self.names_address and is_about_service and not failure.message.endswith(place):
            failure.message += place
        failure.message = hidden(failure.message, *self._keys)
        failure.args = (failure.message,)
        if isinstance(failure, Truncated | BadAnswer):
            failure.text = hidden(failure.text, *self._keys)
        failure.__cause__ = failure.__context__ = failure.__traceback__ = None
        return failure

    def _translated(self, error: Exception, watch: Watch, timeout: float) -> LLMError:
        if isinstance(error, LLMError):
            return error
        if isinstance(error, TimeoutError):
            after = f"; the last request failed: {watch.reason}" if watch.reason else ""
            return TimedOut(f"no complete answer within {round(timeout, 2):g} s{after}")
        if isinstance(error, BodyTooLarge):
            return BadAnswer(f"the body is larger than {MAX_BODY >> 20} MiB")
        if isinstance(error, BodyUnreadable):
            return BadAnswer(str(error))
        if isinstance(error, UnicodeEncodeError):
            return BadRequest("the prompt contains a lone surrogate, which is not valid text")
        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response):
            return status_error(response)
        if isinstance(error, (*self._sdk_errors(), httpx2.HTTPError)):
            return Unavailable(watch.reason or "the connection failed", hint=connection_hint(watch.reason))
        if isinstance(error, TypeError | ValueError):
            return BadRequest(f"the request can't be sent: {str(error)[:200]}")
        if isinstance(error, OSError | RuntimeError):
            return Unavailable(f"the connection failed: {str(error)[:200]}")
        raise error


async def _read_stream(response: httpx2.Response, stream: Stream, sender: DeltaSender | None) -> Completion:
    """Return the complete answer in a stream's events; raise the matching ``LLMError`` otherwise. ``sender`` receives its parts."""
    events = server_events(response)
    sent = 0
    try:
        async for data in events:
            if data.strip() == "[DONE]" or stream.take(event_object(data)):
                break
            if sender is not None and len(stream.parts) > sent:
                sender.add("".join(stream.parts[sent:]))
                sent = len(stream.parts)
    except LLMError as error:
        # If the connection breaks after the finish reason, only the usage is lost.
        if stream.finish is None or not isinstance(error, Broken):
            raise unfinished(error, stream.parts, stream.usage) from None
    finally:
        await finish_stream(events, response)
    answer = stream.completion()
    if sender is not None:
        sender.finish()
    return answer


def with_tools(prompt: str, options: Options, skip: set[str]) -> tuple[str, Sequence[Any]]:
    """Return the prompt and the tools to send; tools that the server refuses are described in the prompt instead."""
    tools = offered(options)
    return (f"{prompt}\n\n{instructions(options)}", ()) if tools and "tools" in skip else (prompt, tools)
