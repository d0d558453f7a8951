"""What a session works on: the state, the graph, the models, the values, and how results are shown. Everybody gets this one thing."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, frozen

from ....adapters.graph import GraphAdapter
from ....adapters.llm import LLM
from ....adapters.state import StateStore
from ....lang.catalogue.schema import Schema
from ...events import Events
from ...gasl import GASLExecutor
from ...gasl.variables import ContextStore
from .models import Model
from .outcome import NOTHING, Outcome
from .past import Past
from .reading import Piece
from .values import Values

__all__ = ["MODES", "Desk", "Entry", "Mode", "Settings"]

Mode = Literal["auto", "table", "json", "csv", "md"]
MODES: tuple[Mode, ...] = ("auto", "table", "json", "csv", "md")


@define
class Settings:
    """How results are shown. ``mode`` auto: a table where a person looks on, else JSON; in a file what its name ends in."""

    mode: Mode = "auto"
    timer: bool = False
    output: Path | None = None


@frozen
class Entry:
    """A piece that was run, for ``.save``, and what it bound."""

    piece: Piece
    names: tuple[str, ...] = ()


@define(eq=False)
class Desk:
    """``adapter`` is None where there is no graph; ``graph`` is its name; ``input`` is what ``{(input)}`` stands for.

    ``models`` are those that ``model=`` and ``SET llm.model`` may name. ``last_fault`` is the latest outcome with diagnostics, for
    ``.explain`` and for whoever offers its fix; None once something has run. ``ran`` are the pieces that ``.save`` writes.
    """

    state: StateStore
    model: Model
    adapter: GraphAdapter | None = None
    graph: str = ""
    models: Mapping[str, Model] = field(factory=dict)
    chunks: Callable[[str], str | None] | None = None
    input: Any = None
    events: Events = field(factory=Events)
    settings: Settings = field(factory=Settings)
    values: Values = field(factory=Values)
    past: Past = field(factory=Past)
    ran: list[Entry] = field(factory=list)
    last_fault: Outcome | None = None
    last_value: Any = NOTHING
    _executor: GASLExecutor | None = field(default=None, init=False)

    @property
    def executor(self) -> GASLExecutor | None:
        """What runs GASL's commands; None where there is no graph."""
        if self._executor is None and self.adapter is not None:
            self._executor = self.executor_on(self.state, self.values.context)
        return self._executor

    def executor_on(self, state: StateStore, context: ContextStore) -> GASLExecutor:
        """Return an executor on the session's graph and models. Only where there is a graph."""
        assert self.adapter is not None  # noqa: S101 - callers have looked
        named: dict[str, LLM] = dict(self.models)
        return GASLExecutor(
            self.adapter, self.model, state, context, models=named, chunks=self.chunks, events=self.events
        )

    async def schema(self) -> Schema | None:
        """Return the graph in summary; None without a graph. A large one takes seconds, once, beside the loop."""
        adapter = self.adapter
        return None if adapter is None else await asyncio.to_thread(lambda: adapter.schema)

    async def aclose(self) -> None:
        """Let go of the models, and close the state: what was noted is written."""
        for model in (self.model, *self.models.values()):
            await model.aclose()
        self.state.close()
