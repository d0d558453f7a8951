"""Runs iterative answers and scripts for the clients of a server. All runs share the models; each run has its own limits.

A client knows models only by the names that the server gives them. No spec, address or key is accepted from a client or sent to a client.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Unpack

from attrs import define, field, frozen

from ...adapters.llm import Completion, Notice, Options, Usage
from ...adapters.llm.budget import Ledger, Price
from ...adapters.llm.json_schema import read_json
from ...adapters.llm.middleware import Client, Layer
from ...adapters.permissions import private_folder
from ...adapters.postgres import SCHEMES as POSTGRES
from ...adapters.postgres import has_password, without_password
from ...adapters.postgres_pool import PostgresError, PostgresPool
from ...lang.diagnostic import Diagnostic, nearest, printable
from ...lang.errors import KnotworkError
from ...lang.source import Source
from ...lang.trees.lwt import ABSENT, MISSING, Script, calls_of
from ..answers.answer_results import ATTEMPTS, ITERATIONS, JUDGES, LONGEST, Answered, AnswerRequest, Iteration
from ..answers.templates import BUILTIN, Template, read_templates
from ..events import Event, Events
from ..results import Outcome, Recorded, Run, StepResult
from . import process_traces as traces
from .checks import CheckedScript, check_script

__all__ = [
    "ATTEMPTS", "BUILTIN", "ITERATIONS", "JUDGES", "LONGEST", "MISSING", "POSTGRES", "AnswerRequest", "Answered", "CheckedScript",
    "Iteration",
    "Model", "Overdue", "PostgresError", "PostgresPool", "RunLimits", "RunModels", "ServedModels", "Template", "TooMuchOutput",
    "UnknownModel", "answer_request", "check_answer_request", "check_client_script", "has_password", "private_folder", "read_json",
    "read_templates", "run_client_script", "without_password",
]  # fmt: skip

# Models: all runs share the clients, but each call is charged to the run that makes it. The counting layer is below the cache and
# the retries, so that cached answers cost nothing and every request sent is counted. A context variable selects the ledger of the run.

SEED_DEFAULT = "gpt-4o"
"""Default value of the request field ``model``."""
_LISTED = 50


@frozen
class Model:
    """A model that the server offers. Clients see ``name``; ``spec`` is not disclosed to them."""

    name: str
    spec: str

    @property
    def can_judge(self) -> bool:
        """Whether the model can judge answers. Local models are too small: they rate every answer as good."""
        return self.spec.partition(":")[0] != "local"


@frozen
class RunLimits:
    """The limits of one run on calls, tokens and cost (None: no limit), and its time limit in seconds. ``price`` is per million tokens."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    seconds: float = 600.0

    def ledger(self) -> Ledger:
        """Return a ledger for a new run."""
        return Ledger(self.max_calls, self.max_tokens, self.max_cost)


class UnknownModel(KnotworkError):
    """Raised if the server does not offer a model under this name. ``names`` are the names of the offered models (at most 50)."""

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        like = nearest(name, names)
        hint = f"did you mean {like!r}?" if like else f"the models are: {', '.join(names[:_LISTED])}"
        super().__init__(f"this server offers no model {printable(name[:80])!r}; {hint}")
        self.names = names[:_LISTED]


class _SharedLedger(Ledger):
    """The ledger of the shared clients. A shared ledger forwards each call to the ledger of the run in whose context the call is made."""

    def __init__(self, limits: RunLimits) -> None:
        super().__init__(limits.max_calls, limits.max_tokens, limits.max_cost)
        self.current: ContextVar[Ledger] = ContextVar("the run's ledger")

    async def reserve(self, need: Any, price: Price) -> Usage:
        return await self.current.get().reserve(need, price)

    def again(self, hold: Usage, price: Price, notice: Notice) -> None:
        self.current.get().again(hold, price, notice)

    def settle(self, hold: Usage, used: Usage, price: Price) -> None:
        self.current.get().settle(hold, used, price)


class _Charged(Layer):
    """A shared client whose calls are charged to one run. The server closes the client."""

    def __init__(self, inner: Client, shared: _SharedLedger, ledger: Ledger) -> None:
        super().__init__(inner)
        self._shared = shared
        self._ledger = ledger

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        token = self._shared.current.set(self._ledger)
        try:
            return await self._inner.generate(prompt, **options)
        finally:
            self._shared.current.reset(token)

    async def aclose(self) -> None:
        """Leave the shared client open."""


@frozen
class RunModels:
    """The clients of one run: the client of its model, a mapping from names to all clients, and the ledger of their cost."""

    name: str
    spec: str
    client: Client = field(repr=False)
    named: Mapping[str, Client] = field(repr=False)
    ledger: Ledger = field(repr=False)
    substitution: str = ""
    """A message which says that the server's default model answers instead of the requested model; "" if the requested model answers."""


@frozen
class ServedModels:
    """The open models. The first of ``models`` is the default."""

    models: Mapping[str, Model]
    default: str
    limits: RunLimits
    _clients: Mapping[str, Client] = field(repr=False)
    _ledger: _SharedLedger = field(repr=False)

    @classmethod
    def open(
        cls,
        models: tuple[Model, ...],
        limits: RunLimits,
        *,
        cache: Any = False,
        warn: Callable[[str], None] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> "ServedModels":
        """Open a client for each of ``models``. ``cache`` is passed to ``ModelOpener``. Raises ``NotConfigured``."""
        from ..models.answer_cache import SharedCaches, answer_cache
        from ..models.factory import ModelSettings, open_model

        clients, ledger, caches = {}, _SharedLedger(limits), SharedCaches()
        for model in models:
            place = answer_cache(cache, model.spec, environ)
            settings = ModelSettings(model.spec, place, ledger, limits.price, names_address=False)
            clients[model.name] = open_model(settings, environ, warn=warn, caches=caches)
        return cls({model.name: model for model in models}, models[0].name, limits, clients, ledger)

    def find(self, name: str | None) -> Model:
        """Return the model ``name``. None, or ``SEED_DEFAULT`` if not offered, selects the default. Raises ``UnknownModel``."""
        if name is None or (name == SEED_DEFAULT and name not in self.models):
            name = self.default
        if name not in self.models:
            raise UnknownModel(name, tuple(self.models))
        return self.models[name]

    def substitution(self, name: str | None) -> str:
        """Return a message if the server's default model answers instead of the requested model, otherwise an empty string."""
        if name != SEED_DEFAULT or name in self.models:
            return ""
        return f"the request names the model {name!r}, which this server does not offer; {self.default!r} answered"

    def for_run(self, name: str | None = None) -> RunModels:
        """Return the clients of one run.

        The calls of these clients are charged to one new ledger with the limits of a run. Do not close the clients.

        Raises ``UnknownModel``.
        """
        model, ledger = self.find(name), self.limits.ledger()
        named: dict[str, Client] = {
            each: _Charged(client, self._ledger, ledger) for each, client in self._clients.items()
        }
        return RunModels(model.name, model.spec, named[model.name], named, ledger, self.substitution(name))

    async def aclose(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            await client.aclose()


# Iterative answers.

_CALLS = 16
"""Maximum concurrent calls of one run."""


async def answer_request(
    request: AnswerRequest,
    models: RunModels,
    *,
    templates: Mapping[str, Template],
    events: Events,
    cancel: asyncio.Event,
    time_limit: float,
    on_iteration: Callable[[Iteration], Any],
) -> Answered:
    """Answer the request of a client. The arguments are those of ``answers.generate_answer``."""
    from ..answers.service import answer
    from ..models.caller import Caller
    from ..results import Trace

    caller = Caller(models.client, models.named, events, Trace(), _CALLS)
    return await answer(
        request, caller, spec=models.spec, templates=templates, events=events, cancel=cancel, time_limit=time_limit,
        on_iteration=on_iteration,
    )  # fmt: skip


async def check_answer_request(request: AnswerRequest, templates: Mapping[str, Template]) -> None:
    """Validate the request of a client without calling a model. Raises ``RequestError``."""
    from ..answers.service import answer
    from ..models.caller import Caller
    from ..results import Trace

    cancelled = asyncio.Event()
    cancelled.set()
    await answer(request, Caller(None, {}, None, Trace(), 1), templates=templates, cancel=cancelled)


# Scripts sent by clients. They are checked before any call, and may use fewer operations than scripts in the user's own files.

ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "JOIN", "ANSWER")
"""Operations that need no file, graph, function or plugin code of the server."""
LARGEST = 16_000_000
"""Maximum number of characters of all outputs of a run together. Even without calls, expressions could fill the memory."""
_PATIENCE = 0.5
"""Number of seconds that a run may continue to compute after it was cancelled."""


def check_client_script(text: str, input: Any, *, lenient: bool, models: Collection[str]) -> CheckedScript:
    """Check a script that a client sent. ``models`` are the names of the offered models. Never raises for an invalid script."""
    from ...lang.catalogue.operations import BUILTIN as OPERATIONS

    def restrict(script: Script) -> Iterator[Diagnostic]:
        for call in (call for step in script.steps for call in calls_of(step)):
            if call.operation not in ALLOWED:
                known = call.operation in OPERATIONS
                needs = "functions" if call.operation == "CALL" else "files or a graph"
                what = f"needs {needs} of the server" if known else "is not offered"
                message = f"{call.operation} {what}: it is not allowed in scripts sent over HTTP"
                hint = f"allowed are: {', '.join(name for name in ALLOWED if name in OPERATIONS)}"
                yield Diagnostic("WEB001", "error", message, call.span, (hint,))
            elif (file := call.option("file") or call.option("schema_file")) is not None:
                yield Diagnostic("WEB002", "error", "a script sent over HTTP can't read files", file.span)

    # Only the built-in operations are allowed: clients may not run plugins.
    return check_script(
        Source(text, "script"), "lenient" if lenient else "strict", input=ABSENT if input is None else input, models=models,
        operations=OPERATIONS, reads_files=False, restrict=restrict,
    )  # fmt: skip


class Overdue(KnotworkError):
    """Raised if a cancelled run does not end in time."""

    def __init__(self) -> None:
        super().__init__("the run was cancelled but did not end in time")


class TooMuchOutput(KnotworkError):
    """Raised if the outputs of the run exceed the server's limit."""

    def __init__(self) -> None:
        super().__init__(f"the outputs exceed the limit of {LARGEST:,} characters in total")


@define(eq=False)
class _OutputLimit:
    """A ``Record`` that stores nothing.

    It raises ``TooMuchOutput`` if the outputs are too large, and ``Overdue`` if the run does not end soon after ``cancel`` is
    set.

    Steps without model calls run without a pause, so only an exception raised here can end them. ``cancel`` is only read, which
    is safe in any thread.
    """

    cancel: asyncio.Event
    size: int = field(default=0, init=False)
    run_id: str = field(default="", init=False)
    damage: str = field(default="", init=False)
    _since: float = field(default=0.0, init=False)

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        return None

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        self._add(outcome.output)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        self._add(result.output)

    def finished(self, run: Run) -> None: ...

    def close(self) -> None: ...

    def _add(self, text: str) -> None:
        if self.cancel.is_set():
            now = perf_counter()
            self._since = self._since or now
            if now - self._since > _PATIENCE:
                raise Overdue
        self.size += len(text)
        if self.size > LARGEST:
            raise TooMuchOutput


async def run_client_script(
    checked: CheckedScript, input: Any, models: RunModels, *, cancel: asyncio.Event, on_event: Callable[[Event], None],
    stream_answers: bool = False,
) -> Run:  # fmt: skip
    """Run a client's checked script in a separate thread and event loop. ``on_event`` is called in the caller's event loop.

    With ``stream_answers``, it also receives the parts of text answers while they arrive.

    Raises ``TooMuchOutput`` and ``Overdue``.
    """
    from ..lwt.runner import run
    from .worker import CrossLoopClient, run_in_worker

    loop = asyncio.get_running_loop()
    named = {name: CrossLoopClient(client, loop) for name, client in models.named.items()}

    def forward(event: Event) -> None:
        loop.call_soon_threadsafe(on_event, event)

    events = Events([forward])
    if stream_answers:
        events.stream_answers()
    traces.subscribe(events)

    def work(cancelled: asyncio.Event) -> Coroutine[Any, Any, Run]:
        return run(
            checked.script, input=input, llm=named[models.name], models=named, events=events,
            record=_OutputLimit(cancel), cancel=cancelled, spec=models.spec, plan=checked.plan,
        )  # fmt: skip

    return await run_in_worker(work, cancel)
