"""What is under way in one piece that a session runs: the facts, which displays show each in its own way."""

from collections.abc import Callable
from time import perf_counter

from attrs import define, field

from ..events import BudgetReached, CallFinished, CallRetried, Event, StepFinished, StepStarted
from .counting import Calls, clock

__all__ = ["Work"]


@define(eq=False)
class Work:
    """Subscribes to the session's events. ``note`` gets what is to be said at once; all else is asked for, from any thread."""

    text: str
    note: Callable[[str], None]
    calls: Calls = field(factory=Calls, init=False)
    began: float = field(factory=perf_counter, init=False)
    _steps: dict[str, float] = field(factory=dict, init=False)

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        self.calls(event)
        match event:
            case StepStarted():
                self._steps[event.step] = perf_counter()
            case StepFinished():
                self._steps.pop(event.step, None)
            case CallRetried():
                self.note(f"asked again ({event.attempt}): {event.reason}")
            case BudgetReached():
                self.note(f"the budget is reached: {event.message}")
            case CallFinished() if event.error:
                self.note(f"a call failed: {event.error}")
            case _:
                pass

    @property
    def clock(self) -> str:
        """How long it has taken until now."""
        return clock(perf_counter() - self.began)

    @property
    def waiting(self) -> str:
        """How many answers of models are waited for; "" for none."""
        count = self.calls.under_way
        return f"asking a model, {count:,} under way" if count else ""

    @property
    def asked(self) -> str:
        """What models have been asked and what it cost; "" where nothing is over yet."""
        return self.calls.line() if self.calls.over else ""

    @property
    def total(self) -> str:
        """What models have been asked in all, those that never answered too; "" for nothing."""
        return self.calls.line() if self.calls.calls else ""

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The steps under way with how long each has taken, the oldest first."""
        now = perf_counter()
        return [(step, clock(now - began)) for step, began in tuple(self._steps.items())]
