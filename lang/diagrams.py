"""A graph of steps as text for two drawing programs: Mermaid and Graphviz. Arrows run the way the data flows."""

from collections.abc import Collection, Mapping

__all__ = ["Graph", "dot", "mermaid"]

Graph = Mapping[str, tuple[str, ...]]
"""For each step those that it takes from."""


def mermaid(graph: Graph, operations: Mapping[str, str], finals: Collection[str], needed: Collection[str]) -> str:
    """Return a Mermaid flowchart. Nodes have numbers for names: an id such as ``end`` or ``5.check`` is none there.

    ``operations`` say what each step does; ``finals`` are drawn as results, what is not ``needed`` for them is dashed.
    """
    number = {step: f"s{position}" for position, step in enumerate(graph)}
    lines = ["flowchart TD"]
    for step in graph:
        label = _mermaid_text(f"{step} · {operations[step]}")
        left, right = ('(["', '"])') if step in finals else ('["', '"]')
        lines.append(f"    {number[step]}{left}{label}{right}")
    lines += [f"    {number[source]} --> {number[step]}" for step in graph for source in graph[step]]
    unneeded = [number[step] for step in graph if step not in needed]
    if unneeded:
        lines += [
            "    classDef unneeded stroke-dasharray: 4 4,opacity: 0.5",
            f"    class {','.join(unneeded)} unneeded",
        ]
    return "\n".join(lines)


def _mermaid_text(text: str) -> str:
    """Write ``text`` inside a quoted Mermaid label, where markup characters are numbers between ``#`` and ``;``."""
    return "".join(c if c.isalnum() or c in " ._-·" else f"#{ord(c)};" for c in text)


def dot(
    graph: Graph, operations: Mapping[str, str], finals: Collection[str], needed: Collection[str], title: str = "script"
) -> str:
    """Return a Graphviz digraph of the same; ``title`` is its name, an identifier."""
    lines = [f"digraph {title} {{", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    for step in graph:
        label = f"{step}\n{operations[step]}"
        marks = [f"label={_dot_text(label)}"]
        if step in finals:
            marks.append("peripheries=2")
        if step not in needed:
            marks.append("style=dashed")
        lines.append(f"  {_dot_text(step)} [{', '.join(marks)}];")
    lines += [f"  {_dot_text(source)} -> {_dot_text(step)};" for step in graph for source in graph[step]]
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
