"""The adapter for chat completions: OpenAI and every server with the same protocol, through the ``openai`` SDK."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
from attrs import evolve
from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAIError, UnprocessableEntityError

from . import (
    BadAnswer,
    BadRequest,
    Completion,
    EmptyAnswer,
    LLMError,
    ModelNotFound,
    Options,
    Refused,
    Truncated,
    Usage,
)
from .answers import answer_format, instructions, prose_of, strict_ready, unwrap
from .http import Broken, body_object, count, event_object, finish_stream, joined, server_events, unfinished, whole_body
from .json_schema import read_json
from .sdk import DEFAULT_TIMEOUT, SDKModel
from .service_errors import status_error
from .strict_schema import Strictness
from .tools import about_tools, called_text, custom_tool, function_tools, marked, offered, read_grammar

# Parsing of chat completions: a body or a stream, of text or of calls, becomes one complete answer or an error.

_WHOLE = frozenset(("stop", "eos", "eos_token", "end_turn", "stop_sequence"))
_CUT = frozenset(("length", "max_tokens", "model_length", "abort", "cancelled"))
_CALLS = frozenset(("tool_calls", "function_call"))
_FILTERED = frozenset(("content_filter", "safety", "recitation", "refusal"))


def _usage(found: Any) -> Usage:
    return Usage(count(found, "prompt_tokens"), count(found, "completion_tokens"))


def _whole(text: str, finish: Any, refusal: Any, usage: Usage, model: Any) -> Completion:
    """Return the answer if it is complete; raise ``Refused``, ``Truncated``, ``EmptyAnswer`` or ``BadAnswer`` otherwise."""
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
    """Return a message's content: a string, or the text parts of a list."""
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


def _calls(found: Any) -> list[dict[str, Any]]:
    """Return the entries of a message's or a delta's ``tool_calls``."""
    return [call if isinstance(call, dict) else {} for call in found] if isinstance(found, list) else []


def _part(call: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a call's name and arguments, or a custom tool's name and input."""
    custom = call.get("custom")
    inner = custom if isinstance(custom, dict) else call.get("function")
    if not isinstance(inner, dict):
        return "", ""
    return inner.get("name", ""), inner.get("input" if inner is custom else "arguments", "")


def _answered(text: str, calls: list[tuple[Any, Any]], finish: Any, options: Options) -> tuple[str, Any]:
    """Return the text and finish reason of an answer that may consist of calls; unrequested calls are ignored."""
    if not calls or not (options.get("tools") or options.get("grammar")):
        return text, finish
    if finish in _CALLS:
        finish = "stop"
    if options.get("tools"):
        return called_text(calls), finish
    if len(calls) > 1:
        raise BadAnswer(f"the model answered {len(calls)} times at once", text=text)
    return joined([calls[0][1] if isinstance(calls[0][1], str) else ""]), finish


def read_body(content: bytes, options: Options) -> Completion:
    """Return the complete answer in a body; raise the matching ``LLMError``."""
    body = body_object(content)
    usage = _usage(body.get("usage"))
    choice = _first(body)
    if choice is None:
        raise EmptyAnswer("the answer has no choices", usage=usage)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise EmptyAnswer("the choice has no message", usage=usage)
    text = joined([_text(message.get("content"))])
    calls = [_part(call) for call in _calls(message.get("tool_calls"))]
    text, finish = _answered(text, calls, choice.get("finish_reason"), options)
    return _whole(text, finish, message.get("refusal"), usage, body.get("model"))


class _Gathering:
    """Joins tool calls from the parts of a stream."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._arguments: dict[Any, list[str]] = {}
        self._last: Any = None

    def add(self, parts: list[dict[str, Any]]) -> None:
        for part in parts:
            name, arguments = _part(part)
            key = part.get("index")
            if not isinstance(key, int):  # some servers omit indices: a part with a name begins a call
                key = f"call {len(self._names)}" if name or self._last is None else self._last
            self._last = key
            if not self._names.get(key):  # some servers repeat it in every part
                self._names[key] = name if isinstance(name, str) else ""
            if arguments is not None:
                written = arguments if isinstance(arguments, str) else json.dumps(arguments)
                self._arguments.setdefault(key, []).append(written)

    def calls(self) -> list[tuple[Any, Any]]:
        return [(name, joined(self._arguments.get(key, []))) for key, name in self._names.items()]


async def read_stream(response: httpx2.Response, options: Options) -> Completion:
    """Return the complete answer in a stream's events; raise the matching ``LLMError``."""
    parts: list[str] = []
    gathering = _Gathering()
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
                gathering.add(_calls(delta.get("tool_calls")))
                refusal += str(delta.get("refusal") or "")
            finish = choice.get("finish_reason") or finish
    except LLMError as error:
        # If the connection breaks after the finish_reason, only the usage is lost.
        if finish is None or not isinstance(error, Broken):
            raise unfinished(error, parts, usage) from None
    finally:
        await finish_stream(events, response)
    if finish is None and not refusal:
        raise unfinished(Truncated("the answer ends without a finish_reason"), parts, usage)
    text, finish = _answered(joined(parts), gathering.calls(), finish, options)
    return _whole(text, finish, refusal, usage, model)


_OPTIONAL = (
    "response_format", "stream_options", "max_completion_tokens", "max_tokens", "temperature", "seed", "stop",
    "grammar", "structured_outputs", "guided_grammar", "parallel_tool_calls",
)  # fmt: skip
_UNKNOWN = re.compile("unsupported|not supported|unknown|unrecogni|forbidden|not permitted|instead")


class OpenAIModel(SDKModel):
    """A model behind chat completions.

    ``base_url`` None is OpenAI's own address. ``stream=True`` requests a stream and joins it. ``grammar=True``
    sends choices as a GBNF grammar (llama.cpp's server). ``timeout``: seconds for calls without their own timeout.
    ``max_retries``: how often the SDK repeats a failed request. Parameters that a server refuses by name (``response_format``,
    ``tools``, ``seed``, ...) are omitted from then on; the output's shape is then requested in the prompt. The option
    ``grammar`` becomes OpenAI's custom tool, at other addresses vLLM's ``structured_outputs`` (formerly ``guided_grammar``); a
    server that supports neither answers without it. llama.cpp's server gets none: built without llguidance, it would abort.
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
        hide: Sequence[str] = (),
    ) -> None:
        super().__init__(
            model,
            base_url=base_url,
            key=api_key or "",
            timeout=timeout,
            max_retries=max_retries,
            sdk_error=OpenAIError,
            hide=hide,
        )
        # The SDK requires a key; self-hosted servers mostly do not.
        self._sdk = AsyncOpenAI(
            api_key=api_key or "none", base_url=base_url, max_retries=max_retries, http_client=self._http
        )
        self._stream = stream
        self._grammar = grammar
        self._limit = "max_tokens" if base_url else "max_completion_tokens"
        self._carriers: tuple[str, ...] = ("structured_outputs", "guided_grammar") if base_url else ("custom",)
        if grammar:
            self._carriers = ()
        self._refused: set[str] = set()
        self._strict = Strictness(own_address=base_url is None, bounds=True)
        self._in_words = False

    async def aclose(self) -> None:
        """Close all connections; the model can't be used afterwards."""
        await self._sdk.close()

    async def _ask(self, prompt: str, options: Options) -> Completion:
        skip = set(self._refused)
        while True:
            request = self._request(prompt, options, skip)
            try:
                raw = await self._sdk.chat.completions.with_raw_response.create(**request)
            except (BadRequestError, UnprocessableEntityError, NotFoundError) as error:
                name = self._refusal(error, request)
                if name is None:
                    raise
                skip.add(name)
                continue
            break
        response: httpx2.Response = raw.http_response
        if self._stream and "json" not in response.headers.get("content-type", ""):
            answer = await read_stream(response, options)
        else:
            answer = read_body(await whole_body(response), options)
        shape = answer_format(options)
        answer = self._strict.restored(answer, None if shape is None else shape[0])
        return self._unwrapped(marked(answer, options), options)

    def _request(self, prompt: str, options: Options, skip: set[str]) -> dict[str, Any]:
        request: dict[str, Any] = {"model": options.get("model", self.model), "extra_body": {}}
        shape = answer_format(options)
        asked = False
        if shape is not None:
            if self._grammar and "choices" in options and "grammar" not in skip:
                request["extra_body"]["grammar"] = _one_of(options["choices"])
                asked = True
            elif "response_format" not in skip:
                request["extra_body"]["response_format"] = self._response_format(shape[0])
                asked = True
            if not asked:
                prompt = f"{prompt}\n\n{instructions(options)}"
            elif self._in_words and "response_format" in request["extra_body"]:
                prompt = f"{prompt}\n\n{instructions({'schema': shape[0]})}"
        if tools := offered(options):
            if "tools" in skip:
                prompt = f"{prompt}\n\n{instructions(options)}"
            else:
                request["extra_body"]["tools"] = function_tools(tools)
        if options.get("grammar"):
            request["extra_body"] |= self._under_grammar(options["grammar"], skip)
        if "tools" in request["extra_body"] and "parallel_tool_calls" not in skip:
            request["extra_body"]["parallel_tool_calls"] = False
        messages = [{"role": "user", "content": prompt}]
        if system := options.get("system"):
            messages.insert(0, {"role": "system", "content": system})
        # Put directly into the body: as arguments, the SDK would match them against all its message and format types without
        # changing anything in them.
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

    def _response_format(self, schema: dict[str, Any]) -> dict[str, Any]:
        form = self._strict.form(schema)
        strictly = form is not None or strict_ready(schema)
        asked = {"name": "answer", "schema": schema if form is None else form, "strict": strictly}
        return {"type": "json_schema", "json_schema": asked}

    def _under_grammar(self, text: str, skip: set[str]) -> dict[str, Any]:
        """Return the request options for an answer under a grammar, empty if all of them were refused."""
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

    def _refusal(
        self, error: BadRequestError | UnprocessableEntityError | NotFoundError, request: Mapping[str, Any]
    ) -> str | None:
        """Return the optional part of ``request`` that the error names; remember it unless only this schema is at fault."""
        kind = type(status_error(error.response))
        words = error.response.text.lower()
        if kind is ModelNotFound and "support" in words:
            return self._refused_tools(words, request)
        if kind is not BadRequest:
            return None
        for name in _OPTIONAL:
            if name not in request and name not in request["extra_body"]:
                continue
            # `stop`, `seed` and similar words occur in many messages: they count as named only if quoted.
            named = name in words if "_" in name or name == "grammar" else re.search(f"['\"`]{name}\\b", words)
            if str(error.param) != name and not named:
                continue
            if name == _other(self._limit) or (name == self._limit and not _UNKNOWN.search(words)):
                return None  # at most the limit's parameter name changes; it is never omitted
            if name == "response_format" and "schema" in words and self._strict.gives_up(_sent_schema(request)):
                return "strict"
            if not (name == "response_format" and "schema" in words) and not (
                name in self._carriers and _UNKNOWN.search(words) is None
            ):
                self._refused.add(name)
            return name
        return self._refused_tools(words, request)

    def _refused_tools(self, words: str, request: Mapping[str, Any]) -> str | None:
        """Return the part to omit if ``words`` are about tools; it is remembered unless only these tools are at fault."""
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
        return evolve(answer, text=text, raw="" if text is answer.text else prose_of(answer.text))

    def _notice_ignored(self, text: str) -> None:
        """Request the shape in the prompt too from now on, because the server ignores ``response_format``."""
        if not self._in_words and "response_format" not in self._refused:
            try:
                read_json(text)
            except ValueError:
                self._in_words = True


def _sent_schema(request: Mapping[str, Any]) -> Any:
    return request["extra_body"]["response_format"]["json_schema"]["schema"]


def _other(limit: str) -> str:
    return "max_completion_tokens" if limit == "max_tokens" else "max_tokens"


def _one_of(choices: Any) -> str:
    return "root ::= " + " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
