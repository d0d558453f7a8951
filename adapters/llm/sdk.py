"""Shared parts of the SDK adapters: one call under its deadline, and every fault translated into an ``LLMError``."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Unpack

import httpx2

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
)
from .http import MAX_BODY, BodyTooLarge, BodyUnreadable, BoundedClient, Broken, Watch, connection_hint, watching
from .keys import hidden
from .middleware import Own, Patience
from .service_errors import status_error

DEFAULT_TIMEOUT = 120.0
"""Seconds for a whole call without its own timeout."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0  # seconds, as in the SDKs


class SDKModel(Own, ABC):
    """A model behind an SDK: runs one call under its deadline, and translates every fault into an ``LLMError``.

    An adapter defines how to call (``_ask``), its SDK's exceptions, and how to close. ``base_url`` None is the
    SDK's own address. ``hide``: other keys that no answer may repeat.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        key: str,
        timeout: float,
        max_retries: int,
        sdk_error: type[Exception],
        hide: Sequence[str] = (),
    ) -> None:
        if key and not (key.isascii() and key.isprintable()):
            raise NotConfigured("the key has characters that no key has", hint="look for line ends or quotes in it")
        if base_url is not None:
            try:
                valid = httpx2.URL(base_url).scheme in ("http", "https")
            except httpx2.InvalidURL:
                valid = False
            if not valid:
                raise NotConfigured("the model's address is not an http(s) URL")
        self.model = model
        self._keys = (key, *hide)
        self._timeout = timeout
        self._max_retries = max_retries
        self._sdk_error = sdk_error
        self._http = BoundedClient(key=key, foreign=base_url is not None, plain=(base_url or "").startswith("http://"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @abstractmethod
    async def _ask(self, prompt: str, options: Options) -> Completion:
        """Send the request and read the answer."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections."""

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return one complete answer; raise the matching ``LLMError`` of the port's table.

        ``timeout`` (seconds) covers the whole call, including the SDK's retries and their waits.
        """
        timeout = options.get("timeout", self._timeout)
        whole = max(timeout.whole, timeout) if isinstance(timeout, Patience) else timeout
        watch = Watch(options.get("notify"), asyncio.get_running_loop().time() + whole, timeout, self._keys)
        try:
            for text in (prompt, options.get("system", "")):
                text.encode()
            with watching(watch):
                async with asyncio.timeout(timeout) as watch.scope:
                    answer = await self._unbroken(prompt, options, watch)
        except Exception as error:
            failure = self._failure(error, watch, timeout)
        else:
            return self._clean(answer, watch)
        failure.attempts = max(watch.sent, 1)
        unfinished = isinstance(failure, TimedOut | Truncated | EmptyAnswer | BadAnswer)
        failure.lost = failure.lost or ((watch.lost or unfinished) and not failure.usage.total)
        # Raised outside the handler, so that it does not hold the SDK's exception (with the request and its key).
        raise failure

    async def _unbroken(self, prompt: str, options: Options, watch: Watch) -> Completion:
        """Send the request, and repeat it if the connection breaks inside the answer; no SDK repeats a broken stream."""
        while True:
            try:
                return await self._ask(prompt, options)
            except Broken as error:
                wait = min(_FIRST_WAIT * 2 ** (watch.sent - 1), _LONGEST_WAIT)
                late = asyncio.get_running_loop().time() + wait >= watch.deadline
                if watch.sent > self._max_retries or late:
                    cut = Truncated(error.message, text=error.text, usage=error.usage)
                    cut.lost, cut.resent = True, watch.sent > 1
                    raise cut from None
                watch.reason, watch.lost = error.message, True
                watch.put_off(wait)
            await asyncio.sleep(wait)

    def _clean(self, answer: Completion, watch: Watch) -> Completion:
        text, model = (hidden(told, *self._keys) for told in (answer.text, answer.model))
        return Completion(text, answer.finish_reason, answer.usage, max(watch.sent, 1), model)

    def _failure(self, error: Exception, watch: Watch, timeout: float) -> LLMError:
        failure = self._translated(watch.fault or error, watch, timeout)
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
            after = f", after {watch.reason}" if watch.reason else ""
            return TimedOut(f"no whole answer within {timeout:g} s{after}")
        if isinstance(error, BodyTooLarge):
            return BadAnswer(f"the body is larger than {MAX_BODY >> 20} MiB")
        if isinstance(error, BodyUnreadable):
            return BadAnswer(str(error))
        if isinstance(error, UnicodeEncodeError):
            return BadRequest("the prompt contains a lone surrogate, which is not a text")
        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response):
            return status_error(response)
        if isinstance(error, self._sdk_error | httpx2.HTTPError):
            return Unavailable(watch.reason or "the connection failed", hint=connection_hint(watch.reason))
        if isinstance(error, TypeError | ValueError):
            return BadRequest(f"the SDK refuses the request: {str(error)[:200]}")
        if isinstance(error, OSError | RuntimeError):
            return Unavailable(f"the connection failed: {str(error)[:200]}")
        raise error
