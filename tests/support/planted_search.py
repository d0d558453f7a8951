"""Graphs with a planted answer for searches: a question of several hops, a proposer of known reliability, a value without the answer.

The question names the kinds of nodes on the way and a mark that the last one bears ("from s to a PAPER, from there to an
AUTHOR, ... to a PLACE that is marked"), not the relations. One chain of relations answers it. Other chains look just as good
for some hops and then end, or reach nodes without the mark.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import networkx as nx
from attrs import field, frozen
from knotwork.runtime.gasl import GASLExecutor
from knotwork.runtime.loops.search import Action, Budget, Node, Searched, Settings, search
from knotwork.runtime.models.factory import NetworkXAdapter, open_state

__all__ = ["METHODS", "World", "run", "solved", "world"]

RELATIONS = ("CITES", "WROTE", "KNOWS", "NEAR")
KINDS = ("PAPER", "AUTHOR", "GROUP", "PLACE", "EVENT")


@frozen
class World:
    """A graph, the hops of the question, the one chain of relations that answers it, and its answer.

    ``hints`` are the confidences of the proposer by depth and chain of relations so far: the right relation is the surest one
    with the probability ``reliability`` of the generator.
    """

    seed: int
    graph: Any
    hops: int
    chain: tuple[str, ...]
    answer: str
    reliability: float
    slots: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "slots", tuple(f"hop{each + 1}" for each in range(self.hops)))

    # What a search asks

    async def propose(self, node: Node) -> Sequence[Action]:
        """Follow each relation from the last hop that is filled. What it knows: the question, the state, the relations."""
        taken = tuple(action.rationale.split()[1] for action in node.path)
        filled = _filled(node, self.slots)
        if filled == self.hops:
            return ()
        ids = ["s"] if filled == 0 else [item["id"] for item in node.snapshot.get(self.slots[filled - 1])]
        sure = self._confidences(taken)
        return [
            Action(self._plan(filled, ids, each), sure[each], f"follow {each} to hop {filled + 1}")
            for each in RELATIONS
        ]

    def _confidences(self, taken: tuple[str, ...]) -> dict[str, float]:
        chance = Random(f"{self.seed}:{taken}")
        sure = sorted((round(chance.uniform(0.2, 0.95), 3) for _ in RELATIONS), reverse=True)
        order = chance.sample(RELATIONS, len(RELATIONS))
        depth = len(taken)
        if taken == self.chain[:depth] and depth < self.hops:  # only here is there a right relation to be sure of
            right = self.chain[depth]
            order.remove(right)
            order.insert(0 if chance.random() < self.reliability else chance.randrange(1, len(RELATIONS)), right)
        return dict(zip(order, sure, strict=True))

    def _plan(self, filled: int, ids: Sequence[str], relation: str) -> list[str]:
        listed = ", ".join(f'"{each}"' for each in ids)
        marked = " AND marked = true" if filled + 1 == self.hops else ""
        slot = self.slots[filled]
        return [
            f"FIND nodes WHERE id IN ({listed}) AS here",
            f'WALK here VIA relation = "{relation}" DIRECTION out AS reached',
            f'SELECT reached WHERE kind = "{KINDS[filled % len(KINDS)]}"{marked} AS kept',
            f"DECLARE {slot} AS LIST",
            f"UPDATE {slot} WITH kept",
        ]

    def value(self, node: Node) -> float:
        """Say how much of what the question asks for is there. It sees the state only, and knows neither chain nor answer."""
        return _filled(node, self.slots) / self.hops


def _filled(node: Node, slots: Sequence[str]) -> int:
    sizes = {each.key: each.size for each in node.snapshot.declared()}
    return sum(sizes.get(slot, 0) > 0 for slot in slots)


def world(seed: int, *, hops: int = 4, reliability: float = 0.6, likeness: float = 0.65) -> World:
    """Return a graph with a planted answer. ``likeness``: how often a wrong relation looks as good, for a hop."""
    chance = Random(f"planted {seed} {hops}")
    graph = nx.DiGraph(name=f"planted-{seed}")
    graph.add_node("s", kind="START", marked=False)
    chain = tuple(chance.choice(RELATIONS) for _ in range(hops))
    front: list[tuple[str, tuple[str, ...]]] = [("s", ())]
    answer, number = "", 0
    for hop in range(hops):
        following: dict[tuple[str, ...], list[str]] = {}
        for at, taken in front:
            for relation in RELATIONS:
                way = (*taken, relation)
                right = way == chain[: hop + 1]
                if not right and chance.random() > likeness:
                    continue
                for _ in range(chance.randint(1, 3)):
                    number += 1
                    name = f"n{number}"
                    marked = right and hop == hops - 1 and not answer
                    graph.add_node(name, kind=KINDS[hop % len(KINDS)], marked=marked)
                    graph.add_edge(at, name, relation=relation)
                    answer = name if marked else answer
                    following.setdefault(way, []).append(name)
        # Two nodes of each way go on, so that the graph stays small and every chain that looks good may end at any hop.
        front = [(name, way) for way, names in following.items() for name in names[:2]]
    return World(seed, graph, hops, chain, answer, reliability)


METHODS: dict[str, Settings] = {
    "greedy": Settings(strategy="greedy"),
    "beam": Settings(strategy="beam", width=3),
    "mcts": Settings(strategy="mcts"),
}


def solved(planted: World, searched: Searched) -> bool:
    """Say whether the best state holds the planted answer, and nothing else in its place."""
    state, last = searched.best.snapshot, planted.slots[-1]
    return state.kind(last) is not None and [item["id"] for item in state.get(last)] == [planted.answer]


def run(planted: World, settings: Settings, steps: int, **more: Any) -> Searched:
    """Search a planted graph; the budget is counted in executed plans."""
    adapter = NetworkXAdapter(planted.graph)
    return asyncio.run(
        search(
            open_state(None), lambda state: GASLExecutor(adapter, None, state), planted, planted.value,
            settings=settings, budget=more.pop("budget", None) or Budget(max_steps=steps), **more,
        )
    )  # fmt: skip
