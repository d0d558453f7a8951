"""Encodes spans as a request of OTLP. The encoder of OpenTelemetry's exporter takes ten times as long: it copies every attribute."""

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from .span import Span

_CACHED = 5_000
"""Maximum number of encoded attributes that are kept for reuse: most attributes of calls recur."""
_LONGEST = 100
"""Maximum characters of a text attribute that is kept for reuse."""
_LIMIT = 2**63
_kept: dict[tuple[str, type, Any], bytes] = {}


def encode_request(
    spans: Sequence[Span], resource: Mapping[str, Any], resource_schema: str, scope: tuple[str, str], schema: str
) -> bytes:
    """Return the request for ``spans``. ``resource`` are the attributes of the process, ``scope`` the name and version of the library."""
    group = ResourceSpans(schema_url=resource_schema)
    group.resource.attributes.extend(KeyValue(key=name, value=_value(value)) for name, value in resource.items())
    part = ScopeSpans(schema_url=schema)
    part.scope.name, part.scope.version = scope
    # Serialized messages can be joined: fields that follow are added to the message.
    body = b"".join([part.SerializeToString(), *(_field(_SPANS, _span(span)) for span in spans)])
    return _field(_RESOURCE_SPANS, group.SerializeToString() + _field(_SCOPE_SPANS, body))


# The wire format of protobuf: a field is a tag (its number and type), for bytes the length, and the value.

_RESOURCE_SPANS, _SCOPE_SPANS, _SPANS = b"\x0a", b"\x12", b"\x12"
_TRACE_ID, _SPAN_ID, _PARENT_ID, _NAME, _ATTRIBUTE, _EVENT = (
    b"\x0a\x10",
    b"\x12\x08",
    b"\x22\x08",
    b"\x2a",
    b"\x4a",
    b"\x5a",
)
_KINDS = {True: b"\x30\x03", False: b"\x30\x01"}  # CLIENT, INTERNAL
_TIMES = Struct("<cQcQ")  # the times at the beginning and the end, as fixed64
_ERROR = b"\x7a\x02\x18\x02"  # a status with the code ERROR
_FLAGS_HERE, _FLAGS_REMOTE = (
    b"\x85\x01\x00\x01\x00\x00",
    b"\x85\x01\x00\x03\x00\x00",
)  # whether the parent is of another process


def _span(span: Span) -> bytes:
    own, parent = span.id, span.parent
    parts = [_TRACE_ID, own.trace.to_bytes(16, "big"), _SPAN_ID, own.span.to_bytes(8, "big")]
    if parent is not None:
        parts += (_PARENT_ID, parent.span.to_bytes(8, "big"))
    parts += (
        _field(_NAME, _text(span.name).encode()), _KINDS[span.is_client], _TIMES.pack(b"\x39", span.begin, b"\x41", span.end)
    )  # fmt: skip
    for item in span.attributes.items():
        parts.append(_attribute(*item))
    for name, at, attributes in span.events:
        event = SpanMessage.Event(name=name, time_unix_nano=at)
        event.attributes.extend(KeyValue(key=key, value=_value(value)) for key, value in attributes.items())
        parts.append(_field(_EVENT, event.SerializeToString()))
    if span.is_error:
        parts.append(_ERROR)
    parts.append(_FLAGS_REMOTE if parent is not None and parent.is_remote else _FLAGS_HERE)
    return b"".join(parts)


def _attribute(name: str, value: Any) -> bytes:
    key = (name, type(value), value)  # True and 1 are equal, and so are their hashes
    kept = _kept.get(key)
    if kept is None:
        kept = _field(_ATTRIBUTE, KeyValue(key=name, value=_value(value)).SerializeToString())
        if not isinstance(value, str) or len(value) <= _LONGEST:
            if len(_kept) >= _CACHED:
                _kept.clear()
            _kept[key] = kept
    return kept


def _field(tag: bytes, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return tag + size.to_bytes(1, "little") + content
    length = bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return tag + bytes(length) + content


def _value(value: Any) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=_text(value))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int) and abs(value) < _LIMIT:
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list | tuple):
        return AnyValue(array_value=ArrayValue(values=[_value(each) for each in value]))
    return AnyValue(string_value=str(value))


def _text(text: str) -> str:
    """Return a text that can be sent: lone surrogates are replaced by ``?``."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
