"""Assembles a loop: the executor with recorded model answers, the planner, and the question's recorder."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ....adapters.llm.strict_schema import means_of
from ...errors import RequestError
from ...gasl import GASLExecutor
from ...gasl.surroundings import is_of_another, same_name, told_of_another
from ...models.caller import Caller
from ...results import Trace
from ...runs.event_log import logged
from .loop import Choose, Loop, highest
from .planner import PlannerCalls, RecordedModel, small_grammar
from .question_store import AskRecorder, StoredQuestion, last_asked, open_asks
from .traversal_results import (
    LOCAL_CHARACTERS,
    MOST_CHARACTERS,
    Asked,
    Bounds,
    Explored,
    Finding,
    Hypothesis,
    SearchRequest,
    checked_question,
)

# A question that is already answered, returned from the store: no model is called, and nothing is run.


def stored_answer(kept: StoredQuestion) -> Asked:
    """Return the stored result; its cost figures are this attempt's, which are zero."""
    end: dict[str, Any] = kept.finished or {}
    supposed, search = end.get("supposed"), end.get("search")
    return Asked(
        kept.question, "complete", str(end.get("answer", "")), supposed=None if supposed is None else Hypothesis(**supposed),
        cited=tuple(end.get("cited", ())),
        evidence=tuple(Finding(each["key"], each["item"], tuple(each["evidence"])) for each in end.get("evidence", ())),
        steps=tuple(kept.steps), earlier=len(kept.steps), run_id=kept.run_id, state=str(end.get("state", "")),
        uncited=tuple(end.get("uncited", ())), warnings=tuple(kept.damage),
        search=None if search is None else Explored(**search, tree=kept.tree),
        incomplete=tuple(end.get("incomplete", ())),
    )  # fmt: skip


@frozen
class QuestionRequest:
    """A question and how to answer it. ``model`` is the planner's name among the models (None: the run's default).

    ``folder`` is the state's, None for a state in memory, which can't be resumed. ``spec``: the model's, as the user wrote it.
    ``searching``: how plans are searched; None: one after the other, chosen by ``choose``. ``graph``: the graph's name, as the
    user wrote it, "" if it has none. ``force``: use a state whose findings come from another graph.
    """

    question: str = field(converter=checked_question)
    bounds: Bounds = field(factory=Bounds)
    folder: Path | None = None
    again: bool = False
    model: str | None = None
    spec: str = ""
    options: Mapping[str, Any] = field(factory=dict)
    as_json: bool = True
    choose: Choose = highest
    searching: SearchRequest | None = None
    graph: str = ""
    force: bool = False


def room_for(spec: str) -> int:
    """Return the maximum characters of a prompt for the model with this spec."""
    return LOCAL_CHARACTERS if spec == "local" or spec.startswith("local:") else MOST_CHARACTERS


def answered_before(wanted: QuestionRequest, graph: Callable[[], str]) -> Asked | None:
    """Return the stored answer of the question, without a call, and without reading a graph that has the same name.

    ``graph`` returns the hash of the present graph. Raises ``RequestError`` if the answer belongs to another graph, ``RunError``
    if it may be in an unreadable folder.
    """
    if wanted.folder is None or wanted.again:
        return None
    kept = last_asked(wanted.folder, wanted.question)
    if kept is None or not kept.is_over:
        return None
    name = str(kept.head.get("options", {}).get("graph", ""))
    if not (wanted.force or same_name(name, wanted.graph)) and kept.head.get("input_hash") not in ("", graph()):
        raise _other_graph(wanted, name)
    return stored_answer(kept)


def _other_graph(wanted: QuestionRequest, before: str) -> RequestError:
    told = told_of_another(wanted.folder or "the state", before, wanted.graph)
    return RequestError("state", told, "choose another state for another graph, or use this one with force")


async def traverse(
    wanted: QuestionRequest,
    opened: GASLExecutor,
    llm: Any,
    models: Mapping[str, Any] | None = None,
    *,
    cancel: asyncio.Event | None = None,
) -> Asked:
    """Answer a question with the parts of ``opened``: its graph, state, caps, chunks and events; it runs nothing itself.

    ``llm`` and ``models`` are the clients that were given to ``opened``: they plan, and answer the commands of plans. An earlier
    attempt at the question in the same state is continued. Raises ``RunError`` if the question can't be stored, ``StoreError``,
    ``RequestError`` if the state's findings come from another graph.
    """
    base, named = opened.session, dict(models or {})
    await asyncio.to_thread(lambda: opened.adapter.schema)  # a large graph is summarised once, outside the event loop
    if not wanted.force and is_of_another(opened.state, opened.adapter):
        raise _other_graph(wanted, "")
    record = _recorder(wanted, opened)
    if isinstance(record, StoredQuestion):
        return stored_answer(record)
    caller = Caller(llm, named, opened.events, Trace(), base.max_concurrency, record)
    grammar = small_grammar(opened.adapter.schema.node_attributes) if means_of(wanted.spec).small else ""
    asker = PlannerCalls(caller, wanted.question, wanted.model, wanted.options, wanted.as_json, grammar, wanted.spec)
    clients = {
        name: RecordedModel(client, name, record, asker.spent)
        for name, client in {"": llm, **named}.items()
        if client is not None
    }
    executor = GASLExecutor(
        opened.adapter, clients.get(""), opened.state, opened.context.copy(),
        models={name: client for name, client in clients.items() if name}, caps=base.caps, ceiling=base.ceiling,
        options=base.options, max_concurrency=base.max_concurrency, chunks=base.chunks, events=opened.events,
    )  # fmt: skip
    loop = Loop(
        wanted.question, executor, asker, clients, wanted.bounds, record, wanted.choose, cancel, wanted.searching
    )
    if record is not None:
        graph, before = opened.adapter.schema.hash, record.kept.head.get("input_hash")
        if before and before != graph:
            loop.warn("the graph is not the one that the question was first asked of")
        for damage in record.kept.damage:
            loop.warn(damage)
    opened.state.configure(query=wanted.question)
    try:
        with logged(opened.events, record.kept.path) if record is not None else nullcontext():
            return await loop.run()
    finally:
        if record is not None:
            record.close()


def _recorder(wanted: QuestionRequest, opened: GASLExecutor) -> AskRecorder | StoredQuestion | None:
    if wanted.folder is None:
        return None
    return open_asks(
        wanted.folder, wanted.question, graph=opened.adapter.schema.hash, model=wanted.spec, again=wanted.again,
        options={"graph": wanted.graph},
    )  # fmt: skip
