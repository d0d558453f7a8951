"""What a call costs that reaches no model: answered by the cache, by a cassette; and an item of EACH.

    python tests/bench/bench_calls.py [--quick]

Calls go through all layers that ``open_model`` puts around a spec, one after the other. The cached ones were asked once
of the tests' HTTP server, which is gone when they are timed, and come from the SQLite file of the call cache; the
replayed ones come from a cassette. EACH runs through ``lwt.run`` over a list, with a client that answers at once, beside
a loop that only awaits that client for each item. All in one process, in turn.
"""

import asyncio
import gc
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from knotwork import lwt
from knotwork.adapters.llm import Completion
from knotwork.runtime.models.factory import ModelSettings, open_model

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.model_server import KEY, ModelServer, answer_to

SHELF = '(final)=EACH({(input)}, LLM("Glad or sad? {(item)}"))'


class Client:
    """Answers at once."""

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Answer."""
        return Completion("glad")


def prompt(number: int) -> str:
    """Return a prompt of ordinary length."""
    return f"Review {number}: the soup was lovely, the waiter was not. " * 8 + "Glad or sad?"


def cassette(path: Path, calls: int) -> Path:
    """Write an answer to every prompt."""
    lines = [{"cassette": 1}]
    lines += [{"request": {"prompt": prompt(n)}, "answer": {"text": answer_to(prompt(n))}} for n in range(calls)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


async def each_of(client: Any, calls: int) -> list[float]:
    """Ask every prompt, one after the other, and return the milliseconds of each."""
    times = []
    for number in range(calls):
        asked = prompt(number)
        began = perf_counter()
        answer = await client.generate(asked)
        times.append((perf_counter() - began) * 1e3)
        assert answer.text == answer_to(asked)
    return times


async def filled(path: Path, calls: int) -> Any:
    """Return a client whose cache at ``path`` has every answer, and whose model is gone: a miss would fail."""
    async with ModelServer() as server:
        settings = ModelSettings(f"{server.url}#m", cache=path)
        first = open_model(settings, {"KNOTWORK_API_KEY": KEY})
        await asyncio.gather(*(first.generate(prompt(number)) for number in range(calls)))
        await first.aclose()
    return open_model(settings, {"KNOTWORK_API_KEY": KEY})


async def seconds(run: Callable[[], Awaitable[Any]]) -> float:
    """Time one run; the collector rests meanwhile."""
    gc.collect()
    gc.disable()
    began = perf_counter()
    await run()
    took = perf_counter() - began
    gc.enable()
    return took


async def main(calls: int, items: int, rounds: int) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tape = cassette(folder / "tape.jsonl", calls)
        cached, replayed = await filled(folder / "cache" / "calls.sqlite", calls), open_model(f"replay:{tape}")
        times: dict[str, list[float]] = {"cached call": [], "replayed call": []}
        for _ in range(rounds + 1):  # the first round opens files
            times["cached call"].append(median(await each_of(cached, calls)))
            times["replayed call"].append(median(await each_of(replayed, calls)))
        last = {"cached call": await each_of(cached, calls), "replayed call": await each_of(replayed, calls)}
        await cached.aclose()
        await replayed.aclose()
    print(f"{calls:,} calls a round, {rounds} rounds in turn")
    print(f"{'':<30} {'median':>12} {'best round':>12} {'95 %':>12}   target")
    for side, medians in times.items():
        cells = (median(medians[1:]), min(medians[1:]), quantiles(last[side], n=20)[-1])
        print(f"{side:<30} {''.join(f'{cell:>9.3f} ms ' for cell in cells)}  ≤ 0.3 ms")

    read, client, data = lwt.parse(SHELF), Client(), [f"review {n}" for n in range(items)]

    async def loop() -> None:
        for item in data:
            await client.generate(f"Glad or sad? {item}")

    took: dict[str, list[float]] = {"EACH": [], "a loop that awaits the client": []}
    for _ in range(rounds + 1):
        took["EACH"].append(await seconds(lambda: lwt.run(read, input=data, llm=client)))
        took["a loop that awaits the client"].append(await seconds(loop))
    print(f"\n{f'EACH over {items:,} items, an item':<30} {'median':>12} {'best':>12}")
    for side, runs in took.items():
        middle, best = (each / items * 1e6 for each in (median(runs[1:]), min(runs[1:])))
        print(f"{side:<30} {middle:>9.1f} µs {best:>9.1f} µs")


if __name__ == "__main__":
    asyncio.run(main(50, 1000, 2) if "--quick" in sys.argv[1:] else main(500, 10_000, 9))
