"""``knotwork mcp --http``: the official client, and the same door as ``knotwork serve``."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from knotwork.runtime.interfaces.http.access import Keys, add_key
from knotwork.runtime.interfaces.http.server import Limits
from knotwork.runtime.interfaces.mcp.transports import PATH, Door, create_app
from knotwork.runtime.models.factory import open_state, verify_state
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from support.agents import GRAPH, Http, http, opened, told
from support.agents import until as happened
from support.scripted import Scripted
from support.served import served, until

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}  # fmt: skip


@asynccontextmanager
async def serving(folder: Path, model: Any = None, limits: Limits | None = None) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of the application in this process."""
    door = Door("127.0.0.1", 0, Keys(folder / "keys.json"), limits=limits or Limits(rate=100_000.0))
    async with opened(model) as workspace:
        app = create_app(workspace, "0", door)
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                yield client


def post(folder: Path, body: Any = HELLO, headers: dict[str, str] | None = None, **settings: Any) -> httpx2.Response:
    async def asking() -> httpx2.Response:
        async with serving(folder, **settings) as client:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return await client.post(PATH, content=content, headers={**HEADERS, **(headers or {})})

    return asyncio.run(asking())


def test_whoever_is_on_this_machine_is_served_without_a_key(tmp_path: Path) -> None:
    answer = post(tmp_path)
    assert answer.status_code == 200 and "knotwork" in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        ({"Host": "evil.example"}, 403, "foreign-host"),
        ({"X-Forwarded-For": "203.0.113.9"}, 403, "forwarded-request"),
        ({"Origin": "https://evil.example"}, 403, "foreign-origin"),
        ({"Origin": "null"}, 403, "foreign-origin"),
        ({"Content-Type": "text/plain"}, 415, "not-json"),
    ],
)
def test_a_page_of_another_site_is_not_let_in(tmp_path: Path, headers: dict[str, str], status: int, kind: str) -> None:
    answer = post(tmp_path, headers=headers)
    assert answer.status_code == status and answer.json()["type"].endswith(kind)


def test_where_there_are_keys_one_is_needed(tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.json", "ada")
    for shown in ("", "Bearer wrong"):
        answer = post(tmp_path, headers={"Authorization": shown} if shown else {})
        assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer")
    assert post(tmp_path, headers={"Authorization": f"Bearer {key}", "Host": "any.example"}).status_code == 200


def test_what_is_too_large_or_too_often_is_refused(tmp_path: Path) -> None:
    assert post(tmp_path, body=b"[" + b" " * (2 << 20) + b"]").status_code == 413
    add_key(tmp_path / "keys.json", "ada")

    async def often() -> list[int]:
        key = add_key(tmp_path / "keys.json", "bob")
        async with serving(tmp_path, limits=Limits(rate=3.0)) as client:
            headers = {**HEADERS, "Authorization": f"Bearer {key}"}
            return [(await client.post(PATH, json=HELLO, headers=headers)).status_code for _ in range(5)]

    assert asyncio.run(often())[-1] == 429


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([LIST, LIST], "batches are not supported; send each message separately"),
        ({**LIST, "id": 1.5}, "id must be a string or a whole number"),
        ({**LIST, "params": []}, "params must be an object"),
    ],
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_what_is_no_message_is_told_in_our_words(tmp_path: Path, version: str, body: Any, said: str) -> None:
    answer = post(tmp_path, body, {"MCP-Protocol-Version": version})
    assert answer.status_code == 400 and answer.json()["error"] == {"code": -32600, "message": said}
    assert "pydantic" not in answer.text


@pytest.mark.slow
def test_malformed_requests_are_survived(tmp_path: Path) -> None:
    chance = random.Random(3)
    odd: list[Any] = [None, 1, "", [], {}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": [], "method": 3}, [LIST, LIST]]

    async def asking() -> tuple[set[int], int]:
        seen = set()
        async with serving(tmp_path) as client:
            for number in range(200):
                body = json.dumps(chance.choice(odd)).encode()
                if number % 3 == 0:
                    body = bytes(chance.choices(range(256), k=chance.randrange(1, 60)))
                seen.add((await client.post(PATH, content=body, headers=HEADERS)).status_code)
            return seen, (await client.post(PATH, json=HELLO, headers=HEADERS)).status_code

    seen, after = asyncio.run(asking())
    assert seen <= {202, 400, 404, 406, 413, 415, 422} and after == 200


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_two_official_clients_at_once_on_a_real_server(tmp_path: Path, mode: str) -> None:
    async def go(url: str, name: str, least: int) -> Any:
        async with Client(url, mode=mode) as client:
            program = f"FIND nodes WHERE degree > {least} AS some\nDECLARE {name} AS LIST\nUPDATE {name} WITH some"
            ran = await told(client, "execute", program=program, session=name)
            return ran["status"], (await told(client, "execute", program="COUNT some AS n", session=name))["value"][
                "value"
            ]

    async def both(url: str) -> Any:
        found = await asyncio.gather(go(url, "ada", 20), go(url, "bob", 15))
        async with Client(url, mode=mode) as client:
            return found, await told(client, "state_show")

    with http(tmp_path, "--graph", GRAPH, "--no-model") as server:
        found, state = asyncio.run(both(server.url))
    assert found == [("success", 2), ("success", 5)]
    assert {key["key"] for key in state["keys"]} == {"ada", "bob"}
    assert server.process.returncode == 0 and not any("Traceback" in line for line in server.said)


@pytest.mark.slow
def test_a_session_and_a_page_belong_to_their_key(tmp_path: Path) -> None:
    (tmp_path / "knotwork").mkdir()
    keys = [add_key(tmp_path / "knotwork" / "keys.json", name) for name in ("ada", "bob")]

    @asynccontextmanager
    async def keyed(url: str, key: str) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers) as transport,
            Client(streamable_http_client(url, http_client=transport)) as client,
        ):
            yield client

    async def both(url: str) -> Any:
        async with keyed(url, keys[0]) as ada, keyed(url, keys[1]) as bob:
            ran = await told(ada, "execute", program="FIND nodes AS some", limit=1)
            return await told(bob, "execute", program="COUNT some AS n"), await told(
                bob, "page", **ran["value"]["next"]
            )

    with http(tmp_path, "--graph", GRAPH, "--no-model", "--keys", str(tmp_path / "knotwork" / "keys.json")) as server:
        counted, paged = asyncio.run(both(server.url))
    assert counted["status"] == "refused" and paged["error"]["kind"] == "not-found"


@pytest.mark.slow
def test_a_client_that_goes_away_ends_its_work_and_no_other(tmp_path: Path) -> None:
    script = {"script": '(final)=LLM("slow")'}

    async def go(url: str, model: Any) -> Any:
        async with Client(url) as other:
            client = Client(url)
            async with client:
                call = asyncio.create_task(client.call_tool("run_lwt", script))
                await asyncio.to_thread(until, model.reached(1))
                call.cancel()
                await asyncio.wait([call])
            async with asyncio.timeout(20):  # there is one place: it is free again
                return await told(other, "execute", program="FIND nodes LIMIT 1 AS one")

    with served(tmp_path, "--delay", "60") as model:
        options = ("--graph", GRAPH, "--llm", model.spec, "--no-cache", "--max-runs", "1")
        with http(tmp_path, *options) as server:
            assert asyncio.run(go(server.url, model))["status"] == "success"


@pytest.mark.slow
def test_a_signal_ends_what_is_under_way_in_order(tmp_path: Path) -> None:
    state = tmp_path / "state"
    program = "FIND nodes WHERE degree > 20 AS x\nDECLARE found AS LIST\nUPDATE found WITH x\nCLASSIFY x BY 'm' INTO ('a', 'b') AS y"

    async def go(server: Http, model: Any) -> None:
        with contextlib.suppress(Exception):
            async with Client(server.url) as client:
                call = asyncio.create_task(client.call_tool("execute", {"program": program}))
                await asyncio.to_thread(until, model.reached(1))
                server.process.terminate()
                await asyncio.to_thread(server.process.wait, 30)
                call.cancel()
                await asyncio.wait([call])

    with served(tmp_path, "--delay", "60") as model:
        options = ("--graph", GRAPH, "--state", str(state), "--llm", model.spec, "--no-cache", "--log")
        with http(tmp_path, *options) as server:
            asyncio.run(go(server, model))
    assert server.process.returncode == 0 and not any("Traceback" in line for line in server.said)
    assert any(line.startswith("POST /mcp ") for line in server.said)
    assert verify_state(state).ok and len(open_state(state, read_only=True).get("found")) == 2


@pytest.mark.slow
def test_slow_work_holds_up_nobody(tmp_path: Path) -> None:
    async def go() -> Any:
        model = Scripted("x", delay=30)
        async with opened(model) as workspace:
            from knotwork.runtime.interfaces.mcp.server import create_server

            server = create_server(workspace, "0")
            async with Client(server) as ada, Client(server) as bob:
                slow = asyncio.create_task(ada.call_tool("run_lwt", {"script": '(final)=LLM("x")'}))
                await happened(lambda: model.now)
                quick = await told(bob, "run_plan", plan={"plan_id": "p", "why": "w", "commands": ["FIND nodes AS x"]})
                under_way = model.now
                slow.cancel()
                await asyncio.wait([slow])
                return quick, under_way

    quick, under_way = asyncio.run(go())
    assert quick["status"] == "success" and under_way == 1, "the slow one was under way all the time"
