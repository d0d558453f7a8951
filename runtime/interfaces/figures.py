"""The figures of what is under way, in a few words: calls, what they cost, how long it takes."""

from collections.abc import Callable
from time import perf_counter

from attrs import define, field

from ..events import BudgetReached, CallFinished, CallRetried, CallStarted, Event, StepFinished, StepStarted

__all__ = ["Calls", "Work", "clock", "dollars"]


@define
class Calls:
    """Counts what models were asked: the requests that were sent, as ``runtime.models.usage`` counts them."""

    cached: int = 0
    tokens: int = 0
    cost: float | None = None
    over: int = 0
    """Requests that were answered or failed."""
    under_way: int = 0
    """Requests that a model has not answered yet."""

    @property
    def calls(self) -> int:
        """The requests that were sent: those that failed, or were stopped under way, and answers of the cache too."""
        return self.over + self.under_way

    def __call__(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, CallStarted):
            self.under_way += 1
        elif isinstance(event, CallFinished):
            self.under_way = max(0, self.under_way - 1)
            self.over += event.attempts
            self.cached += event.cached
            self.tokens += event.prompt_tokens + event.completion_tokens
            if event.cost is not None:
                self.cost = (self.cost or 0.0) + event.cost

    def line(self) -> str:
        """Say the figures in a few words."""
        cached = f" ({self.cached:,} cached)" if self.cached else ""
        parts = [f"{self.calls:,} call{'' if self.calls == 1 else 's'}{cached}"]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
        if self.cost:
            parts.append(dollars(self.cost))
        return " · ".join(parts)


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def dollars(cost: float) -> str:
    """Write a cost so that small ones are not zero."""
    return f"${cost:.2f}" if cost >= 0.1 or not cost else f"${cost:.2g}" if cost < 0.001 else f"${cost:.4f}"


# What is under way in one piece that a session runs: the facts, which displays show each in its own way.


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
