"""The context of a session: state, graph, models, values and display settings. All parts share this object."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

from attrs import define, field, frozen

from ....adapters.graph import GraphAdapter
from ....adapters.llm import LLM, Completion, Options
from ....adapters.llm.middleware import Client, Own
from ....adapters.state import Snapshot, StateStore
from ....lang.catalogue.schema import Schema
from ....lang.trees.lwt import Step
from ...api.workspace import Models, OpeningCallbacks, WorkspaceOptions
from ...errors import Misused
from ...events import Events
from ...gasl import GASLExecutor
from ...gasl.records import ContextStore, Value
from ...models.factory import Ledger, ModelSettings, Price, default_spec, open_model
from ...results import Before, StepResult, plain
from ...runs.journal import cache_file
from ...templates import text_of
from ..options import Limits, named_specs, opened, price_of
from .outcome import NOTHING, Outcome
from .reader import Piece

# The session's model: opened on first use, changed by ``.llm``, with one budget for the whole session.


class Model(Own):
    """A client that forwards to the chosen model. ``spec`` "": the default model, determined on first use.

    ``cache`` returns the call cache's file for a spec, None for no cache.
    """

    def __init__(
        self,
        spec: str,
        ledger: Ledger,
        *,
        price: Price | None = None,
        cache: Callable[[str], Path | None] = lambda spec: None,
        warn: Callable[[str], None] = lambda text: None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.spec = spec
        self.ledger = ledger
        self.price = price
        self._cache = cache
        self._warn = warn
        self._environ = environ
        self._client: Client | None = None
        self._left: list[Client] = []

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the answer of the chosen model; raise ``NotConfigured`` if no model is configured."""
        if self._client is None:
            self._client = self.opened(self.spec or default_spec(self._environ))
        return await self._client.generate(prompt, **options)

    def opened(self, spec: str) -> Client:
        """Return a client under the session's budget. Raises ``NotConfigured``."""
        settings = ModelSettings(spec, self._cache(spec), self.ledger, self.price)
        return open_model(settings, self._environ, warn=self._warn)

    def choose(self, spec: str) -> None:
        """Switch to another model. Raises ``NotConfigured``, in which case nothing has changed."""
        client = self.opened(spec)
        if self._client is not None:
            self._left.append(self._client)
        self._client, self.spec = client, spec

    @property
    def shown(self) -> str:
        """The spec in use, or the one that would be used. Raises ``NotConfigured``."""
        return self.spec or default_spec(self._environ)

    async def aclose(self) -> None:
        """Close all opened clients."""
        left, self._left = [*self._left, self._client], []
        self._client = None
        for client in left:
            if client is not None:
                await client.aclose()


def budget_of(ledger: Ledger) -> list[list[Any]]:
    """Return the rows of a table: limit name, amount spent, amount left (None: no limit).

    The dollars spent are None if the price of a called model is unknown.
    """
    spent: list[tuple[str, float | None, float | None]] = [
        ("calls", ledger.calls, ledger.max_calls),
        ("tokens", ledger.usage.total, ledger.max_tokens),
        ("cost", None if ledger.unpriced else round(ledger.cost, 6), ledger.max_cost),
    ]
    return [[what, used, limit, _left(used, limit)] for what, used, limit in spent]


def _left(used: float | None, limit: float | None) -> float | None:
    return None if used is None or limit is None else max(limit - used, 0)


# The values of a session by name: GASL variables, results of steps, and bound expressions. Each name has one value.


@frozen
class Kept:
    """All values at one time."""

    bound: Mapping[str, Value]
    steps: Mapping[str, "Named"]


@frozen
class Named:
    """A step that ran, with its result. If the name's value is no longer ``value``, it is not the step's."""

    step: Step
    result: StepResult
    value: Value


@define
class Values:
    """The values of a session. ``context`` is written by GASL commands; finished steps are stored with their texts."""

    context: ContextStore = field(factory=ContextStore)
    _steps: dict[str, Named] = field(factory=dict)

    def bind(self, name: str, value: Any) -> None:
        """Bind a JSON value."""
        self.context.set(name, value)

    def ran(self, step: Step, result: StepResult) -> None:
        """Bind the result of a finished step."""
        value = Value(plain(result.value if result.value is not None or result.unmet else result.output))
        self.context.set(step.id, value)
        self._steps[step.id] = Named(step, result, value)

    def names(self) -> tuple[str, ...]:
        """Return all names, in the order of binding."""
        return self.context.names()

    def step(self, name: str) -> Named | None:
        """Return the step whose value ``name`` has; None for a variable or an unknown name."""
        found = self._steps.get(name)
        return found if found is not None and self.context.value(name) is found.value else None

    def before(self, wanted: Iterator[str] | list[str]) -> Before:
        """Return the referenced values among the given names, for a script."""
        results, steps = {}, {}
        for name in wanted:
            bound = self.context.value(name)
            if bound is None:
                continue
            named = self.step(name)
            if named is not None:
                steps[name] = named.step
                made = named.result
                results[name] = StepResult(
                    name, made.status, made.output, made.value, reason=made.reason, unmet=made.unmet
                )
            else:
                results[name] = StepResult(name, "done", text_of(bound.value), bound.value)
        return Before(results, steps)

    def kept(self) -> Kept:
        """Return a copy of all values for ``back``."""
        bound = {name: value for name in self.names() if (value := self.context.value(name)) is not None}
        return Kept(bound, dict(self._steps))

    def back(self, kept: Kept) -> None:
        """Restore all values."""
        self.context.clear()
        for name, value in kept.bound.items():
            self.context.set(name, value)
        self._steps = dict(kept.steps)


# The undo history: the state and the values before each command of the session that changed one of them.

_MOST = 100
"""Maximum number of undoable commands; each keeps the values replaced since in memory."""


@frozen
class Moment:
    """The session before ``text`` was run; ``latest`` is the value that an expression calls ``_``."""

    text: str
    hash: str
    state: Snapshot
    values: Kept
    entries: int
    latest: Any = NOTHING

    @classmethod
    def now(cls, text: str, state: StateStore, values: Values, entries: int, latest: Any = NOTHING) -> "Moment":
        """Return the present session, after ``entries`` pieces. It costs one reference per name, whatever the values' size."""
        return cls(text, state.hash, state.snapshot(), values.kept(), entries, latest)


@define
class Past:
    """The latest moments, oldest first."""

    moments: list[Moment] = field(factory=list)

    def add(self, moment: Moment, state: StateStore, values: Values) -> bool:
        """Add a moment if something has changed since; return whether it was added."""
        if moment.hash == state.hash and _same(moment.values, values.kept()):
            return False
        self.moments = [*self.moments[-_MOST + 1 :], moment]
        return True


def _same(one: Kept, other: Kept) -> bool:
    return list(one.bound) == list(other.bound) and all(other.bound[name] is value for name, value in one.bound.items())


Mode = Literal["auto", "table", "json", "csv", "md"]
MODES: tuple[Mode, ...] = ("auto", "table", "json", "csv", "md")


@define
class Settings:
    """Display settings. ``mode`` auto: a table on a terminal, else JSON; in a file, the format of its extension."""

    mode: Mode = "auto"
    timer: bool = False
    output: Path | None = None


@frozen
class Entry:
    """A piece that was run, for ``.save``, and the names it bound."""

    piece: Piece
    names: tuple[str, ...] = ()


@define(eq=False)
class Desk:
    """The workspace of a session.

    ``adapter`` is None if there is no graph; ``graph`` is its name; ``input`` is the value of ``{(input)}``. ``models`` are those
    that ``model=`` and ``SET llm.model`` may name. ``last_fault`` is the latest outcome with diagnostics, for ``.explain`` and
    for offering its fix; None after a successful run. ``ran`` are the pieces that ``.save`` writes.
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
        """The executor of GASL commands; None if there is no graph."""
        if self._executor is None and self.adapter is not None:
            self._executor = self.executor_on(self.state, self.values.context)
        return self._executor

    def executor_on(self, state: StateStore, context: ContextStore) -> GASLExecutor:
        """Return an executor on the session's graph and models. The session must have a graph."""
        assert self.adapter is not None  # noqa: S101 - callers have looked
        named: dict[str, LLM] = dict(self.models)
        return GASLExecutor(
            self.adapter, self.model, state, context, models=named, chunks=self.chunks, events=self.events
        )

    async def schema(self) -> Schema | None:
        """Return the graph's schema; None without a graph. A large graph takes seconds, once, outside the event loop."""
        adapter = self.adapter
        return None if adapter is None else await asyncio.to_thread(lambda: adapter.schema)

    async def aclose(self) -> None:
        """Close the models and the state: pending notes are written."""
        for model in (self.model, *self.models.values()):
            await model.aclose()
        self.state.close()


# The options of a session as values, shared by the command line and notebooks.


@frozen(kw_only=True)
class DeskAsked:
    """Session options. ``llm``: the model's spec (None: default, on first use); ``models``: NAME=SPEC; ``given``: the input."""

    ground: WorkspaceOptions = field(factory=WorkspaceOptions)
    llm: str | None = None
    models: tuple[str, ...] = ()
    limits: Limits = field(factory=Limits)
    given: Any = None
    mode: Mode = "auto"


# Opens a session's workspace: graph, state, models under one budget.


def open_desk(asked: DeskAsked, telling: OpeningCallbacks) -> Desk:
    """Open the workspace. A stored state remembers its graph and chunks: they may be omitted the next time.

    Raises ``AdapterError``, ``StoreError``, ``NotConfigured``, ``GivenUp`` and ``Misused``.
    """
    limits = asked.limits
    price, named = price_of(limits.price), named_specs(asked.models)
    if limits.max_cost is not None and price is None:
        raise Misused("--max-cost needs the model's price", "--price IN/OUT, dollars for a million tokens in and out")
    ledger = Ledger(limits.max_calls, limits.max_tokens, limits.max_cost)

    def model(spec: str) -> Model:
        return Model(spec, ledger, price=price, cache=cache_file if limits.cache else _none, warn=telling.warn)

    def default() -> Models:
        made = model("")
        if asked.llm is not None:
            made.choose(asked.llm)
        return Models(made.spec, made, {}, ledger)

    made = opened(asked.ground, default, telling)
    models = {name: model(spec) for name, spec in named.items()}
    settings = Settings(asked.mode)
    return Desk(
        made.state, made.models.default, made.adapter, made.graph, models, made.chunks, asked.given, settings=settings
    )


def _none(spec: str) -> Path | None:
    return None
