"""EXPR: a value computed from other steps' values; and ``when=``, the condition of any step. Neither makes a call."""

from collections.abc import Mapping
from typing import Any

from ...lang.catalogue.operations import BUILTIN, COMMON_OPTIONS
from ...lang.embedded import Embedded, Inside, embedded_expression
from ...lang.evaluate.expr import ExprError, evaluate, truth
from ...lang.parse.expr import parse_expr
from ...lang.source import Span
from ...lang.trees.lwt import Call, ListValue, ObjectValue, Reference, Template, Text, Value
from ..results import Failed, Outcome, StepFailed
from ..templates import Scope, text_of, value_of, written
from .arguments import constant
from .operation import Context

__all__ = ["computed", "given", "run_expr", "unmet"]

_EXPR = BUILTIN["EXPR"]
_LONGEST = 200
"""Characters of a condition that are told."""


async def run_expr(call: Call, context: Context) -> Outcome:
    """Compute the expression. It is computed anew when a run is resumed, from the values that were kept."""
    value = computed(call, context.scope)
    return Outcome(text_of(value), value)


def computed(call: Call, scope: Scope) -> Any:
    """Return the value of an EXPR call. Raises ``StepFailed``."""
    if len(call.arguments) != 1 or not isinstance(template := call.arguments[0], Template):
        raise StepFailed(Failed("operation", "EXPR takes one expression", f"for example {_EXPR.example}", call.span))
    if template.constant is None:
        hint = 'give the value a name: EXPR("n + 1", n={(a)})'
        raise StepFailed(Failed("operation", "an expression refers to values by their names", hint, template.span))
    names = {
        option.name: given(option.value, scope) for option in call.options if option.name not in COMMON_OPTIONS
    }  # fmt: skip
    return _evaluated(embedded_expression(template), names, template.span, scope)


def given(value: Value, scope: Scope) -> Any:
    """Return what an option that takes references and constants is given, in lists and objects too. Raises ``StepFailed``."""
    if isinstance(value, Reference):
        return value_of(value, scope)
    if isinstance(value, ListValue):
        return [given(item, scope) for item in value.items]
    if isinstance(value, ObjectValue):
        return {str(constant(key)): given(entry, scope) for key, entry in value.entries}
    return constant(value)


def unmet(condition: Value, scope: Scope) -> str:
    """Say why a step with this condition does not run; nothing where it holds. Raises ``StepFailed``."""
    if not isinstance(condition, Template):
        raise StepFailed(Failed("operation", "when= takes a string, an expression", span=condition.span))
    inner = embedded_expression(condition)
    inside = next((part.reference for part in inner.parts if isinstance(part, Inside)), None)
    if inside is not None:
        hint = "leave out the quotes around the reference"
        raise StepFailed(Failed("operation", "a reference in a condition is a value, not a text", hint, inside.span))
    value = _evaluated(inner, {name: value_of(part, scope) for name, part in inner.variables}, condition.span, scope)
    if truth(value):
        return ""
    said = "".join(part.value if isinstance(part, Text) else written(part) for part in condition.parts)
    return f"its condition is false: {' '.join(said.split()) if len(said) <= _LONGEST else f'{said[:_LONGEST]}…'}"


def _evaluated(inner: Embedded, names: Mapping[str, Any], span: Span, scope: Scope) -> Any:
    """Return the value of an expression of the script, or fail with what is wrong in the script's words."""
    text = inner.text(lambda _: "")
    read = scope.expressions.get(text)
    if read is None:  # the check reads what it checks; a script that is still arriving has none
        read = scope.expressions[text] = parse_expr(text)
    if read.expr is None:
        first = next((d for d in read.diagnostics if d.severity == "error"), None)
        message = "there is no expression" if first is None else f"{first.message} ({first.code})"
        hint = "" if first is None else "; ".join(first.hints)
        raise StepFailed(Failed("expression", inner.in_words_of_script(message), inner.in_words_of_script(hint), span))
    try:
        return evaluate(read.expr, names)
    except ExprError as error:
        said = inner.in_words_of_script
        raise StepFailed(Failed("expression", said(error.message), said(error.hint), span)) from None
