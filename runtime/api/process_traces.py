"""The traces of this process.

The interfaces call ``subscribe`` for every stream of events; the environment or ``--otel`` starts traces. While they are off,
``subscribe`` does nothing, and nothing of OpenTelemetry is imported.
"""

import atexit
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...adapters.llm import NotConfigured
from ...lang.errors import KnotworkError
from ..traces.parents import remote_parent as remote_parent
from .traces import ENDPOINT, HINT, SECONDS, is_installed, is_true, start

if TYPE_CHECKING:
    from ..events import Events

_UNKNOWN = object()
_current: Any = _UNKNOWN
"""The traces of the process; None if they are off; ``_UNKNOWN`` until they are first needed."""
_missing = ""


def begin(*, asked: bool = False, warn: Callable[[str], None] | None = None) -> None:
    """Start the traces of the process if the environment names a collector, or if ``asked`` is true.

    If the extra is missing or a setting is wrong, raises ``NotConfigured`` if ``asked`` is true; otherwise, ``stop`` reports
    it.
    """
    global _current, _missing
    if _current is not _UNKNOWN and not (asked and _current is None):
        return
    _current = None
    if not asked and not _is_wanted(os.environ):
        return
    if not asked and not is_installed():
        _missing = f"no traces: {ENDPOINT} is set, but the optional dependencies are not installed; {HINT}"
        return
    try:
        _current = start(warn=warn)
    except Exception as error:  # a setting that the SDK refuses; traces must not fail a run
        if isinstance(error, NotConfigured):  # only if traces are requested
            raise
        if asked:
            raise NotConfigured(f"traces: {_message_of(error)}") from error
        _missing = f"no traces: {_message_of(error)}"
        return
    atexit.register(stop)  # for a process that does not call it, such as a notebook


def _message_of(error: Exception) -> str:
    return error.message if isinstance(error, KnotworkError) else f"{type(error).__name__}: {error}"[:500]


def are_on() -> bool:
    """Return whether the runs of this process are traced."""
    begin()
    return _current is not None


def subscribe(events: "Events") -> None:
    """Trace the runs of ``events``, if the runs of this process are traced."""
    if are_on():
        _current.subscribe(events)


def unsubscribe(events: "Events") -> None:
    """Undo ``subscribe``."""
    if _current is not _UNKNOWN and _current is not None:
        _current.unsubscribe(events)


def stop(seconds: float = SECONDS) -> list[str]:
    """End the traces of the process. Return messages for the user: what was not sent, and why. Never raises."""
    global _current, _missing
    ended, _current = _current, _UNKNOWN
    said, _missing = [_missing] if _missing else [], ""
    if ended is _UNKNOWN or ended is None:
        return said
    totals = ended.stop(seconds)
    atexit.unregister(stop)
    said += ended.notes
    if totals.dropped:
        said.append(
            f"traces: {totals.dropped:,} spans were dropped because the queue was full; raise OTEL_BSP_MAX_QUEUE_SIZE"
        )
    if totals.lost or totals.reason:
        said.append(f"traces: {totals.lost:,} spans were not sent: {totals.reason}")
    return said


def traceparent() -> str:
    """Return the W3C header of the innermost open span in this context, for a process to start; "" without a span."""
    if _current is _UNKNOWN or _current is None:
        return ""
    from ..traces.spans import current_span

    found = current_span()
    return "" if found is None else found.traceparent()


def _is_wanted(environ: Mapping[str, str]) -> bool:
    if is_true(environ.get("OTEL_SDK_DISABLED", "")) or environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() == "none":
        return False
    return bool(environ.get(ENDPOINT, "").strip())
