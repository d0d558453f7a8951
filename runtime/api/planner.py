"""``knotwork.planner``: rankings in Python. ``knotwork.rank`` is ``planner.rank``. See ``docs/design/loops.md#ranking``.

Everything is loaded on first use.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from . import check_names, load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ..errors import RequestError
    from ..events import Event, Events
    from ..loops.rank.ranking_results import Phase, Ranked, ToolUse
    from ..runs.journal import RunError, RunRecorder

    class Settings(TypedDict, total=False):
        """Optional settings of ``rank``, described in its docstring."""

        models: Mapping[str, Any]
        record: bool
        resume: str | Path
        force: bool
        max_iterations: int
        max_concurrency: int
        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Any
        rate: float | None
        cache: str | Path | None
        time_limit: float | None
        temperature: float
        events: Events
        cancel: asyncio.Event


__all__ = ["Phase", "Ranked", "RequestError", "RunError", "ToolUse", "rank", "rank_many", "rank_many_sync", "rank_sync"]

_TYPES = {
    **dict.fromkeys(("Phase", "Ranked", "ToolUse"), "runtime.loops.rank.ranking_results"),
    "RequestError": "runtime.errors", "RunError": "runtime.runs.journal",
}  # fmt: skip
_CLIENTS = ("max_calls", "max_tokens", "max_cost", "price", "rate", "cache")
_WORK = ("max_iterations", "max_concurrency", "time_limit")
_REST = ("models", "record", "resume", "force", "temperature", "events", "cancel")


if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


async def rank(items: Any, request: str, llm: Any = None, **settings: "Unpack[Settings]") -> "Ranked":
    """Rank ``items`` for ``request``. ``ranking`` of the result has the positions of the items (from 1), best first.

    ``items`` is a list of JSON values, or an object with a list ``items`` and other fields for the script, or a file that has one of these.
    ``llm`` is a spec (``openai:MODEL``, ``local`` ...) or an object with ``async generate(prompt, **options)``; None: ``KNOTWORK_LLM``,
    or the local model. If the model fails, nothing is raised: ``status`` is "failed", and ``reason`` has the cause. Settings:

    - ``models``: maps the names that ``model=`` of a step may use to specs or clients. ``temperature``: the temperature of planning and
      expansion.
    - ``max_iterations``: maximum number of iterations of the expansion (10). ``max_concurrency``: maximum number of parallel steps (8).
    - ``max_calls`` (100 for each request; None: no limit), ``max_tokens``, ``max_cost`` (US dollars; needs ``price``), ``time_limit``
      (seconds for each request), ``cancel``: limits of the run.
    - ``rate``: maximum number of calls a minute (default: no limit). ``cache``: the file of the call cache, for models named by a spec.
    - ``record=True`` stores the run in a folder. ``resume`` (an id or a folder) continues a stored run; ``force`` continues it even if the
      items or the request changed.
    - ``events``: receives events during the run.

    Raises ``RequestError`` for invalid items or settings, ``NotConfigured`` for an unknown model, ``RunError`` for a run that can't be
    stored or resumed.
    """
    (ranked,) = await rank_many(items, [request], llm, **settings)
    return ranked


async def rank_many(
    items: Any, requests: Sequence[str], llm: Any = None, **settings: "Unpack[Settings]"
) -> "list[Ranked]":
    """Rank the same items for several requests, in parallel and under one budget. See ``rank``.

    Requests start in order. A small ``max_calls`` reduces the number of parallel requests: no request starts with fewer calls left than
    a ranking takes. Raises ``RequestError``, ``NotConfigured`` and ``RunError``, as ``rank``.
    """
    events = settings.get("events")
    rankings = Rankings(_read(items), _listed(requests), llm, **settings)
    return await rankings.run(None if events is None else lambda number: (events.emit,), cancel=settings.get("cancel"))


class Rankings:
    """Checked rankings of the same items for several requests; ``run`` may be called once. Most arguments are those of ``rank_many``.

    With ``resume``, ``items`` and ``requests`` may be None; those of the stored run are then used. ``limit``: maximum number of requests;
    further requests are ignored. ``name``: the name of a new stored run; ``cache=True``: the user's default call cache; ``warn`` receives
    warnings. If the run is stored, ``recorder`` is its recorder after ``run`` has started. Raises ``RequestError`` and ``RunError``.
    """

    def __init__(
        self, items: Any, requests: Sequence[str] | None, llm: Any = None, *, limit: int | None = None, name: str = "rank",
        warn: "Callable[[str], None] | None" = None, **settings: Any,
    ) -> None:  # fmt: skip
        from ..errors import RequestError
        from ..limits import call_options, check_limits, check_listeners
        from ..loops.rank.ranker import check_requests, prepare
        from ..loops.rank.ranking_results import CALLS, load
        from .clients import Warnings

        check_names(settings, (*_CLIENTS, *_WORK, *_REST))
        events, resume = settings.get("events"), settings.get("resume")
        check_listeners(events, settings.get("cancel"))
        if resume is not None and not isinstance(resume, str | Path):
            raise RequestError("resume", f"a run's id or folder is wanted, not {type(resume).__name__}")
        self.recorder: RunRecorder | None = None
        self._stored = load(resume) if resume is not None else None
        self._new_items = items
        self._new_requests = requests[:limit] if requests is not None else None
        items, requests = self._new_items, self._new_requests
        if self._stored is not None:
            items = self._stored.items if items is None else items
            requests = self._stored.requests[:limit] if requests is None else requests
        self.requests: Sequence[str] = requests or ()
        check_requests(self.requests)
        self._limits = {"max_calls": CALLS * len(self.requests)}
        self._limits |= {each: settings[each] for each in _CLIENTS if each in settings}
        check_limits(self._limits)
        work = {each: settings[each] for each in _WORK if each in settings}
        self._work = prepare(items, options=call_options({"temperature": settings.get("temperature")}), **work)
        self._llm, self._named = llm, _models(llm, settings.get("models"))
        if llm is None and self._stored is not None:
            self._llm = self._stored.head["model"] or None
        self._warn = warn or Warnings(events)
        self._name, self._record, self._force = name, bool(settings.get("record")), bool(settings.get("force"))

    async def run(
        self,
        listeners: "Callable[[int], Sequence[Callable[[Event], None]]] | None" = None,
        on_ranked: "Callable[[Ranked], None] | None" = None,
        cancel: "asyncio.Event | None" = None,
    ) -> "list[Ranked]":
        """Return the rankings in the order of the requests. ``listeners`` takes a request's number and returns its event subscribers.

        ``on_ranked`` is called with each ranking when it ends. Raises ``NotConfigured``, and ``RunError`` before any call.
        """
        from time import perf_counter

        from ...adapters.llm.strict_schema import capabilities_of
        from ..events import Events
        from ..loops.rank.ranker import rank_many as run_many
        from ..loops.rank.ranking_results import ranked_done, start, totals_done
        from ..models.caller import Caller
        from ..results import Trace
        from ..runs.event_log import EventLog
        from .clients import Clients

        work, began, trace = self._work, perf_counter(), Trace()
        async with Clients(self._llm, tuple(self._named.values()), self._warn, **self._limits) as models:
            named = {
                name: models.named.get(label, models.llm) if label else models.llm
                for name, label in zip(self._named, models.judges, strict=True)
            }
            work.means = capabilities_of(models.spec or self._llm)
            if self._stored is not None:
                self.recorder = self._stored.resume(self._new_items, self._new_requests, force=self._force)
            elif self._record:
                self.recorder = start(self._new_items, self.requests, model=models.spec, name=self._name)
            recorder = self.recorder
            log = EventLog.open(recorder.path) if recorder is not None else None
            gate = Caller(models.llm, named, None, trace, work.max_concurrency).gate

            def caller(number: int) -> Caller:
                events = Events() if listeners is not None or log is not None else None
                if events is not None:
                    for subscriber in listeners(number) if listeners is not None else ():
                        events.subscribe(subscriber)
                    if log is not None:
                        events.subscribe(log.of(events, number))
                client = Caller(models.llm, named, events, trace, work.max_concurrency, recorder)
                client.gate = gate
                return client

            def ended(ranked: "Ranked") -> None:
                if recorder is not None:
                    ranked_done(recorder, ranked)
                if on_ranked is not None:
                    on_ranked(ranked)

            try:
                ranked = await run_many(
                    work, self.requests, caller, cancel=cancel, on_ranked=ended, max_calls=self._limits["max_calls"]
                )
                if recorder is not None:
                    totals_done(recorder, ranked, perf_counter() - began)
            finally:
                if log is not None:
                    log.close()
                if recorder is not None:
                    recorder.close()
        return ranked


def rank_sync(items: Any, request: str, llm: Any = None, **settings: "Unpack[Settings]") -> "Ranked":
    """Call ``rank`` from synchronous code. In async code and notebooks, use ``await knotwork.rank(...)``."""
    return run_here(lambda: rank(items, request, llm, **settings), "knotwork.rank")


def _listed(requests: Any) -> list[str]:
    """Return the requests as a list. Raises ``RequestError`` for an empty list, and for a single string."""
    from collections.abc import Iterable

    from ..errors import RequestError

    if isinstance(requests, str | bytes | Mapping) or not isinstance(requests, Iterable):
        hint = "rank(items, request) takes one" if isinstance(requests, str) else ""
        kind = "one text" if isinstance(requests, str) else type(requests).__name__
        raise RequestError("requests", f"a list of requests is wanted, not {kind}", hint)
    listed = list(requests)
    if not listed:
        raise RequestError("requests", "there are none")
    return listed


def rank_many_sync(
    items: Any, requests: Sequence[str], llm: Any = None, **settings: "Unpack[Settings]"
) -> "list[Ranked]":
    """Call ``rank_many`` from synchronous code. In async code and notebooks, use ``await planner.rank_many(...)``."""
    return run_here(lambda: rank_many(items, requests, llm, **settings), "planner.rank_many")


def _models(llm: Any, models: Any) -> Mapping[str, Any]:
    """Return the models by name. Raises ``RequestError`` unless ``models`` maps names to specs or clients, and for an invalid ``llm``."""
    from ...adapters.llm.middleware import as_client
    from ..errors import RequestError

    named = {} if models is None else models
    if not isinstance(named, Mapping) or not all(isinstance(name, str) for name in named):
        hint = 'models={"small": "openai:gpt-5-mini"}'
        raise RequestError("models", f"models by name are wanted, not {type(named).__name__}", hint)
    for parameter, model in (("llm", llm), *((f"models[{name[:60]!r}]", each) for name, each in named.items())):
        if (model is None and parameter == "llm") or isinstance(model, str):
            continue
        try:
            as_client(model)
        except TypeError as error:
            hint = "a spec such as openai:MODEL, or an object with generate(prompt, **options)"
            raise RequestError(parameter, str(error), hint) from None
    return named


def _read(items: Any) -> Any:
    """If ``items`` names a file, return its JSON value; otherwise return ``items`` unchanged. Raises ``RequestError``."""
    from ...adapters.llm.json_schema import read_json
    from ..errors import RequestError

    if not isinstance(items, str | Path):
        return items
    try:
        return read_json(Path(items).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise RequestError("items", f"{str(items)[:200]} can't be read: {error}"[:400]) from None
