"""The example configuration, the dashboard and the reference page name only what is really exported."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from knotwork import lwt, traces
from knotwork.runtime.api import process_traces
from knotwork.runtime.events import (
    CallFinished,
    CallRetried,
    CallStarted,
    EvaluationScored,
    RunStarted,
    StepStarted,
)
from knotwork.runtime.loops.loop_events import loop_events
from knotwork.runtime.traces import conventions as names
from support.collector import Collector, collector
from support.command import call, cassette
from support.folders import ROOT

EXAMPLES = ROOT / "docs/examples/traces"
UNITS = {names.DURATION: "_seconds", names.TOKEN_USAGE: ""}
"""How Prometheus names the units of the metrics."""


@pytest.fixture(scope="module")
def exported() -> Iterator[Collector]:
    """What a run with a failed, a repaired and a paid call exports, and an evaluation."""
    with collector() as found:
        events = lwt.Events()
        with traces.start(found.url) as sent:
            sent.subscribe(events)
            with loop_events(events, "eval", "gold", "run 1"):
                events.emit(RunStarted((("a",),), "a", "script", "s.lwt", "run 2"))
                events.emit(StepStarted("a"))
                for number, error in enumerate(("", "timeout"), 1):
                    events.emit(CallStarted("a", "?", call=number, model="http://127.0.0.1:1/v1#m"))
                    events.emit(CallRetried("a", "repair", 2, "no", call=number))
                    answer = CallFinished(
                        "a", "1", 7, 1, 0.5, False, 0.5, error, None, 2, number, "m-1", "stop", "fence"
                    )
                    events.emit(answer)
                events.emit(EvaluationScored("m", "rating.accuracy", 0.5))
        yield found


def queries(kind: str) -> list[str]:
    """Return the queries of the dashboard for a kind of source."""
    document = json.loads((EXAMPLES / "grafana.json").read_text())
    targets = [target for panel in document["panels"] for target in panel["targets"]]
    return [
        target["expr" if kind == "prometheus" else "query"]
        for target in targets
        if target["datasource"]["type"] == kind
    ]


def test_every_metric_and_label_of_the_dashboard_is_exported(exported: Collector) -> None:
    known = {
        f"{name.replace('.', '_')}{UNITS[name]}_{part}"
        for name in exported.metrics
        for part in ("bucket", "sum", "count")
    }
    labels = {name.replace(".", "_") for series in exported.metrics.values() for each, _, _ in series for name in each}
    found = queries("prometheus")
    assert len(found) >= 5
    for query in found:
        assert set(re.findall(r"(\w+)(?:\{[^}]*\})?\[", query)) <= known, query
        used = {each.strip() for group in re.findall(r"by \(([^)]*)\)", query) for each in group.split(",")}
        used |= set(re.findall(r"[{,]\s*(\w+)\s*[!=]=?", query))
        assert used - {"le"} <= labels, query


def test_every_attribute_of_the_dashboard_is_exported(exported: Collector) -> None:
    attributes = {name for span in exported.spans for name in span.attributes}
    events = {name: set(found) for span in exported.spans for name, found in span.events}
    found = queries("tempo")
    assert len(found) >= 4
    for query in found:
        assert set(re.findall(r"\bspan\.([\w.]+)", query)) <= attributes, query
        assert set(re.findall(r"\bevent\.([\w.]+)", query)) <= set().union(*events.values()), query
        assert set(re.findall(r'event:name = "([^"]+)"', query)) <= set(events), query
        assert set(re.findall(r'(?<![.:])\bname = "([^"]+)"', query)) <= {each.name for each in exported.spans}, query


def test_the_variables_of_the_dashboard_are_defined() -> None:
    text = (EXAMPLES / "grafana.json").read_text()
    defined = {each["name"] for each in json.loads(text)["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z_]+)\}?", text)) - {"__rate_interval"}
    assert used == defined


def test_the_collector_listens_where_traces_are_sent_by_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration: dict[str, Any] = yaml.safe_load((EXAMPLES / "collector.yaml").read_text())
    host, _, port = configuration["receivers"]["otlp"]["protocols"]["http"]["endpoint"].partition(":")
    assert host == "localhost"
    for pipeline in configuration["service"]["pipelines"].values():  # every part that a pipeline names is configured
        for part in ("receivers", "processors", "exporters"):
            assert set(pipeline[part]) <= set(configuration[part])
    deleted = {each["key"] for each in configuration["processors"]["attributes/no-texts"]["actions"]}
    assert deleted == {names.INPUT_MESSAGES, names.OUTPUT_MESSAGES}
    process_traces.stop()  # an earlier test may have asked whether traces are on
    (folder / "s.lwt").write_text('(a)=LLM("one")\n')
    spec = cassette(folder / "tape.jsonl", {"one": "1"})
    try:
        with collector(int(port)) as found:
            assert call("--otel", "run", "s.lwt", "--llm", spec).code == 0
    except OSError:
        pytest.skip(f"port {port} is in use")
    assert [each.name for each in found.spans] == ["chat tape.jsonl", "knotwork.step", "knotwork.run"]
    assert set(found.metrics) == {names.TOKEN_USAGE, names.DURATION}


def test_the_page_lists_every_name() -> None:
    page = (ROOT / "docs/reference/traces.md").read_text()
    told = {
        value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and name != "VERSION"
    }
    assert {
        value for value in told if f"`{value}`" not in page and value not in (names.RUN, names.CONTEXT, names.STEP)
    } == set()
    assert names.VERSION in page
    known = told | {"knotwork.run.id"}
    written = set(re.findall(r"`((?:gen_ai|knotwork)\.[\w.]+)`", page))
    assert written <= known | {"knotwork.run", "knotwork.step", "knotwork.context"}
