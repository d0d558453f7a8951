"""The port to language models: the client interface, its answers and its errors.

A client is any object with ``async generate(prompt, **options)`` that returns a ``Completion`` or a plain string; the
options are those of ``Options``. Adapters (``openai``, ``anthropic``, ``local``, ``replay``) and layers (``middleware``,
``budget``, ``cache``) implement this interface. All errors derive from ``LLMError``::

    LLMError                kind
    ├── Unavailable         "unavailable"      connection, 5xx, overload: after the SDK's own retries
    ├── TimedOut            "timeout"          the total deadline of the call passed
    ├── RateLimited         "rate_limit"       429 after the SDK's own retries
    ├── Truncated           "truncated"        the answer stopped at the token limit, or the stream was cut
    ├── EmptyAnswer         "empty"            no choices, or a choice without text
        ├── BadAnswer           "bad_answer"       not as requested (JSON, schema, choice), or an unreadable body
    ├── Refused             "refused"          the model or a content filter declined
    ├── WrongKey            "wrong_key"        401, 403
    ├── QuotaExhausted      "quota"            the account is out of money
    ├── ModelNotFound       "model_not_found"
    ├── PromptTooLong       "prompt_too_long"
    ├── BadRequest          "bad_request"      any other 4xx: the request can't succeed as it is
        ├── BudgetExceeded      "budget"           the next call would exceed the run's budget
    ├── NotRecorded         "not_recorded"     a cassette has no answer to this request
        └── NotConfigured       "not_configured"   no model, no key, a missing extra, an unknown name
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypedDict, Unpack, runtime_checkable

from attrs import define, field, frozen

from ...lang.errors import KnotworkError

__all__ = [
    "BY_HAND", "CALLED", "ERRORS", "LLM", "BadAnswer", "BadRequest", "BudgetExceeded", "Completion", "EmptyAnswer", "LLMError",
    "ModelNotFound", "NotConfigured", "NotRecorded", "Notice", "Options", "PromptTooLong", "QuotaExhausted", "RateLimited",
    "Refused", "Tally", "TimedOut", "Tool", "ToolCall", "Truncated", "Unavailable", "Usage", "WrongKey", "error_of",
]  # fmt: skip


BY_HAND = "written by hand"
"""The model name of hand-written answers, which are used for trials: results based on such answers are not findings."""

CALLED = "tool_call"
"""The finish reason of an answer that calls a tool. The answer's text is the parsed and checked call (``Completion.tool``)."""


@frozen
class Usage:
    """Tokens of one call, summed over all attempts."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


class Tool(TypedDict):
    """A tool that a model may call. ``parameters``: the JSON Schema of the call's arguments, of type object."""

    name: str  # letters, digits, _ and -; 64 characters at most
    description: str
    parameters: Mapping[str, Any]


@frozen
class ToolCall:
    """A model's call of one of the offered tools; the arguments satisfy the tool's schema."""

    name: str
    arguments: Mapping[str, Any]


@frozen
class Completion:
    """A complete answer. ``attempts`` counts the requests sent for it; ``cost`` is in US dollars, None if unknown."""

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(factory=Usage)
    attempts: int = 1
    model: str = ""
    cached: bool = False
    repaired: bool = False
    cost: float | None = None
    raw: str = ""
    """The original answer, if ``text`` was extracted from it; "" if ``text`` is the whole answer."""

    @property
    def tool(self) -> ToolCall | None:
        """The tool call in the answer; None if the model answered in words.

        The call is parsed from ``text``, so storing an answer's text and finish reason also stores the call.
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
    """An event reported during a call: a retry by the SDK, a repeated request, a repair.

    ``lost``: no answer to the previous request arrived, but the server may have answered and charged for it.
    """

    kind: Literal["retry", "again", "repair"]
    attempt: int
    reason: str
    lost: bool = False


@define(eq=False)
class Tally:
    """The actual use by one caller: requests, tokens, US dollars. ``cost`` is None if a model's price is unknown."""

    calls: int = 0
    usage: Usage = field(factory=Usage)
    cost: float | None = 0.0

    def request(self) -> None:
        """Count a request before it is sent."""
        self.calls += 1

    def took(self, used: Usage, cost: float | None) -> None:
        """Count the tokens and cost of a request."""
        self.usage += used
        self.cost = None if self.cost is None or cost is None else self.cost + cost


class Options(TypedDict, total=False):
    """Options of a call, in addition to the prompt. Adapters ignore options that the model lacks, except the output's shape."""

    model: str
    system: str
    temperature: float
    max_tokens: int
    stop: Sequence[str]
    seed: int
    timeout: float  # seconds for the whole call, retries included
    retries: int  # maximum number of repeated requests after incomplete answers
    schema: Mapping[str, Any]  # JSON Schema of the answer, parsed as JSON
    choices: Sequence[str]  # the answer is exactly one of these strings
    tools: Sequence[Tool]  # the answer is one call of one of these tools, or words; see ``Completion.tool``
    grammar: str  # a grammar from ``lang.constrain``, ignored by models without support; so parse every answer
    sample: int  # index among several answers to the same request; only part of the cache's key
    tidy: Callable[
        [str], str
    ]  # adapts an almost fitting answer before validation; ValueError: why it can't; not part of the request
    strict_types: bool  # the answer must fit exactly: no prose around JSON, no reworded choice
    repairs: int  # number of repair rounds for an invalid answer, 0 or 1; not part of the request
    notify: Callable[[Notice], None]  # not part of the request
    tally: Tally  # counts the caller's actual use under a budget; not part of the request


@runtime_checkable
class LLM(Protocol):
    """A language model."""

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return one complete answer to ``prompt``; raise an ``LLMError`` otherwise."""
        ...


class LLMError(KnotworkError):
    """A call without a usable answer. ``usage`` and ``cost`` (None: unknown) are those of the failed call; ``hint`` says what to do.

    ``lost``: the model may have answered and charged for the answer, but not all of the usage was reported. ``resent``: the
    connection broke, and the request was already repeated as often as allowed.
    """

    kind: ClassVar[str] = "error"
    lost: bool = False
    resent: bool = False
    cost: float | None = None

    def __init__(self, message: str, *, hint: str = "", attempts: int = 1, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.attempts = attempts
        self.usage = usage or Usage()


class Unavailable(LLMError):
    """The server can't be reached or has failed."""

    kind = "unavailable"


class TimedOut(LLMError):
    """The call's total deadline has passed."""

    kind = "timeout"


class RateLimited(LLMError):
    """Too many requests, even after the retries."""

    kind = "rate_limit"


class Truncated(LLMError):
    """The answer was cut off. ``text`` is the part received."""

    kind = "truncated"

    def __init__(self, message: str, *, text: str = "", **rest: Any) -> None:
        super().__init__(message, **rest)
        self.text = text


class EmptyAnswer(LLMError):
    """The model returned an empty answer."""

    kind = "empty"


class BadAnswer(LLMError):
    """The answer is not as requested. ``text`` is the answer received."""

    kind = "bad_answer"

    def __init__(self, message: str, *, text: str = "", **rest: Any) -> None:
        super().__init__(message, **rest)
        self.text = text


class Refused(LLMError):
    """The model, or a filter, declined to answer."""

    kind = "refused"


class WrongKey(LLMError):
    """The key is missing, wrong, or lacks permission."""

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
    """The server refuses the request; repeating it unchanged can't succeed."""

    kind = "bad_request"


class BudgetExceeded(LLMError):
    """The next call would exceed the run's budget, so the call was not made.

    ``limit`` names the limit, if known. Each interface adds a hint on how to raise the limit.
    """

    kind = "budget"

    def __init__(self, message: str, *, limit: Literal["", "calls", "tokens", "cost"] = "", **rest: Any) -> None:
        super().__init__(message, **rest)
        self.limit = limit


class NotRecorded(LLMError):
    """The cassette has no answer to this request."""

    kind = "not_recorded"


class NotConfigured(LLMError):
    """No model can be used: no model is named, the key is missing, or an extra is not installed."""

    kind = "not_configured"


ERRORS: Mapping[str, type[LLMError]] = {
    kind.kind: kind for kind in list(vars().values()) if isinstance(kind, type) and issubclass(kind, LLMError)
}
"""The classes of errors by kind."""


def error_of(kind: str, message: str, *, hint: str = "", text: str = "") -> LLMError:
    """Return the error of a recorded call; ``text`` is the answer received, for the kinds of errors that store an answer."""
    made = ERRORS.get(kind, LLMError)
    return made(message, hint=hint, text=text) if issubclass(made, Truncated | BadAnswer) else made(message, hint=hint)
