"""A span, and the interface that receives finished spans."""

import os
from collections.abc import Mapping
from random import Random
from typing import Any, Literal, Protocol

from attrs import define, field

from .parents import SpanId

Capture = Literal["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"]
"""Whether the texts of prompts and answers are exported: in spans, in events, or in both."""


@define(eq=False)
class Span:
    """A span. Times are nanoseconds since 1970. Each event has a name, a time and attributes. ``is_client``: kind CLIENT."""

    name: str
    id: SpanId
    parent: SpanId | None
    begin: int
    attributes: dict[str, Any]
    is_client: bool = False
    end: int = 0
    is_error: bool = False
    events: list[tuple[str, int, dict[str, Any]]] = field(factory=list)


@define
class CallTotals:
    """Totals of a run's calls. ``cost`` (US dollars) is that of the calls with a known cost."""

    calls: int = 0
    errors: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = None


class SpanSink(Protocol):
    """Receives finished spans and calls. No method may block or raise."""

    capture: Capture
    propagate: bool

    def root(self, name: str, parent: SpanId | None) -> SpanId:
        """Return the identity of the span of a new run: the parent's trace or a new one, and whether the trace is sampled."""
        ...

    def ambient(self) -> SpanId | None:
        """Return the current span of the program that runs this library, if there is one."""
        ...

    def ended(self, span: Span) -> None:
        """Receive a finished span of a sampled trace."""
        ...

    def called(self, attributes: Mapping[str, Any], input: int, output: int, seconds: float) -> None:
        """Count a call for the metrics; ``attributes`` are the attributes of the call's span."""
        ...


_random = Random()  # noqa: S311 - ids of spans are not secret; a generator of its own is not affected by the program's seed


def _renew_random() -> None:
    _random.seed(os.urandom(16))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_random)


def child_of(parent: SpanId) -> SpanId:
    """Return the identity of a new span in the trace of ``parent``."""
    return SpanId(parent.trace, _random.getrandbits(64) or 1, parent.is_sampled)
