"""LangChain prompt templates: ``_type`` prompt, few_shot and chat, and the objects that ``dumps`` writes (``lc``, ``constructor``)."""

from collections.abc import Mapping
from typing import Any

from ...trees.lwt import Template, Text
from . import ImportedScript, Load, Notes, NotImportable, Style, joined, llm_script, read_template

_STYLES: Mapping[str, Style] = {"f-string": "f-string", "mustache": "mustache", "jinja2": "jinja2"}
_CLASSES = {"PromptTemplate": "prompt", "FewShotPromptTemplate": "few_shot", "ChatPromptTemplate": "chat"}
_ROLES = {
    "system": "system", "SystemMessagePromptTemplate": "system", "SystemMessage": "system", "human": "human", "user": "human",
    "HumanMessagePromptTemplate": "human", "HumanMessage": "human", "ai": "ai", "assistant": "ai", "AIMessagePromptTemplate": "ai",
    "AIMessage": "ai",
}  # fmt: skip
_USED = (
    "_type",
    "type",
    "lc",
    "id",
    "name",
    "input_variables",
    "input_types",
    "optional_variables",
    "validate_template",
)
_LABELS = {"human": "Human", "ai": "AI"}


def is_langchain(document: Any) -> bool:
    """Return whether a document is a LangChain prompt."""
    if not isinstance(document, dict):
        return False
    return document.get("_type") in ("prompt", "few_shot", "chat", "chat_prompt") or (
        document.get("type") == "constructor" and _class(document) in _CLASSES
    )


def read_langchain(document: Mapping[str, Any], name: str, notes: Notes, load: Load) -> tuple[ImportedScript, ...]:
    """Return the script of a LangChain prompt. Raises ``NotImportable`` if the prompt itself can't be imported."""
    kind, values = _plain(document)
    if kind in ("chat", "chat_prompt"):
        system, prompt = _chat(values, notes)
        return (ImportedScript(name, llm_script(prompt, system=system)),)
    prompt = _few_shot(values, notes, load) if kind == "few_shot" else _prompt(values, "", notes, load)
    return (ImportedScript(name, llm_script(prompt)),)


def _class(document: Mapping[str, Any]) -> str:
    path = document.get("id")
    return str(path[-1]) if isinstance(path, list) and path else ""


def _plain(document: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of a prompt and its values, whether ``save`` or ``dumps`` wrote it."""
    if document.get("type") == "constructor":
        values = document.get("kwargs")
        return _CLASSES.get(_class(document), _class(document)), values if isinstance(values, dict) else {}
    return str(document.get("_type", "prompt")), document


def _prompt(values: Mapping[str, Any], place: str, notes: Notes, load: Load) -> Template:
    used = (*_USED, "template", "template_path", "template_format", "partial_variables")
    notes.unused(place, values, used)
    text = values.get("template")
    if text is None and isinstance(path := values.get("template_path"), str):
        text = load(path)
    if not isinstance(text, str):
        raise NotImportable(f"{place or 'the prompt'} has no template")
    return read_template(text, _style(values), _partial(values, place, notes))


def _style(values: Mapping[str, Any]) -> Style:
    style = str(values.get("template_format") or "f-string")
    if style not in _STYLES:
        raise NotImportable(f"unknown template_format {style!r}")
    return _STYLES[style]


def _partial(values: Mapping[str, Any], place: str, notes: Notes) -> dict[str, str]:
    given = values.get("partial_variables") or {}
    for name, value in given.items():
        if not isinstance(value, str):
            notes.drop(
                f"{place}partial_variables.{name}",
                "only a text can replace the variable; it becomes a key of the input instead",
            )
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _few_shot(values: Mapping[str, Any], notes: Notes, load: Load) -> Template:
    used = (
        *_USED, "examples", "example_prompt", "example_prompt_path", "prefix", "prefix_path", "suffix", "suffix_path",
        "example_separator", "template_format", "partial_variables",
    )  # fmt: skip
    notes.unused("", values, used)
    examples = values.get("examples")
    examples = load(examples) if isinstance(examples, str) else examples
    if not isinstance(examples, list):
        raise NotImportable("the prompt has no list of examples")
    inner = values.get("example_prompt")
    if inner is None and isinstance(path := values.get("example_prompt_path"), str):
        inner = load(path)
    if not isinstance(inner, dict):
        raise NotImportable("the prompt has no example_prompt")
    _, inner = _plain(inner)
    text, style, given = str(inner.get("template", "")), _style(inner), _partial(values, "", notes)
    parts = []
    for number, example in enumerate(examples):
        if not isinstance(example, dict):
            raise NotImportable(f"examples[{number}] is not an object")
        filled = read_template(text, style, {**given, **{name: str(value) for name, value in example.items()}})
        if filled.constant is None:
            raise NotImportable(f"examples[{number}] lacks a variable of example_prompt")
        parts.append(filled)
    for name, at in (("prefix", 0), ("suffix", len(parts) + 1)):
        outer = values.get(name)
        if outer is None and isinstance(path := values.get(f"{name}_path"), str):
            outer = load(path)
        if outer:
            parts.insert(at, read_template(str(outer), _style(values), given))
    return joined(parts, str(values.get("example_separator", "\n\n")))


def _chat(values: Mapping[str, Any], notes: Notes) -> tuple[Template | None, Template]:
    notes.unused("", values, (*_USED, "messages", "partial_variables", "template_format"))
    given = _partial(values, "", notes)
    turns: list[tuple[str, Template]] = []
    for number, message in enumerate(values.get("messages") or ()):
        place = f"messages[{number}]"
        role, text, style = _message(message, values)
        if role is None or text is None:
            notes.drop(place, "it is neither a system, a human nor an AI message with a text")
            continue
        turns.append((role, read_template(text, style, given)))
    system = [each for role, each in turns if role == "system"]
    rest = [(role, each) for role, each in turns if role != "system"]
    if not rest:
        raise NotImportable("the prompt has no human message")
    if len(rest) == 1:
        return joined(system, "\n\n") if system else None, rest[0][1]
    notes.hints.append("the messages of several turns are one prompt, with the labels Human: and AI:")
    lines = [joined([Template((Text(f"{_LABELS[role]}: "),)), each]) for role, each in rest]
    return joined(system, "\n\n") if system else None, joined(lines, "\n")


def _message(message: Any, values: Mapping[str, Any]) -> tuple[str | None, str | None, Style]:
    """Return the role, the text and the template style of a message; None for a part that is not known."""
    style = _style(values)
    if isinstance(message, list | tuple) and len(message) == 2:
        return _ROLES.get(str(message[0])), message[1] if isinstance(message[1], str) else None, style
    if not isinstance(message, dict):
        return None, None, style
    role = _ROLES.get(str(message.get("role") or message.get("_type") or _class(message)))
    inner = message.get("kwargs") if message.get("type") == "constructor" else message
    inner = inner if isinstance(inner, dict) else {}
    if isinstance(prompt := inner.get("prompt"), dict):
        _, prompt = _plain(prompt)
        text = prompt.get("template")
        return role, text if isinstance(text, str) else None, _style(prompt)
    text = inner.get("template", inner.get("content"))
    return role, text if isinstance(text, str) else None, style
