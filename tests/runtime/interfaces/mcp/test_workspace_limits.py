"""What a client asks for is bounded: how long it computes, how much it sends, how much it is told, and nobody else waits for it."""

import asyncio
import json
import threading
import time
from typing import Any

import networkx as nx
import pytest
from knotwork.runtime.interfaces.mcp.server import TOOLS, call_tool
from knotwork.runtime.interfaces.mcp.workspace import LONGEST, Limits
from support.agents import connected, opened, told

MEASURE = "MEASURE graph USING betweenness AS b"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph on which betweenness takes many times longer than the tests wait."""
    path = tmp_path_factory.mktemp("graph") / "large.graphml"
    nx.write_graphml(nx.barabasi_albert_graph(8_000, 3, seed=1), path)
    return str(path)


@pytest.mark.slow
def test_the_time_limit_ends_a_computing_command_and_the_state_is_free(large: str) -> None:
    async def work() -> Any:
        async with connected(graph=large, limits=Limits(seconds=0.5)) as client:
            began = time.monotonic()
            ran = await told(client, "execute", program=MEASURE)
            return ran, time.monotonic() - began, await told(client, "execute", program="FIND nodes LIMIT 1 AS one")

    ran, seconds, after = asyncio.run(work())
    assert ran["status"] == "cancelled" and "timed out after 0.5 s" in ran["commands"][0]["message"]
    assert seconds < 6, "it would have taken half a minute"
    assert after["status"] == "success"


@pytest.mark.slow
def test_who_waits_for_the_state_longer_than_a_call_may_is_told() -> None:
    async def work() -> Any:
        async with opened(limits=Limits(seconds=0.2)) as workspace, workspace.turn:
            return await call_tool("execute", {"program": "FIND nodes AS x"}, workspace, "local", tell)

    error = asyncio.run(work()).structure["error"]
    assert error["kind"] == "busy" and "0.2 s" in error["message"]


async def tell(done: float, total: float | None, message: str) -> None:
    pass


@pytest.mark.parametrize(
    ("tool", "argument", "more"),
    [("check", "text", {"language": "gasl"}), ("execute", "program", {}), ("run_lwt", "script", {}), ("run_plan", "plan", {}),
     ("explain", "text", {"language": "lwt"}), ("seed_check", "seed", {})],
)  # fmt: skip
def test_a_text_has_a_most_of_characters_and_the_schema_says_so(tool: str, argument: str, more: dict[str, Any]) -> None:
    async def work() -> Any:
        async with connected() as client:
            return await told(client, tool, **{argument: "x" * (LONGEST + 1)}, **more)

    error = asyncio.run(work())["error"]
    assert error["kind"] == "arguments" and f"at most {LONGEST:,} characters" in error["message"]
    assert f'"maxLength": {LONGEST}' in json.dumps(TOOLS[tool].input_schema["properties"][argument])


@pytest.mark.slow
def test_a_long_check_holds_up_no_short_one_and_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    held, begun, running = threading.Event(), threading.Event(), []
    from knotwork.runtime.api.shared_workspace import ClientChecks

    read = ClientChecks.program

    def slow(checks: Any, source: Any, *rest: Any) -> Any:
        if len(source.text) > 5_000:
            running.append(1)
            begun.set()
            held.wait(20)
            running.pop()
        return read(checks, source, *rest)

    monkeypatch.setattr(ClientChecks, "program", slow)
    most = []

    async def work() -> Any:
        async with opened() as workspace:
            long = {"language": "gasl", "text": "FIND nodes AS x\n" * 400}
            many = [asyncio.create_task(call_tool("check", long, workspace, "local", tell)) for _ in range(6)]
            await asyncio.to_thread(begun.wait, 10)
            for each in many[3:]:
                each.cancel()  # clients that have gone
            short = await call_tool("check", {"language": "gasl", "text": "FIND nodes AS x"}, workspace, "local", tell)
            schema = await call_tool("schema", {}, workspace, "local", tell)
            most.append(len(running))
            held.set()
            return short, schema, await asyncio.gather(*many[:3])

    short, schema, rest = asyncio.run(work())
    assert short.structure["ok"] and schema.structure["nodes"] == 77 and most == [1]
    assert all(each.structure["ok"] for each in rest)


@pytest.mark.slow
def test_what_check_gives_back_is_bounded_and_paged() -> None:
    text = "FIND nodes WHERE degree > 3 AS x\n" * 2_500
    plan = {"plan_id": "p", "why": "w", "commands": [f"COUNT nothing_{number} AS n" for number in range(2_000)]}

    async def work() -> Any:
        async with connected() as client:
            long = await told(client, "check", language="gasl", text=text)
            faulty = await told(client, "check", language="plan", text=plan)
            rest = await told(client, "page", **faulty["text_page"]["next"])
            return long, faulty, rest

    long, faulty, rest = asyncio.run(work())
    assert "formatted" not in long and long["formatted_page"]["total"] > 20_000
    assert len(json.dumps(long)) < 60_000 and len(json.dumps(faulty)) < 60_000
    assert faulty["found"] >= 2_000 and "text" not in faulty
    assert rest["page"]["offset"] == 20_000


@pytest.mark.slow
def test_a_command_that_failed_is_listed_however_many_there_are() -> None:
    commands = [f"FIND nodes LIMIT 3 AS a{number}" for number in range(130)]
    plan = {"plan_id": "p", "why": "w", "commands": [*commands, "ASSERT LEN ${a1} > 5", "FIND nodes AS z"]}
    script = "\n".join(f"(c{number})=CONST({number})" for number in range(130)) + '\n(bad)=LLM("x")\n(final)=CONST(1)'

    async def work() -> Any:
        async with connected() as client:
            ran = await told(client, "run_plan", plan=plan)
            whole = await told(client, "page", **ran["all_commands"])
            return ran, whole, await told(client, "run_lwt", script=script, all_steps=True)

    ran, whole, steps = asyncio.run(work())
    assert ran["status"] == "error" and ran["commands"][-1]["status"] == "error" and ran["commands"][-1]["message"]
    assert ran["commands"][-1]["number"] == "131" and ran["more_commands"] == 131 - len(ran["commands"])
    assert whole["page"]["total"] == 131
    assert [each["id"] for each in steps["steps"] if each["status"] == "failed"] == ["bad"]
    assert steps["more_steps"] and steps["all_steps"]["handle"]


def test_a_run_of_no_command_is_no_success() -> None:
    async def work() -> Any:
        async with connected() as client:
            return [
                await told(client, "execute", program="# SHOW orgs"),
                await told(client, "run_plan", plan="FIND nodes AS x"),
            ]

    nothing, no_plan = asyncio.run(work())
    assert nothing["error"]["message"] == "the program has no commands"
    assert no_plan["error"]["message"] == "plan is not JSON" and "execute" in no_plan["error"]["hint"]
