"""A model server for tests and benchmarks: chat completions and messages over HTTP/1.1, with faults on a schedule.

It is written on bare sockets, because faults live below HTTP: cut headers, bodies that trickle, resets. In a process of
its own: ``PYTHONPATH=tests python -m support.model_server --port 0``; it prints its address (``http://host:port/v1``).
``--log FILE`` writes a line of JSON for each request that came in, and for each connection that ended.

An answer can be checked: to a prompt it is ``answer_to(prompt)``; for a JSON Schema it is ``example(schema)``.
"""

import argparse
import asyncio
import json
import random
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from support.model_calls import Call, example_call
from support.model_faults import AGAIN, BROKEN, RETRIED, SLOW, STATUS, STREAMED
from support.model_replies import Reply
from support.model_requests import Request, answer_to, example

__all__ = [
    "AGAIN", "BROKEN", "KEY", "RETRIED", "SLOW", "STATUS", "STREAMED", "ModelServer", "Request", "answer_to", "example",
]  # fmt: skip

KEY = "sk-test-0123456789abcdef"


@dataclass
class ModelServer:
    """The server. ``async with ModelServer() as server``: then ``server.url``.

    ``faults``: names for the next requests, in order, None for none. ``rate`` and ``mix``: that share of the prompts meets
    one fault of ``mix`` at its first request, drawn with ``seed``. ``always``: one fault for every request. ``answer``:
    prompt → text. ``refuses``: parameters that get a 400 (``detailed``: a 422 as FastAPI writes it);
    ``ignores_format``: answer plain text whatever is asked for. ``calls``: prompt and tools → calls of tools, none for words;
    a custom tool gets ``answer``. ``delay``: seconds before each answer. ``log``: where
    requests and the ends of connections are written, a line of JSON each.
    """

    faults: Iterable[str | None] = ()
    rate: float = 0.0
    mix: tuple[str, ...] = ()
    seed: int = 0
    always: str | None = None
    answer: Callable[[str], str] = answer_to
    refuses: tuple[str, ...] = ()
    detailed: bool = False
    ignores_format: bool = False
    calls: Callable[[str, list[tuple[str, Any]]], list[Call]] = example_call
    delay: float = 0.0
    log: TextIO | None = None
    requests: list[Request] = field(default_factory=list)
    faulted: int = 0
    _seen: set[str] = field(default_factory=set)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._queue = deque(self.faults)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, host, port, backlog=1024)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    @property
    def url(self) -> str:
        """The address for chat completions."""
        return f"http://{self.host}:{self.port}/v1"

    @property
    def root(self) -> str:
        """The address for messages."""
        return f"http://{self.host}:{self.port}"

    async def __aenter__(self) -> "ModelServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _fault(self, request: Request) -> str | None:
        if self.always:
            return self.always
        if self._queue:
            return self._queue.popleft()
        if not self.rate or request.prompt in self._seen:
            return None
        self._seen.add(request.prompt)
        chance = random.Random(
            f"{self.seed} {request.prompt}"
        )  # by prompt, so that the order of arrival does not matter
        return chance.choice(self.mix) if chance.random() < self.rate else None

    def _tell(self, **what: str | int) -> None:
        if self.log is not None:
            self.log.write(json.dumps(what) + "\n")
            self.log.flush()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                self._tell(asked=request.prompt, traceparent=request.headers.get("traceparent", ""))
                if self.delay:
                    await asyncio.sleep(self.delay)
                fault = self._fault(request)
                self.faulted += fault is not None
                if fault == "hang":
                    await reader.read()  # until the other side closes
                    break
                reply = Reply(self, request, writer)
                if not await reply.give(fault):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tell(closed=writer.get_extra_info("peername")[1])
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(first.split()[1], headers, json.loads(body or b"{}"))


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--rate", type=float, default=0.0, help="share of the prompts that meet one fault")
    parser.add_argument("--faults", default=",".join(RETRIED + AGAIN), help="names, comma between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--always", help="one fault for every request")
    parser.add_argument("--ignores-format", action="store_true", help="answer plain text whatever is asked for")
    parser.add_argument("--log", type=Path, help="where to write what came in")
    given = parser.parse_args()
    server = ModelServer(
        rate=given.rate, mix=tuple(given.faults.split(",")), seed=given.seed, delay=given.delay, always=given.always,
        ignores_format=given.ignores_format,
        log=given.log.open("a") if given.log else None,
    )  # fmt: skip
    await server.start(given.host, given.port)
    print(server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
