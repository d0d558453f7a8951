"""Exports spans and metrics over OTLP/HTTP with the SDK of OpenTelemetry. Only this module and ``otlp_request`` import OpenTelemetry.

The SDK's own tracer and queue are not used: they take a multiple of the CPU time (``tests/bench/bench_traces.py``), the queue does not
count what it drops, and its flush has no time limit. The SDK's exporters, sampler, resource and ids are used, with their
environment variables.
"""

import logging
import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from time import time_ns
from typing import Any, cast
from uuid import uuid4

from attrs import define, field
from opentelemetry import trace
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from . import conventions as names
from .otlp_request import encode_request
from .parents import SpanId
from .span import Capture, Span
from .span_queue import THREAD, SpanQueue, Totals

_METRIC_ATTRIBUTES = (
    names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.RESPONSE_MODEL, names.SERVER_ADDRESS, names.SERVER_PORT,
)  # fmt: skip
_ERROR, _UNSET = Status(StatusCode.ERROR), Status(StatusCode.UNSET)


@define
class _Points:
    """One time series of a histogram."""

    counts: list[int]
    count: int = 0
    sum: float = 0.0
    min: float = float("inf")
    max: float = float("-inf")

    def add(self, value: float, bounds: Sequence[float]) -> None:
        self.counts[bisect_left(bounds, value)] += 1
        self.count += 1
        self.sum += value
        self.min = min(self.min, value)
        self.max = max(self.max, value)


@define
class _Histogram:
    """A cumulative histogram. The SDK's histogram takes 25 µs for a value; this one takes 2 µs."""

    name: str
    unit: str
    description: str
    bounds: tuple[float, ...]
    series: dict[tuple[Any, ...], _Points] = field(factory=dict)

    def add(self, key: tuple[Any, ...], value: float) -> None:
        points = self.series.get(key)
        if points is None:
            points = self.series[key] = _Points([0] * (len(self.bounds) + 1))
        points.add(value, self.bounds)

    def metric(self, begin: int, now: int, keys: Sequence[str]) -> Metric:
        points = [
            HistogramDataPoint(
                {name: value for name, value in zip(keys, key, strict=True) if value is not None}, begin, now, each.count,
                each.sum, tuple(each.counts), self.bounds, each.min, each.max,
            )
            for key, each in self.series.items()
        ]  # fmt: skip
        return Metric(self.name, self.description, self.unit, Histogram(points, AggregationTemporality.CUMULATIVE))


@define
class CallMetrics:
    """The metrics of calls. Calls are counted from several threads."""

    tokens: _Histogram = field(
        factory=lambda: _Histogram(
            names.TOKEN_USAGE, "{token}", "Number of input and output tokens used.", names.TOKEN_BUCKETS
        )
    )
    durations: _Histogram = field(
        factory=lambda: _Histogram(names.DURATION, "s", "GenAI operation duration.", names.DURATION_BUCKETS)
    )
    _begin: int = field(factory=time_ns)
    _lock: threading.Lock = field(factory=threading.Lock)

    def add(self, attributes: Mapping[str, Any], input: int, output: int, seconds: float) -> None:
        """Count a call."""
        key = tuple([attributes.get(name) for name in _METRIC_ATTRIBUTES])
        with self._lock:
            if input:
                self.tokens.add((*key, "input"), input)
            if output:
                self.tokens.add((*key, "output"), output)
            self.durations.add((*key, attributes.get(names.ERROR_TYPE)), seconds)

    def read(self) -> list[Metric]:
        """Return the metrics so far; those without values are left out."""
        now = time_ns()
        with self._lock:
            found = [
                self.tokens.metric(self._begin, now, (*_METRIC_ATTRIBUTES, names.TOKEN_TYPE)),
                self.durations.metric(self._begin, now, (*_METRIC_ATTRIBUTES, names.ERROR_TYPE)),
            ]
        return [each for each in found if cast(Histogram, each.data).data_points]


class _Quiet(logging.Filter):
    """Stores and suppresses the messages that exporters log in the threads of the queues: the run reports a failure, once."""

    def __init__(self) -> None:
        super().__init__()
        self._reason: dict[int | None, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.threadName != THREAD:
            return True
        self._reason[record.thread] = record.getMessage()
        return False

    def taken(self) -> str:
        """Return the latest message of this thread, and delete the stored message."""
        return self._reason.pop(threading.get_ident(), "")


_QUIET = _Quiet()
for _name in ("trace_exporter", "metric_exporter", "_common"):
    logging.getLogger(f"opentelemetry.exporter.otlp.proto.http.{_name}").addFilter(_QUIET)


@define(eq=False)
class OtlpSink:
    """Receives the spans and calls of runs (a ``SpanSink``), and exports them; without ``metric_exporter``, without metrics."""

    exporter: SpanExporter
    metric_exporter: MetricExporter | None
    capture: Capture
    propagate: bool
    version: str
    warn: Callable[[str], None] | None = None
    queue: SpanQueue = field(init=False)
    metrics: CallMetrics = field(factory=CallMetrics, init=False)
    _provider: TracerProvider = field(init=False)
    _resource: Resource = field(init=False)
    _scope: InstrumentationScope = field(init=False)
    _post: Callable[[bytes], Any] | None = field(init=False)
    """Sends an encoded request; None for an exporter that accepts only spans of the SDK."""

    def __attrs_post_init__(self) -> None:
        resource = Resource.create({"service.version": self.version})
        more: dict[str, Any] = {}
        if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
            more["service.name"] = "knotwork"
        if "service.instance.id" not in resource.attributes:  # the series of several processes must not be mixed
            more["service.instance.id"] = str(uuid4())
        self._resource = resource.merge(Resource(more))
        self._provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        self._post = _post_of(self.exporter)
        self._scope = InstrumentationScope("knotwork", self.version, names.SCHEMA_URL)
        self.queue = SpanQueue(
            self._send, self._send_metrics, self._cancel, self.warn, _setting("OTEL_BSP_MAX_QUEUE_SIZE", 2_048),
            _setting("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), _setting("OTEL_BSP_SCHEDULE_DELAY", 5_000) / 1_000,
            _setting("OTEL_METRIC_EXPORT_INTERVAL", 60_000) / 1_000,
        )  # fmt: skip

    # SpanSink

    def root(self, name: str, parent: SpanId | None) -> SpanId:
        """Return the identity of a run's span. The sampler of the environment decides whether a trace is sampled."""
        span = trace.INVALID_SPAN if parent is None else trace.NonRecordingSpan(_context(parent))
        context = trace.set_span_in_context(span)
        ids = self._provider.id_generator
        number = parent.trace if parent is not None else ids.generate_trace_id()
        decided = self._provider.sampler.should_sample(context, number, name, SpanKind.INTERNAL)
        return SpanId(number, ids.generate_span_id(), decided.decision is Decision.RECORD_AND_SAMPLE)

    def ambient(self) -> SpanId | None:
        """Return the current span of the program that runs this library, if there is one."""
        found = trace.get_current_span().get_span_context()
        return SpanId(found.trace_id, found.span_id, found.trace_flags.sampled) if found.is_valid else None

    def ended(self, span: Span) -> None:
        """Queue a finished span."""
        self.queue.put(span)

    def called(self, attributes: Mapping[str, Any], input: int, output: int, seconds: float) -> None:
        """Count a call for the metrics."""
        if self.metric_exporter is not None:
            self.metrics.add(attributes, input, output, seconds)

    # The end

    def stop(self, seconds: float) -> Totals:
        """Send what is left (time limit: ``seconds``), and close the exporters."""
        return self.queue.stop(seconds)

    # Called by the queue, in its thread

    def _send(self, spans: Sequence[Span]) -> str:
        if self._post is not None:
            scope = (self._scope.name, self.version)
            data = encode_request(spans, self._resource.attributes, self._resource.schema_url, scope, names.SCHEMA_URL)
            return "" if self._post(data).success else self._reason_or("the exporter failed")
        result = self.exporter.export([self._readable(each) for each in spans])
        return "" if result is SpanExportResult.SUCCESS else self._reason_or("the exporter failed")

    def _send_metrics(self) -> str:
        if self.metric_exporter is None or not (found := self.metrics.read()):
            return ""
        scope = ScopeMetrics(self._scope, found, names.SCHEMA_URL)
        data = MetricsData([ResourceMetrics(self._resource, [scope], self._resource.schema_url)])
        result = self.metric_exporter.export(data)
        return "" if result is MetricExportResult.SUCCESS else self._reason_or("the exporter of metrics failed")

    @staticmethod
    def _reason_or(otherwise: str) -> str:
        return _QUIET.taken()[:500] or otherwise

    def _cancel(self) -> None:
        for exporter in (self.exporter, self.metric_exporter):
            if exporter is not None:
                exporter.shutdown()

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name, _context(span.id), None if span.parent is None else _context(span.parent), self._resource,
            span.attributes, [Event(name, attributes, at) for name, at, attributes in span.events], (),
            SpanKind.CLIENT if span.is_client else SpanKind.INTERNAL, status=_ERROR if span.is_error else _UNSET,
            start_time=span.begin, end_time=span.end, instrumentation_scope=self._scope,
        )  # fmt: skip


def _post_of(exporter: SpanExporter) -> Callable[[bytes], Any] | None:
    """Return the function of the SDK's HTTP exporter that sends an encoded request, with its headers, retries and limits.

    The attribute is not public. If a later version lacks this attribute, spans are exported by the public method, which is
    slower.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if not isinstance(exporter, OTLPSpanExporter):
        return None
    post = getattr(getattr(exporter, "_client", None), "export", None)
    return post if callable(post) else None


def _context(span: SpanId) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if span.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(span.trace, span.span, span.is_remote, flags)


def _setting(name: str, otherwise: int) -> int:
    """Return a number from the environment. An invalid value counts as unset, as in the SDK."""
    value = os.environ.get(name, "").strip()
    return int(value) if value.isdecimal() and len(value) < 10 and int(value) else otherwise


def span_exporter(endpoint: str | None) -> SpanExporter:
    """Return the SDK's exporter of spans. ``endpoint`` is the base address (None: from the environment)."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter() if endpoint is None else OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")


def metric_exporter(endpoint: str | None) -> MetricExporter:
    """Return the SDK's exporter of metrics; see ``span_exporter``."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    if endpoint is None:
        return OTLPMetricExporter()
    return OTLPMetricExporter(endpoint=f"{endpoint.rstrip('/')}/v1/metrics")
