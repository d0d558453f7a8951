"""A server with OpenAI's file and batch APIs, for tests. Its files and batches outlive it, so that it can be started again on its port.

A batch answers each request with ``answer`` of its prompt. ``expires``, ``fails`` and ``loses`` are prompts whose requests expire, fail
with a status 500, and have no line at all. The faults of ``faults`` are used up in order, one for each submission: ``drop`` makes the
batch and closes the connection without an answer, ``refuse`` closes it without a batch, ``503`` and ``401`` are
answered so without a batch; 401 repeats the key.
"""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from support.model_requests import answer_to

__all__ = ["BatchServer", "LoopbackBatches", "holds", "in_thread"]

Prompts = Collection[str] | Callable[[str], bool]
"""Prompts, or a condition that holds for them."""


@dataclass
class LoopbackBatches:
    """What the servers of batches share: ``app`` on loopback, at ``port`` once it has run."""

    expires: Prompts = frozenset()
    fails: Prompts = frozenset()
    loses: Prompts = frozenset()
    answer: Callable[[str], str] = answer_to
    faults: Iterable[str] = ()
    polls: int = 1
    port: int = 0
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)  # the prompts of calls that were made without a batch
    after_create: Callable[[int], None] = lambda count: (
        None
    )  # called with the number of batches before a submission is answered
    _runner: web.AppRunner | None = None

    def __post_init__(self) -> None:
        self._faults = deque(self.faults)

    def app(self) -> web.Application:
        """Return the application with its routes."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        self._runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()


@dataclass
class BatchServer(LoopbackBatches):
    """The server: ``async with BatchServer() as server``, then ``server.url``. ``polls`` is how often a batch is in progress first."""

    refused: dict[str, str] = field(
        default_factory=dict
    )  # parameters that are refused with a status 400, and the message
    invalid: str = ""  # the fault for which every batch fails
    cuts: int = 0  # how many downloads break in the middle
    files: dict[str, bytes] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    has_batches: bool = True

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}/v1"

    def app(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._add_routes(app) if self.has_batches else None
        return app

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._retrieve)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel)

    def _kept(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    async def _upload(self, request: web.Request) -> web.Response:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        form = await request.post()
        part: Any = form["file"]
        assert form["purpose"] == "batch"
        name = self._kept(part.file.read())
        told = {
            "id": name,
            "bytes": 1,
            "created_at": 1,
            "filename": part.filename,
            "object": "file",
            "purpose": "batch",
        }
        return web.json_response({**told, "status": "processed"})

    async def _create(self, request: web.Request) -> web.Response:
        fault = self._faults.popleft() if self._faults else ""
        if fault == "503":
            return web.json_response({"error": {"message": "Overloaded"}}, status=503)
        if fault == "401":
            told = f"Incorrect API key provided: {request.headers['authorization']}"
            return web.json_response({"error": {"message": told, "code": "invalid_api_key"}}, status=401)
        given = await request.json()
        if fault != "refuse":
            batch = f"batch-{len(self.batches)}"
            self.batches[batch] = {
                **given, "id": batch, "object": "batch", "created_at": int(time.time()), "status": "validating", "polls": self.polls,
            }  # fmt: skip
        self.after_create(len(self.batches))
        if fault:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(self.batches[batch])

    def _body(self, asked: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.answer(asked["messages"][-1]["content"])}
        return {
            "model": asked["model"], "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7},
        }  # fmt: skip

    async def _complete(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.live.append(asked["messages"][-1]["content"])
        return web.json_response(self._body(asked))

    async def _list(self, request: web.Request) -> web.Response:
        after, limit = request.query.get("after"), int(request.query.get("limit", 20))
        ids = list(self.batches)[::-1]
        ids = ids[ids.index(after) + 1 if after else 0 :]
        page = [self.batches[each] for each in ids[:limit]]
        return web.json_response({"object": "list", "data": page, "has_more": len(ids) > limit})

    async def _retrieve(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        batch["polls"] -= 1
        if batch["status"] == "cancelling" or (batch["polls"] < 0 and batch["status"] in ("validating", "in_progress")):
            self._end(batch, "cancelled" if batch["status"] == "cancelling" else "completed")
        elif batch["status"] == "validating":
            batch["status"] = "in_progress"
        return web.json_response(batch)

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        batch["status"] = "cancelling"
        return web.json_response(batch)

    def _end(self, batch: dict[str, Any], status: str) -> None:
        if self.invalid:
            batch |= {
                "status": "failed",
                "errors": {"object": "list", "data": [{"code": "x", "message": self.invalid}]},
            }
            return
        answers, errors = [], []
        for line in self.files[batch["input_file_id"]].splitlines():
            asked = json.loads(line)
            prompt = asked["body"]["messages"][-1]["content"]
            told: dict[str, Any] = {"id": "r", "custom_id": asked["custom_id"], "response": None, "error": None}
            if holds(self.loses, prompt):
                continue
            if holds(self.expires, prompt) or status == "cancelled":
                batch["status"] = "expired" if status == "completed" else status
                errors.append(
                    {
                        **told,
                        "error": {"code": "batch_expired", "message": "This request could not be executed in time."},
                    }
                )
            elif holds(self.fails, prompt):
                errors.append(
                    {
                        **told,
                        "response": {"status_code": 500, "request_id": "q", "body": {"error": {"message": "failed"}}},
                    }
                )
            else:
                refused = next((name for name in self.refused if name in asked["body"]), None)
                if refused is not None:
                    error = {"message": self.refused[refused], "param": refused, "code": "unsupported_parameter"}
                    answers.append(
                        {**told, "response": {"status_code": 400, "request_id": "q", "body": {"error": error}}}
                    )
                    continue
                body = self._body(asked["body"])
                answers.append({**told, "response": {"status_code": 200, "request_id": "q", "body": body}})
        batch["status"] = batch["status"] if batch["status"] == "expired" else status
        for name, lines in (("output_file_id", answers[::-1]), ("error_file_id", errors)):  # answers come in any order
            if lines:
                batch[name] = self._kept(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    async def _content(self, request: web.Request) -> web.StreamResponse:
        content = self.files[request.match_info["id"]]
        if self.cuts:
            self.cuts -= 1
            response = web.StreamResponse(headers={"content-length": str(len(content))})
            await response.prepare(request)
            await response.write(content[: len(content) // 2])
            assert request.transport is not None
            request.transport.abort()
            return response
        return web.Response(body=content)


def holds(prompts: Prompts, prompt: str) -> bool:
    """Return whether a prompt is among ``prompts``."""
    return prompts(prompt) if callable(prompts) else prompt in prompts


@contextmanager
def in_thread(server: Any) -> Iterator[Any]:
    """Run a server in the event loop of a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(30)
        yield server
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
