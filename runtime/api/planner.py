"""``knotwork.planner``: rankings in Python. ``knotwork.rank`` is ``planner.rank``. See ``docs/design/loops.md#ranking``.

Everything is loaded when it is first used.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from . import check_names, run_here, when_named

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ..errors import RequestError
    from ..events import Events
    from ..loops.rank.ranking_results import Phase, Ranked, ToolUse
    from ..lwt.run_store import Recorder
    from ..runs.directories import RunError

    class Settings(TypedDict, total=False):
        """Optional settings of ``rank``, where each is described."""

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
    "RequestError": "runtime.errors", "RunError": "runtime.runs.directories",
}  # fmt: skip
_CLIENTS = ("max_calls", "max_tokens", "max_cost", "price", "rate", "cache")
_WORK = ("max_iterations", "max_concurrency", "time_limit")
_REST = ("models", "record", "resume", "force", "temperature", "events", "cancel")


__getattr__ = when_named(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


async def rank(items: Any, request: str, llm: Any = None, **settings: "Unpack[Settings]") -> "Ranked":
    """Rank ``items`` for ``request``. ``ranking`` of the result has the positions of the items (from 1), best first.

    ``items`` is a list of JSON values, or an object with a list ``items`` and other fields for the script, or a file with either.
    ``llm`` is a spec (``openai:MODEL``, ``local`` ...) or an object with ``async generate(prompt, **options)``; None: ``KNOTWORK_LLM``,
    or the local model. An error of the model is not raised: ``status`` is then failed, and ``reason`` has the cause. Settings:

    - ``models``: clients by the names that a step may give to ``model=``. ``temperature``: for planning and expansion.
    - ``max_iterations``: iterations of the expansion (10). ``max_concurrency``: steps that run in parallel (8).
    - ``max_calls`` (100 for each request; None: no limit), ``max_tokens``, ``max_cost`` (US dollars; needs ``price``), ``time_limit``
      (seconds for each request), ``cancel``.
    - ``rate``: maximum number of calls a minute (default: no limit). ``cache``: the file of the call cache, for models named by a spec.
    - ``record=True`` stores the run in a folder. ``resume`` continues a stored run, by id or folder; ``force`` does so although items or
      request changed.
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

    Requests start in order. A small ``max_calls`` lowers their number in parallel; none starts with fewer calls than a ranking takes.
    Raises ``RequestError``, ``NotConfigured`` and ``RunError``, as ``rank``.
    """
    from time import perf_counter

    from ...adapters.llm.strict_schema import means_of
    from ..errors import RequestError
    from ..events import Events
    from ..limits import call_options, check_limits, check_listeners
    from ..loops.rank.ranker import check_requests, prepare
    from ..loops.rank.ranker import rank_many as run_many
    from ..loops.rank.ranking_results import CALLS, load, ranked_done, start, totals_done
    from ..models.caller import Caller
    from ..results import Trace
    from ..runs.journal import EventLog
    from .clients import Clients, Warnings

    given: dict[str, Any] = dict(settings)
    check_names(given, (*_CLIENTS, *_WORK, *_REST))
    asked = _listed(requests)
    check_requests(asked)
    check_listeners(given.get("events"), given.get("cancel"))
    limits = {"max_calls": CALLS * len(asked), **{name: given.pop(name) for name in _CLIENTS if name in given}}
    check_limits(limits)
    shape = {name: given.pop(name) for name in _WORK if name in given}
    listed = _read(items)
    options = call_options({"temperature": given.get("temperature")})
    work = prepare(listed, options=options, **shape)
    named = _models(llm, given.get("models"))
    if (resumed := given.get("resume")) is not None and not isinstance(resumed, str | Path):
        raise RequestError("resume", f"a run's id or folder is wanted, not {type(resumed).__name__}")
    stored = load(resumed) if resumed is not None else None
    if llm is None and stored is not None:
        llm = stored.head["model"] or None
    warned = Warnings(given.get("events"))
    async with Clients(llm, tuple(named.values()), warned, **limits) as models:
        clients = {
            name: models.named.get(label, models.llm) if label else models.llm
            for name, label in zip(named, models.judges, strict=True)
        }
        work.means = means_of(models.spec or llm)
        keep: Recorder | None = None
        if stored is not None:
            keep = stored.resume(listed, asked, force=bool(given.get("force")))
        elif given.get("record"):
            keep = start(listed, asked, model=models.spec)
        events, began = given.get("events"), perf_counter()
        log = EventLog.open(keep.path) if keep is not None else None
        shared = Caller(models.llm, clients, events, Trace(), work.max_concurrency, keep)

        def caller(number: int) -> Caller:
            if log is None:
                return shared
            heard = Events()  # its own: the log has to know whose request an event is
            for subscriber in (*([events.emit] if events is not None else ()), log.of(heard, number)):
                heard.subscribe(subscriber)
            made = Caller(models.llm, clients, heard, shared.trace, work.max_concurrency, keep)
            made.gate = shared.gate
            return made

        try:
            ranked = await run_many(
                work, asked, caller, cancel=given.get("cancel"), max_calls=limits["max_calls"],
                on_ranked=lambda each: ranked_done(keep, each) if keep is not None else None,
            )  # fmt: skip
            if keep is not None:
                totals_done(keep, ranked, perf_counter() - began)
        finally:
            if log is not None:
                log.close()
            if keep is not None:
                keep.close()
    return ranked


def rank_sync(items: Any, request: str, llm: Any = None, **settings: "Unpack[Settings]") -> "Ranked":
    """Call ``rank`` from synchronous code. In async code and notebooks, use ``await knotwork.rank(...)``."""
    return run_here(lambda: rank(items, request, llm, **settings), "knotwork.rank")


def _listed(requests: Any) -> list[str]:
    """Return the requests as a list. Raises ``RequestError`` for an empty list, and for a single text."""
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
    """Return the models by name. Raises ``RequestError`` unless they are a mapping to specs and clients."""
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
    """Return the JSON value of a file, or ``items`` as they are. Raises ``RequestError``."""
    from ...adapters.llm.answers import read_json
    from ..errors import RequestError

    if not isinstance(items, str | Path):
        return items
    try:
        return read_json(Path(items).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise RequestError("items", f"{str(items)[:200]} can't be read: {error}"[:400]) from None
