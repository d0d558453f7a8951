"""The cache that machines share: the time of a hit over a PostgreSQL server on loopback, and the calls that two processes pay twice.

A hit is a look-up that the local file can't answer; 64 wait at once, so that they go in groups. For the second figure two processes with
files of their own run the same script with 2,000 items, with one table behind them; a model server counts the requests. They begin at the
same moment, which is the worst case: both ask for the same items at the same time. The last figure
shows what waiting costs: calls of half a second, by one process and by two.

Run: python tests/bench/bench_shared_cache.py [--quick]. It needs PostgreSQL in /usr/lib/postgresql, and says so where that is missing.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from knotwork.adapters.llm.shared_answers import SharedAnswers
from knotwork.adapters.llm.shared_cache import StoredAnswer
from support.command import environment
from support.postgres import BINARIES, Server
from support.served import served

AT_ONCE = 64


async def hits(url: str, count: int) -> tuple[float, float]:
    """Return the milliseconds of a hit: of the wall clock divided by the hits, and the median that a caller waits."""
    answers = SharedAnswers(url)
    keys = [number.to_bytes(32, "big") for number in range(count)]
    for key in keys:
        answers.keep(StoredAnswer(key, "an answer of some forty characters or so", "stop", "m", b"12345678", 100, 20))
        if len(keys) % 100 == 0:
            await asyncio.sleep(0)
    await answers.aclose()
    answers, waited, left = SharedAnswers(url), [], iter(keys)

    async def caller() -> None:
        for key in left:
            began = time.perf_counter()
            assert await answers.find(key) is not None
            waited.append(time.perf_counter() - began)

    await answers.find(b"x" * 32)
    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    spent = time.perf_counter() - began
    await answers.aclose()
    return 1e3 * spent / count, 1e3 * statistics.median(waited)


def at_once(url: str, items: int, processes: int = 2, delay: float = 0.02) -> tuple[int, int, float]:
    """Return the number of different requests of the processes, how many requests were repetitions, and the seconds until all had ended."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "s.lwt").write_text('(final)=EACH({(input)}, LLM("item {(item)}"), max_concurrency=32)\n')
        (folder / "in.json").write_text(str(list(range(items))))
        with served(folder, "--delay", str(delay)) as model:
            running = []
            began = time.perf_counter()
            for number in range(processes):
                home = folder / str(number)
                home.mkdir()
                words = [
                    "run",
                    folder / "s.lwt",
                    "--input",
                    folder / "in.json",
                    "--llm",
                    model.spec,
                    "--max-concurrency",
                    "32",
                ]
                running.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "knotwork", *map(str, words)], cwd=home, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL, env=environment(home, KNOTWORK_CACHE=url),
                    )
                )  # fmt: skip
            for each in running:
                assert each.wait(300) == 0
            spent = time.perf_counter() - began
            return len(model.asked), sum(model.asked.values()) - len(model.asked), spent


def clear(url: str) -> None:
    """Delete the answers."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE knotwork_answers_1")


def main() -> None:
    if not BINARIES:
        print("PostgreSQL is not installed in /usr/lib/postgresql; nothing was measured")
        return
    quick = "--quick" in sys.argv
    with Server() as server:
        each, wait = asyncio.run(hits(server.url, 2_000 if quick else 20_000))
        print(f"a hit, {AT_ONCE} at once: {each:.3f} ms each, {wait:.2f} ms until a caller has it (target: 1 ms)")
        items = 200 if quick else 2_000
        requests, doubled, _ = at_once(server.url, items)
        print(f"two processes, {requests:,} requests: {doubled:,} paid twice ({doubled / requests:.1%}; target: 1 %)")
        if not quick:
            alone, both = (clear(server.url) or at_once(server.url, 500, number, 0.5)[2] for number in (1, 2))
            print(
                f"500 calls of 0.5 s: {alone:.1f} s by one process, {both:.1f} s until two processes with the same items have ended"
            )


if __name__ == "__main__":
    main()
