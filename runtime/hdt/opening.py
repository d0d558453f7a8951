"""Puts a loop together: the executor whose models' answers are kept, the planner, and where the question is kept."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ..calls import Caller
from ..executor import GASLExecutor
from ..results import Trace
from .asking import Asker, Paid
from .choosing import Choose, highest
from .ending import told_again
from .keeping import AskRecorder, Kept, asks, open_asks
from .results import Asked
from .running import Loop
from .settings import LOCAL_CHARACTERS, MOST_CHARACTERS, Bounds, checked_question

__all__ = ["Wanted", "answered_before", "room_for", "traverse"]


@frozen
class Wanted:
    """A question and how it is to be answered. ``model`` is the planner's name among the models (None: the run's own).

    ``folder`` is the state's, None for a state in memory, which is not gone on with. ``spec``: the model's, as the user wrote it.
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


def room_for(spec: str) -> int:
    """Return how many characters a prompt may have for the model with this spec."""
    return LOCAL_CHARACTERS if spec == "local" or spec.startswith("local:") else MOST_CHARACTERS


def answered_before(wanted: Wanted) -> Asked | None:
    """Return the answer that the question has already: no graph is read for it and no model asked."""
    if wanted.folder is None or wanted.again:
        return None
    kept = next((each for each in asks(wanted.folder) if each.question == wanted.question), None)
    return told_again(kept) if kept is not None and kept.is_over else None


async def traverse(
    wanted: Wanted,
    opened: GASLExecutor,
    llm: Any,
    models: Mapping[str, Any] | None = None,
    *,
    cancel: asyncio.Event | None = None,
) -> Asked:
    """Answer a question over what ``opened`` has: its graph, state, caps, chunks and events; it runs nothing itself.

    ``llm`` and ``models`` are the clients, as they were given to ``opened``: they plan, and answer the commands of plans. A question
    that was asked of the state before goes on where it stood. Raises ``RunError`` where it can't be kept, ``StoreError``.
    """
    base, named = opened.session, dict(models or {})
    record = _recorder(wanted, opened)
    if isinstance(record, Kept):
        return told_again(record)
    caller = Caller(llm, named, opened.events, Trace(), base.max_concurrency, record)
    asker = Asker(caller, wanted.question, wanted.model, wanted.options, wanted.as_json)
    clients = {
        name: Paid(client, name, record, asker.spent)
        for name, client in {"": llm, **named}.items()
        if client is not None
    }
    executor = GASLExecutor(
        opened.adapter, clients.get(""), opened.state, opened.context.copy(),
        models={name: client for name, client in clients.items() if name}, caps=base.caps, ceiling=base.ceiling,
        options=base.options, max_concurrency=base.max_concurrency, chunks=base.chunks, events=opened.events,
    )  # fmt: skip
    loop = Loop(wanted.question, executor, asker, clients, wanted.bounds, record, wanted.choose, cancel)
    if record is not None:
        graph, before = opened.adapter.schema.hash, record.kept.head.get("input_hash")
        if before and before != graph:
            loop.warn("the graph is not the one that the question was first asked of")
        for damage in record.kept.damage:
            loop.warn(damage)
    opened.state.configure(query=wanted.question)
    try:
        return await loop.run()
    finally:
        if record is not None:
            record.close()


def _recorder(wanted: Wanted, opened: GASLExecutor) -> AskRecorder | Kept | None:
    if wanted.folder is None:
        return None
    return open_asks(
        wanted.folder, wanted.question, graph=opened.adapter.schema.hash, model=wanted.spec, again=wanted.again
    )
