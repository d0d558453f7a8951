"""What a call costs: over HTTP, out of the cache, out of a cassette; and an item of EACH.

    python tests/bench/bench_calls.py [--quick]

Calls over HTTP go to ``support.label_server``, a raw asyncio protocol in a process of its own, 32 at the same time: by a bare HTTP client
that writes and reads JSON, by OpenAI's SDK alone, by an adapter alone, and through all layers of ``open_model`` with either client. All are
in this process, in turn, and their figures are its CPU time; the server's own CPU time is printed too.

Calls without a request go through all layers that ``open_model`` puts around a spec, one after the other. The cached ones were asked once
of the tests' HTTP server, which is gone when they are timed, and come from the SQLite file of the call cache; the
replayed ones come from a cassette. EACH runs through ``lwt.run`` over a list, with a client that answers at once, beside
a loop that only awaits that client for each item. All in one process, in turn.
"""

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

import aiohttp
import orjson
from knotwork import lwt
from knotwork.adapters.llm import Completion
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.runtime.models.answer_cache import AnswerCache
from knotwork.runtime.models.factory import ModelSettings, open_model

sys.path.insert(0, str(TESTS := Path(__file__).parents[1]))
from support.cpu_time import pace
from support.model_server import KEY, ModelServer, answer_to

AT_ONCE = 32
BARE, SDK, ADAPTER = "a bare HTTP client (aiohttp)", "the openai SDK alone", "OpenAIModel alone, direct"
BY_SDK, DIRECT = "knotwork, all layers, by the SDK", "knotwork, all layers, direct"
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
        settings = ModelSettings(f"{server.url}#m", cache=AnswerCache(path))
        first = open_model(settings, {"KNOTWORK_API_KEY": KEY})
        await asyncio.gather(*(first.generate(prompt(number)) for number in range(calls)))
        await first.aclose()
    return open_model(settings, {"KNOTWORK_API_KEY": KEY})


def body(number: int) -> dict[str, Any]:
    """Return the request of a prompt."""
    return {"model": "m", "messages": [{"role": "user", "content": prompt(number)}], "max_tokens": 50}


async def cpu_of(ask: Callable[[int], Awaitable[Any]], calls: int) -> float:
    """Make so many calls, and return the CPU milliseconds of this process for each; the collector rests meanwhile."""
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await ask(number)

    gc.collect()
    gc.disable()
    began = process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    took = process_time() - began
    gc.enable()
    return took / calls * 1e3


async def over_http(url: str, calls: int, rounds: int) -> None:
    """Measure all clients against the server at ``url``, and print the first table."""
    from openai import AsyncOpenAI

    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    session = aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0))
    sdk = AsyncOpenAI(api_key=KEY, base_url=url)
    environ = {"KNOTWORK_API_KEY": KEY}
    adapter = OpenAIModel("m", base_url=url, api_key=KEY)
    direct = open_model(f"{url}#m", environ)
    by_sdk = open_model(f"{url}#m", {**environ, "KNOTWORK_LLM_CLIENT": "sdk"})

    async def bare(number: int) -> Any:
        async with session.post(f"{url}/chat/completions", data=orjson.dumps(body(number))) as response:
            return orjson.loads(await response.read())["choices"][0]["message"]["content"]

    async def alone(number: int) -> Any:
        return (await sdk.chat.completions.create(**body(number))).choices[0].message.content

    sides: dict[str, Callable[[int], Awaitable[Any]]] = {
        BARE: bare,
        SDK: alone,
        ADAPTER: lambda number: adapter.generate(prompt(number), max_tokens=50),
        BY_SDK: lambda number: by_sdk.generate(prompt(number), max_tokens=50),
        DIRECT: lambda number: direct.generate(prompt(number), max_tokens=50),
    }
    times: dict[str, list[float]] = {side: [] for side in sides}
    shares = []
    for turn in range(rounds + 1):  # the first round opens connections
        for side, ask in sides.items():
            times[side].append(await cpu_of(ask, calls if turn else AT_ONCE))
        shares.append(pace())
    async with session.get(f"{url.removesuffix('/v1')}/stats") as response:
        served = orjson.loads(await response.read())
    for client in (session, sdk):
        await client.close()
    for model in (adapter, direct, by_sdk):
        await model.aclose()
    print(
        f"{calls:,} calls a round, {AT_ONCE} at the same time, {rounds} rounds in turn; this process runs"
        f" {median(shares):.1f} times slower than on a quiet machine"
    )
    each = served["cpu"] / served["requests"]
    print(f"the server: {each * 1e3:.3f} ms CPU a call, {each * 900:.0%} of a core at 900 calls a second")
    print(f"{'CPU time of a call':<34} {'median':>9} {'best round':>12} {'calls a CPU second':>20} {'x bare':>8}")
    for side, taken in times.items():
        middle, best = median(taken[1:]), min(taken[1:])
        ratio = median(each / least for each, least in zip(taken[1:], times[BARE][1:], strict=True))
        print(f"{side:<34} {middle:>6.3f} ms {best:>9.3f} ms {1e3 / middle:>20,.0f} {ratio:>8.2f}")
    for how, of in (("median", median), ("best round", min)):
        bare_time, our_time = of(times[BARE][1:]), of(times[DIRECT][1:])
        print(
            f"{how}: our layers and client {(our_time - bare_time) * 1e3:.0f} µs a call;"
            f" 1.3 x bare + 0.15 ms = {1.3 * bare_time + 0.15:.3f} ms"
        )
    print("targets: ≤ 1.0 ms, ≥ 900 calls a second, our layers ≤ 250 µs, ≤ 1.3 x bare + 0.15 ms\n")


def served(calls: int, rounds: int) -> None:
    """Start the server and measure calls over HTTP."""
    with tempfile.TemporaryDirectory() as folder:
        labels = Path(folder) / "labels.json"
        labels.write_text("{}")
        words = [sys.executable, "-m", "support.label_server", "--labels", str(labels)]
        server = subprocess.Popen(words, cwd=TESTS, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            asyncio.run(over_http(server.stdout.readline().strip(), calls, rounds))
        finally:
            server.kill()
            server.communicate()


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
    """Print the other tables."""
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
    quick = "--quick" in sys.argv[1:]
    served(100, 5 if quick else 60)  # short rounds, because the load of the machine changes
    asyncio.run(main(50, 1000, 2) if quick else main(500, 10_000, 9))
