"""Runs ``ask``: returns a stored answer, or opens the graph, the state and the models, runs the loop, and writes the output."""

import asyncio
import shlex
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from attrs import define, field
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ....adapters.state import StoreError
from ...api.ask import Asked, QuestionRun, RequestError, RunError
from ...api.checks import Checked
from ...api.figures import Calls, clock, counted
from ...api.runs import DebugLog, level
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
from ..options import in_words_of_options, price_of
from .ask_summary import Lines, Question, SearchOptions, finish
from .display import Display, Foot, aligned_columns, one_line
from .inputs import STDIN, Unreadable, read_source, show, telling, writable
from .output import Exit, Misused, cancelling, complain, is_terminal, say
from .run_program import STYLES

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
    graph, search = str(asked.graph_options.graph), asked.search
    limits, state = asked.limits, asked.graph_options.state
    try:
        question = QuestionRun(
            graph, text, state=state, llm=asked.llm, chunks=asked.graph_options.chunks, max_steps=asked.max_steps,
            max_repairs=asked.max_repairs, prompt_characters=asked.prompt_characters, time_limit=asked.time_limit,
            search=search.settings, value=search.value if search.strategy else None, again=asked.again, force=asked.graph_options.force,
            raw=asked.graph_options.raw, max_concurrency=asked.max_concurrency, max_calls=limits.max_calls, max_tokens=limits.max_tokens,
            max_cost=limits.max_cost, price=price_of(limits.price), rate=limits.rate, cache=limits.cache,
        )  # fmt: skip
    except RequestError as error:
        option = _OPTIONS.get(error.parameter, error.parameter)
        raise Misused(f"{option}: {error.message}", error.hint.replace("force", "--force")) from None
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    stored = question.stored
    if search.tree is not None and search.strategy is None and (stored is None or stored.tree is None):
        if stored is None:
            raise Misused("--tree needs a search", "add --search beam, or omit --tree")
        raise Misused("this answer was found without a search", "--again --search beam answers the question again")
    calls = Calls()
    if stored is not None:
        return finish(stored, calls, asked)
    events, view = Events(), _display(calls, question.question, asked.max_steps)
    for subscriber in (calls, view):
        events.subscribe(subscriber)
    with in_words_of_options():
        question.open(telling(lambda message: view.note(f"warning: {message}")))

    async def answer() -> Asked:
        cancel = asyncio.Event()
        with cancelling(cancel, view.note, view.stop):
            return await question.run(events, cancel)

    try:
        try:
            made = asyncio.run(answer())
        finally:
            view.stop()
        return finish(made, calls, asked)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    except StoreError as error:
        complain(error.message, "after it is repaired, the same command continues" if state is not None else error.hint)
        return Exit.FAILED


def _check(asked: Question) -> None:
    """Refuse invalid options before any model call: raise ``Misused``.

    Invalid options are a question in place of the graph, search options without a search, and an output file that can't be written.
    """
    graph, text, search = str(asked.graph_options.graph), asked.text, asked.search
    if not _is_source(graph) and (_is_source(text) or " " in graph.strip()):
        example = (text, graph) if _is_source(text) else ("GRAPH", graph)
        raise Misused("the graph comes before the question", f"knotwork ask {shlex.join(example)}")
    if search.strategy is None:
        for name, option in _OF_SEARCH.items():
            if getattr(search, name) != getattr(SearchOptions(), name):
                raise Misused(f"{option} needs a search", f"add --search beam, or omit {option}")
    if search.tree is not None and search.tree != "-":
        folder = Path(search.tree).parent
        if Path(search.tree).is_dir() or not folder.is_dir():
            raise Misused(f"--tree {search.tree}: the directory does not exist")
    writable(search.tree, (".json", ".mmd", ".dot", ".txt"))


def _is_source(text: str) -> bool:
    return text.startswith("nx:") or Path(text).exists()


def _display(calls: Calls, question: str, most: int) -> Display:
    """Return the display: the debug log if it is on, otherwise a live display on a terminal, or lines in a pipe."""
    if level():
        return DebugLines(most)
    return Screen(calls, question, most) if is_terminal(sys.stderr) else Lines(most)


class DebugLines(Lines):
    """Writes the debug log instead of the lines."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._log = DebugLog(level())

    def __call__(self, event: Event) -> None:
        """Write one event."""
        self._log(event)


# The live display of a question shows the step, hypothesis, commands, branches, findings and figures. Finished parts stay above it.

# The commands of the present plan in the live display. Each command is shown as waiting or running, or with its result.


@define
class Row:
    """A command. ``status`` is "waiting", "running", "skipped", "done before" or the status of its result.

    ``inner`` is the nested command that is running, if any.
    """

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
    """The rows of the present plan, from its events. The drawing code only reads them."""

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
            case PlanStarted() if event.plan != self._plan:  # the plan of a branch, which no hypothesis announced
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
                    row.status = "skipped" if row.status in ("waiting", "running") else row.status
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
        """Return the row of a command that begins. Waiting rows before it were done before a resumption, or are skipped."""
        waiting = [row for row in self.rows if row.status == "waiting"]
        found = next((row for row in waiting if row.command == command), None)
        if found is None:
            found = Row(command)
            self.rows = [*self.rows, found]
        else:
            for row in waiting[: waiting.index(found)]:
                row.status = "done before" if self._resumed else "skipped"
        return found

    def _finished(self, event: CommandFinished) -> None:
        row = self._by_step.get(event.step)
        if row is not None:
            row.status, row.count, row.message, row.seconds = event.status, event.count, event.message, event.seconds
            row.inner = ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


_ROWS = 7
"""Maximum number of commands that are shown, so that a small terminal does not scroll."""
_KEYS, _BRANCHES = 8, 3
_RUNNING = "running the plan"


class Screen:
    """Shows the progress of a question on a terminal (stderr), from its first event on. The refreshing thread only reads.

    The commands of a plan are shown in the display while the plan runs, and are printed as lines above the display when it ends. So
    no command is shown twice.
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
        """Process one event; print the permanent lines above the display."""
        if not self._started:
            self._started, self._began = True, perf_counter()
            self._foot.start()
        if not self._searches:  # the plans of a search run in parallel, without command events
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
            self._doing = "evaluating the results"
        if not isinstance(event, CallFinished):  # answers are counted in the display
            self._lines(event)

    @property
    def _searches(self) -> bool:
        return bool(self._open or self._closed)

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def stop(self) -> None:
        """Remove the display. The commands of an interrupted plan are printed as lines."""
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
        self._doing = self._doing if self._open else "evaluating the results"
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
            parts.append(one_line(f"findings: {self._key_sizes()}", "green", 2))
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
        lines = aligned_columns(
            [(one_line(f"{number} {_command_text(row)}", "", 4), self._status(row)) for number, row in shown], width
        )
        if len(rows) > _ROWS:
            lines.append(one_line(f"{len(rows)} commands in all", "dim", 4))
        return lines

    def _status(self, row: Row) -> Text:
        if row.status == "running":
            answers = f" {counted(row.answers, 'answer')}" if row.answers else ""
            return Text(f"running{answers} {clock(perf_counter() - row.began)}", style="cyan")
        if row.status in ("waiting", "skipped", "done before"):
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

    def _key_sizes(self) -> str:
        keys = sorted(self._sizes.items(), key=lambda pair: not pair[1])
        more = f" · and {len(keys) - _KEYS} more keys" if len(keys) > _KEYS else ""
        return " · ".join(f"{key} {size:,}" for key, size in keys[:_KEYS]) + more


def _command_text(row: Row) -> str:
    return f"{row.command} ← {row.inner}" if row.inner else row.command
