"""The LWT rows of the targets: a step's overhead against a bare asyncio dataflow loop, and the makespan of uneven steps.

    python tests/bench/bench_lwt.py [ROUNDS] [--quick]

All sides run in one process, in turn, ROUNDS times (default 15). The tables of overhead have CPU time: medians, the best of all
rounds, and the ratios of both to the bare loop's; compare the ratios of the best. Steps are no-ops: a client that answers at
once. ``lwt.run`` gets a parsed script and does all that it does by default: render, call, events, trace. It checks and plans a
script the first time it runs it; "first run" includes that; "with events" is a first run with a subscriber. The bare loop makes
one task for each step, with counters and a dict of results.
Peers (``peers``) run where they are installed; they get the graph built beforehand.
"""

import asyncio
import gc
import random
import statistics
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter, process_time
from typing import Any

from attrs import evolve
from knotwork import lwt
from knotwork.adapters.llm import Completion
from knotwork.runtime.events import Events
from peers import installed

STEPS = 1000
_TARGETS = {"chain": 4.3, "fan": 5.7}
Graph = Mapping[str, Sequence[str]]


async def bare(graph: Graph, work: Callable[[str, str], Awaitable[str]]) -> dict[str, str]:
    """Run a graph as one writes it by hand: a task a step, started when its last input is there."""
    results: dict[str, str] = {}
    missing = {step: len(inputs) for step, inputs in graph.items()}
    dependents: dict[str, list[str]] = {step: [] for step in graph}
    for step, inputs in graph.items():
        for name in inputs:
            dependents[name].append(step)
    over = asyncio.get_running_loop().create_future()
    tasks = set[asyncio.Task[None]]()

    async def one(step: str) -> None:
        results[step] = await work(step, "".join([results[name] for name in graph[step]]))
        for dependent in dependents[step]:
            missing[dependent] -= 1
            if not missing[dependent]:
                start(dependent)
        if len(results) == len(graph):
            over.set_result(None)

    def start(step: str) -> None:
        task = asyncio.create_task(one(step))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    for step in [step for step, count in missing.items() if not count]:
        start(step)
    await over
    return results


def chain(steps: int) -> Graph:
    """Each step after the one before."""
    return {f"s{i}": [f"s{i - 1}"] if i else [] for i in range(steps)}


def fan(steps: int) -> Graph:
    """All steps at once, and one that needs them all."""
    return {**{f"s{i}": [] for i in range(steps)}, "final": [f"s{i}" for i in range(steps)]}


def uneven(steps: int, seed: int = 1) -> tuple[Graph, dict[str, float]]:
    """Steps of 1 to 50 ms with up to three inputs among the 40 before them, and one at the end that needs the sinks."""
    rng = random.Random(seed)
    graph: dict[str, list[str]] = {}
    for i in range(steps):
        graph[f"s{i}"] = [f"s{j}" for j in sorted(rng.sample(range(max(0, i - 40), i), min(i, rng.randint(0, 3))))]
    used = {name for inputs in graph.values() for name in inputs}
    graph["final"] = [step for step in graph if step not in used]
    return graph, {step: rng.uniform(0.001, 0.050) for step in graph}


def script(graph: Graph) -> Any:
    """Return the graph as a script whose prompts are the outputs of a step's inputs; a step without inputs says its id."""
    lines = [
        f'({step})=LLM("{"".join(f"{{({name})}}" for name in inputs) or step}")\n' for step, inputs in graph.items()
    ]
    return lwt.parse("".join(lines))


class Client:
    """Answers at once."""

    answer = Completion("x")

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Answer."""
        return self.answer


async def seconds(run: Callable[[], Awaitable[Any]], clock: Callable[[], float] = perf_counter) -> float:
    """Time one run with ``clock``. The collector rests meanwhile, for both sides alike."""
    gc.collect()
    gc.disable()
    began = clock()
    await run()
    took = clock() - began
    gc.enable()
    return took


async def checked(graph: Graph, prepare: Callable[..., Awaitable[Any]]) -> None:
    """Assert that what a peer made of ``graph`` runs every step once."""
    ran: list[str] = []

    async def work(step: str, given: str) -> str:
        ran.append(step)
        return "x"

    run = await prepare(graph, work)
    await run()
    assert sorted(ran) == sorted(graph), f"{prepare.__name__} ran {len(ran)} of {len(graph)} steps"


async def overhead(name: str, graph: Graph, rounds: int, peers: Mapping[str, Callable[..., Awaitable[Any]]]) -> None:
    """Print a row a side: microseconds a step, and its ratio to the bare loop."""
    read, client = script(graph), Client()

    async def work(step: str, given: str) -> str:
        return (await client.generate(given)).text

    fresh, events = read, Events()
    events.subscribe(lambda event: None)
    runs: dict[str, Callable[[], Awaitable[Any]]] = {
        "bare loop": lambda: bare(graph, work),
        "lwt.run, first run": lambda: lwt.run(fresh, llm=client),
        "lwt.run, again": lambda: lwt.run(fresh, llm=client),
        "lwt.run, with events": lambda: lwt.run(evolve(read), llm=client, events=events),
    }
    for peer, prepare in peers.items():
        await checked(graph, prepare)
        runs[peer] = await prepare(graph, work)
    took: dict[str, list[float]] = {side: [] for side in runs}
    for _ in range(rounds + 1):
        fresh = evolve(read)  # a script that nobody has run
        for side, run in runs.items():
            took[side].append(await seconds(run, process_time))
    base, least = (
        statistics.median(took["bare loop"][1:]),
        min(took["bare loop"][1:]),
    )  # the first round warms the caches
    print(f"\n{name:<34} {'median, a step':>15} {'ratio':>8} {'best':>12} {'ratio':>8}   target")
    for side, times in took.items():
        middle, best = (each / len(graph) * 1e6 for each in (statistics.median(times[1:]), min(times[1:])))
        target = f"≤ {_TARGETS[name.split()[0]]} and ≤ 60 µs" if side.startswith("lwt") else ""
        ratios = statistics.median(times[1:]) / base, min(times[1:]) / least
        print(
            f"  {side:<32} {middle:>12.1f} µs {ratios[0]:>8.2f} {best:>9.1f} µs {ratios[1]:>8.2f}   {target}".rstrip()
        )


async def makespan(rounds: int, peers: Mapping[str, Callable[..., Awaitable[Any]]]) -> None:
    """Print a row for each schedule: the makespan of uneven steps and the longest path through them."""
    graph, times = uneven(200)
    path: dict[str, float] = {}
    for step, inputs in graph.items():
        path[step] = times[step] + max((path[name] for name in inputs), default=0.0)
    critical = max(path.values())

    async def work(step: str, given: str) -> str:
        await asyncio.sleep(times[step])
        return "x"

    read = lwt.parse(
        "".join(
            f'({step})=LLM("{step} {"".join(f"{{({name})}}" for name in inputs)}")\n' for step, inputs in graph.items()
        )
    )

    class Sleeper:
        """Takes the time of the step whose id the prompt begins with."""

        async def generate(self, prompt: str, **options: Any) -> Completion:
            """Answer when the time has passed."""
            await asyncio.sleep(times[prompt.split(" ", 1)[0]])
            return Client.answer

    runs: dict[str, Callable[[], Awaitable[Any]]] = {
        "lwt.run, eager": lambda: lwt.run(read, llm=Sleeper(), max_concurrency=200),
        "lwt.run, layered": lambda: lwt.run(read, llm=Sleeper(), max_concurrency=200, schedule="layered"),
        "bare loop": lambda: bare(graph, work),
    }
    for peer, prepare in peers.items():
        runs[peer] = await prepare(graph, work)
    took: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            took[name].append(await seconds(run))
    print(f"\n{'200 uneven steps, 1 to 50 ms':<34} {'median':>15} {'critical':>12} {'ratio':>8}   target")
    for name, times_taken in took.items():
        middle, target = statistics.median(times_taken), "≤ 1.05" if name == "lwt.run, eager" else ""
        print(
            f"  {name:<32} {middle * 1e3:>12.1f} ms {critical * 1e3:>9.1f} ms {middle / critical:>8.3f}   {target}".rstrip()
        )


async def main(rounds: int, steps: int) -> None:
    """Print the tables."""
    peers = installed()
    print(f"medians of {rounds} rounds, all sides in turn")
    for name, graph in (("chain", chain(steps)), ("fan", fan(steps))):
        await overhead(f"{name} of {steps:,} no-op steps", graph, rounds, peers)
    await makespan(max(1, rounds // 3), peers)


if __name__ == "__main__":
    counts = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    quick = "--quick" in sys.argv[1:]
    asyncio.run(main(3 if quick else counts[0] if counts else 15, 100 if quick else STEPS))
