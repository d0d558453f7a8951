"""What traces cost: CPU time of a call while they are off and on, and of the start of a process.

    python tests/bench/bench_traces.py [--quick]

An EACH asks a client that answers at once, so that a call costs little but what is measured. Its sides run in turn, several times: without
events; with traces switched off; with a subscriber that does nothing; and with traces on, exported over OTLP/HTTP to a receiver that is a
process of its own. All CPU time of the process counts, also that of the thread that exports. Beside them, spans with the same attributes
made by OpenTelemetry's own tracer, batched and exported by its own processor. The lowest of the rounds is given: on a machine with other
work, the others measure that work. A number of calls a second is not: it would measure the machine.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from knotwork import lwt, traces
from knotwork.adapters.llm import Completion, Usage
from knotwork.adapters.llm.middleware import Own
from knotwork.runtime.api import process_traces

SHELF = '(final)=EACH({(input)}, LLM("Glad or sad? {(item)}"))'
ANSWER = Completion("glad", usage=Usage(500, 5), model="gpt-5-mini-2025-08-07", cost=0.0001)


class Client(Own):
    """Answers at once."""

    model_spec = "openai:gpt-5-mini"

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Answer."""
        return ANSWER

    async def aclose(self) -> None:
        """Do nothing."""


def receive() -> None:
    """Take what is sent, until the process is killed."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def asked(items: list[int], events: lwt.Events | None) -> None:
    """Ask for every item."""
    more: dict[str, Any] = {} if events is None else {"events": events}
    run = asyncio.run(lwt.run(SHELF, input=items, llm=Client(), **more))
    assert run.status == "complete"


def cpu(work: Callable[[], None], calls: int) -> float:
    """Return the microseconds of CPU time of a call."""
    began = time.process_time()
    work()
    return 1e6 * (time.process_time() - began) / calls


def with_traces(items: list[int], url: str) -> traces.Traces:
    """Ask with traces on, and send everything."""
    events = lwt.Events()
    exported = traces.start(url)
    exported.subscribe(events)
    asked(items, events)
    totals = exported.stop(60)
    assert totals.sent + totals.dropped == len(items) + 2 and not totals.lost, totals
    if totals.dropped:
        print(f"  {totals.dropped:,} spans were dropped", file=sys.stderr)
    return exported


def by_the_sdk(count: int, url: str) -> None:
    """Make as many spans with OpenTelemetry's own tracer, and record the same metrics with its own meter."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import SpanKind

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces"), max_queue_size=1_000_000))
    meters = MeterProvider(
        [PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"))], shutdown_on_exit=False
    )
    tracer, meter = provider.get_tracer("bench"), meters.get_meter("bench")
    tokens, seconds = (
        meter.create_histogram("gen_ai.client.token.usage"),
        meter.create_histogram("gen_ai.client.operation.duration"),
    )
    few = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.response.model": ANSWER.model,
    }  # fmt: skip
    with tracer.start_as_current_span("run"):
        for _ in range(count):
            span = tracer.start_span("chat gpt-5-mini", kind=SpanKind.CLIENT)
            for name, value in few.items():
                span.set_attribute(name, value)
            span.set_attribute("gen_ai.usage.input_tokens", 500)
            span.set_attribute("gen_ai.usage.output_tokens", 5)
            span.set_attribute("gen_ai.response.finish_reasons", ("stop",))
            span.set_attribute("knotwork.cached", False)
            span.set_attribute("knotwork.attempts", 1)
            span.set_attribute("knotwork.item", 3)
            span.set_attribute("knotwork.cost", 0.0001)
            span.end()
            tokens.record(500, {**few, "gen_ai.token.type": "input"})
            tokens.record(5, {**few, "gen_ai.token.type": "output"})
            seconds.record(0.5, few)
    provider.shutdown()
    meters.shutdown()


def start(environment: dict[str, str]) -> float:
    """Return the milliseconds of CPU time of a process that imports what ``knotwork run`` does and asks whether traces are on."""
    code = (
        "import time; from knotwork.runtime.interfaces.cli import run_script\n"
        "from knotwork.runtime.api.process_traces import are_on; are_on(); print(time.process_time())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return 1e3 * float(done.stdout)


def main() -> None:
    """Print the figures."""
    quick = "--quick" in sys.argv
    calls, rounds = (500, 2) if quick else (4_000, 7)
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        os.environ.pop(name, None)
    os.environ["OTEL_BSP_MAX_QUEUE_SIZE"] = "1000000"  # every span is paid for: none is dropped
    items = list(range(calls))
    receiver = subprocess.Popen([sys.executable, __file__, "--receive"], stdout=subprocess.PIPE, text=True)
    try:
        assert receiver.stdout is not None
        url = receiver.stdout.readline().strip()

        def off() -> None:
            events = lwt.Events()
            process_traces.subscribe(events)
            asked(items, events)

        def heard() -> None:
            asked(items, lwt.Events([lambda event: None]))

        sides: dict[str, Callable[[], Any]] = {
            "no events": lambda: asked(items, None),
            "traces off": off,
            "a subscriber that does nothing": heard,
            "traces on": lambda: with_traces(items, url),
            "spans and metrics of the SDK alone": lambda: by_the_sdk(calls, url),
        }
        took: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(rounds + 1):
            for name, work in sides.items():
                spent = cpu(work, calls)
                if turn:  # the first round imports and compiles
                    took[name].append(spent)
        starts = {"traces off": [], "traces on": []}  # type: dict[str, list[float]]
        for _ in range(rounds):
            starts["traces off"].append(start({}))
            starts["traces on"].append(start({"OTEL_EXPORTER_OTLP_ENDPOINT": url}))
    finally:
        receiver.kill()
        receiver.wait()
    least = {name: min(each) for name, each in took.items()}
    print(f"{calls:,} calls, {rounds} rounds; µs of CPU time of a call, lowest and median of the rounds")
    for name, each in took.items():
        print(f"  {name:36} {min(each):7.1f} {statistics.median(each):7.1f}")
    print(f"  traces off - no events               {least['traces off'] - least['no events']:7.1f}")
    print(f"  traces on - a subscriber             {least['traces on'] - least['a subscriber that does nothing']:7.1f}")
    print(f"  traces on - traces off               {least['traces on'] - least['traces off']:7.1f}")
    print("ms of CPU time of a start, lowest of the rounds")
    for name, each in starts.items():
        print(f"  {name:36} {min(each):7.0f}")
    print(json.dumps({"us": least, "start_ms": {name: min(each) for name, each in starts.items()}}))


if __name__ == "__main__":
    receive() if "--receive" in sys.argv else main()
