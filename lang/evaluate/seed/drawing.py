"""The compute DAG of a seed, for drawing: which step takes from which, down from the extractions and the context."""

from ... import drawing
from ...drawing import Graph
from ...expr import Field
from ...node import walk
from ...seed import Aggregate, Case, Const, DefineFilter, FormulaSeed, Lookup, SeedStep
from .needs import EXTRACTIONS, needs, reads_extractions

__all__ = ["dot", "mermaid", "needed_steps", "step_graph"]

_CONTEXT = "context"


def step_graph(seed: FormulaSeed) -> Graph:
    """Return for each step the steps that it uses, with ``extractions`` and ``context`` as steps where they are used.

    A step that uses a filter takes the extractions from that.
    """
    steps = seed.step_by_name
    graph: dict[str, tuple[str, ...]] = {EXTRACTIONS: (), _CONTEXT: ()}
    for step in seed.steps:
        used = tuple(need for need in needs(step) if need in steps)
        filtered = any(isinstance(steps[need], DefineFilter) for need in used)
        inputs = [EXTRACTIONS] if reads_extractions(step) and not filtered else []
        if any(isinstance(node, Field) and node.namespace == "context" for node in walk(step)):
            inputs.append(_CONTEXT)
        graph[step.name] = (*inputs, *used)
    read = {source for sources in graph.values() for source in sources}
    return {name: sources for name, sources in graph.items() if name in steps or name in read}


def needed_steps(graph: Graph, outputs: tuple[str, ...]) -> set[str]:
    """Return ``outputs`` and all that they need, directly or not."""
    needed: set[str] = set()
    stack = [name for name in outputs if name in graph]
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += graph[name]
    return needed


def mermaid(seed: FormulaSeed) -> str:
    """Draw the compute DAG as a Mermaid flowchart. The outputs are round; what none of them needs is dashed."""
    graph = step_graph(seed)
    return drawing.mermaid(graph, _operations(seed, graph), seed.outputs, needed_steps(graph, seed.outputs))


def dot(seed: FormulaSeed) -> str:
    """Draw the compute DAG as a Graphviz digraph. The outputs have a double frame; what none of them needs is dashed."""
    graph = step_graph(seed)
    needed = needed_steps(graph, seed.outputs)
    return drawing.dot(graph, _operations(seed, graph), seed.outputs, needed, title="seed")


def _operations(seed: FormulaSeed, graph: Graph) -> dict[str, str]:
    named = {step.name: _operation(step) for step in seed.steps}
    return {name: named.get(name, "input") for name in graph}


def _operation(step: SeedStep) -> str:
    match step:
        case DefineFilter():
            return "define_filter"
        case Aggregate():
            return step.operation
        case Lookup():
            return "lookup"
        case Case():
            return "case"
        case Const():
            return "const"
        case _:
            return "expr"
