"""Rules about constants used instead of fields: fields in quotes, numbers, and variables that hold the name of a field."""

import re
from collections.abc import Iterator

from ...catalogue.value_functions import VALUE_FUNCTIONS
from ...diagnostic import Diagnostic, Edit
from ...printer.gasl_printer import format_condition, format_key
from ...trees import Node, gasl, walk
from ...trees.conditions import Call, Comparison, Constant, Field, NullTest, Value, Variable
from .bare_names import is_field, near_field
from .conditions import kind_of_value, word_of
from .context import Context, Step, lint
from .fields import FieldRead, Scope, is_constant, leaves_of, values_of

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


@lint("GASL080")
def constant_test(context: Context) -> Iterator[Diagnostic]:
    """Report tests that contain neither a field nor a variable."""
    for step in context.steps:
        for leaf, scope in leaves_of(context, step):
            test = leaf.test
            calls = (node for node in walk(test) if isinstance(node, Call))
            if not is_constant(test) or any(
                call.function not in VALUE_FUNCTIONS or not call.arguments for call in calls
            ):
                continue
            message = "two constants are compared" if isinstance(test, Comparison) else "a constant is tested for null"
            hints, edits = unquoted(context, test if isinstance(test, NullTest) else test.left, scope, certain=False)
            hint = "write the name of a field without quotes, or ${name} for a variable"
            yield context.diagnostic("GASL080", message, test.span, *(hints if edits else (hint,)), edits=edits)


@lint("GASL094")
def constant_value(context: Context) -> Iterator[Diagnostic]:
    """Report values that are the same for every item although the command needs a field of the items."""
    for step in context.steps:
        clauses = dict(_clauses(step.command))
        told: set[int] = set()
        for value, scope in values_of(step):
            clause = clauses.get(id(value), "")
            if not clause or id(value) in told or any(isinstance(node, Field) for node in walk(value)):
                continue
            told.add(id(value))
            if any(isinstance(node, Variable) for node in walk(value)):
                yield from _same_variable(context, step, value, clause)
            elif clause == "FIELDS":
                yield from _constant_column(context, value, scope)
            else:
                yield from _same_constant(context, step, value, scope, clause)


def _clauses(command: gasl.Command) -> Iterator[tuple[int, str]]:
    """Yield the Python ``id()`` of each value of a command, and the keyword or the function before the value."""
    if isinstance(command, gasl.Join | gasl.SetOperation):
        for pair in command.on:
            yield from ((id(value), "ON") for value in (pair.left, pair.other))
    elif isinstance(command, gasl.Measure):
        yield id(command.weight), "BY"
    for part, word in (("columns", "FIELDS"), ("by", "BY"), ("order", "ORDER BY"), ("per", "PER")):
        listed = getattr(command, part, ())
        for each in listed if isinstance(listed, tuple) else (listed,):
            yield id(each.value if isinstance(each, gasl.NamedValue | gasl.Order) else each), word
    for each in getattr(command, "computations", ()):
        yield id(each.value), each.function


def _same_variable(context: Context, step: Step, value: Value, clause: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic for a value that contains variables but no fields. In COUNT and AGGREGATE, it is a warning."""
    if clause not in ("ORDER BY", "PER", "ON", "BY") or isinstance(step.command, gasl.Unnest | gasl.Measure):
        return
    shown = format_condition(value)[:60]
    message = f"{clause} needs a field of the items, but {shown} is the same for all of them"
    hint = "a variable holds a value, not the name of a field: write the name of the field"
    if clause == "ON" and any(pair.right is not None for pair in getattr(step.command, "on", ())):
        hint = "write ON with a field of each side; SELECT ... WHERE compares a field with a variable"
    is_label = isinstance(step.command, gasl.Count | gasl.Aggregate)
    yield context.diagnostic("GASL094", message, value.span, hint, severity="warning" if is_label else None)


def _same_constant(context: Context, step: Step, value: Value, scope: Scope, clause: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic for a value that contains neither fields nor variables."""
    whole = isinstance(value, Constant)
    if isinstance(step.command, gasl.Measure) and not (whole and isinstance(value.value, str | bool)):  # type: ignore[union-attr]
        return  # BY 1: no weights
    shown = format_condition(value)[:60]
    message = f"{clause} needs a field of the items, but {shown} is the same for all of them"
    if isinstance(value, Constant):
        message = f"{clause} needs a field, but {shown} is a {word_of(kind_of_value(value.value))}"
    if clause == "count" and whole:
        edits = [context.replaced(value.span, "")] if not isinstance(value.value, str) else []  # type: ignore[union-attr]
        if edits:
            yield context.diagnostic(
                "GASL094", message, value.span, "write count() for the number of items", edits=edits
            )
            return
    hints, edits = unquoted(context, value, scope, certain=whole)
    if not hints:
        hints = ["write the name of a field; a name that begins with a digit needs backticks"]
        if not whole or isinstance(value.value, str):  # type: ignore[union-attr]
            hints = ["write the name of a field without quotes"]
        if isinstance(value, Constant) and isinstance(value.value, bool):
            hints = [f"write `{shown}` for a field of this name"]
        elif clause == "sum":
            hints = ["write count() for the number of items, or the name of a field"]
    yield context.diagnostic("GASL094", message, value.span, *hints, edits=edits)


def _constant_column(context: Context, value: Value, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a warning for a column whose constant text is the name of a field."""
    _, edits = unquoted(context, value, scope, certain=False)
    if edits and isinstance(value, Constant):
        shown = format_condition(value)[:60]
        message = f"the column has the text {shown} in every row, not the field of this name"
        hint = f"write {edits[0].text} for the field: names of fields have no quotes"
        yield context.diagnostic("GASL094", message, value.span, hint, edits=edits, severity="warning")


def unquoted(context: Context, value: Node, scope: Scope, *, certain: bool) -> tuple[list[str], list[Edit]]:
    """Return hints and an edit for a value that contains a single string.

    The string may be a field in quotes. The edit is offered if the items have this field. If ``certain`` is true, the edit is
    also offered if the fields of the items are unknown.
    """
    texts = [node for node in walk(value) if isinstance(node, Constant) and isinstance(node.value, str)]
    if len(texts) != 1:
        return [], []
    (text,) = texts
    path = tuple(text.value.split(".")) if _PATH.fullmatch(text.value) else (text.value,)
    if not text.value.strip() or "\n" in text.value:
        return [], []
    written = format_key(Field(path))
    known = is_field(context, FieldRead(Field(path), scope))
    if known or (known is None and certain):
        return [f"write {written}: names of fields have no quotes"], [context.replaced(text.span, written)]
    if known is None:
        return [], []
    near = near_field(context, scope, text.value)
    hint = f"did you mean the field {format_key(Field((near,)))}?" if near else "these items have no field of this name"
    return [f"names of fields have no quotes; {hint}"], []
