"""The tree of a search as lines, a branch each, indented by how deep it lies; the way to the best state is marked."""

from collections.abc import Mapping, Sequence

from attrs import frozen

from ..gasl.records import cut
from ..loops.search.trees import Tree, TreeBranch, TreeNode

__all__ = ["Row", "TreeDrawing", "draw_tree", "rows"]

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


# The tree of a search drawn as SVG shapes: states from left to right by depth, the way to the best one marked.
# States that were there already, and branches to which nothing came, are in the lines below the picture (``branches``).


_MOST_STATES = 300
"""States that are drawn, the first ones: those nearest to how the search went."""
_ACROSS, _DOWN, _MARGIN = 120.0, 38.0, 40.0
_TITLE = 300


@frozen
class State:
    """A state: where it stands, what is written beside it, what it says in full, whether it lies on the way to the best one."""

    x: float
    y: float
    label: str
    title: str
    way: bool


@frozen
class Way:
    """A branch between two states."""

    x1: float
    y1: float
    x2: float
    y2: float
    way: bool


@frozen
class TreeDrawing:
    """The picture, in units of its own; ``left_out`` counts states that are not drawn."""

    states: tuple[State, ...]
    ways: tuple[Way, ...]
    width: float
    height: float
    left_out: int


def draw_tree(tree: Tree) -> TreeDrawing:
    """Lay out the first states: each above the middle of those that it led to. The same tree gives the same picture."""
    shown = tree.nodes[:_MOST_STATES]  # parents come before their children
    children: dict[int, list[int]] = {}
    for node in shown[1:]:
        children.setdefault(node.parent or 0, []).append(node.number)
    down = _places(shown, children)
    way = set(tree.way(tree.best))
    places = {node.number: (_MARGIN + node.depth * _ACROSS, _MARGIN + down[node.number] * _DOWN) for node in shown}
    by = {branch.child: branch.rationale or "; ".join(branch.commands) for node in shown for branch in node.branches}
    states = tuple(
        State(*places[node.number], _label(node), _title(node, by.get(node.number, "")), node.number in way)
        for node in shown
    )
    ways = tuple(Way(*places[node.parent or 0], *places[node.number], node.number in way) for node in shown[1:])
    width = max(x for x, _ in places.values()) + _ACROSS
    height = max(y for _, y in places.values()) + _MARGIN
    return TreeDrawing(states, ways, width, height, len(tree.nodes) - len(shown))


def _places(shown: Sequence[TreeNode], children: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Return how far down each state stands, in lines. From the last to the first, as a path may be too deep to recurse."""
    order: list[int] = []
    waiting = [0]
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += reversed(children.get(number, ()))
    down: dict[int, float] = {}
    for line, number in enumerate(each for each in order if each not in children):
        down[number] = float(line)
    for number in reversed(order):
        if number in children:
            below = [down[child] for child in children[number]]
            down[number] = (below[0] + below[-1]) / 2
    return down


def _label(node: TreeNode) -> str:
    worth = "?" if node.value is None else f"{node.value:.2f}"
    return f"[{node.number}] {worth}{' answers' if node.answer else ''}"


def _title(node: TreeNode, by: str) -> str:
    held = ", ".join(f"{key} {size}" for key, size in list(node.keys.items())[:8])
    return cut(" · ".join(each for each in (by, held, node.answer or "") if each), _TITLE)
