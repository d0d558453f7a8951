"""The figures of what is under way, in a few words: calls, what they cost, how long it takes."""

from attrs import define

from ..events import CallFinished, CallStarted, Event

__all__ = ["Calls", "clock", "dollars"]


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
