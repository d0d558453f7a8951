"""``knotwork mcp`` as a process over stdio: the official client, a client that goes away, and thousands of malformed messages."""

import asyncio
import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.models.factory import open_state, verify_state
from support.agents import COMMAND, GRAPH, stdio, told
from support.command import environment, process
from support.lines import HELLO, answer, call, raw, send
from support.served import served, until

PLAN = {
    "plan_id": "p",
    "why": "w",
    "commands": ["FIND nodes WHERE degree > 20 AS x", "DECLARE found AS LIST", "UPDATE found WITH x"],
}
SLOW = "CLASSIFY x BY 'mood' INTO ('good', 'bad') AS moods"


@pytest.mark.slow
def test_the_official_client_plans_runs_and_leaves_and_the_state_is_kept(tmp_path: Path) -> None:
    async def work() -> Any:
        async with stdio(tmp_path, "--graph", GRAPH, "--state", str(tmp_path / "state"), "--no-model") as client:
            return await told(client, "run_plan", plan=PLAN)

    ran = asyncio.run(work())
    assert ran["status"] == "success"
    kept = open_state(tmp_path / "state", read_only=True)
    assert kept.hash == ran["state"] and verify_state(tmp_path / "state").ok
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.slow
def test_a_state_knows_its_graph_and_has_one_writer(tmp_path: Path) -> None:
    state = str(tmp_path / "state")

    async def work() -> Any:
        async with stdio(tmp_path, "--graph", GRAPH, "--state", state, "--no-model") as client:
            await told(client, "run_plan", plan=PLAN)
            second = await asyncio.to_thread(process, "mcp", "--state", state, "--no-model", home=tmp_path)
        async with stdio(tmp_path, "--state", state, "--no-model") as client:
            return second, await told(client, "schema")

    second, schema = asyncio.run(work())
    assert second.code == 1 and second.err.startswith("error: ") and "Traceback" not in second.err
    assert schema["nodes"] == 77


@pytest.mark.slow
def test_a_client_that_goes_away_in_the_middle_leaves_no_process_and_a_whole_state(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with served(tmp_path, "--delay", "60") as model:
        options = [*COMMAND, "--graph", GRAPH, "--state", str(state), "--llm", model.spec, "--no-cache"]
        with (tmp_path / "stderr").open("wb") as log:
            server = subprocess.Popen(
                options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment(tmp_path)
            )
            send(server, HELLO)
            answer(server, 0)
            send(server, call(1, "run_plan", plan={**PLAN, "commands": [*PLAN["commands"], SLOW]}))
            until(model.reached(1))
            assert server.stdin is not None and server.stdout is not None
            server.stdout.close()
            server.stdin.close()
            assert server.wait(20) == 0
    assert verify_state(state).ok
    kept = open_state(state, read_only=True)
    assert len(kept.get("found")) == 2
    assert kept.history[-1]["status"] == "cancelled"
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_an_end_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with raw(tmp_path) as server:
        send(server, HELLO)
        answer(server, 0)
        server.send_signal(number)
        assert server.wait(20) == 0
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def malformed(count: int) -> Iterator[bytes]:
    """Make messages that are none, or that ask for what is none: never a valid call."""
    chance = random.Random(7)
    good = json.dumps(call(5, "check", language="gasl", text="FIND nodes AS x")).encode()
    odd: list[Any] = [None, True, -1, 1e308, "", "x" * 50, [], {}, [[]], {"a": {"b": []}}, "\ud800"]
    methods = ["tools/call", "tools/list", "resources/read", "prompts/get", "initialize", "ping", "notifications/cancelled",
               "notifications/progress", "completion/complete", "logging/setLevel", "nothing/at-all", ""]  # fmt: skip
    for number in range(count):
        kind = number % 6
        if kind == 0:
            yield good[: chance.randrange(1, len(good) - 1)]
        elif kind == 1:
            yield (
                bytes(chance.choices(range(1, 256), k=chance.randrange(1, 80)))
                .replace(b"\n", b" ")
                .replace(b"\r", b" ")
            )
        elif kind == 2:
            yield json.dumps(chance.choice(odd)).encode()
        elif kind == 3:
            message = {
                "jsonrpc": "2.0",
                "id": 10_000 + number,
                "method": chance.choice(methods),
                "params": chance.choice(odd),
            }
            for key in chance.sample(sorted(message), chance.randrange(2)):
                message[key] = chance.choice(odd)
            yield json.dumps(message).encode()
        elif kind == 4:
            params = {"name": chance.choice(["check", "page", "execute", "none", 3]), "arguments": chance.choice(odd)}
            yield json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": chance.choice([10_000 + number, "s", None]),
                    "method": "tools/call",
                    "params": params,
                }
            ).encode()
        else:
            yield b"[" * chance.randrange(1, 2_000)


def _talk(folder: Path, count: int) -> None:
    import threading

    with raw(folder, "--graph", GRAPH) as server:
        send(server, HELLO)
        answer(server, 0)
        send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert server.stdin is not None
        stdin = server.stdin

        def write() -> None:
            for line in malformed(count):
                stdin.write(line + b"\n")
            stdin.write(json.dumps(call(7, "check", language="gasl", text="FIND nodes AS x")).encode() + b"\n")
            stdin.flush()

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        result = answer(server, 7)
        writer.join(10)
        assert result["result"]["structuredContent"]["ok"] is True
    said = (folder / "stderr").read_text(errors="replace")
    assert "Traceback" not in said and len(said) < 2_000


@pytest.mark.slow
def test_ten_thousand_malformed_messages_are_survived(tmp_path: Path) -> None:
    began = time.monotonic()
    _talk(tmp_path, 10_000)
    assert time.monotonic() - began < 120


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (["--graph", "nx:nothing"], "nothing", 1),
        (["--graph", "missing.graphml"], "missing.graphml", 1),
        (["--llm", "gpt-4o"], "did you mean openai:gpt-4o", 2),
        (["--llm", "local", "--no-model"], "--llm and --no-model contradict", 2),
        (
            ["--http", "0", "--host", "0.0.0.0", "--no-model"],
            "allows other machines to connect, but no API key exists",
            2,
        ),
        (["--http", "70000"], "--http: must be at most 65535", 2),
    ],
)
def test_what_can_not_be_served_is_told_before_it_begins(
    tmp_path: Path, options: list[str], message: str, code: int
) -> None:
    from support.command import call as command_line

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KNOTWORK_HOME", str(tmp_path))
        told = command_line("mcp", *options)
    assert told.code == code, told.err
    assert message in told.err and "Traceback" not in told.err and told.out == ""
