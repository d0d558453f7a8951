"""The server's application on a loopback port in the test's own event loop, its model server beside it: quick, and all of it real HTTP."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from knotwork.runtime.api.server_runs import Model, RunLimits
from knotwork.runtime.interfaces.http.access import add_key
from knotwork.runtime.interfaces.http.server import Limits
from knotwork.runtime.interfaces.web.app import create_app
from knotwork.runtime.interfaces.web.live_runs import Runs
from knotwork.runtime.interfaces.web.web_models import ServerSettings

from support.answer_server import AnswerServer
from support.web import Event

__all__ = ["Lab", "asking", "lab", "streamed"]


def asking(instruct: str, **more: Any) -> dict[str, Any]:
    """Return a request."""
    return {"instruct": instruct, "resp_format": "One sentence.", "eval_crit": "It is right.", **more}


@dataclass
class Lab:
    """A server: its address, its runs, a client of the key "test", and the model server that it asks."""

    url: str
    runs: Runs
    client: httpx2.AsyncClient
    models: AnswerServer
    path: Path
    keys: dict[str, str] = field(default_factory=dict)

    async def answer(self, instruct: str, **more: Any) -> httpx2.Response:
        """Ask for an answer."""
        return await self.client.post("/lab/generate-answer", json=asking(instruct, **more))

    @contextlib.asynccontextmanager
    async def stream(self, instruct: str, **more: Any) -> "AsyncIterator[AsyncIterator[Event]]":
        """Ask for an answer and read its events."""
        path = "/lab/generate-answer/stream"
        async with self.client.stream("POST", path, json=asking(instruct, **more)) as response:
            assert response.status_code == 200, await response.aread()
            yield streamed(response)

    async def events(self, run: str, last: int | None = None, client: httpx2.AsyncClient | None = None) -> list[Event]:
        """Follow a run to its end."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        async with (client or self.client).stream("GET", f"/lab/runs/{run}/events", headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            return [event async for event in streamed(response)]

    async def begun(self, instruct: str, **more: Any) -> str:
        """Begin a run, go away as soon as it has an id, and return that."""
        async with self.stream(instruct, **more) as events:
            return (await anext(events)).data["run"]

    async def over(self, run: str) -> dict[str, Any]:
        """Wait until a run is over, and return it."""
        async with asyncio.timeout(60):
            await self.events(run)
        return (await self.client.get(f"/lab/runs/{run}")).json()

    def of(self, name: str) -> httpx2.AsyncClient:
        """Return a client of another key. Use it in ``async with``."""
        return _client(self.url, self.keys[name])


async def streamed(response: httpx2.Response) -> AsyncIterator[Event]:
    """Yield the events of a response that streams them; comments are left out."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            yield Event(fields["event"], json.loads(fields["data"]), fields["id"])
            fields = {}


@contextlib.asynccontextmanager
async def lab(
    folder: Path,
    *,
    keys: tuple[str, ...] = (),
    run: RunLimits | None = None,
    limits: Limits | None = None,
    others: tuple[str, ...] = (),
    plays: Sequence[dict[str, Any]] = (),
    **settings: Any,
) -> AsyncIterator[Lab]:
    """Start a server whose model is called "m".

    ``others``: names of the same model with another name at its server; ``plays``: the model server's.
    """
    made = {name: add_key(folder / "keys.json", name) for name in keys}
    async with AnswerServer(plays) as models:
        offered = (Model("m", f"{models.url}#first"), *(Model(name, f"{models.url}#{name}-there") for name in others))
        told = ServerSettings(
            offered, folder / "history.db", folder / "keys.json", limits=limits or Limits(), run=run or RunLimits(),
            cache=False, grace=0.0, **settings,
        )  # fmt: skip
        app = create_app(told)
        async with app.router.lifespan_context(app):
            config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", timeout_graceful_shutdown=1)
            config.load()
            server = uvicorn.Server(config)
            server.lifespan = config.lifespan_class(config)
            listening = socket.socket(
                proto=socket.IPPROTO_TCP
            )  # asyncio sets TCP_NODELAY only where the protocol is said
            listening.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            await server.startup([listening])  # without its loop, which ends a tenth of a second after it is told to
            try:
                async with _client(url, made[keys[0]] if keys else "") as client:
                    yield Lab(url, app.state.runs, client, models, folder / "history.db", made)
                await app.state.runs.drain(0.0)
            finally:
                await _shut(server, listening)


async def _shut(server: uvicorn.Server, listening: socket.socket) -> None:
    """End the server when its requests are over; its own way to end sleeps a while in any case."""
    for each in server.servers:
        each.close()
    listening.close()
    for connection in list(server.server_state.connections):
        connection.shutdown()
    async with asyncio.timeout(60):
        await asyncio.gather(*server.server_state.tasks)
    await asyncio.sleep(0)  # for the transports to hear that they are closed


def _client(url: str, key: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=20, trust_env=False, verify=False)
