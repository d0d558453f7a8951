"""Rules about options: their names and their values."""

import math
import re
from collections.abc import Iterator

from attrs import evolve

from ...catalogue.operations import OptionSpec
from ...diagnostic import Diagnostic, Edit
from ...evaluate.text_checks import MOST
from ...literals import short
from ...printer.lwt_printer import format_reference, format_value
from ...source import NOWHERE, Span
from ...trees.lwt import Call, Choice, ListValue, ObjectValue, Option, Reference, Scalar, Template, Text, Value, Word
from .calls import as_choice, kind, named_argument, without
from .context import Context, lint

_MODELS = ("model", "judge")
"""The options that name models."""
_SPECS = ("openai:", "anthropic:", "replay:", "record:")
"""Prefixes that are valid for models on the command line. A script may only use the names of models that the host offers."""


@lint("LWT019")
def unknown_option(context: Context) -> Iterator[Diagnostic]:
    """Report options that the operation does not have."""
    for call, _ in context.calls:
        signature = context.operations.get(call.operation)
        if signature is None:
            continue
        for option in call.options:
            if signature.option(option.name) is not None:
                continue
            span = _name_span(context, option)
            message = f"{call.operation} has no option `{option.name}`"
            if any(option.name == parameter.name for parameter in signature.parameters):
                hint = f"write the {option.name} first, without a name"
                edits = named_argument(context, call, option)
                yield context.diagnostic("LWT019", message, span or option.span, hint, edits=edits)
                continue
            near = _ALSO_NAMED.get(option.name)
            near = near if near in signature.option_names else context.suggestion(option.name, signature.option_names)
            there = f"its options are {', '.join(signature.option_names)}"
            edits = [Edit(span, near)] if near and span else []
            hint = f"did you mean `{near}`?" if near else there
            yield context.diagnostic("LWT019", message, span or option.span, hint, edits=edits)


@lint("LWT039")
def repeated_option(context: Context) -> Iterator[Diagnostic]:
    """Report options that a call has twice."""
    for call, _ in context.calls:
        if len(call.options) < 2:
            continue
        seen: dict[str, Option] = {}
        for option in call.options:
            if option.name in seen:
                span = _name_span(context, option) or option.span
                message = f"this call has the option `{option.name}` twice"
                same = seen[option.name] == option and option.span != NOWHERE
                edits = [Edit(without(context, call, option.span), "")] if same else []
                yield context.diagnostic("LWT039", message, span, "remove one of them", edits=edits)
            seen[option.name] = option


_ALSO_NAMED = {
    **dict.fromkeys(("if", "condition", "only_if", "run_if"), "when"),
    **dict.fromkeys(("resp_format", "response_format"), "format"),
    **dict.fromkeys(("eval_crit", "evaluation", "rubric"), "criteria"),
    **dict.fromkeys(("score_threshold", "min_score"), "threshold"),
    **dict.fromkeys(("max_iter", "max_iterations", "iterations", "rounds"), "iter_max"),
    **dict.fromkeys(("samples", "candidates"), "attempts"),
}
"""The names that other tools use for options of LWT."""


def _name_span(context: Context, option: Option) -> Span | None:
    at = Span(option.span.start, option.span.start + len(option.name))
    return context.spelled(at, option.name, option.span)


@lint("LWT020")
def option_value(context: Context) -> Iterator[Diagnostic]:
    """Report invalid values of options, and repeated keys in an object."""
    for call, _ in context.calls:
        signature = context.operations.get(call.operation)
        if signature is None:
            continue
        for option in call.options:
            spec = signature.option(option.name)
            if spec is not None and (check := _CHECKS.get(spec.kind)):
                named = spec if spec is not signature.bindings else evolve(spec, name=option.name)
                fault = check(context, named, option.value)
                if fault:
                    yield fault
    yield from _duplicate_keys(context)


def _duplicate_keys(context: Context) -> Iterator[Diagnostic]:
    for value in context.objects:
        seen: set[str] = set()
        for key, _ in value.entries:
            name = key.constant
            if name is not None and name in seen:
                message = f"this object has the key {short(name)} twice"
                yield context.diagnostic("LWT020", message, key.span, "remove one of them")
            elif name is not None:
                seen.add(name)


def _wrong(
    context: Context, spec: OptionSpec, value: Value, what: str, *hints: str, new: str = "", span: Span | None = None
) -> Diagnostic:
    edits = [Edit(value.span, new)] if new and value.span != NOWHERE else []
    return context.diagnostic("LWT020", f"`{spec.name}` {what}", span or value.span, *hints, edits=edits)


def _template(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    if isinstance(value, Template):
        return None
    new = f'"{format_reference(value)}"' if isinstance(value, Reference) else ""
    return _wrong(context, spec, value, f"takes a string, not {kind(value)}", f"write `{new}`" if new else "", new=new)


_ONLY = "prompts, `system`, `format`, `criteria` and `when` can refer to other steps"


def _condition(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    if isinstance(value, Template):
        return None
    new = f'"{format_reference(value)}"' if isinstance(value, Reference) else ""
    hint = f"write `{new}`" if new else 'for example: `when="{(score)} > 0.5"`'
    return _wrong(context, spec, value, f"takes a string, an expression, not {kind(value)}", hint, new=new)


def _value(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    """Return a diagnostic about a part that is neither a reference nor a constant; parts inside lists and objects count too."""
    stack = [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ListValue):
            stack += reversed(inner.items)
        elif isinstance(inner, ObjectValue):
            for key, entry in reversed(inner.entries):
                stack.append(entry)
                if key.constant is None:
                    return _wrong(context, spec, key, "has a reference in a key", "keys must be constant strings")
        elif isinstance(inner, Template) and inner.constant is None:
            alone = inner.parts[0] if len(inner.parts) == 1 else None
            new = format_reference(alone) if isinstance(alone, Reference) else ""
            hint = f"without quotes: `{new}`" if new else "write the reference alone, without quotes"
            return _wrong(context, spec, inner, "takes a reference or a constant, not a prompt", hint, new=new)
        elif isinstance(inner, Word | Call | Choice):
            step = isinstance(inner, Word) and inner.value in context.known
            new = f"{{({inner.value})}}" if isinstance(inner, Word) and step else ""
            hint = f"write `{new}`" if new else "write a text in quotes" if isinstance(inner, Word) else ""
            hint = "move the inner call to a separate step and refer to it" if isinstance(inner, Call) else hint
            return _wrong(context, spec, inner, f"takes a reference or a constant, not {kind(inner)}", hint, new=new)
    return None


def _string(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    if not isinstance(value, Template):
        new = f'"{value.value}"' if isinstance(value, Word) else ""
        hint = f"write `{new}`" if new else ""
        hint = _ONLY if isinstance(value, Reference) else hint
        return _wrong(context, spec, value, f"takes a string, not {kind(value)}", hint, new=new)
    found = next((part for part in value.parts if isinstance(part, Reference)), None)
    if found is not None:
        return _wrong(context, spec, value, "takes a constant string, without references", _ONLY, span=found.span)
    if spec.values and value.constant not in spec.values:
        return _not_listed(context, spec, value, value.constant or "", quoted=True)
    return _model(context, spec, value, value.constant or "") if spec.name in _MODELS else None


def _model(context: Context, spec: OptionSpec, value: Template, name: str) -> Diagnostic | None:
    if "://" in name or name.startswith(_SPECS):
        hint = "write the name of a model that the host offers; the host decides where models run"
        return _wrong(context, spec, value, "takes a model's name, not an address or a specification", hint)
    if not name.strip():
        return _wrong(context, spec, value, "is empty", "without this option the run's model is used")
    if context.models is None or name in context.models:
        return None
    near = context.suggestion(name, context.models)
    there = f"the models here are {', '.join(sorted(context.models)[:8])}" if context.models else ""
    hint = f"did you mean `{near}`?" if near else there or "without this option the run's model is used"
    new = format_value(_like(near)) if near else ""
    # A name that resembles no model may be an API key by mistake, so the message does not repeat it.
    what = (
        f"names {short(name)}, which the host does not offer" if near else "names a model that the host does not offer"
    )
    return _wrong(context, spec, value, what, hint, new=new)


def _like(text: str) -> Template:
    return Template((Text(text),))


def _strings(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    values = value.items if isinstance(value, ListValue) else (value,)
    if not 1 <= len(values) <= 4:
        return _wrong(context, spec, value, f"takes one to four strings, not {len(values)}")
    for text in values:
        if not isinstance(text, Template):
            return _wrong(context, spec, text, f"takes strings, not {kind(text)}")
        if text.constant is None:
            return _wrong(context, spec, text, "takes constant strings, without references")
        if not text.constant:
            return _wrong(context, spec, text, "is empty, so that every answer would be empty")
    return None


def _checks(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    """Return a diagnostic about a value that can't be a check. Another rule tests whether the text of the check can be read."""
    values = value.items if isinstance(value, ListValue) else (value,)
    if not 1 <= len(values) <= MOST:
        return _wrong(context, spec, value, f"takes one to {MOST} checks, not {len(values)}")
    for text in values:
        if not isinstance(text, Template):
            hint = 'write a check in quotes: `"words:10..40"`'
            return _wrong(context, spec, text, f"takes strings, not {kind(text)}", hint)
        if text.constant is None:
            hint = "the output of a step must not become a check; `criteria` can refer to other steps"
            return _wrong(context, spec, text, "takes constant strings, without references", hint)
    return None


def _number(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    what = "a whole number" if spec.kind == "int" else "a number"
    number = value.value if isinstance(value, Scalar) else None
    if number is None or isinstance(number, bool) or (spec.kind == "int" and isinstance(number, float)):
        new = _plain_number(spec, value)
        hint = f"without quotes: `{new}`" if new else ""
        got = format_value(value) if isinstance(value, Scalar) else kind(value)
        return _wrong(context, spec, value, f"takes {what}, not {got}", hint, new=new)
    low, high = spec.minimum, spec.maximum
    if not math.isfinite(number) or (low is not None and number < low) or (high is not None and number > high):
        least = "" if low is None else f" of at least {low:,g}"
        most = "" if high is None else f"{' and' if least else ' of'} at most {high:,.15g}"
        return _wrong(context, spec, value, f"takes {what}{least}{most}, not {format_value(value)}")
    return None


def _plain_number(spec: OptionSpec, value: Value) -> str:
    """Return the text of the number in a string; "" if the value is not a number in a string."""
    text = (value.constant or "").strip() if isinstance(value, Template) else ""
    try:
        number = int(text) if spec.kind == "int" else float(text)
    except ValueError:
        return ""
    if re.fullmatch(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", text):
        return text
    return str(number) if math.isfinite(number) and len(text) < 20 else ""


def _type(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    names = ", ".join(spec.values)
    if isinstance(value, Choice):
        return _choice(context, spec, value)
    name = value.value if isinstance(value, Word) else value.constant if isinstance(value, Template) else None
    if name is None:
        if new := as_choice(context, value):
            return _wrong(context, spec, value, "takes a choice, not a list", f"write `{new}`", new=new)
        got = "a string with a reference" if isinstance(value, Template) else kind(value)
        return _wrong(context, spec, value, f"takes one of {names}, or a choice, not {got}", 'a choice is `"a" | "b"`')
    if name in spec.values:
        return None
    if any(mark in name for mark in "|,/") and isinstance(value, Template):
        labels = [
            label for part in name.replace(",", "|").replace("/", "|").split("|") if (label := part.strip(" \"'"))
        ]
        new = " | ".join(format_value(_like(label)) for label in labels)
        if len(set(labels)) > 1:
            return _wrong(context, spec, value, "has a choice inside one string", f"write `{new}`", new=new)
    return _not_listed(context, spec, value, name, quoted=False)


def _choice(context: Context, spec: OptionSpec, value: Choice) -> Diagnostic | None:
    seen: set[str] = set()
    for label in value.labels:
        text = label.constant
        if text is None:
            return _wrong(context, spec, label, "has a reference in a choice", "labels must be constant strings")
        if not text.strip():
            return _wrong(context, spec, label, "has a choice with an empty label")
        if text.strip() in seen:
            return _wrong(context, spec, label, f"has the label {short(text)} twice", "remove one of them")
        seen.add(text.strip())
    return (
        _wrong(context, spec, value, "has a choice with one label", "write at least two labels")
        if len(seen) < 2
        else None
    )


def _name(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    name = value.value if isinstance(value, Word) else value.constant if isinstance(value, Template) else None
    if name is None:
        return _wrong(context, spec, value, f"takes {_either(spec)}, not {kind(value)}")
    return None if not spec.values or name in spec.values else _not_listed(context, spec, value, name, quoted=False)


def _not_listed(context: Context, spec: OptionSpec, value: Value, name: str, *, quoted: bool) -> Diagnostic:
    near = _ALSO_CALLED.get(name.casefold()) if spec.kind == "type" else None
    near = near if near in spec.values else context.suggestion(name, spec.values)
    new = (f'"{near}"' if quoted else near) if near else ""
    hint = f"did you mean `{new}`?" if new else ""
    choice = 'a choice has at least two labels: `"a" | "b"`' if spec.kind == "type" and not new else ""
    return _wrong(context, spec, value, f"takes {_either(spec)}, not {short(name)}", hint, choice, new=new)


def _either(spec: OptionSpec) -> str:
    return f"one of {', '.join(spec.values)}" if spec.values else "a name"


_ALSO_CALLED = {
    "string": "text", "str": "text", "integer": "int", "number": "float", "boolean": "bool", "array": "list",
    "object": "json", "dict": "json", "yes/no": "bool",
}  # fmt: skip
"""The names that other languages use for types of LWT."""

_CHECKS = {
    "template": _template, "string": _string, "strings": _strings, "int": _number, "float": _number, "type": _type,
    "name": _name, "condition": _condition, "value": _value, "checks": _checks,
}  # fmt: skip
