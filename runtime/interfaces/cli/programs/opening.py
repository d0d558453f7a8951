"""Puts an executor together from what the command line names: the graph, the state, the models, the chunks."""

import os
from collections.abc import Callable, Mapping

from attrs import frozen

from .....adapters.state import StateStore
from .....lang.trees.gasl import Analyze, Classify, Process, Program
from .....lang.trees.node import walk
from ....events import Events
from ....gasl import GASLExecutor
from ....models.wiring import default_spec
from ....session.workspace import Models
from ...asked import Ground, Limits
from ...models import open_models
from ...opening import opened
from ..shared.telling import telling

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
    warn: Callable[[str], None],
) -> Opened:
    """Open all of it. ``asks`` says whether a model is needed at all; without a spec it is the default one then.

    A state knows the graph and the chunks that it was made with: they may be left out the next time. Raises ``AdapterError``,
    ``StoreError``, ``NotConfigured`` and ``Misused``.
    """

    def models() -> Models:
        spec = llm or (default_spec(os.environ) if asks else None)
        return open_models(spec, named, limits, max_concurrency, warn)

    made = opened(ground.wanted(), models, telling(warn), needs_graph=True)
    try:
        assert made.adapter is not None  # noqa: S101 - it was needed
        executor = GASLExecutor(
            made.adapter, made.models.default, made.state, models=made.models.named, max_concurrency=max_concurrency,
            events=events, chunks=made.chunks,
        )  # fmt: skip
    except BaseException:
        made.state.close()
        raise
    return Opened(executor, made.state, made.models)
