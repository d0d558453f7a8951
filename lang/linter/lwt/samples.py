"""Rules about what a call of ``LLM`` sends besides its prompt: examples of typed answers, a second system prompt, equal samples."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from ...coercion import Type, Unfit, as_type, as_value
from ...conversation import EXAMPLES_FORM, examples_fault, messages_fault
from ...diagnostic import Diagnostic
from ...trees.lwt import (
    MISSING,
    Call,
    Choice,
    ListValue,
    ObjectValue,
    Reference,
    Scalar,
    Template,
    Value,
    Word,
    json_value,
)
from .context import Context, lint


@lint("LWT020")
def examples_of_another_type(context: Context) -> Iterator[Diagnostic]:
    """Report constant examples whose answers do not fit the type of the step, and a second system prompt in ``messages``."""
    for call, _ in context.calls:
        if call.operation != "LLM" or not call.options:
            continue
        examples = call.option("examples")
        if isinstance(examples, ListValue):
            yield from _misfits(context, call, examples)
        messages = call.option("messages")
        if messages is not None and call.option("system") is not None:
            value = json_value(messages)
            if value is MISSING or messages_fault(value):
                continue
            if fault := messages_fault(value, has_system=True):
                hint = "remove the message, or the option `system`"
                yield context.diagnostic("LWT020", f"`messages` {fault}", messages.span, hint)


def _misfits(context: Context, call: Call, examples: ListValue) -> Iterator[Diagnostic]:
    misfit = _misfit_of(call)
    for number, example in enumerate(examples.items, 1):
        if misfit is None or not isinstance(example, ObjectValue):
            return
        out = next((value for key, value in example.entries if key.constant == "out"), None)
        if out is None or isinstance(out, Reference):
            continue
        value = json_value(out)
        if value is MISSING or examples_fault([{"in": "x", "out": value}]):
            continue  # another rule reports it
        if reason := misfit(value):
            message = f'`examples` has a fault in example {number}: "out" does not fit the type of the answer: {reason}'
            yield context.diagnostic("LWT020", message, out.span, EXAMPLES_FORM)


def _misfit_of(call: Call) -> Callable[[Any], str] | None:
    """Return a function that returns the reason why a value does not fit the call's type.

    None if every text fits, or if the type is invalid.
    """
    kind = _type(call.option("type"))
    items = _type(call.option("items"))
    given = call.option("schema")
    schema = None if given is None else json_value(given)
    if isinstance(schema, dict):
        kind = "json"
    if kind is None or kind == "text":
        return None
    low, high = (_number(call.option(name)) for name in ("min", "max"))

    def misfit(value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        fit = as_type(text, kind, strict=True)
        if isinstance(fit, Unfit):
            return fit.reason
        if items is not None and isinstance(fit.value, list):
            for element in fit.value:
                found = as_value(element, items, strict=True)
                if isinstance(found, Unfit):
                    return found.reason
        if isinstance(fit.value, int | float) and not isinstance(fit.value, bool):
            if low is not None and fit.value < low:
                return f"it is below the minimum of {low:g}"
            if high is not None and fit.value > high:
                return f"it is above the maximum of {high:g}"
        return _schema_fault(schema, fit.value) if isinstance(schema, dict) else ""

    return misfit


def _schema_fault(schema: dict[str, Any], value: Any) -> str:
    if '"pattern' in json.dumps(schema):
        return ""  # jsonschema matches patterns with re, which has no time limit; the run checks the example
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError, best_match
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
        found = best_match(Draft202012Validator(schema).iter_errors(value))
    except (SchemaError, RecursionError, OverflowError, ValueError, Unresolvable):
        return ""  # another rule reports the schema
    return "" if found is None else found.message[:200]


def _type(value: Value | None) -> Type | None:
    if isinstance(value, Choice):
        labels = tuple(label.constant or "" for label in value.labels)
        return labels if all(labels) else None
    name = value.value if isinstance(value, Word) else value.constant if isinstance(value, Template) else None
    return name if name in ("text", "json", "list", "int", "float", "bool") else None


def _number(value: Value | None) -> float | None:
    number = value.value if isinstance(value, Scalar) else None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else None


@lint("LWT053")
def equal_samples(context: Context) -> Iterator[Diagnostic]:
    """Report calls that take several samples at temperature 0, where samples are usually equal."""
    for call, _ in context.calls:
        if call.operation != "LLM" or (count := call.option("n")) is None:
            continue
        temperature = _number(call.option("temperature"))
        if temperature == 0 and (_number(count) or 0) > 1:
            message = "samples at temperature 0 are usually equal, so a vote has no effect"
            hint = "set a temperature above 0, or remove `n`"
            yield context.diagnostic("LWT053", message, count.span, hint)
