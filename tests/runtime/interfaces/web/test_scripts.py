"""Scripts over HTTP: checked before anything is called, reading no files, told as they go, ended when nobody waits."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from knotwork import lwt
from knotwork.runtime.api.server_runs import Model, RunLimits
from knotwork.runtime.interfaces.http.server import Limits
from knotwork.runtime.interfaces.web.scripts import RunScriptRequest, RunScriptResponse
from support.command import call, cassette, silent_server
from support.model_server import ModelServer
from support.served import until
from support.web import application, reading, served_app, settings_in

MOODS = '(mood)=EACH({(input)}["reviews"], LLM("Glad or sad? {(item)}", type="glad" | "sad"))\n(final)=EXPR("len(mood)", mood={(mood)})\n'
INPUT = {"reviews": ["lovely", "awful", "lovely"]}
ANSWERS = {"lovely": "glad", "awful": "sad"}


def run(tmp_path: Path, script: str, path: str = "/scripts/run", answers: Any = None, **more: Any) -> Any:
    async def asking() -> Any:
        async with application(settings_in(tmp_path, answers or ANSWERS)) as client:
            return await client.post(path, json={"script": script, **more})

    return asyncio.run(asking())


def codes(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 422
    told = answer.json()
    assert told["type"] == "urn:knotwork:problem:script-refused"
    found: dict[str, list[str]] = {"error": [], "warning": [], "info": []}
    for diagnostic in told["diagnostics"]:
        found[diagnostic["severity"]].append(diagnostic["code"])
    return found


def test_a_script_runs_and_its_document_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))
    answer = run(tmp_path, MOODS, input=INPUT)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["status"], told["output"], told["value"]) == ("complete", "3", 3)
    assert told["steps"]["mood"]["value"] == ["glad", "sad", "glad"]
    (tmp_path / "s.lwt").write_text(MOODS)
    (tmp_path / "i.json").write_text(json.dumps(INPUT))
    spec = cassette(tmp_path / "c.jsonl", ANSWERS)
    same = call("run", tmp_path / "s.lwt", "--input", tmp_path / "i.json", "--llm", spec, "--format", "json").json
    assert set(same) == set(told)
    assert set(same["steps"]["mood"]) == set(told["steps"]["mood"])
    assert set(same["usage"]) == set(told["usage"])
    assert told["run"] == ""


def test_the_example_of_the_openapi_document_runs_and_gives_the_example_result(tmp_path: Path) -> None:
    asked = RunScriptRequest.model_json_schema()["examples"][0]
    result = RunScriptResponse.model_json_schema()["examples"][0]
    told = run(tmp_path, **asked, answers={"Lovely": "glad", "Never": "sad"}).json()
    for name in ("status", "output", "value", "final", "diagnostics", "warnings", "run"):
        assert told[name] == result[name], name
    assert told["steps"].keys() == result["steps"].keys()
    assert {step: kept["output"] for step, kept in told["steps"].items()} == {
        step: kept["output"] for step, kept in result["steps"].items()
    }


@pytest.mark.slow
def test_a_script_that_wants_the_input_is_refused_without_one(tmp_path: Path) -> None:
    for path in ("/scripts/run", "/scripts/run/stream"):
        for lenient in (False, True):
            answer = run(tmp_path, '(a)=LLM("one")\n(final)=LLM("{(a)} {(input)}")', path, lenient=lenient)
            assert codes(answer)["error"] == ["LWT023"]


def test_a_script_with_errors_is_refused_with_the_diagnostics_of_check(tmp_path: Path) -> None:
    text = '(a)=LLM("x {(b)}", temprature=1)\n(c)=LLM("y"'
    answer = run(tmp_path, text)
    found = [d for d in answer.json()["diagnostics"] if d["severity"] == "error"]
    checked = [d for d in lwt.check(text) if d.severity == "error"]
    assert [d["code"] for d in found] == [d.code for d in checked]
    assert [d["span"]["start"] for d in found] == [d.span.start for d in checked if d.span]
    assert any(d["edits"] for d in found)
    assert answer.json()["detail"].startswith(found[0]["message"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "code"),
    [
        ('(a)=GASL("FIND nodes AS n")', "WEB001"),
        ('(a)=GASL(file="p.gasl")', "WEB001"),
        ('(a)=SEED(file="s.json", contexts={(input)})', "WEB001"),
        ('(a)=RUN(file="x.lwt")', "WEB001"),
        ('(a)=CALL("system", text="ls")', "WEB001"),
        ('(a)=EACH({(input)}["r"], CALL("system", text={(item)}))', "WEB001"),
        ('(a)=EACH({(input)}["r"], RUN(file="x.lwt", input={(item)}))', "WEB001"),
        ('(a)=EACH({(input)}["r"], GASL("FIND nodes AS n"))', "LWT0"),
        ('(a)=SHELL("rm -rf /")', "LWT0"),
        ('(a)=LLM("x", file="/etc/passwd")', "LWT0"),
        ('(a)=LLM(file="/etc/passwd")', "WEB002"),
        ('(a)=CONST(file="/etc/passwd")', "WEB002"),
        ('(a)=LLM("x", schema_file="/etc/passwd")', "WEB002"),
        ('(a)=LLM("x", model="http://evil.example/v1#m")', "LWT0"),
        ('(a)=LLM("x", model="openai:gpt-4o")', "LWT0"),
        ("", "LWT0"),
        ("just some words", "LWT0"),
    ],
)
def test_what_is_not_for_scripts_over_http_is_refused(tmp_path: Path, script: str, code: str) -> None:
    for lenient in (False, True):
        answer = run(tmp_path, script, lenient=lenient)
        errors = codes(answer)["error"]
        assert errors, answer.text
        assert any(error.startswith(code) for error in errors)


def test_each_call_is_refused_once(tmp_path: Path) -> None:
    errors = codes(run(tmp_path, '(a)=GASL("FIND nodes AS n")\n(b)=GASL("FIND edges AS n")\n(c)=NOPE("{(a)}{(b)}")'))[
        "error"
    ]
    assert errors.count("WEB001") == 2
    assert len(errors) == 3


@pytest.mark.slow
def test_no_file_of_the_server_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret.gasl"
    secret.write_text("FIND nodes AS secret_text")
    monkeypatch.chdir(tmp_path)
    for script in ('(a)=GASL(file="secret.gasl")', '(a)=LLM("x", system=file)', '(a)=CONST(file="secret.gasl")'):
        assert "secret_text" not in run(tmp_path, script).text


def test_a_step_asks_another_model_by_its_name(tmp_path: Path) -> None:
    small = cassette(tmp_path / "small.jsonl", {"": "from the small one"})
    settings = settings_in(tmp_path, {"": "from the own one"})
    settings = evolve(settings, models=(*settings.models, Model("small", small)))

    async def asking() -> list[Any]:
        async with application(settings) as client:
            scripts = (
                {"script": '(a)=LLM("x", model="small")'},
                {"script": '(a)=LLM("x")'},
                {"script": '(a)=LLM("x")', "model": "small"},
            )
            return [(await client.post("/scripts/run", json=asked)).json()["output"] for asked in scripts]

    assert asyncio.run(asking()) == ["from the small one", "from the own one", "from the small one"]


def test_a_script_that_a_model_wrote_is_read_leniently_when_asked(tmp_path: Path) -> None:
    text = "Here is the script:\n```\n(final)=LLM('lovely')\n```"
    assert run(tmp_path, text).status_code == 422
    told = run(tmp_path, text, lenient=True)
    assert told.status_code == 200
    assert told.json()["diagnostics"]


def test_an_iterative_answer_is_a_step_like_any_other(tmp_path: Path) -> None:
    script = '(a)=ANSWER("Write a word", check="contains:word", judges=0)\n(final)=EXPR("len(a)", a={(a)})'
    told = run(tmp_path, script, answers={"": '{"answer": "a word"}'}).json()
    assert (told["status"], told["output"]) == ("complete", "6"), told


def test_partial_is_a_result_and_failed_is_a_problem(tmp_path: Path) -> None:
    answers = {"lovely": "glad", "awful": None}
    script = '(m)=EACH({(input)}["reviews"], LLM("{(item)}"), on_error=keep)\n(final)=EXPR("len(m)", m={(m)})'
    partial = run(tmp_path, script, answers=answers, input=INPUT)
    assert (partial.status_code, partial.json()["status"]) == (200, "partial")
    assert partial.json()["value"] == 3
    failed = run(tmp_path, '(a)=LLM("awful")', answers=answers)
    assert failed.status_code == 502
    told = failed.json()
    assert told["type"] == "urn:knotwork:problem:script-failed"
    assert told["run"]["steps"]["a"]["kind"] == "refused"


@pytest.mark.slow
def test_the_input_is_any_json_value(tmp_path: Path) -> None:
    for value in (None, 0, "", [], {}, [1, {"a": None}]):
        answer = run(tmp_path, '(a)=CONST("x")', input=value)
        assert answer.status_code == 200
    missing = run(tmp_path, '(a)=LLM("{(input)}[\\"no\\"]")'.replace('\\"', "'"), input={"yes": 1})
    assert missing.status_code == 422


@pytest.mark.slow
def test_numbers_and_texts_that_json_hardly_says_are_told(tmp_path: Path) -> None:
    big = 10**30
    for script, answers in (
        ('(a)=EXPR("x", x={(input)}["n"])', None), ('(a)=LLM("{(input)}", type=json)', {"": f'{{"n": {big}}}'}),
        ('(a)=LLM("{(input)}", type=json)', {"": '"\\ud83d"'}), (f"(a)=CONST({big})", None),
        (f'(a)=CONST([{big}])\n(b)=LLM("{{(a)}}")', {"nothing": "x"}),
    ):  # fmt: skip
        for path in ("/scripts/run", "/scripts/run/stream"):
            answer = run(tmp_path, script, path, answers=answers, input={"n": big})
            assert answer.status_code in (200, 422, 502), answer.text
            assert "internal" not in answer.text


@pytest.mark.slow
def test_the_stream_tells_the_runs_events_and_then_the_result(tmp_path: Path) -> None:
    path = "/scripts/run/stream"
    answer = run(tmp_path, MOODS, path, input=INPUT)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = list(reading(answer))
    failed = list(reading(run(tmp_path, '(a)=LLM("unknown")', path)))
    refused = run(tmp_path, "(a", path)
    assert [int(event.id) for event in events] == list(range(1, len(events) + 1))
    names = [event.name for event in events]
    assert names[0] == "run.started" and names[-1] == "result"
    assert names.count("call.finished") == 3
    assert "step.finished" in names and "run.finished" in names
    assert all("prompt" not in event.data for event in events)
    assert events[-1].data["value"] == 3
    assert failed[-1].name == "problem"
    assert failed[-1].data["type"] == "urn:knotwork:problem:script-failed"
    assert refused.status_code == 422


@pytest.mark.slow
def test_a_stream_has_the_parts_of_a_text_answer_and_a_plain_run_is_not_streamed(tmp_path: Path) -> None:
    async def asking() -> tuple[list[Any], list[bool]]:
        async with ModelServer() as server:
            settings = evolve(settings_in(tmp_path), models=(Model("m", f"{server.url}#m"),))
            async with application(settings) as client:
                answer = await client.post("/scripts/run/stream", json={"script": '(a)=LLM("x")'})
                await client.post("/scripts/run", json={"script": '(a)=LLM("y")'})
            return list(reading(answer)), ["stream" in request.body for request in server.requests]

    events, streamed = asyncio.run(asking())
    parts = [event.data for event in events if event.name == "call.delta"]
    assert len(parts) == 3
    assert "".join(part["text"] for part in parts) == events[-1].data["output"]
    assert parts[0].keys() == {"event", "at", "step", "text", "item", "call"}
    assert streamed == [True, False]


def test_an_option_that_the_model_can_not_take_is_refused_before_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
    settings = evolve(settings_in(tmp_path), models=(Model("m", "anthropic:claude-x"),))

    async def asking() -> Any:
        async with application(settings) as client:
            return await client.post("/scripts/run", json={"script": '(final)=LLM("x", seed=1)'})

    answer = asyncio.run(asking())
    assert codes(answer)["error"] == ["LWT054"]


@pytest.mark.slow
def test_a_stream_that_runs_out_of_time_ends_with_that_problem(tmp_path: Path) -> None:
    with silent_server() as (spec, _):
        settings = evolve(settings_in(tmp_path, run=RunLimits(seconds=0.1)), models=(Model("m", spec),))

        async def asking() -> str:
            async with application(settings) as client:
                return (await client.post("/scripts/run/stream", json={"script": '(a)=LLM("x")'})).text

        text = asyncio.run(asking())
    assert "event: problem" in text.split("\n\n")[-2]
    assert "urn:knotwork:problem:out-of-time" in text


@pytest.mark.slow
def test_a_run_ends_when_whoever_asked_has_gone(tmp_path: Path) -> None:
    with silent_server() as (spec, asked), served_app(tmp_path, "--max-runs", "1", llm=spec) as at:

        def free() -> bool:
            """Say whether the one place is free again: what is refused for its own sake had a place."""
            with at.client() as client:
                return client.post("/scripts/run", json={"script": "("}).status_code == 422

        for path in ("/scripts/run", "/scripts/run/stream"):
            asked.clear()
            host, port = at.url.removeprefix("http://").split(":")
            body = json.dumps({"script": '(a)=LLM("x")'}).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(head.encode() + body)
                assert asked.wait(20)
                assert not free()
            until(free, 10)
        assert at.stop() == 0


async def test_a_place_is_given_back_whatever_comes_of_the_run(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, ANSWERS, limits=Limits(runs=1))

    async with application(settings) as client:
        for script, status in (("(", 422), ('(a)=LLM("nobody knows")', 502), (MOODS, 200), ("(", 422)):
            for path in ("/scripts/run", "/scripts/run/stream"):
                answer = await client.post(path, json={"script": script, "input": INPUT})
                assert answer.status_code == (200 if status == 502 and path.endswith("stream") else status)
                assert client.app.state.parts.gate.runs == 0
