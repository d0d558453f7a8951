"""The port to language models: what a client offers, what it answers, and how it fails.

A client is anything with ``async generate(prompt, **options)`` that returns a ``Completion`` or a plain string; the
options are those of ``Options``. Adapters (``llm_openai``, ``llm_anthropic``, ``llm_local``, ``llm_replay``) and layers
(``llm_layers``) have this interface. Errors are one tree::

    LLMError                kind
    ├── Unavailable         "unavailable"      connection, 5xx, overload: after the SDK's own retries
    ├── TimedOut            "timeout"          the total deadline of the call passed
    ├── RateLimited         "rate_limit"       429 after the SDK's own retries
    ├── Truncated           "truncated"        the answer stopped at the token limit, or the stream was cut
    ├── EmptyAnswer         "empty"            no choices, or a choice without text
    ├── BadAnswer           "bad_answer"       not what was asked for (JSON, schema, choice), or no readable body
    ├── Refused             "refused"          the model or a content filter declined
    ├── WrongKey            "wrong_key"        401, 403
    ├── QuotaExhausted      "quota"            the account is out of money
    ├── ModelNotFound       "model_not_found"
    ├── PromptTooLong       "prompt_too_long"
    ├── BadRequest          "bad_request"      any other 4xx: the request can't succeed as it is
    ├── BudgetExceeded      "budget"           the next call would exceed what this run may spend
    ├── NotRecorded         "not_recorded"     a cassette has no answer to this request
    └── NotConfigured       "not_configured"   no model, no key, an extra that is not installed, an unknown name
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypedDict, Unpack, runtime_checkable

from attrs import define, field, frozen

from ...lang.errors import KnotworkError

__all__ = [
    "BY_HAND", "CALLED", "LLM", "BadAnswer", "BadRequest", "BudgetExceeded", "Completion", "EmptyAnswer", "LLMError",
    "ModelNotFound", "NotConfigured", "NotRecorded", "Notice", "Options", "PromptTooLong", "QuotaExhausted", "RateLimited",
    "Refused", "Tally", "TimedOut", "Tool", "ToolCall", "Truncated", "Unavailable", "Usage", "WrongKey",
]  # fmt: skip


BY_HAND = "written by hand"
"""The model of an answer that a person wrote, to try something out: what rests on it is no finding."""

CALLED = "tool_call"
"""The finish reason of an answer that calls a tool: its text is the call, read and checked (``Completion.tool``)."""


@frozen
class Usage:
    """Tokens of one call, all its attempts added up."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


class Tool(TypedDict):
    """A tool that a model may call. ``parameters``: the JSON Schema, of type object, that a call's arguments satisfy."""

    name: str  # letters, digits, _ and -; 64 characters at most
    description: str
    parameters: Mapping[str, Any]


@frozen
class ToolCall:
    """A model's call of one of the tools that it was offered; the arguments satisfy the tool's schema."""

    name: str
    arguments: Mapping[str, Any]


@frozen
class Completion:
    """A whole answer. ``attempts`` counts requests that were sent for it; ``cost`` is in US dollars, None if unknown."""

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(factory=Usage)
    attempts: int = 1
    model: str = ""
    cached: bool = False
    repaired: bool = False
    cost: float | None = None
    raw: str = ""
    """The answer as it came, where ``text`` is what was read in it; "" where it is the answer itself."""

    @property
    def tool(self) -> ToolCall | None:
        """The call that the answer is; None where the model answered in words.

        It is read from ``text``, so that whatever keeps an answer's text and finish reason keeps the call.
        """
        if self.finish_reason != CALLED:
            return None
        try:
            call = json.loads(self.text)
        except ValueError:
            return None
        if not isinstance(call, dict) or not isinstance(call.get("arguments"), dict):
            return None
        return ToolCall(str(call.get("tool", "")), call["arguments"])


@frozen
class Notice:
    """What a client reports while a call is under way: a retry by the SDK, a re-ask of ours, a repair.

    ``lost``: the request before may have been answered, and charged for, although nothing of that arrived.
    """

    kind: Literal["retry", "again", "repair"]
    attempt: int
    reason: str
    lost: bool = False


@define(eq=False)
class Tally:
    """What a caller really spent: requests, tokens, US dollars. ``cost`` is None where a model's price is not known."""

    calls: int = 0
    usage: Usage = field(factory=Usage)
    cost: float | None = 0.0

    def request(self) -> None:
        """Count a request that is about to be sent."""
        self.calls += 1

    def took(self, used: Usage, cost: float | None) -> None:
        """Count what a request took."""
        self.usage += used
        self.cost = None if self.cost is None or cost is None else self.cost + cost


class Options(TypedDict, total=False):
    """What may be asked for besides the prompt. An adapter ignores what its model has no notion of, never the output's shape."""

    model: str
    system: str
    temperature: float
    max_tokens: int
    stop: Sequence[str]
    seed: int
    timeout: float  # seconds for the whole call, retries included
    retries: int  # how often an incomplete answer is asked for again
    schema: Mapping[str, Any]  # JSON Schema that the answer, read as JSON, satisfies
    choices: Sequence[str]  # the answer is exactly one of these
    tools: Sequence[Tool]  # the answer calls one of these, once, or is words; ``Completion.tool`` says which
    grammar: str  # a hint: ``lang.constrain``'s text, which models that can keep to it write under; parse every answer
    sample: int  # which of several answers to the same request; part of the cache's key only
    tidy: Callable[
        [str], str
    ]  # makes an answer that nearly fits its schema fit, before it is judged; a ValueError says why it can't; no part of the request
    strict_types: bool  # whether an answer fits only as it stands: no prose around JSON, no choice in other words
    repairs: int  # how often an answer that does not fit goes back: 1, or 0; no part of the request
    notify: Callable[[Notice], None]  # no part of the request
    tally: Tally  # counts what the caller spends under a budget; no part of the request


@runtime_checkable
class LLM(Protocol):
    """A language model."""

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return one whole answer to ``prompt``; raise an ``LLMError`` otherwise."""
        ...


class LLMError(KnotworkError):
    """A call that gave no usable answer. ``usage`` is what it cost all the same; ``hint`` says what to do.

    ``lost``: the model may have answered, and be paid for it, and not all of its usage arrived. ``resent``: the connection
    broke, and the request was sent again as often as it may be.
    """

    kind: ClassVar[str] = "error"
    lost: bool = False
    resent: bool = False

    def __init__(self, message: str, *, hint: str = "", attempts: int = 1, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.attempts = attempts
        self.usage = usage or Usage()


class Unavailable(LLMError):
    """The server can't be reached, or fails."""

    kind = "unavailable"


class TimedOut(LLMError):
    """The call's total deadline passed."""

    kind = "timeout"


class RateLimited(LLMError):
    """Too many requests, also after the retries."""

    kind = "rate_limit"


class Truncated(LLMError):
    """The answer is cut off. ``text`` is the part that came."""

    kind = "truncated"

    def __init__(self, message: str, *, text: str = "", **rest: Any) -> None:
        super().__init__(message, **rest)
        self.text = text


class EmptyAnswer(LLMError):
    """The model answered nothing."""

    kind = "empty"


class BadAnswer(LLMError):
    """The answer is not what was asked for. ``text`` is what came."""

    kind = "bad_answer"

    def __init__(self, message: str, *, text: str = "", **rest: Any) -> None:
        super().__init__(message, **rest)
        self.text = text


class Refused(LLMError):
    """The model, or a filter in front of it, declined."""

    kind = "refused"


class WrongKey(LLMError):
    """The key is missing, wrong, or lacks the right."""

    kind = "wrong_key"


class QuotaExhausted(LLMError):
    """The account has no money left."""

    kind = "quota"


class ModelNotFound(LLMError):
    """The server has no such model."""

    kind = "model_not_found"


class PromptTooLong(LLMError):
    """The prompt does not fit the model's context."""

    kind = "prompt_too_long"


class BadRequest(LLMError):
    """The server refuses the request as it is."""

    kind = "bad_request"


class BudgetExceeded(LLMError):
    """The next call would exceed what this run may spend; it was not made.

    ``limit`` says which limit that is, where it is known. How that is raised each interface knows for itself.
    """

    kind = "budget"

    def __init__(self, message: str, *, limit: Literal["", "calls", "tokens", "cost"] = "", **rest: Any) -> None:
        super().__init__(message, **rest)
        self.limit = limit


class NotRecorded(LLMError):
    """The cassette has no answer to this request."""

    kind = "not_recorded"


class NotConfigured(LLMError):
    """There is no model to ask: none named, no key, an extra not installed."""

    kind = "not_configured"
