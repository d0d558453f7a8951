"""The parent of a run's span: the W3C trace context that arrives with a request, in a tool call or in the environment."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from attrs import frozen

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


@frozen
class SpanId:
    """The identity of a span. ``is_remote`` is true if the span belongs to another process."""

    trace: int
    span: int
    is_sampled: bool = True
    is_remote: bool = False

    def traceparent(self) -> str:
        """Return the identity as a ``traceparent`` header."""
        return f"00-{self.trace:032x}-{self.span:016x}-{int(self.is_sampled):02x}"


def read_traceparent(text: object) -> SpanId | None:
    """Return the span that a ``traceparent`` header identifies; None for anything else, as the W3C recommendation requires."""
    found = _TRACEPARENT.fullmatch(text.strip()) if isinstance(text, str) and len(text) < 512 else None
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace, span = int(found[2], 16), int(found[3], 16)
    return SpanId(trace, span, bool(int(found[4], 16) & _SAMPLED), is_remote=True) if trace and span else None


_PARENT: ContextVar[SpanId | None] = ContextVar("the parent of the next run", default=None)


@contextmanager
def remote_parent(traceparent: object) -> Iterator[None]:
    """Make the runs that begin in the block children of the span that ``traceparent`` identifies.

    Never raises: an invalid header has no effect.
    """
    found = read_traceparent(traceparent)
    if found is None:
        yield
        return
    token = _PARENT.set(found)
    try:
        yield
    finally:
        _PARENT.reset(token)


def current_parent() -> SpanId | None:
    """Return the parent that ``remote_parent`` has set in this context."""
    return _PARENT.get()
