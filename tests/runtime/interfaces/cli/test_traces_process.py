"""Traces of real processes, over real HTTP: what ``--otel`` and the environment switch on, and what a dead collector costs."""

from pathlib import Path

import pytest
from knotwork.runtime.api import process_traces
from support.collector import collector, tree
from support.command import call, cassette, process
from support.evaluations import write_files
from support.served import served


@pytest.fixture(autouse=True)
def _off() -> None:
    process_traces.stop()  # an earlier test may have asked whether traces are on


HEADER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SCRIPT = '(a)=LLM("one")\n(b)=LLM("two {(a)}", type=int)\n'


@pytest.mark.slow
def test_a_script_of_the_command_line(folder: Path) -> None:
    (folder / "s.lwt").write_text(SCRIPT)
    spec = cassette(folder / "tape.jsonl", {"one": "1", "two": "2"})
    with collector() as found:
        done = process(
            "run",
            "s.lwt",
            "--llm",
            spec,
            home=folder,
            env={"OTEL_EXPORTER_OTLP_ENDPOINT": found.url, "TRACEPARENT": HEADER},
        )
    assert (done.code, done.out.strip()) == (0, "2")
    assert "trace" not in done.err
    assert tree(found.spans) == [["knotwork.run", [["knotwork.step", ["chat tape.jsonl"]]] * 2]]
    whole = next(each for each in found.spans if each.name == "knotwork.run")
    assert (f"{whole.trace:032x}", f"{whole.parent:016x}") == (HEADER[3:35], HEADER[36:52])
    run = whole.attributes["knotwork.run.id"]
    assert run and run in done.err
    calls = [each for each in found.spans if each.name == "chat tape.jsonl"]
    for each in calls:
        assert each.kind == "INTERNAL" and each.attributes["knotwork.run.id"] == run
        assert (each.attributes["gen_ai.provider.name"], each.attributes["gen_ai.response.model"]) == ("replay", "test")
        assert (each.attributes["gen_ai.usage.input_tokens"], each.attributes["gen_ai.usage.output_tokens"]) == (10, 2)
    assert sum(total for attributes, _, total in found.metrics["gen_ai.client.token.usage"]) == 24


@pytest.mark.slow
def test_a_seed_and_its_evaluation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.evaluations import cassette as rater

    write_files(folder, 2, 2)
    spec = rater(folder / "tape.jsonl", count=2, reviews=2)
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        done = call("seed", "run", "rating.seed.json", "contexts.jsonl", "--llm", spec)
        assert done.code == 0
        assert tree(found.spans) == [["knotwork.run", [["knotwork.context", ["chat tape.jsonl"] * 2]] * 2]]
        found.spans.clear()
        command = ("eval", "rating.seed.json", "gold.csv", "--contexts", "contexts.jsonl", "--llm", spec)
        done = call(*command)
        assert done.code == 0, done.err
    whole = [each for each in found.spans if each.attributes.get("knotwork.kind") == "eval"]
    assert len(whole) == 1 and "gen_ai.evaluation.result" in dict(whole[0].events)
    assert "drug" not in repr(found.spans)


@pytest.mark.slow
def test_the_service_gets_the_trace_only_if_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "s.lwt").write_text('(a)=LLM("one")\n')
    with collector() as found, served(folder) as server:
        for asked in ("", "1"):
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
            monkeypatch.setenv("KNOTWORK_OTEL_PROPAGATE", asked)
            assert call("run", "s.lwt", "--llm", server.spec, "--no-cache").code == 0
        headers = [line["traceparent"] for line in server._lines() if "asked" in line]
    asking = [each for each in found.spans if each.name == "chat m"][-1]
    assert headers == ["", f"00-{asking.trace:032x}-{asking.id:016x}-01"]
    assert (asking.kind, asking.attributes["server.address"]) == ("CLIENT", "127.0.0.1")


@pytest.mark.slow
def test_a_dead_collector_gives_one_warning(folder: Path) -> None:
    (folder / "s.lwt").write_text(SCRIPT)
    spec = cassette(folder / "tape.jsonl", {"one": "1", "two": "2"})
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = process("run", "s.lwt", "--llm", spec, home=folder, env=env)
    assert (done.code, done.out.strip()) == (0, "2")
    warnings = [line for line in done.err.splitlines() if "trace" in line.lower() or "OTLP" in line]
    assert len(warnings) == 1 and warnings[0].startswith("warning: traces: 5 spans were not sent: ")


def test_the_option_switches_traces_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "s.lwt").write_text(SCRIPT)
    spec = cassette(folder / "tape.jsonl", {"one": "1", "two": "2"})
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{found.url}/v1/traces")
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
        assert call("run", "s.lwt", "--llm", spec).code == 0
        assert found.spans == []
        assert call("--otel", "run", "s.lwt", "--llm", spec, "--no-cache").code == 0
    assert len(found.spans) == 5


def test_the_option_without_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.api.traces.find_spec", lambda name: None)
    done = call("--otel", "rules")
    assert done.code == 2 and "pip install 'knotwork[otel]'" in done.err


def test_a_command_and_a_prompt_are_traced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        assert call("gasl", "-g", "nx:les_miserables", "-c", "FIND nodes AS n").code == 0
        first = len(found.spans)
        assert call("repl", "nx:les_miserables", "-c", "FIND nodes AS n").code == 0
    assert 0 < first < len(found.spans)
    assert {each.attributes["knotwork.command"] for each in found.spans if "knotwork.command" in each.attributes} == {
        "FIND"
    }


@pytest.mark.slow
def test_without_a_collector_no_command_imports_opentelemetry(folder: Path) -> None:
    (folder / "s.lwt").write_text(SCRIPT)
    spec = cassette(folder / "tape.jsonl", {"one": "1", "two": "2"})
    plain = process("run", "s.lwt", "--llm", spec, home=folder, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert plain.code == 0 and "opentelemetry" not in plain.err and "knotwork.runtime.traces.spans" not in plain.err
    assert "knotwork.runtime.api.traces" in plain.err
