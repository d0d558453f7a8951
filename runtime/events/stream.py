"""The stream that carries events, and what every event has."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar

import attrs
from attrs import define, field, frozen

__all__ = ["Event", "Events", "Subscriber", "Warned", "as_json"]


@frozen
class Event:
    """Something that happened in a run. ``at`` is seconds on the monotonic clock (``time.perf_counter``)."""

    name: ClassVar[str] = ""
    at: float = field(factory=perf_counter, kw_only=True, eq=False)


def as_json(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object: ``{"event": name, "at": seconds, ...its fields}``."""
    return {"event": event.name, **attrs.asdict(event)}


@frozen
class Warned(Event):
    """``warning``: something a person should know that stopped nothing."""

    name = "warning"
    step: str
    message: str


Subscriber = Callable[[Event], None]


_LONGEST = 500
"""Code points of what a subscriber raised that are kept."""


@define
class Events:
    """A stream of events. Subscribers are called in order, in the thread of the run, and must return at once.

    A subscriber that raises ends no run: it hears no more, and the others hear a ``warning``; ``broken`` says why. With
    no subscriber nothing is built: emitters test ``events`` for truth first.
    """

    broken: list[str] = field(factory=list, init=False)
    _subscribers: list[Subscriber] = field(factory=list)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every event from now on."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` no more; one that is not called is fine."""
        self._subscribers = [each for each in self._subscribers if each is not subscriber]

    def __bool__(self) -> bool:
        return bool(self._subscribers)

    def emit(self, event: Event) -> None:
        """Hand ``event`` to every subscriber."""
        lost: list[Subscriber] = []
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:  # a display that breaks must not cost the answers that are paid for
                lost.append(subscriber)
                name = getattr(subscriber, "__qualname__", type(subscriber).__name__)
                self.broken.append(f"{name} gets no more events: it raised {type(error).__name__}: {error}"[:_LONGEST])
        if lost:
            self._subscribers = [subscriber for subscriber in self._subscribers if subscriber not in lost]
            for message in self.broken[-len(lost) :]:
                self.emit(Warned("", message))
