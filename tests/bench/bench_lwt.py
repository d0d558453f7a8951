"""The LWT rows of the targets: a step's overhead against a bare asyncio dataflow loop, and the makespan of uneven steps.

    python tests/bench/bench_lwt.py [ROUNDS]

Both sides run in one process, in turn, ROUNDS times (default 15); the table has medians and the ratio of the medians.
Steps are no-ops: a client that answers at once. ``lwt.run`` gets a parsed script and does all that it does by default:
render, call, events, trace. It checks a script the first time it runs it; "first run" rows include that (checking has a
target of its own), the others don't. The bare loop makes one task for each step, with counters and a dict of results.
"""

import asyncio
import gc
import random
import statistics
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from attrs import evolve
from knotwork import lwt
from knotwork.adapters.llm import Completion

STEPS = 1000
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


async def seconds(run: Callable[[], Awaitable[Any]]) -> float:
    """Time one run. The collector rests meanwhile, for both sides alike."""
    gc.collect()
    gc.disable()
    began = perf_counter()
    await run()
    took = perf_counter() - began
    gc.enable()
    return took


async def overhead(name: str, graph: Graph, rounds: int) -> None:
    """Print a row: microseconds a step of both sides, and their ratio."""
    read, client = script(graph), Client()

    async def work(step: str, given: str) -> str:
        return (await client.generate(given)).text

    first, again, theirs = [], [], []
    for _ in range(rounds):
        fresh = evolve(read)
        theirs.append(await seconds(lambda: bare(graph, work)))
        first.append(await seconds(lambda: lwt.run(fresh, llm=client)))  # noqa: B023  # called at once
        again.append(await seconds(lambda: lwt.run(fresh, llm=client)))  # noqa: B023
    their = statistics.median(theirs) / len(graph) * 1e6
    for label, times, target in ((name, again, "≤ 3 and ≤ 60 µs"), (f"{name}, first run", first, "")):
        our = statistics.median(times) / len(graph) * 1e6
        print(f"{label:<46} {our:>9.1f} µs {their:>9.1f} µs {our / their:>7.2f}   {target}")


async def makespan(rounds: int) -> None:
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
        "eager": lambda: lwt.run(read, llm=Sleeper(), max_concurrency=200),
        "layered": lambda: lwt.run(read, llm=Sleeper(), max_concurrency=200, schedule="layered"),
        "bare loop": lambda: bare(graph, work),
    }
    took: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(max(3, rounds // 3)):
        for name, run in runs.items():
            took[name].append(await seconds(run))
    for name, all_times in took.items():
        middle, target = statistics.median(all_times), "≤ 1.05" if name == "eager" else ""
        label = f"200 uneven steps, {name}"
        print(f"{label:<46} {middle * 1e3:>9.1f} ms {critical * 1e3:>9.1f} ms {middle / critical:>7.3f}   {target}")


async def main(rounds: int) -> None:
    """Print the table."""
    print(f"{'':<46} {'knotwork':>12} {'bare loop':>12} {'ratio':>7}   target")
    for name, graph in (("chain", chain(STEPS)), ("fan", fan(STEPS))):
        await overhead(f"{name} of {STEPS:,} no-op steps, a step", graph, rounds)
    print(f"\n{'':<46} {'makespan':>12} {'critical':>12} {'ratio':>7}   target")
    await makespan(rounds)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
