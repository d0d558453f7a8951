"""Runs ``ask``: opens the graph, the state and the models, answers the question, and writes the output.

If the answer is stored already, it is written at once, and nothing is opened.
"""

import asyncio
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from attrs import define, field
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...api.ask import Asked, QuestionRun, RequestError, RunError
from ...api.checks import Checked
from ...api.figures import Calls, clock, counted
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import subscribe_debug_log
from ...api.workspace import StoreError, is_graph_file
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
from ..options import in_words_of_options
from .ask_summary import SEARCH, Form, Lines, finish
from .display import Foot, aligned_columns, one_line
from .inputs import STDIN, Unreadable, opening_callbacks, read_source, show, writable
from .output import Display, Exit, Misused, cancelling, complain, is_terminal, say
from .run_program import STYLES

_OPTIONS = {
    "question": "QUESTION", "max_steps": "--max-steps", "max_repairs": "--max-repairs", "time_limit": "--time-limit",
    "prompt_characters": "--max-prompt", "state": "--state",
}  # fmt: skip


def run(
    graph: str, text: str, form: Form, tree: str | None, strategy: str | None, search: Mapping[str, Any], **options: Any
) -> int:
    """Answer the question ``text`` about ``graph``, and return the exit code. ``options`` are passed to ``QuestionRun``.

    ``strategy`` is None without a search; ``search`` contains the search options; ``tree`` is the output file for the search tree.
    Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` or ``Misused``.
    """
    _check(graph, text, tree, strategy, search)
    try:
        text = read_source(STDIN).text if text == STDIN else text
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("no model was called")
        return Exit.ERRORS
    settings = {"strategy": strategy, **search}
    value, settings["max_depth"] = settings.pop("value"), settings.pop("depth")
    try:
        question = QuestionRun(
            graph, text, search=settings if strategy else None, value=value if strategy else None, **options
        )
    except RequestError as error:
        option = _OPTIONS.get(error.parameter, error.parameter)
        raise Misused(f"{option}: {error.message}", error.hint.replace("force", "--force")) from None
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    stored, calls = question.stored, Calls()
    if tree is not None and strategy is None and (stored is None or stored.tree is None):
        if stored is None:
            raise Misused("--tree needs a search", "add --search beam, or omit --tree")
        raise Misused(
            "the stored answer was found without a search", "add --again --search beam to answer the question again"
        )
    if stored is not None:
        return finish(stored, calls, question, form, tree, search)
    events, most = Events(), question.max_steps
    shown = Screen(calls, question.question, most) if is_terminal(sys.stderr) else Lines(most=most)
    view = Display() if subscribe_debug_log(events) else shown
    for subscriber in (calls, view):
        events.subscribe(subscriber)
    subscribe_traces(events)
    with in_words_of_options():
        question.open(opening_callbacks(lambda message: view.note(f"warning: {message}")))

    async def answer() -> Asked:
        cancel = asyncio.Event()
        with cancelling(cancel, view.note, view.stop):
            return await question.run(events, cancel)

    try:
        try:
            made = asyncio.run(answer())
        finally:
            view.stop()
        return finish(made, calls, question, form, tree, search)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    except StoreError as error:
        complain(
            error.message, "after the repair, the same command continues" if question.options.state else error.hint
        )
        return Exit.FAILED


def _check(graph: str, text: str, tree: str | None, strategy: str | None, search: Mapping[str, Any]) -> None:
    """Raise ``Misused`` for invalid options, before any model call.

    The checks find swapped arguments (the question before the graph), search options without a search, and an output file that
    can't be written.
    """
    if not _is_source(graph) and (_is_source(text) or " " in graph.strip()):
        example = (text, graph) if _is_source(text) else ("GRAPH", graph)
        raise Misused("the graph must come before the question", f"knotwork ask {shlex.join(example)}")
    for name, default in SEARCH.items() if strategy is None else ():
        if search[name] != default:
            raise Misused(f"--{name} needs a search", f"add --search beam, or omit --{name}")
    if tree is not None and tree != "-" and (Path(tree).is_dir() or not Path(tree).parent.is_dir()):
        raise Misused(f"--tree {tree}: the directory does not exist")
    writable(tree, (".json", ".mmd", ".dot", ".txt"))


def _is_source(text: str) -> bool:
    return not is_graph_file(text) or Path(text).exists()


# The live display shows the step, hypothesis, commands, branches, findings and figures. Finished parts are printed above it.

# The commands of the current plan in the live display. Each command is shown as waiting or running, or with its result.


@define
class Row:
    """A row for one command. ``status`` is "waiting", "running", "skipped", "done before" or the status of the result.

    ``inner`` is the nested command that is running; "" if there is none.
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
    """The rows of the current plan, updated by events. The drawing code only reads them."""

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
            case PlanStarted() if event.plan != self._plan:  # a branch's plan, which has no HypothesisFormed
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
        """Return the row for the command that is starting.

        Earlier rows that are still waiting become "done before" in a resumed run, otherwise "skipped".
        """
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


class Screen(Display):
    """Shows the progress of a question on a terminal (stderr), starting at the first event.

    The redrawing thread only reads this object's data. The commands of a plan are shown in the display while the plan runs, and
    are printed as lines above the display when the plan ends. So no command is shown twice.
    """

    def __init__(self, calls: Calls, question: str, most: int, console: Console | None = None) -> None:
        self._calls, self._question, self._most = calls, question, most
        self._lines, self._plan = Lines(most=most), PlanRows()
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
        best = f" · best value {self._best:.2f}" if self._best is not None else ""
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
