"""The adapter for Anthropic's messages API, through the ``anthropic`` SDK (an extra)."""

from collections.abc import Mapping
from typing import Any

import httpx2
from anthropic import AnthropicError, AsyncAnthropic, BadRequestError, UnprocessableEntityError
from attrs import define, field

from ..addresses import service_address
from . import (
    ANTHROPIC_MAX_TOKENS,
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
from .answers import answer_format, instructions, joined, strict_ready
from .conversation import earlier_turns
from .http import CONNECT_TIMEOUT, count, unfinished
from .images import base64_text
from .sdk import SDKModel, with_tools
from .service_errors import in_band_error, status_error
from .strict_schema import Strictness
from .tools import about_tools, called_text, message_tools

_OPTIONAL = ("output_config", "temperature", "tool_choice", "tools")


class AnthropicModel(SDKModel):
    """A model behind Anthropic's messages API; see ``SDKModel``.

    The protocol requires a token limit: the default of ``max_tokens`` is 4,096. ``seed`` is refused, grammars are ignored.
    """

    unsupported: Mapping[str, str] = {"seed": "Anthropic's API has no seed, so answers can't be made repeatable"}

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None, max_retries: int = 2, **rest: Any
    ) -> None:
        super().__init__(model, base_url=base_url, api_key=api_key, max_retries=max_retries, **rest)
        self._sdk = AsyncAnthropic(
            # A key is always given: without a key, the SDK would search for credentials in profiles on the disk.
            api_key=api_key or "none",
            base_url=base_url,
            max_retries=max_retries,
            timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT),
            http_client=self._bounded_client(),
            open_telemetry=False,
        )
        self._strict = Strictness()

    @property
    def address(self) -> str:
        """The address of the service."""
        return service_address(self._address, "ANTHROPIC_BASE_URL")

    def batch_line(self, key: str, prompt: str, options: Options) -> dict[str, Any]:
        """Return the line of a batch for a call; the service returns ``key`` with the answer."""
        request = self._request(prompt, options, set(self._refused))
        return {
            "custom_id": key,
            "params": {
                **{name: part for name, part in request.items() if name != "extra_body"},
                **request["extra_body"],
            },
        }

    def batch_usage(self, body: Mapping[str, Any]) -> Usage:
        """Return the tokens that a response of a batch reports."""
        return _usage(body.get("usage"))

    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        return (AnthropicError,)

    def _refusals(self) -> tuple[type[Exception], ...]:
        return BadRequestError, UnprocessableEntityError

    async def _create(self, request: dict[str, Any]) -> Any:
        return await self._sdk.messages.with_raw_response.create(**request)

    def _refusal(self, error: BadRequestError | UnprocessableEntityError, request: Mapping[str, Any]) -> str | None:
        if type(status_error(error.response)) is not BadRequest:
            return None
        words = error.response.text.lower()
        if "top_p" in words and "top_p" in request["extra_body"]:
            return None  # newer models take either temperature or top_p; the caller decides which of them to give up
        for name in _OPTIONAL:
            named = (
                name in words or name.replace("config", "format") in words or (name == "tools" and about_tools(words))
            )
            if named and (name in request or name in request["extra_body"]):
                if name == "output_config" and "schema" in words:
                    self._strict.gives_up(request["output_config"]["format"]["schema"])
                if not (name in ("output_config", "tools") and "schema" in words):
                    self._refused.add(name)
                return name
        return None

    def _request(self, prompt: str, options: Options, skip: set[str]) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": options.get("model", self.model),
            "max_tokens": options.get("max_tokens", ANTHROPIC_MAX_TOKENS),
            "extra_body": {},
        }
        shape = answer_format(options)
        if shape is not None:
            # The service accepts closed objects only; other shapes are requested in the prompt and checked here.
            form = shape[0] if strict_ready(shape[0]) else self._strict.form(shape[0])
            if "output_config" not in skip and form is not None:
                request["output_config"] = {"format": {"type": "json_schema", "schema": form}}
            else:
                prompt = f"{prompt}\n\n{instructions(options)}"
        prompt, tools = with_tools(prompt, options, skip)
        if tools:
            request["extra_body"]["tools"] = message_tools(tools)
            if "tool_choice" not in skip:
                request["extra_body"]["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
        is_wrapped = shape is not None and shape[1] and "output_config" in request
        request["messages"] = [*earlier_turns(options, is_wrapped=is_wrapped), _last_turn(prompt, options)]
        if system := options.get("system"):
            request["system"] = system
        if options.get("stop"):
            request["stop_sequences"] = list(options["stop"])
        if "temperature" in options and "temperature" not in skip:
            # The SDK no longer has this parameter, because newer models refuse it, but the protocol still has it.
            request["extra_body"]["temperature"] = float(options["temperature"])
        if "top_p" in options:
            request["extra_body"]["top_p"] = float(options["top_p"])
        if self._stream or "on_delta" in options:
            request["stream"] = True
        return request

    def _read_body(self, body: Mapping[str, Any], options: Options) -> Completion:
        found = body.get("content")
        blocks = found if isinstance(found, list) else []
        calls = [(block.get("name"), block.get("input")) for block in blocks if _is_call(block)]
        text, stop = _text_and_stop([_block(block) for block in blocks], calls, body.get("stop_reason"), options)
        return _completion(text, stop, _usage(body.get("usage")), body.get("model"))

    def _streamed(self, options: Options) -> "_Stream":
        return _Stream(options)


def _last_turn(prompt: str, options: Options) -> dict[str, Any]:
    """Return the message with the prompt, and with the images of the request."""
    if not options.get("images"):
        return {"role": "user", "content": prompt}
    blocks = [
        {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": base64_text(image)}}
        for image in options["images"]
    ]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": prompt}]}


def _usage(found: Any, before: Usage | None = None) -> Usage:
    """Return the token counts in ``found``; if the last message of a stream omits a count, the count in ``before`` is used."""
    before = before or Usage()
    cached = count(found, "cache_creation_input_tokens") + count(found, "cache_read_input_tokens")
    prompt = count(found, "input_tokens") + cached
    return Usage(prompt or before.prompt_tokens, count(found, "output_tokens") or before.completion_tokens)


def _completion(text: str, stop: Any, usage: Usage, model: Any) -> Completion:
    """Return the answer if it is complete; raise the matching error otherwise."""
    if stop == "refusal":
        raise Refused("the model declined", usage=usage)
    if stop == "max_tokens":
        raise Truncated("the answer stopped at the token limit", hint="raise max_tokens", text=text, usage=usage)
    if stop == "model_context_window_exceeded":
        raise PromptTooLong("the prompt and the answer do not fit into the model's context", usage=usage)
    if stop is None or stop == "pause_turn":
        raise Truncated("the answer ends without a stop_reason", text=text, usage=usage)
    if not text.strip():
        raise EmptyAnswer("the model's answer is empty", usage=usage)
    if stop not in ("end_turn", "stop_sequence"):
        raise BadAnswer(f"the answer has the unexpected stop_reason {str(stop)[:40]!r}", text=text, usage=usage)
    return Completion(text, "stop", usage, model=model if isinstance(model, str) else "")


def _text_and_stop(parts: list[str], calls: list[tuple[Any, Any]], stop: Any, options: Options) -> tuple[str, Any]:
    """Return the text and stop reason of an answer that may consist of tool calls; unrequested calls are ignored."""
    if not calls or not options.get("tools"):
        return joined(parts), stop
    return called_text(calls), "end_turn" if stop == "tool_use" else stop


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"


def _block(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def _inner(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = event.get(name)
    return found if isinstance(found, dict) else {}


@define
class _Stream:
    options: Options
    parts: list[str] = field(factory=list)
    usage: Usage = field(factory=Usage)
    finish: Any = None
    model: Any = None
    calls: dict[Any, tuple[Any, Any, list[str]]] = field(
        factory=dict
    )  # by block: name, input, parts of the input's JSON

    def take(self, event: Mapping[str, Any]) -> bool:
        match event.get("type"):
            case "message_start":
                message = _inner(event, "message")
                self.model, self.usage = message.get("model"), _usage(message.get("usage"))
            case "content_block_start":
                block = _inner(event, "content_block")
                self.parts.append(_block(block))
                if _is_call(block):
                    self.calls[event.get("index")] = (block.get("name"), block.get("input"), [])
            case "content_block_delta":
                delta = _inner(event, "delta")
                if delta.get("type") == "text_delta" and isinstance(delta.get("text"), str):
                    self.parts.append(delta["text"])
                if event.get("index") in self.calls and isinstance(delta.get("partial_json"), str):
                    self.calls[event.get("index")][2].append(delta["partial_json"])
            case "message_delta":
                self.finish = _inner(event, "delta").get("stop_reason") or self.finish
                self.usage = _usage(event.get("usage"), self.usage)
            case "error":
                raise in_band_error(event.get("error"))
        return event.get("type") == "message_stop"

    def completion(self) -> Completion:
        if self.finish is None:
            raise unfinished(Truncated("the answer ends without a stop_reason"), self.parts, self.usage)
        calls = [(name, joined(written) or given) for name, given, written in self.calls.values()]
        text, stop = _text_and_stop(self.parts, calls, self.finish, self.options)
        return _completion(text, stop, self.usage, self.model)
