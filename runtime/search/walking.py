"""The two plain strategies: greedy takes the surest action, beam keeps the best states of each depth."""

from math import prod

from .growing import Growing
from .nodes import Node

__all__ = ["beam", "greedy"]


async def greedy(growing: Growing) -> None:
    """Take the action of the highest confidence, state after state; where it fails, the next one. It never goes back.

    Without a search the action with the highest confidence is taken.
    """
    node = growing.root
    while not growing.over() and growing.may_go_on(node):
        await growing.propose([node])
        following = await _first(growing, node)
        if following is None:
            return
        node = following


async def _first(growing: Growing, node: Node) -> Node | None:
    """Return the state that the surest branch leads to, of those that lead anywhere new."""
    for branch in node.branches:
        if growing.over():
            return None
        await growing.open([(node, branch)])
        if branch.status == "done":
            return branch.child
    return None


async def beam(growing: Growing, width: int) -> None:
    """Execute all branches of at most ``width`` states, keep the ``width`` best states that come of it, and so on.

    Where nothing comes of any of them it goes back to the best states that it left: what is left of
    the budget would be lost otherwise (beam-stack search, Zhou and Hansen 2005, without its bookkeeping).
    """
    front, left = [growing.root], list[Node]()
    while front and not growing.over():
        await growing.propose(front)
        known = len(growing.nodes)
        # The surest branches of all come first, so that a budget that ends in the middle was spent on them.
        asked = [(node, branch) for node in front for branch in node.branches]
        asked.sort(key=lambda pair: -pair[1].action.confidence)
        await growing.open(asked)
        fresh = [node for node in growing.nodes[known:] if growing.may_go_on(node)]
        fresh.sort(key=_rank)
        front, left = fresh[:width], left + fresh[width:]
        if not front:
            left.sort(key=_rank)
            front, left = left[:width], left[width:]


def _rank(node: Node) -> tuple[float, float, int]:
    """Return what states are kept by: value, then how sure their actions were together, then who came first."""
    return -node.worth, -prod(action.confidence for action in node.path), node.number
