"""Where traces arrive in tests: in memory, or over real OTLP/HTTP as a collector takes them."""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from knotwork import lwt, traces
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

__all__ = ["Collector", "Seen", "collecting", "collector", "tree"]


@dataclass(frozen=True)
class Seen:
    """A span that arrived. Times are in nanoseconds."""

    name: str
    trace: int
    id: int
    parent: int
    begin: int
    end: int
    kind: str
    is_error: bool
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]


def tree(spans: list[Seen], root: int = 0) -> list[Any]:
    """Return the spans as a tree: ``[name, [child, ...]]`` by time; a span whose parent did not arrive is a root."""
    ids = {each.id for each in spans}
    found = sorted(
        (each for each in spans if (each.parent if each.parent in ids else 0) == root), key=lambda each: each.begin
    )
    return [[each.name, tree(spans, each.id)] if tree(spans, each.id) else each.name for each in found]


class InMemory:
    """Traces of this process, kept in memory. ``events`` are the stream that runs get."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.traces = traces.start(exporter=self._exporter, **options)
        self.events = lwt.Events()
        self.traces.subscribe(self.events)

    @property
    def spans(self) -> list[Seen]:
        """The spans that have ended."""
        assert self.traces.flush(20)
        return [
            Seen(
                each.name, each.context.trace_id, each.context.span_id, each.parent.span_id if each.parent else 0, each.start_time or 0,
                each.end_time or 0, each.kind.name, each.status.status_code.name == "ERROR", dict(each.attributes or {}),
                [(event.name, dict(event.attributes or {})) for event in each.events],
            )
            for each in self._exporter.get_finished_spans()
        ]  # fmt: skip

    def named(self, name: str) -> list[Seen]:
        """The spans with a name, by time."""
        return sorted((each for each in self.spans if each.name == name), key=lambda each: each.begin)

    def one(self, name: str) -> Seen:
        """The only span with a name."""
        (found,) = self.named(name)
        return found


@contextlib.contextmanager
def collecting(**options: Any) -> Iterator[InMemory]:
    """Trace the runs of the block."""
    found = InMemory(**options)
    try:
        yield found
    finally:
        found.traces.stop()


@dataclass
class Collector:
    """A receiver of OTLP over HTTP. ``status`` is what it answers; ``headers`` are those of the last request."""

    url: str = ""
    status: int = 200
    spans: list[Seen] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    schemas: set[str] = field(default_factory=set)
    metrics: dict[str, list[tuple[dict[str, Any], int, float]]] = field(default_factory=dict)
    """Maps a metric to its time series in the last request: attributes, count and sum."""
    headers: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)

    def take(self, path: str, body: bytes) -> None:
        """Take a request."""
        self.paths.append(path)
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(_attributes(group.resource.attributes))
                for scope in group.scope_spans:
                    self.schemas.add(scope.schema_url)
                    self.spans += [_seen(span) for span in scope.spans]
        elif path == "/v1/metrics":
            for metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for found in metrics.scope_metrics:
                    for metric in found.metrics:
                        points = metric.histogram.data_points
                        self.metrics[metric.name] = [(_attributes(p.attributes), p.count, p.sum) for p in points]


def _seen(span: Any) -> Seen:
    return Seen(
        span.name, int.from_bytes(span.trace_id, "big"), int.from_bytes(span.span_id, "big"), int.from_bytes(span.parent_span_id, "big"),
        span.start_time_unix_nano, span.end_time_unix_nano, type(span).SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        span.status.code == 2, _attributes(span.attributes), [(event.name, _attributes(event.attributes)) for event in span.events],
    )  # fmt: skip


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return tuple(map(_value, value.array_value.values)) if kind == "array_value" else getattr(value, kind)


@contextlib.contextmanager
def collector(port: int = 0) -> Iterator[Collector]:
    """Receive OTLP over HTTP on loopback."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.headers = {name.lower(): value for name, value in self.headers.items()}
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if found.status == 200:
                found.take(self.path, body)
            self.send_response(found.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
