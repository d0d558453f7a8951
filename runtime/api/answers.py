"""``knotwork.answers``: iterative answers in Python. A model writes an answer, which is evaluated and improved until it is good enough.

The main names are ``generate_answer`` (also ``knotwork.generate_answer``) and ``IterativeAnswerService``. See
``docs/design/loops.md#iterative-answers``. Everything is loaded on first use.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import check_names, load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...adapters.llm.budget import Price
    from ..answers.answer_results import Answered, AnswerFailed, AnswerRequest, Candidate, Evaluation, Fault, Iteration
    from ..answers.answer_results import points as points
    from ..answers.evaluation import check_texts as check_texts
    from ..answers.evaluation import read_check
    from ..answers.generator import Ask
    from ..answers.judges import Scale
    from ..answers.service import TOO_SMALL as TOO_SMALL
    from ..answers.service import Examples, OnIteration
    from ..answers.templates import Template, read_templates
    from ..errors import RequestError
    from ..events import Events
    from .clients import Warnings

    class Settings(TypedDict, total=False):
        """Optional settings of ``generate_answer``, described in its docstring."""

        llm: Any
        attempts: int
        judges: int | str | Sequence[Any] | Any
        checks: Sequence[str]
        evaluators: Sequence[Callable[[str], Any]]
        template: str
        templates: Mapping[str, Any] | str | Path | None
        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Price | tuple[float, float] | None
        rate: float | None
        cache: str | Path | None
        examples: str | Path | None
        events: Events | None
        cancel: asyncio.Event | None
        time_limit: float | None
        on_iteration: OnIteration | None
        ask: Ask
        scale: Scale
        max_concurrency: int | Literal["auto"]
        answer_tokens: int | None
        temperature: float
        seed: int
        stop: Sequence[str]
        timeout: float
        retries: int


__all__ = [
    "AnswerFailed", "AnswerRequest", "Answered", "Candidate", "Evaluation", "Fault", "Iteration", "IterativeAnswerService",
    "RequestError", "Template", "generate_answer", "generate_answer_sync", "read_check", "read_templates",
]  # fmt: skip

_TYPES = {
    **{name: "runtime.answers.answer_results" for name in ("AnswerFailed", "Answered", "Candidate", "Evaluation", "Fault", "Iteration")},
    **{name: "runtime.answers.templates" for name in ("Template", "read_templates")},
    "AnswerRequest": "runtime.answers.answer_results", "points": "runtime.answers.answer_results",
    "TOO_SMALL": "runtime.answers.service", "RequestError": "runtime.errors", "read_check": "runtime.answers.evaluation",
    "check_texts": "runtime.answers.evaluation",
}  # fmt: skip


if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


async def generate_answer(
    instruct: str,
    resp_format: str = "",
    eval_crit: str = "",
    iter_max: int = 3,
    score_threshold: float = 0.8,
    model: Any = None,
    **settings: "Unpack[Settings]",
) -> "Answered":
    """Answer ``instruct`` in at most ``iter_max`` (1 to 10) iterations. Each iteration writes an answer and scores the answer
    according to ``eval_crit``.

    An answer that scores ``score_threshold`` (0.0 to 1.0) or more is accepted. Otherwise the best answer is returned with ``success``
    false. ``model`` (or ``llm=``) is a spec (``openai:MODEL``, ``local`` ...) or an object with ``async generate(prompt, **options)``; None
    means ``KNOTWORK_LLM``, or the local model. Clients opened from a spec are closed at the end. Settings:

    - ``attempts``: number of candidates that each iteration writes in parallel. ``judges``: the number of judges of each candidate (0: only
      checks decide), or a model, or a list with one model per judge. ``checks``: "regex:...", "words:50..200" and so on.
      ``evaluators``: functions that take an answer and return a score.
    - ``template``: the name of a prompt template, either built in or from ``templates`` (a JSON object, or a file that contains
      one). ``ask``: the format in which the model answers ("json", "text"). ``scale``: the scale of scores ("unit", "ten").
    - ``max_calls``, ``max_tokens``, ``max_cost`` (US dollars; ``price`` is a pair, the price of a million prompt tokens and of
      a million completion tokens), ``time_limit`` (seconds), ``cancel`` (an ``asyncio.Event``): if one of these settings ends
      the run, the best answer so far is returned.
    - ``rate``: maximum number of calls a minute (default: no limit).
    - ``cache``: the file of the call cache, for models named by a spec. ``examples``: a file that stores accepted answers and shows
      them to the model for similar instructions.
    - ``events``: receives events during the run; ``on_iteration``: a function that is called after each iteration. ``max_concurrency``:
      maximum number of parallel calls (default 8).
    - ``temperature``, ``answer_tokens``, ``stop``: options of the calls that write answers. ``seed``, ``timeout``, ``retries``: options of
      all calls.

    Raises ``RequestError`` for an invalid request, ``NotConfigured`` for an unknown model, and ``AnswerFailed`` if no answer could be
    evaluated. The ``result`` of this exception contains the iterations.
    """
    from ..answers.answer_results import AnswerFailed, AnswerRequest
    from ..answers.templates import read_templates
    from ..errors import RequestError
    from ..limits import OPTIONS

    given: dict[str, Any] = dict(settings)
    known = (*_ASKED, *_RUNNING, *_CLIENTS, *_OWN, *(name for name in OPTIONS if name not in _CLIENTS))
    check_names(given, known, _ALSO_CALLED)
    judges = given.pop("judges", 1)
    if judges is None:
        hint = "give a number of judges, a model, or a list of models"
        raise RequestError("judges", "None is not allowed", hint)
    panel = None if isinstance(judges, int) else list(judges) if isinstance(judges, list | tuple) else [judges]
    request = AnswerRequest(
        instruct, resp_format, eval_crit, iter_max, score_threshold, given.pop("attempts", 1),
        judges if panel is None else len(panel), given.pop("checks", ()), given.pop("template", "default"),
    )  # fmt: skip
    llm, templates, tokens = given.pop("llm", None), given.pop("templates", None), given.pop("answer_tokens", None)
    if model is not None and llm is not None:
        raise RequestError("model", "model and llm are both given", "llm is another name for model")
    rest = {name: given.pop(name) for name in (*_RUNNING, *_CLIENTS, "examples", "max_concurrency") if name in given}
    if templates is not None:
        rest["templates"] = read_templates(Path(templates) if isinstance(templates, str) else templates)
    rest["options"] = given if tokens is None else {**given, "max_tokens": tokens}
    try:
        result = await answer_request(request, model if model is not None else llm, panel or (), **rest)
    except RequestError as error:
        if error.parameter != "max_tokens" or "max_tokens" in rest:
            raise
        raise RequestError("answer_tokens", error.message, error.hint) from None
    if result.status == "failed":
        raise AnswerFailed(result)
    return result


async def answer_request(
    request: "AnswerRequest", model: Any = None, judges: Sequence[Any] = (), *, max_concurrency: int | Literal["auto"] = 8,
    examples: Any = None,
    **settings: Any,
) -> "Answered":  # fmt: skip
    """Answer a request, and close the clients at the end. ``settings`` are those of ``generate_answer``, without ``templates``.

    ``judges`` are the models that judge (default: the model that writes). If no answer could be evaluated, the result reports this, and
    nothing is raised.
    """
    from attrs import evolve

    from ..answers.judges import can_judge
    from ..answers.service import TOO_SMALL, answer, validated_request
    from ..events import Warned
    from ..limits import check_limits
    from ..models.caller import Caller
    from ..results import Trace
    from .clients import Clients, Warnings, automatic, concurrency_of

    limits = {name: settings.pop(name) for name in _CLIENTS if name in settings}
    max_concurrency = concurrency_of(max_concurrency)
    check_limits(limits)
    limits |= automatic(max_concurrency)
    request = validated_request(request, **{name: value for name, value in settings.items() if name not in _WATCHING})
    events = settings.get("events")
    warned = Warnings(events)
    async with Clients(model, judges, warned, **limits) as models, _examples(examples, warned) as kept:
        panel = tuple(name or models.spec or None for name in models.judges)
        named = {**models.named, **({models.spec: models.llm} if models.spec else {})}
        if events and request.judges and not all(can_judge(name or "") for name in panel or (models.spec,)):
            events.emit(Warned("", TOO_SMALL))
        caller = Caller(models.llm, named, None, Trace(), max_concurrency)
        result = await answer(request, caller, spec=models.spec, judges_models=panel, examples=kept, **settings)
    return evolve(result, warnings=(*result.warnings, *warned.messages), prices=models.prices)


def generate_answer_sync(
    instruct: str,
    resp_format: str = "",
    eval_crit: str = "",
    iter_max: int = 3,
    score_threshold: float = 0.8,
    model: Any = None,
    **settings: "Unpack[Settings]",
) -> "Answered":
    """Call ``generate_answer`` from synchronous code. In async code and notebooks, use ``await answers.generate_answer(...)``."""
    return run_here(
        lambda: generate_answer(instruct, resp_format, eval_crit, iter_max, score_threshold, model, **settings),
        "answers.generate_answer",
    )


class IterativeAnswerService:
    """A service that generates answers. The threshold and settings of the service are the defaults for all its answers."""

    def __init__(self, score_threshold: float = 0.8, **settings: "Unpack[Settings]") -> None:
        self.score_threshold = score_threshold
        self._settings = settings

    async def generate_answer(
        self,
        instruct: str,
        resp_format: str = "",
        eval_crit: str = "",
        iter_max: int = 3,
        model: Any = None,
        score_threshold: float | None = None,
        **settings: "Unpack[Settings]",
    ) -> "Answered":
        """Answer as ``answers.generate_answer`` does. ``score_threshold`` and settings default to those of the service."""
        threshold = self.score_threshold if score_threshold is None else score_threshold
        both: Settings = {**self._settings, **settings}
        return await generate_answer(instruct, resp_format, eval_crit, iter_max, threshold, model, **both)


_ASKED = (
    "instruct", "resp_format", "eval_crit", "iter_max", "score_threshold", "model", "attempts", "judges", "checks", "template",
)  # fmt: skip
"""Names of the fields of a request, and ``model``."""
_OWN = ("llm", "templates", "examples", "max_concurrency", "answer_tokens")
_ALSO_CALLED = {
    "threshold": "score_threshold", "criteria": "eval_crit", "format": "resp_format", "check": "checks", "judge": "judges",
    "evaluator": "evaluators", "max_iter": "iter_max", "max_iterations": "iter_max", "iterations": "iter_max",
    "instruction": "instruct", "question": "instruct", "prompt": "instruct",
}  # fmt: skip
"""Maps other names that users may give to a setting, such as the name of a script option, to the name of the setting."""
_WATCHING = ("events", "cancel", "on_iteration")
_RUNNING = ("evaluators", "ask", "scale", "time_limit", *_WATCHING)
"""Settings that are passed to the loop."""
_CLIENTS = ("max_calls", "max_tokens", "max_cost", "price", "rate", "cache")
"""Settings that are used to open the clients."""


@asynccontextmanager
async def _examples(given: Any, warn: "Warnings") -> "AsyncIterator[Examples | None]":
    """Yield the store of examples. If ``given`` is a file, open it and close it at the end; yield a custom object unchanged."""
    if given is None or hasattr(given, "like"):
        yield given
        return
    from ..answers.templates import KeptExamples
    from .clients import file_of

    kept = KeptExamples(file_of("examples", given), warn=warn)
    try:
        yield kept
    finally:
        await kept.aclose()
