"""Over HTTP the sessions of a key are its own: no other key uses, ends or crowds them out."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from knotwork.runtime.interfaces.http.access import Keys, add_key
from knotwork.runtime.interfaces.http.server import Limits
from knotwork.runtime.interfaces.mcp.transports import PATH, Door, create_app
from support.agents import opened, until
from support.scripted import Scripted

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}  # fmt: skip


class Asking:
    """Asks as one key."""

    def __init__(self, client: httpx2.AsyncClient, key: str) -> None:
        self.client = client
        self.headers = {**HEADERS, "Authorization": f"Bearer {key}"} if key else HEADERS

    async def post(self, body: Any, session: str = "") -> httpx2.Response:
        more = {"Mcp-Session-Id": session} if session else {}
        return await self.client.post(PATH, content=json.dumps(body), headers={**self.headers, **more})

    async def begin(self) -> str:
        answer = await self.post(HELLO)
        assert answer.status_code == 200
        session = answer.headers["mcp-session-id"]
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        return str(session)

    async def end(self, session: str) -> int:
        return (await self.client.delete(PATH, headers={**self.headers, "Mcp-Session-Id": session})).status_code


@asynccontextmanager
async def two(folder: Path, model: Any = None) -> AsyncIterator[tuple[Asking, Asking]]:
    """Give two keys of one server."""
    keys = [add_key(folder / "keys.json", name) for name in ("ada", "bob")]
    door = Door("127.0.0.1", 0, Keys(folder / "keys.json"), limits=Limits(rate=100_000.0))
    async with opened(model) as workspace:
        app = create_app(workspace, "0", door)
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                yield Asking(client, keys[0]), Asking(client, keys[1])


def test_a_session_of_another_key_is_not_there(tmp_path: Path) -> None:
    async def work() -> Any:
        async with two(tmp_path) as (ada, bob):
            session = await ada.begin()
            foreign = (await bob.post(LIST, session)).status_code, await bob.end(session)
            return (
                foreign,
                (await ada.post(LIST, session)).status_code,
                await ada.end(session),
                await ada.post(LIST, session),
            )

    foreign, own, ended, after = asyncio.run(work())
    assert foreign == (404, 404) and own == 200 and ended == 200 and after.status_code == 404


@pytest.mark.slow
def test_no_other_key_cancels_a_call(tmp_path: Path) -> None:
    async def work() -> Any:
        model = Scripted("good", delay=0.6)
        async with two(tmp_path, model) as (ada, bob):
            session = await ada.begin()
            asked = {"name": "run_lwt", "arguments": {"script": '(final)=LLM("x")'}}
            call = asyncio.create_task(
                ada.post({"jsonrpc": "2.0", "id": 42, "method": "tools/call", "params": asked}, session)
            )
            await until(lambda: model.now)
            stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 42}}
            refused = [
                (await bob.post(stop, session)).status_code,
                (await bob.post(stop, await bob.begin())).status_code,
            ]
            return refused, (await call).text

    refused, text = asyncio.run(work())
    assert refused[0] == 404 and "complete" in text and "-32800" not in text


def test_a_key_that_has_all_its_sessions_keeps_nobody_out(tmp_path: Path) -> None:
    async def work() -> Any:
        async with two(tmp_path) as (ada, bob):
            sessions = [await ada.begin() for _ in range(16)]
            full = (await ada.post(HELLO)).status_code
            other = (await bob.post(HELLO)).status_code
            await ada.end(sessions[0])
            return full, other, (await ada.post(HELLO)).status_code

    assert asyncio.run(work()) == (503, 200, 200)
