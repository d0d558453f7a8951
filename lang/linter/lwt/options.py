"""Rules about options: their names and their values."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve

from ...catalogue.operations import OptionSpec
from ...conversation import (
    EXAMPLES_FORM,
    IMAGES_FORM,
    MESSAGES_FORM,
    examples_fault,
    images_fault,
    messages_fault,
)
from ...diagnostic import Diagnostic, Edit
from ...evaluate.text_checks import MOST, CheckError, read_schema
from ...literals import short
from ...printer.lwt_printer import format_reference, format_value
from ...source import NOWHERE, Span
from ...trees.lwt import (
    MISSING,
    Call,
    Choice,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Scalar,
    Template,
    Text,
    Value,
    Word,
    json_value,
)
from .calls import as_choice, kind, named_argument, without
from .context import Context, lint

_MODELS = ("model", "judge")
"""The options whose values are names of models."""
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
            if outer := _option_of_each(context, call, option):
                yield outer
                continue
            near = _ALSO_NAMED.get(option.name)
            if near not in signature.option_names:
                near = None if option.name in _OF_NO_CALL else context.suggestion(option.name, signature.option_names)
            there = f"its options are {', '.join(signature.option_names)}"
            edits = [Edit(span, near)] if near and span else []
            hint = f"did you mean `{near}`?" if near else there
            yield context.diagnostic("LWT019", message, span or option.span, hint, edits=edits)


def _option_of_each(context: Context, call: Call, option: Option) -> Diagnostic | None:
    """Return a diagnostic about an option of ``EACH`` in the call that it repeats. The edits move the option to the ``EACH``."""
    each = context.step_of[id(call)].call
    signature = context.operations.get(each.operation)
    is_inner = any(value is call for value in each.arguments) and signature is not None
    if not is_inner or signature is None or signature.option(option.name) is None:
        return None
    edits = []
    if each.option(option.name) is None and NOWHERE not in (option.span, call.span):
        text = context.script.source.text[option.span.start : option.span.end]
        edits = [Edit(without(context, call, option.span), ""), Edit(Span(call.span.end, call.span.end), f", {text}")]
    message = f"{call.operation} has no option `{option.name}`; it is an option of {each.operation}"
    hint = f"write it after the call: `{each.operation}({{(list)}}, {call.operation}(...), {option.name}=...)`"
    return context.diagnostic("LWT019", message, _name_span(context, option) or option.span, hint, edits=edits)


@lint("LWT039")
def repeated_option(context: Context) -> Iterator[Diagnostic]:
    """Report options that occur twice in a call."""
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
    **dict.fromkeys(("by", "column", "key", "keys", "using"), "on"),
    **dict.fromkeys(("join", "kind"), "how"),
    **dict.fromkeys(("minimum", "at_least", "ge", "lower"), "min"),
    **dict.fromkeys(("maximum", "at_most", "le", "upper"), "max"),
    **dict.fromkeys(("json_schema", "response_schema", "output_schema"), "schema"),
    **dict.fromkeys(("few_shot", "shots", "demos", "demonstrations"), "examples"),
    **dict.fromkeys(("history", "chat_history", "conversation"), "messages"),
    **dict.fromkeys(("image", "image_url", "photos", "pictures"), "images"),
    **dict.fromkeys(("random_seed", "random_state"), "seed"),
    **dict.fromkeys(("topp", "nucleus"), "top_p"),
    **dict.fromkeys(("num_samples", "votes", "vote", "best_of"), "n"),
    **dict.fromkeys(("stop_sequences", "stop_sequence"), "stop"),
}
"""The names that other tools use for LWT options."""
_OF_NO_CALL = ("top_k",)
"""Names that resemble an option of another meaning."""


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
        if call.operation == "LLM" and call.options:
            yield from _unsuited(context, call)
    yield from _duplicate_keys(context)


_SHAPES = {"min": ("int", "float"), "max": ("int", "float"), "items": ("list",), "schema": ("json",)}
"""Maps each option that says more about an answer to the types with which it can be combined."""


def _unsuited(context: Context, call: Call) -> Iterator[Diagnostic]:
    """Report options that do not suit the type of the answer, and bounds without a number between them."""
    given = call.option("type")
    name = given.value if isinstance(given, Word) else given.constant if isinstance(given, Template) else None
    for option in call.options:
        types = _SHAPES.get(option.name)
        if types is None or name in types or (given is None and option.name == "schema"):
            continue
        message = f"`{option.name}` needs {' or '.join(f'`type={each}`' for each in types)}"
        hint = f"add `type={types[0]}`" if given is None else "remove one of the two options"
        yield context.diagnostic("LWT020", message, option.span, hint)
    if call.option("schema") is not None and (file := call.option("schema_file")) is not None:
        message = "LLM takes `schema` or `schema_file`, but not both"
        yield context.diagnostic("LWT020", message, file.span, "remove one of the two options")
    low, high = call.option("min"), call.option("max")
    if isinstance(low, Scalar) and isinstance(high, Scalar) and _is_above(low.value, high.value):
        message = f"`min` is {format_value(low)}, which is above `max`, {format_value(high)}"
        yield context.diagnostic("LWT020", message, low.span, "exchange the two numbers")


def _is_above(low: object, high: object) -> bool:
    return isinstance(low, int | float) and isinstance(high, int | float) and low > high


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
    return _wrong(context, spec, value, f"takes an expression as a string, not {kind(value)}", hint, new=new)


def _value(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    """Return a diagnostic if ``value`` is neither a reference nor a constant.

    The parts of lists and objects are checked in the same way.
    """
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
            hint = f"write `{new}`" if new else "write the text in quotes" if isinstance(inner, Word) else ""
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
    there = f"the models are {', '.join(sorted(context.models)[:8])}" if context.models else ""
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
            return _wrong(context, spec, text, "is empty, so every answer would be empty")
    return None


def _columns(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    """Return a diagnostic if ``value`` is not a list of one to four different, constant names of columns."""
    values = value.items if isinstance(value, ListValue) else (value,)
    if not 1 <= len(values) <= 4:
        return _wrong(context, spec, value, f"takes one to four columns, not {len(values)}")
    seen: set[str] = set()
    for name in values:
        if not isinstance(name, Template):
            new = f'"{name.value}"' if isinstance(name, Word) else ""
            hint = f"write `{new}`" if new else ""
            return _wrong(context, spec, name, f"takes names of columns in quotes, not {kind(name)}", hint, new=new)
        if not name.constant:
            what = (
                "has an empty name of a column" if name.constant == "" else "takes constant names, without references"
            )
            return _wrong(context, spec, name, what)
        if name.constant in seen:
            return _wrong(context, spec, name, f"has the column {short(name.constant)} twice", "remove one of them")
        seen.add(name.constant)
    return None


def _schema(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    """Return a diagnostic if ``value`` is not a constant object, or not a valid JSON Schema."""
    example = (
        'for example `schema={"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}`'
    )
    if not isinstance(value, ObjectValue):
        return _wrong(context, spec, value, f"takes an object, a JSON Schema, not {kind(value)}", example)
    schema = json_value(value)
    if schema is MISSING:
        return _wrong(context, spec, value, "takes a constant JSON Schema, without references", example)
    try:
        read_schema(json.dumps(schema))
    except CheckError as error:
        hint = example if not error.hint or error.hint.startswith("for example") else error.hint
        return _wrong(context, spec, value, f"can't be used: {error.message}", hint)
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
        least, most = "" if low is None else f"{low:,g}", "" if high is None else f"{high:,.15g}"
        limits = f" from {least} to {most}" if least and most else f" up to {most}" if most else f", {least} or greater"
        return _wrong(context, spec, value, f"takes {what}{limits}, not {format_value(value)}")
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
    choice = 'a choice needs at least two labels: `"a" | "b"`' if spec.kind == "type" and not new else ""
    return _wrong(context, spec, value, f"takes {_either(spec)}, not {short(name)}", hint, choice, new=new)


def _either(spec: OptionSpec) -> str:
    return f"one of {', '.join(spec.values)}" if spec.values else "a name"


_ALSO_CALLED = {
    "string": "text", "str": "text", "integer": "int", "number": "float", "boolean": "bool", "array": "list",
    "object": "json", "dict": "json", "yes/no": "bool",
}  # fmt: skip
"""The names that other languages use for LWT types."""


def _listed(context: Context, spec: OptionSpec, value: Value) -> Diagnostic | None:
    """Return a diagnostic about the value of ``examples``, ``messages`` or ``images`` that has a wrong form."""
    if fault := _value(context, spec, value):
        return fault
    if isinstance(value, Reference):
        return None
    fault_of, form = _FORMS[spec.kind]
    said = fault_of(_with_gaps(value))
    return _wrong(context, spec, value, said, form) if said else None


def _with_gaps(value: Value) -> Any:
    """Return the JSON value of a constant; each reference in it is replaced by a text, because its value is not known."""
    if isinstance(value, Reference):
        return format_reference(value)
    if isinstance(value, ListValue):
        return [_with_gaps(item) for item in value.items]
    if isinstance(value, ObjectValue):
        return {key.constant or "": _with_gaps(entry) for key, entry in value.entries}
    found = json_value(value)
    return None if found is MISSING else found


_FORMS: dict[str, tuple[Callable[[Any], str], str]] = {
    "examples": (examples_fault, EXAMPLES_FORM),
    "messages": (messages_fault, MESSAGES_FORM),
    "images": (images_fault, IMAGES_FORM),
}

_CHECKS = {
    "template": _template, "string": _string, "strings": _strings, "int": _number, "float": _number, "type": _type,
    "name": _name, "condition": _condition, "value": _value, "checks": _checks, "schema": _schema, "columns": _columns,
    "examples": _listed, "messages": _listed, "images": _listed,
}  # fmt: skip
