"""The errors of services: maps each status, code and message, and each exception of an SDK's batch API, to an ``LLMError``."""

import json
import re
from collections.abc import Awaitable, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import Any, ClassVar, TypeVar

import httpx2

from . import (
    BadAnswer,
    BadRequest,
    LLMError,
    ModelNotFound,
    PromptTooLong,
    QuotaExhausted,
    RateLimited,
    Refused,
    Unavailable,
    WrongKey,
)
from .keys import hidden, mask_keys

T = TypeVar("T")

_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|credit balance|out of credits", re.I)
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|string_above_max_length|request_too_large|prompt is too long"
    r"|context (?:length|size|window|limit)|maximum (?:input|prompt) length",
    re.I,
)
_FILTERED = re.compile(r"content_filter|content_policy|content management policy|responsible_?ai", re.I)
_NO_MODEL = re.compile(
    r"model_not_found|not_found_error model|model.{0,200}?(?:not found|not exist|unknown)|(?:unknown|invalid) model",
    re.I | re.S,
)

_READ = 4000
"""Maximum number of code points searched in a server's message.

Searching an entire message of up to 4 MiB would take too long.
"""


def status_error(response: httpx2.Response, body: Mapping[str, Any] | None = None) -> LLMError:
    """Return the error for a response with an error status; ``body``, if given, is used instead of the response's body."""
    if body is None:
        try:
            loaded = json.loads(response.content)
        except (ValueError, RecursionError):
            loaded = None
        body = loaded if isinstance(loaded, dict) else {}
    found = body.get("error", body)
    if not isinstance(found, Mapping):
        found = {"message": str(found)}
    message = str(found.get("message") or found.get("detail") or response.reason_phrase or "no message")
    named = " ".join(str(found[name]) for name in ("code", "type", "status") if found.get(name))
    failure = _error(response.status_code, named, message)
    if isinstance(failure, RateLimited):
        failure.wait = retry_after(response.headers)
    return failure


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait, as a number or until a date; 0 if it does not ask."""
    for name, unit in (("retry-after-ms", 1000.0), ("x-ms-retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time()
            except ValueError:
                continue
        if isfinite(seconds):
            return max(seconds, 0.0)
    return 0.0


_TEMPORARY = frozenset(
    ("APIConnectionError", "ClientConnectionError", "ConnectError", "ConnectTimeout", "ConnectionError")
)
"""Names of the classes that HTTP libraries and SDKs raise if a connection fails."""


def client_error(error: Exception) -> LLMError | None:
    """Return the port's error for an exception of a custom client: too many requests, a failed connection or service, a wrong key.

    Returns None for an exception with another cause.
    """
    if isinstance(error, LLMError):
        return error
    response = getattr(error, "response", error)
    status = getattr(response, "status_code", getattr(response, "status", None))
    text = f"{type(error).__name__}: {error}"[:_READ]
    if isinstance(status, int) and (status in (401, 402, 403, 408, 409, 429) or 500 <= status < 600):
        failure = _error(status, "", text)
        headers = getattr(response, "headers", None)
        if isinstance(failure, RateLimited) and isinstance(headers, Mapping):
            failure.wait = retry_after(headers)
        return failure
    if any(kind.__name__ in _TEMPORARY for kind in type(error).__mro__):
        failure = Unavailable(mask_keys(text))
        failure.is_unreached = True
        return failure
    return None


def web_page() -> BadRequest:
    """Return the error for an answer that is a web page."""
    failure = BadRequest("the server answered with a web page, not with JSON", hint=_ADDRESS)
    failure.is_wrong_address = True
    return failure


_ADDRESS = "check the address: an OpenAI-compatible one usually ends in /v1"


def _error(status: int, named: str, message: str) -> LLMError:
    words = f"{named[:_READ]} {message[:_READ]}"
    shown = mask_keys(" ".join(message[:_READ].split()))[:300]
    text = f"{status}: {shown}"
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(words)):
        return QuotaExhausted(text, hint="the account of this key has no credit left")
    if status in (401, 403):
        return WrongKey(text, hint="check the key in the environment and its permission for this model")
    if status == 413 or (status in (400, 422, 500) and _TOO_LONG.search(words)):
        return PromptTooLong(text, hint="shorten the prompt, or name a model with a larger context")
    if status in (400, 404, 422) and _NO_MODEL.search(words):
        return ModelNotFound(text, hint="check the model's name")
    if status == 404:
        failure = BadRequest(text, hint=_ADDRESS)
        failure.is_wrong_address = True
        return failure
    if status in (400, 403, 422) and _FILTERED.search(words):
        return Refused(text)
    if status == 429:
        return RateLimited(text, hint="lower --rate (requests per minute) or --max-concurrency")
    if status in (408, 409) or status >= 500:
        return Unavailable(text)
    if 300 <= status < 400:
        return BadRequest(
            f"{status}: the server redirects, and redirects are not followed", hint="use the final address"
        )
    return BadRequest(text)


def in_band_error(found: Any) -> LLMError:
    """Return the error for ``{"error": ...}`` in a 200 response; a temporary or unspecific error becomes ``BadAnswer``."""
    body = found if isinstance(found, Mapping) else {"message": str(found)}
    code = body.get("code")
    status = int(code) if isinstance(code, int) and 300 <= code < 600 else 400
    named = " ".join(str(body[name]) for name in ("code", "type") if body.get(name))
    failure = _error(status, named, str(body.get("message") or "no message"))
    if isinstance(failure, Unavailable | RateLimited | BadRequest):
        return BadAnswer(f"the server reported an error instead of an answer: {failure.message}")
    return failure


class BatchCalls:
    """Makes calls of an SDK's batch API, and raises the port's errors, without the key in a message.

    ``refused`` is the SDK's exception for a response with an error status, ``broken`` the one for a broken connection.
    """

    faults: ClassVar[tuple[type[Exception], ...]] = (httpx2.HTTPError, OSError, ValueError, AttributeError)
    """The exceptions that a call of the SDK raises. If an answer is not an object, the SDK returns its text, which has no attributes."""
    refused: ClassVar[type[Any]]
    broken: ClassVar[type[Exception]]
    _key: str

    async def _with_port_errors(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except self.faults as error:
            failure = self._failure(error)
        raise failure  # outside the handler, so that it does not reference the SDK's exception, with the request and its key

    def _failure(self, error: Exception) -> LLMError:
        """Return the port's error for an exception of the SDK."""
        if isinstance(error, self.refused):
            failure = status_error(error.response)
        elif isinstance(error, (self.broken, httpx2.HTTPError, OSError)):
            failure = Unavailable("the connection to the batch API failed")
        else:
            failure = BadAnswer(f"the batch API gave an unexpected answer: {str(error)[:200]}")
        failure.message = hidden(failure.message, self._key)
        failure.args = (failure.message,)
        return failure
