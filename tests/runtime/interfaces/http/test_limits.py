"""Limits: requests a minute, runs at once, bodies, what a run may take. Each is a problem document, none is a 500."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from knotwork.adapters.llm import BudgetExceeded
from knotwork.adapters.llm.budget import Price
from knotwork.runtime.api.server_runs import Model, RunLimits, ServedModels
from knotwork.runtime.interfaces.http.access import LOCAL, Admission, Owner, add_key
from knotwork.runtime.interfaces.http.problems import Problem
from knotwork.runtime.interfaces.http.server import Limits
from support.command import silent_server
from support.model_server import ModelServer
from support.web import application, settings_in

SCRIPT = {"script": '(final)=CONST("x")'}
JSON = {"Content-Type": "application/json"}


def post(tmp_path: Path, content: Any, headers: dict[str, str] | None = None, **limits: Any) -> Any:
    async def asking() -> Any:
        settings = settings_in(tmp_path, limits=Limits(**limits))
        async with application(settings) as client:
            return await client.post("/scripts/run", content=content, headers=JSON if headers is None else headers)

    return asyncio.run(asking())


def kind(answer: Any) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    return str(told["type"].removeprefix("urn:knotwork:problem:"))


async def pieces(size: int, of: int = 1000) -> AsyncIterator[bytes]:
    for _ in range(size // of):
        yield b" " * of


def test_a_body_may_be_so_large_and_no_larger(tmp_path: Path) -> None:
    fits = json.dumps(SCRIPT).encode()
    assert post(tmp_path, fits, body_bytes=len(fits)).status_code == 200
    answer = post(tmp_path, fits, body_bytes=len(fits) - 1)
    assert (answer.status_code, kind(answer)) == (413, "too-large")
    assert answer.headers["connection"] == "close"


def test_a_body_without_a_length_is_counted_as_it_comes(tmp_path: Path) -> None:
    answer = post(tmp_path, pieces(50_000), body_bytes=10_000)
    assert (answer.status_code, kind(answer)) == (413, "too-large")


@pytest.mark.parametrize("said", ["99999999999999999999999999", "1000000000"])
def test_a_body_that_says_it_is_huge_is_not_waited_for(tmp_path: Path, said: str) -> None:
    answer = post(tmp_path, b"{}", {**JSON, "Content-Length": said})
    assert (answer.status_code, kind(answer)) == (413, "too-large")


@pytest.mark.slow
def test_a_body_that_trickles_is_given_up(tmp_path: Path) -> None:
    async def slow() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.02)

    async def asking() -> Any:
        """Ask the application itself: the client's transport would wait for the whole body first."""
        settings = settings_in(tmp_path, limits=Limits(body_seconds=0.1))
        async with application(settings) as client:
            sent: list[Any] = []
            stream = slow()

            async def receive() -> Any:
                return {"type": "http.request", "body": await anext(stream), "more_body": True}

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {
                "type": "http", "method": "POST", "path": "/scripts/run", "raw_path": b"/scripts/run", "query_string": b"",
                "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")], "http_version": "1.1",
                "scheme": "http", "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "root_path": "",
            }  # fmt: skip
            await client.app(scope, receive, send)
            await stream.aclose()
            return sent

    start, body = asyncio.run(asking())[:2]
    assert start["status"] == 408
    assert json.loads(body["body"])["type"] == "urn:knotwork:problem:too-slow"


@pytest.mark.parametrize(
    "header",
    [
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonx",
        "application/json; charset=utf-16",
    ],
)  # fmt: skip
def test_a_body_is_sent_as_json(tmp_path: Path, header: str) -> None:
    answer = post(tmp_path, json.dumps(SCRIPT), {"Content-Type": header} if header else {})
    assert (answer.status_code, kind(answer)) == (415, "not-json")


@pytest.mark.parametrize(
    "header", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_json_is_json_however_it_is_said(tmp_path: Path, header: str) -> None:
    assert post(tmp_path, json.dumps(SCRIPT), {"Content-Type": header}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        "{", "nul", '{"script": "x", "script": "y"}', '{"script": "x", "input": NaN}', '{"input": {"a": {"b": 1, "b": 2}}}',
        '{"input": Infinity}', '{"script": "\\ud800"}', '{"input": ' + "[" * 5000 + "]" * 5000 + "}", "[" * 40_000,
        b'{"script": "\xff"}', "{}{}", "\ufeff{}", '{"input": ' + "9" * 10_000 + "}", '{"input": 1e400}',
        '{"input": [-1' + "0" * 400 + ".0]}",
    ],
)  # fmt: skip
def test_faulty_json_is_told_as_such(tmp_path: Path, body: Any) -> None:
    answer = post(tmp_path, body)
    assert (answer.status_code, kind(answer)) == (400, "faulty-json")
    assert len(answer.text) < 1000
    assert "set_int" not in answer.text  # Python's own advice is for programs


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "identity, gzip"])
def test_a_body_is_not_compressed(tmp_path: Path, coding: str) -> None:
    answer = post(tmp_path, json.dumps(SCRIPT), JSON | {"Content-Encoding": coding})
    assert (answer.status_code, kind(answer)) == (415, "not-json")
    assert post(tmp_path, json.dumps(SCRIPT), JSON | {"Content-Encoding": "identity"}).status_code == 200


def test_an_empty_body_is_no_request(tmp_path: Path) -> None:
    answer = post(tmp_path, b"")
    assert (answer.status_code, kind(answer)) == (422, "invalid-request")


def test_a_key_asks_so_often_a_minute(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, limits=Limits(rate=5))
    keys = [add_key(settings.keys, name) for name in ("ada", "bob")]

    async def asking() -> list[Any]:
        async with application(settings) as client:

            async def about(key: str) -> Any:
                return await client.get("/lab/about", headers={"Authorization": f"Bearer {key}"})

            answers = [await about(keys[0]) for _ in range(7)]
            health = await client.get("/healthz", headers={"Authorization": f"Bearer {keys[0]}"})
            return [*answers, await about(keys[1]), health]

    answers = asyncio.run(asking())
    assert [answer.status_code for answer in answers] == [200] * 5 + [429, 429, 200, 200]
    assert kind(answers[5]) == "too-many-requests"
    assert answers[5].headers["retry-after"] == "12"


async def test_a_key_has_so_many_runs_and_the_server_too() -> None:
    gate = Admission(Limits(runs=3, runs_per_key=2))
    ada, bob, cleo = (Owner(name, name) for name in ("1", "2", "3"))
    first = gate.take(ada)
    gate.take(ada)
    with pytest.raises(Problem) as refused:
        gate.take(ada)
    assert (refused.value.status, refused.value.name) == (429, "too-many-runs")
    assert refused.value.headers["Retry-After"]
    gate.take(bob)
    with pytest.raises(Problem) as refused:
        gate.take(cleo)
    assert (refused.value.status, refused.value.name) == (503, "busy")
    first.leave()
    first.leave()
    with gate.take(ada):
        assert gate.runs == 3
    assert gate.runs == 2
    assert not await gate.emptied(0.01)


async def test_without_keys_only_the_runs_of_all_count() -> None:
    gate = Admission(Limits(runs=3, runs_per_key=1, rate=1))
    for _ in range(3):
        await gate.admit(LOCAL)
        gate.take(LOCAL)
    with pytest.raises(Problem, match="the maximum of 3 active runs is reached"):
        gate.take(LOCAL)


async def test_a_closed_gate_takes_nobody_and_cancels_who_is_in() -> None:
    gate = Admission(Limits())
    place = gate.take(LOCAL)
    gate.close()
    with pytest.raises(Problem) as refused:
        gate.take(LOCAL)
    assert (refused.value.status, refused.value.name) == (503, "shutting-down")
    assert not place.cancel.is_set()
    gate.cancel_all()
    assert place.cancel.is_set()
    asyncio.get_running_loop().call_later(0.01, place.leave)
    assert await gate.emptied(5)


def test_a_run_may_make_so_many_calls(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, run=RunLimits(max_calls=2))
    script = '(a)=LLM("1")\n(b)=LLM("2 {(a)}")\n(c)=LLM("3 {(b)}")'

    async def asking() -> list[Any]:
        async with application(settings) as client:
            return [await client.post("/scripts/run", json={"script": script}) for _ in range(2)]

    for answer in asyncio.run(asking()):  # each run has a budget of its own
        assert (answer.status_code, kind(answer)) == (502, "over-budget")
        run = answer.json()["run"]
        assert [run["steps"][step]["status"] for step in "abc"] == ["done", "done", "failed"]


@pytest.mark.slow
async def test_what_the_cache_answers_costs_nothing_and_what_is_sent_again_counts(tmp_path: Path) -> None:
    async with ModelServer(faults=[None, "empty", None]) as server:
        models = (Model("m", f"{server.url}#m"),)
        served = ServedModels.open(models, RunLimits(max_calls=2), cache=tmp_path / "cache.sqlite")
        first, second, third = (served.for_run() for _ in range(3))
        await first.client.generate("one")
        assert (first.ledger.calls, second.ledger.calls) == (1, 0)
        assert (await second.client.generate("one")).cached
        assert second.ledger.calls == 0
        await second.client.generate("two")  # the first answer to it is empty
        assert second.ledger.calls == 2
        with pytest.raises(BudgetExceeded):
            await second.named["m"].generate("three")
        await third.client.generate("three")
        assert third.ledger.calls == 1
        await first.client.aclose()  # a run's own: the others' go on
        await third.client.generate("four")
        await served.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["over its budget", "cancelled"])
async def test_who_shares_a_call_does_not_fail_for_the_others_sake(tmp_path: Path, gone: str) -> None:
    """Two runs ask the same at once: one request is sent, for the first. When the first may not go on the second asks itself."""

    faults = ["500", "500"] if gone == "over its budget" else []
    async with ModelServer(faults=[*faults, None], delay=0.3) as server:
        models = (Model("m", f"{server.url}#m"),)
        served = ServedModels.open(models, RunLimits(max_calls=2), cache=tmp_path / "cache.sqlite")
        first, second = (served.for_run() for _ in range(2))
        leading = asyncio.create_task(first.client.generate("the same"))
        while not server.requests:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
        following = asyncio.create_task(second.client.generate("the same"))
        await asyncio.sleep(0.05)
        assert len(server.requests) == 1
        if gone == "cancelled":
            leading.cancel()
        with pytest.raises(asyncio.CancelledError if gone == "cancelled" else BudgetExceeded):
            await leading
        assert (await following).text
        assert second.ledger.calls == (0 if gone == "cancelled" else 1)
        assert first.ledger.calls == (1 if gone == "cancelled" else 2)
        await served.aclose()


def test_a_limit_on_cost_needs_a_price_at_the_start(tmp_path: Path) -> None:
    from knotwork.adapters.llm import NotConfigured

    models = (Model("m", "http://127.0.0.1:9/v1#m"),)
    with pytest.raises(NotConfigured, match="price"):
        ServedModels.open(models, RunLimits(max_cost=1.0))
    served = ServedModels.open(models, RunLimits(max_cost=1.0, price=Price(1, 2)))
    assert served.for_run().ledger.max_cost == 1.0
    assert served.for_run().ledger is not served.for_run().ledger
    asyncio.run(served.aclose())


@pytest.mark.slow
def test_a_run_may_take_so_long(tmp_path: Path) -> None:
    with silent_server() as (spec, _):
        settings = evolve(settings_in(tmp_path, run=RunLimits(seconds=0.2)), models=(Model("m", spec),))

        async def asking() -> Any:
            async with application(settings) as client:
                answer = await client.post("/scripts/run", json={"script": '(a)=LLM("x")'})
                assert client.app.state.parts.gate.runs == 0
                return answer

        answer = asyncio.run(asking())
    assert (answer.status_code, kind(answer)) == (502, "out-of-time")
    assert answer.json()["run"]["status"] == "cancelled"


@pytest.mark.slow
def test_a_short_prompt_does_not_become_gigabytes(tmp_path: Path) -> None:
    script = '(a)=LLM("' + "{(input)}" * 4000 + '")'

    async def asking() -> Any:
        async with application(settings_in(tmp_path)) as client:
            return await client.post("/scripts/run", json={"script": script, "input": "x" * 900_000})

    answer = asyncio.run(asking())
    assert answer.status_code == 502
    assert "3,600,000,000 characters" in answer.json()["detail"]


@pytest.mark.slow
def test_a_thousand_large_outputs_are_not_held(tmp_path: Path) -> None:
    steps = "".join(f"(a{number})=EXPR(\"x + '{number}'\", x={{(input)}})\n" for number in range(500))
    script = steps + '(final)=LLM("' + "".join(f"{{(a{number})}}[0:1]" for number in range(500)) + '")'

    async def asking() -> Any:
        async with application(settings_in(tmp_path)) as client:
            return await client.post("/scripts/run", json={"script": script, "input": "x" * 500_000})

    answer = asyncio.run(asking())
    assert (answer.status_code, kind(answer)) == (502, "too-much-output")
    assert len(answer.content) < 1000
