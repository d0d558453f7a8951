"""What ``plan`` shows of a seed: its compute DAG, as text, JSON or a drawing."""

import sys
from typing import Any

from .....lang.dependencies import layers
from .....lang.diagnostic import printable
from .....lang.diagrams import Graph
from .....lang.evaluate.seed.explanation import step_in_words
from .....lang.evaluate.seed.step_dependencies import dot, mermaid, needed_steps, step_graph
from .....lang.trees.seed import FormulaSeed
from ..shared.exit import Exit
from ..shared.output import colour, json_text, paint
from ..tasks.planning import Form
from .outgoing.tally import many

__all__ = ["show_seed_plan"]

_WIDEST = 30


def show_seed_plan(seed: FormulaSeed, form: Form) -> int:
    """Write the plan to stdout."""
    match form:
        case "text":
            print(_text(seed))
        case "json":
            print(json_text(_json(seed)))
        case "mermaid":
            print(mermaid(seed))
        case "dot":
            print(dot(seed))
    return Exit.DONE


def _layers(seed: FormulaSeed, graph: Graph) -> list[tuple[str, ...]]:
    """Return the steps in layers; the extractions and the context, which the graph has as steps, are none."""
    found = (tuple(name for name in layer if name in seed.step_by_name) for layer in layers(graph))
    return [layer for layer in found if layer]


def _text(seed: FormulaSeed) -> str:
    graph = step_graph(seed)
    needed, steps, on = needed_steps(graph, seed.outputs), seed.step_by_name, colour(sys.stdout)
    found = _layers(seed, graph)
    lines = [
        f"{printable(seed.source.name)}: {many(len(seed.fields), 'field')} of each review, "
        f"{many(len(steps), 'step')} in {many(len(found), 'layer')}",
        f"outputs: {paint(printable(', '.join(seed.outputs) or 'none'), 'bold', on)}",
        "",
    ]
    width = min(_WIDEST, max(map(len, steps), default=0))
    for number, layer in enumerate(found, 1):
        for position, name in enumerate(layer):
            head = f"layer {number}" if position == 0 else ""
            mark = " " if name in needed else "x"
            row = f"{head:<10}{mark} {name:<{width}}  {step_in_words(steps[name])}"
            lines.append(paint(printable(row), "dim", on and name not in needed))
    unneeded = [name for name in steps if name not in needed]
    if unneeded:
        lines += ["", printable(f"x no output needs it: {', '.join(unneeded)}")]
    return "\n".join(lines)


def _json(seed: FormulaSeed) -> dict[str, Any]:
    graph = step_graph(seed)
    needed, found = needed_steps(graph, seed.outputs), _layers(seed, graph)
    layer_of = {name: number for number, layer in enumerate(found, 1) for name in layer}
    return {
        "file": seed.source.name,
        "fields": [extracted.name for extracted in seed.fields],
        "outputs": list(seed.outputs),
        "layers": found,
        "unneeded": [name for name in seed.step_by_name if name not in needed],
        "steps": [
            {
                "name": step.name,
                "computes": step_in_words(step),
                "refers_to": list(graph[step.name]),
                "layer": layer_of.get(step.name),
                "needed": step.name in needed,
            }
            for step in seed.steps
        ],
    }
