"""What a loop costs outside of its models: a step of a traversal over a large graph and a large state.

    python tests/bench/bench_loops.py [STEPS] [--quick]

The graph has 100,000 nodes (--quick: 10,000) and 200,000 edges, the state 100,000 items in a LIST, a DICT and a COUNTER
each, on the disk. A scripted model answers at once. A step is one prompt, the answer read and checked, a plan of
three commands run and committed, and
all of it kept; "overhead" is a step without the model's answer and without the plan's own commands. The target is 50 ms.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import networkx as nx
from knotwork import gasl
from knotwork.adapters.llm import Completion
from knotwork.adapters.llm.middleware import Own
from knotwork.adapters.state import DeclareKey, MergeInto
from knotwork.runtime.events import DecisionMade, Events, PlanFinished
from knotwork.runtime.loops.traversal.loop import traverse
from knotwork.runtime.loops.traversal.question_store import QuestionRequest
from knotwork.runtime.loops.traversal.traversal_results import Bounds


def plan(number: int) -> dict[str, Any]:
    """Return a plan that is no other's: one that was just run would go back to the model."""
    find = f'FIND nodes WHERE kind = "k3" LIMIT {20 + number} AS some'
    return {
        "decision": "continue", "why": "look at a kind", "hypothesis": "kinds differ",
        "commands": [find, "COUNT some AS many", "UPDATE seen WITH many"],
    }  # fmt: skip


class Instant(Own):
    """Answers a plan at once; ``longest`` is the longest prompt it saw."""

    longest = asked = 0

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.longest = max(self.longest, len(prompt))
        self.asked += 1
        return Completion(json.dumps(plan(self.asked)))

    async def aclose(self) -> None:
        pass


def large(nodes: int) -> nx.Graph:
    graph = nx.gnm_random_graph(nodes, 2 * nodes, seed=1)
    for number in range(nodes):
        graph.nodes[number].update(kind=f"k{number % 7}", text=f"the text of {number} " * 10)
    return graph


def filled(executor: gasl.GASLExecutor, items: int) -> None:
    state = executor.state
    for key, kind in (("found", "LIST"), ("notes", "DICT"), ("counts", "COUNTER"), ("seen", "COUNTER")):
        state.stage(DeclareKey(key, kind))  # type: ignore[arg-type]
    state.stage(MergeInto("found", [{"id": f"n{n}", "text": f"what {n} is " * 8} for n in range(items)]))
    state.stage(MergeInto("notes", {f"n{n}": f"what {n} is " * 8 for n in range(items)}))
    state.stage(MergeInto("counts", {f"n{n}": n for n in range(items)}))
    state.commit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="?", type=int, default=30)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    size = 10_000 if options.quick else 100_000
    ends, plans = list[float](), list[float]()

    def heard(event: Any) -> None:
        if isinstance(event, DecisionMade):
            ends.append(event.at)
        elif isinstance(event, PlanFinished):
            plans.append(event.seconds)

    with tempfile.TemporaryDirectory() as folder:
        events, model = Events(), Instant()
        with gasl.open(large(size), Path(folder) / "state", model, events=events) as executor:
            filled(executor, size)
            _ = executor.adapter.schema
            events.subscribe(heard)
            wanted = QuestionRequest("Which kinds are there?", Bounds(max_steps=options.steps), Path(folder) / "state")
            began = perf_counter()
            made = asyncio.run(traverse(wanted, executor, model))
            took = perf_counter() - began
    overheads = [1000 * (after - before - plan) for before, after, plan in zip(ends, ends[1:], plans, strict=False)]
    print(f"graph of {size:,} nodes, state of 3 x {size:,} items, {len(made.steps)} steps in {took:.2f} s")
    print(f"longest prompt: {model.longest:,} characters")
    print(f"plan: {1000 * statistics.median(plans):.1f} ms; overhead a step: median {statistics.median(overheads):.1f} ms, "
          f"most {max(overheads):.1f} ms (target 50 ms)")  # fmt: skip


if __name__ == "__main__":
    main()
