"""Searches find planted answers that greedy misses, by a value that can't see them. The 50 graphs are slow; a few are not."""

from asyncio import sleep

import pytest
from attrs import evolve
from support.planted_search import METHODS, World, run, solved, world


def outcomes(seeds, steps):
    """Return for each strategy the seeds that it solved."""
    worlds = [world(seed) for seed in seeds]
    return {
        name: {each.seed for each in worlds if solved(each, run(each, settings, steps))}
        for name, settings in METHODS.items()
    }


def test_the_question_has_one_answer_and_the_value_does_not_know_it():
    planted = world(3)
    marked = [node for node, data in planted.graph.nodes.items() if data["marked"]]
    assert marked == [planted.answer]
    searched = run(planted, METHODS["greedy"], 0)
    assert searched.stopped == "steps" and searched.best.value == 0.0


def test_beam_and_mcts_find_what_greedy_misses():
    found = outcomes(range(1000, 1003), 50)
    assert found["mcts"] - found["greedy"]
    assert (found["beam"] | found["mcts"]) >= found["greedy"]


@pytest.mark.slow
def test_on_fifty_graphs_with_the_same_budget():
    found = outcomes(range(1000, 1050), 60)
    assert len(found["mcts"] - found["greedy"]) >= 20
    assert len(found["beam"] - found["greedy"]) >= 10
    assert min(len(found["mcts"]), len(found["beam"])) > len(found["greedy"])


@pytest.mark.slow
def test_with_a_small_budget_greedy_beats_beam():
    found = outcomes(range(1000, 1050), 16)
    assert len(found["greedy"]) > len(found["beam"])


class Late(World):
    """Proposes the same, but after waits that depend on how often it was asked."""

    __slots__ = ()
    asked = 0

    async def propose(self, node):
        Late.asked += 1
        for _ in range((Late.asked * 7) % 5):
            await sleep(0)
        return await World.propose(self, node)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_tree_however_much_runs_at_once(name):
    planted = world(7)
    late = Late(planted.seed, planted.graph, planted.hops, planted.chain, planted.answer, planted.reliability)
    settings = evolve(METHODS[name], batch=3, rollout_depth=1, seed=5)
    trees = {run(each, evolve(settings, at_once=n), 15).tree.dumps() for n in (1, 2, 8) for each in (planted, late)}
    assert len(trees) == 1
