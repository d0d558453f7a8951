"""ANSWER: an iterative answer as a step of a script, with the run's models, limits, events and record."""

import json
from collections.abc import Mapping
from typing import Any

from blake3 import blake3

from ....adapters.llm.answers import read_json, unfenced
from ....lang.catalogue.operations import BUILTIN
from ....lang.trees.lwt import Call, Template
from ...answers.answer_results import Answered, AnswerRequest
from ...answers.service import answer
from ...errors import RequestError
from ...excerpts import clipped
from ...limits import OPTIONS
from ...results import Failed, Outcome, StepFailed
from ...templates import Scope, render
from .operation import Context, read_options

__all__ = ["run_answer"]

_ANSWER = BUILTIN["ANSWER"]
_NAMES = {"format": "resp_format", "criteria": "eval_crit", "threshold": "score_threshold"}
"""What a request calls the script's options where it calls them otherwise: the seed's names."""
_SHOWN = 300
"""Characters of a suggestion that a warning shows."""
_ASKED = ("iter_max", "threshold", "attempts", "judges", "template")


async def run_answer(call: Call, context: Context) -> Outcome:
    """Answer; the output is the text of the accepted answer, else of the best one, and what it lacks is a failed item.

    The value is that text, or the JSON value that it writes where a check asked for JSON. Each call is kept where the run is
    kept, and a run that is resumed makes none of them again.
    """
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], Template):
        raise StepFailed(
            Failed("operation", "ANSWER takes one instruction", f"for example {_ANSWER.example}", call.span)
        )
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
    """Return what is asked, with the templates filled in. Raises ``RequestError``, and ``StepFailed`` for a reference."""
    asked: dict[str, Any] = {_NAMES.get(name, name): options[name] for name in _ASKED if name in options}
    asked |= {_NAMES[name]: render(options[name], scope) for name in ("format", "criteria") if name in options}
    return AnswerRequest(render(instruct, scope), **asked, checks=tuple(options.get("check", ())))


def _refused(error: RequestError, call: Call) -> Failed:
    """Return why there can be no answer, with the option's name as scripts have it."""
    named = {seed: name for name, seed in _NAMES.items()} | {"checks": "check"}
    name = named.get(error.parameter, error.parameter)
    option = next((option for option in call.options if option.name == name), None)
    where = f"{name}=" if name in _ANSWER.options else name
    span = option.span if option is not None else call.span
    return Failed("operation", f"{where}: {error.message}", error.hint, span)


def _digest(request: AnswerRequest, options: Mapping[str, Any]) -> str:
    """Return a hash of all that goes into the step. How long to wait and how often to retry does not change an answer."""
    told = {name: value for name, value in options.items() if isinstance(value, str | int | float | list)}
    told = {name: value for name, value in told.items() if name not in ("timeout", "retries")}
    said = json.dumps(["ANSWER", request.instruct, request.resp_format, request.eval_crit, told], sort_keys=True)
    return blake3(said.encode()).hexdigest(length=16)


def _outcome(made: Answered, request: AnswerRequest, digest: str, call: Call, *, kept: bool) -> Outcome:
    text = made.final_answer
    if text is None:
        raise StepFailed(_failed(made, call), usage=made.usage, cost=made.cost, calls=made.calls)
    lacking = () if made.success else (Failed("partial", _lacking(made), span=call.span),)
    return Outcome(
        text, _value(text, request), made.usage, made.cost, made.calls, made.calls,
        reused=kept and not made.calls, input_hash=digest if made.success else "",
        failed_items=lacking,
    )  # fmt: skip


def _failed(made: Answered, call: Call) -> Failed:
    """Return why there is no answer: the failure of the last call where one is to blame."""
    last = made.iterations[-1].error if made.iterations else None
    kind = last.kind if last is not None else made.stopped or "answer"
    return Failed(kind, made.reason, last.hint if last is not None and last.hint not in made.reason else "", call.span)


def _lacking(made: Answered) -> str:
    """Say why the best answer is not an accepted one, with the first thing to do better."""
    best = made.iterations[made.best].evaluation if made.best is not None else None
    suggestions = best.improvement_suggestions if best is not None else ()
    return f"{made.reason} ({clipped(suggestions[0], _SHOWN)})" if suggestions else made.reason


def _value(text: str, request: AnswerRequest) -> Any:
    """Return the answer's value: what it writes where a check wants JSON and has it, else the text."""
    if not any(check.partition(":")[0].strip() in ("json", "schema") for check in request.checks):
        return text
    try:
        return read_json(unfenced(text).strip())
    except ValueError:
        return text  # the best answer so far is no JSON; what it lacks is told
