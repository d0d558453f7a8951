"""What the server does with many streams at once: how soon the first event comes, when the last, in how much memory.

    python tests/bench/bench_serve.py [--quick]

``knotwork serve``, the scripted model server and the clients are three processes. Every client opens one stream of an iterative
answer at the same moment: three rounds, six calls of the model, each answered after a fixed delay. Beside it, in turn, a FastAPI
app in a process of its own that does nothing: it sends the events of one such stream, recorded from a stream that was alone on the
server, with the delays that they had then. Clients are bare sockets, the same for both. Time runs from before the connection is made.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.served import served
from support.web import served_app

BARE = """
import asyncio, json, sys
import uvicorn
from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

EVENTS = [(delay, ServerSentEvent(event=name, raw_data=data, id=str(number)))
          for number, (delay, name, data) in enumerate(json.load(open(sys.argv[1])), 1)]
app = FastAPI()

class Request(BaseModel):
    instruct: str
    resp_format: str
    eval_crit: str

@app.post("/lab/generate-answer/stream", response_class=EventSourceResponse)
async def stream(request: Request):
    for delay, event in EVENTS:
        if delay > 0.001:
            await asyncio.sleep(delay)
        yield event

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)

Server(uvicorn.Config(app, port=0, log_level="warning", backlog=2048)).run()
"""
CALLS = 6
"""Calls of the model that one stream waits for, one after the other."""


@dataclass
class Stream:
    """What a client saw: seconds to the first event and to the end, and each event with the seconds until it."""

    first: float = 0.0
    end: float = 0.0
    events: list[tuple[float, str, str]] = field(default_factory=list)

    @property
    def last(self) -> str:
        """The last event's name: "result" for a stream that is whole."""
        return self.events[-1][1] if self.events else ""


async def listen(address: str, number: int) -> Stream:
    """Open one stream and read it to its end."""
    host, _, port = address.removeprefix("http://").partition(":")
    body = json.dumps(
        {"instruct": f"Question {number} [[scores 0.4 0.6 0.9]]", "resp_format": "a sentence", "eval_crit": "is true"}
    ).encode()
    seen, began = Stream(), perf_counter()
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
    writer.write(
        b"POST /lab/generate-answer/stream HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (f"{host}:{port}".encode(), len(body), body)
    )
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(f"no stream: {head.decode()}{(await reader.read(2000)).decode()}")
    buffer = b""
    while size := int(await reader.readline(), 16):
        buffer += (await reader.readexactly(size + 2))[:-2]
        *whole, buffer = buffer.split(b"\n\n")
        now = perf_counter() - began
        for block in whole:
            lines = dict(line.partition(": ")[::2] for line in block.decode().splitlines() if not line.startswith(":"))
            if "event" in lines:
                seen.events.append((now, lines["event"], lines["data"]))
    seen.end = perf_counter() - began
    seen.first = seen.events[0][0]
    writer.close()
    return seen


async def many(address: str, streams: int, start: int = 0) -> tuple[list[Stream], float]:
    """Open so many streams at once; return them, and the seconds until the last has ended."""
    began = perf_counter()
    seen = await asyncio.gather(*(listen(address, start + number) for number in range(streams)))
    return list(seen), perf_counter() - began


def memory(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process now and at its highest, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    now, peak = (int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def processor(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def bare_server(script: Path) -> Iterator[tuple[str, int]]:
    """Run the app that only sends the events of ``script``; yield its address and its process id."""
    process = subprocess.Popen([sys.executable, "-c", BARE, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.communicate(timeout=30)


def at(times: Sequence[float], share: int) -> float:
    """Return the time within which ``share`` of a hundred are."""
    return quantiles(times, n=100, method="inclusive")[share - 1]


def row(name: str, rounds: Sequence[tuple[list[Stream], float]], ideal: float) -> None:
    """Print what came of the rounds of one side: the median round."""
    columns = [
        (
            at([each.first for each in seen], 50) * 1e3, at([each.first for each in seen], 95) * 1e3,
            at([each.end for each in seen], 95), took, len(seen) / took,
        )
        for seen, took in rounds
    ]  # fmt: skip
    first, late, end, took, rate = (median(column) for column in zip(*columns, strict=True))
    print(f"{name:<18}{first:>10.0f} ms{late:>10.0f} ms{end:>10.2f} s{took:>10.2f} s{rate:>10.1f}{end / ideal:>10.2f}")


def ratio(sides: dict[str, list[tuple[list[Stream], float]]], of: str) -> float:
    """Return the 95 % of ``of`` ("first" or "end"), ours to the bare one's: the median over the rounds, which run in turn."""
    ours, bare = ([at([getattr(each, of) for each in seen], 95) for seen, _ in run] for run in sides.values())
    return median(mine / theirs for mine, theirs in zip(ours, bare, strict=True))


async def main(streams: int, rounds: int, delay: float) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder, "--delay", str(delay), module="support.answer_server") as model:
            with served_app(folder, "--no-cache", "--max-runs", str(2 * streams), llm=model.spec) as server:
                address, pid = server.url, server.pid
                await many(address, 2, 1_000_000)
                (alone,), _ = await many(address, 1, 1_000_001)
                script = folder / "events.json"
                times = [when for when, _, _ in alone.events]
                delays = [0.0, *(late - soon for soon, late in pairwise(times))]
                told = [[delay, name, data] for delay, (_, name, data) in zip(delays, alone.events, strict=True)]
                script.write_text(json.dumps(told))
                with bare_server(script) as (bare, bare_pid):
                    await many(bare, 2)
                    sides: dict[str, list[tuple[list[Stream], float]]] = {"knotwork serve": [], "bare SSE": []}
                    idle, bare_idle, memories = memory(pid)[0], memory(bare_pid)[0], []
                    busy = processor(pid)
                    for number in range(rounds):
                        sides["knotwork serve"].append(await many(address, streams, number * streams))
                        memories.append(memory(pid))
                        sides["bare SSE"].append(await many(bare, streams))
                    busy, bare_peak = processor(pid) - busy, memory(bare_pid)[1]
            answered = sum(model.asked.values())
    whole = {side: sum(s.last == "result" for seen, _ in run for s in seen) for side, run in sides.items()}
    print(
        f"{streams} streams at once, {rounds} rounds in turn, {CALLS} calls of {delay * 1e3:.0f} ms a stream, {len(alone.events)} events"
    )
    for side, count in whole.items():
        print(f"{side}: {count} of {streams * rounds} complete")
    print(
        f"\n{'':<18}{'first, 50 %':>13}{'first, 95 %':>13}{'end, 95 %':>12}{'all':>12}{'a second':>10}{'to ideal':>10}"
    )
    for side, run in sides.items():
        row(side, run, CALLS * delay)
    print(f"\nto bare SSE: first, 95 % {ratio(sides, 'first'):.2f}; end, 95 % {ratio(sides, 'end'):.2f}")
    print(f"one stream alone: first {alone.first * 1e3:.0f} ms, end {alone.end:.2f} s")
    print(f"calls that reached the model: {answered:,}; the server's processor time for one:", end="")
    print(f" {busy / (rounds * streams * CALLS) * 1e3:.1f} ms")
    peak = memories[0][1]
    print(f"memory of knotwork serve: idle {idle:.1f} MiB, highest in the first round {peak:.1f} MiB", end="")
    print(
        f" ({(peak - idle) * 1024 / streams:.0f} KiB a stream), after each round",
        ", ".join(f"{now:.1f}" for now, _ in memories),
    )
    print(f"memory of bare SSE: idle {bare_idle:.1f} MiB, highest {bare_peak:.1f} MiB")
    assert set(whole.values()) == {streams * rounds}, "streams were cut"


if __name__ == "__main__":
    asyncio.run(main(8, 1, 0.02) if "--quick" in sys.argv[1:] else main(200, 3, 0.5))
