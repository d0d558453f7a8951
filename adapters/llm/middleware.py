"""The layers between a caller and an adapter. Each has an adapter's interface: ``generate`` and ``aclose``.

From the outermost to the innermost: ``Cached`` (``cache``) → ``Priced`` (``budget``) → ``Validated`` → ``Again`` → ``Budget``
(``budget``) → ``Throttled`` → adapter. A client and its layers belong to one event loop.
"""

import asyncio
import inspect
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Unpack, runtime_checkable

from attrs import define, evolve, field

from ...lang.literals import is_json
from . import (
    CALLED,
    BadAnswer,
    BadRequest,
    Completion,
    EmptyAnswer,
    LLMError,
    Notice,
    Options,
    TimedOut,
    Truncated,
    Usage,
    with_usage,
)
from .answers import check_answer, check_choice, instructions, repair_prompt, without_thoughts
from .conversation import labelled, require_supported
from .json_schema import read_json, validator
from .keys import mask_keys
from .tools import check_tools, judge_call, marked, offered, read_grammar

TIMEOUT = 120.0
"""Default timeout of a call in seconds."""
_NOT_ASKED = frozenset(
    ("form", "notify", "on_delta", "tidy", "timeout", "retries", "repairs", "sample", "strict_types", "tally")
)
"""Options that control the call but are not part of the request."""


@runtime_checkable
class Client(Protocol):
    """A model, or a layer around a model."""

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return one complete answer; raise an ``LLMError`` otherwise."""
        ...

    async def aclose(self) -> None:
        """Release connections, files and threads."""
        ...


class Granted(int):
    """A ``max_tokens`` that was set by a budget, not by the caller. This limit is sent, but is not part of the request's identity."""


def with_floats(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of ``options`` in which ``temperature`` and ``top_p`` are floats: 0 and 0.0 are one request."""
    return {
        name: float(value) if name in ("temperature", "top_p") and type(value) is int else value
        for name, value in options.items()
    }


def asked_for(options: Mapping[str, Any] | Options) -> dict[str, Any]:
    """Return the options that, together with the prompt, identify the request. An image is identified by the hash of its content."""
    asked = with_floats(
        {name: value for name, value in options.items() if name not in _NOT_ASKED and not isinstance(value, Granted)}
    )
    if "images" in asked:
        asked["images"] = [image.digest for image in options["images"]]
    return asked


class Own:
    """Base class of knotwork's own clients, which return Completions and respect timeouts.

    ``as_client`` returns these clients unchanged. ``model_spec`` is the spec from which the client was opened, if any.
    """

    model_spec: str = ""


def model_spec(client: Any) -> str:
    """Return the spec of the model that ``client`` calls through its layers; "" for a custom client."""
    while client is not None:
        if isinstance(spec := getattr(client, "model_spec", ""), str) and spec:
            return spec
        client = getattr(client, "_inner", None) or getattr(client, "inner", None)
    return ""


class Layer(Own):
    """A client that wraps another client."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self.model_spec = model_spec(inner)

    async def aclose(self) -> None:
        """Close the inner client."""
        await self._inner.aclose()


class Patience(float):
    """A timeout in seconds.

    ``queued`` is the time that a call waited for its turn; it does not count against the timeout. ``whole``, if larger, is the
    total time that the call may take if the server asks to retry later.
    """

    queued: float = 0.0
    whole: float = 0.0

    @staticmethod
    def waited(options: Options, seconds: float) -> None:
        """Record that the call with ``options`` waited ``seconds`` for its turn."""
        timeout = options.get("timeout")
        if isinstance(timeout, Patience):
            timeout.queued += seconds


@define(eq=False)
class _Call:
    """One caller's call, which may need several requests. The requests share a timeout; usage and attempts are summed."""

    inner: Client
    options: Options
    usage: Usage = field(factory=Usage)
    attempts: int = 0
    queued: float = 0.0
    started: float = field(factory=time.monotonic)

    def left(self) -> float:
        """Return the remaining seconds of the call's timeout."""
        return self.options.get("timeout", TIMEOUT) - (time.monotonic() - self.started) + self.queued

    async def ask(self, prompt: str, share: float = 1.0) -> Completion:
        """Return the inner client's answer, with the usage and attempts of all requests of this call so far. Errors have these totals too.

        The request may take the fraction ``share`` of the remaining seconds.
        """
        left = max(self.left(), 0.001)
        patience = Patience(left * share)
        patience.whole = left
        asked: Options = {**self.options, "timeout": patience}
        try:
            answer = await self.inner.generate(prompt, **asked)
        except LLMError as error:
            self._add(error.usage, error.attempts)
            error.usage, error.attempts = self.usage, self.attempts
            raise
        finally:
            self.queued += patience.queued
            Patience.waited(self.options, patience.queued)
        is_first = not self.attempts
        self._add(answer.usage, answer.attempts)
        return answer if is_first else evolve(answer, usage=self.usage, attempts=self.attempts)

    def _add(self, usage: Usage, attempts: int) -> None:
        self.usage += usage
        self.attempts += attempts

    def notify(self, notice: Notice) -> None:
        """Report ``notice`` to the caller."""
        if (notify := self.options.get("notify")) is not None:
            notify(notice)


class Again(Layer):
    """Repeats the request, at most ``retries`` times (default 2), if an answer is cut off, empty or unreadable.

    An answer is returned without the model's thoughts. An answer that ends inside them is cut off.

    With ``halve`` the first request is abandoned after half of the call's timeout and repeated once, so that one stuck
    request does not fail the call. ``halve`` is not suitable for models whose answers are normally slow.
    """

    def __init__(self, inner: Client, *, halve: bool = True) -> None:
        super().__init__(inner)
        self._halve = halve

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the first complete answer; if the last request fails too, raise its error."""
        asking = _Call(self._inner, options)
        retries = max(options.get("retries", 2), 0)
        turn = 0
        while True:
            halved = self._halve and turn == 0 and retries > 0
            turn += 1
            try:
                return without_thoughts(await asking.ask(prompt, share=0.5 if halved else 1.0))
            except (Truncated, EmptyAnswer, BadAnswer, TimedOut) as error:
                done = turn > retries or error.resent or asking.left() <= 0
                if done or (isinstance(error, TimedOut) and not halved):
                    raise
                asking.notify(Notice("again", turn + 1, error.message))


class Validated(Layer):
    """Checks every answer to a request with ``schema``, ``choices`` or ``tools``; if it is invalid, requests one repair.

    A JSON answer is returned without the text around the JSON, and a choice as ``choices`` spells it; ``Completion.raw``
    contains the original answer. A tool call is returned as ``Completion.tool``; if tools were offered, a plain-text answer is
    valid too.
    """

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return a valid answer; raise ``BadAnswer`` if the repaired answer is invalid too."""
        if not _check_request(options):
            return await self._inner.generate(prompt, **options)
        asking = _Call(self._inner, options)
        answer = await asking.ask(prompt)
        text, why = _judge(answer.text, options)
        if not why:
            return marked(_read(answer, text), options)
        if options.get("repairs", 1) < 1 or asking.left() <= 0:
            unfit = f"the answer is invalid: {why}"
            raise BadAnswer(unfit, text=answer.text, usage=asking.usage, attempts=asking.attempts)
        asking.notify(Notice("repair", 2, why))
        again = await asking.ask(repair_prompt(prompt, answer.text, why, options))
        text, why = _judge(again.text, options)
        if not why:
            return marked(evolve(_read(again, text), repaired=True), options)
        raise BadAnswer(
            f"the answer is still invalid after a repair: {why}",
            text=again.text,
            usage=asking.usage,
            attempts=asking.attempts,
        )


class ModelCheck(Layer):
    """Warns once if the server answers with a model other than the requested ``model``."""

    def __init__(self, inner: Client, model: str, warn: Callable[[str], None]) -> None:
        super().__init__(inner)
        self._model = model
        self._warn = warn
        self._warned = False

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        answer = await self._inner.generate(prompt, **options)
        if not self._warned and answer.model and not is_same_model(self._model, answer.model):
            self._warned = True
            self._warn(
                f"the model {self._model} was requested, but the server answered with {mask_keys(answer.model[:80])}"
            )
        return answer


def is_same_model(asked: str, answered: str) -> bool:
    """Return whether two names mean the same model, ignoring a provider's prefix and a date or version suffix."""
    left, right = (name.strip().lower().rpartition("/")[2].removesuffix(":latest") for name in (asked, answered))
    return left == right or any(
        long.startswith(short) and _VERSION.fullmatch(long[len(short) :]) is not None
        for long, short in ((left, right), (right, left))
        if short
    )


_VERSION = re.compile(r"[-@:](?:latest|(?:preview|exp)(?:-[\d-]+)?|\d{3,}[\d-]*(?:-preview)?|v\d[\d.]*)")


def fitting(answer: Completion, options: Options) -> Completion | None:
    """Return a stored answer in the form in which ``Validated`` would return it; None if the answer is invalid."""
    try:
        answer = without_thoughts(answer)
    except (BadAnswer, Truncated, EmptyAnswer):
        return None
    if "choices" in options:
        exact = answer.text in options["choices"]
    elif "schema" in options:
        exact = "tidy" not in options and is_json(answer.text)
    else:
        return answer
    if exact:
        return answer
    text, why = _judge(answer.text, options)
    return None if why else _read(answer, text)


def checked(answer: Completion, options: Options) -> Completion | None:
    """Return an answer that another user stored, in the form in which ``Validated`` would return it; None if it is invalid.

    Unlike ``fitting``, it also checks the schema of JSON and the arguments of a tool call.
    """
    if answer.finish_reason == CALLED and "tools" not in options:
        return None
    try:
        answer = without_thoughts(answer)
    except (BadAnswer, Truncated, EmptyAnswer):
        return None
    if not any(name in options for name in ("choices", "schema", "tools")) or (
        "tools" in options and answer.finish_reason != CALLED
    ):
        return answer
    text, why = _judge(answer.text, options)
    return None if why else _read(answer, text)


def _read(answer: Completion, text: str) -> Completion:
    """Return ``answer`` with ``text``, its parsed text. ``raw`` keeps the original text."""
    return answer if text == answer.text else evolve(answer, text=text, raw=answer.raw or answer.text)


_SHAPES = ("schema", "choices", "tools", "grammar")


def _check_request(options: Options) -> bool:
    """Return whether the answer's shape can be checked; raise ``BadRequest`` for an invalid combination of options."""
    asked = [name for name in _SHAPES if name in options]
    if len(asked) > 1:
        raise BadRequest(f"a request can't have both {asked[0]} and {asked[1]}")
    match asked:
        case ["schema"]:
            validator(options["schema"])
        case ["choices"] if not options["choices"]:
            raise BadRequest("choices is empty")
        case ["tools"]:
            check_tools(options["tools"])
        case ["grammar"]:
            read_grammar(options["grammar"])
    return bool(asked) and asked != ["grammar"]


def _judge(text: str, options: Options) -> tuple[str, str]:
    """Return the validated answer and ""; for an invalid answer, return "" and its fault."""
    if "tools" in options:
        return text, judge_call(text, options["tools"])[1]
    if (tidy := options.get("tidy")) is not None:
        try:
            text = tidy(text)
        except ValueError as error:
            return "", str(error)
    strict = options.get("strict_types", False)
    if "schema" in options:
        return check_answer(text, options["schema"], strict=strict)
    return check_choice(text, options["choices"], strict=strict)


async def structured(
    client: Any, prompt: str, schema: Mapping[str, Any], /, **options: Unpack[Options]
) -> dict[str, Any]:
    """Return the JSON object in the client's answer, checked against ``schema``; raise ``BadAnswer`` if the answer is invalid.

    ``client`` is any object that ``as_client`` accepts. One repair round is made, also for a client without ``Validated``.
    """
    asked: Options = {**options, "schema": schema}
    answer = await Validated(as_client(client)).generate(prompt, **asked)
    value = read_json(answer.text)
    if not isinstance(value, dict):
        raise BadAnswer(
            "the answer is not a JSON object", text=answer.text, usage=answer.usage, attempts=answer.attempts
        )
    return value


class NoText(BadAnswer):
    """Raised if a custom client returns neither a string nor a Completion. Repeating the request can't fix this programming error."""


_NEEDED = {
    name: f"the custom client does not accept it; add the parameter {name} to its generate()"
    for name in ("messages", "images", "seed", "top_p", "stop")
}
"""Options that change the request itself: a custom client without such a parameter refuses the request."""


class _CustomClient(Own):
    """A custom client: it returns strings or Completions, accepts all, some or no options, and may have no ``aclose``."""

    def __init__(self, ask: Callable[..., Any], close: Callable[[], Any] | None) -> None:
        self._ask = ask
        self._close = close
        parameters = inspect.signature(ask).parameters
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        self._known = None if takes_all else frozenset(list(parameters)[1:])
        self.unsupported = {} if takes_all else {name: why for name, why in _NEEDED.items() if name not in parameters}

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        known = {name: value for name, value in options.items() if self._known is None or name in self._known}
        if offered(options) and "tools" not in known:
            prompt = f"{prompt}\n\n{instructions(options)}"
        if "form" in options and "schema" not in known:
            prompt = f"{prompt}\n\nAnswer with {options['form']}."
        require_supported(self.unsupported, options)
        if "examples" in options and "examples" not in known:
            prompt = labelled(prompt, options["examples"])
        timeout = asyncio.timeout(options.get("timeout", TIMEOUT))
        try:
            answer = self._ask(prompt, **known)
            if inspect.isawaitable(answer):
                async with timeout:
                    answer = await answer
        except Exception as error:
            from .service_errors import client_error  # loads httpx

            if isinstance(error, TimeoutError) and timeout.when() is not None and timeout.expired():
                raise TimedOut("no answer within the call's timeout") from None
            if (failure := client_error(error)) is None or failure is error:
                raise
            raise failure from error
        if isinstance(answer, Completion):
            return marked(without_thoughts(with_usage(answer, prompt, known)), options)
        if not isinstance(answer, str):
            raise NoText(f"the client answered {type(answer).__name__}, not a string")
        if not answer.strip():
            raise EmptyAnswer("the client's answer is empty")
        return marked(without_thoughts(with_usage(Completion(answer), prompt, known)), options)

    async def aclose(self) -> None:
        if self._close is not None and inspect.isawaitable(closing := self._close()):
            await closing


def as_client(client: Any) -> Client:
    """Return ``client`` as a ``Client``.

    ``client`` is an object with ``generate(prompt, **options)``, or a function of the prompt. The method or function returns a
    string or a Completion. It may be synchronous, but then it blocks the event loop. ``aclose`` is optional. Raises TypeError
    for other objects.
    """
    if isinstance(client, Own) and isinstance(client, Client):
        return client
    ask = getattr(client, "generate", client)
    if not callable(ask) or isinstance(client, type):
        raise TypeError(f"{type(client).__name__} is not a model client, because it has no generate(prompt, **options)")
    made = _CustomClient(ask, getattr(client, "aclose", None))
    if isinstance(reasons := getattr(client, "unsupported", None), Mapping):
        made.unsupported = {**made.unsupported, **reasons}
    made.model_spec = model_spec(client)
    return made
