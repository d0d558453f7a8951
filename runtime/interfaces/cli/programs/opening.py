"""Puts an executor together from what the command line names: the graph, the state, the models, the chunks."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from .....adapters.chunks import open_chunks
from .....adapters.state import StateStore, StoreError
from .....lang.diagnostic import printable
from .....lang.gasl import Analyze, Classify, Process, Program
from .....lang.node import walk
from ....events import Events
from ....executor import GASLExecutor
from ....executor.grounds import is_of_another, told_of_another
from ....wiring import default_spec, open_graph, open_state
from ..execution.asked import Ground, Limits
from ..execution.models import Models, open_models
from ..shared.exit import Misused
from ..shared.output import is_terminal, say
from ..shared.states import chunks_of, graph_of

__all__ = ["Opened", "asks_a_model", "open_executor"]

_MODEL_COMMANDS = (Process, Classify, Analyze)


@frozen
class Opened:
    """An executor and what has to be closed with it."""

    executor: GASLExecutor
    state: StateStore
    models: Models


def asks_a_model(program: Program) -> bool:
    """Say whether a command of the program may ask a model."""
    return any(isinstance(node, _MODEL_COMMANDS) for item in program.items for node in walk(item))


def open_executor(
    ground: Ground,
    llm: str | None,
    named: Mapping[str, str],
    limits: Limits,
    max_concurrency: int,
    events: Events,
    *,
    asks: bool,
    warn: Any,
) -> Opened:
    """Open all of it. ``asks`` says whether a model is needed at all; without a spec it is the default one then.

    A state knows the graph and the chunks that it was made with: they may be left out the next time. Raises ``AdapterError``,
    ``StoreError``, ``NotConfigured`` and ``Misused``.
    """
    if ground.state is not None and os.path.isfile(ground.state):
        hint = f"knotwork state fork {ground.state} DIR makes a folder of an exported state"
        raise Misused(f"{ground.state} is a file; --state takes a folder, in which the state is kept", hint)
    # A folder is made when all else is known to be there, and one that is there is locked before a graph is loaded, which may
    # take a while.
    with _hinting():
        state = None if ground.state is not None and not os.path.exists(ground.state) else open_state(ground.state)
    try:
        kept = {} if state is None else state.replay_info()
        source = ground.graph or graph_of(kept)
        if source is None:
            raise Misused("a program needs a graph", "--graph FILE, or --graph nx:les_miserables to try one")
        _announce(source)
        loaded = open_graph(source)
        spec = llm or (default_spec(os.environ) if asks else None)
        models = open_models(spec, named, limits, max_concurrency, warn)
        if state is not None and is_of_another(state, loaded.adapter.schema.hash):
            told = told_of_another(ground.state, graph_of(kept), str(source))
            if not ground.force:
                raise Misused(told, "another graph takes another --state; --force goes on in this one all the same")
            warn(told)
        texts = ground.chunks or chunks_of(kept)
        chunks = open_chunks(texts) if texts is not None else None
        if state is None:
            with _hinting():
                state = open_state(ground.state)
        for notice in state.notices:
            warn(notice)
        params = {} if texts is None else {"chunks": texts}
        adapter = {"type": "networkx", "path": str(source), "params": params}
        model = {"llm": {"provider": spec.partition(":")[0], "model": spec}} if spec else {}
        state.configure(query=ground.query, config={"adapter": adapter, **model})
        executor = GASLExecutor(
            loaded.adapter, models.default, state, models=models.named, max_concurrency=max_concurrency, events=events,
            chunks=chunks,
        )  # fmt: skip
    except BaseException:
        if state is not None:
            state.close()
        raise
    return Opened(executor, state, models)


@contextmanager
def _hinting() -> Iterator[None]:
    """Give a hint to the error of a state whose folder can't be made, or written."""
    try:
        yield
    except StoreError as error:
        if error.hint or not any(each in error.message for each in _NOT_WRITTEN):
            raise
        raise StoreError(error.message, hint=_WRITABLE) from None


_NOT_WRITTEN = ("can't be made", "can't be written", "is not ours to write")
_WRITABLE = "--state takes a folder that can be written; it is made where it is not there"
_SLOW = 4 << 20
"""Bytes of a graph's file whose reading takes seconds."""


def _announce(source: str) -> None:
    """Tell a person who looks on why nothing happens for a while."""
    if is_terminal(sys.stderr) and os.path.isfile(source) and (size := os.path.getsize(source)) > _SLOW:
        say(printable(f"reading {source} ({size / 1e6:,.0f} MB)"))
