"""Prompts of other tools as scripts and test cases: LangChain templates, promptfoo configurations, DSPy signatures.

Each module reads the plain value of a document. What a script can't express is listed in ``Notes``; nothing is left out in silence. See
``docs/reference/import.md``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from ...printer.lwt_printer import format_lwt
from ...trees.lwt import (
    Call,
    Choice,
    Index,
    Key,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Scalar,
    Script,
    Step,
    Template,
    Text,
    Value,
    Word,
)

Style = Literal["f-string", "mustache", "jinja2"]
Load = Callable[[str], Any]
"""Reads another file that a document names: its text, or the value of a JSON or YAML file. Raises ``OSError`` and ``ValueError``."""

__all__ = [
    "ImportedScript",
    "Load",
    "NotImportable",
    "Notes",
    "Style",
    "llm_script",
    "read_template",
    "step_name",
    "value_tree",
]


class NotImportable(Exception):
    """Raised if a part of a document can't be expressed as a script; the message is the reason."""


@define
class Notes:
    """Collects a sentence for each part that is left out, and hints for the user."""

    left_out: list[str] = field(factory=list)
    hints: list[str] = field(factory=list)

    def drop(self, place: str, reason: str) -> None:
        """Note that the part ``place`` of a document is left out."""
        message = f"{place}: {reason}"
        if message not in self.left_out:
            self.left_out.append(message)

    def unused(
        self, place: str, document: Mapping[str, Any], used: Sequence[str], reason: str = "it has no equivalent"
    ) -> None:
        """Note every key of ``document`` that is not in ``used`` and has a value."""
        for name, value in document.items():
            if name not in used and value not in (None, "", [], {}, False):
                self.drop(f"{place}{'.' if place else ''}{name}", reason)


@frozen
class ImportedScript:
    """A script and its test cases, as JSON objects. ``name`` has no suffix."""

    name: str
    text: str
    cases: tuple[Mapping[str, Any], ...] = ()


_PATTERNS: Mapping[Style, re.Pattern[str]] = {
    "f-string": re.compile(r"(?P<open>\{\{)|(?P<close>\}\})|\{(?P<name>[^{}]*)\}"),
    "mustache": re.compile(r"\{\{\{(?P<raw>[^{}]*)\}\}\}|\{\{(?P<name>[^{}]*)\}\}"),
    "jinja2": re.compile(r"\{#.*?#\}|(?P<block>\{%.*?%\})|\{\{-?(?P<name>.*?)-?\}\}", re.DOTALL),
}
_PATH = re.compile(r"""\s*(?P<head>[^\W\d]\w*)(?P<rest>(?:\.\w+|\[\s*(?:\d+|"[^"\n]*"|'[^'\n]*')\s*\])*)\s*""")
_PART = re.compile(r"""\.(\w+)|\[\s*(?:(\d+)|"([^"\n]*)"|'([^'\n]*)')\s*\]""")


def read_template(text: str, style: Style = "f-string", given: Mapping[str, str] | None = None) -> Template:
    """Return a template in which every variable is a part of the script's input. Raises ``NotImportable``.

    ``given`` maps variables to texts that replace them.
    """
    parts: list[Text | Reference] = []
    end = 0
    for found in _PATTERNS[style].finditer(text):
        groups = found.groupdict()
        parts.append(Text(text[end : found.start()]))
        end = found.end()
        if groups.get("open") or groups.get("close"):
            parts.append(Text("{" if groups.get("open") else "}"))
            continue
        if groups.get("block"):
            raise NotImportable(f"the template has a block: {groups['block'][:60]}")
        name = groups.get("raw") or groups.get("name")
        if name is None:
            continue  # a comment
        match = _PATH.fullmatch(name)
        if match is None:
            raise NotImportable(f"the template has an expression, a section or a filter: {found[0][:60]}")
        if given is not None and name.strip() in given:
            parts.append(Text(given[name.strip()]))
            continue
        keys = [Key(match["head"])]
        accessors = [
            Index(int(each[2])) if each[2] else Key(each[1] or each[3] or each[4] or "")
            for each in _PART.finditer(match["rest"])
        ]
        parts.append(Reference("input", (*keys, *accessors)))
    parts.append(Text(text[end:]))
    return Template(_merged(parts))


def _merged(parts: Sequence[Text | Reference]) -> tuple[Text | Reference, ...]:
    made: list[Text | Reference] = []
    for part in parts:
        if isinstance(part, Text) and made and isinstance(last := made[-1], Text):
            made[-1] = Text(last.value + part.value)
        elif not isinstance(part, Text) or part.value:
            made.append(part)
    return tuple(part for part in made if not isinstance(part, Text) or part.value)


def joined(templates: Sequence[Template], separator: str = "") -> Template:
    """Return the templates as one, with a text between them."""
    parts: list[Text | Reference] = []
    for number, each in enumerate(templates):
        parts += [Text(separator)] if number and separator else []
        parts += each.parts
    return Template(_merged(parts))


def step_name(text: str, otherwise: str = "final") -> str:
    """Return a text as the name of a step."""
    name = re.sub(r"\W+", "_", text.strip()).strip("_")
    return name if name and not name[0].isdigit() and name not in ("input", "item", "index") else otherwise


def value_tree(value: Any) -> Value:
    """Return a JSON value as a constant of a script."""
    if isinstance(value, str):
        return Template((Text(value),) if value else ())
    if isinstance(value, list):
        return ListValue(tuple(map(value_tree, value)))
    if isinstance(value, dict):
        return ObjectValue(tuple((Template((Text(name),)), value_tree(each)) for name, each in value.items()))
    return Scalar(value)


def llm_script(
    prompt: Template, *, step: str = "final", system: Template | None = None, options: Mapping[str, Any] | None = None
) -> str:
    """Return the text of a script with one call. ``options`` maps names to values; a ``Word`` or ``Choice`` is kept.

    The script is parsed again, to make sure that it means the same. Raises ``NotImportable``.
    """
    from ...parse.lwt import parse_lwt

    made = [Option("system", system)] if system is not None else []
    for name, value in (options or {}).items():
        made.append(Option(name, value if isinstance(value, Word | Choice) else value_tree(value)))
    tree = Step(step, Call("LLM", (prompt,), tuple(made)))
    try:
        text = format_lwt(Script((tree,)))
    except ValueError as error:
        raise NotImportable(f"a script can't contain this text: {error}") from None
    if parse_lwt(text).steps != (tree,):
        raise NotImportable("a script can't contain this text exactly")
    return text
