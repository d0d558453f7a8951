"""Runs iterative answers and scripts for the clients of a server. All runs share the models; each run has its own limits.

A client knows models only by the names that the server gives them. No spec, address or key is accepted from a client or sent to a client.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from time import perf_counter
from typing import Any, Unpack

from attrs import define, field, frozen

from ...adapters.llm import Completion, Notice, Options, Usage
from ...adapters.llm.budget import Ledger, Price
from ...adapters.llm.json_schema import read_json
from ...adapters.llm.middleware import Client, Layer
from ...adapters.permissions import private_folder
from ...lang.diagnostic import Diagnostic, nearest, printable
from ...lang.errors import KnotworkError
from ...lang.source import Source
from ...lang.trees import walk
from ...lang.trees.lwt import ABSENT, Call, Script
from ..answers.answer_results import ATTEMPTS, ITERATIONS, JUDGES, LONGEST, Answered, AnswerRequest, Iteration
from ..answers.templates import BUILTIN, Template, read_templates
from ..events import Event, Events
from ..results import Outcome, Recorded, Run, StepResult
from .checks import CheckedScript, check_script

__all__ = [
    "ATTEMPTS", "BUILTIN", "ITERATIONS", "JUDGES", "LONGEST", "AnswerRequest", "Answered", "CheckedScript", "Iteration", "Model",
    "Overdue", "RunLimits", "RunModels", "ServedModels", "Template", "TooMuchOutput", "UnknownModel", "answer_request",
    "check_answer_request", "check_client_script", "private_folder", "read_json", "read_templates", "run_client_script",
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
    """The server does not offer a model under this name. ``names`` are the names of the offered models (at most 50)."""

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        like = nearest(name, names)
        hint = f"did you mean {like!r}?" if like else f"there are: {', '.join(names[:_LISTED])}"
        super().__init__(f"no model is offered under the name {printable(name[:80])!r}; {hint}")
        self.names = names[:_LISTED]


class _SharedLedger(Ledger):
    """The ledger of the shared clients. It forwards all calls to the ledger of the run in whose context they are made."""

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
    """The clients of one run: its own model, all models by name, and the ledger that counts the cost of all of them."""

    name: str
    spec: str
    client: Client = field(repr=False)
    named: Mapping[str, Client] = field(repr=False)
    ledger: Ledger = field(repr=False)
    substitution: str = ""
    """A message that the server's default model answers instead of the requested model; "" if the requested model answers."""


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
        cache: Path | bool = False,
        warn: Callable[[str], None] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> "ServedModels":
        """Open a client for each of ``models``. ``cache``: the file of the call cache (True: the user's). Raises ``NotConfigured``."""
        from ..models.factory import ModelSettings, open_model
        from ..runs.journal import cache_file

        clients, ledger = {}, _SharedLedger(limits)
        for model in models:
            file = cache if isinstance(cache, Path) else cache_file(model.spec) if cache else None
            clients[model.name] = open_model(ModelSettings(model.spec, file, ledger, limits.price), environ, warn=warn)
        return cls({model.name: model for model in models}, models[0].name, limits, clients, ledger)

    def find(self, name: str | None) -> Model:
        """Return the model ``name``. None, and ``SEED_DEFAULT`` if not offered, give the default model. Raises ``UnknownModel``."""
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
        """Return the clients of one run. Their calls are charged to one new ledger with the limits of a run. Do not close the clients.

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
    """Answer the request of a client. The arguments are as for ``answers.generate_answer``."""
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

ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "ANSWER")
"""Operations that need no file, graph or plugin code of the server."""
LARGEST = 16_000_000
"""Maximum number of characters of all outputs of a run together. Even without calls, a thousand expressions could exceed memory."""
_PATIENCE = 0.5
"""Number of seconds that a run may continue to compute after it was cancelled."""


def check_client_script(text: str, input: Any, *, lenient: bool, models: Collection[str]) -> CheckedScript:
    """Check a script that a client sent. ``models`` are the names of the offered models. Never raises for an invalid script."""
    from ...lang.catalogue.operations import BUILTIN as OPERATIONS

    def restrict(script: Script) -> Iterator[Diagnostic]:
        for call in (node for step in script.steps for node in walk(step) if isinstance(node, Call)):
            if call.operation not in ALLOWED:
                known = call.operation in OPERATIONS
                what = "needs what only the server's owner has" if known else "is not offered"
                message = f"{call.operation} {what}: it is not for scripts that come over HTTP"
                hint = f"there are: {', '.join(name for name in ALLOWED if name in OPERATIONS)}"
                yield Diagnostic("WEB001", "error", message, call.span, (hint,))
            elif (file := call.option("file")) is not None:
                yield Diagnostic("WEB002", "error", "a script that comes over HTTP reads no files", file.span)

    # Only the built-in operations are allowed: clients may not run plugins.
    return check_script(
        Source(text, "script"), "lenient" if lenient else "strict", input=ABSENT if input is None else input, models=models,
        operations=OPERATIONS, reads_files=False, restrict=restrict,
    )  # fmt: skip


class Overdue(KnotworkError):
    """The run was cancelled and did not end in time."""

    def __init__(self) -> None:
        super().__init__("the run was cancelled and did not end")


class TooMuchOutput(KnotworkError):
    """The outputs of the run exceed the server's limit."""

    def __init__(self) -> None:
        super().__init__(f"outputs may have {LARGEST:,} characters together")


@define(eq=False)
class _OutputLimit:
    """A ``Record`` that stores nothing. It raises ``TooMuchOutput``, and ``Overdue`` some time after ``cancel`` is set.

    Steps without model calls run without a pause, so only an exception raised here can end them. ``cancel`` is only read; reading it is
    safe in any thread.
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
    checked: CheckedScript, input: Any, models: RunModels, *, cancel: asyncio.Event, on_event: Callable[[Event], None]
) -> Run:
    """Run a client's checked script in a separate thread and event loop. ``on_event`` is called in the caller's event loop.

    Raises ``TooMuchOutput`` and ``Overdue``.
    """
    from ..lwt.runner import run
    from .worker import CrossLoopClient, run_in_worker

    loop = asyncio.get_running_loop()
    named = {name: CrossLoopClient(client, loop) for name, client in models.named.items()}

    def forward(event: Event) -> None:
        loop.call_soon_threadsafe(on_event, event)

    def work(cancelled: asyncio.Event) -> Coroutine[Any, Any, Run]:
        return run(
            checked.script, input=input, llm=named[models.name], models=named, events=Events([forward]),
            record=_OutputLimit(cancel), cancel=cancelled, spec=models.spec, plan=checked.plan,
        )  # fmt: skip

    return await run_in_worker(work, cancel)
