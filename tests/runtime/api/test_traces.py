"""Traces from Python and from the environment: what switches them on, what they export over HTTP, and what a failure says."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from knotwork import lwt, traces
from knotwork.adapters.llm import NotConfigured
from knotwork.runtime.api import process_traces as process
from knotwork.runtime.api import traces as module
from knotwork.runtime.errors import RequestError
from knotwork.runtime.events import CallFinished, CallStarted, RunStarted
from support.collector import Collector, collecting, collector
from support.scripted import Scripted

SCRIPT = '(a)=LLM("one", type=int)'


@pytest.fixture
def receiver() -> Iterator[Collector]:
    with collector() as found:
        yield found


@pytest.fixture(autouse=True)
def _off() -> Iterator[None]:
    process.stop()
    yield
    process.stop()


def run(model: Any = None) -> lwt.Run:
    events = lwt.Events()
    process.subscribe(events)
    return lwt.run_sync(SCRIPT, llm=model or Scripted("1"), events=events)


def test_without_a_collector_nothing_subscribes() -> None:
    events = lwt.Events()
    process.subscribe(events)
    assert not events and not process.are_on() and process.stop() == []


def test_spans_and_metrics_arrive_over_http(receiver: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.ENDPOINT, receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "reviews")
    assert run().status == "complete"
    assert process.stop() == []
    assert [each.name for each in receiver.spans] == ["chat", "knotwork.step", "knotwork.run"]
    assert receiver.paths == ["/v1/traces", "/v1/metrics"]
    assert receiver.headers["x-team"] == "blue"
    assert receiver.resources[0]["service.name"] == "reviews" and receiver.resources[0]["service.instance.id"]
    assert receiver.schemas == {"https://opentelemetry.io/schemas/1.41.0"}
    call = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "custom"}
    assert receiver.metrics["gen_ai.client.token.usage"] == [
        ({**call, "gen_ai.token.type": "input"}, 1, 10), ({**call, "gen_ai.token.type": "output"}, 1, 5),
    ]  # fmt: skip
    ((attributes, count, seconds),) = receiver.metrics["gen_ai.client.operation.duration"]
    assert (attributes, count) == (call, 1) and 0 < seconds < 60


def test_metrics_add_up_over_calls_and_name_errors(receiver: Collector) -> None:
    events = lwt.Events()
    with traces.start(receiver.url) as exported:
        exported.subscribe(events)
        for _ in range(3):
            lwt.run_sync(SCRIPT, llm=Scripted("1"), events=events)
        lwt.run_sync(SCRIPT, llm=Scripted(""), events=events)
    found = {
        attributes.get("error.type"): count
        for attributes, count, _ in receiver.metrics["gen_ai.client.operation.duration"]
    }
    assert found == {None: 3, "empty": 1}
    assert exported.stop().sent == 12


def test_an_answer_from_the_cache_has_a_span_and_no_metrics(receiver: Collector) -> None:
    events = lwt.Events()
    with traces.start(receiver.url) as exported:
        exported.subscribe(events)
        events.emit(RunStarted((("a",),), "a"))
        events.emit(CallStarted("a", "one", call=7))
        events.emit(CallFinished("a", "1", 0, 0, 0.0, True, 0.0, call=7))
    assert [each.attributes["knotwork.cached"] for each in receiver.spans if each.name == "chat"] == [True]
    assert receiver.metrics == {}


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), (module.ENDPOINT, " ")]
)
def test_the_variables_of_the_sdk_switch_traces_off(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(module.ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    assert not process.are_on()


def test_metrics_can_be_switched_off(receiver: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv(module.ENDPOINT, receiver.url)
    run()
    process.stop()
    assert receiver.paths == ["/v1/traces"]


def test_the_environment_names_the_parent(receiver: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    monkeypatch.setenv(module.ENDPOINT, receiver.url)
    run()
    process.stop()
    assert {f"{each.trace:x}" for each in receiver.spans} == {"4bf92f3577b34da6a3ce929d0e0e4736"}
    assert receiver.spans[-1].parent == 0x00F067AA0BA902B7


def test_a_run_can_hand_its_span_on(receiver: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[str] = []

    class Asking:
        async def generate(self, prompt: str, **options: Any) -> str:
            handed.append(process.traceparent())
            return "1"

    assert process.traceparent() == ""
    monkeypatch.setenv(module.ENDPOINT, receiver.url)
    run(Asking())
    process.stop()
    step = next(each for each in receiver.spans if each.name == "knotwork.step")
    assert handed == [f"00-{step.trace:032x}-{step.id:016x}-01"]
    assert process.traceparent() == ""


@pytest.mark.slow
def test_a_dead_collector_fails_no_run_and_is_told_once(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv(module.ENDPOINT, "http://127.0.0.1:9")
    assert run().status == "complete" and run().status == "complete"
    (said,) = process.stop(0.2)
    assert said.startswith("traces: 6 spans were not sent: ")
    assert capfd.readouterr() == ("", "")


def test_a_collector_that_refuses_is_told(receiver: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver.status = 401
    monkeypatch.setenv(module.ENDPOINT, receiver.url)
    run()
    (said,) = process.stop()
    assert said.startswith("traces: 3 spans were not sent: ") and "401" in said


def test_a_full_queue_drops_spans_not_calls(receiver: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1000")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setenv(module.ENDPOINT, receiver.url)
    events, script = lwt.Events(), "\n".join(f'(s{number})=LLM("{number}")' for number in range(20))
    process.subscribe(events)
    made = lwt.run_sync(script, llm=Scripted("1"), events=events, all_steps=True)
    assert made.status == "complete" and made.calls == 20
    assert process.stop() == [
        "traces: 31 spans were dropped because the queue was full; raise OTEL_BSP_MAX_QUEUE_SIZE"
    ]  # 20 calls, 20 steps and the run, of which ten fit
    assert len(receiver.spans) == 10


def test_a_subscriber_that_raises_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as found:
        monkeypatch.setattr(type(found.traces._sink), "ended", lambda self, span: 1 / 0)
        made = lwt.run_sync(SCRIPT, llm=Scripted("1"), events=found.events)
    assert made.status == "complete"
    assert "RunSpans receives no more events" in made.warnings[0]


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(RequestError, match="'yes' is unknown"):
        traces.start(capture="yes")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="is not an address"):
        traces.start("localhost:4318")


@pytest.mark.parametrize(
    ("value", "capture", "notes"),
    [
        ("", "NO_CONTENT", 0),
        ("span_only", "SPAN_ONLY", 0),
        ("true", "SPAN_ONLY", 0),
        ("false", "NO_CONTENT", 0),
        ("all", "NO_CONTENT", 1),
    ],
)
def test_the_variable_for_texts(monkeypatch: pytest.MonkeyPatch, value: str, capture: str, notes: int) -> None:
    monkeypatch.setenv(module.CAPTURE, value)
    with collecting() as found:
        assert (found.traces._sink.capture, len(found.traces.notes)) == (capture, notes)


def test_another_protocol_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with traces.start("http://127.0.0.1:9") as exported:
        assert exported.notes == (
            "traces are sent as http/protobuf: OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported",
        )


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(NotConfigured) as refused:
        process.begin(asked=True)
    assert refused.value.hint == "pip install 'knotwork[otel]'"
    monkeypatch.setenv(module.ENDPOINT, "http://127.0.0.1:9")
    process.stop()
    assert not process.are_on()
    (said,) = process.stop()
    assert said.endswith("the optional dependencies are not installed; pip install 'knotwork[otel]'")


def test_a_setting_that_the_sdk_refuses_fails_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "nothing")
    assert run().status == "complete"
    (said,) = process.stop()
    assert said.startswith("no traces: RuntimeError: ")
    with pytest.raises(NotConfigured, match="traces: RuntimeError"):
        process.begin(asked=True)


@pytest.mark.slow
def test_nothing_is_imported_while_traces_are_off() -> None:
    code = (
        "import sys; from knotwork import lwt\nfrom knotwork.runtime.api import process_traces as process\n"
        "class M:\n    async def generate(self, prompt, **options): return '1'\n"
        "events = lwt.Events(); process.subscribe(events)\n"
        "assert lwt.run_sync('(a)=LLM(\"x\")', llm=M(), events=events).status == 'complete'; process.stop()\n"
        "print([name for name in sys.modules if 'opentelemetry' in name or name.startswith('knotwork.runtime.traces.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['knotwork.runtime.traces.parents']"
