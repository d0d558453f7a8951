"""A server under test: ``knotwork serve`` in a process of its own on a free port of this machine, or its application in this one."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from knotwork.runtime.api.server_runs import Model
from knotwork.runtime.interfaces.http.access import add_key as make_key
from knotwork.runtime.interfaces.web.app import create_app
from knotwork.runtime.interfaces.web.web_models import ServerSettings

from support.command import cassette, environment

__all__ = ["Address", "Event", "Events", "add_key", "application", "reading", "served_app", "settings_in"]


@dataclass
class Address:
    """A server: its address (``http://127.0.0.1:PORT``), its process, the key that a client shows ("" where none is needed)."""

    url: str
    pid: int
    key: str
    process: "subprocess.Popen[str]" = field(repr=False)
    said: list[str] = field(default_factory=list, repr=False)
    """What it wrote to stderr so far, line by line."""

    @property
    def headers(self) -> dict[str, str]:
        """What a client of this key sends."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def client(self, **options: Any) -> httpx2.Client:
        """Return a client with the key. Close it, or use it in ``with``."""
        return httpx2.Client(
            base_url=self.url, headers=self.headers, timeout=30, trust_env=False, verify=False, **options
        )

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(seconds)


def add_key(folder: Path, name: str = "test") -> str:
    """Make a key for the servers of ``folder``."""
    return make_key(folder / "knotwork/keys.json", name)


@contextlib.contextmanager
def served_app(
    folder: Path, *options: str, env: Mapping[str, str] | None = None, key: bool = False, llm: str | None = None
) -> Iterator[Address]:
    """Start ``knotwork serve --port 0 OPTIONS`` with its home in ``folder``; ``key``: with a key made first; ``llm``: ``--llm``.

    It is killed at the end, if it still runs.
    """
    made = add_key(folder) if key else ""
    # -P: its home, where it starts, has a folder "knotwork", which is not the package.
    words = [sys.executable, "-P", "-m", "knotwork", "serve", "--port", "0", *(("--llm", llm) if llm else ()), *options]
    server = subprocess.Popen(
        words, cwd=folder, env=environment(folder, **(env or {})), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    said: list[str] = []
    found, ready = [""], threading.Event()

    def read() -> None:
        assert server.stderr is not None
        for line in server.stderr:
            said.append(line.rstrip("\n"))
            if at := re.search(r"listening on (http://\S+?)/lab", line):
                found[0] = at[1]
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert ready.wait(30) and found[0], f"the server did not start: {said}"
        yield Address(found[0], server.pid, made, server, said)
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(10)
        reader.join(10)
        if server.stderr is not None:
            server.stderr.close()


def settings_in(folder: Path, answers: Mapping[str, str | None] | None = None, **more: Any) -> ServerSettings:
    """Return settings whose one model ("m") answers each prompt with a key of ``answers`` in it; files are in ``folder``."""
    spec = cassette(folder / "answers.jsonl", answers if answers is not None else {"": "an answer"})
    given: dict[str, Any] = {
        "models": (Model("m", spec),),
        "history": folder / "h.sqlite",
        "keys": folder / "keys.json",
    }
    return ServerSettings(**(given | {"cache": False} | more))


@contextlib.asynccontextmanager
async def application(
    settings: ServerSettings, key: str = "", host: str = "127.0.0.1"
) -> AsyncIterator[httpx2.AsyncClient]:
    """Run the application in this process and yield a client for it, which asks under the name ``host``. Nothing listens."""
    app = create_app(settings)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=f"http://{host}", headers=headers) as client,
    ):
        client.app = app  # type: ignore[attr-defined]
        yield client


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    data: Any
    id: str = ""


Events = Iterator[Event]


def reading(response: httpx2.Response) -> Events:
    """Yield the events of a response that streams them; comments are left out."""
    name, number, data = "message", "", []
    for line in response.iter_lines():
        if not line:
            if data:
                yield Event(name, json.loads("\n".join(data)), number)
            name, data = "message", []
            continue
        what, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if what == "event":
            name = value
        elif what == "data":
            data.append(value)
        elif what == "id":
            number = value
