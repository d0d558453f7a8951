"""The adapter to chat completions: OpenAI and every server that speaks its protocol, through the ``openai`` SDK."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2
from openai import AsyncOpenAI, BadRequestError, OpenAIError, UnprocessableEntityError

from .llm import BadAnswer, BadRequest, Completion, EmptyAnswer, Options, Refused, Truncated, Usage
from .llm_answers import answer_format, instructions, read_json, strict_ready, unwrap
from .llm_errors import status_error
from .llm_http import (
    body_object,
    count,
    event_object,
    finish_stream,
    joined,
    server_events,
)
from .llm_sdk import DEFAULT_TIMEOUT, SDKModel

__all__ = ["OpenAIModel"]

_WHOLE = frozenset(("stop", "eos", "eos_token", "end_turn", "stop_sequence"))
_CUT = frozenset(("length", "max_tokens", "model_length", "abort", "cancelled"))
_FILTERED = frozenset(("content_filter", "safety", "recitation", "refusal"))
_OPTIONAL = (
    "response_format", "stream_options", "max_completion_tokens", "max_tokens", "temperature", "seed", "stop",
    "grammar",
)  # fmt: skip
_UNKNOWN = re.compile("unsupported|not supported|unknown|unrecogni|forbidden|not permitted|instead")


class OpenAIModel(SDKModel):
    """A model behind chat completions.

    ``base_url`` None is OpenAI's own address. ``stream=True`` asks for a stream and puts it together. ``grammar=True``
    hands choices over as a GBNF grammar (llama.cpp's server). ``timeout``: seconds for a call that names none.
    ``max_retries``: how often the SDK sends a failed request again. What a server refuses by name (``response_format``,
    ``seed``, ...) is left out from then on; the output's shape is then asked for in words.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        stream: bool = False,
        grammar: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = 2,
    ) -> None:
        super().__init__(model, base_url=base_url, key=api_key or "", timeout=timeout, sdk_error=OpenAIError)
        # The SDK insists on a key; servers of one's own mostly want none.
        self._sdk = AsyncOpenAI(
            api_key=api_key or "none", base_url=base_url, max_retries=max_retries, http_client=self._http
        )
        self._stream = stream
        self._grammar = grammar
        self._limit = "max_tokens" if base_url else "max_completion_tokens"
        self._refused: set[str] = set()
        self._in_words = False

    async def aclose(self) -> None:
        """Close all connections; the model can't be asked any more."""
        await self._sdk.close()

    async def _ask(self, prompt: str, options: Options) -> Completion:
        skip = set(self._refused)
        while True:
            request = self._request(prompt, options, skip)
            try:
                raw = await self._sdk.chat.completions.with_raw_response.create(**request)
            except (BadRequestError, UnprocessableEntityError) as error:
                name = self._refusal(error, request)
                if name is None:
                    raise
                skip.add(name)
                continue
            break
        response: httpx2.Response = raw.http_response
        if self._stream and "json" not in response.headers.get("content-type", ""):
            answer = await _read_stream(response)
        else:
            answer = _read_body(await response.aread())
        return self._unwrapped(answer, options)

    def _request(self, prompt: str, options: Options, skip: set[str]) -> dict[str, Any]:
        request: dict[str, Any] = {"model": options.get("model", self.model), "extra_body": {}}
        shape = answer_format(options)
        asked = False
        if shape is not None:
            if self._grammar and "choices" in options and "grammar" not in skip:
                request["extra_body"]["grammar"] = _one_of(options["choices"])
                asked = True
            elif "response_format" not in skip:
                request["extra_body"]["response_format"] = _response_format(shape[0])
                asked = True
            if not asked:
                prompt = f"{prompt}\n\n{instructions(options)}"
            elif self._in_words and "response_format" in request["extra_body"]:
                prompt = f"{prompt}\n\n{instructions({'schema': shape[0]})}"
        messages = [{"role": "user", "content": prompt}]
        if system := options.get("system"):
            messages.insert(0, {"role": "system", "content": system})
        # These go into the body as they are: as arguments the SDK would compare them with all the types that it knows of
        # messages and formats, and change nothing in them.
        request["messages"] = []
        request["extra_body"]["messages"] = messages
        if (limit := options.get("max_tokens")) is not None:
            request[_other(self._limit) if self._limit in skip else self._limit] = limit
        for name in ("temperature", "seed"):
            if name in options and name not in skip:
                request[name] = options[name]
        if options.get("stop") and "stop" not in skip:
            request["stop"] = list(options["stop"])
        if self._stream:
            request["stream"] = True
            if "stream_options" not in skip:
                request["stream_options"] = {"include_usage": True}
        return request

    def _refusal(self, error: BadRequestError | UnprocessableEntityError, request: Mapping[str, Any]) -> str | None:
        """Return the optional part of ``request`` that the 400 names; remember it unless this schema is at fault."""
        if type(status_error(error.response)) is not BadRequest:
            return None
        words = error.response.text.lower()
        for name in _OPTIONAL:
            if name not in request and name not in request["extra_body"]:
                continue
            # `stop`, `seed` and the like occur in many messages: they count as named when they are quoted.
            named = name in words if "_" in name or name == "grammar" else re.search(f"['\"`]{name}\\b", words)
            if str(error.param) != name and not named:
                continue
            if name == _other(self._limit) or (name == self._limit and not _UNKNOWN.search(words)):
                return None  # the limit goes by another name at most, it is never left out
            if not (name == "response_format" and "schema" in words):
                self._refused.add(name)
            return name
        return None

    def _unwrapped(self, answer: Completion, options: Options) -> Completion:
        shape = answer_format(options)
        if shape is None:
            return answer
        if not shape[1]:
            self._notice_ignored(answer.text)
            return answer
        text = unwrap(answer.text, as_json="choices" not in options)
        if text is answer.text and text not in options.get("choices", ()):
            self._notice_ignored(text)
        return Completion(text, answer.finish_reason, answer.usage, answer.attempts, answer.model)

    def _notice_ignored(self, text: str) -> None:
        """Say the shape in words too from now on when the server ignores ``response_format``."""
        if not self._in_words and "response_format" not in self._refused:
            try:
                read_json(text)
            except ValueError:
                self._in_words = True


def _other(limit: str) -> str:
    return "max_completion_tokens" if limit == "max_tokens" else "max_tokens"


def _one_of(choices: Any) -> str:
    return "root ::= " + " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)


def _response_format(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": strict_ready(schema)},
    }


def _usage(found: Any) -> Usage:
    return Usage(count(found, "prompt_tokens"), count(found, "completion_tokens"))


def _whole(text: str, finish: Any, refusal: Any, usage: Usage, model: Any) -> Completion:
    """Return the answer if it is one; raise ``Refused``, ``Truncated``, ``EmptyAnswer`` or ``BadAnswer`` if not."""
    if refusal or finish in _FILTERED:
        raise Refused(f"the model declined{': ' + str(refusal)[:200] if refusal else ''}", usage=usage)
    if finish in _CUT:
        raise Truncated("the answer stopped at the token limit", hint="raise max_tokens", text=text, usage=usage)
    if finish is None:
        raise Truncated("the answer ends without a finish_reason", text=text, usage=usage)
    if finish not in _WHOLE and not text.strip():
        raise EmptyAnswer(f"no text, but {str(finish)[:40]}", usage=usage)
    if finish not in _WHOLE:
        raise BadAnswer(f"the answer ended with {str(finish)[:40]!r}", text=text, usage=usage)
    if not text.strip():
        raise EmptyAnswer("the model answered nothing", usage=usage)
    return Completion(text, "stop", usage, model=model if isinstance(model, str) else "")


def _text(content: Any) -> str:
    """Return a message's content: a string, or a list of parts of which those of type text count."""
    if isinstance(content, list):
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        )
    return content if isinstance(content, str) else ""


def _first(body: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = body.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _read_body(content: bytes) -> Completion:
    body = body_object(content)
    usage = _usage(body.get("usage"))
    choice = _first(body)
    if choice is None:
        raise EmptyAnswer("the answer has no choices", usage=usage)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise EmptyAnswer("the choice has no message", usage=usage)
    text = joined([_text(message.get("content"))])
    return _whole(text, choice.get("finish_reason"), message.get("refusal"), usage, body.get("model"))


async def _read_stream(response: httpx2.Response) -> Completion:
    parts: list[str] = []
    refusal = ""
    finish = model = None
    usage = Usage()
    events = server_events(response)
    try:
        async for data in events:
            if data.strip() == "[DONE]":
                break
            chunk = event_object(data)
            model = chunk.get("model") or model
            if chunk.get("usage"):
                usage = _usage(chunk["usage"])
            choice = _first(chunk)
            if choice is None or choice.get("index", 0) != 0:
                continue
            delta = choice.get("delta")
            if isinstance(delta, dict):
                parts.append(_text(delta.get("content")))
                refusal += str(delta.get("refusal") or "")
            finish = choice.get("finish_reason") or finish
    except Truncated as error:
        # A connection that breaks after the finish_reason has cut off nothing but the usage.
        if finish is None:
            raise Truncated(error.message, text="".join(parts), usage=usage) from None
    finally:
        await finish_stream(events, response)
    return _whole(joined(parts), finish, refusal, usage, model)
