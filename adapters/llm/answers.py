"""Answer shapes: removes thoughts, reads JSON or a choice from a model's text, and writes prompts that request a shape or a repair."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from attrs import evolve

from ...lang.answers import CutOff, ObjectRead, read_object
from ...lang.coercion import Fit, as_type
from ...lang.literals import WrittenFloat, WrittenInt, is_json, plain_numbers, written_json
from ...lang.thoughts import answer_after_thoughts
from . import BadAnswer, Completion, EmptyAnswer, Truncated
from .json_schema import canonical, first_fault, plain, read_json, validator

_FENCE_HEAD = re.compile(r"```[A-Za-z]*[ \t]*")
_SHOWN = 4000
_STRICT = frozenset(
    (
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "description",
        "title",
        "anyOf",
        "$defs",
        "$ref",
    )
)


def without_thoughts(answer: Completion) -> Completion:
    """Return ``answer`` without the model's thoughts; ``raw`` keeps the original text.

    Raises ``BadAnswer`` for a lone surrogate, ``Truncated`` if the answer ends inside the thoughts, and ``EmptyAnswer`` if it
    contains nothing else. This is the one place where thoughts are removed from a model's answer: every client passes its answers
    through it.
    """
    if not (answer.text.isascii() and answer.raw.isascii()):
        answer = _with_whole_characters(answer)
    text = answer_after_thoughts(answer.text)
    if text is answer.text:
        return answer
    if isinstance(text, CutOff):
        raise Truncated(
            f"the answer is cut off: {text.reason}", hint="raise max_tokens", text=answer.text, usage=answer.usage,
            attempts=answer.attempts,
        )  # fmt: skip
    if not text.strip():
        raise EmptyAnswer(
            "the answer has thoughts and nothing else", text=answer.text, usage=answer.usage, attempts=answer.attempts
        )
    return evolve(answer, text=text, raw=answer.raw or answer.text)


def _with_whole_characters(answer: Completion) -> Completion:
    try:
        text, raw = joined([answer.text]), joined([answer.raw])
    except BadAnswer as error:
        error.text = answer.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        error.usage, error.attempts, error.cost = answer.usage, answer.attempts, answer.cost
        raise
    return answer if (text, raw) == (answer.text, answer.raw) else evolve(answer, text=text, raw=raw)


def joined(parts: list[str]) -> str:
    """Return the parts as one string, in which split surrogate pairs are joined. Raise ``BadAnswer`` for a lone surrogate."""
    text = "".join(parts)
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise BadAnswer("the answer contains a lone surrogate, which is not valid text") from None


def check_answer(text: str, schema: Mapping[str, Any], *, strict: bool = False) -> tuple[str, str]:
    """Return ``(json, "")`` if ``text``, or the only object in ``text``, satisfies ``schema``; else ``("", reason)``.

    With ``strict``, the entire text must be JSON.
    """
    if not strict and not is_json(text := unfenced(text).strip()):
        text, why = _embedded_json(text, schema)
        if why:
            return "", why
    if not text.strip():
        return "", "the model's answer is empty"
    try:
        value = read_json(text)
    except ValueError as error:
        return "", f"it is not valid JSON: {error}"
    why = first_fault(validator(schema), value)
    if (
        why and not strict and isinstance(value, dict)
    ):  # keys may differ in letter case, and a text may stand as a number
        found = read_object(text, _keys_of(schema) or (), written=True)
        if isinstance(found, ObjectRead):
            made = with_number_texts(found.value, schema)
            if not first_fault(validator(schema), plain_numbers(made)):
                return _dumped(made), ""
    return ("", why) if why else (text, "")


def with_number_texts(value: Any, schema: Any) -> Any:
    """Return a value in which a number has the text from which it was read, wherever ``schema`` allows a text and no number."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, WrittenInt | WrittenFloat):
        kinds = schema.get("type")
        kinds = {kinds} if isinstance(kinds, str) else set(kinds or ())
        return value.written if "string" in kinds and not kinds & {"number", "integer"} else value
    if isinstance(value, dict):
        inner = schema.get("properties") or {}
        return {key: with_number_texts(each, inner.get(key)) for key, each in value.items()}
    return [with_number_texts(each, schema.get("items")) for each in value] if isinstance(value, list) else value


def _dumped(value: Any) -> str:
    """Return a value as JSON, with its numbers as they were written if JSON allows that."""
    text = written_json(value)
    return text if is_json(text) else json.dumps(plain_numbers(value), ensure_ascii=False)


def _embedded_json(text: str, schema: Mapping[str, Any]) -> tuple[str, str]:
    """Return the JSON in ``text`` and "", or "" and the reason why it has none. A text without a brace stays unchanged."""
    wanted = _keys_of(schema)
    if wanted is None:
        return text, ""
    found = read_object(text, wanted, written=True)
    if isinstance(found, ObjectRead):
        return _dumped(found.value), ""
    if "{" not in text:
        return text, ""  # the JSON error is more informative
    return "", f"it can't be used: {found.reason}"


def _keys_of(schema: Mapping[str, Any]) -> list[str] | None:
    """Return the keys of all objects that ``schema`` and its alternatives describe; None if they describe no objects."""
    forms = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    objects = [
        form for form in forms if isinstance(form, Mapping) and ("properties" in form or form.get("type") == "object")
    ]
    if not objects and "$ref" not in schema:
        return None
    return list(dict.fromkeys(key for form in objects for key in form.get("properties", ())))


def check_choice(text: str, choices: Sequence[str], *, strict: bool = False) -> tuple[str, str]:
    """Return the choice in ``text`` and "", or "" and the reason why no choice was recognised. The rules are in ``lang.coercion``."""
    found = as_type(text, list(choices), strict=strict)
    return (str(found.value), "") if isinstance(found, Fit) else ("", found.reason)


def unfenced(text: str) -> str:
    """Return the content of ``text`` if it is one code fence, else ``text``.

    No regular expression is used, because it would take quadratic time.
    """
    bare = text.strip()
    head, newline, _ = bare[:100].partition("\n")
    if not newline or len(bare) < len(head) + 4 or not bare.endswith("```") or not _FENCE_HEAD.fullmatch(head):
        return text
    return bare[len(head) + 1 : -3].rstrip(" \t").removesuffix("\n")


def answer_format(options: Mapping[str, Any]) -> tuple[dict[str, Any], bool] | None:
    """Return the JSON Schema to send to a server, and whether it wraps the answer in ``{"answer": ...}``.

    None if neither ``schema`` nor ``choices`` is given. Servers require an object at the top level, so choices and schemas of
    other types are wrapped.
    """
    if (choices := options.get("choices")) is not None:
        return _wrap({"type": "string", "enum": list(choices)}), True
    if (schema := options.get("schema")) is None:
        return None
    # Keep the order of the keys: services write keys in the order of the schema, and a reason must come before its verdict.
    copy: dict[str, Any] = orjson.loads(orjson.dumps(schema, default=plain))
    if copy.get("type") == "object" or "$ref" in copy:
        return copy, False
    definitions: dict[str, Any] = {name: copy.pop(name) for name in ("$defs", "definitions") if name in copy}
    return {**_wrap(copy), **definitions}, True


def _wrap(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"answer": inner}, "required": ["answer"], "additionalProperties": False}


def unwrap(text: str, *, as_json: bool) -> str:
    """Return the value in ``{"answer": value}`` as JSON or as a plain string; return any other text unchanged."""
    try:
        value = read_json(unfenced(text))
    except ValueError:
        found = read_object(text, ("answer",))
        if not isinstance(found, ObjectRead) or set(found.value) != {"answer"}:
            return text
        value = found.value
    inner = value["answer"] if isinstance(value, dict) and set(value) == {"answer"} else value
    if as_json:
        return text if inner is value else json.dumps(inner, ensure_ascii=False)
    return inner if isinstance(inner, str) else text


def prose_of(text: str) -> str:
    """Return "" if ``text`` is only JSON, with or without a code fence; else return ``text``."""
    return "" if is_json(unfenced(text)) else text


def strict_ready(schema: Any) -> bool:
    """Return whether servers accept the schema as ``strict``: all objects are closed and all their keys are required."""
    if not isinstance(schema, dict) or not set(schema) <= _STRICT:
        return False
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
    parts = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    if "items" in schema:
        parts.append(schema["items"])
    return all(strict_ready(part) for part in parts)


def instructions(options: Mapping[str, Any]) -> str:
    """Return the prompt text that requests the output's shape, for servers without a parameter for it; "" if any is allowed."""
    if tools := options.get("tools"):
        listed = "\n".join(
            f"- {tool['name']}: {tool['description']} Its arguments fit {canonical(tool['parameters']).decode()}"
            for tool in tools
        )
        return (
            'You may call one of these tools, once: answer with JSON only, {"tool": NAME, "arguments": {...}}, and no other '
            f"words. Answer in plain words where no tool is to be called.\n{listed}"
        )
    if (choices := options.get("choices")) is not None:
        listed = "\n".join(choices)
        return f"Answer with exactly one of these, and nothing else:\n{listed}"
    if (schema := options.get("schema")) is not None:
        written = canonical(schema).decode()
        return f"Answer with JSON only, no other words, that fits this JSON Schema:\n{written}"
    return ""


def repair_prompt(prompt: str, answer: str, why: str, options: Mapping[str, Any]) -> str:
    """Return the prompt of the repair round: the request, the first 4,000 characters of the invalid answer, and the fault."""
    shown = answer if len(answer) <= _SHOWN else answer[:_SHOWN] + " ..."
    return f"{prompt}\n\nYour answer was:\n{shown}\n\nThat does not fit: {why}\n{instructions(options)}"
