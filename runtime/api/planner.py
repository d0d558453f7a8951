"""``knotwork.planner``: rankings in Python. ``knotwork.rank`` is ``planner.rank``. See ``docs/design/loops.md#ranking``.

Everything is loaded on first use.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import check_names, load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...lang.source import Source
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
        max_concurrency: int | Literal["auto"]
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

    ``items`` is a list of JSON values, or an object with a list ``items`` and other fields for the script, or a file that
    contains one of these. ``llm`` is a spec (``openai:MODEL``, ``local`` ...) or an object with
    ``async generate(prompt, **options)``; None: ``KNOTWORK_LLM``, or the local model. If the model fails, nothing is raised:
    ``status`` is "failed", and ``reason`` contains the cause. Settings:

    - ``models``: maps names to specs or clients; ``model=`` of a step selects one of these names. ``temperature``: the
      temperature of planning and expansion.
    - ``max_iterations``: maximum number of iterations of the expansion (default 10). ``max_concurrency``: maximum number of parallel steps
      (default 8).
    - ``max_calls`` (default 100 per request; None: no limit), ``max_tokens``, ``max_cost`` (US dollars), ``time_limit``
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
    """Rank the same items for several requests, in parallel and with one budget. See ``rank``.

    Requests start in order. A small ``max_calls`` reduces the number of parallel requests: a request starts only if enough
    calls for a ranking are left. Raises ``RequestError``, ``NotConfigured`` and ``RunError``, like ``rank``.
    """
    events = settings.get("events")
    rankings = Rankings(_read(items), _listed(requests), llm, **settings)
    return await rankings.run(None if events is None else lambda number: (events.emit,), cancel=settings.get("cancel"))


class Rankings:
    """Checked rankings of the same items for several requests; ``run`` may be called once. Most arguments are those of ``rank_many``.

    With ``resume``, ``items`` and ``requests`` may be None; those of the stored run are then used. ``limit`` is the maximum number of
    requests; further requests are ignored. ``name`` is the name of a new stored run. ``cache=True`` selects the user's default call cache.
    ``warn`` receives warnings. If the run is stored, ``recorder`` is its recorder after ``run`` has started. Raises ``RequestError`` and
    ``RunError``.
    """

    def __init__(
        self, items: Any, requests: Sequence[str] | None, llm: Any = None, *, limit: int | None = None, name: str = "rank",
        warn: "Callable[[str], None] | None" = None, **settings: Any,
    ) -> None:  # fmt: skip
        from ..errors import RequestError
        from ..limits import call_options, check_limits, check_listeners
        from ..loops.rank.ranker import check_requests, prepare
        from ..loops.rank.ranking_results import CALLS, load
        from .clients import Warnings, concurrency_of

        check_names(settings, (*_CLIENTS, *_WORK, *_REST))
        events, resume = settings.get("events"), settings.get("resume")
        check_listeners(events, settings.get("cancel"))
        if resume is not None and not isinstance(resume, str | Path):
            raise RequestError("resume", f"expected the id or the folder of a run, not {type(resume).__name__}")
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
        if "max_concurrency" in work:
            work["max_concurrency"] = concurrency_of(work["max_concurrency"])
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
        """Return the rankings in the order of the requests.

        ``listeners`` is a function that takes a request's number and returns the subscribers to the events of this request.
        ``on_ranked`` is called with each ranking as soon as it is finished. Raises ``NotConfigured``, and ``RunError`` before
        any call.
        """
        from time import perf_counter

        from attrs import evolve

        from ...adapters.llm.strict_schema import capabilities_of
        from ..events import Events
        from ..loops.rank.ranker import rank_many as run_many
        from ..loops.rank.ranking_results import ranked_done, start, totals_done
        from ..models.caller import Caller
        from ..results import Trace
        from ..runs.event_log import EventLog
        from . import process_traces as traces
        from .clients import Clients, automatic

        work, began, trace = self._work, perf_counter(), Trace()
        limits = {**self._limits, **automatic(work.max_concurrency)}
        async with Clients(self._llm, tuple(self._named.values()), self._warn, **limits) as models:
            named = {
                name: models.named.get(label, models.llm) if label else models.llm
                for name, label in zip(self._named, models.judges, strict=True)
            }
            work.means = capabilities_of(models.spec or self._llm)
            if work.means.remark:
                self._warn(work.means.remark)
            if self._stored is not None:
                self.recorder = self._stored.resume(self._new_items, self._new_requests, force=self._force)
            elif self._record:
                self.recorder = start(self._new_items, self.requests, model=models.spec, name=self._name)
            recorder = self.recorder
            if recorder is not None:
                recorder.priced(models.prices)
            log = EventLog.open(recorder.path) if recorder is not None else None
            gate = Caller(models.llm, named, None, trace, work.max_concurrency).gate

            def caller(number: int) -> Caller:
                is_heard = listeners is not None or log is not None or traces.are_on()
                events = Events() if is_heard else None
                if events is not None:
                    traces.subscribe(events)
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
                ranked = [evolve(each, prices=models.prices) for each in ranked]
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
        hint = "rank(items, request) takes a single request" if isinstance(requests, str) else ""
        kind = "one text" if isinstance(requests, str) else type(requests).__name__
        raise RequestError("requests", f"expected a list of requests, not {kind}", hint)
    listed = list(requests)
    if not listed:
        raise RequestError("requests", "the list is empty")
    return listed


def rank_many_sync(
    items: Any, requests: Sequence[str], llm: Any = None, **settings: "Unpack[Settings]"
) -> "list[Ranked]":
    """Call ``rank_many`` from synchronous code. In async code and notebooks, use ``await planner.rank_many(...)``."""
    return run_here(lambda: rank_many(items, requests, llm, **settings), "planner.rank_many")


def _models(llm: Any, models: Any) -> Mapping[str, Any]:
    """Map names to models. Raises ``RequestError`` if ``llm`` or ``models`` (names mapped to specs or clients) is invalid."""
    from ...adapters.llm.middleware import as_client
    from ..errors import RequestError

    named = {} if models is None else models
    if not isinstance(named, Mapping) or not all(isinstance(name, str) for name in named):
        hint = 'models={"small": "openai:gpt-5-mini"}'
        raise RequestError("models", f"expected a mapping from names to models, not {type(named).__name__}", hint)
    for parameter, model in (("llm", llm), *((f"models[{name[:60]!r}]", each) for name, each in named.items())):
        if (model is None and parameter == "llm") or isinstance(model, str):
            continue
        try:
            as_client(model)
        except TypeError as error:
            hint = "a spec such as openai:MODEL, or an object with generate(prompt, **options)"
            raise RequestError(parameter, str(error), hint) from None
    return named


_LINE = 'a line is {"request": "cafe with drive-thru"}'
_KEYS = ("request", "context", "query", "question", "text")
"""Keys that may hold the request in a line of a requests file; "context" is the older name."""


def read_requests(source: "Source") -> list[str]:
    """Return the requests of a file, one JSON object or JSON string per line. Raises ``WrongFile``."""
    from ...adapters.llm.json_schema import read_json
    from ..errors import WrongFile

    beginning, hint = source.text.lstrip()[:1], _LINE
    if beginning == "[":
        hint = f"{_LINE}; convert a list into lines: jq -c '.[]' {source.name}"
    elif beginning not in ("{", '"'):
        hint = f"{_LINE}; convert plain lines: jq -R . {source.name}"
    requests: list[str] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = read_json(line)
        except ValueError as error:
            reason = str(error).replace("(line 1, ", "(")  # the message below has the line number in the file
            raise WrongFile(f"{source.name}, line {number}: not JSON: {reason}", hint) from None
        if isinstance(value, dict):
            value = next((value[key] for key in _KEYS if key in value), None)
        if not isinstance(value, str) or not value.strip():
            raise WrongFile(f"{source.name}, line {number}: the request is missing", hint)
        requests.append(value)
    if not requests:
        raise WrongFile(f"{source.name} has no requests", _LINE)
    return requests


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
