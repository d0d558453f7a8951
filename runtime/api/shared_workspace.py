"""A workspace that many clients share.

The workspace holds the clients' sessions and large results, and checks and runs the texts that clients send.
"""

import asyncio
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Unpack

from attrs import define, evolve, field, frozen

from ...adapters.llm import LLM, BudgetExceeded, Completion, Options, Tally
from ...adapters.llm.budget import Price
from ...adapters.llm.middleware import Client, Layer, as_client
from ...lang.catalogue.operations import BUILTIN, Signature
from ...lang.diagnostic import Diagnostic
from ...lang.embedded_code import embedded_program
from ...lang.parse.gasl import parse_gasl
from ...lang.source import Source
from ...lang.trees import walk
from ...lang.trees.gasl import Declare, Program, Reset, Update
from ...lang.trees.lwt import ABSENT, MISSING, Script, Template, calls_of
from ..events import Event, Events
from ..gasl import ExecutionError, GASLExecutor, PlanError
from ..gasl.blocks import handles
from ..gasl.commands.parameters import checked_parameters, give_parameters
from ..gasl.prepare import ceiling_of, ready_of
from ..gasl.records import ContextStore, ExecutionRecord, coverage, last_with_value, plan_status
from ..gasl.surroundings import Surroundings, roll_back
from ..lwt.runner import run as run_lwt
from ..models.factory import open_state
from ..results import Run, ScriptError
from . import process_traces as traces
from .checks import CheckedProgram, CheckedScript, check_program, check_script
from .worker import CrossLoopClient
from .workspace import Models, StateStore, Workspace

__all__ = [
    "ABSENT", "MAIN", "MISSING", "BudgetExceeded", "CallUsage", "ClientChecks", "ClientSessions", "ContextStore",
    "DroppedSession", "ExecutionError", "ExecutionRecord", "GASLExecutor", "Models", "PlanError", "Price", "ProgramRun",
    "ResultStore", "ScriptError", "SessionKey", "SharedWorkspace", "Tally", "checked_parameters", "coverage", "last_with_value",
    "plan_status",
    "uses_graph",
]  # fmt: skip

# The sessions of clients. Each client may have a limited number of sessions. Above the limit, the least recently used session is
# dropped, and reported as dropped. ``main``, the session of calls that name no session, is never dropped.

SessionKey = tuple[str, str]
"""The client of a session (over HTTP, the id of the client's key), and the name of the session."""

MAIN = "main"
MOST_SESSIONS = 32
"""Maximum number of stored sessions per client, besides ``main``. Above this number, the least recently used session is dropped."""
_REMEMBERED = 256
"""For each client, the maximum number of dropped sessions whose names are stored."""
_NAMES = 100
"""For each dropped session, the maximum number of variables whose names are stored."""


@frozen
class DroppedSession:
    """A session whose variables are lost. ``variables`` lists at most 100 names of these variables."""

    name: str
    variables: frozenset[str]

    @property
    def message(self) -> str:
        """A message that says why the session was dropped."""
        return f"session {self.name} was dropped: the server stores {MAIN} and the {MOST_SESSIONS} latest sessions"

    @property
    def hint(self) -> str:
        """A hint that says how the user can restore the variables."""
        return "run the commands that bind its variables again, or use fewer sessions"


@define(eq=False)
class _SessionsOfClient:
    """The sessions of one client, the least recently used first."""

    executors: "OrderedDict[str, GASLExecutor]" = field(factory=OrderedDict)
    dropped: "OrderedDict[str, DroppedSession]" = field(factory=OrderedDict)


@define(eq=False)
class ClientSessions:
    """Maps each pair of a client and a session name to an executor. An executor holds the variables of its session."""

    _clients: dict[str, _SessionsOfClient] = field(factory=dict)

    def use(self, key: SessionKey, create: Callable[[], GASLExecutor]) -> GASLExecutor:
        """Return a session's executor; ``create`` creates one for a new session."""
        client, name = key
        own = self._clients.setdefault(client, _SessionsOfClient())
        if name not in own.executors:
            own.executors[name] = create()
        own.executors.move_to_end(name)
        others = [each for each in own.executors if each != MAIN]
        for each in others[:-MOST_SESSIONS]:
            names = frozenset(islice(own.executors.pop(each).context.names(), _NAMES))
            own.dropped[each] = DroppedSession(each, names)
            own.dropped.move_to_end(each)
        while len(own.dropped) > _REMEMBERED:
            own.dropped.popitem(last=False)
        return own.executors[name]

    def variables(self, key: SessionKey) -> ContextStore | None:
        """Return a session's variables; None if the session does not exist."""
        client, name = key
        own = self._clients.get(client)
        return own.executors[name].context if own is not None and name in own.executors else None

    def dropped(self, key: SessionKey) -> DroppedSession | None:
        """Return the record of a dropped session, even if a session of this name is in use again; None if no such session was dropped."""
        client, name = key
        own = self._clients.get(client)
        return None if own is None else own.dropped.get(name)

    def names(self, client: str) -> tuple[str, ...]:
        """Return the names of a client's sessions, the most recently used first."""
        own = self._clients.get(client)
        return () if own is None else tuple(reversed(own.executors))

    def renew(self, create: Callable[[ContextStore], GASLExecutor]) -> None:
        """Replace each session's executor with the executor that ``create`` returns for the session's variables."""
        for own in self._clients.values():
            for name, executor in own.executors.items():
                own.executors[name] = create(executor.context)


# Results of more than one page, stored for later requests. The number per client is limited; the oldest results are dropped.


@define(eq=False)
class ResultStore:
    """Stores values under handles. A handle is random, and only valid for the client that received it.

    At most ``most`` values are stored per client, so that no client displaces the values of another client.
    """

    most: int = 64
    _clients: "dict[str, OrderedDict[str, Any]]" = field(factory=dict)

    def put(self, client: str, value: Any) -> str:
        """Store ``value`` and return its handle."""
        handle = f"p_{secrets.token_hex(6)}"
        own = self._clients.setdefault(client, OrderedDict())
        own[handle] = value
        while len(own) > self.most:
            own.popitem(last=False)
        return handle

    def get(self, client: str, handle: str) -> Any:
        """Return the value stored under ``handle``. Raises ``KeyError``."""
        own = self._clients.get(client, OrderedDict())
        own.move_to_end(handle)
        return own[handle]


# The model cost of one client call, counted separately from the cost of parallel calls.


@define(eq=False)
class CallUsage:
    """Counts the cost of the current call. All executors share one counter, because only one of them runs at a time."""

    tally: Tally = field(factory=Tally)

    def begin(self) -> Tally:
        """Start a new count, and return it."""
        self.tally = Tally()
        return self.tally

    def clients(self, models: Models) -> dict[str, Any]:
        """Return the models as options of an executor that runs in another event loop. ``tally`` counts their cost."""
        home = asyncio.get_running_loop()

        def counted(client: LLM) -> Client:
            return _CountingClient(CrossLoopClient(as_client(client), home), self)

        default = None if models.default is None else counted(models.default)
        return {"llm": default, "models": {name: counted(client) for name, client in models.named.items()}}


class _CountingClient(Layer):
    """Counts the cost of one call, as the inner client's budget reports it. Cached answers cost nothing and are not counted."""

    def __init__(self, inner: Client, usage: CallUsage) -> None:
        super().__init__(inner)
        self._usage = usage

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        options["tally"] = self._usage.tally
        return await self._inner.generate(prompt, **options)


# Checks of texts that clients send. Such texts may not read files, run plugins, or change a read-only state.

ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "JOIN", "ANSWER", "GASL")
"""Script operations that need no file, no plugin code and no function of the host."""
_UNKNOWN_OPERATION = "LWT018"
"""The rule whose diagnostic lists the available operations."""


@frozen
class ClientChecks:
    """The data that the texts of clients are checked against. If ``read_only`` is true, the texts must not change the state."""

    surroundings: Surroundings
    read_only: bool = False

    @property
    def has_graph(self) -> bool:
        """Whether the workspace has a graph."""
        return self.surroundings.schema is not None

    def without_variables(self) -> "ClientChecks":
        """Return a copy for checking a text that begins without variables."""
        return evolve(self, surroundings=evolve(self.surroundings, variables=()))

    def program(self, source: Source, language: Literal["gasl", "plan"]) -> CheckedProgram:
        """Check a program or a plan. A change to a read-only state is the error MCP001."""
        return check_program(source, language, self.surroundings, restrict=_changes if self.read_only else None)

    def script(self, source: Source, lenient: bool, input: Any) -> CheckedScript:
        """Check a script. Plugins, files and a missing graph are the errors MCP002 to MCP004. ``input`` is as for ``check_script``."""
        models = self.surroundings.models
        checked = check_script(
            source, "lenient" if lenient else "strict", input=input, models=models, operations=BUILTIN, reads_files=False,
            restrict=self._forbidden,
        )  # fmt: skip
        if all(each.code != _UNKNOWN_OPERATION for each in checked.found):
            return checked
        # The diagnostic of an unknown operation lists all operations. Replace it by one that lists the operations of this server.
        offered = check_script(
            checked.script, input=input, models=models, operations=self._operations, reads_files=False
        )
        replaced = {each.span: each for each in offered.found if each.code == _UNKNOWN_OPERATION}
        found = tuple(replaced.get(d.span, d) if d.code == _UNKNOWN_OPERATION else d for d in checked.found)
        return evolve(checked, found=found)

    @property
    def _operations(self) -> Mapping[str, Signature]:
        """The operations that clients may use."""
        return {name: BUILTIN[name] for name in ALLOWED if name in BUILTIN and (name != "GASL" or self.has_graph)}

    def _forbidden(self, script: Script) -> Iterator[Diagnostic]:
        for call in (call for step in script.steps for call in calls_of(step)):
            if call.operation not in ALLOWED:
                hint = f"available: {', '.join(self._operations)}"
                yield Diagnostic(
                    "MCP002", "error", f"{call.operation} is not offered by this server", call.span, (hint,)
                )
            elif (file := call.option("file") or call.option("schema_file")) is not None:
                yield Diagnostic("MCP003", "error", "scripts from clients can't read files", file.span)
            elif call.operation == "GASL":
                if not self.has_graph:
                    message = "GASL needs a graph, and this server has no graph"
                    yield Diagnostic("MCP004", "error", message, call.span)
                if self.read_only and call.arguments and isinstance(template := call.arguments[0], Template):
                    program = parse_gasl(Source(embedded_program(template).text(lambda reference: "x"), "<call>"))
                    for change in _changes(program):
                        yield evolve(change, span=call.span)


def _changes(program: Program) -> Iterator[Diagnostic]:
    """Yield the error MCP001 for each command that would change a read-only state."""
    for node in walk(program):
        if isinstance(node, Declare | Reset | Update):
            message = f"{type(node).__name__.upper()} changes the state, which is read-only on this server"
            hint = "remove the command: the result has the values that the commands return"
            yield Diagnostic("MCP001", "error", message, node.span, (hint,))


@frozen
class ProgramRun:
    """A run of commands: its records, its cost, and the state's hash before and after the run (other clients may change it later)."""

    records: list[ExecutionRecord]
    tally: Tally
    before: str
    after: str


_AHEAD = 9
"""Number of statements after a command that are searched for its ON commands."""


@define(eq=False, kw_only=True)
class SharedWorkspace(Workspace):
    """A workspace for several clients. A task must hold the lock ``turn`` to change or use the state, because the store allows one writer.

    ``folder`` is the state's folder, None for a state in memory. If ``read_only`` is true, the state is only read, and runs
    work on a copy. ``usage`` counts the cost of the run that holds ``turn``.
    """

    folder: Path | None = None
    read_only: bool = False
    sessions: ClientSessions = field(factory=ClientSessions)
    results: ResultStore = field(factory=ResultStore)
    usage: CallUsage = field(factory=CallUsage)
    turn: asyncio.Lock = field(factory=asyncio.Lock)
    _reloading: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _version: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._version = self._version_on_disk()

    async def current(self) -> StateStore:
        """Return the state. A read-only state is reloaded, outside the event loop, if another process has changed it.

        Values that are read from the returned state may change with the next commit. A snapshot of the state does not change.
        """
        if not self.read_only or self.folder is None:
            return self.state
        async with self._reloading:
            if (version := await asyncio.to_thread(self._version_on_disk)) != self._version:
                fresh = await asyncio.to_thread(open_state, self.folder, read_only=True)
                self.state.close()
                self.state, self._version = fresh, version
                self.sessions.renew(self._executor)  # sessions keep their variables, and use the new state
            return self.state

    def _version_on_disk(self) -> Any:
        """Return a value that changes when another process writes the state."""
        if self.folder is None or not self.read_only:
            return None
        try:
            return sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in os.scandir(self.folder))
        except OSError:
            return None

    def session(self, key: SessionKey) -> GASLExecutor:
        """Return the executor of a session; the executor holds the session's variables. A new name creates a new session."""
        return self.sessions.use(key, lambda: self._executor(None))

    def _executor(self, context: ContextStore | None) -> GASLExecutor:
        return self.executor(context, self._run_state(), events=Events(), **self.usage.clients(self.models))

    def _run_state(self) -> StateStore:
        """Return the state that a run works on. For a read-only state, this is a copy in memory, which is not saved."""
        return self.state.fork() if self.read_only else self.state

    async def checks(self, key: SessionKey) -> ClientChecks:
        """Return the data that a text of a client's session is checked against."""
        schema, declared = await self.schema(), (await self.current()).snapshot().declared()
        variables = self.sessions.variables(key)
        return ClientChecks(
            Surroundings(
                schema, {each.key: each.type for each in declared},
                {} if self.adapter is None else ceiling_of(self._executor(None).session),
                None if self.adapter is None else self.adapter.measures,
                () if variables is None else tuple(variables.names()), tuple(self.models.named),
            ),
            self.read_only,
        )  # fmt: skip

    async def run_program(
        self,
        executor: GASLExecutor,
        checked: CheckedProgram,
        surroundings: Surroundings,
        cancel: asyncio.Event,
        on_event: Callable[[Event], None],
        parameters: Mapping[str, Any],
    ) -> ProgramRun:
        """Run a complete plan, or the commands of a program one by one. A failure that no ON command handles ends the program.

        The commands use the session's variables. ``on_event`` receives the events of this run only, not those of earlier calls.
        ``parameters`` maps the names of the text's parameters (PARAM) to their values. Raises ``PlanError``, ``ExecutionError``
        and ``StoreError``.
        """
        before, tally, records = executor.state.hash, self.usage.begin(), list[ExecutionRecord]()
        executor.events.subscribe(on_event)
        traces.subscribe(executor.events)
        try:
            if checked.plan is not None:
                plan = ready_of(checked.plan, checked.found, surroundings)
                records = await executor.arun_plan(plan, params=parameters, cancel=cancel)
            else:
                give_parameters(checked.program, parameters, executor.session)
                statements = checked.program.statements
                for number, statement in enumerate(statements, 1):
                    text = checked.source.slice(statement.command.span)
                    records.append(await executor.aexecute_one(text, statement.why, cancel=cancel))
                    if not records[-1].ok and not handles(statements[number : number + _AHEAD], records[-1]):
                        break
        finally:
            executor.events.unsubscribe(on_event)
            traces.unsubscribe(executor.events)
        return ProgramRun(records, tally, before, executor.state.hash)

    def run_script(
        self, checked: CheckedScript, input: Any, events: Events, *, all_steps: bool
    ) -> tuple[Callable[[asyncio.Event], Coroutine[Any, Any, Run]], Tally]:
        """Return a function that runs a script in another event loop, and the counter of the run's cost.

        The function's argument is an event that cancels the run.
        """
        usage = CallUsage()
        clients = usage.clients(self.models)
        traces.subscribe(events)
        workshop = self.workshop(state=self._run_state(), events=events, **clients) if uses_graph(checked) else None

        def run(cancel: asyncio.Event) -> Coroutine[Any, Any, Run]:
            return run_lwt(
                checked.script, input=input, events=events, cancel=cancel, all_steps=all_steps, spec=self.models.spec,
                plan=checked.plan, workshop=workshop, **clients,
            )  # fmt: skip

        return run, usage.tally

    def roll_back(self, to: str) -> tuple[bool, str, str]:
        """Restore the state with the hash ``to``; return whether the state changed, and its old and new hash. Raises ``StateError``."""
        before = self.state.hash
        return roll_back(self.state, to, "rollback") > 0, before, self.state.hash


def uses_graph(checked: CheckedScript) -> bool:
    """Return whether a script has a ``GASL`` step."""
    return any(call.operation == "GASL" for step in checked.script.steps for call in calls_of(step))
