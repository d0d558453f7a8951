"""What one client sends holds up no other: while it is read, checked and computed the server answers everybody else."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from knotwork.runtime.api.server_runs import RunLimits
from knotwork.runtime.interfaces.web.answer_responses import ALL_CHECKS, CHECK
from support.web import application, settings_in

JSON = {"Content-Type": "application/json"}
CONST = '(a)=CONST("x")'
DEEP = "[" * 150 + "]" * 150
LOOKS = 2
"""How often a wait is looked at before it counts: see where it does."""
HEAVY = "len([1 for i in x for j in x])"


def chain(steps: int) -> dict[str, Any]:
    """Return a script without a call whose every step takes 400,000 steps of evaluation."""
    more = (f'(a{n})=EXPR("{HEAVY} + y", x={{(input)}}, y={{(a{n - 1})}})' for n in range(1, steps))
    return {"script": "\n".join((f'(a0)=EXPR("{HEAVY}", x={{(input)}})', *more)), "input": list(range(400))}


@contextlib.asynccontextmanager
async def beating(client: httpx2.AsyncClient) -> AsyncIterator[list[float]]:
    """Ask whether the server is there again and again, and keep how long each answer was waited for."""
    waited: list[float] = []

    async def beat() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.002)  # counted too: whatever holds the loop holds this
            assert (await client.get("/healthz")).status_code == 200
            waited.append(time.perf_counter() - began)

    beats = asyncio.create_task(beat())
    try:
        yield waited
    finally:
        beats.cancel()
        await asyncio.wait([beats])
        if not beats.cancelled():
            beats.result()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/scripts/run", '{"script":"","input":[' + ",".join([DEEP] * 3000) + "]}", 413, id="brackets"),
        pytest.param("/scripts/run", '{"script":"","input":[' + ",".join([DEEP] * 300) + "]}", 422, id="nested lists"),
        pytest.param("/scripts/run", json.dumps({f"k{n}": n for n in range(60_000)}), 422, id="unknown names"),
        pytest.param("/scripts/run", json.dumps({"script": (CONST + "\n") * 3000}), 422, id="steps"),
        pytest.param("/scripts/run", json.dumps({"script": CONST, "input": ["x" * 9] * 70_000}), 200, id="a large input"),
        pytest.param(
            "/lab/generate-answer",
            json.dumps({
                "instruct": "x", "resp_format": "", "eval_crit": "", "iter_max": 1,
                "checks": ["regex:" + "|".join([r"\pL\pN"] * 1400)] * (ALL_CHECKS // CHECK),
            }),
            502, id="patterns",
        ),
    ],
)  # fmt: skip
def test_what_comes_in_is_read_beside_the_others(tmp_path: Path, path: str, body: str, status: int) -> None:
    async def asking() -> bool:
        async with application(settings_in(tmp_path)) as client, beating(client) as waited:
            began = time.perf_counter()
            answer = await client.post(path, content=body, headers=JSON)
            took = time.perf_counter() - began
            assert answer.status_code == status, answer.text[:300]
            await asyncio.sleep(0.05)
            while not waited:  # noqa: ASYNC110 - a slow machine has not answered once
                await asyncio.sleep(0.01)
            return max(waited) < max(1.0, took / 2)

    # a fraction of a second where the machine is quiet; where it is not, the request takes as much longer, and all of this process
    # may have to wait for a turn, once: what the server itself is held up by comes every time
    assert any(asyncio.run(asking()) for _ in range(LOOKS))


@pytest.mark.slow
async def test_a_script_computes_beside_the_others(tmp_path: Path) -> None:
    async with application(settings_in(tmp_path)) as client, beating(client) as waited:
        began = time.perf_counter()
        answer = await client.post("/scripts/run", json=chain(4))
        assert answer.json()["value"] == 4 * 160_000
        assert max(waited) < (time.perf_counter() - began) / 2


@pytest.mark.slow
async def test_the_time_limit_holds_for_what_only_computes(tmp_path: Path) -> None:
    async with application(settings_in(tmp_path, run=RunLimits(seconds=0.05))) as client:
        began = time.perf_counter()
        answer = await client.post("/scripts/run", json=chain(300))
        assert (answer.status_code, answer.json()["type"]) == (502, "urn:knotwork:problem:out-of-time")
        assert time.perf_counter() - began < 5  # all of it would take far longer
        assert client.app.state.parts.gate.runs == 0


def test_checks_are_bounded_together(tmp_path: Path) -> None:
    async def asking() -> Any:
        async with application(settings_in(tmp_path)) as client:
            asked = {"instruct": "x", "resp_format": "", "eval_crit": "", "checks": ["contains:" + "x" * 9000] * 3}
            return (await client.post("/lab/generate-answer", json=asked)).json()

    told = asyncio.run(asking())
    assert told["errors"] == [
        {"pointer": "/checks", "message": "the checks are too long: at most 20,000 characters in total"}
    ]


def test_far_too_many_parameters_are_not_gone_through(tmp_path: Path) -> None:
    async def asking() -> Any:
        async with application(settings_in(tmp_path)) as client:
            return [
                (await client.post("/scripts/run", json={f"k{n}": n for n in range(many)})).json() for many in (60, 101)
            ]

    few, many = asyncio.run(asking())
    assert len(few["errors"]) == 50 and few["detail"].endswith("and 58 more")
    assert many["detail"] == "it has 101 parameters; at most 100 are allowed" and "errors" not in many
