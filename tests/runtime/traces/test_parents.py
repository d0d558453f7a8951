"""W3C trace context: what is a parent, and what is ignored."""

import pytest
from knotwork.runtime.traces.parents import SpanId, current_parent, read_traceparent, remote_parent

HEADER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
PARENT = SpanId(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7, True, True)


def test_a_header_names_a_span() -> None:
    assert read_traceparent(HEADER) == PARENT
    assert read_traceparent(HEADER[:-2] + "00") == SpanId(PARENT.trace, PARENT.span, False, True)
    assert PARENT.traceparent() == HEADER


def test_a_later_version_may_have_more_parts() -> None:
    assert read_traceparent("01" + HEADER[2:] + "-what-comes-later") == PARENT


@pytest.mark.parametrize(
    "text",
    [
        None, 7, "", "x", HEADER.upper(), HEADER[:-1], HEADER + "-more", "ff" + HEADER[2:], "00-" + "0" * 32 + HEADER[35:],
        HEADER[:36] + "0" * 16 + "-01", "01" + HEADER[2:] + "-" + "x" * 600,
    ],
)  # fmt: skip
def test_anything_else_is_ignored(text: object) -> None:
    assert read_traceparent(text) is None
    with remote_parent(text):
        assert current_parent() is None


def test_a_parent_is_that_of_its_block() -> None:
    with remote_parent(HEADER):
        assert current_parent() == PARENT
    assert current_parent() is None
