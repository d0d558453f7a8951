"""Filter, extract, compute over many contexts, against a server in a process of its own.

    python tests/bench/bench_extract.py [--quick] [--contexts N]

Each context has 20 reviews, all kept; the server answers after 100 ms; 32 calls at a time. No run can be quicker than its
bound: ceil(calls / 32) times 100 ms. Each number of contexts runs in a process of its own, which says the most memory that it
held. Afterwards the same again out of the extraction cache.

    python tests/bench/bench_extract.py --instant [--quick]

A model in the process that answers at once, and a disk that takes 2 ms for each value, so that the disk is what the run waits for: the
most memory that it held with the bound on what waits to be written, and without it.
"""

import argparse
import asyncio
import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

from knotwork import seed
from knotwork.adapters.sqlite_store import SQLiteStore
from knotwork.runtime.models.factory import open_model
from knotwork.runtime.seeds import extraction

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
from support.review_server import answer_review, context  # noqa: E402
from support.seeds import SEED  # noqa: E402

REVIEWS, AT_ONCE, DELAY, SLOW = 20, 32, 0.1, 0.002


def many(count: int) -> Iterator[dict[str, Any]]:
    """Make contexts as they are asked for."""
    return (context(index, REVIEWS) for index in range(count))


class Instant:
    """Answers at once."""

    async def generate(self, prompt: str, **options: Any) -> str:
        return answer_review(prompt)


async def run_instantly(count: int, cache: Path) -> dict[str, Any]:
    """Run over so many contexts with a model that never waits, and a disk that is slower."""
    write = SQLiteStore._keep

    def slowly(shelf: SQLiteStore, rows: tuple[tuple[Any, ...], ...]) -> str:
        sleep(SLOW * len(rows))
        return write(shelf, rows)

    SQLiteStore._keep = slowly  # type: ignore[method-assign]
    began, extracted, fs = perf_counter(), 0, seed.load(SEED)
    async for result in seed.run_many(fs, many(count), llm=Instant(), model="m", max_concurrency=AT_ONCE, cache=cache):
        extracted += result.counts.extracted
    seconds = perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"contexts": count, "calls": extracted, "seconds": seconds, "max_rss_mib": peak}


def measured_instantly(count: int) -> None:
    """Measure the memory of a run whose model is quicker than the disk, with the bound and without."""
    for how in ("unbounded", "bounded"):
        with tempfile.TemporaryDirectory() as folder:
            found = child(how, count, Path(folder) / "extractions.sqlite")
        print(
            f"{found['contexts']:6,} contexts {found['calls']:7,} reviews {how:9}  {found['calls'] / found['seconds']:6,.0f} calls/s"
            f"  {found['max_rss_mib']:5.0f} MiB at most"
        )


async def run(spec: str, count: int, cache: Path) -> dict[str, Any]:
    """Run over so many contexts and return what it took."""
    fs, model = seed.load(SEED), open_model(spec)
    async for _ in seed.run_many(fs, [context(-1, 1)], llm=model):  # loads what is loaded once
        pass
    began, busy, done, extracted = perf_counter(), process_time(), 0, 0
    async for result in seed.run_many(fs, many(count), llm=model, model=spec, max_concurrency=AT_ONCE, cache=cache):
        assert result.status == "complete", result
        assert result.index == done
        done += 1
        extracted += result.counts.extracted
    await model.aclose()
    return {
        "contexts": done, "calls": extracted, "seconds": perf_counter() - began,
        "cpu_ms_per_call": (process_time() - busy) / extracted * 1e3,
        "max_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip


def child(spec: str, count: int, cache: Path) -> dict[str, Any]:
    """Run in a process of its own."""
    words = [sys.executable, __file__, "--child", spec, "--contexts", str(count), "--cache", str(cache)]
    made: dict[str, Any] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return made


def measured(spec: str, count: int) -> None:
    """Measure a run and its repetition out of the cache, and print both."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "extractions.sqlite"
        for how in ("asked", "cached"):
            found = child(spec, count, cache)
            bound = math.ceil(found["calls"] / AT_ONCE) * DELAY
            over = f"  bound {bound:7.1f} s  {found['seconds'] / bound:5.2f} x" if how == "asked" else ""
            print(
                f"{found['contexts']:6,} contexts {found['calls']:7,} reviews {how:6}  {found['seconds']:7.2f} s{over}"
                f"  {found['cpu_ms_per_call']:5.2f} ms CPU each  {found['max_rss_mib']:5.0f} MiB at most"
            )  # fmt: skip


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--instant", action="store_true", help="the memory under a model that answers at once")
    parser.add_argument("--contexts", type=int, help="only so many")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child in ("bounded", "unbounded"):
        if given.child == "unbounded":
            extraction.MOST_PENDING = sys.maxsize
        print(json.dumps(asyncio.run(run_instantly(given.contexts, given.cache))))
        return
    if given.child:
        print(json.dumps(asyncio.run(run(given.child, given.contexts, given.cache))))
        return
    if given.instant:
        for count in [given.contexts] if given.contexts else [250] if given.quick else [1_000, 4_000]:
            measured_instantly(count)
        return
    words = [sys.executable, "-m", "support.review_server", "--delay", str(DELAY)]
    server = subprocess.Popen(words, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        spec = f"{server.stdout.readline().strip()}#m"
        for count in [given.contexts] if given.contexts else [20, 100] if given.quick else [200, 2_000]:
            measured(spec, count)
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    main()
