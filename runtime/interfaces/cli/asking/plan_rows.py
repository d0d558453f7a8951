"""The commands of the plan under way, as the live display shows them: what each waits for, does, or came to."""

from time import perf_counter
from typing import Literal

from attrs import define, field

from ....events import CallFinished, CommandFinished, CommandStarted, Event, HypothesisFormed, PlanFinished, PlanStarted

__all__ = ["PlanRows", "Row"]


@define
class Row:
    """A command: ``status`` is waiting, running, passed over, or what the command came to; ``inner`` the one that it runs now."""

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
    """Follows the events of one plan at a time; whoever draws it only reads."""

    rows: list[Row] = field(factory=list)
    phase: Literal["none", "running", "over"] = "none"
    _plan: str = ""
    _resumed: bool = False
    _by_step: dict[str, Row] = field(factory=dict)

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        match event:
            case HypothesisFormed():
                self.rows = [Row(_one_line(command)) for command in event.commands]
                self.phase, self._plan, self._resumed, self._by_step = "running", event.plan, event.resumed, {}
            case PlanStarted() if event.plan != self._plan:  # one that was not supposed: a branch's
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
        """Return the row of a command that begins; those that it leaves behind were done before, or are passed over."""
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
