"""The canonical text of a script. Parsing this text gives the same tree, and printing that tree gives the same text.

``docs/design/lwt.md#syntax`` describes the contents and the escapes of strings. The runtime uses ``format_call`` for the keys
of its cache and journal. Therefore, a change of the output of ``format_call`` invalidates old runs.
"""

import math
import re
from collections.abc import Callable, Iterable

from ..source import NOWHERE, Source, Span
from ..trees.lwt import (
    Accessor,
    Call,
    Choice,
    Comment,
    Index,
    Key,
    ListValue,
    ObjectValue,
    Reference,
    Scalar,
    Script,
    Step,
    Template,
    Text,
    Value,
    Word,
)

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


def format_lwt(script: Script) -> str:
    """Return the canonical text of ``script``: one step per line; comments and single blank lines between items are kept.

    A step keeps its original text if its canonical text would hide a warning or an error.

    Raises ``ValueError`` for a tree that cannot be written, which the parser never creates. Such a tree has text that ends in ``{``
    directly before a reference, a key with a newline, or a number that is not finite.
    """
    unclear = [each.span for each in script.diagnostics if each.code == "LWT024" and each.span and not each.edits]
    lines: list[str] = []
    before: Step | Comment | None = None
    for item in script.items:
        if before is not None and _blank_between(before, item, script.source):
            lines.append("")
        lines.append(_step(item, script, unclear) if isinstance(item, Step) else item.text.rstrip())
        before = item
    return "\n".join(lines) + "\n" if lines else ""


def _blank_between(before: Step | Comment, after: Step | Comment, source: Source) -> bool:
    if NOWHERE in (before.span, after.span):
        return False
    return _BLANK_LINE.search(source.text, before.span.end, max(before.span.end, after.span.start)) is not None


def _step(step: Step, script: Script, unclear: list[Span]) -> str:
    """Return the step's canonical text, or its original text if the canonical text would hide the step's diagnostics.

    In the canonical text, a doubled brace or an escaped bracket would mark the text as intended. An argument that was moved before the
    options would no longer be a fault. In both cases the diagnostic and its fix would be lost. In lenient mode the parser has already
    applied such fixes, so the canonical text is returned; only braces are not doubled at ``unclear``, the faults without a fix.
    """
    printed = format_step(step)
    if step.span == NOWHERE:
        return printed
    if script.mode == "lenient":
        for text in {script.source.slice(place) for place in unclear if step.span.covers(place.start)}:
            printed = printed.replace("{" + text, text)
        return printed
    written = script.source.slice(step.span)
    hides = _has_late_argument(step.call) or any(
        written.count(sign) < printed.count(sign) for sign in ("{{(", "\\[", "\\\\")
    )
    return written if hides and written.startswith(f"({step.id})") and written.endswith(")") else printed


def _has_late_argument(call: Call) -> bool:
    """Return whether an argument comes after an option, in ``call`` or in a call inside it."""
    inner = [*call.arguments, *(option.value for option in call.options)]
    if any(isinstance(value, Call) and _has_late_argument(value) for value in inner):
        return True
    return bool(call.arguments and call.options) and call.arguments[-1].span.start > call.options[0].span.start


def format_step(step: Step) -> str:
    """Return the text of a step: ``(id)=OP(...)``."""
    return f"({step.id})={format_call(step.call)}"


def format_call(call: Call) -> str:
    """Return the text of a call, ``OP(argument, ..., name=value)``.

    All arguments come before all options; each group is in source order.
    """
    parts = [format_value(argument) for argument in call.arguments]
    parts += [f"{option.name}={format_value(option.value)}" for option in call.options]
    return f"{call.operation}({', '.join(parts)})"


def format_value(value: Value) -> str:
    """Return the text of an argument or of an option's value. This function is recursive; the parser limits the depth."""
    return _FORMATS[type(value)](value)


def format_reference(reference: Reference) -> str:
    """Return the text of a reference: ``{(name)}["key"][0]``."""
    return f"{{({reference.name})}}{''.join(map(_accessor, reference.accessors))}"


def _accessor(accessor: Accessor) -> str:
    if isinstance(accessor, Key):
        if "\n" in accessor.value:
            raise ValueError(f"a key with a newline cannot be written in a reference: {accessor.value!r}")
        if accessor.value == "index":
            return "[index]"  # inside EACH, [index] is the index of the item; ["index"] is not
        escaped = accessor.value.replace("\\", "\\\\").replace('"', '\\"')
        return f'["{escaped}"]'
    if isinstance(accessor, Index):
        return f"[{accessor.value}]"
    start = "" if accessor.start is None else accessor.start
    stop = "" if accessor.stop is None else accessor.stop
    return f"[{start}:{stop}]"


def _scalar(scalar: Scalar) -> str:
    value = scalar.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be written in a script")
        return repr(value)
    return str(value)


def _entry(key: Template, value: Value) -> str:
    return f"{format_template(key)}: {format_value(value)}"


_RUN_OPENING = re.compile(r"\{+\(")
_RUN_OF_BACKSLASHES = re.compile(r"\\+")


def format_template(template: Template) -> str:
    """Return the string of ``template`` in the quotes that need the fewest escapes.

    Raises ``ValueError`` if text ends in ``{`` directly before a reference, because ``{{(`` would be read as literal text.
    """
    parts = _merge_texts(template.parts)
    quote = _quote([part for part in parts if isinstance(part, str)], isinstance(parts[-1], str) if parts else False)
    written = []
    for number, part in enumerate(parts):
        if isinstance(part, Reference):
            written.append(format_reference(part))
            continue
        is_last = number == len(parts) - 1
        if not is_last and part.endswith("{"):
            raise ValueError(f"text before a reference cannot end in '{{': {part[-30:]!r}")
        written.append(_text(part, quote, number > 0, is_last))
    return quote + "".join(written) + quote


def _merge_texts(parts: Iterable[Text | Reference]) -> list[str | Reference]:
    """Return the parts, with adjacent pieces of text joined and empty pieces omitted."""
    merged: list[str | Reference] = []
    for part in parts:
        if isinstance(part, Reference):
            merged.append(part)
        elif merged and isinstance(last := merged[-1], str):
            merged[-1] = last + part.value
        elif part.value:
            merged.append(part.value)
    return merged


def _quote(texts: list[str], ends_in_text: bool) -> str:
    """Return the quotes for a string.

    The quotes are double, or single if the text contains double quotes, or triple if it contains both kinds.

    If the text could end triple quotes too early, the quotes are double.
    """
    if not any('"' in text for text in texts):
        return '"'
    if not any("'" in text for text in texts):
        return "'"
    if not any('"""' in text for text in texts) and not (ends_in_text and texts[-1].endswith('"')):
        return '"""'
    return '"'


def _text(text: str, quote: str, after_reference: bool, is_last: bool) -> str:
    """Return literal text with escapes, so that parsing the escaped text inside ``quote`` gives the original text."""
    mark = quote[0]
    if "\\" in text:
        text = _RUN_OF_BACKSLASHES.sub(lambda run: _backslashes(run, mark, is_last, after_reference), text)
    if quote == '"' and '"' in text:
        text = text.replace('"', '\\"')
    if "{(" in text:
        text = _RUN_OPENING.sub(lambda run: "{" + run[0], text)
    if after_reference and text.startswith("["):
        text = "\\" + text
    return text


def _backslashes(run: re.Match[str], mark: str, is_last: bool, after_reference: bool) -> str:
    """Return a run of backslashes with each backslash doubled. A single backslash that escapes nothing is not doubled."""
    following = run.string[run.end() : run.end() + 1]
    before_bracket = following == "[" and after_reference and run.start() == 0
    ends = not following and is_last
    if run.end() - run.start() == 1 and not (following == mark or ends or before_bracket):
        return run[0]
    return run[0] * 2


_FORMATS: dict[type, Callable[..., str]] = {
    Template: format_template,
    Reference: format_reference,
    Scalar: _scalar,
    Word: lambda word: word.value,
    Choice: lambda choice: " | ".join(map(format_template, choice.labels)),
    ListValue: lambda value: f"[{', '.join(map(format_value, value.items))}]",
    ObjectValue: lambda value: f"{{{', '.join(_entry(*entry) for entry in value.entries)}}}",
    Call: format_call,
}
