"""The queue between a run and the exporter: a run only appends to the queue, and a separate thread sends its spans.

Nothing here may delay or fail a run. A full queue drops new spans, and a failed request loses its spans; both are counted.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

from attrs import define, field, frozen

from .span import Span

THREAD = "knotwork-traces"
"""The name of the threads that empty the queues."""


@frozen
class Totals:
    """Numbers of spans: ``sent`` (arrived), ``dropped`` (the queue was full), and ``lost`` (could not be sent).

    ``reason`` is the first reason why a request to the collector failed; "" if none failed.
    """

    sent: int = 0
    dropped: int = 0
    lost: int = 0
    reason: str = ""


@define(eq=False)
class SpanQueue:
    """Sends spans in batches.

    ``send`` exports a batch and returns the reason of a failure, or "". ``send`` is called in one thread only. ``send_metrics``
    exports the metrics in the same way; it is called every ``metrics_every`` seconds, and at the end. ``delay`` is the maximum
    number of seconds that a span waits for its batch to fill. ``cancel`` ends a request that is waiting. ``warn`` is called
    once, in that thread, with the reason of the first failure.
    """

    send: Callable[[Sequence[Span]], str]
    send_metrics: Callable[[], str] = lambda: ""
    cancel: Callable[[], None] = lambda: None
    warn: Callable[[str], None] | None = None
    capacity: int = 2_048
    batch: int = 512
    delay: float = 5.0
    metrics_every: float = 60.0
    dropped: int = field(default=0, init=False)
    _spans: deque[Span] = field(factory=deque, init=False)
    _sent: int = field(default=0, init=False)
    _lost: int = field(default=0, init=False)
    _under_way: int = field(default=0, init=False)
    _reason: str = field(default="", init=False)
    _wake: threading.Event = field(factory=threading.Event, init=False)
    _empty: threading.Event = field(factory=threading.Event, init=False)
    _flushing: bool = field(default=False, init=False)
    _stopping: bool = field(default=False, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _starting: threading.Lock = field(factory=threading.Lock, init=False)

    def put(self, span: Span) -> None:
        """Queue a span; drop it if the queue is full. Never waits."""
        spans = self._spans
        if len(spans) >= self.capacity:
            self.dropped += 1
            return
        spans.append(span)
        if self._thread is None:
            self._start()
        if len(spans) >= self.batch and not self._wake.is_set():
            self._wake.set()

    @property
    def totals(self) -> Totals:
        """The totals so far. Spans that are still in the queue are not included."""
        return Totals(self._sent, self.dropped, self._lost, self._reason)

    def flush(self, seconds: float) -> bool:
        """Send everything that is queued, and the metrics. Return whether that was done within ``seconds``."""
        if self._thread is None:
            self._start()
        self._empty.clear()
        self._flushing = True
        self._wake.set()
        return self._empty.wait(seconds)

    def stop(self, seconds: float) -> Totals:
        """Send what is left (time limit: ``seconds``), and end the thread. Spans that were not sent by then count as lost."""
        if self._stopping:
            return self.totals
        until = monotonic() + seconds
        self.flush(seconds)
        self._stopping = True
        self._wake.set()
        self.cancel()
        if self._thread is not None:
            self._thread.join(max(0.1, until - monotonic()))
        left = len(self._spans) + self._under_way
        reason = self._reason or ("the collector did not answer in time" if left else "")
        return Totals(self._sent, self.dropped, self._lost + left, reason)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=THREAD, daemon=True)
                self._thread.start()

    def _work(self) -> None:
        due = monotonic() + self.metrics_every
        while not self._stopping:
            self._wake.wait(self.delay)
            self._wake.clear()
            is_flushing, self._flushing = self._flushing, False
            while self._spans and not self._stopping:
                self._send_batch()
            if (is_flushing or monotonic() >= due) and not self._stopping:
                due = monotonic() + self.metrics_every
                self._failed(self._attempt(self.send_metrics))
            if is_flushing:
                self._empty.set()

    def _send_batch(self) -> None:
        batch = [self._spans.popleft() for _ in range(min(self.batch, len(self._spans)))]
        self._under_way = len(batch)
        reason = self._attempt(lambda: self.send(batch))
        if reason:
            self._lost += len(batch)
        else:
            self._sent += len(batch)
        self._under_way = 0
        self._failed(reason)

    @staticmethod
    def _attempt(work: Callable[[], str]) -> str:
        try:
            return work()
        except Exception as error:  # an exporter may raise any exception; the run continues
            return f"{type(error).__name__}: {error}"[:500]

    def _failed(self, reason: str) -> None:
        if reason and not self._reason:
            self._reason = reason
            if self.warn is not None:
                self.warn(reason)
