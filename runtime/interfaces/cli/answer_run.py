"""The preparation of ``answer`` before any cost: the request assembled and checked, templates read."""

import asyncio
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, fields

from ....lang.diagnostic import nearest
from ...answers.answer_results import JUDGES, Answered, AnswerRequest
from ...answers.evaluation import read_check
from ...answers.judges import can_judge
from ...answers.service import answer, ready
from ...answers.templates import Template, read_templates
from ...api.checks import Checked
from ...api.workspace import Models, close_models
from ...errors import RequestError
from ...events import Events, Warned
from ...models.caller import Caller
from ...models.factory import default_spec
from ...results import Trace
from ...runs.debug_log import DebugLog, level
from ..figures import Calls
from ..options import open_models
from .answer_view import AnswerAsked, Lines, Typed, finish, misused
from .display import Display, cancelling
from .inputs import STDIN, Unreadable, only_one_stdin, read_input, read_source, show
from .output import Exit, Misused, is_terminal, say

if TYPE_CHECKING:
    from ...answers.templates import KeptExamples

# Assembles a request: options override a file. Nothing is guessed: errors are reported with their place.

_NAMES = tuple(field.name for field in fields(AnswerRequest))
_OWN_MODEL = (None, "gpt-4o")
"""Values in a request that leave the choice of model to the caller: the seed's own default counts as missing."""
_EXAMPLE = '{"instruct": "Explain tides", "eval_crit": "Names the moon"}'


def read_request(asked: AnswerAsked) -> tuple[AnswerRequest, Typed]:
    """Return the request, and the source of each part. Raises ``Misused``, and ``Unreadable`` for a file or stdin."""
    typed = dict(asked.typed)
    only_one_stdin([typed.get("instruct"), asked.request, asked.templates])
    instruct = typed.get("instruct")
    if instruct is None and asked.request is None:
        hint = 'knotwork answer "Explain tides" --criteria "Names the moon", or --request FILE'
        raise Misused("there is nothing to answer", hint)
    if instruct == STDIN:
        typed["instruct"] = read_source(STDIN).text.strip()
    elif instruct is not None:
        _no_file(instruct)
    said = _from_file(asked.request) if asked.request is not None else {}
    named = said.pop("model", None) or ""
    where = Typed(frozenset(typed), _shown(asked.request) if asked.request is not None else "", named)
    values = {**said, **typed}
    if "instruct" not in values:
        raise Misused(f"{where.file}: there is no instruct", f"a request is like {_EXAMPLE}")
    if asked.judges:
        if typed.get("judges") == 0:
            raise Misused("--judges 0: no judge is asked, and --judge-llm names one", "leave one of them out")
        if "judges" not in typed:
            if len(asked.judges) > JUDGES:
                raise Misused(f"--judge-llm: {len(asked.judges)} are too many", f"at most {JUDGES}")
            values["judges"] = len(asked.judges)
    try:
        values["checks"] = _checks(values.get("checks", ()))
        request = AnswerRequest(**values)
    except RequestError as error:
        raise misused(_nearer(error, values), where) from None
    return _judged(request, where, bool(typed.get("judges") or asked.judges)), where


def _judged(request: AnswerRequest, where: Typed, wanted: bool) -> AnswerRequest:
    """Return the request, without judges if it has no criteria; ``wanted``: an option requested judges. Raises ``Misused``."""
    both = '--criteria "..." has a model judge it, --check words:40..120 needs none'
    if not request.eval_crit.strip() and not request.checks:
        raise Misused("nothing says what a good answer is", both)
    if not request.judges and not request.checks:
        raise Misused(f"{where.place('judges')}: 0 judges and no checks: nothing evaluates the answer", both)
    if not request.eval_crit.strip() and request.judges:
        if wanted:
            raise Misused(
                "there are judges, and no criteria for them to go by",
                '--criteria "...", or --judges 0 for checks alone',
            )
        return evolve(request, judges=0)
    return request


def _nearer(error: RequestError, values: Mapping[str, Any]) -> RequestError:
    """Return the error with the probable intended value: 85 for 0.85."""
    given = values.get("score_threshold")
    if error.parameter == "score_threshold" and isinstance(given, int | float) and 1 < given <= 100:
        return RequestError(error.parameter, error.message, error.hint or f"{given:g} in a hundred is {given / 100:g}")
    return error


def _checks(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple):
        raise RequestError(
            "checks", f"a list of checks is wanted, not {type(given).__name__}", 'such as ["words:40..120"]'
        )
    for number, check in enumerate(given):
        place = f"checks[{number}]"
        if not isinstance(check, str):
            raise RequestError(place, f"a text is wanted, not {type(check).__name__}", "such as words:40..120")
        try:
            read_check(check)
        except RequestError as error:
            raise RequestError(place, error.message, error.hint) from None
    return tuple(given)


def _no_file(instruct: str) -> None:
    """Refuse a file name in place of the instruction."""
    if not instruct or any(character.isspace() for character in instruct) or not os.path.isfile(instruct):
        return
    name = shlex.quote(instruct)
    if instruct.endswith(".json"):
        raise Misused(
            f"{instruct} is a file, not an instruction", f"a request in a file: knotwork answer --request {name}"
        )
    raise Misused(f"{instruct} is a file, not an instruction", f"an instruction in a file: knotwork answer - < {name}")


def _shown(name: str) -> str:
    return "<stdin>" if name == STDIN else name


def _from_file(name: str) -> dict[str, Any]:
    """Read the part of a request that is stored in a file. Raises ``Unreadable`` and ``Misused``."""
    try:
        said = read_input(name)
    except Unreadable as error:
        hints = tuple(hint for hint in error.diagnostic.hints if "knotwork run" not in hint)
        if error.diagnostic.code == "KW004":
            hints = (*hints, f"a request is like {_EXAMPLE}")
        raise Unreadable(evolve(error.diagnostic, hints=hints), error.source) from None
    shown = _shown(name)
    if not isinstance(said, dict):
        raise Misused(f"{shown}: a request is a JSON object, not {_kind(said)}", f"such as {_EXAMPLE}")
    for key in said:
        if key not in _NAMES and key != "model":
            like = nearest(key, _NAMES)
            raise Misused(
                f"{shown}: there is no key {key}", f"did you mean {like}?" if like else f"there are {', '.join(_NAMES)}"
            )
    model = said.get("model")
    if model not in _OWN_MODEL:
        # A file may come from someone else, and an address receives a key: only the user may set it.
        raise Misused(
            f"{shown}: model: a request can't choose {model!r} here", "leave it out, and name the model by --llm SPEC"
        )
    return said


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")


# Opens the files that ``answer`` names besides the request: custom templates, examples.

_FORM = '{"NAME": {"generator": "...", "evaluator": "...", "feedback": "..."}}'


def open_templates(name: str | None) -> Mapping[str, Template]:
    """Return the templates of a file, none if not given. Raises ``Unreadable`` and ``Misused``."""
    if name is None:
        return {}
    try:
        return read_templates(read_input(name))
    except Unreadable as error:
        hint = (
            (f"templates are a JSON object: {_FORM}",) if error.diagnostic.code == "KW004" else error.diagnostic.hints
        )
        raise Unreadable(evolve(error.diagnostic, hints=hint), error.source) from None
    except RequestError as error:
        raise Misused(f"{name}: {error.message}", error.hint) from None


def open_examples(name: str | None, warn: Callable[[str], None]) -> "KeptExamples | None":
    """Return the examples of a file, created on use; None if not given. An unusable file is a warning."""
    if name is None:
        return None
    from ...answers.templates import KeptExamples  # imports SQLite, which most runs do not need

    return KeptExamples(Path(name), warn=warn)


def perform(asked: AnswerAsked) -> int:
    """Run the command and return the exit code. Raises ``Misused``."""
    try:
        request, where = read_request(asked)
        templates = open_templates(asked.templates)
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("nothing was asked")
        return Exit.ERRORS
    # imports the event loop, which was not needed before

    return run(asked, request, where, templates)


# The run of ``answer`` after its preparation: models, iterations, display, end.

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
    """Return the display: live on a terminal, lines in a pipe, none if the debug log is on."""
    if level():
        return None
    if not is_terminal(sys.stderr):
        return Lines()
    from .answer_view import Screen  # imports rich, which a pipe does not need

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
    named = {**models.named, models.spec: models.default}  # the writing model may also be a judge
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
