"""The run of ``ask``: a stored answer, or graph, state and models opened, the loop, its output, the end."""

import asyncio
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from attrs import define, evolve, field
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ....adapters.llm import NotConfigured
from ....adapters.state import StoreError
from ...api.checks import Checked
from ...api.figures import Calls, clock
from ...api.workspace import close_models
from ...errors import RequestError
from ...events import (
    BranchClosed,
    BranchOpened,
    CallFinished,
    CallStarted,
    CommandFinished,
    CommandStarted,
    DecisionMade,
    Event,
    Events,
    HypothesisFormed,
    PlanFinished,
    PlanStarted,
    StateChanged,
)
from ...loops.traversal.setup import QuestionRequest, answered_before, room_for, traverse
from ...loops.traversal.traversal_results import Asked, Bounds, checked_folder, search_request
from ...models.factory import default_spec, open_graph
from ...runs.event_log import DebugLog, level
from ...runs.journal import RunError
from .ask_summary import Lines, Question, Searched, finish
from .display import Display, Foot, beside, one_line
from .inputs import STDIN, Unreadable, read_source, show, writable
from .output import Exit, Misused, cancelling, complain, is_terminal, say
from .run_program import STYLES, Opened, open_executor

_OPTIONS = {
    "question": "QUESTION", "max_steps": "--max-steps", "max_repairs": "--max-repairs", "time_limit": "--time-limit",
    "prompt_characters": "--max-prompt", "state": "--state",
}  # fmt: skip
_OF_SEARCH = {
    "width": "--width",
    "branching": "--branching",
    "depth": "--depth",
    "value": "--value",
    "enough": "--enough",
}


def run(asked: Question) -> int:
    """Answer the question and return the exit code. Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``Misused``."""
    _check(asked)
    try:
        text = read_source(STDIN).text if asked.text == STDIN else asked.text
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("nothing was asked")
        return Exit.ERRORS
    spec = asked.llm or _default()
    bounds = Bounds(
        asked.max_steps, asked.max_repairs, asked.prompt_characters or room_for(spec or ""), asked.time_limit
    )
    try:
        folder = checked_folder(asked.ground.state)
        search = search_request(asked.search.settings, asked.search.value if asked.search.strategy else None)
        source = str(asked.ground.graph)
        wanted = QuestionRequest(
            text, bounds, folder, asked.again, spec=spec or "", searching=search, graph=source, force=asked.ground.force
        )
        before = answered_before(wanted, lambda: open_graph(source, raw=asked.ground.raw).adapter.schema.hash)
    except RequestError as error:
        option = _OPTIONS.get(error.parameter, error.parameter)
        raise Misused(f"{option}: {error.message}", error.hint.replace("force", "--force")) from None
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    if asked.search.tree is not None and search is None and (before is None or before.tree is None):
        hint = "add --search beam, or leave it out" if before is None else "--again --search beam asks anew"
        raise Misused("--tree is for a search" if before is None else "this answer was found without a search", hint)
    calls = Calls()
    if before is not None:
        return finish(before, calls, asked)
    events, lines = Events(), _display(calls, wanted.question, asked.max_steps)
    for subscriber in (calls, lines or DebugLog(level())):
        events.subscribe(subscriber)
    note = lines.note if lines is not None else say
    opened = open_executor(
        evolve(asked.ground, query=wanted.question), asked.llm, {}, asked.limits, asked.max_concurrency, events,
        asks=True, warn=lambda message: note(f"warning: {message}"),
    )  # fmt: skip
    try:
        try:
            made = asyncio.run(_answered(wanted, opened, lines))
        finally:
            if lines is not None:
                lines.stop()
        return finish(made, calls, asked, _unkept(made, opened))
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    except StoreError as error:
        complain(
            error.message, "once that is mended, the same command goes on where it stood" if folder else error.hint
        )
        return Exit.FAILED
    finally:
        with suppress(StoreError):  # already reported
            opened.state.close()


def _unkept(made: Asked, opened: Opened) -> str:
    """Close the state before it is reported as saved; return why it, or its question, could not be saved, "" on success."""
    try:
        opened.state.close()
    except StoreError as error:
        return error.message
    return made.unkept


def _check(asked: Question) -> None:
    """Refuse invalid options before any cost.

    Invalid are: a question in place of the graph, search options without a search, and an output file that can't be written.
    """
    graph, text, search = str(asked.ground.graph), asked.text, asked.search
    if not _is_source(graph) and (_is_source(text) or " " in graph.strip()):
        example = (text, graph) if _is_source(text) else ("GRAPH", graph)
        raise Misused("the graph stands first, then the question", f"knotwork ask {shlex.join(example)}")
    if search.strategy is None:
        for name, option in _OF_SEARCH.items():
            if getattr(search, name) != getattr(Searched(), name):
                raise Misused(f"{option} is for a search", "add --search beam, or leave it out")
    if search.tree is not None and search.tree != "-":
        folder = Path(search.tree).parent
        if Path(search.tree).is_dir() or not folder.is_dir():
            raise Misused(f"--tree {search.tree}: the directory does not exist")
    writable(search.tree, (".json", ".mmd", ".dot", ".txt"))


def _is_source(text: str) -> bool:
    return text.startswith("nx:") or Path(text).exists()


def _display(calls: Calls, question: str, most: int) -> Display | None:
    """Return the display: live on a terminal, lines in a pipe, none if the debug log is on."""
    if level():
        return None
    if not is_terminal(sys.stderr):
        return Lines(most)
    # imports rich, which a pipe does not need

    return Screen(calls, question, most)


def _default() -> str | None:
    """Return the default model's spec; None if there is none, which a stored answer does not need."""
    try:
        return default_spec(os.environ)
    except NotConfigured:
        return None


async def _answered(wanted: QuestionRequest, opened: Opened, lines: Display | None) -> Asked:
    cancel = asyncio.Event()
    note, stop = (say, None) if lines is None else (lines.note, lines.stop)
    with cancelling(cancel, note, stop):
        try:
            return await traverse(wanted, opened.executor, opened.models.default, cancel=cancel)
        finally:
            await close_models(opened.models)


# The live display of a question: step, hypothesis, commands, branches, findings, figures. Finished parts stay above it.

# The commands of the present plan in the live display: each waiting, running, or with its result.


@define
class Row:
    """A command: ``status`` is waiting, running, passed over, or the command's result; ``inner`` its running inner command."""

    command: str
    status: str = "waiting"
    count: int | None = None
    message: str = ""
    inner: str = ""
    answers: int = 0
    began: float = 0.0
    seconds: float = 0.0


@define
class PlanRows:
    """Follows the events of one plan at a time; the drawing code only reads."""

    rows: list[Row] = field(factory=list)
    phase: Literal["none", "running", "over"] = "none"
    _plan: str = ""
    _resumed: bool = False
    _by_step: dict[str, Row] = field(factory=dict)

    def __call__(self, event: Event) -> None:
        """Process one event."""
        match event:
            case HypothesisFormed():
                self.rows = [Row(_one_line(command)) for command in event.commands]
                self.phase, self._plan, self._resumed, self._by_step = "running", event.plan, event.resumed, {}
            case PlanStarted() if event.plan != self._plan:  # a plan not announced before: that of a branch
                self.rows, self._plan, self._resumed, self._by_step = [], event.plan, False, {}
                self.phase = "running"
            case CommandStarted() if event.plan == self._plan:
                self._started(event)
            case CommandFinished() if event.plan == self._plan:
                self._finished(event)
            case CallFinished():
                for row in self.rows:
                    row.answers += row.status == "running"
            case PlanFinished() if event.plan == self._plan:
                self.phase = "over"
                for row in self.rows:
                    row.status = "passed over" if row.status in ("waiting", "running") else row.status
            case _:
                pass

    def _started(self, event: CommandStarted) -> None:
        if "." in event.step:
            outer = self._by_step.get(event.step.partition(".")[0])
            if outer is not None:
                outer.inner = _one_line(event.command)
            return
        row = self._row(_one_line(event.command))
        row.status, row.began = "running", perf_counter()
        self._by_step[event.step] = row

    def _row(self, command: str) -> Row:
        """Return the row of a command that begins; waiting rows before it were done before a resumption, or are passed over."""
        waiting = [row for row in self.rows if row.status == "waiting"]
        found = next((row for row in waiting if row.command == command), None)
        if found is None:
            found = Row(command)
            self.rows = [*self.rows, found]
        else:
            for row in waiting[: waiting.index(found)]:
                row.status = "done before" if self._resumed else "passed over"
        return found

    def _finished(self, event: CommandFinished) -> None:
        row = self._by_step.get(event.step)
        if row is not None:
            row.status, row.count, row.message, row.seconds = event.status, event.count, event.message, event.seconds
            row.inner = ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


_ROWS = 7
"""Maximum number of commands shown; a small terminal must not scroll."""
_KEYS, _BRANCHES = 8, 3
_RUNNING = "running the plan"


class Screen:
    """Shows a question on a terminal (stderr), from its first event on. The refreshing thread only reads.

    A plan's commands are drawn while it runs, and printed as lines above the display at its end, so nothing appears twice.
    """

    def __init__(self, calls: Calls, question: str, most: int, console: Console | None = None) -> None:
        self._calls, self._question, self._most = calls, question, most
        self._lines, self._plan = Lines(most), PlanRows()
        self._held: list[Event] = []
        self._step, self._decision, self._hypothesis, self._doing = 1, "", "", "reading the graph"
        self._sizes: dict[str, int] = {}
        self._open: list[BranchOpened] = []
        self._closed = 0
        self._best: float | None = None
        self._began, self._started = perf_counter(), False
        self._foot = Foot(self._drawn, console)

    def __call__(self, event: Event) -> None:
        """Process one event; print lines that stay."""
        if not self._started:
            self._started, self._began = True, perf_counter()
            self._foot.start()
        if not self._searches:  # a search's plans run in parallel, without command events
            self._plan(event)
        match event:
            case CallStarted() if self._plan.phase != "running" and not self._open:
                self._doing = "asking the model"
            case DecisionMade():
                self._step, self._decision = event.step, event.decision
                self._doing = "done" if event.decision == "terminate" else "checking the plan"
            case HypothesisFormed():
                self._step, self._hypothesis, self._doing = event.step, event.hypothesis, _RUNNING
            case PlanStarted():
                self._doing = _RUNNING
            case StateChanged():
                self._sizes = dict(event.sizes)
            case BranchOpened():
                self._open = [*self._open, event]
                self._doing = _RUNNING
            case BranchClosed():
                self._branch_closed(event)
            case _:
                pass
        if isinstance(event, CommandStarted | CommandFinished):
            self._held.append(event)
            return
        if isinstance(event, PlanFinished):
            self._release()
            self._doing = "looking at what came of it"
        if not isinstance(event, CallFinished):  # answers are counted in the display
            self._lines(event)

    @property
    def _searches(self) -> bool:
        return bool(self._open or self._closed)

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def stop(self) -> None:
        """Remove the display; the commands of an interrupted plan become lines."""
        self._release()
        self._foot.stop()

    def _release(self) -> None:
        held, self._held = self._held, []
        for event in held:
            self._lines(event)

    def _branch_closed(self, event: BranchClosed) -> None:
        first = next((each for each in self._open if each.node == event.node), None)
        self._open = [each for each in self._open if each is not first]
        self._closed += 1
        self._doing = self._doing if self._open else "looking at what came of it"
        if event.value is not None:
            self._best = event.value if self._best is None else max(self._best, event.value)

    # Drawing

    def _drawn(self) -> Any:
        width = self._foot.console.width
        parts: list[RenderableType] = [self._head(), one_line(self._question, "dim", 2)]
        if self._hypothesis:
            parts.append(one_line(f"hypothesis: {self._hypothesis}", "italic", 2))
        parts += self._commands(width)
        if self._searches:
            parts += self._branches()
        if self._sizes:
            parts.append(one_line(f"findings: {self._found()}", "green", 2))
        if self._calls.calls:
            parts.append(one_line(self._calls.line(), "dim", 2))
        return Group(*parts)

    def _head(self) -> Table:
        head = Table.grid(padding=(0, 1))
        decision = f" · {self._decision}" if self._decision else ""
        at = f"{self._closed} of {self._most} plans tried" if self._searches else f"step {self._step} of {self._most}"
        told = one_line(f"{at}{decision} · {self._doing}", "bold")
        head.add_row(self._foot.spinner, told, Text(clock(perf_counter() - self._began), style="dim"))
        return head

    def _commands(self, width: int) -> list[Text]:
        rows = self._plan.rows
        at = next((number for number, row in enumerate(rows) if row.status in ("running", "waiting")), len(rows))
        first = max(0, min(at - _ROWS // 2, len(rows) - _ROWS))
        shown = enumerate(rows[first : first + _ROWS], first + 1)
        lines = beside(
            [(one_line(f"{number} {_shown(row)}", "", 4), self._status(row)) for number, row in shown], width
        )
        if len(rows) > _ROWS:
            lines.append(one_line(f"{len(rows)} commands in all", "dim", 4))
        return lines

    def _status(self, row: Row) -> Text:
        if row.status == "running":
            answers = f" {row.answers:,} answer{'' if row.answers == 1 else 's'}" if row.answers else ""
            return Text(f"running{answers} {clock(perf_counter() - row.began)}", style="cyan")
        if row.status in ("waiting", "passed over", "done before"):
            return Text(row.status, style="dim")
        count = f" {row.count:,}" if row.count is not None else ""
        return Text(f"{row.status}{count}", style=STYLES.get(row.status, "red"))

    def _branches(self) -> list[RenderableType]:
        best = f" · best worth {self._best:.2f}" if self._best is not None else ""
        parts: list[RenderableType] = [
            one_line(f"branches: {len(self._open)} open · {self._closed} closed{best}", "cyan", 2)
        ]
        for each in self._open[:_BRANCHES]:
            why = f" · {each.rationale}" if each.rationale else ""
            parts.append(one_line(f"from state {each.node} · {each.confidence:.2f}{why}", "dim", 4))
        if len(self._open) > _BRANCHES:
            parts.append(one_line(f"and {len(self._open) - _BRANCHES} more", "dim", 4))
        return parts

    def _found(self) -> str:
        keys = sorted(self._sizes.items(), key=lambda pair: not pair[1])
        more = f" · and {len(keys) - _KEYS} more keys" if len(keys) > _KEYS else ""
        return " · ".join(f"{key} {size:,}" for key, size in keys[:_KEYS]) + more


def _shown(row: Row) -> str:
    return f"{row.command} ← {row.inner}" if row.inner else row.command
