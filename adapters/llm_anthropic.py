"""The adapter to Anthropic's messages, through the ``anthropic`` SDK (an extra)."""

from collections.abc import Mapping
from typing import Any

import httpx2
from anthropic import AnthropicError, AsyncAnthropic, BadRequestError

from .llm import (
    BadAnswer,
    BadRequest,
    Completion,
    EmptyAnswer,
    Options,
    PromptTooLong,
    Refused,
    Truncated,
    Usage,
)
from .llm_answers import answer_format, instructions, strict_ready, unwrap
from .llm_errors import in_band_error, status_error
from .llm_http import (
    body_object,
    count,
    event_object,
    finish_stream,
    joined,
    server_events,
)
from .llm_sdk import DEFAULT_TIMEOUT, SDKModel

__all__ = ["AnthropicModel"]

_DEFAULT_MAX_TOKENS = 4096
_OPTIONAL = ("output_config", "temperature")


class AnthropicModel(SDKModel):
    """A model behind Anthropic's messages.

    ``base_url`` None is Anthropic's own address. ``stream=True`` asks for a stream and puts it together. ``timeout``:
    seconds for a call that names none. ``max_retries``: how often the SDK sends a failed request again. The protocol
    wants a limit: a call without ``max_tokens`` gets 4,096. It has no ``seed``. What a model refuses by name is left
    out from then on; the output's shape is then asked for in words.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        stream: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = 2,
    ) -> None:
        super().__init__(model, base_url=base_url, key=api_key or "", timeout=timeout, sdk_error=AnthropicError)
        self._sdk = AsyncAnthropic(
            # Never left out: the SDK would go looking for credentials in profiles on the disk.
            api_key=api_key or "none",
            base_url=base_url,
            max_retries=max_retries,
            timeout=httpx2.Timeout(None, connect=10.0),
            http_client=self._http,
            open_telemetry=False,
        )
        self._stream = stream
        self._refused: set[str] = set()

    async def aclose(self) -> None:
        """Close all connections; the model can't be asked any more."""
        await self._sdk.close()

    async def _ask(self, prompt: str, options: Options) -> Completion:
        skip = set(self._refused)
        while True:
            request = self._request(prompt, options, skip)
            try:
                raw: Any = await self._sdk.messages.with_raw_response.create(**request)
            except BadRequestError as error:
                words = error.response.text.lower()
                named = [name for name in _OPTIONAL if name in words or name.replace("config", "format") in words]
                asked = [name for name in named if name in request or name in request["extra_body"]]
                if not asked or type(status_error(error.response)) is not BadRequest:
                    raise
                if not (asked[0] == "output_config" and "schema" in words):
                    self._refused.add(asked[0])
                skip.add(asked[0])
                continue
            break
        response: httpx2.Response = raw.http_response
        if self._stream and "json" not in response.headers.get("content-type", ""):
            answer = await _read_stream(response)
        else:
            answer = _read_body(await response.aread())
        shape = answer_format(options)
        if shape is None or not shape[1]:
            return answer
        text = unwrap(answer.text, as_json="choices" not in options)
        return Completion(text, answer.finish_reason, answer.usage, answer.attempts, answer.model)

    def _request(self, prompt: str, options: Options, skip: set[str]) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": options.get("model", self.model),
            "max_tokens": options.get("max_tokens", _DEFAULT_MAX_TOKENS),
            "extra_body": {},
        }
        shape = answer_format(options)
        if shape is not None:
            # The service takes closed objects only; any other shape is asked for in words and checked by us.
            if "output_config" not in skip and strict_ready(shape[0]):
                request["output_config"] = {"format": {"type": "json_schema", "schema": shape[0]}}
            else:
                prompt = f"{prompt}\n\n{instructions(options)}"
        request["messages"] = [{"role": "user", "content": prompt}]
        if system := options.get("system"):
            request["system"] = system
        if options.get("stop"):
            request["stop_sequences"] = list(options["stop"])
        if "temperature" in options and "temperature" not in skip:
            # This SDK has no such parameter any more (newer models refuse it), the protocol still does.
            request["extra_body"]["temperature"] = options["temperature"]
        if self._stream:
            request["stream"] = True
        return request


def _usage(found: Any, before: Usage | None = None) -> Usage:
    """Return the tokens of ``found``; what a stream's last message leaves out is taken from ``before``."""
    before = before or Usage()
    cached = count(found, "cache_creation_input_tokens") + count(found, "cache_read_input_tokens")
    prompt = count(found, "input_tokens") + cached
    return Usage(prompt or before.prompt_tokens, count(found, "output_tokens") or before.completion_tokens)


def _whole(text: str, stop: Any, usage: Usage, model: Any) -> Completion:
    """Return the answer if it is one; raise an error of its kind if not."""
    if stop == "refusal":
        raise Refused("the model declined", usage=usage)
    if stop == "max_tokens":
        raise Truncated("the answer stopped at the token limit", hint="raise max_tokens", text=text, usage=usage)
    if stop == "model_context_window_exceeded":
        raise PromptTooLong("the prompt and its answer do not fit the model's context", usage=usage)
    if stop is None or stop == "pause_turn":
        raise Truncated("the answer ends without a stop_reason", text=text, usage=usage)
    if not text.strip():
        raise EmptyAnswer("the model answered nothing", usage=usage)
    if stop not in ("end_turn", "stop_sequence"):
        raise BadAnswer(f"the answer ended with {str(stop)[:40]!r}", text=text, usage=usage)
    return Completion(text, "stop", usage, model=model if isinstance(model, str) else "")


def _read_body(content: bytes) -> Completion:
    body = body_object(content)
    blocks = body.get("content")
    parts = [_block(block) for block in blocks] if isinstance(blocks, list) else []
    return _whole(joined(parts), body.get("stop_reason"), _usage(body.get("usage")), body.get("model"))


def _block(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def _inner(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = event.get(name)
    return found if isinstance(found, dict) else {}


async def _read_stream(response: httpx2.Response) -> Completion:
    parts: list[str] = []
    stop = model = None
    usage = Usage()
    events = server_events(response)
    try:
        async for data in events:
            event = event_object(data)
            match event.get("type"):
                case "message_start":
                    message = _inner(event, "message")
                    model, usage = message.get("model"), _usage(message.get("usage"))
                case "content_block_start":
                    parts.append(_block(event.get("content_block")))
                case "content_block_delta":
                    delta = _inner(event, "delta")
                    if delta.get("type") == "text_delta" and isinstance(delta.get("text"), str):
                        parts.append(delta["text"])
                case "message_delta":
                    stop = _inner(event, "delta").get("stop_reason") or stop
                    usage = _usage(event.get("usage"), usage)
                case "message_stop":
                    break
                case "error":
                    raise in_band_error(event.get("error"))
    except Truncated as error:
        if stop is None:
            raise Truncated(error.message, text="".join(parts), usage=usage) from None
    finally:
        await finish_stream(events, response)
    return _whole(joined(parts), stop, usage, model)
