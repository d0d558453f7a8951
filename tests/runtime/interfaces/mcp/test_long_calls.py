"""Long work: it tells its progress, it is cancelled in order, it has its time, and two clients don't get into each other's way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.interfaces.mcp.server import create_server
from knotwork.runtime.interfaces.mcp.workspace import Limits
from mcp.client.client import Client
from support.agents import connected, opened, told, until
from support.command import cassette
from support.scripted import Scripted

SCRIPT = '(a)=EACH({(input)}, LLM("say {(item)}"))\n(final)=EXPR("len(a)", a={(a)})'
PLAN = {
    "plan_id": "p",
    "why": "w",
    "commands": [
        "FIND nodes WHERE degree > 20 AS hubs",
        "DECLARE hubs AS LIST",
        "UPDATE hubs WITH hubs",
        "CLASSIFY hubs BY 'mood' INTO ('good', 'bad') AS moods",
    ],
}


@pytest.mark.slow
def test_progress_grows_and_says_what_is_done() -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def work() -> None:
        async with connected(Scripted("x", delay=0.05)) as client:
            await client.call_tool("run_lwt", {"script": SCRIPT, "input": list("abcdefghij")}, progress_callback=hear)

    asyncio.run(work())
    numbers = [progress for progress, _, _ in heard]
    assert numbers == sorted(set(numbers)) and len(numbers) >= 2
    assert heard[-1] == (2.0, 2.0, "step (final) done")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cancelled_plan_ends_in_order_and_keeps_what_was_committed(mode: str) -> None:
    model = Scripted("good", delay=60)

    async def work() -> Any:
        async with connected(model, mode=mode) as client:
            call = asyncio.create_task(client.call_tool("run_plan", {"plan": PLAN}))
            await until(lambda: model.now)
            call.cancel()
            await asyncio.wait([call])
            await until(lambda: not model.now)
            state = await told(client, "state_show")  # the server lives, and the turn is free
            state["history"] = (await told(client, "state_show", history=True, limit=1))["history"]
            return state, await told(client, "execute", program="FIND nodes LIMIT 1 AS one")

    state, after = asyncio.run(work())
    assert state["keys"][0]["size"] == 2, "what was committed stays"
    assert state["history"][-1]["status"] == "cancelled"
    assert after["status"] == "success"


@pytest.mark.slow
def test_work_that_takes_too_long_is_cut_off_and_says_so() -> None:
    async def work() -> Any:
        async with connected(Scripted("good", delay=60), limits=Limits(seconds=0.3)) as client:
            return await told(client, "run_plan", plan=PLAN), await told(client, "run_lwt", script=SCRIPT, input=["a"])

    plan, script = asyncio.run(work())
    assert plan["status"] == "cancelled" and plan["commands"][-1]["message"] == "timed out after 0.3 s (limit per call)"
    assert script["status"] == "cancelled" and script["warnings"] == ["timed out after 0.3 s (limit per call)"]


@pytest.mark.slow
def test_two_clients_at_once_have_their_own_variables_and_one_state() -> None:
    async def work() -> Any:
        async with opened(Scripted("good", delay=0.05)) as workspace:
            server = create_server(workspace, "0")
            async with Client(server) as ada, Client(server) as bob:

                async def go(client: Client, name: str, least: int) -> Any:
                    plan = {
                        "plan_id": name,
                        "why": "w",
                        "commands": [
                            f"FIND nodes WHERE degree > {least} AS some",
                            "CLASSIFY some BY 'mood' INTO ('good', 'bad') AS moods",
                            f"DECLARE {name} AS LIST",
                            f"UPDATE {name} WITH some",
                        ],
                    }
                    ran = await told(client, "run_plan", plan=plan, session=name)
                    return ran, await told(client, "execute", program="COUNT some AS n", session=name)

                both = await asyncio.gather(go(ada, "ada", 20), go(bob, "bob", 15))
                return both, await told(ada, "state_show"), await told(ada, "state_show", history=True)

    ((ada, ada_n), (bob, bob_n)), state, whole = asyncio.run(work())
    assert ada["status"] == bob["status"] == "success"
    assert (ada_n["value"]["value"], bob_n["value"]["value"]) == (2, 5)
    assert {key["key"]: key["size"] for key in state["keys"]} == {"ada": 2, "bob": 5}
    steps = [entry["step"] for entry in reversed(whole["history"])]
    assert len(steps) == 10 and steps == list(range(1, len(steps) + 1)), "no number twice"


@pytest.mark.slow
def test_many_calls_at_once_are_all_answered_and_go_side_by_side() -> None:
    model = Scripted("x", delay=0.3)
    most = 0

    async def work() -> Any:
        async with connected(model, limits=Limits(runs=16)) as client:
            calls = [
                asyncio.create_task(
                    told(client, "run_lwt", script=f"""(a)=LLM("x")\n(final)=EXPR("'{number}' + a", a={{(a)}})""")
                )
                for number in range(40)
            ]

            async def watch() -> None:
                nonlocal most
                while not all(call.done() for call in calls):
                    most = max(most, model.now)
                    await asyncio.sleep(0.01)

            await watch()
            return [(await each)["output"]["value"] for each in calls]

    assert asyncio.run(work()) == [f"{number}x" for number in range(40)]
    assert 4 <= most <= 16, "side by side, and never more than there are places"


@pytest.mark.slow
def test_the_budget_holds_over_all_calls_and_is_told(tmp_path: Path) -> None:
    spec = cassette(tmp_path / "answers.jsonl", {"": "good"})

    async def work() -> Any:
        async with connected(spec=spec, limits=Limits(max_calls=3)) as client:
            first = await told(client, "run_lwt", script=SCRIPT, input=["a", "b"])
            second = await told(client, "run_plan", plan=PLAN)
            return first, second, await told(client, "run_lwt", script=SCRIPT, input=["c"])

    first, second, third = asyncio.run(work())
    assert first["status"] == "complete" and first["budget"] | {"tokens": 0} == {
        "calls": 2, "tokens": 0, "cost": 0.0, "max_calls": 3, "max_tokens": None, "max_cost": None
    }  # fmt: skip
    assert second["status"] == "partial" and second["budget"]["calls"] == 3
    assert third["status"] == "failed" and "budget of 3 calls is used up" in third["steps"][0]["reason"]


@pytest.mark.slow
def test_without_a_model_whoever_asks_one_is_told() -> None:
    async def work() -> Any:
        async with connected() as client:
            return await told(client, "run_lwt", script='(final)=LLM("x")'), await told(client, "run_plan", plan=PLAN)

    script, plan = asyncio.run(work())
    assert script["steps"][0]["reason"].startswith("this server has no model")
    assert plan["commands"][-1]["status"] == "error" and "model" in plan["commands"][-1]["message"]
