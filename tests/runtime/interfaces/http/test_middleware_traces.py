"""The trace of a request goes on in the runs that it starts: the header ``traceparent``."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api import process_traces
from support.collector import Collector, collector, tree
from support.web import application, settings_in

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def posted(
    monkeypatch: pytest.MonkeyPatch, folder: Path, path: str, body: dict[str, Any], answers: dict[str, str]
) -> Collector:
    """Send a request to a server in this process, and return what its runs exported."""

    async def post() -> None:
        async with application(settings_in(folder, answers)) as client:  # type: ignore[arg-type]
            response = await client.post(path, json=body, headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})
            assert response.status_code in (200, 502), response.text  # 502: no answer was good enough

    process_traces.stop()  # an earlier test may have asked whether traces are on
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        try:
            asyncio.run(post())
        finally:
            assert process_traces.stop() == []
    return found


def test_a_script_belongs_to_the_trace_of_its_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = posted(monkeypatch, tmp_path, "/scripts/run", {"script": '(a)=LLM("one")'}, {"one": "1"})
    assert tree(found.spans) == [["knotwork.run", [["knotwork.step", ["chat answers.jsonl"]]]]]
    assert {f"{each.trace:032x}" for each in found.spans} == {TRACE}
    assert f"{found.spans[-1].parent:016x}" == SPAN


@pytest.mark.slow
def test_an_answer_belongs_to_the_trace_of_its_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = '{"evaluation_reasoning": "so", "score": 0.9, "meets_criteria": true, "improvement_suggestions": []}'
    body = {"instruct": "Explain tides", "resp_format": "", "eval_crit": "Names the moon", "iter_max": 1}
    found = posted(monkeypatch, tmp_path, "/lab/generate-answer", body, {"score": verdict, "": "the moon"})
    assert [each.name for each in found.spans if f"{each.parent:016x}" == SPAN] == ["knotwork.run"]
    assert {f"{each.trace:032x}" for each in found.spans} == {TRACE}
    assert "tides" not in repr(found.spans)
