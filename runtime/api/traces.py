"""``knotwork.traces``: export the traces and metrics of runs by OpenTelemetry (OTLP over HTTP). See ``docs/reference/traces.md``.

Importing this module imports nothing of OpenTelemetry.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..traces.parents import current_parent, read_traceparent, remote_parent
from . import load_on_first_use

if TYPE_CHECKING:
    from ..events import Events
    from ..traces.otlp import OtlpSink
    from ..traces.span import Capture
    from ..traces.span_queue import Totals as Totals
    from ..traces.spans import RunSpans

__all__ = ["Totals", "Traces", "remote_parent", "start"]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
PROPAGATE = "KNOTWORK_OTEL_PROPAGATE"
SECONDS = 3.0
"""Maximum seconds that the end of a process waits for the collector."""
_CAPTURES = ("NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT")
HINT = "pip install 'knotwork[otel]'"

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, {"Totals": "runtime.traces.span_queue"})


def __dir__() -> list[str]:
    return sorted(__all__)


class Traces:
    """The export of traces. ``subscribe`` traces the runs of a stream of events; ``stop`` sends what is left.

    Used as a context manager, the export stops at the end of the block. ``notes`` are remarks on the settings.
    """

    def __init__(self, sink: "OtlpSink", notes: tuple[str, ...] = ()) -> None:
        self._sink = sink
        self._streams: WeakSet[RunSpans] = WeakSet()  # a stream lives as long as its events
        self._totals: Totals | None = None
        self.notes = notes

    def subscribe(self, events: "Events", *, traceparent: str = "") -> None:
        """Trace the runs that emit their events to ``events``.

        Runs are children of the span that ``traceparent`` (a W3C header) identifies; without it, of the program's current span.
        """
        from ..traces.spans import RunSpans

        stream = RunSpans(self._sink, read_traceparent(traceparent) or current_parent() or _parent_of_process())
        self._streams.add(stream)
        events.subscribe(stream)

    def unsubscribe(self, events: "Events") -> None:
        """Stop tracing the runs of ``events``. Spans that are still open end as cancelled."""
        for stream in list(self._streams):
            if events.unsubscribe(stream):
                stream.end()

    def flush(self, seconds: float = SECONDS) -> bool:
        """Send all spans that have ended; return whether all of them were sent in time."""
        return self._sink.queue.flush(seconds)

    def stop(self, seconds: float = SECONDS) -> "Totals":
        """Send what is left (time limit: ``seconds``), and return the totals. Further events are ignored. Never raises."""
        if self._totals is None:
            for stream in list(self._streams):
                with suppress(Exception):  # the end of a process must not fail because of its traces
                    stream.end()
            self._totals = self._sink.stop(seconds)
        return self._totals

    def __enter__(self) -> "Traces":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(
    endpoint: str | None = None, *, exporter: Any = None, metric_exporter: Any = None, capture: "Capture | None" = None,
    propagate: bool | None = None, warn: Callable[[str], None] | None = None,
) -> Traces:  # fmt: skip
    """Start the export of traces. Needs the extra ``otel``.

    ``endpoint`` is the address of a collector for OTLP over HTTP, such as ``http://localhost:4318`` (default: the environment's
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, else that address). ``exporter`` and ``metric_exporter`` are exporters of OpenTelemetry's SDK that
    are used instead; with ``exporter`` alone, no metrics are exported. ``capture`` exports the texts of prompts and answers ("NO_CONTENT",
    "SPAN_ONLY", "EVENT_ONLY" or "SPAN_AND_EVENT"; default: the environment's ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``,
    else none). ``propagate`` sends ``traceparent`` to the services of models (default: the environment's ``KNOTWORK_OTEL_PROPAGATE``,
    else false). ``warn`` is called once, in another thread, if the collector can't be reached.

    Raises ``NotConfigured`` without the extra, and ``RequestError`` for an invalid ``capture`` or ``endpoint``.
    """
    from importlib.metadata import version

    from ...adapters.llm import NotConfigured
    from ..errors import RequestError

    if not is_installed():
        raise NotConfigured("traces: the optional dependencies are not installed", hint=HINT)
    if capture is not None and capture not in _CAPTURES:
        raise RequestError("capture", f"{capture!r:.60} is unknown", f"it is one of {', '.join(_CAPTURES)}")
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise RequestError("endpoint", f"{endpoint!r:.60} is not an address", "such as http://localhost:4318")
    from ..traces import otlp

    notes: list[str] = []
    if capture is None:
        capture = _capture(os.environ, notes)
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip()
    if exporter is None and protocol not in ("", "http/protobuf"):
        notes.append(f"traces are sent as http/protobuf: OTEL_EXPORTER_OTLP_PROTOCOL={protocol[:40]} is not supported")
    if exporter is None:
        exporter = otlp.span_exporter(endpoint)
        if metric_exporter is None and os.environ.get("OTEL_METRICS_EXPORTER", "otlp").strip() != "none":
            metric_exporter = otlp.metric_exporter(endpoint)
    if propagate is None:
        propagate = is_true(os.environ.get(PROPAGATE, ""))
    return Traces(otlp.OtlpSink(exporter, metric_exporter, capture, propagate, version("knotwork"), warn), tuple(notes))


def _parent_of_process() -> Any:
    return read_traceparent(os.environ.get("TRACEPARENT", ""))


def is_installed() -> bool:
    """Return whether the extra is installed. Imports nothing."""
    try:
        return (
            find_spec("opentelemetry.exporter.otlp.proto.http") is not None
            and find_spec("opentelemetry.sdk") is not None
        )
    except ModuleNotFoundError:
        return False


def is_true(value: str) -> bool:
    """Return whether the value of an environment variable means yes."""
    return value.strip().lower() in ("true", "1", "yes", "on")


def _capture(environ: Mapping[str, str], notes: list[str]) -> "Capture":
    value = environ.get(CAPTURE, "").strip().upper()
    if value in _CAPTURES:
        return value  # type: ignore[return-value]
    if value in ("", "FALSE", "0"):
        return "NO_CONTENT"
    if value in ("TRUE", "1"):  # the older form of the variable
        return "SPAN_ONLY"
    notes.append(f"texts are not exported: {CAPTURE} is {value[:40]!r}, not one of {', '.join(_CAPTURES)}")
    return "NO_CONTENT"
