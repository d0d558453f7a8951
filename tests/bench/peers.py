"""Other tools that run a graph of async steps, for bench_lwt: Hamilton's async driver and LangGraph. Both are optional.

Each gets the graph beforehand in the form it wants and is timed only while it runs: building is not counted. Steps call
``work(step, given)`` with the joined outputs of their inputs, as the bare loop does.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Annotated, Any, TypedDict

__all__ = ["PEERS", "installed"]

Graph = Mapping[str, Sequence[str]]
Work = Callable[[str, str], Awaitable[str]]
Run = Callable[[], Awaitable[Any]]


def _last(graph: Graph) -> str:
    return list(graph)[-1]


async def hamilton(graph: Graph, work: Work) -> Run:
    """A function a step, whose parameters are its inputs. Its walks recurse, so a chain of 1,000 needs a higher limit."""
    from hamilton import async_driver

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 20 * len(graph)))
    module = ModuleType("graph_as_functions")
    source = [
        f"async def {step}({', '.join(f'{name}: str' for name in inputs)}) -> str:\n"
        f"    return await work({step!r}, ''.join([{', '.join(inputs)}]))\n"
        for step, inputs in graph.items()
    ]
    sys.modules[module.__name__] = module
    vars(module)["work"] = work
    exec("".join(source), vars(module))  # the benchmark's own steps
    driver = await async_driver.Builder().with_modules(module).build()
    final = [_last(graph)]
    return lambda: driver.execute(final)


async def langgraph(graph: Graph, work: Work) -> Run:
    """A node a step; the state is one dict of outputs, which its reducer merges (a key of the state a step is slower)."""
    from langgraph.graph import START, StateGraph

    class State(TypedDict):
        outputs: Annotated[dict[str, str], lambda old, new: {**old, **new}]

    def node(step: str, inputs: Sequence[str]) -> Callable[[State], Awaitable[Any]]:
        async def run(state: State) -> Any:
            outputs = state["outputs"]
            return {"outputs": {step: await work(step, "".join([outputs[name] for name in inputs]))}}

        return run

    builder = StateGraph(State)
    for step, inputs in graph.items():
        builder.add_node(f"run_{step}", node(step, inputs))
        builder.add_edge([f"run_{name}" for name in inputs] if inputs else START, f"run_{step}")
    compiled = builder.compile()
    return lambda: compiled.ainvoke({"outputs": {}}, {"recursion_limit": len(graph) + 10})


PEERS: Mapping[str, tuple[str, Callable[[Graph, Work], Awaitable[Run]]]] = {
    "Hamilton": ("sf-hamilton", hamilton),
    "LangGraph": ("langgraph", langgraph),
}
"""Name, distribution, and what prepares a run."""


def installed() -> dict[str, Callable[[Graph, Work], Awaitable[Run]]]:
    """Return the peers that are there, by name and version, and print a line for each that is not."""
    found = {}
    for name, (distribution, prepare) in PEERS.items():
        try:
            import_module(prepare.__name__)
            found[f"{name} {version(distribution)}"] = prepare
        except ImportError:
            print(f"{name} is not installed and left out (pip install {distribution})")
    return found
