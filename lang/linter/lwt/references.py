"""Rules about references and their accessors."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from ...diagnostic import Diagnostic, Edit
from ...literals import Reading, kind_of, short
from ...parse.lwt.recovery.references import path_of
from ...source import NOWHERE, Span
from ...trees.lwt import (
    ABSENT,
    MISSING,
    Accessor,
    Call,
    Choice,
    Index,
    Key,
    Reference,
    Slice,
    Step,
    Template,
    Word,
    json_value,
)
from .context import Context, Use, lint

_SHOWN = 8
"""Maximum number of names that a message lists."""
_GIVE_ONE = "pass an input: `--input FILE` on the command line, `input=` in Python, `input` in a request, `%kw input NAME` in a notebook"
_ITEMS = 20
"""Maximum number of elements of an input list that are checked for the keys of ``{(item)}``."""


@lint("LWT012")
def unknown_reference(context: Context) -> Iterator[Diagnostic]:
    """Report references to unknown steps."""
    for reference, step, each in context.uses:
        if reference.name not in context.known:
            yield _dotted(context, reference, each is not None) or _unknown(context, reference, step)


def _dotted(context: Context, reference: Reference, in_each: bool) -> Diagnostic | None:
    """Return a diagnostic about a path with dots, as in ``{(input.name)}``. Return None if a step has a similar name."""
    first, dot, rest = reference.name.partition(".")
    known = first in context.steps or first in context.given or first == "input" or (first == "item" and in_each)
    if not dot or not known or context.suggestion(reference.name, context.dotted):
        return None
    right = f"{{({first})}}{path_of('.' + rest, _mark(context, reference))}"
    span = context.name_span(reference)
    whole = Span(span.start - 2, span.end + 2) if span else reference.span
    message = f"unknown step ({short(reference.name, 60)[1:-1]}); a path into ({first}) can't be written with dots"
    hint = f"for a part of `{first}`, write `{right}`"
    return context.diagnostic("LWT012", message, span or whole, hint, edits=[Edit(whole, right)] if span else [])


def _mark(context: Context, reference: Reference) -> str:
    """Return the quote that probably encloses the reference. The quote is inferred from the text before the reference."""
    before = context.script.source.text[max(0, reference.span.start - 2000) : reference.span.start]
    return "'" if re.search(r"""[(,=]\s*'[^'"]*\Z""", before) else '"'


def _unknown(context: Context, reference: Reference, step: Step) -> Diagnostic:
    span = context.name_span(reference)
    message = f"unknown step ({short(reference.name, 60)[1:-1]})"
    near = context.suggestion(reference.name, context.nameable)
    if near == step.id:  # a step can't refer to itself
        near = context.suggestion(reference.name, [name for name in context.nameable if name != step.id])
    hint = f"did you mean `{{({near})}}`?" if near else ""
    if not near:
        there = tuple(name for name in (*context.steps, *context.given) if name != step.id)
        steps, count = ", ".join(islice(there, _SHOWN)), len(there)
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        hint = f"a reference can name `input`{f' or one of the steps: {steps}{more}' if there else ''}"
    edits = [Edit(span, near)] if near and span else []
    return context.diagnostic("LWT012", message, span or reference.span, hint, edits=edits)


@lint("LWT022")
def item_outside_each(context: Context) -> Iterator[Diagnostic]:
    """Report ``{(item)}`` and ``{(index)}`` outside EACH."""
    for reference, step, each in context.uses:
        if reference.name in ("item", "index") and each is None and not _meant_as_each(context, step):
            hint = f'it exists only in the call inside an EACH: `({step.id})=EACH({{(input)}}, LLM("... {{({reference.name})}} ..."))`'
            message = f"`{{({reference.name})}}` is used outside the inner call of an EACH"
            yield context.diagnostic("LWT022", message, reference.span, hint)


def _meant_as_each(context: Context, step: Step) -> bool:
    """Return whether another rule reports the fault.

    This is so if the step is an EACH with a string in place of its inner call, or if the step's operation is unknown.
    """
    text = any(isinstance(argument, Template) for argument in step.call.arguments)
    return (context.maps(step.call) and text) or step.call.operation not in context.operations


@lint("LWT033")
def accessor_outside_schema(context: Context) -> Iterator[Diagnostic]:
    """Report paths into an answer with ``schema=`` that lead to no part of the schema."""
    schemas = {step.id: found for step in context.script.steps if (found := _schema_of(step)) is not None}
    for reference, _, _ in context.uses if schemas else ():
        schema: Any = schemas.get(reference.name)
        for accessor in reference.accessors:
            if not isinstance(schema, dict):
                break
            if isinstance(accessor, Index):
                schema = schema.get("items")
            elif isinstance(accessor, Key):
                properties = schema.get("properties")
                if not isinstance(properties, dict):
                    break  # the schema does not say which keys there are
                if accessor.value not in properties:
                    if not schema.get("additionalProperties") and "patternProperties" not in schema:
                        yield _no_key(context, reference, accessor, list(properties))
                    break
                schema = properties[accessor.value]


def _no_key(context: Context, reference: Reference, accessor: Key, keys: Sequence[str]) -> Diagnostic:
    near = context.suggestion(accessor.value, keys)
    message = f"the schema of ({reference.name}) has no key {short(accessor.value)}"
    hint = f"did you mean {short(near)}?" if near else f"its keys are {', '.join(map(short, keys[:_SHOWN]))}"
    return context.diagnostic("LWT033", message, reference.span if accessor.span == NOWHERE else accessor.span, hint)


def _schema_of(step: Step) -> Any:
    """Return the schema of the step's answer; None if the step has none, or if another rule reports it."""
    option = step.call.option("schema") if step.call.operation == "LLM" and step.call.options else None
    found = None if option is None else json_value(option)
    return found if isinstance(found, dict) else None


@lint("LWT033")
def accessor_on_scalar(context: Context) -> Iterator[Diagnostic]:
    """Report paths into an answer that has no parts, such as a number."""
    scalars: dict[str, str] = {}
    for step in context.script.steps:
        kind = step.call.option("type") if step.call.options else None
        if isinstance(kind, Choice) and len(kind.labels) > 1:
            scalars[step.id] = "the label of a choice"
        elif isinstance(kind, Word | Template):
            name = kind.value if isinstance(kind, Word) else kind.constant
            if name in ("int", "float", "bool"):
                scalars[step.id] = "true or false" if name == "bool" else "a number"
    if not scalars:
        return
    for reference, _, _ in context.uses:
        if reference.accessors and (what := scalars.get(reference.name)):
            is_word = what == "the label of a choice"
            if is_word and isinstance(reference.accessors[0], Slice):
                continue  # a slice of a label is allowed: it is a string
            where = reference.accessors[0].span
            message = f"the answer of ({reference.name}) is {what}, so it has no parts"
            hint = f"write `{{({reference.name})}}`, or give the step `type=json`"
            yield context.diagnostic("LWT033", message, reference.span if where == NOWHERE else where, hint)


@lint("LWT023")
def input_path(context: Context) -> Iterator[Diagnostic]:
    """Report references to the input if the run has none, and accessors that find nothing in the given input."""
    if context.input is MISSING:
        return
    if context.input is ABSENT:
        if uses := [use.reference for use in context.uses if use.reference.name == "input"]:
            others = len(uses) - 1
            also = f" (and {others} more reference{'s' if others > 1 else ''} to it)" if others else ""
            message = f"the script refers to the input, but the run has no input{also}"
            yield context.diagnostic("LWT023", message, uses[0].span, _GIVE_ONE)
        return
    lists: dict[int, Sequence[Any] | None] = {}
    for use in context.uses:
        reference = use.reference
        if reference.name == "input":
            fault = _walk(context, context.input, reference, "the input", None if use.each is None else 0)
            if isinstance(fault, Diagnostic):
                yield fault
        elif reference.name == "item" and use.each is not None:
            if id(use.each) not in lists:
                lists[id(use.each)] = _elements(context, use.each)
            yield from _in_items(context, use, lists[id(use.each)])
    yield from _not_lists(context)


def _not_lists(context: Context) -> Iterator[Diagnostic]:
    """Report EACH calls that iterate over something in the input that is not a list."""
    for call, _ in context.calls:
        source = _each_source(context, call)
        if source is None:
            continue
        value = _walk(context, context.input, source, "the input")
        if isinstance(value, Diagnostic):
            continue
        if isinstance(value, str):
            found = context.reading(value)
            value = found.value if isinstance(found, Reading) else value
        if not isinstance(value, list | tuple):
            message = f"EACH needs a list, but the given input has {kind_of(value)} here"
            yield context.diagnostic("LWT023", message, source.span, _lists_in(value, source))


def _lists_in(value: Any, source: Reference) -> str:
    if not isinstance(value, dict):
        return ""
    keys = [key for key, part in value.items() if isinstance(part, list)][:_SHOWN]
    return f"its lists are {', '.join(short(key, 40) for key in keys)}" if keys else ""


def _each_source(context: Context, call: Call) -> Reference | None:
    if not context.maps(call) or not call.arguments:
        return None
    source = call.arguments[0]
    return source if isinstance(source, Reference) and source.name == "input" else None


def _elements(context: Context, each: Call) -> Sequence[Any] | None:
    """Return the first elements that ``each`` iterates over. Return None if they do not come from the given input."""
    source = _each_source(context, each)
    value = _walk(context, context.input, source, "the input") if source else None
    return value[:_ITEMS] if isinstance(value, list | tuple) else None


def _in_items(context: Context, use: Use, elements: Sequence[Any] | None) -> Iterable[Diagnostic]:
    """Return a diagnostic if none of the elements has the path of a reference. The message describes the first element as an example."""
    if not elements or not use.reference.accessors:
        return ()
    first: Diagnostic | None = None
    for place, element in enumerate(elements):
        found = _walk(context, element, use.reference, "the item", place)
        if not isinstance(found, Diagnostic):
            return ()
        first = first or found
    return (first,) if first else ()


def _walk(context: Context, value: Any, reference: Reference, what: str, place: int | None = None) -> Any:
    """Return the value that the accessors find, or a diagnostic. The accessors work as in ``runtime.templates``.

    ``place`` is the value of ``[index]`` after a list: the index of the current item of an EACH.
    """
    for accessor in reference.accessors:
        if isinstance(value, str):
            found = context.reading(value)
            if isinstance(found, Reading) and (isinstance(found.value, list) or not isinstance(accessor, Slice)):
                value = found.value
            elif not isinstance(accessor, Slice):
                message = f"{what} is the string {short(value, 40)} here, which has no parts"
                return _nowhere(context, message, accessor, reference)
        if isinstance(accessor, Key) and accessor.value == "index" and isinstance(value, list) and place is not None:
            accessor = Index(place, span=accessor.span)
        fault = _fault(context, value, accessor, reference, what)
        if fault:
            return fault
        value = value[accessor.start : accessor.stop] if isinstance(accessor, Slice) else value[accessor.value]
    return value


def _nowhere(
    context: Context, message: str, accessor: Accessor, reference: Reference, *hints: str, new: str = ""
) -> Diagnostic:
    span = reference.span if accessor.span == NOWHERE else accessor.span
    edits = [Edit(span, new)] if new and accessor.span != NOWHERE else []
    return context.diagnostic("LWT023", message, span, *hints, edits=edits)


def _fault(context: Context, value: Any, accessor: Accessor, reference: Reference, what: str) -> Diagnostic | None:
    """Return a diagnostic if ``accessor`` finds nothing in ``value``."""
    if isinstance(accessor, Key):
        return _key_fault(context, value, accessor, reference, what)
    if isinstance(accessor, Slice) and isinstance(value, str):
        return None
    if not isinstance(value, list | tuple):
        hint = new = ""
        if isinstance(accessor, Index) and isinstance(value, dict) and str(accessor.value) in value:
            new = f'["{accessor.value}"]'
            hint = f"the object has a key with this name: write `{new}`"
        elif isinstance(value, dict):
            hint = _keys(value)
        message = f"{what} has {kind_of(value)} here, not a list"
        return _nowhere(context, message, accessor, reference, hint, new=new)
    if isinstance(accessor, Index) and not -len(value) <= accessor.value < len(value):
        count = f"{len(value)} element{'' if len(value) == 1 else 's'}"
        message = f"the list has no element {accessor.value}: it has {count}, and the first is 0"
        return _nowhere(context, message, accessor, reference)
    return None


def _key_fault(context: Context, value: Any, accessor: Key, reference: Reference, what: str) -> Diagnostic | None:
    shown = short(accessor.value, 60)
    if isinstance(value, list | tuple):
        digits = accessor.value.isascii() and accessor.value.isdigit()
        new = f"[{int(accessor.value)}]" if digits and len(accessor.value) < 19 else ""
        hint = f"write `{new}`" if new else "write `[0]` for the first element"
        message = f"{what} has a list of {len(value)} here, which has no key {shown}"
        return _nowhere(context, message, accessor, reference, hint, new=new)
    if not isinstance(value, dict):
        message = f"{what} has {kind_of(value)} here, which has no keys"
        return _nowhere(context, message, accessor, reference)
    if accessor.value in value:
        return None
    keys = [key for key in value if isinstance(key, str)]
    near = context.suggestion(accessor.value, keys[:10_000])
    new = "" if near is None or any(c in near for c in '"\\\n') else f'["{near}"]'
    return _nowhere(
        context,
        f"{what} has no key {shown} here",
        accessor,
        reference,
        f"did you mean `{new}`?" if new else "",
        _keys(value),
        new=new,
    )


def _keys(value: dict[Any, Any]) -> str:
    keys = [short(key, 40) for key in list(value)[:_SHOWN] if isinstance(key, str)]
    more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
    return f"the keys are {', '.join(keys)}{more}" if keys else "the object is empty"
