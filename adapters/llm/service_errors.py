"""The table of server errors: maps each status, code and message to an ``LLMError``."""

import json
import re
from collections.abc import Mapping
from typing import Any

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
from .keys import mask_keys

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
"""Maximum number of code points searched in a server's message. A message may have 4 MiB, which would take long to search."""


def status_error(response: httpx2.Response, body: Mapping[str, Any] | None = None) -> LLMError:
    """Return the error for a response with a failed status; ``body``, if given, is used instead of the response's body."""
    if body is None:
        try:
            loaded = json.loads(response.content)
        except (ValueError, RecursionError):
            loaded = None
        body = loaded if isinstance(loaded, dict) else {}
    found = body.get("error", body)
    if not isinstance(found, Mapping):
        found = {"message": str(found)}
    message = str(found.get("message") or response.reason_phrase or "no message")
    named = " ".join(str(found[name]) for name in ("code", "type", "status") if found.get(name))
    return _error(response.status_code, named, message)


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
        return BadRequest(text, hint="check the address: an OpenAI-compatible one usually ends in /v1")
    if status in (400, 403, 422) and _FILTERED.search(words):
        return Refused(text)
    if status == 429:
        return RateLimited(text, hint="lower the rate or --max-concurrency")
    if status in (408, 409) or status >= 500:
        return Unavailable(text)
    if 300 <= status < 400:
        return BadRequest(
            f"{status}: the server redirects, and redirects are not followed", hint="use the final address"
        )
    return BadRequest(text)


def in_band_error(found: Any) -> LLMError:
    """Return the error for ``{"error": ...}`` inside a 200 response: the error's own kind if permanent, else ``BadAnswer``."""
    body = found if isinstance(found, Mapping) else {"message": str(found)}
    code = body.get("code")
    status = int(code) if isinstance(code, int) and 300 <= code < 600 else 400
    named = " ".join(str(body[name]) for name in ("code", "type") if body.get(name))
    failure = _error(status, named, str(body.get("message") or "no message"))
    if isinstance(failure, Unavailable | RateLimited | BadRequest):
        return BadAnswer(f"the server reported an error in place of an answer: {failure.message}")
    return failure
