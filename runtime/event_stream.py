"""The base class of events, and the stream that carries the events of a run to its subscribers."""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, ClassVar

import attrs
from attrs import define, field, frozen


@frozen(slots=False)
class Event:
    """An event of a run. ``at`` is the time in seconds on the monotonic clock (``time.perf_counter``)."""

    name: ClassVar[str] = ""
    at: float = field(factory=perf_counter, kw_only=True, eq=False)


def as_json(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object: ``{"event": name, "at": seconds, ...its fields}``."""
    return {"event": event.name, **attrs.asdict(event)}


@frozen
class Warned(Event):
    """``warning``: a message for the user; the run continues."""

    name = "warning"
    step: str
    message: str


Subscriber = Callable[[Event], None]


_LONGEST = 500
"""Maximum length of the stored message of a subscriber's exception."""


@define
class Events:
    """A stream of events. Subscribers are called in order, in the thread of the run, and must return at once.

    A subscriber that raises an exception receives no more events. The other subscribers then receive a ``warning``, and the
    message of this warning is added to ``broken``. A stream without subscribers is false in a boolean context; the emitting
    code tests this before it builds an event.
    """

    broken: list[str] = field(factory=list, init=False)
    _subscribers: list[Subscriber] = field(factory=list)
    _streamed: frozenset[str] | None = field(factory=frozenset, init=False)

    def stream_answers(self, steps: Iterable[str] | None = None) -> None:
        """Request ``call.delta`` events of the given steps (None: of all steps). Without a request, no answer is streamed."""
        self._streamed = None if steps is None or self._streamed is None else self._streamed | frozenset(steps)

    def streams(self, step: str) -> bool:
        """Return whether ``call.delta`` events are wanted for answers of ``step``."""
        return bool(self._subscribers) and (self._streamed is None or step in self._streamed)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every event from now on."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> bool:
        """Stop calling ``subscriber``; an unknown subscriber is ignored. Return whether it was subscribed."""
        count = len(self._subscribers)
        self._subscribers = [each for each in self._subscribers if each is not subscriber]
        return len(self._subscribers) < count

    def __bool__(self) -> bool:
        return bool(self._subscribers)

    def emit(self, event: Event) -> None:
        """Pass ``event`` to every subscriber."""
        lost: list[Subscriber] = []
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:  # an error in a display must not lose paid answers
                lost.append(subscriber)
                name = getattr(subscriber, "__qualname__", type(subscriber).__name__)
                self.broken.append(
                    f"{name} receives no more events: it raised {type(error).__name__}: {error}"[:_LONGEST]
                )
        if lost:
            self._subscribers = [subscriber for subscriber in self._subscribers if subscriber not in lost]
            for message in self.broken[-len(lost) :]:
                self.emit(Warned("", message))
