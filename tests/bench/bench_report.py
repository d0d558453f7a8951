"""What it costs a run to keep its events for the report, and what the report's page costs afterwards.

    python tests/bench/bench_report.py [--quick]

A ranking of many requests by a client that answers at once, kept in a folder: without the log of events, and with it, in turn, in one
process; the least of several rounds counts. Then the page of that run, read from the disk and rendered.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from knotwork.adapters.llm import Completion, Usage
from knotwork.runtime.api import planner
from knotwork.runtime.api.reports import read_account, render_run
from knotwork.runtime.runs import event_log

ITEMS = [{"item_name": f"cafe {number}", "attributes": {"tv": number % 2 == 0}} for number in range(10)]


class Client:
    """Plans without expansion, and answers."""

    async def generate(self, prompt: str, **options: object) -> Completion:
        plan = '===LWT_SKELETON===\n(final)=LLM("Which of [5]?")\n===MESSAGE===\nREMAINING: 5\nNEEDS_EXPANSION: no'
        return Completion(plan if "Analyze the user request" in prompt else "5", usage=Usage(700, 50))


def seconds(requests: int, *, log: bool) -> float:
    """Return how long a kept ranking of ``requests`` requests takes."""
    write = event_log.EventLog.write
    if not log:
        event_log.EventLog.write = lambda *given: None  # type: ignore[method-assign]
    began = perf_counter()
    try:
        asyncio.run(planner.rank_many(ITEMS, [f"wish {number}" for number in range(requests)], Client(), record=True))
    finally:
        event_log.EventLog.write = write  # type: ignore[method-assign]
    return perf_counter() - began


def main(requests: int, rounds: int) -> None:
    """Measure, and print the figures."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["KNOTWORK_HOME"] = home
        seconds(5, log=True)
        took: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(rounds):
            for log in took:
                took[log].append(seconds(requests, log=log))
        plain, logged = min(took[False]), min(took[True])
        print(f"a kept ranking of {requests} requests, {2 * requests} calls, the least of {rounds} rounds")
        print(f"  without the log  {plain * 1e3:8.1f} ms")
        print(f"  with the log     {logged * 1e3:8.1f} ms: {(logged - plain) / requests * 1e3:.2f} ms a request")
        folder = max(Path(home, "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        size = (folder / event_log.LOG).stat().st_size
        began = perf_counter()
        page = render_run(read_account(folder))
        print(
            f"  its log has {size / 1e6:.1f} MB; the page has {len(page) / 1e6:.1f} MB and took {perf_counter() - began:.2f} s"
        )


if __name__ == "__main__":
    main(20, 2) if "--quick" in sys.argv[1:] else main(200, 7)
