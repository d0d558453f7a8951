"""The tree of a search as lines, a branch each, indented by how deep it lies; the way to the best state is marked."""

from attrs import frozen

from ..records import cut
from ..search.trees import Tree, TreeBranch, TreeNode

__all__ = ["Row", "rows"]

_MOST = 1_000
_WORDS = 160
_DEEPEST = 12
"""Levels that are indented: what lies deeper stands below each other."""


@frozen
class Row:
    """A line. ``way``: it leads to the best state; ``failed``: nothing came of it."""

    depth: int
    text: str
    way: bool = False
    failed: bool = False


def rows(tree: Tree) -> tuple[list[Row], int]:
    """Return the first lines, parents before children, and how many more there are."""
    way = set(tree.way(tree.best))
    told = [Row(0, f"[0] the state at the beginning, {_worth(tree.nodes[0])}", way=True)]
    left_out = 0
    waiting = [(tree.nodes[0], branch, 1) for branch in reversed(tree.nodes[0].branches)]
    while waiting:
        node, branch, depth = waiting.pop()
        child = None if branch.child is None else tree.nodes[branch.child]
        own = child is not None and branch.status == "done" and child.parent == node.number
        if len(told) < _MOST:
            led = own and child is not None and child.number in way
            told.append(Row(min(depth, _DEEPEST), _line(branch, child, own=own), led, branch.status == "failed"))
        else:
            left_out += 1
        if child is not None and own:
            waiting += [(child, each, depth + 1) for each in reversed(child.branches)]
    return told, left_out


def _line(branch: TreeBranch, child: TreeNode | None, *, own: bool) -> str:
    said = cut(" ".join((branch.rationale or branch.answer or "; ".join(branch.commands)).split()), _WORDS)
    sure = f"{said} (confidence {branch.confidence:.2f}{', by a rollout' if branch.simulated else ''})"
    if child is not None and own:
        answered = f", answers: {cut(' '.join(child.answer.split()), _WORDS)}" if child.answer else ""
        outcome = "" if branch.outcome == "success" else f" {branch.outcome},"
        return f"{sure} →{outcome} [{child.number}] {_worth(child)}{answered}"
    if child is not None:
        return f"{sure} → the same state as [{child.number}]"
    if branch.status == "failed":
        return f"{sure} → {branch.outcome}: {cut(' '.join(branch.message.split()), _WORDS)}"
    return f"{sure} → not tried"


def _worth(node: TreeNode) -> str:
    held = ", ".join(f"{key} {size}" for key, size in list(node.keys.items())[:8])
    worth = "worth is not known" if node.value is None else f"worth {node.value:.2f}"
    visits = f", {node.visits} visits" if node.visits else ""
    return f"{worth}{visits}{f', holds {held}' if held else ''}"
