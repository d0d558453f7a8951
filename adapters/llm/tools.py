"""Tool calls and answers under a grammar: converts tools and grammars to each service's format, and parses answers.

A call is stored as text, ``{"tool": NAME, "arguments": {...}}``; after a check its finish reason is ``CALLED``. If a model does
not support tools, the prompt requests a call as this text, so the caller sees no difference. If an answer looks like a call but
is invalid (cut off, unknown tool, several calls), ``Validated`` reports a fault; it never treats such an answer as plain text.
Grammars have the form that ``lang.constrain`` writes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from . import CALLED, BadAnswer, BadRequest, Completion, Options, Tool, ToolCall
from .answers import strict_ready, unfenced
from .json_schema import canonical, first_fault, read_json, validator

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALL_LIKE = re.compile(r'(?:```\w*\s*)?\[?\s*\{\s*"(?:(?:tool|arguments)"\s*:|name"\s*:[^:]*"arguments")')
_KEYS = (frozenset(("tool", "arguments")), frozenset(("name", "arguments")))
_ABOUT_TOOLS = re.compile(r"\b(tools?|tool_choice|tool_calls?|function.?call(s|ing)?|custom)\b")
_MOST_TOOLS = 64
_LONGEST_GRAMMAR = 200_000
"""Maximum number of characters of a grammar. The longest grammar that knotwork generates has 13,000 characters."""


def check_tools(tools: Sequence[Tool]) -> None:
    """Raise ``BadRequest`` unless all tools are valid: their names are valid and unique, their schemas describe objects."""
    if not tools:
        raise BadRequest("tools is empty")
    if len(tools) > _MOST_TOOLS:
        raise BadRequest(f"{len(tools)} tools are too many; the maximum is {_MOST_TOOLS}")
    seen: set[str] = set()
    for tool in tools:
        if not isinstance(tool, Mapping) or set(tool) != {"name", "description", "parameters"}:
            raise BadRequest("a tool must have exactly name, description and parameters")
        name = tool["name"]
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadRequest(
                f"{str(name)[:80]!r} is not a valid tool name", hint="use letters, digits, _ and -; at most 64"
            )
        if name in seen:
            raise BadRequest(f"two tools are named {name!r}")
        seen.add(name)
        parameters = tool["parameters"]
        if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
            raise BadRequest(f"the parameters of {name!r} are not a JSON Schema of type object")
        validator(parameters)


def offered(options: Options) -> Sequence[Tool]:
    """Return the checked tools of a request; empty if the request has no tools."""
    tools = options.get("tools", ())
    if tools:
        check_tools(tools)
    return tools


def called_text(calls: Sequence[tuple[Any, Any]]) -> str:
    """Return the tool calls in a server's answer as one string.

    A call is a name and its arguments, which are an object or an object's JSON text. Raises ``BadAnswer`` if a call can't be
    written as text.
    """
    written = [{"tool": name, "arguments": arguments} for name, arguments in calls]
    text = json.dumps(written[0] if len(written) == 1 else written, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadAnswer("the call contains a lone surrogate, which is not valid text") from None
    return text


def judge_call(text: str, tools: Sequence[Tool]) -> tuple[ToolCall | None, str]:
    """Return the call in ``text`` and "". For an invalid call, return None and the fault; for a plain-text answer, return None and ""."""
    bare = unfenced(text).strip()
    try:
        value = read_json(bare)
    except ValueError as error:
        return None, f"the call is not valid JSON: {error}" if _CALL_LIKE.match(bare) else ""
    calls = value if isinstance(value, list) else [value]
    if not any(isinstance(call, dict) and ("tool" in call or set(call) in _KEYS) for call in calls):
        return None, ""
    if len(calls) > 1:
        return None, f"it makes {len(calls)} calls; only one is allowed"
    return _validated_call(calls[0], tools)


def _validated_call(call: Mapping[str, Any], tools: Sequence[Tool]) -> tuple[ToolCall | None, str]:
    named = "tool" if "tool" in call else "name"
    if odd := sorted(set(call) - {named, "arguments"}):
        return None, f"a call must have only {named} and arguments ({odd[0][:60]!r} was unexpected)"
    name = call[named]
    if not isinstance(name, str) or not name.strip():
        return None, "the call has no tool name"
    known = {tool["name"]: tool for tool in tools}
    if name not in known:
        from rapidfuzz import fuzz, process  # imported here, because it is rarely needed

        near = process.extractOne(name[:80], list(known), scorer=fuzz.ratio)
        return None, f"unknown tool {name[:80]!r}; the nearest is {near[0]!r}"
    arguments, why = _arguments(call.get("arguments"))
    if not why:
        why = first_fault(validator(known[name]["parameters"]), arguments)
        why = f"the arguments of {name!r} are invalid {why}" if why else ""
    return (None, why) if why else (ToolCall(name, arguments), "")


def _arguments(value: Any) -> tuple[dict[str, Any], str]:
    """Return a call's arguments and ""; or {} and the fault. The arguments may also be a string of JSON, even a nested one."""
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = read_json(value) if value.strip() else {}
        except ValueError as error:
            return {}, f"the arguments are not valid JSON: {error}"
    if value is None:
        return {}, ""
    return (value, "") if isinstance(value, dict) else ({}, "the arguments are not a JSON object")


def marked(answer: Completion, options: Options) -> Completion:
    """Return ``answer``, marked as a call if it is a valid call of a tool in ``options``, else marked as plain text."""
    call = judge_call(answer.text, options["tools"])[0] if options.get("tools") else None
    if call is not None:
        return evolve(answer, text=called_text([(call.name, call.arguments)]), finish_reason=CALLED)
    return evolve(answer, finish_reason="stop") if answer.finish_reason == CALLED else answer


def about_tools(words: str) -> bool:
    """Return whether a server's refusal concerns the tools; ``words`` is the server's message in lower case."""
    return _ABOUT_TOOLS.search(words) is not None


def function_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return tools in the format of chat completions."""
    made = []
    for tool in tools:
        parameters = _object(tool)
        function = {"name": tool["name"], "description": tool["description"], "parameters": parameters}
        made.append({"type": "function", "function": function | ({"strict": True} if strict_ready(parameters) else {})})
    return made


def message_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return tools in the format of Anthropic's messages."""
    return [{"name": tool["name"], "description": tool["description"], "input_schema": _object(tool)} for tool in tools]


def _object(tool: Tool) -> dict[str, Any]:
    parameters: dict[str, Any] = json.loads(canonical(tool["parameters"]))
    return parameters


def call_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON Schema of a call, for models with enforced schemas. Tools whose schemas have references accept any arguments."""
    calls = []
    for tool in tools:
        parameters = _object(tool)
        free = b'"$ref"' in canonical(parameters)
        shape = {"tool": {"const": tool["name"]}, "arguments": {"type": "object"} if free else parameters}
        calls.append({"type": "object", "properties": shape, "required": list(shape), "additionalProperties": False})
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


@frozen
class Grammar:
    """A Lark grammar and the name of its custom tool."""

    definition: str
    name: str = "answer"
    description: str = "Write the answer."


_LLGUIDANCE = "%llguidance"


def read_grammar(text: str) -> Grammar:
    """Parse a grammar from ``lang.constrain``: Lark text, or a custom tool's JSON. Raises ``BadRequest`` otherwise."""
    if not isinstance(text, str) or not text.strip():
        raise BadRequest("the grammar must be a non-empty string")
    if len(text) > _LONGEST_GRAMMAR:
        raise BadRequest(f"the grammar has {len(text):,} characters; the maximum is {_LONGEST_GRAMMAR:,}")
    if not text.lstrip().startswith("{"):
        return Grammar(text.split("\n", 1)[1] if text.startswith(_LLGUIDANCE) and "\n" in text else text)
    try:
        tool = read_json(text)
        form = tool["format"]
        parts = [form["definition"], tool["name"], tool.get("description", "")]
        fits = tool["type"] == "custom" and (form["type"], form["syntax"]) == ("grammar", "lark")
    except (ValueError, KeyError, TypeError, AttributeError):
        fits, parts = False, []
    if not fits or not all(isinstance(part, str) for part in parts) or not _NAME.fullmatch(parts[1]):
        raise BadRequest(
            "the grammar is not a custom tool with a lark grammar", hint="see: knotwork grammar --for openai"
        )
    return Grammar(*parts)


def custom_tool(grammar: Grammar) -> dict[str, Any]:
    """Return the grammar as the custom tool of OpenAI's chat completions."""
    form = {"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar.definition}}
    return {
        "type": "custom",
        "custom": {"name": grammar.name, "description": grammar.description, "format": form},
    }


def llguidance_text(grammar: Grammar) -> str:
    """Return the grammar in the form that llama.cpp accepts if it is built with llguidance."""
    return f"{_LLGUIDANCE} {{}}\n{grammar.definition}"
