"""The queue of spans: it never waits for the collector, and counts what it loses."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from knotwork.runtime.traces.parents import SpanId
from knotwork.runtime.traces.span import Span
from knotwork.runtime.traces.span_queue import SpanQueue, Totals


def span(number: int = 1) -> Span:
    return Span("chat", SpanId(1, number), None, 0, {})


@contextmanager
def queue(send: Any, **options: Any) -> Iterator[SpanQueue]:
    made = SpanQueue(send, **options)
    try:
        yield made
    finally:
        made.stop(1)


def test_spans_arrive_in_batches_and_in_order() -> None:
    sent: list[Sequence[Span]] = []

    def send(spans: Sequence[Span]) -> str:
        sent.append(spans)
        return ""

    with queue(send, batch=4, delay=60) as made:
        for number in range(1, 11):
            made.put(span(number))
        assert made.stop(10) == Totals(sent=10)
    assert [each.id.span for batch in sent for each in batch] == list(range(1, 11))
    assert all(len(batch) <= 4 for batch in sent)


def test_a_full_queue_drops_new_spans_and_counts_them() -> None:
    holding, taken = threading.Event(), threading.Event()

    def send(spans: Sequence[Span]) -> str:
        taken.set()
        holding.wait(10)
        return ""

    with queue(send, capacity=4, batch=2, delay=60) as made:
        made.put(span())
        made.put(span())
        assert taken.wait(10)  # the thread has taken the first two, and waits for the collector
        for number in range(7):
            made.put(span(number))
        assert made.dropped == 3
        holding.set()
        assert made.stop(10) == Totals(sent=6, dropped=3)


def test_a_failure_is_told_once_and_its_spans_are_lost() -> None:
    told: list[str] = []

    def send(spans: Sequence[Span]) -> str:
        if spans[0].id.span == 1:
            raise OSError("no route")
        return "refused"

    with queue(send, batch=1, delay=60, warn=told.append) as made:
        made.put(span(1))
        made.put(span(2))
        totals = made.stop(10)
    assert totals == Totals(lost=2, reason="OSError: no route")
    assert told == ["OSError: no route"]


def test_the_end_does_not_wait_for_a_collector_that_hangs() -> None:
    cancelled = threading.Event()

    def send(spans: Sequence[Span]) -> str:
        cancelled.wait()
        return "cancelled"

    with queue(send, cancel=cancelled.set, delay=60) as made:
        made.put(span())
        totals = made.stop(0.05)
    assert cancelled.is_set()
    assert (totals.sent, totals.lost) == (0, 1)


def test_a_collector_that_hangs_for_ever_is_left_alone() -> None:
    forever = threading.Event()

    def send(spans: Sequence[Span]) -> str:
        forever.wait()
        return ""

    made = SpanQueue(send, delay=60)
    made.put(span())
    totals = made.stop(0.05)
    forever.set()
    assert totals == Totals(lost=1, reason="the collector did not answer in time")


def test_metrics_are_sent_at_the_end() -> None:
    sent: list[str] = []
    with queue(lambda spans: "", send_metrics=lambda: sent.append("metrics") or "", delay=60) as made:  # type: ignore[func-returns-value]
        made.stop(10)
    assert sent == ["metrics"]


def test_an_unused_queue_starts_no_thread() -> None:
    before = threading.active_count()
    made = SpanQueue(lambda spans: "")
    assert threading.active_count() == before
    assert made.totals == Totals()


@pytest.mark.parametrize("count", [1, 3])
def test_it_sends_again_after_a_flush(count: int) -> None:
    sent: list[Span] = []
    with queue(lambda spans: sent.extend(spans) or "", delay=60) as made:  # type: ignore[func-returns-value]
        for number in range(count):
            made.put(span(number))
            assert made.flush(10)
            assert len(sent) == number + 1
