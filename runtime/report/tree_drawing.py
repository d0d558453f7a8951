"""The tree of a search drawn as SVG shapes: states from left to right by depth, the way to the best one marked.

States that were there already, and branches to which nothing came, are in the lines below the picture (``branches``).
"""

from collections.abc import Mapping, Sequence

from attrs import frozen

from ..records import cut
from ..search.trees import Tree, TreeNode

__all__ = ["TreeDrawing", "draw_tree"]

_MOST = 300
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
    shown = tree.nodes[:_MOST]  # parents come before their children
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
