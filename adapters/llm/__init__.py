"""The interface to language models: clients, their answers and their errors.

A client is any object with ``async generate(prompt, **options)`` that returns a ``Completion`` or a plain string; the
options are those of ``Options``. Adapters (``openai``, ``anthropic``, ``local``, ``replay``) and layers (``middleware``,
``budget``, ``cache``) implement this interface. All errors derive from ``LLMError``::

    LLMError                kind
    ├── Unavailable         "unavailable"      connection, 5xx, overload: after the SDK's own retries
    ├── TimedOut            "timeout"          the total deadline of the call passed
    ├── RateLimited         "rate_limit"       429; under ``Throttled``: no request got through for minutes
    ├── Truncated           "truncated"        the answer stopped at the token limit, or the stream was cut
    ├── EmptyAnswer         "empty"            no choices, or a choice without text
    ├── BadAnswer           "bad_answer"       an answer in another form than requested (JSON, schema, choice), or an unreadable body
    ├── Refused             "refused"          the model or a content filter declined
    ├── WrongKey            "wrong_key"        401, 403
    ├── QuotaExhausted      "quota"            the account has no credit left
    ├── ModelNotFound       "model_not_found"
    ├── PromptTooLong       "prompt_too_long"
    ├── BadRequest          "bad_request"      any other 4xx: repeating the unchanged request can't succeed
    ├── BudgetExceeded      "budget"           the next call would exceed the run's budget
    ├── NotRecorded         "not_recorded"     a cassette has no answer to this request
    └── NotConfigured       "not_configured"   no model, no key, a missing extra, an unknown name
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypedDict, Unpack, runtime_checkable

from attrs import define, field, frozen

from ...lang.errors import KnotworkError

__all__ = [
    "BY_HAND", "CALLED", "ERRORS", "LLM", "BadAnswer", "BadRequest", "BudgetExceeded", "Completion", "EmptyAnswer", "ImageInput",
    "LLMError", "ModelNotFound", "NotConfigured", "NotRecorded", "Notice", "Options", "PromptTooLong", "QuotaExhausted", "RateLimited",
    "Refused", "Tally", "TimedOut", "Tool", "ToolCall", "Truncated", "Unavailable", "Usage", "WrongKey", "error_of", "with_usage",
]  # fmt: skip


BY_HAND = "written by hand"
"""The model name for hand-written answers, which are only used for trials: results based on them are not findings."""

CALLED = "tool_call"
"""The finish reason of an answer that calls a tool. The answer's text is the parsed and checked call (``Completion.tool``)."""


BYTES_OF_TOKEN = 4
"""Approximate number of bytes in a token."""

ANTHROPIC_MAX_TOKENS = 4_096
"""Default of ``max_tokens`` for Anthropic's models, whose protocol requires a limit."""


# The data that every step builds have no slots: attrs then sets frozen fields in about half the time.
@frozen(slots=False)
class Usage:
    """Tokens of one call, summed over all attempts. ``estimated`` is true if a model did not report a part of them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """The sum of prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def sum(cls, usages: Collection["Usage"]) -> "Usage":
        """Return the sum of ``usages``."""
        return cls(
            sum([used.prompt_tokens for used in usages]),
            sum([used.completion_tokens for used in usages]),
            any([used.estimated for used in usages]),
        )

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
        )

    def __sub__(self, earlier: "Usage") -> "Usage":
        return Usage(
            self.prompt_tokens - earlier.prompt_tokens,
            self.completion_tokens - earlier.completion_tokens,
            self.estimated,
        )


class Tool(TypedDict):
    """A tool that a model may call. ``parameters`` is the JSON Schema of the call's arguments; its type must be object."""

    name: str  # letters, digits, _ and -; 64 characters at most
    description: str
    parameters: Mapping[str, Any]


@frozen
class ToolCall:
    """A model's call of one of the offered tools; the arguments satisfy the tool's schema."""

    name: str
    arguments: Mapping[str, Any]


@frozen
class ImageInput:
    """An image in a request. ``media_type`` is determined by the content; ``digest`` is a hash of ``data``."""

    data: bytes = field(repr=False)
    media_type: str
    digest: str


@frozen(slots=False)
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
    """The original answer, if ``text`` was extracted from it; "" if ``text`` is the complete answer."""
    original: Usage = field(factory=Usage, eq=False)
    """For an answer from the cache: the tokens of the original call, which was paid for when the answer was stored."""

    @property
    def tool(self) -> ToolCall | None:
        """The tool call in the answer; None if the answer is plain text.

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


def with_usage(answer: Completion, prompt: str, options: Mapping[str, Any]) -> Completion:
    """Return ``answer`` with estimated tokens if the model reports none: unknown is not zero."""
    used = answer.usage
    if used.prompt_tokens or used.completion_tokens or answer.cached:
        return answer
    asked = _bytes(prompt)
    if "system" in options:
        asked += _bytes(options["system"])
    for turn in options.get("messages", ()):
        asked += _bytes(turn.get("content", ""))
    answered = _bytes(answer.raw or answer.text)
    used = Usage(-(-asked // BYTES_OF_TOKEN), -(-answered // BYTES_OF_TOKEN), True)
    return Completion(  # not ``evolve``, which would take a tenth of the time of a step
        answer.text, answer.finish_reason, used, answer.attempts, answer.model, answer.cached, answer.repaired, answer.cost,
        answer.raw, answer.original,
    )  # fmt: skip


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


@frozen
class Notice:
    """An event reported during a call: a retry by the SDK, a repeated request, a repair.

    ``lost`` is true if no answer to the previous request arrived, but the server may have answered and charged for it.
    """

    kind: Literal["retry", "again", "repair"]
    attempt: int
    reason: str
    lost: bool = False


@define(eq=False)
class Tally:
    """The actual usage of one caller: requests, tokens, US dollars. ``cost`` is None if a model's price is unknown."""

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
    """Options of a call, in addition to the prompt.

    An adapter ignores most options that its model does not support. An option that changes the request itself is refused instead:
    the adapter's attribute ``unsupported`` maps the option's name to the reason. If a model does not support ``schema``, ``choices`` or
    ``tools``, the adapter instead requests the shape of the answer in the prompt, and the layer ``Validated`` checks the answer.
    """

    model: str
    system: str
    temperature: float
    max_tokens: int
    stop: Sequence[str]
    seed: int
    top_p: float
    examples: Sequence[Mapping[str, str]]  # answered examples before the prompt: {"in": text, "out": text}
    messages: Sequence[
        Mapping[str, str]
    ]  # earlier messages, before the prompt: {"role": user or assistant, "content": text}
    images: Sequence["ImageInput"]  # shown to the model before the prompt
    timeout: float  # seconds for the entire call, including retries
    retries: int  # maximum number of repeated requests after incomplete answers
    schema: Mapping[str, Any]  # JSON Schema of the answer, parsed as JSON
    choices: Sequence[str]  # the answer is exactly one of these strings
    tools: Sequence[Tool]  # the answer is one call of one of these tools, or plain text; see ``Completion.tool``
    grammar: str  # a grammar from ``lang.constrain``; models without support ignore it, so parse every answer
    sample: int  # index among several answers to the same request; not sent, but part of the cache's key
    tidy: Callable[
        [str], str
    ]  # corrects an answer before validation; raises ValueError with the reason if it can't; not part of the request
    form: str  # a description of the answer, for custom clients that do not accept ``schema``; not part of the request
    strict_types: bool  # the answer must be exact: no prose around JSON, no reworded choice
    repairs: int  # number of repair rounds for an invalid answer, 0 or 1; not part of the request
    notify: Callable[[Notice], None]  # not part of the request
    on_delta: Callable[[str], None]  # receives the parts of a text answer while it arrives; not part of the request
    tally: Tally  # counts the caller's actual usage under a budget; not part of the request


@runtime_checkable
class LLM(Protocol):
    """A language model."""

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return one complete answer to ``prompt``; raise an ``LLMError`` otherwise."""
        ...


class LLMError(KnotworkError):
    """Raised if a call has no usable answer. ``usage`` and ``cost`` (None: unknown) are those of the failed call; ``hint`` is advice.

    ``text`` is the received text, if any.

    ``lost`` is true if the model may have answered and charged for the answer, but did not report all of the usage. ``resent``
    is true if the request was already repeated as often as allowed. ``attempts`` is 0 if the model was not asked.
    """

    kind: ClassVar[str] = "error"
    lost: bool = False
    resent: bool = False
    cost: float | None = None

    def __init__(
        self, message: str, *, hint: str = "", text: str = "", attempts: int = 1, usage: Usage | None = None
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.text = text
        self.attempts = attempts
        self.usage = usage or Usage()


class Unavailable(LLMError):
    """Raised if the server can't be reached (``is_unreached``) or fails."""

    kind = "unavailable"
    is_unreached: bool = False


class TimedOut(LLMError):
    """Raised if the call exceeds its total time limit."""

    kind = "timeout"


class RateLimited(LLMError):
    """Raised if the server reports too many requests. ``wait`` is the number of seconds that it asks to wait (0: it does not say)."""

    kind = "rate_limit"
    wait: float = 0.0


class Truncated(LLMError):
    """Raised if the answer is cut off. ``text`` is the received part."""

    kind = "truncated"


class EmptyAnswer(LLMError):
    """Raised if the model returns an empty answer, or only thoughts (``text``)."""

    kind = "empty"


class BadAnswer(LLMError):
    """Raised if the answer does not have the requested form. ``text`` is the received answer."""

    kind = "bad_answer"


class Refused(LLMError):
    """Raised if the model or a content filter declines to answer."""

    kind = "refused"


class WrongKey(LLMError):
    """Raised if the API key is missing, wrong or lacks permission."""

    kind = "wrong_key"


class QuotaExhausted(LLMError):
    """Raised if the account has no credit left."""

    kind = "quota"


class ModelNotFound(LLMError):
    """Raised if the server does not have the requested model."""

    kind = "model_not_found"


class PromptTooLong(LLMError):
    """Raised if the prompt is too long for the context of the model."""

    kind = "prompt_too_long"


class BadRequest(LLMError):
    """Raised if the server refuses the request, and repeating the unchanged request can't succeed.

    ``is_wrong_address`` is true if what answers is not a model: a web page, or a server without this path.
    """

    kind = "bad_request"
    is_wrong_address: bool = False


class BudgetExceeded(LLMError):
    """Raised if the next call would exceed the run's budget. The call is not made.

    ``limit`` names the limit, if known. Each interface adds a hint on how to raise the limit.
    """

    kind = "budget"

    def __init__(self, message: str, *, limit: Literal["", "calls", "tokens", "cost"] = "", **rest: Any) -> None:
        super().__init__(message, **rest)
        self.limit = limit


class NotRecorded(LLMError):
    """Raised if the cassette has no answer to the request."""

    kind = "not_recorded"


class NotConfigured(LLMError):
    """Raised if no model can be used: no model is named, the key is missing, or an extra is not installed."""

    kind = "not_configured"


ERRORS: Mapping[str, type[LLMError]] = {
    kind.kind: kind for kind in list(vars().values()) if isinstance(kind, type) and issubclass(kind, LLMError)
}
"""Maps each kind of error to its class."""


def error_of(kind: str, message: str, *, hint: str = "", text: str = "") -> LLMError:
    """Return the error of a recorded call. ``text`` is the received answer."""
    return ERRORS.get(kind, LLMError)(message, hint=hint, text=text)
