"""Searches find planted answers that greedy misses, by a value that can't see them. The 50 graphs are slow; a few are not."""

import os
import subprocess
import sys
from asyncio import sleep

import pytest
from attrs import evolve
from support.folders import TESTS
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


@pytest.mark.slow
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
    """Proposes and values the same, but after waits that depend on how often it was asked. ``most`` waited at once."""

    __slots__ = ()
    asked = waiting = most = 0

    async def wait(self):
        Late.asked += 1
        Late.waiting += 1
        Late.most = max(Late.most, Late.waiting)
        for _ in range((Late.asked * 7) % 5):
            await sleep(0)
        Late.waiting -= 1

    async def propose(self, node):
        await self.wait()
        return await World.propose(self, node)

    async def value(self, node):
        await self.wait()
        return World.value(self, node)


def late(planted):
    return Late(planted.seed, planted.graph, planted.hops, planted.chain, planted.answer, planted.reliability)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_tree_however_much_runs_at_once(name):
    planted = world(7)
    settings = evolve(METHODS[name], batch=3, rollout_depth=1, seed=5)
    Late.most = 0
    trees = [run(each, evolve(settings, at_once=n), 15).tree for n in (1, 2, 8) for each in (planted, late(planted))]
    assert all(tree == trees[0] and tree.dumps() == trees[0].dumps() for tree in trees)
    assert len(trees[0].nodes) > (2 if name == "greedy" else 6)
    assert Late.most > 1 or name == "greedy", "otherwise nothing ran at once"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_tree_in_another_process():
    script = (
        "from attrs import evolve; from support.planted_search import METHODS, run, world\n"
        "for name in METHODS:\n"
        "    print(run(world(7), evolve(METHODS[name], batch=3, at_once=4, rollout_depth=1, seed=5), 15).tree.dumps())"
    )
    tests = str(TESTS)
    trees = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hashed, "PYTHONPATH": tests},
            capture_output=True, check=True, text=True, timeout=60,
        ).stdout
        for hashed in ("1", "2")
    }  # fmt: skip
    assert len(trees) == 1 and trees != {""}
