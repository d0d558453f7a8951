"""What ``answer`` does once all is known: models, the iterations, their display, the end."""

import asyncio
import os
import sys
from collections.abc import Mapping

from attrs import evolve

from ....answers.answer_results import Answered, AnswerRequest
from ....answers.judges import can_judge
from ....answers.service import answer, ready
from ....answers.templates import Template
from ....errors import RequestError
from ....events import Events, Warned
from ....models.caller import Caller
from ....models.wiring import default_spec
from ....results import Trace
from ....runs.debug_log import DebugLog, level
from ....session.workspace import Models, close_models
from ...counting import Calls
from ...models import open_models
from ..execution.interrupt import cancelling
from ..shared.display import Display
from ..shared.output import is_terminal, say
from .asked import AnswerAsked, Typed, misused
from .opening import open_examples
from .progress import Lines
from .summary import finish

__all__ = ["run"]

_TOO_SMALL = "warning: the local model is too small to judge; say by --check what an answer must have, or name a judge by --judge-llm"


def run(asked: AnswerAsked, request: AnswerRequest, where: Typed, templates: Mapping[str, Template]) -> int:
    """Answer the request and return the exit code. Raises ``NotConfigured`` and ``Misused``."""
    try:
        ready(request, templates=templates, options=asked.options, time_limit=asked.time_limit)
    except RequestError as error:
        raise misused(error, where) from None
    calls = Calls()
    shown = _display(calls)
    note = shown.note if shown is not None else say
    spec = asked.llm or default_spec(os.environ)
    judges = {each: each for each in asked.judges if each != spec}
    models = open_models(spec, judges, asked.limits, asked.max_concurrency, lambda text: note(f"warning: {text}"))
    if request.judges and not all(map(can_judge, asked.judges or (spec,))):
        note(_TOO_SMALL)
    instead = (
        f"the request names the model {where.model!r}; {spec} answered"
        if where.model and _named(spec) != where.model
        else ""
    )
    if instead:
        note(f"warning: {instead}")
    events = Events()
    for subscriber in (calls, shown or DebugLog(level())):
        events.subscribe(subscriber)
    try:
        answered = asyncio.run(_answered(asked, request, templates, models, events, shown))
    finally:
        if shown is not None:
            shown.stop()
    if instead:
        told = {**answered.told, "requested_model": where.model}
        answered = evolve(answered, told=told, warnings=(instead, *answered.warnings))
    return finish(answered, request.score_threshold, calls.cached, asked.form)


def _named(spec: str) -> str:
    """Return the name of a spec's model: ``gpt-4o`` of ``openai:gpt-4o`` and ``https://host/v1#gpt-4o``."""
    return spec.rpartition("#")[2] if "#" in spec else spec.partition(":")[2]


def _display(calls: Calls) -> Display | None:
    """Return the display: live on a terminal, lines in a pipe, none beside the debug log."""
    if level():
        return None
    if not is_terminal(sys.stderr):
        return Lines()
    from .screen import Screen  # brings rich, which a pipe does not need

    return Screen(calls)


async def _answered(
    asked: AnswerAsked,
    request: AnswerRequest,
    templates: Mapping[str, Template],
    models: Models,
    events: Events,
    shown: Display | None,
) -> Answered:
    cancel = asyncio.Event()
    note, stop = (say, None) if shown is None else (shown.note, shown.stop)
    named = {**models.named, models.spec: models.default}  # a judge may be the model that writes
    caller = Caller(models.default, named, events, Trace(), asked.max_concurrency)
    examples = open_examples(asked.examples, lambda text: events.emit(Warned("", text)))
    with cancelling(cancel, note, stop):
        try:
            return await answer(
                request, caller, spec=models.spec, judges_models=asked.judges, events=events, cancel=cancel,
                time_limit=asked.time_limit, templates=templates, examples=examples, options=asked.options,
            )  # fmt: skip
        finally:
            if examples is not None:
                await examples.aclose()
            await close_models(models)
