"""Answering a request: what it needs is put together and checked, then the rounds begin. See ``docs/design/loops.md#iterative-answers``.

Nothing that a model does raises here: failures are in the result.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from attrs import evolve

from ..calls import Caller
from ..ending import Ending
from ..events import Events
from ..refusals import RequestError
from ..settings import call_options, check_listeners, seconds
from .asking import Asker
from .evaluating import Evaluating
from .evaluators import as_evaluators, check_evaluators
from .generating import Ask, Generator, way_of_asking
from .judging import Panel, Scale, can_judge, scale_of
from .requests import AnswerRequest
from .results import Answered
from .rounds import Examples, OnIteration, Rounds
from .templates import Template, find_template

__all__ = ["TOO_SMALL", "Examples", "OnIteration", "answer", "ready"]

TOO_SMALL = (
    "the local model is too small to judge, it finds everything good: give checks and judges=0, or a larger model"
)
"""The warning of an answer whose judge is the local model."""


async def answer(
    request: AnswerRequest,
    caller: Caller,
    *,
    step: str = "",
    model: str | None = None,
    spec: str = "",
    options: Mapping[str, Any] | None = None,
    judges_models: Sequence[str | None] = (),
    evaluators: Sequence[Callable[[str], Any]] = (),
    templates: Mapping[str, Template] | None = None,
    ask: Ask = "auto",
    scale: Scale = "auto",
    events: Events | None = None,
    cancel: asyncio.Event | None = None,
    time_limit: float | None = None,
    on_iteration: OnIteration | None = None,
    examples: Examples | None = None,
) -> Answered:
    """Answer ``request`` with the models of ``caller``.

    ``step``: the script's, "" outside of one. ``model``: the name of the caller's model that writes (None: its own), ``spec`` that
    model's spec, by which ``ask`` and ``scale`` choose where they are "auto". ``judges_models``: names of the models that judge, by
    turns (none: the one that writes); a name that is a spec chooses the scale. ``options``: those of ``settings.OPTIONS``, for each call.
    ``evaluators``: Python callables, as ``evaluators.as_evaluator`` takes them. ``templates`` stand beside the built-in ones.
    ``events``: the caller's own if None. ``cancel``, when it is set, and ``time_limit`` (seconds) stop the calls under way; the best of
    the finished iterations is the answer then. Where the caller has a record, each finished call is kept in it and found again.

    Raises ``RequestError`` before any call, and what ``on_iteration`` raises.
    """
    request = ready(
        request,
        evaluators=evaluators,
        templates=templates,
        options=options,
        ask=ask,
        scale=scale,
        time_limit=time_limit,
    )
    template = find_template(request.template, templates or {})
    check_listeners(events, cancel, on_iteration)
    called, asked = as_evaluators(evaluators), call_options(options or {})
    heard = caller.events if events is None else events
    asker = Asker(caller, step, heard)
    panel, warnings = None, list[str]()
    if request.judges:
        models = tuple(judges_models) or (model,)
        specs = [spec if name == model else name or "" for name in models]
        scales = [scale_of(scale)] * len(models)
        warnings = [] if all(map(can_judge, specs)) else [TOO_SMALL]
        panel = Panel(asker, request, template, models, scales, asked)
    generator = Generator(asker, request, template, way_of_asking(ask, spec), model, asked)
    evaluating = Evaluating((*check_evaluators(request.checks), *called), panel, request.score_threshold)
    told = _told(request, spec or model, judges_models, [each.name for each in called])
    rounds = Rounds(
        request,
        asker,
        generator,
        evaluating,
        heard,
        Ending(cancel, seconds(time_limit)),
        on_iteration,
        examples,
        told,
        warnings=warnings,
    )
    return await rounds.run()


def ready(
    request: AnswerRequest,
    *,
    evaluators: Sequence[Callable[[str], Any]] = (),
    templates: Mapping[str, Template] | None = None,
    options: Mapping[str, Any] | None = None,
    ask: Ask = "auto",
    scale: Scale = "auto",
    time_limit: float | None = None,
) -> AnswerRequest:
    """Return the request as it will be answered, without asking anybody: blank criteria beside checks mean no judge.

    Raises ``RequestError`` for whatever ``answer`` would refuse.
    """
    call_options(options or {})
    seconds(time_limit)
    for parameter, value, known in (("ask", ask, get_args(Ask)), ("scale", scale, get_args(Scale))):
        if value not in known:
            raise RequestError(parameter, f"{value!r:.60} is none of: {', '.join(known)}")
    find_template(request.template, templates or {})
    checked = bool(check_evaluators(request.checks)) + bool(as_evaluators(evaluators))
    if request.judges and not request.eval_crit.strip():
        if not checked:
            raise RequestError("eval_crit", "a judge needs criteria", "say what a good answer is, or give checks")
        return evolve(request, judges=0)
    if not request.judges and not checked:
        raise RequestError("judges", "without judges nothing evaluates an answer", "give checks, or judges=1 or more")
    return request


def _told(
    request: AnswerRequest, model: str | None, judges: Sequence[str | None], evaluators: Sequence[str]
) -> dict[str, Any]:
    """Return what else the response's metadata says."""
    told: dict[str, Any] = {
        "model": model, "template": request.template, "iter_max": request.iter_max,
        "score_threshold": request.score_threshold, "attempts": request.attempts, "judges": request.judges,
        "checks": list(request.checks),
    }  # fmt: skip
    if judges and request.judges:
        told["judge_models"] = list(judges)
    if evaluators:
        told["evaluators"] = list(evaluators)
    return told
