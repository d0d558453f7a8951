"""The reading of what chat completions answer: a body or a stream, of text or of calls, made one whole answer or an error."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2

from .llm import BadAnswer, Completion, EmptyAnswer, LLMError, Options, Refused, Truncated, Usage
from .llm_http import Broken, body_object, count, event_object, finish_stream, joined, server_events, unfinished
from .llm_tools import called_text

__all__ = ["read_body", "read_stream"]

_WHOLE = frozenset(("stop", "eos", "eos_token", "end_turn", "stop_sequence"))
_CUT = frozenset(("length", "max_tokens", "model_length", "abort", "cancelled"))
_CALLS = frozenset(("tool_calls", "function_call"))
_FILTERED = frozenset(("content_filter", "safety", "recitation", "refusal"))


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
    """Return an answer's text and finish reason where it may consist of calls; calls that nobody asked for are nothing."""
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
    """Return the whole answer that a body is; raise an ``LLMError`` of its kind."""
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
    """Calls put together from the parts of a stream."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._arguments: dict[Any, list[str]] = {}
        self._last: Any = None

    def add(self, parts: list[dict[str, Any]]) -> None:
        for part in parts:
            name, arguments = _part(part)
            key = part.get("index")
            if not isinstance(key, int):  # some servers number none: a part with a name begins a call
                key = f"call {len(self._names)}" if name or self._last is None else self._last
            self._last = key
            if not self._names.get(key):  # some servers say it in every part
                self._names[key] = name if isinstance(name, str) else ""
            if arguments is not None:
                written = arguments if isinstance(arguments, str) else json.dumps(arguments)
                self._arguments.setdefault(key, []).append(written)

    def calls(self) -> list[tuple[Any, Any]]:
        return [(name, joined(self._arguments.get(key, []))) for key, name in self._names.items()]


async def read_stream(response: httpx2.Response, options: Options) -> Completion:
    """Return the whole answer that a stream's events make; raise an ``LLMError`` of its kind."""
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
        # A connection that breaks after the finish_reason has cut off nothing but the usage.
        if finish is None or not isinstance(error, Broken):
            raise unfinished(error, parts, usage) from None
    finally:
        await finish_stream(events, response)
    if finish is None and not refusal:
        raise unfinished(Truncated("the answer ends without a finish_reason"), parts, usage)
    text, finish = _answered(joined(parts), gathering.calls(), finish, options)
    return _whole(text, finish, refusal, usage, model)
