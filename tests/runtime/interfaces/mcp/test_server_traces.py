"""The trace of a caller goes on in the runs of its tool calls: ``_meta.traceparent``."""

import asyncio
from typing import Any

import pytest
from knotwork.runtime.api import process_traces
from support.agents import connected
from support.collector import Collector, collector, tree
from support.scripted import Scripted

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def called(monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], meta: Any) -> Collector:
    """Call a tool of a server in this process, and return what its runs exported."""

    async def call() -> None:
        async with connected(Scripted("1")) as client:
            result = await client.call_tool(tool, arguments, meta=meta)
            assert not result.is_error, result

    process_traces.stop()  # an earlier test may have asked whether traces are on
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        try:
            asyncio.run(call())
        finally:
            assert process_traces.stop() == []
    return found


def test_a_script_belongs_to_the_trace_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    found = called(monkeypatch, "run_lwt", {"script": '(a)=LLM("one")'}, meta)
    assert tree(found.spans) == [["knotwork.run", [["knotwork.step", ["chat"]]]]]
    assert {f"{each.trace:032x}" for each in found.spans} == {TRACE}
    assert f"{found.spans[-1].parent:016x}" == SPAN


@pytest.mark.slow
def test_a_plan_belongs_to_the_trace_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {"plan_id": "p", "why": "to see", "commands": ["FIND nodes AS n", "COUNT n AS c"]}
    found = called(monkeypatch, "run_plan", {"plan": plan}, {"traceparent": f"00-{TRACE}-{SPAN}-01"})
    assert tree(found.spans) == [["knotwork.run", ["knotwork.step", "knotwork.step"]]]
    assert {f"{each.trace:032x}" for each in found.spans} == {TRACE}


def test_a_call_without_a_trace_begins_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = called(monkeypatch, "run_lwt", {"script": '(a)=LLM("one")'}, {"traceparent": "not one"})
    assert [each.parent for each in found.spans if each.name == "knotwork.run"] == [0]
