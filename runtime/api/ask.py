"""``knotwork.ask``: answers a question about a graph by hypothesis-driven traversal. See ``docs/design/loops.md#traversal``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio

    from ...adapters.graph import Caps
    from ..errors import RequestError
    from ..events import Events
    from ..loops.search import MOST_CALLS as MOST_CALLS
    from ..loops.search import Rollout, Settings
    from ..loops.search import Tree as Tree
    from ..loops.search.policies import Valued
    from ..loops.traversal.planner import Choose
    from ..loops.traversal.traversal_results import Asked
    from ..loops.traversal.traversal_results import Explored as Explored
    from ..loops.traversal.traversal_results import Finding as Finding
    from ..runs.journal import RunError
    from .workspace import Chunks, OpeningCallbacks, Workspace

__all__ = ["Asked", "RequestError", "RunError", "ask", "ask_sync"]

_NAMES = {
    "RequestError": "runtime.errors",
    **dict.fromkeys(("Asked", "Explored", "Finding"), "runtime.loops.traversal.traversal_results"),
    **dict.fromkeys(("MOST_CALLS", "Tree"), "runtime.loops.search"),
    "RunError": "runtime.runs.journal",
}


if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)


async def ask(
    graph: Any,
    question: str,
    *,
    state: "str | Path | None" = None,
    llm: Any = None,
    chunks: "Chunks | None" = None,
    caps: "Caps | None" = None,
    ceiling: "Caps | None" = None,
    max_steps: int = 12,
    max_repairs: int = 2,
    prompt_characters: int | None = None,
    time_limit: float | None = None,
    max_calls: int | None = 500,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    price: Any = None,
    rate: float | None = None,
    cache: "str | Path | None" = None,
    max_concurrency: int | Literal["auto"] = 8,
    options: Mapping[str, Any] | None = None,
    as_json: bool = True,
    choose: "Choose | None" = None,
    search: "str | Settings | Mapping[str, Any] | None" = None,
    value: "str | Valued | None" = None,
    rollout: "Rollout | None" = None,
    again: bool = False,
    force: bool = False,
    raw: bool = False,
    events: "Events | None" = None,
    cancel: "asyncio.Event | None" = None,
) -> "Asked":
    """Answer ``question`` about ``graph``: hypothesise, plan, execute and evaluate until the question is answered.

    ``graph``, ``raw``, ``chunks``, ``caps`` and ``ceiling`` are as for ``gasl.open``. ``state`` is a directory that stores the
    findings and the progress of the loop (None: nothing is stored). A later call with the same arguments continues where the loop
    stopped; finished model calls are not repeated. If the state already contains the answer, this answer is returned without a
    model call; ``again`` starts over. A state whose findings come from another graph is refused, unless ``force`` is set. ``llm``
    is a spec (``openai:MODEL``, ``local`` ...) or a client; this model writes the plans, and also answers the model calls of the
    plans' commands.

    The loop ends with the answer, or at a limit: ``max_steps`` plans (plans of earlier attempts are counted), ``max_calls``,
    ``max_tokens``, ``max_cost`` (US dollars) or ``time_limit`` (seconds). It also ends when ``cancel`` is set. ``status`` then
    contains the reason, and nothing is raised. ``max_calls`` limits all calls of this attempt, including calls that plans make
    (None: no limit). ``rate`` is the maximum number of calls a minute. ``max_repairs`` (at most 20) limits how often a refused
    plan is sent back to the model. ``prompt_characters`` is the maximum length of a prompt. ``options`` are the options of the
    planner's calls (``temperature``, ``max_tokens`` ...). If ``as_json`` is true, the model is asked for JSON that conforms to
    a schema. ``choose`` is a function that selects one of several next actions (default: the action with the highest
    confidence).

    ``search`` is "greedy", "beam" or "mcts", or the settings of a strategy (``{"strategy": "beam", "width": 2}``): several
    plans are tried, each on a copy of the state. The best state with an answer is then adopted as one commit; without an answer
    the state is unchanged. ``value`` rates a state from 0 to 1: "judge" (a model; the default), "filled" (the share of declared
    keys with a value), or a function that takes a node of the search tree. ``rollout`` is an object with an async method
    ``choose``, which selects the next action in a rollout of mcts. ``max_steps`` counts the plans that are executed.

    Raises ``RequestError`` for an invalid request, ``AdapterError``, ``StoreError``, ``RunError`` and ``NotConfigured``.
    """
    from attrs import evolve

    from ..errors import RequestError
    from ..limits import call_options, check_limits, check_listeners
    from ..loops.traversal.loop import room_for, traverse
    from ..loops.traversal.planner import highest
    from ..loops.traversal.question_store import QuestionRequest, answered_before
    from ..loops.traversal.traversal_results import Bounds, checked_folder, search_request
    from . import gasl
    from .clients import Clients, Warnings, automatic, concurrency_of

    folder = checked_folder(state)
    limits: dict[str, Any] = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    check_limits(limits)
    check_listeners(events, cancel)
    max_concurrency = concurrency_of(max_concurrency)
    if options is not None and not isinstance(options, Mapping):
        raise RequestError(
            "options", f"expected a mapping of options, not {type(options).__name__}", '{"temperature": 0.2}'
        )
    if choose is not None and not callable(choose):
        raise RequestError(
            "choose", f"expected a function, not {type(choose).__name__}", "choose(actions, position) -> index"
        )
    spec = _spec_of(llm)
    bounds = Bounds(max_steps, max_repairs, prompt_characters or room_for(spec), time_limit)
    if search is not None and choose is not None:
        raise RequestError(
            "choose", "choose can't be combined with search: a search tries all proposed plans and chooses by value"
        )
    wanted = QuestionRequest(
        question, bounds, folder, again, None, spec, call_options(options or {}), as_json, choose or highest,
        search_request(search, value, rollout), str(graph) if isinstance(graph, str | Path) else "", force,
    )  # fmt: skip
    if (kept := answered_before(wanted, lambda: _hash_of(graph, raw))) is not None:
        return kept
    warned = Warnings(events)
    limits |= automatic(max_concurrency)
    async with Clients(llm, (), warned, **limits, price=price, rate=rate, cache=cache) as models:
        with gasl.open(
            graph, state, models.llm, chunks=chunks, caps=caps, ceiling=ceiling, query=question, events=events,
            max_concurrency=max_concurrency, force=force, raw=raw,
        ) as opened:  # fmt: skip
            made = await traverse(evolve(wanted, prices=models.prices), opened, models.llm, cancel=cancel)
    if made.stopped == "budget" and max_calls is not None and made.calls >= max_calls:
        goes_on = "" if state is None else "; the same call continues where the loop stopped"
        hint = f"max_calls={max(1, 2 * max_calls)} allows more calls, None any number{goes_on}"
        made = evolve(made, reason=f"{made.reason}; {hint}")
    return evolve(made, warnings=(*made.warnings, *warned.messages))


class QuestionRun:
    """A checked question about a graph, which is identified by its name. Call ``open``, then ``run``, once each.

    Most arguments are those of ``ask``. ``stored`` is the answer that the state already contains, otherwise None. ``options``
    describes the workspace. ``cache=True`` selects the user's default call cache. Raises ``RequestError``, ``RunError`` and
    ``AdapterError``.
    """

    def __init__(
        self, graph: str, question: str, *, state: str | None = None, llm: str | None = None, chunks: str | None = None,
        max_steps: int = 12, max_repairs: int = 2, prompt_characters: int | None = None, time_limit: float | None = None,
        search: Mapping[str, Any] | None = None, value: str | None = None, again: bool = False, force: bool = False,
        raw: bool = False, max_concurrency: int = 8, **limits: Any,
    ) -> None:  # fmt: skip
        from ..loops.traversal.loop import room_for
        from ..loops.traversal.question_store import QuestionRequest, answered_before
        from ..loops.traversal.traversal_results import Bounds, checked_folder, search_request
        from .workspace import WorkspaceOptions

        spec = llm or _spec_of(None)
        bounds = Bounds(max_steps, max_repairs, prompt_characters or room_for(spec), time_limit)
        self._request = QuestionRequest(
            question, bounds, checked_folder(state), again, spec=spec, searching=search_request(search, value), graph=graph,
            force=force,
        )  # fmt: skip
        self.question = self._request.question
        self.stored = answered_before(self._request, lambda: _hash_of(graph, raw))
        self.options = WorkspaceOptions(
            graph, state, chunks, self.question, force, raw=raw, cache=limits.get("cache") is not False
        )
        self.llm, self.limits, self.max_steps, self._max_concurrency = llm, limits, max_steps, max_concurrency
        self.strategy: str | None = None if search is None else search["strategy"]
        self._workspace: Workspace | None = None

    def open(self, callbacks: "OpeningCallbacks") -> None:
        """Open the graph, the state and the model. Raises the exceptions of ``workspace.open_workspace``, and ``NotConfigured``."""
        from .clients import ModelOpener, default_spec
        from .workspace import open_workspace

        opener = ModelOpener(callbacks.warn, max_concurrency=self._max_concurrency, **self.limits)
        models = lambda: opener.open_all(self.llm or default_spec(), {})  # noqa: E731 - created after the graph is loaded
        self._workspace = open_workspace(self.options, models, callbacks, needs_graph=True)

    async def run(self, events: "Events", cancel: "asyncio.Event") -> "Asked":
        """Answer the question, and close the workspace. If the state could not be stored, ``unkept`` of the result contains the reason.

        Raises ``RunError`` and ``StoreError``.
        """
        from contextlib import suppress

        from attrs import evolve

        from ...adapters.state import StoreError
        from ..loops.traversal.loop import traverse
        from .workspace import close_models

        workspace = self._workspace
        assert workspace is not None  # noqa: S101 - the caller has opened it
        try:
            executor = workspace.executor(events=events, max_concurrency=self._max_concurrency)
            request = evolve(self._request, prices=workspace.models.ledger.prices)
            asked = await traverse(request, executor, workspace.models.default, cancel=cancel)
            try:
                workspace.close()
            except StoreError as error:
                asked = evolve(asked, unkept=error.message)
            return asked
        finally:
            await close_models(workspace.models)
            with suppress(StoreError):  # ``unkept`` reports this error already
                workspace.close()


def ask_sync(graph: Any, question: str, **settings: Any) -> "Asked":
    """Call ``ask`` from synchronous code. In async code and notebooks, use ``await ask(...)``. ``settings`` are those of ``ask``."""
    return run_here(lambda: ask(graph, question, **settings), "ask")


def _hash_of(graph: Any, raw: bool) -> str:
    from ..events import Events
    from . import gasl

    with gasl.open(graph, raw=raw, events=Events()) as opened:
        return str(opened.adapter.schema.hash)


def _spec_of(llm: Any) -> str:
    """Return the spec of the model: the default spec if ``llm`` is None, "" for a client without a spec."""
    from ...adapters.llm import NotConfigured
    from ..models.factory import default_spec

    if llm is not None:
        spec = llm if isinstance(llm, str) else getattr(llm, "spec", "")
        return spec if isinstance(spec, str) else ""
    try:
        return default_spec()
    except NotConfigured:
        return ""  # a stored answer needs no model; otherwise opening the model reports the missing setting
