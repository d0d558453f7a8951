"""Lays out the graph around the findings, and the tree of a search, as SVG shapes. The same data gives the same picture."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from ...adapters.graph import AdapterError, GraphAdapter
from ..excerpts import cut
from ..loops.search.trees import Tree, TreeBranch, TreeNode

# Placing the labels of nodes, so that labels and nodes overlap as little as possible.

Place: TypeAlias = tuple[float, float, str]
_Box: TypeAlias = tuple[float, float, float, float]

_LETTER, _LINE, _RADIUS = 6.2, 13.0, 9.0
"""The average width of a letter, the height of a line, and the radius of a node with some margin, in units of the drawing."""


def place_labels(spots: Sequence[Place], *, width: float, height: float) -> list[Place]:
    """Return the position of the label for each spot (x, y, name): x and y of the baseline, and the ``text-anchor`` for SVG.

    Labels are placed one after the other. Each label is placed to the right or left of its node, or below or above it, where it overlaps
    least with other labels and nodes.
    """
    taken: list[_Box] = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y, _ in spots]
    found: list[Place] = []
    for number, (x, y, name) in enumerate(spots):
        long = len(name) * _LETTER
        tried: list[tuple[float, int, Place, _Box]] = []
        for order, (at_x, at_y, anchor) in enumerate(
            ((x + 11, y + 4, "start"), (x - 11, y + 4, "end"), (x, y + 21, "middle"), (x, y - 12, "middle"))
        ):
            left = {"start": at_x, "end": at_x - long, "middle": at_x - long / 2}[anchor]
            box = (left, at_y - _LINE + 3, left + long, at_y + 3)
            covered = sum(_common(box, other) for each, other in enumerate(taken) if each != number)
            outside = long * _LINE - _common(box, (0, 0, width, height))
            tried.append((covered + 4 * outside, order, (round(at_x, 1), round(at_y, 1), anchor), box))
        _, _, place, box = min(tried)
        found.append(place)
        taken.append(box)
    return found


def _common(one: _Box, other: _Box) -> float:
    """Return the area that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


_MOST_NODES = 60
_MOST_EDGES = 200
_WIDTH, _HEIGHT = 960.0, 600.0
_MARGIN_X, _MARGIN_Y = 110.0, 40.0
_LABEL = 26
_COLOURS = 8


@frozen
class Spot:
    """A node in the drawing: its position, its shortened label and the position of the label, its full title, the number of its colour.

    The kind of a node determines its colour. ``anchor`` is the ``text-anchor`` of the label in SVG.
    """

    x: float
    y: float
    label: str
    title: str
    colour: int
    label_x: float
    label_y: float
    anchor: str


@frozen
class Line:
    """An edge between two positions, and its title."""

    x1: float
    y1: float
    x2: float
    y2: float
    title: str


@frozen
class Drawing:
    """A drawing of nodes and edges. ``kinds`` are the kinds of nodes and their colours, ``left_out`` is the number of nodes not drawn."""

    spots: tuple[Spot, ...]
    lines: tuple[Line, ...]
    kinds: tuple[tuple[str, int], ...]
    left_out: int
    width: float = _WIDTH
    height: float = _HEIGHT


def draw(nodes: Sequence[Any], edges: Sequence[tuple[Any, Any]], graph: GraphAdapter | None) -> Drawing | None:
    """Lay out the nodes that findings name, and the edges between these nodes; return None if there is nothing to draw.

    If ``graph`` is given, the names and kinds of the nodes and all edges between the nodes are read from the graph. Otherwise only the
    edges that the evidence names are drawn.
    """
    shown = list(nodes)[:_MOST_NODES]
    if not shown:
        return None
    chosen = set(shown)
    links: dict[tuple[Any, Any], str] = {(a, b): "" for a, b in edges if a in chosen and b in chosen}
    items: dict[Any, Mapping[str, Any]] = {}
    label = None
    if graph is not None:
        label = graph.schema.label_attribute
        items = {node: item for node in shown if (item := graph.get_node(node)) is not None}
        try:
            among = graph.connect(shown, shown).items
        except AdapterError:
            among = []
        for edge in among:
            links[(edge["source"], edge["target"])] = _relation(edge, graph.schema.relation_attribute)
    kinds = {node: str(items.get(node, {}).get(label, "") if label else "") for node in shown}
    names = sorted({kind for kind in kinds.values() if kind})
    colours = {kind: number % _COLOURS for number, kind in enumerate(names)}
    places = _places(shown, list(links))
    labels = place_labels([(*places[node], _cut(_name(node, items))) for node in shown], width=_WIDTH, height=_HEIGHT)
    spots = tuple(
        Spot(*places[node], _cut(_name(node, items)), _title(_name(node, items), kinds[node]),
             colours.get(kinds[node], 0), x, y, anchor)
        for node, (x, y, anchor) in zip(shown, labels, strict=True)
    )  # fmt: skip
    lines = tuple(
        Line(*places[a], *places[b], title)
        for (a, b), title in list(links.items())[:_MOST_EDGES]
        if a in places and b in places and a != b
    )
    legend = tuple((kind[:100], colours[kind]) for kind in names[:_COLOURS])
    return Drawing(spots, lines, legend, len(nodes) - len(shown))


def _title(name: str, kind: str) -> str:
    return f"{name[:300]} ({kind[:100]})" if kind else name[:300]


def _places(nodes: Sequence[Any], edges: Sequence[tuple[Any, Any]]) -> dict[Any, tuple[float, float]]:
    """Return a position for every node, by NetworkX's force-directed layout with a fixed random seed."""
    import networkx as nx

    plain = nx.Graph()
    plain.add_nodes_from(nodes)
    plain.add_edges_from(edges)
    found = nx.spring_layout(plain, seed=7, k=2.2 / math.sqrt(len(nodes)), iterations=120)
    xs, ys = [float(x) for x, _ in found.values()], [float(y) for _, y in found.values()]
    return {
        node: (
            round(_spread(float(x), xs, _MARGIN_X, _WIDTH), 1),
            round(_spread(float(y), ys, _MARGIN_Y, _HEIGHT), 1),
        )
        for node, (x, y) in found.items()
    }


def _spread(value: float, among: Sequence[float], margin: float, size: float) -> float:
    low, high = min(among), max(among)
    return size / 2 if high - low < 1e-9 else margin + (value - low) / (high - low) * (size - 2 * margin)


def _name(node: Any, items: Mapping[Any, Mapping[str, Any]]) -> str:
    item = items.get(node, {})
    return next((str(item[key]) for key in ("name", "label", "title") if isinstance(item.get(key), str)), str(node))


def _relation(edge: Mapping[str, Any], attribute: str | None) -> str:
    said = [edge.get(attribute) if attribute else None, edge.get("description")]
    return next((str(text)[:200] for text in said if text), "")


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


# The tree of a search as lines of text: one line for each branch, indented by depth; the path to the best state is marked.

_MOST = 1_000
_WORDS = 160
_DEEPEST = 12
"""Maximum number of indentation levels; deeper branches are shown at the last level."""


@frozen
class Row:
    """A line for a branch. ``way`` is true if the branch is on the path to the best state, ``failed`` if the branch has no result."""

    depth: int
    text: str
    way: bool = False
    failed: bool = False


def rows(tree: Tree) -> tuple[list[Row], int]:
    """Return the first lines for ``tree``, parents before children, and the number of remaining lines."""
    way = set(tree.way(tree.best))
    told = [Row(0, f"[0] the state at the beginning, {_state_text(tree.nodes[0])}", way=True)]
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
        return f"{sure} →{outcome} [{child.number}] {_state_text(child)}{answered}"
    if child is not None:
        return f"{sure} → the same state as [{child.number}]"
    if branch.status == "failed":
        return f"{sure} → {branch.outcome}: {cut(' '.join(branch.message.split()), _WORDS)}"
    return f"{sure} → not tried"


def _state_text(node: TreeNode) -> str:
    held = ", ".join(f"{key} {size}" for key, size in list(node.keys.items())[:8])
    worth = "value unknown" if node.value is None else f"value {node.value:.2f}"
    visits = f", {node.visits} visits" if node.visits else ""
    return f"{worth}{visits}{f', holds {held}' if held else ''}"


# The tree of a search drawn as SVG shapes: states from left to right by depth; the path to the best state is marked. Merged states and
# branches without a result appear only in the lines below the picture (``rows``).

_MOST_STATES = 300
"""Maximum number of states that are drawn: the first states of the search."""
_ACROSS, _DOWN, _MARGIN = 120.0, 38.0, 40.0
_TITLE = 300


@frozen
class State:
    """A state: its position, its label, its full title, and whether it is on the path to the best state."""

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
    """The picture of a tree, with its size in units of the drawing; ``left_out`` is the number of states that are not drawn."""

    states: tuple[State, ...]
    ways: tuple[Way, ...]
    width: float
    height: float
    left_out: int


def draw_tree(tree: Tree) -> TreeDrawing:
    """Lay out the first states from left to right; each state is centred vertically on its children. Equal trees give equal pictures."""
    shown = tree.nodes[:_MOST_STATES]  # parents come before their children
    children: dict[int, list[int]] = {}
    for node in shown[1:]:
        children.setdefault(node.parent or 0, []).append(node.number)
    down = _state_places(shown, children)
    way = set(tree.way(tree.best))
    places = {node.number: (_MARGIN + node.depth * _ACROSS, _MARGIN + down[node.number] * _DOWN) for node in shown}
    by = {branch.child: branch.rationale or "; ".join(branch.commands) for node in shown for branch in node.branches}
    states = tuple(
        State(*places[node.number], _label(node), _state_title(node, by.get(node.number, "")), node.number in way)
        for node in shown
    )
    ways = tuple(Way(*places[node.parent or 0], *places[node.number], node.number in way) for node in shown[1:])
    width = max(x for x, _ in places.values()) + _ACROSS
    height = max(y for _, y in places.values()) + _MARGIN
    return TreeDrawing(states, ways, width, height, len(tree.nodes) - len(shown))


def _state_places(shown: Sequence[TreeNode], children: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Return the vertical position of each state, in lines. Does not recurse, because a path may be too deep for recursion."""
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


def _state_title(node: TreeNode, by: str) -> str:
    held = ", ".join(f"{key} {size}" for key, size in list(node.keys.items())[:8])
    return cut(" · ".join(each for each in (by, held, node.answer or "") if each), _TITLE)
