"""Encoded requests: the same message as that of OpenTelemetry's own encoder, by a faster way."""

from typing import Any

import pytest
from knotwork.runtime.traces import conventions as names
from knotwork.runtime.traces import otlp
from knotwork.runtime.traces.otlp_request import encode_request
from knotwork.runtime.traces.parents import SpanId
from knotwork.runtime.traces.span import Span
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SPANS = [
    Span("knotwork.run", SpanId(2**127 + 5, 7), SpanId(2**127 + 5, 2**63, is_remote=True), 10, {"n": 3, "f": 0.5, "t": "é"}, end=90),
    Span(
        "chat m", SpanId(2**127 + 5, 8), SpanId(2**127 + 5, 7), 20, {"b": True, "one": 1, "none": 1.0, "a": ("stop", "x"), "e": ""},
        True, 80, True, [("knotwork.retry", 30, {"k": "again"}), ("empty", 40, {})],
    ),
    Span("alone", SpanId(1, 1), None, 0, {"long": "x" * 4_000}, end=1),
]  # fmt: skip


@pytest.fixture
def sink() -> otlp.OtlpSink:
    return otlp.OtlpSink(InMemorySpanExporter(), None, "NO_CONTENT", False, "1.2")


def encoded(sink: otlp.OtlpSink, spans: list[Span]) -> ExportTraceServiceRequest:
    resource = sink._resource
    data = encode_request(spans, resource.attributes, resource.schema_url, ("knotwork", "1.2"), names.SCHEMA_URL)
    return ExportTraceServiceRequest.FromString(data)


def test_the_message_is_that_of_the_exporter(sink: otlp.OtlpSink) -> None:
    for _ in range(2):  # the second time, attributes are in the cache
        expected = ExportTraceServiceRequest.FromString(
            encode_spans([sink._readable(each) for each in SPANS]).SerializeToString()
        )
        found = encoded(sink, SPANS)
        for request in (expected, found):
            for span in request.resource_spans[0].scope_spans[0].spans:
                if not span.status.code:
                    span.ClearField("status")  # the exporter writes an empty message
        assert found == expected


@pytest.mark.parametrize("value", ["\ud800", None, 2**70, -(2**70)])
def test_no_value_fails_the_request(sink: otlp.OtlpSink, value: Any) -> None:
    found = encoded(sink, [Span("chat \ud800", SpanId(1, 1), None, 0, {"v": value})])
    assert found.resource_spans[0].scope_spans[0].spans[0].attributes[0].key == "v"


def test_the_exporter_of_the_installed_version_takes_encoded_requests() -> None:
    assert otlp._post_of(otlp.span_exporter("http://127.0.0.1:9")) is not None
    assert otlp._post_of(InMemorySpanExporter()) is None


def test_without_that_function_spans_are_exported_by_the_public_method() -> None:
    exporter = otlp.span_exporter("http://127.0.0.1:9")
    del exporter._client  # type: ignore[attr-defined]
    assert otlp._post_of(exporter) is None
