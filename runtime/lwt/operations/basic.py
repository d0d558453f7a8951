"""The operations CONST, EXPR and ANSWER, and the option ``when=``, which any step may have."""

import json
from collections.abc import Mapping
from typing import Any

from blake3 import blake3

from ....adapters.llm.answers import unfenced
from ....adapters.llm.json_schema import read_json
from ....lang.catalogue.operations import BUILTIN, COMMON_OPTIONS
from ....lang.embedded_code import EmbeddedCode, Inside, embedded_expression
from ....lang.evaluate.expr import ExprError, evaluate, truth
from ....lang.parse.expr import parse_expr
from ....lang.source import Span
from ....lang.trees.lwt import Call, Template, Text, Value
from ...answers.answer_results import Answered, AnswerRequest
from ...answers.service import answer
from ...errors import RequestError
from ...excerpts import clipped
from ...limits import OPTIONS
from ...results import Failed, Outcome, StepFailed
from ...templates import Scope, reference_text, render, text_of, value_of
from ..files_beside import invalid
from .operation import Context, constant, option_value, read_options


async def run_const(call: Call, context: Context) -> Outcome:
    """Return the constant."""
    if len(call.arguments) != 1:
        raise invalid("CONST takes one value", call.span)
    value = constant(call.arguments[0])
    return Outcome(text_of(value), value)


# EXPR computes a value from the values of other steps; ``when=`` is the condition of any step. Neither of them calls a model.

_EXPR = BUILTIN["EXPR"]
_LONGEST = 200
"""Maximum number of characters of a condition that a message shows."""


async def run_expr(call: Call, context: Context) -> Outcome:
    """Evaluate the expression. When a run is resumed, the expression is evaluated again from the saved values."""
    value = expr_value(call, context.scope)
    return Outcome(text_of(value), value)


def expr_value(call: Call, scope: Scope) -> Any:
    """Return the value of an EXPR call. Raises ``StepFailed``."""
    if len(call.arguments) != 1 or not isinstance(template := call.arguments[0], Template):
        raise invalid("EXPR takes one expression", call.span, f"for example {_EXPR.example}")
    if template.constant is None:
        hint = 'give the value a name: EXPR("n + 1", n={(a)})'
        raise invalid("an expression refers to values by their names", template.span, hint)
    names = {
        option.name: option_value(option.value, scope) for option in call.options if option.name not in COMMON_OPTIONS
    }  # fmt: skip
    return _evaluate_embedded(embedded_expression(template), names, template.span, scope)


def unmet(condition: Value, scope: Scope) -> str:
    """Return the reason why the condition skips its step; "" if the condition is true. Raises ``StepFailed``."""
    if not isinstance(condition, Template):
        raise invalid("when= takes a string, an expression", condition.span)
    inner = embedded_expression(condition)
    inside = next((part.reference for part in inner.parts if isinstance(part, Inside)), None)
    if inside is not None:
        hint = "remove the quotes around the reference"
        raise invalid("a reference in a condition is a value, not a text", inside.span, hint)
    value = _evaluate_embedded(
        inner, {name: value_of(part, scope) for name, part in inner.variables}, condition.span, scope
    )
    if truth(value):
        return ""
    said = "".join(part.value if isinstance(part, Text) else reference_text(part) for part in condition.parts)
    return f"its condition is false: {' '.join(said.split()) if len(said) <= _LONGEST else f'{said[:_LONGEST]}…'}"


def _evaluate_embedded(inner: EmbeddedCode, names: Mapping[str, Any], span: Span, scope: Scope) -> Any:
    """Return the value of an expression in the script. ``StepFailed`` shows references as the script writes them."""
    text = inner.text(lambda _: "")
    read = scope.expressions.get(text)
    if read is None:  # the text is still arriving, so no check has parsed it
        read = scope.expressions[text] = parse_expr(text)
    if read.expr is None:
        first = next((d for d in read.diagnostics if d.severity == "error"), None)
        message = "the expression is empty" if first is None else f"{first.message} ({first.code})"
        hint = "" if first is None else "; ".join(first.hints)
        raise StepFailed(Failed("expression", inner.with_references(message), inner.with_references(hint), span))
    try:
        return evaluate(read.expr, names)
    except ExprError as error:
        said = inner.with_references
        raise StepFailed(Failed("expression", said(error.message), said(error.hint), span)) from None


# ANSWER: an iterative answer as a step of a script, with the run's models, limits, events and record.

_ANSWER = BUILTIN["ANSWER"]
_NAMES = {"format": "resp_format", "criteria": "eval_crit", "threshold": "score_threshold"}
"""Maps the name of an option in scripts to the name of the request's parameter, for each option for which the two differ."""
_SHOWN = 300
"""Maximum characters of a suggestion in a warning."""
_ASKED = ("iter_max", "threshold", "attempts", "judges", "template")


async def run_answer(call: Call, context: Context) -> Outcome:
    """Answer iteratively. The output is the accepted answer. If none is accepted, the best answer is the output.

    The faults of the best answer are reported as a failed item. The value is the answer text, or its JSON value if a check
    requires JSON. Each call is saved with the run, so that resuming the run does not repeat the call.
    """
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], Template):
        raise invalid("ANSWER takes one instruction", call.span, f"for example {_ANSWER.example}")
    options = read_options(call, _ANSWER)
    try:
        request = _request(call.arguments[0], options, context.scope)
        digest, record = _digest(request, options), context.caller.record
        if record is not None and (earlier := record.recall(context.step, None, digest)) is not None:
            return earlier.again(digest)
        model, judge = options.get("model"), options.get("judge")
        made = await answer(
            request, context.caller, step=context.step, model=model, spec=context.spec if model is None else "",
            options={name: options[name] for name in OPTIONS if name in options},
            judges_models=(judge,) if judge is not None else (), ask=options.get("ask", "auto"),
            scale=options.get("scale", "auto"),
        )  # fmt: skip
    except RequestError as error:
        raise StepFailed(_refused(error, call)) from None
    for warning in made.warnings:
        context.caller.warn(context.step, warning)
    return _outcome(made, request, digest, call, kept=record is not None)


def _request(instruct: Template, options: Mapping[str, Any], scope: Scope) -> AnswerRequest:
    """Return the request with its templates rendered. Raises ``RequestError``, and ``StepFailed`` for an invalid reference."""
    asked: dict[str, Any] = {_NAMES.get(name, name): options[name] for name in _ASKED if name in options}
    asked |= {_NAMES[name]: render(options[name], scope) for name in ("format", "criteria") if name in options}
    return AnswerRequest(render(instruct, scope), **asked, checks=tuple(options.get("check", ())))


def _refused(error: RequestError, call: Call) -> Failed:
    """Return the failure for an invalid request; the message has the option name that scripts use."""
    named = {seed: name for name, seed in _NAMES.items()} | {"checks": "check"}
    name = named.get(error.parameter, error.parameter)
    option = next((option for option in call.options if option.name == name), None)
    where = f"{name}=" if name in _ANSWER.options else name
    span = option.span if option is not None else call.span
    return Failed("operation", f"{where}: {error.message}", error.hint, span)


def _digest(request: AnswerRequest, options: Mapping[str, Any]) -> str:
    """Return a hash of all inputs of the step, except timeout and retries, which do not change an answer."""
    told = {name: value for name, value in options.items() if isinstance(value, str | int | float | list)}
    told = {name: value for name, value in told.items() if name not in ("timeout", "retries")}
    said = json.dumps(["ANSWER", request.instruct, request.resp_format, request.eval_crit, told], sort_keys=True)
    return blake3(said.encode()).hexdigest(length=16)


def _outcome(made: Answered, request: AnswerRequest, digest: str, call: Call, *, kept: bool) -> Outcome:
    text = made.final_answer
    if text is None:  # no answer: report the last call's failure, if any
        last = made.iterations[-1].error if made.iterations else None
        kind = last.kind if last is not None else made.stopped or "answer"
        hint = last.hint if last is not None and last.hint not in made.reason else ""
        failed = Failed(kind, made.reason, hint, call.span)
        raise StepFailed(failed, usage=made.usage, cost=made.cost, calls=made.calls)
    failures: tuple[Failed, ...] = ()
    if not made.success:
        best = made.iterations[made.best].evaluation if made.best is not None else None
        suggestions = best.improvement_suggestions if best is not None else ()
        reason = f"{made.reason} ({clipped(suggestions[0], _SHOWN)})" if suggestions else made.reason
        failures = (Failed("partial", reason, span=call.span),)
    return Outcome(
        text, _value(text, request), made.usage, made.cost, made.calls, made.calls,
        reused=kept and not made.calls, input_hash=digest if made.success else "",
        failed_items=failures,
    )  # fmt: skip


def _value(text: str, request: AnswerRequest) -> Any:
    """Return the value of an answer: its JSON value if a check requires JSON and the answer is valid JSON, else the text."""
    if not any(check.partition(":")[0].strip() in ("json", "schema") for check in request.checks):
        return text
    try:
        return read_json(unfenced(text).strip())
    except ValueError:
        return text  # the best answer is not valid JSON; the fault is reported
