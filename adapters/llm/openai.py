"""The adapter for chat completions: OpenAI and every server with the same protocol.

Plain calls are made by the direct client (``direct``), all other calls through the ``openai`` SDK, which is imported when it is needed.
"""

import json
import os
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from attrs import define, field

from ..addresses import service_address
from . import (
    BadAnswer,
    BadRequest,
    Completion,
    EmptyAnswer,
    ModelNotFound,
    Options,
    Refused,
    Truncated,
    Usage,
)
from .answers import answer_format, instructions, joined, strict_ready
from .batches import CHAT_ENDPOINT
from .conversation import earlier_turns
from .direct import DirectClient, RefusedRequest
from .http import body_object, count, unfinished
from .images import data_url
from .json_schema import read_json
from .middleware import with_floats
from .proxies import proxy_of
from .sdk import SDKModel, with_tools
from .service_errors import status_error
from .strict_schema import Strictness
from .tools import about_tools, called_text, custom_tool, function_tools, read_grammar

# Parsing of chat completions: converts a body or a stream, with text or tool calls, to one complete answer or an error.

_WHOLE = frozenset(("stop", "eos", "eos_token", "end_turn", "stop_sequence"))
_CUT = frozenset(("length", "max_tokens", "model_length", "abort", "cancelled"))
_CALLS = frozenset(("tool_calls", "function_call"))
_NO_TEXT = frozenset(("thinking", "reasoning", "redacted_thinking", "tool_use"))
_FILTERED = frozenset(("content_filter", "safety", "recitation", "refusal"))


def _usage(found: Any) -> Usage:
    return Usage(count(found, "prompt_tokens"), count(found, "completion_tokens"))


def _completion(text: str, finish: Any, refusal: Any, usage: Usage, model: Any) -> Completion:
    """Return the answer if it is complete; raise ``Refused``, ``Truncated``, ``EmptyAnswer`` or ``BadAnswer`` otherwise."""
    finish = finish.lower() or None if isinstance(finish, str) else finish
    if refusal or finish in _FILTERED:
        raise Refused(f"the model declined{': ' + str(refusal)[:200] if refusal else ''}", usage=usage)
    if finish in _CUT:
        raise Truncated("the answer stopped at the token limit", hint="raise max_tokens", text=text, usage=usage)
    if finish is None:
        raise Truncated("the answer ends without a finish_reason", text=text, usage=usage)
    if finish not in _WHOLE and not text.strip():
        raise EmptyAnswer(f"the answer has no text and the finish_reason {str(finish)[:40]!r}", usage=usage)
    if finish not in _WHOLE:
        raise BadAnswer(f"the answer has the unexpected finish_reason {str(finish)[:40]!r}", text=text, usage=usage)
    if not text.strip():
        raise EmptyAnswer("the model's answer is empty", usage=usage)
    return Completion(text, "stop", usage, model=model if isinstance(model, str) else "")


def _text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list with text parts. Parts with thoughts are no text."""
    if isinstance(content, list):
        return "".join(_text(_part_text(part)) for part in content)
    if isinstance(content, str | None):
        return content or ""
    written = json.dumps(content, ensure_ascii=True)
    raise BadAnswer(f"the content of the answer is not text: {written[:200]}", text=written)


def _part_text(part: Any) -> Any:
    """Return the text of a part of a message's content; None if it is of a kind that is not the answer."""
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if kind in ("text", "output_text"):
        return part.get("text")
    return None if kind in _NO_TEXT else part


def _first(body: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = body.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _calls(found: Any) -> list[dict[str, Any]]:
    """Return the entries of a message's or a delta's ``tool_calls``."""
    return [call if isinstance(call, dict) else {} for call in found] if isinstance(found, list) else []


def _part(call: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the name and the arguments of a call; for a call of a custom tool, the name and the input."""
    custom = call.get("custom")
    inner = custom if isinstance(custom, dict) else call.get("function")
    if not isinstance(inner, dict):
        return "", ""
    return inner.get("name", ""), inner.get("input" if inner is custom else "arguments", "")


def _text_and_finish(text: str, calls: list[tuple[Any, Any]], finish: Any, options: Options) -> tuple[str, Any]:
    """Return the text and finish reason of an answer that may consist of tool calls; unrequested calls are ignored."""
    if not calls or not (options.get("tools") or options.get("grammar")):
        return text, finish
    if finish in _CALLS:
        finish = "stop"
    if options.get("tools"):
        return called_text(calls), finish
    if len(calls) > 1:
        raise BadAnswer(f"the model returned {len(calls)} answers instead of one", text=text)
    return joined([calls[0][1] if isinstance(calls[0][1], str) else ""]), finish


class _ToolCalls:
    """Joins tool calls from the parts of a stream."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._arguments: dict[Any, list[str]] = {}
        self._last: Any = None

    def add(self, parts: list[dict[str, Any]]) -> None:
        for part in parts:
            name, arguments = _part(part)
            key = part.get("index")
            if not isinstance(key, int):  # some servers omit indices; then a part with a name begins a call
                key = f"call {len(self._names)}" if name or self._last is None else self._last
            self._last = key
            if not self._names.get(key):  # some servers repeat the name in every part
                self._names[key] = name if isinstance(name, str) else ""
            if arguments is not None:
                written = arguments if isinstance(arguments, str) else json.dumps(arguments)
                self._arguments.setdefault(key, []).append(written)

    def calls(self) -> list[tuple[Any, Any]]:
        return [(name, joined(self._arguments.get(key, []))) for key, name in self._names.items()]


@define
class _Stream:
    options: Options
    parts: list[str] = field(factory=list)
    usage: Usage = field(factory=Usage)
    finish: Any = None
    model: Any = None
    refusal: str = ""
    gathering: _ToolCalls = field(factory=_ToolCalls)

    def take(self, event: Mapping[str, Any]) -> bool:
        self.model = event.get("model") or self.model
        if event.get("usage"):
            self.usage = _usage(event["usage"])
        choice = _first(event)
        if choice is not None and choice.get("index", 0) == 0:
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self.parts.append(_text(delta.get("content")))
                self.gathering.add(_calls(delta.get("tool_calls")))
                self.refusal += str(delta.get("refusal") or "")
            self.finish = choice.get("finish_reason") or self.finish
        return False

    def completion(self) -> Completion:
        if self.finish is None and not self.refusal:
            raise unfinished(Truncated("the answer ends without a finish_reason"), self.parts, self.usage)
        text, finish = _text_and_finish(joined(self.parts), self.gathering.calls(), self.finish, self.options)
        return _completion(text, finish, self.refusal, self.usage, self.model)


_OPTIONAL = (
    "response_format", "stream_options", "max_completion_tokens", "max_tokens", "temperature",
    "grammar", "structured_outputs", "guided_grammar", "parallel_tool_calls",
)  # fmt: skip
_UNKNOWN = re.compile("unsupported|not supported|unknown|unrecogni|forbidden|not permitted|instead")


_OWN_HEADERS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_NO_KEY = "none"


class OpenAIModel(SDKModel):
    """A model behind a chat completions API; see ``SDKModel``.

    ``direct=False`` sends every call through the SDK. Otherwise the direct client makes the calls that are neither streamed nor have tools.
    The SDK also makes all calls if they go through a proxy, or if the environment sets headers for OpenAI (``OPENAI_CUSTOM_HEADERS``).

    ``grammar=True`` sends choices as a GBNF grammar (llama.cpp's server). The option ``grammar`` is sent to OpenAI as a custom
    tool, and to other addresses as vLLM's ``structured_outputs`` (formerly ``guided_grammar``); servers that don't support it
    answer without a grammar. The option is never sent to llama.cpp's server, because builds without llguidance would abort.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        grammar: bool = False,
        direct: bool = True,
        max_retries: int = 2,
        **rest: Any,
    ) -> None:
        super().__init__(model, base_url=base_url, api_key=api_key, max_retries=max_retries, **rest)
        self._sdk: Any = None
        self._direct = self._direct_client() if direct and not self._stream else None
        self._grammar = grammar
        self._limit = "max_tokens" if base_url else "max_completion_tokens"
        self._carriers: tuple[str, ...] = ("structured_outputs", "guided_grammar") if base_url else ("custom",)
        if grammar:
            self._carriers = ()
        self._strict = Strictness(own_address=base_url is None, bounds=True)
        self._in_words = False
        if proxy_of(self.address):
            self._load_sdk()  # tells now if the proxy can't be used

    @property
    def address(self) -> str:
        """The address of the service."""
        return service_address(self._address, "OPENAI_BASE_URL")

    def _direct_client(self) -> DirectClient | None:
        """Return the direct client; None if only the SDK can make calls with the settings in the environment."""
        own = self._address is None
        base = self.address
        if proxy_of(base) or not base.startswith(("http://", "https://")) or "?" in base or "#" in base:
            return None
        headers = {
            "Authorization": f"Bearer {self._keys[0] or _NO_KEY}",
            "User-Agent": f"knotwork/{version('knotwork')}",
        }
        if own:
            if os.environ.get("OPENAI_CUSTOM_HEADERS"):
                return None
            for header, name in _OWN_HEADERS.items():
                if value := os.environ.get(name):
                    headers[header] = value
        return DirectClient(
            f"{base.rstrip('/')}/chat/completions", headers, key=self._keys[0], max_retries=self._max_retries
        )

    def _sdk_errors(self) -> tuple[type[Exception], ...]:
        if self._sdk is None:
            return ()
        from openai import OpenAIError

        return (OpenAIError,)

    def _refusals(self) -> tuple[type[Exception], ...]:
        if self._sdk is None:
            return (RefusedRequest,)
        from openai import BadRequestError, NotFoundError, UnprocessableEntityError

        return RefusedRequest, BadRequestError, UnprocessableEntityError, NotFoundError

    async def _send(self, request: dict[str, Any], options: Options) -> Completion:
        extra = request["extra_body"]
        if self._direct is None or "tools" in extra or "stream" in request:
            return await super()._send(request, options)
        return self._read_body(body_object(await self._direct.post(_body(request))), options)

    def batch_line(self, key: str, prompt: str, options: Options) -> dict[str, Any]:
        """Return the line of a batch's file for a call; the service returns ``key`` with the answer."""
        body = _body(self._request(prompt, options, set(self._refused)))
        return {"custom_id": key, "method": "POST", "url": CHAT_ENDPOINT, "body": body}

    def batch_usage(self, body: Mapping[str, Any]) -> Usage:
        """Return the tokens that a response of a batch reports."""
        return _usage(body.get("usage"))

    def _prepare(self, options: Options) -> None:
        if (
            self._direct is None
            or options.get("tools")
            or "on_delta" in options
            or (options.get("grammar") and "custom" in self._carriers)
        ):
            self._load_sdk()

    def _load_sdk(self) -> Any:
        if self._sdk is None:
            from openai import AsyncOpenAI

            # The SDK requires a key; self-hosted servers mostly do not.
            self._sdk = AsyncOpenAI(
                api_key=self._keys[0] or _NO_KEY, base_url=self._address, max_retries=self._max_retries,
                http_client=self._bounded_client(),
            )  # fmt: skip
        return self._sdk

    async def _create(self, request: dict[str, Any]) -> Any:
        return await self._load_sdk().chat.completions.with_raw_response.create(**request)

    async def aclose(self) -> None:
        """Close all connections; the model can't be used afterwards."""
        if self._direct is not None:
            await self._direct.aclose()
        if self._sdk is not None:
            await self._sdk.close()

    def _read_body(self, body: Mapping[str, Any], options: Options) -> Completion:
        usage = _usage(body.get("usage"))
        choice = _first(body)
        if choice is None:
            raise EmptyAnswer(f"the answer has no choices: {json.dumps(body)[:200]}", usage=usage)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise EmptyAnswer("the choice has no message", usage=usage)
        text = joined([_text(message.get("content"))])
        calls = [_part(call) for call in _calls(message.get("tool_calls"))]
        text, finish = _text_and_finish(text, calls, choice.get("finish_reason"), options)
        try:
            return _completion(text, finish, message.get("refusal"), usage, body.get("model"))
        except EmptyAnswer as error:
            thoughts = message.get("reasoning_content") or message.get("reasoning")
            if isinstance(thoughts, str) and thoughts.strip() and not text.strip():
                reason = "the answer has only thoughts, in a field of their own"
                raise EmptyAnswer(reason, hint="raise max_tokens", text=joined([thoughts]), usage=error.usage) from None
            raise

    def _streamed(self, options: Options) -> _Stream:
        return _Stream(options)

    def _request(self, prompt: str, options: Options, skip: set[str]) -> dict[str, Any]:
        request: dict[str, Any] = {"model": options.get("model", self.model), "extra_body": {}}
        shape = answer_format(options)
        if shape is not None:
            if self._grammar and "choices" in options and "grammar" not in skip:
                choices = (json.dumps(choice, ensure_ascii=False) for choice in options["choices"])
                request["extra_body"]["grammar"] = "root ::= " + " | ".join(choices)
            elif "response_format" in skip:
                prompt = f"{prompt}\n\n{instructions(options)}"
            else:
                request["extra_body"]["response_format"] = self._response_format(shape[0])
                if self._in_words:
                    prompt = f"{prompt}\n\n{instructions({'schema': shape[0]})}"
        prompt, tools = with_tools(prompt, options, skip)
        if tools:
            request["extra_body"]["tools"] = function_tools(tools)
        if options.get("grammar"):
            request["extra_body"] |= self._under_grammar(options["grammar"], skip)
        if "tools" in request["extra_body"] and "parallel_tool_calls" not in skip:
            request["extra_body"]["parallel_tool_calls"] = False
        is_wrapped = shape is not None and shape[1] and "response_format" in request["extra_body"]
        messages: list[dict[str, Any]] = [*earlier_turns(options, is_wrapped=is_wrapped), _last_turn(prompt, options)]
        if system := options.get("system"):
            messages.insert(0, {"role": "system", "content": system})
        # Messages and formats are put directly into the body. If they were passed as arguments, the SDK would compare them with
        # all its types, which costs time and changes nothing.
        request["messages"] = []
        request["extra_body"]["messages"] = messages
        if (limit := options.get("max_tokens")) is not None:
            request[_other(self._limit) if self._limit in skip else self._limit] = limit
        sent = with_floats({name: options[name] for name in ("temperature", "seed", "top_p") if name in options})
        request |= {name: value for name, value in sent.items() if name not in skip}
        if options.get("stop") and "stop" not in skip:
            request["stop"] = list(options["stop"])
        # If only a listener wants a stream, and the server can't report the usage of streams, the answer is not streamed.
        if self._stream or ("on_delta" in options and "stream_options" not in skip):
            request["stream"] = True
            if "stream_options" not in skip:
                request["stream_options"] = {"include_usage": True}
        return request

    def _response_format(self, schema: dict[str, Any]) -> dict[str, Any]:
        form = self._strict.form(schema)
        strictly = form is not None or strict_ready(schema)
        asked = {"name": "answer", "schema": schema if form is None else form, "strict": strictly}
        return {"type": "json_schema", "json_schema": asked}

    def _under_grammar(self, text: str, skip: set[str]) -> dict[str, Any]:
        """Return the request options that constrain the answer to a grammar; empty if the server refused all such options."""
        grammar = read_grammar(text)
        match next((name for name in self._carriers if name not in skip), None):
            case "custom":
                chosen = {"type": "custom", "custom": {"name": grammar.name}}
                return {"tools": [custom_tool(grammar)], "tool_choice": chosen}
            case "structured_outputs":
                return {"structured_outputs": {"grammar": grammar.definition}}
            case "guided_grammar":
                return {"guided_grammar": grammar.definition}
        return {}

    def _refusal(self, error: Any, request: Mapping[str, Any]) -> str | None:
        kind = type(status_error(error.response))
        words = error.response.text.lower()
        if kind is ModelNotFound and "support" in words:
            return self._refused_tools(words, request)
        if kind is not BadRequest:
            return None
        for name in _OPTIONAL:
            if name not in request and name not in request["extra_body"]:
                continue
            # `temperature` and similar words occur in many messages, so they count as a parameter's name only in quotes.
            named = name in words if "_" in name or name == "grammar" else re.search(f"['\"`]{name}\\b", words)
            if str(error.param) != name and not named:
                continue
            if name == _other(self._limit) or (name == self._limit and not _UNKNOWN.search(words)):
                return None  # the token limit may be sent under its other name, but is never omitted
            if name == "response_format" and "schema" in words:
                sent = request["extra_body"]["response_format"]["json_schema"]["schema"]
                return "strict" if self._strict.gives_up(sent) else name
            if name not in self._carriers or _UNKNOWN.search(words) is not None:
                self._refused.add(name)
            return name
        return self._refused_tools(words, request)

    def _refused_tools(self, words: str, request: Mapping[str, Any]) -> str | None:
        """Return the part of the request to omit, if the error message ``words`` concerns tools; None otherwise.

        If tools are not supported, later requests omit them too.
        """
        sent = request["extra_body"]
        if "grammar" in words and (carrier := next((name for name in self._carriers if name in sent), None)):
            return carrier  # the server can't parse this grammar
        name = "custom" if "tool_choice" in sent else "tools"
        at_fault = re.search("grammar|lark" if name == "custom" else "schema", words)
        if "tools" not in sent or not (about_tools(words) or (name == "custom" and at_fault)):
            return None
        if not at_fault:
            self._refused.add(name)
        return name

    def _unwrapped(self, answer: Completion, shape: tuple[dict[str, Any], bool] | None, options: Options) -> Completion:
        made = super()._unwrapped(answer, shape, options)
        if shape is not None and made.text is answer.text and made.text not in options.get("choices", ()):
            self._notice_ignored(made.text)
        return made

    def _notice_ignored(self, text: str) -> None:
        """If ``text`` shows that the server ignores ``response_format``, request the answer's shape in the prompt too from now on."""
        if not self._in_words and "response_format" not in self._refused:
            try:
                read_json(text)
            except ValueError:
                self._in_words = True


def _last_turn(prompt: str, options: Options) -> dict[str, Any]:
    """Return the message with the prompt, and with the images of the request."""
    if not options.get("images"):
        return {"role": "user", "content": prompt}
    parts = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in options["images"]]
    return {"role": "user", "content": [*parts, {"type": "text", "text": prompt}]}


def _body(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body that the SDK makes of the arguments ``request``."""
    body = {**request, **request["extra_body"]}
    del body["extra_body"]
    return body


def _other(limit: str) -> str:
    return "max_completion_tokens" if limit == "max_tokens" else "max_tokens"
