"""A run of a seed with workers: calls per second, processor time of driver and workers, and their memory.

    python tests/bench/bench_scale.py [--quick] [--contexts N] [--waiting N] [--ray]

Each context has 20 reviews, all kept. The model server is a process of its own, whose processor time is printed, too. First it answers at
once, so that the processor is the limit: in one process, with one worker, with two, and with --ray as tasks of a local Ray instance. Then
it answers after 100 ms, 32 calls at a time: no run can be quicker than its bound, calls / 32 times 100 ms. Every run is a process of its
own, all in turn. The targets are those of two free processors; a machine that shares its processors with the server and with
others shows less by the clock, so the processor time decides.
"""

import argparse
import asyncio
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import psutil
from knotwork import seed

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
from support.review_server import context  # noqa: E402
from support.seeds import SEED  # noqa: E402

REVIEWS, AT_ONCE, DELAY = 20, 32, 0.1


class Watch(threading.Thread):
    """The processor time and the most memory of the worker processes, looked at ten times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seconds: dict[int, float] = {}
        self.most: dict[int, int] = {}
        self.is_over = threading.Event()

    def look(self) -> None:
        for child in psutil.Process().children(recursive=True):
            try:
                words = " ".join(child.cmdline())
                if "adapters.engine.worker" in words or words.startswith("ray::"):
                    times = child.cpu_times()
                    self.seconds[child.pid] = times.user + times.system
                    self.most[child.pid] = max(self.most.get(child.pid, 0), child.memory_info().rss)
            except psutil.Error:
                continue

    def run(self) -> None:
        while not self.is_over.wait(0.1):
            self.look()


async def run(spec: str, count: int, workers: int, engine: str) -> dict[str, Any]:
    """Run over so many contexts and return what it took. The workers are started before the clock, by a first small run."""
    contexts: Iterator[dict[str, Any]] = (context(index, REVIEWS) for index in range(count))
    watch, done, extracted = Watch(), 0, 0
    watch.start()
    options: dict[str, Any] = {"workers": workers, "engine": engine} if workers else {}
    began, busy = perf_counter(), process_time()
    first: float | None = None
    async for result in seed.run_many(
        seed.load(SEED), contexts, llm=spec, max_concurrency=AT_ONCE, cache=False, **options
    ):
        assert result.status == "complete" and result.index == done, result
        first = first or perf_counter()
        done += 1
        extracted += result.counts.extracted
        watch.look() if done == count else None
    watch.is_over.set()
    return {
        "calls": extracted, "seconds": perf_counter() - began, "driver": process_time() - busy,
        "workers": sum(watch.seconds.values()), "memory": psutil.Process().memory_info().rss >> 20,
        "worker_memory": max(watch.most.values(), default=0) >> 20,
    }  # fmt: skip


def child(spec: str, count: int, workers: int, engine: str) -> dict[str, Any]:
    """Run in a process of its own."""
    words = [sys.executable, __file__, "--child", spec, "--contexts", str(count), "--workers", str(workers)]
    told = subprocess.run([*words, "--engine", engine], check=True, capture_output=True, text=True).stdout
    made: dict[str, Any] = json.loads(told.splitlines()[-1])
    return made


def measured(count: int, delay: float, sides: list[tuple[int, str]]) -> None:
    """Run all sides against one server, and print a row for each."""
    words = [sys.executable, "-m", "support.review_server", "--delay", str(delay)]
    server = subprocess.Popen(words, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        spec = f"{server.stdout.readline().strip()}#m"
        print(f"{count:,} contexts, {count * REVIEWS:,} calls, the server answers after {delay * 1e3:.0f} ms")
        print(
            f"{'':22} {'seconds':>8} {'calls/s':>8} {'CPU ms a call: driver':>22} {'workers':>8} {'server':>7}  calls per CPU s  MiB"
        )
        for workers, engine in sides:
            before = psutil.Process(server.pid).cpu_times().user
            found = child(spec, count, workers, engine)
            cost = psutil.Process(server.pid).cpu_times().user - before
            calls, name = found["calls"], f"{workers} {engine}" if workers else "one process"
            worked = found["workers"] if workers else found["driver"]
            bound = math.ceil(calls / AT_ONCE) * delay
            over = f"  {found['seconds'] / bound:.2f} x the bound" if delay else ""
            print(
                f"{name:22} {found['seconds']:8.2f} {calls / found['seconds']:8.0f} {found['driver'] / calls * 1e3:22.2f} "
                f"{found['workers'] / calls * 1e3:8.2f} {cost / calls * 1e3:7.2f}  {calls / worked:15.0f}  "
                f"{found['memory']} + {found['worker_memory']}{over}"
            )  # fmt: skip
    finally:
        server.kill()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--contexts", type=int, help="only so many")
    parser.add_argument("--waiting", type=int, help="contexts for the server that answers after 100 ms")
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--engine", default="processes", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(asyncio.run(run(given.child, given.contexts, given.workers, given.engine))))
        return
    began = time.strftime("%H:%M")
    count = given.contexts or (10 if given.quick else 2_000)
    sides = [(0, ""), (1, "processes"), (2, "processes"), *([(2, "ray")] if given.ray else [])]
    measured(count, 0.0, sides[::2] if given.quick else sides)
    if not given.quick:
        measured(given.waiting or max(20, count // 4), DELAY, sides)
    print(f"begun at {began}")


if __name__ == "__main__":
    main()
