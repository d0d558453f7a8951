"""The graph of a script's references: layers, cycles, the final step and its dependencies.

A graph maps each step to the steps it refers to, in source order. All functions are pure and iterative, because a script may be a chain of
10,000 steps. The functions take time linear in the number of steps and references, and ignore names that are not in the graph.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, TypeAlias

from attrs import field, frozen

from .trees.lwt import RESERVED, Call, Choice, ListValue, ObjectValue, Reference, Script, Step, Template, Value

Graph: TypeAlias = Mapping[str, tuple[str, ...]]
FinalRule = Literal["final", "only sink", "last"]


def step_references(step: Step) -> list[Reference]:
    """Return the references of ``step`` in source order, including references to ``input``, ``item`` and ``index``."""
    found: list[Reference] = []
    call = step.call
    stack: list[Value] = [option.value for option in reversed(call.options)] if call.options else []
    stack += reversed(call.arguments)
    while stack:
        value = stack.pop()
        if isinstance(value, Template):
            for part in value.parts:
                if isinstance(part, Reference):
                    found.append(part)
        elif isinstance(value, Reference):
            found.append(value)
        elif isinstance(value, Call):
            stack += [option.value for option in reversed(value.options)]
            stack += reversed(value.arguments)
        elif isinstance(value, ListValue):
            stack += reversed(value.items)
        elif isinstance(value, ObjectValue):
            for key, entry in reversed(value.entries):
                stack += (entry, key)
        elif isinstance(value, Choice):
            stack += reversed(value.labels)
    return found


def step_dependencies(
    script: Script, uses: Iterable[tuple[Reference, Step]] | None = None
) -> dict[str, tuple[str, ...]]:  # fmt: skip
    """Return, for each step, the existing steps that it refers to, without duplicates, in the order of their first mention.

    If several steps have the same id, only the last of them is used. ``uses`` are the references of all steps, if already known.
    """
    winners = {step.id: step for step in script.steps}
    targets: dict[str, dict[str, None]] = {step.id: {} for step in script.steps if winners[step.id] is step}
    if uses is None:
        uses = ((reference, step) for step in script.steps for reference in step_references(step))
    for reference, step in uses:
        name = reference.name
        if name in winners and name not in RESERVED and winners[step.id] is step:
            targets[step.id][name] = None
    return {step: tuple(names) for step, names in targets.items()}


def layers(graph: Graph) -> list[tuple[str, ...]]:
    """Return the steps in layers. Each step is in the first layer after all its dependencies. The steps of a layer are in source order.

    Steps in a cycle, and steps that depend on them, can never start and are omitted.
    """
    waiting, dependents = _inverted(graph)
    place = {step: number for number, step in enumerate(graph)}
    found, layer = [], [step for step, count in waiting.items() if not count]
    while layer:
        found.append(tuple(layer))
        ready = []
        for step in layer:
            for dependent in dependents[step]:
                waiting[dependent] -= 1
                if not waiting[dependent]:
                    ready.append(dependent)
        layer = sorted(ready, key=place.__getitem__) if len(ready) > 1 else ready
    return found


def _inverted(graph: Graph) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return two dicts.

    The first maps each step to the number of its dependencies; the second maps each step to its dependents.
    """
    waiting = dict.fromkeys(graph, 0)
    dependents: dict[str, list[str]] = {step: [] for step in graph}
    for step, targets in graph.items():
        for target in dict.fromkeys(targets):
            if target in dependents:
                waiting[step] += 1
                dependents[target].append(step)
    return waiting, dependents


def cycles(graph: Graph) -> list[tuple[str, ...]]:
    """Return one cycle for each group of steps that depend on each other. The cycles are in source order of their first steps.

    A cycle is the shortest path from the group's first step in source order back to that step: ``("a", "b", "a")`` means
    "a refers to b, b refers to a". The groups are the strongly connected components (Tarjan 1972).
    """
    if _in_order(graph):
        return []
    place = {step: number for number, step in enumerate(graph)}
    found = []
    for group in _components(graph):
        first = min(group, key=place.__getitem__)
        if len(group) > 1 or first in graph[first]:
            found.append(_path_back(graph, first, set(group)))
    return sorted(found, key=lambda path: place[path[0]])


def _in_order(graph: Graph) -> bool:
    """Return whether every step refers only to earlier steps, as in most scripts; such a script has no cycle."""
    earlier: set[str] = set()
    for step, targets in graph.items():
        if not earlier.issuperset(targets):
            return False
        earlier.add(step)
    return True


def _components(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components (Tarjan's algorithm with an explicit stack)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_steps: list[str] = []
    is_open: set[str] = set()
    found: list[list[str]] = []
    for root in graph:
        if root in number:
            continue
        work = [(root, iter(graph[root]))]
        number[root] = low[root] = len(number)
        open_steps.append(root)
        is_open.add(root)
        while work:
            step, targets = work[-1]
            for target in targets:
                if target not in graph:
                    continue
                if target not in number:
                    number[target] = low[target] = len(number)
                    open_steps.append(target)
                    is_open.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in is_open:
                    low[step] = min(low[step], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[step])
                if low[step] == number[step]:
                    group: list[str] = []
                    while not group or group[-1] != step:
                        group.append(open_steps.pop())
                    is_open.difference_update(group)
                    found.append(group)
    return found


def _path_back(graph: Graph, first: str, group: set[str]) -> tuple[str, ...]:
    """Return the shortest path inside ``group`` from ``first`` back to ``first`` (breadth first)."""
    came_from: dict[str, str] = {}
    queue = deque([first])
    while queue:
        step = queue.popleft()
        for target in graph[step]:
            if target == first:
                path = [first]
                while step != first:
                    path.append(step)
                    step = came_from[step]
                path.append(first)
                return tuple(reversed(path))
            if target in group and target not in came_from:
                came_from[target] = step
                queue.append(target)
    raise ValueError(f"no path from {first!r} back to itself in the group")


def final_step(script: Script, graph: Graph | None = None) -> tuple[str, FinalRule] | None:
    """Return the step whose output is the result, and the rule that chose it; None for a script without steps.

    The rules are tried in this order: the step ``final``; the only step that no other step refers to; the last step in source order.
    ``graph`` is the result of ``step_dependencies``, if already computed.
    """
    if not script.steps:
        return None
    graph = step_dependencies(script) if graph is None else graph
    if "final" in graph:
        return "final", "final"
    used = {target for step, targets in graph.items() for target in targets if target != step}
    sinks = [step for step in graph if step not in used]
    if len(sinks) == 1:
        return sinks[0], "only sink"
    return script.steps[-1].id, "last"


def needed(graph: Graph, final: str) -> set[str]:
    """Return ``final`` and all steps that it refers to, directly or through other steps."""
    found, stack = {final}, [final]
    while stack:
        for target in graph.get(stack.pop(), ()):
            if target in graph and target not in found:
                found.add(target)
                stack.append(target)
    return found


def critical_path(graph: Graph, weight: Callable[[str], float] = lambda _: 1.0) -> tuple[list[str], float]:
    """Return the chain of dependent steps that takes the longest time, and this time. The chain begins with its earliest step.

    ``weight`` returns a step's time (any unit, not negative). Steps that cannot start (see ``layers``) are omitted.
    """
    length: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for layer in layers(graph):
        for step in layer:
            slowest = max((target for target in graph[step] if target in length), key=length.__getitem__, default=None)
            before[step] = slowest
            length[step] = weight(step) + (length[slowest] if slowest is not None else 0.0)
    if not length:
        return [], 0.0
    last = max(length, key=length.__getitem__)
    path, at = [last], before[last]
    while at is not None:
        path.append(at)
        at = before[at]
    return path[::-1], length[last]


# Diagrams of a graph of steps, as text for Mermaid and Graphviz. Arrows follow the direction of the data.

Diagram = Mapping[str, tuple[str, ...]]
"""Maps each step to the steps whose outputs it uses."""


@frozen
class Drawn:
    """A graph to draw: the steps with their inputs, and the labels of the steps.

    The steps in ``finals`` are drawn as results. The steps that are not in ``needed`` have a dashed border. ``inside`` maps a step to the
    graph of the script that it runs.
    """

    graph: Diagram
    labels: Mapping[str, str]
    finals: Collection[str]
    needed: Collection[str]
    inside: "Mapping[str, Drawn]" = field(factory=dict)


def mermaid(
    graph: Diagram,
    operations: Mapping[str, str],
    finals: Collection[str],
    needed: Collection[str],
    inside: Mapping[str, Drawn] | None = None,
) -> str:
    """Return a Mermaid flowchart. Nodes are named by numbers, because ids such as ``end`` or ``5.check`` are invalid in Mermaid.

    ``operations`` maps each step to its operation. The other parameters are those of ``Drawn``. The steps of a script that a step runs are
    drawn inside the step.
    """
    lines, unneeded = ["flowchart TD"], list[str]()
    _mermaid_steps(Drawn(graph, operations, finals, needed, inside or {}), "s", "    ", lines, unneeded)
    if unneeded:
        lines += [
            "    classDef unneeded stroke-dasharray: 4 4,opacity: 0.5",
            f"    class {','.join(unneeded)} unneeded",
        ]
    return "\n".join(lines)


def _mermaid_steps(drawn: Drawn, prefix: str, indent: str, lines: list[str], unneeded: list[str]) -> None:
    number = {step: f"{prefix}{position}" for position, step in enumerate(drawn.graph)}
    for step in drawn.graph:
        label = _mermaid_text(f"{step} · {drawn.labels[step]}")
        if (inner := drawn.inside.get(step)) is not None:
            lines.append(f'{indent}subgraph {number[step]}["{label}"]')
            _mermaid_steps(inner, f"{number[step]}_", f"{indent}    ", lines, unneeded)
            lines.append(f"{indent}end")
            continue
        left, right = ('(["', '"])') if step in drawn.finals else ('["', '"]')
        lines.append(f"{indent}{number[step]}{left}{label}{right}")
    lines += [f"{indent}{number[source]} --> {number[step]}" for step in drawn.graph for source in drawn.graph[step]]
    unneeded += [number[step] for step in drawn.graph if step not in drawn.needed]


def _mermaid_text(text: str) -> str:
    """Return ``text`` escaped for a quoted Mermaid label: markup characters become numbers between ``#`` and ``;``."""
    return "".join(c if c.isalnum() or c in " ._-·" else f"#{ord(c)};" for c in text)


def dot(
    graph: Diagram,
    operations: Mapping[str, str],
    finals: Collection[str],
    needed: Collection[str],
    title: str = "script",
    inside: Mapping[str, Drawn] | None = None,
) -> str:
    """Return a Graphviz digraph. ``title`` is its name and must be an identifier; the other parameters are those of ``mermaid``."""
    lines = [f"digraph {title} {{", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    _dot_steps(Drawn(graph, operations, finals, needed, inside or {}), "", "  ", lines)
    return "\n".join([*lines, "}"])


def _dot_steps(drawn: Drawn, prefix: str, indent: str, lines: list[str]) -> None:
    for step in drawn.graph:
        name = f"{prefix}{step}"
        label = f"{step}\n{drawn.labels[step]}"
        marks = [f"label={_dot_text(label)}"]
        if step in drawn.finals:
            marks.append("peripheries=2")
        if step not in drawn.needed:
            marks.append("style=dashed")
        own = f"{_dot_text(name)} [{', '.join(marks)}];"
        if (inner := drawn.inside.get(step)) is None:
            lines.append(f"{indent}{own}")
            continue
        # Graphviz draws no edges to clusters, so the step is a node inside the cluster of its script.
        lines += [
            f"{indent}subgraph {_dot_text(f'cluster {name}')} {{",
            f"{indent}  label={_dot_text(step)};",
            f"{indent}  {own}",
        ]
        _dot_steps(inner, f"{name}/", f"{indent}  ", lines)
        lines.append(f"{indent}}}")
    lines += [
        f"{indent}{_dot_text(f'{prefix}{source}')} -> {_dot_text(f'{prefix}{step}')};"
        for step in drawn.graph
        for source in drawn.graph[step]
    ]


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
