"""``knotwork.answers``: iterative answers in Python. An answer is written, evaluated, and written again until it is good enough.

Seed 004's ``generate_answer`` and ``IterativeAnswerService``, with its names, defaults and bounds. Everything is loaded when it is
first used. ``from knotwork import generate_answer`` is the same function.
"""

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...adapters.llm_budget import Price
    from ..answers.checks import read_check
    from ..answers.generating import Ask
    from ..answers.judging import Scale
    from ..answers.requests import AnswerRequest, RequestError
    from ..answers.results import Answered, AnswerFailed, Candidate, Evaluation, Fault, Iteration
    from ..answers.running import Examples, OnIteration
    from ..answers.templates import Template, read_templates
    from ..events import Events

    class Settings(TypedDict, total=False):
        """What else an answer may be given; ``generate_answer`` says what each means."""

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
        cache: str | Path | None
        examples: str | Path | None
        events: Events | None
        cancel: asyncio.Event | None
        time_limit: float | None
        on_iteration: OnIteration | None
        ask: Ask
        scale: Scale
        max_concurrency: int
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
    "AnswerFailed": "results", "AnswerRequest": "requests", "Answered": "results", "Candidate": "results",
    "Evaluation": "results", "Fault": "results", "Iteration": "results", "RequestError": "requests",
    "Template": "templates", "read_check": "checks", "read_templates": "templates",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a class when it is first named."""
    if name in _TYPES:
        from importlib import import_module

        return getattr(import_module(f"..answers.{_TYPES[name]}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    """Answer ``instruct``: at most ``iter_max`` (1 to 10) times an answer is written and scored by ``eval_crit``.

    One that scores ``score_threshold`` (0.0 to 1.0) or more is accepted; else the best is the answer, and ``success`` is false.
    ``model`` (or ``llm=``) is a spec (``openai:MODEL``, ``local`` ...) or anything with ``async generate(prompt, **options)``; None is
    ``KNOTWORK_LLM``, or the local model. Clients that are opened here are closed. Settings:

    - ``attempts``: candidates side by side in each iteration. ``judges``: how many judge each (0: checks alone decide), or a model
      that does, or a list of them, one a judge. ``checks``: "regex:...", "words:50..200" and so on. ``evaluators``: functions
      from an answer to a score.
    - ``template``: the name of the prompts, of ``templates`` (an object, or a file of one) or built in. ``ask``, ``scale``: how models
      are asked for answers ("json", "text") and scores ("unit", "ten").
    - ``max_calls``, ``max_tokens``, ``max_cost`` (US dollars; needs ``price``, of a million prompt and completion tokens), ``time_limit``
      (seconds), ``cancel`` (an ``asyncio.Event``): the best answer so far is the answer when one of them ends the run.
    - ``cache``: a file of answers of models, for models named by spec. ``examples``: a file in which accepted answers are kept, and
      shown to the model for like instructions.
    - ``events``, ``on_iteration``: what happens, as it happens. ``max_concurrency``: calls at a time (8).
    - ``temperature``, ``answer_tokens``, ``stop``: of the writer's calls. ``seed``, ``timeout``, ``retries``: of all.

    Raises ``RequestError`` for what can't be asked, ``NotConfigured`` for a model that there is not, and ``AnswerFailed``, whose
    ``result`` has the iterations, where no answer was evaluated.
    """
    from attrs import evolve

    from ..answers.requests import AnswerRequest, RequestError
    from ..answers.results import AnswerFailed
    from ..answers.running import answer, ready
    from ..answers.settings import check_limits
    from ..answers.templates import read_templates
    from ..calls import Caller
    from ..results import Trace

    given: dict[str, Any] = dict(settings)
    _check_names(given)
    asked = given.pop("judges", 1)
    if asked is None:
        raise RequestError(
            "judges", "None judges nothing", "a number of judges, a model that judges, or a list of them"
        )
    panel = None if isinstance(asked, int) else list(asked) if isinstance(asked, list | tuple) else [asked]
    request = AnswerRequest(
        instruct, resp_format, eval_crit, iter_max, score_threshold,
        given.pop("attempts", 1), asked if panel is None else len(panel), given.pop("checks", ()),
        given.pop("template", "default"),
    )  # fmt: skip
    told, tokens = given.pop("templates", None), given.pop("answer_tokens", None)
    rest = {name: given.pop(name) for name in _RUNNING if name in given}
    rest["templates"] = read_templates(Path(told) if isinstance(told, str) else told) if told is not None else {}
    limits = {name: given.pop(name) for name in _CLIENTS if name in given}
    examples, limit = given.pop("examples", None), given.pop("max_concurrency", 8)
    if type(limit) is not int or limit < 1:
        raise RequestError("max_concurrency", f"{limit!r:.60} is no whole number above 0")
    rest["options"] = given if tokens is None else {**given, "max_tokens": tokens}
    check_limits(limits)
    try:
        ready(request, **{name: value for name, value in rest.items() if name not in _WATCHING})
    except RequestError as error:
        if error.parameter != "max_tokens":
            raise
        raise RequestError("answer_tokens", error.message, error.hint) from None
    warned = _Warned(rest.get("events"))
    async with _Models(model, panel or (), warned, **limits) as models, _examples(examples, warned) as kept:
        caller = Caller(models.llm, models.named, None, Trace(), limit)
        result = await answer(request, caller, spec=models.spec, judges_models=models.judges, examples=kept, **rest)
    result = evolve(result, warnings=(*result.warnings, *warned.messages))
    if result.status == "failed":
        raise AnswerFailed(result)
    return result


def generate_answer_sync(
    instruct: str,
    resp_format: str = "",
    eval_crit: str = "",
    iter_max: int = 3,
    score_threshold: float = 0.8,
    model: Any = None,
    **settings: "Unpack[Settings]",
) -> "Answered":
    """Answer from code that is not async; in code that is (a notebook too), ``await answers.generate_answer(...)``."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(
            generate_answer(instruct, resp_format, eval_crit, iter_max, score_threshold, model, **settings)
        )
    raise RuntimeError("an event loop is running here: use `await answers.generate_answer(...)`")


class IterativeAnswerService:
    """Seed 004's service: a threshold and settings that hold for all its answers."""

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
        """Answer as ``answers.generate_answer`` does. A ``score_threshold`` of None is the service's; 0.0 is one."""
        threshold = self.score_threshold if score_threshold is None else score_threshold
        both: Settings = {**self._settings, **settings}
        return await generate_answer(instruct, resp_format, eval_crit, iter_max, threshold, model, **both)


def _check_names(given: Mapping[str, Any]) -> None:
    """Raise ``RequestError`` for a setting that there is not."""
    from ...lang.diagnostic import nearest
    from ..answers.requests import RequestError
    from ..answers.settings import OPTIONS

    known = (*_ASKED, *_RUNNING, *_CLIENTS, *_OWN, *(name for name in OPTIONS if name not in _CLIENTS))
    for name in given:
        if name not in known:
            like = _ALSO_CALLED.get(name) or nearest(name, known)
            hint = f"did you mean {like!r}?" if like else f"there are: {', '.join(known)}"
            raise RequestError(name[:80], "there is no such setting", hint)


_ASKED = (
    "instruct", "resp_format", "eval_crit", "iter_max", "score_threshold", "model", "attempts", "judges", "checks", "template",
)  # fmt: skip
"""What a request has, and the model."""
_OWN = ("templates", "examples", "max_concurrency", "answer_tokens")
_ALSO_CALLED = {
    "threshold": "score_threshold", "criteria": "eval_crit", "format": "resp_format", "check": "checks", "judge": "judges",
    "evaluator": "evaluators", "max_iter": "iter_max", "max_iterations": "iter_max", "iterations": "iter_max",
    "instruction": "instruct", "question": "instruct", "prompt": "instruct",
}  # fmt: skip
"""What scripts, the command and habit call them."""
_WATCHING = ("events", "cancel", "on_iteration")
_RUNNING = ("evaluators", "ask", "scale", "time_limit", *_WATCHING)
"""Settings that the loop itself takes."""
_CLIENTS = ("llm", "max_calls", "max_tokens", "max_cost", "price", "cache")
"""Settings that clients are opened with."""


class _Warned:
    """Keeps what files warn of, and tells it."""

    def __init__(self, events: "Events | None") -> None:
        self.messages: list[str] = []
        self._events = events

    def __call__(self, message: str) -> None:
        self.messages.append(message)
        if self._events:
            from ..events import Warned

            self._events.emit(Warned("", message))


class _Models:
    """The clients of one answer: under one budget, which begins with it. Those that were opened from a spec are closed with it."""

    def __init__(
        self, model: Any, panel: Sequence[Any], warn: "_Warned", *, llm: Any = None, price: Any = None, cache: Any = None,
        **limits: Any,
    ) -> None:  # fmt: skip
        from ...adapters.llm_budget import Ledger, Price
        from ..answers.requests import RequestError

        if model is not None and llm is not None:
            raise RequestError("model", "model and llm are both given", "llm is another name for model")
        self._price = price if price is None or isinstance(price, Price) else Price(*_two(price))
        self._cache = _file("cache", cache) if cache is not None else None
        self._limited = any(limit is not None for limit in limits.values())
        self._ledger = Ledger(**limits)
        self._warn = warn
        self._given = (model if model is not None else llm, panel)
        self._opened: list[Any] = []
        self.llm: Any = None
        self.spec = ""
        self.named: dict[str, Any] = {}
        self.judges: list[str | None] = []

    async def __aenter__(self) -> "_Models":
        from ..wiring import default_spec

        model, panel = self._given
        try:
            model = default_spec() if model is None else model
            self.spec = model if isinstance(model, str) else ""
            self.llm = self._client(model)
            for number, judge in enumerate(panel, 1):
                if judge is model or (isinstance(judge, str) and judge == self.spec):
                    self.judges.append(None)
                    continue
                first = next(place for place, other in enumerate(panel, 1) if other is judge or place == number)
                name = judge if isinstance(judge, str) else f"judge {first}"
                if name not in self.named:
                    self.named[name] = self._client(judge)
                self.judges.append(name)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._opened:
            await client.aclose()

    def _client(self, model: Any) -> Any:
        if isinstance(model, str):
            from ..wiring import ModelSettings, open_model

            opened = open_model(ModelSettings(model, self._cache, self._ledger, self._price), warn=self._warn)
            self._opened.append(opened)
            return opened
        from ...adapters.llm_budget import Budget, Priced
        from ...adapters.llm_layers import as_client
        from ..answers.requests import RequestError

        if self._cache is not None:
            raise RequestError("cache", "a client of one's own has no name that a cache could know it by", "use a spec")
        client = as_client(model)
        if self._limited:
            client = Budget(client, self._ledger, self._price)
        return Priced(client, self._price) if self._price is not None else client


def _two(price: Any) -> tuple[float, float]:
    """Return the two numbers of a price. Raises ``RequestError``."""
    from ..answers.requests import RequestError, shown

    two = tuple(price) if isinstance(price, tuple | list) else ()
    if len(two) != 2 or not all(type(each) in (int, float) and 0 <= each < math.inf for each in two):
        hint = "US dollars for a million prompt and completion tokens: (0.25, 2)"
        raise RequestError("price", f"{shown(price)} is no pair of prices", hint)
    return two[0], two[1]


def _file(parameter: str, given: Any) -> Path:
    """Return the path of a file. Raises ``RequestError``."""
    from ..answers.requests import RequestError

    try:
        return Path(given)
    except TypeError:
        raise RequestError(parameter, f"a file is wanted, not {type(given).__name__}") from None


@asynccontextmanager
async def _examples(given: Any, warn: "_Warned") -> "AsyncIterator[Examples | None]":
    """Open the file of examples, where there is one, and close it; a caller's own object is left alone."""
    if given is None or hasattr(given, "like"):
        yield given
        return
    from ..answers.examples import KeptExamples

    kept = KeptExamples(_file("examples", given), warn=warn)
    try:
        yield kept
    finally:
        await kept.aclose()
