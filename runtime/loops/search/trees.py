"""The tree of a search as data that can be printed, saved as JSON and reloaded, or drawn.

Each state is represented by its hash and the sizes of its keys; the state itself is not included.
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from types import NoneType
from typing import Any

from attrs import asdict, field, frozen

from ....lang.dependencies import dot, mermaid
from ....lang.diagnostic import json_words
from ....lang.errors import KnotworkError
from ...excerpts import cut
from .nodes import Node

FORMAT = "knotwork-search-1"
_LINE = 100


class TreeError(KnotworkError, ValueError):
    """Raised for text that is not a saved tree."""


@frozen
class TreeBranch:
    """One action: its commands, confidence and result. ``child`` is the number of the resulting state. See ``nodes.Branch``."""

    commands: tuple[str, ...]
    confidence: float
    rationale: str
    answer: str | None
    status: str
    outcome: str
    message: str
    child: int | None
    visits: int
    mean: float | None
    simulated: bool


@frozen
class TreeNode:
    """One state: its hash, the declared keys with their sizes, its value, and its branches."""

    number: int
    parent: int | None
    depth: int
    hash: str
    keys: Mapping[str, int]
    value: float | None
    visits: int
    answer: str | None
    branches: tuple[TreeBranch, ...] = ()


@frozen
class Tree:
    """The tree: ``nodes`` are sorted by number, the root first; ``best`` is the number of the best node."""

    nodes: tuple[TreeNode, ...] = field()
    best: int = 0

    def way(self, number: int) -> tuple[int, ...]:
        """Return the node numbers from the root to node ``number``, along the path on which the search first reached it."""
        way = [number]
        while (parent := self.nodes[way[-1]].parent) is not None:
            way.append(parent)
        return tuple(reversed(way))

    # As text

    def text(self) -> str:
        """Return the tree as readable text, one line per branch; ``*`` marks the path to the best state."""
        way = set(self.way(self.best))
        root = self.nodes[0]
        lines = [f"* {_node_text(root)}"]
        # An explicit stack instead of recursion: a path may be as long as the budget allows.
        waiting = [(root, branch, 1) for branch in reversed(root.branches)]
        while waiting:
            node, branch, depth = waiting.pop()
            child = None if branch.child is None else self.nodes[branch.child]
            own = child is not None and branch.status == "done" and child.parent == node.number
            mark = "*" if own and child is not None and child.number in way else " "
            lines.append(f"{mark} {'  ' * depth}{_branch_text(branch, child, own)}")
            if child is not None and own:
                waiting += [(child, each, depth + 1) for each in reversed(child.branches)]
        return "\n".join(lines)

    # As JSON

    def as_json(self) -> dict[str, Any]:
        """Return the tree as a JSON object."""
        return {"format": FORMAT, "best": self.best, "nodes": [asdict(node) for node in self.nodes]}

    def dumps(self) -> str:
        """Return the tree as JSON text; equal trees give equal texts."""
        return json.dumps(self.as_json(), ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, document: Any) -> "Tree":
        """Return the tree from the result of ``as_json`` or of ``dumps``. Raises ``TreeError``."""
        if isinstance(document, str):
            try:
                document = json.loads(document)
            except (ValueError, RecursionError) as error:
                why = json_words(error) if isinstance(error, json.JSONDecodeError) else str(error)
                raise TreeError(f"the text is not JSON: {why}"[:300]) from None
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise TreeError(f"the text is not a saved search: its format is not {FORMAT}")
        try:
            nodes = tuple(_node(each) for each in document["nodes"])
            tree = cls(nodes, document["best"])
        except (TypeError, KeyError, AttributeError) as error:
            raise TreeError(f"the saved search is incomplete: {error}"[:300]) from None
        _check(tree)
        return tree

    # As a picture

    def mermaid(self) -> str:
        """Return a Mermaid flowchart: the best state is round, and branches that do not lead to the best state are dashed."""
        return mermaid(*self._graph())

    def dot(self) -> str:
        """Return the flowchart of ``mermaid`` as a Graphviz digraph."""
        return dot(*self._graph(), title="search")

    def _graph(self) -> tuple[dict[str, tuple[str, ...]], dict[str, str], set[str], set[str]]:
        above: dict[int, list[int]] = {node.number: [] for node in self.nodes}
        by: dict[int, str] = {}
        for node in self.nodes:
            for branch in node.branches:
                if branch.child in (None, node.number) or node.number in above[branch.child]:
                    continue
                above[branch.child].append(node.number)
                by.setdefault(branch.child, branch.rationale or branch.answer or "; ".join(branch.commands))
        words = {
            f"n{node.number}": cut(f"{_value_text(node.value)} {by.get(node.number, 'root')}", 60)
            + (f" ({node.visits} visits)" if node.visits else "")
            for node in self.nodes
        }
        graph = {f"n{number}": tuple(f"n{each}" for each in parents) for number, parents in above.items()}
        return graph, words, {f"n{self.best}"}, {f"n{number}" for number in self.way(self.best)}


def tree_of(nodes: Sequence[Node], best: Node) -> Tree:
    """Return the tree of a search as data."""
    return Tree(tuple(_data(node) for node in nodes), best.number)


def _data(node: Node) -> TreeNode:
    return TreeNode(
        node.number,
        None if node.parent is None else node.parent.number,
        node.depth,
        node.snapshot.hash,
        {declared.key: declared.size for declared in node.snapshot.declared()},
        node.value,
        node.visits,
        node.answer,
        tuple(
            TreeBranch(
                branch.action.commands, branch.action.confidence, branch.action.rationale, branch.action.answer,
                branch.status, branch.outcome, branch.message, None if branch.child is None else branch.child.number,
                branch.visits, branch.total / branch.visits if branch.visits else None, branch.simulated,
            )
            for branch in node.branches
        ),
    )  # fmt: skip


_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("confidence",), (int, float)), **dict.fromkeys(("value", "mean"), (int, float, NoneType)),
    **dict.fromkeys(("rationale", "status", "outcome", "message", "hash"), (str,)), "answer": (str, NoneType),
    **dict.fromkeys(("number", "depth", "visits"), (int,)), **dict.fromkeys(("child", "parent"), (int, NoneType)),
    "simulated": (bool,), "keys": (dict,), "branches": (list, tuple), "commands": (list, tuple),
}  # fmt: skip


def _node(each: Mapping[str, Any]) -> TreeNode:
    branches = tuple(_branch(branch) for branch in _typed(each).get("branches", ()))
    if not all(isinstance(key, str) and type(size) is int for key, size in each["keys"].items()):
        raise TypeError("the size of a key is not a whole number")
    return TreeNode(**{**each, "branches": branches})


def _branch(each: Mapping[str, Any]) -> TreeBranch:
    commands = tuple(_typed(each)["commands"])
    if not all(isinstance(command, str) for command in commands):
        raise TypeError("a command is not a string")
    return TreeBranch(**{**each, "commands": commands})


def _typed(each: Any) -> Mapping[str, Any]:
    """Return ``each`` if its values have the right types, on which printing and drawing rely. Raises ``TypeError``."""
    if not isinstance(each, Mapping):
        raise TypeError("a state, or a branch, is not an object")
    for name, value in each.items():
        wanted = _TYPES.get(name, (object,))
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise TypeError(f"{name} is not of type {wanted[0].__name__}")
        if isinstance(value, float) and not isfinite(value):
            raise TypeError(f"{name} is not a finite number")
    return each


def _check(tree: Tree) -> None:
    """Raise ``TreeError`` for a tree that refers to unknown nodes or has cycles."""
    count = len(tree.nodes)
    if not count or tree.nodes[0].parent is not None:
        raise TreeError("the first state of a saved search must be its root")
    if type(tree.best) is not int or not 0 <= tree.best < count:
        raise TreeError("the best state is not one of the saved states")
    for at, node in enumerate(tree.nodes):
        parent_fits = at == 0 or (type(node.parent) is int and 0 <= node.parent < at)
        children = [branch.child for branch in node.branches if branch.child is not None]
        if (
            node.number != at
            or not parent_fits
            or not all(type(each) is int and 0 <= each < count for each in children)
        ):
            raise TreeError(f"state {at} refers to a state that does not exist")


def _value_text(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _node_text(node: TreeNode) -> str:
    held = ", ".join(f"{key} {size}" for key, size in node.keys.items())
    visits = f", {node.visits} visits" if node.visits else ""
    return f"[{node.number}] value {_value_text(node.value)}{visits}, {node.hash[:8]}{f' ({cut(held, 60)})' if held else ''}"


def _branch_text(branch: TreeBranch, child: TreeNode | None, own: bool) -> str:
    what = branch.rationale or branch.answer or "; ".join(branch.commands)
    said = f"{branch.confidence:.2f} {cut(' '.join(what.split()), _LINE)}"
    if branch.simulated:
        said += " (by a rollout)"
    if child is not None and own:
        outcome = "" if branch.outcome == "success" else f" {branch.outcome}"
        return f"{said} ->{outcome} {_node_text(child)}"
    if child is not None:
        return f"{said} -> as [{child.number}]"
    if branch.status == "failed":
        return f"{said} -> {branch.outcome}: {cut(' '.join(branch.message.split()), _LINE)}"
    return f"{said} -> not tried"
