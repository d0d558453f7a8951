"""Monte-Carlo tree search over plans: UCT whose prior is the confidence of ``next_actions``. Also greedy search and beam search.

Branches are selected by PUCT (Rosin 2011; Silver et al. 2017): mean return of the branch + ``exploration`` · prior ·
sqrt(visits of the parent) / (1 + visits of the branch). The prior is the branch's share of its siblings' total confidence, mixed
with an even share, so that less confident actions are tried too. An untried branch has the value of its parent state. The return
of a branch is the best value seen in the new state or during its rollout, not the value of the rollout's last state.

In each round, ``batch`` branches are selected before any of them is executed. Until its execution, a selected branch counts as
a visit without a return, which makes further selections of the same branch less likely. A round has the same size whatever the
number of plans that run in parallel, so this number does not affect the tree.
"""

from collections.abc import Sequence
from math import prod, sqrt
from random import Random

from attrs import define, field

from ...errors import short_repr
from .growth import GrowingTree
from .nodes import Action, Branch, Node, way_to
from .policies import Rollout, cancellation_as_error

_EVENLY = 0.25
"""The part of the prior that does not depend on the confidence."""

Way = list[tuple[Node, Branch]]


@define
class MCTS:
    """An MCTS run. ``rollout_depth`` is the maximum number of plans per rollout; with 0, the return is the state's own value."""

    growing: GrowingTree
    seed: int
    exploration: float
    batch: int
    rollout: Rollout
    rollout_depth: int
    _simulations: int = 0
    _pending: dict[int, int] = field(factory=dict)
    """Maps the id of a branch to the number of its selections that have no return yet."""

    async def run(self) -> None:
        """Search until no further work may begin, or every branch was tried."""
        await self.growing.propose([self.growing.root])
        while not self.growing.over():
            ways = await self._select()
            if not ways:
                return
            await self.growing.open([way[-1] for way in ways])
            for way in ways:
                await self._return(way)

    # Selection

    async def _select(self) -> list[Way]:
        """Return the paths to the branches to execute next, at most ``batch``."""
        ways: list[Way] = []
        taken: set[int] = set()
        while len(ways) < self.batch and not self.growing.over():
            alive = self._alive(taken)
            way = self._descend(self.growing.root, alive, taken, set())
            if way is None:
                break
            last = way[-1][1]
            if last.child is not None and not last.child.proposed:  # the branches of this state must be proposed first
                await self.growing.propose([last.child])
                continue
            for _, branch in way:
                self._pending[id(branch)] = self._pending.get(id(branch), 0) + 1
            taken.add(id(last))
            ways.append(way)
        self._pending.clear()
        return ways

    def _alive(self, taken: set[int]) -> set[int]:
        """Return the numbers of the states from which an untried branch can be reached; merged states may form cycles."""
        above: dict[int, list[int]] = {}
        alive, found = list[int](), set[int]()
        for node in self.growing.nodes:
            if self._untried(node, taken):
                alive.append(node.number)
            for branch in node.branches:
                if branch.child is not None:
                    above.setdefault(branch.child.number, []).append(node.number)
        while alive:
            number = alive.pop()
            if number not in found:
                found.add(number)
                alive += above.get(number, ())
        return found

    def _untried(self, node: Node, taken: set[int]) -> bool:
        if not self.growing.may_go_on(node):
            return False
        return not node.proposed or any(self._is_open(branch, taken) for branch in node.branches)

    @staticmethod
    def _is_open(branch: Branch, taken: set[int]) -> bool:
        return branch.status == "open" and id(branch) not in taken

    def _descend(self, node: Node, alive: set[int], taken: set[int], met: set[int]) -> Way | None:
        """Return the path from ``node`` to an untried branch or a state without branches; None if all states have been visited."""
        way, met = Way(), met | {node.number}
        while True:
            branch = self._chosen(node, alive, taken, met)
            if branch is None:
                if not way:
                    return None
                node, _ = way.pop()  # a dead end after merged states; it is not entered again
                continue
            way.append((node, branch))
            child = branch.child
            if child is None or not child.proposed:
                return way
            node = child
            met.add(node.number)

    def _chosen(self, node: Node, alive: set[int], taken: set[int], met: set[int]) -> Branch | None:
        """Return the branch with the highest bound that leads to an untried branch; on a tie, the most confident one."""
        usable = [
            branch
            for branch in node.branches
            if self._is_open(branch, taken)
            or (branch.child is not None and branch.child.number in alive and branch.child.number not in met)
        ]
        if not usable:
            return None
        sure = sum(branch.action.confidence for branch in node.branches) or 1.0
        visits = sum(branch.visits + self._pending.get(id(branch), 0) for branch in node.branches)

        def bound(branch: Branch) -> float:
            tried = branch.visits + self._pending.get(id(branch), 0)
            mean = branch.total / tried if tried else node.worth
            prior = (1 - _EVENLY) * branch.action.confidence / sure + _EVENLY / len(node.branches)
            return mean + self.exploration * prior * sqrt(visits + 1) / (1 + tried)

        return max(usable, key=bound)  # on a tie ``max`` returns the first branch, which is the most confident

    # Return

    async def _return(self, way: Way) -> None:
        """Continue from a new state with the rollout policy, then add the return to all branches on the path."""
        leaf = way[-1][1]
        if leaf.status == "open":  # no step was left to execute the branch
            return
        self._simulations += 1
        value = 0.0
        if leaf.child is not None:
            value = leaf.child.worth
            if leaf.status == "done":
                random = Random(f"{self.seed}:{self._simulations}")  # noqa: S311 - chance that can be repeated
                value = max(value, await self._simulate(leaf.child, random))
        for node, branch in way:
            node.visits += 1
            branch.visits += 1
            branch.total += value
        if leaf.child is not None:
            leaf.child.visits += 1

    async def _simulate(self, node: Node, random: Random) -> float:
        """Return the best value that a rollout reaches. If this is the best value so far, its state is added to the tree."""
        growing, best = self.growing, 0.0
        known = _untaken(node)
        for _ in range(self.rollout_depth):
            if growing.over() or not growing.may_go_on(node):
                break
            action = await self._choose(node, known, random)
            if action is None:
                break
            known = [each for each in known if each.does != action.does]
            following = await growing.look(node, action)
            if following is None:
                break
            best, node = max(best, following.worth), following
            if best > growing.best.worth:
                growing.keep(following)
        return best

    async def _choose(self, node: Node, known: Sequence[Action], random: Random) -> Action | None:
        try:
            with cancellation_as_error():
                chosen = await self.rollout.choose(node, known, random)
            if chosen is not None and not isinstance(chosen, Action):
                raise TypeError(f"expected an Action or None, not {short_repr(chosen)}")
            return chosen
        except Exception as error:  # a failing custom policy ends its rollout
            self.growing.failed(f"a rollout from state {node.number} ended", error)
            return None


def _untaken(node: Node) -> list[Action]:
    """Return the distinct actions that were proposed on the path to a state but not taken."""
    taken = {action.does for action in node.path}
    found: dict[str, Action] = {}
    for each in way_to(node):
        for branch in each.branches:
            if branch.action.does not in taken and branch.action.answer is None and branch.status != "failed":
                found.setdefault(branch.action.does, branch.action)
    return list(found.values())


# The two simple strategies: greedy takes the most confident action, beam keeps the best states of each depth.


async def greedy(growing: GrowingTree) -> None:
    """Execute the most confident action in each state; if the action fails, execute the next one.

    Greedy search never goes back to an earlier state. A loop without a search also executes the action with the highest
    confidence.
    """
    node = growing.root
    while not growing.over() and growing.may_go_on(node):
        await growing.propose([node])
        following = await _first_new_state(growing, node)
        if following is None:
            return
        node = following


async def _first_new_state(growing: GrowingTree, node: Node) -> Node | None:
    """Return the state reached by the most confident branch that leads to a new state."""
    for branch in node.branches:
        if growing.over():
            return None
        await growing.open([(node, branch)])
        if branch.status == "done":
            return branch.child
    return None


async def beam(growing: GrowingTree, width: int) -> None:
    """Execute all branches of at most ``width`` states, keep the ``width`` best new states, and repeat.

    If no branch leads to a new state, go back to the best states that were dropped earlier, so that the rest of the budget is used
    (beam-stack search, Zhou and Hansen 2005, without its bookkeeping).
    """
    front, left = [growing.root], list[Node]()
    while front and not growing.over():
        await growing.propose(front)
        known = len(growing.nodes)
        # The most confident branches come first, in case the budget ends before all branches are executed.
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
    """Return the sort key of a state: its value, then the combined confidence of its actions, then its number."""
    return -node.worth, -prod(action.confidence for action in node.path), node.number
