"""Searches for an answer: what ends them, what is told apart, who opens executors."""

import asyncio
import json
from typing import Any

import pytest
from knotwork.runtime.gasl import GASLExecutor
from knotwork.runtime.loops.search import Action, Budget, Filled, search
from knotwork.runtime.models.factory import NetworkXAdapter, open_state
from support.executing import library
from support.scripted import Scripted

ADAPTER = NetworkXAdapter(library())
NOTHING = Action(["FIND nodes WHERE age > 1000 AS none"], 0.9, "nobody")
FAILING = Action(["DECLARE kept AS LIST", "FIND nodes AS x", "ASSERT LEN ${x} > 1000"], 0.8, "fails")
SAID = Action(answer="nobody is that old", confidence=0.5)


class Learning:
    """Answers where it has seen something happen; else it proposes ``actions``."""

    def __init__(self, *actions: Action) -> None:
        self.actions = actions
        self.seen: list[list[Any]] = []

    async def propose(self, node: Any) -> list[Action]:
        self.seen.append([entry["status"] for entry in node.entries])
        return [SAID] if node.entries else list(self.actions)


def searched(proposer: Any, value: Any = lambda node: 1.0, llm: Any = None, opener: Any = None, **settings: Any) -> Any:
    """Search over the library."""
    return asyncio.run(
        search(
            open_state(None), opener or (lambda fork: GASLExecutor(ADAPTER, llm, fork)), proposer, value,
            settings=settings, budget=Budget(max_steps=8),
        )
    )  # fmt: skip


@pytest.mark.parametrize("strategy", ["greedy", "beam", "mcts"])
def test_only_an_answer_is_good_enough_where_one_is_looked_for(strategy: str) -> None:
    proposer = Learning(NOTHING)
    result = searched(proposer, strategy=strategy, answers=True, outcomes=True)
    assert (result.status, result.stopped, result.answer) == ("found", "found", SAID.answer)
    assert proposer.seen[-1] == ["empty"]
    assert searched(Learning(NOTHING), strategy=strategy).answer is None  # the first state is good enough


def test_an_answer_is_the_best_however_much_better_a_state_without_one_is() -> None:
    result = searched(
        Learning(NOTHING), lambda node: 0.2 if node.answer else 0.9, strategy="beam", answers=True, outcomes=True
    )
    assert (result.stopped, result.answer, result.best.value) == ("exhausted", SAID.answer, 0.2)


def test_a_plan_that_failed_leads_on_with_what_it_kept_only_where_outcomes_count() -> None:
    proposer = Learning(FAILING)
    result = searched(proposer, strategy="greedy", answers=True, outcomes=True)
    assert [each.key for each in result.best.snapshot.declared()] == ["kept"]
    assert proposer.seen[-1] == ["success", "success", "error"]
    (branch,) = result.nodes[0].branches
    assert (branch.status, branch.outcome) == ("done", "error") and branch.message
    closed = searched(Learning(FAILING), Filled(("other",)), strategy="greedy")
    assert (closed.nodes[0].branches[0].status, len(closed.nodes)) == ("failed", 1)


def test_what_changed_nothing_is_the_state_itself_where_outcomes_do_not_count() -> None:
    result = searched(Learning(NOTHING), Filled(("other",)), strategy="beam")
    assert (result.nodes[0].branches[0].status, len(result.nodes)) == ("merged", 1)


def test_states_that_a_models_answer_stands_in_are_told_apart_by_their_way_not_by_the_clock() -> None:
    ask = [
        'FIND nodes WHERE entity_type = "PAPER" AS it',
        'PROCESS it USING "name them" AS named RETURNING (title TEXT)',
    ]
    keep = ["DECLARE titles AS LIST", "UPDATE titles WITH named"]
    rows = {"rows": [{"title": "Engines", "ids": ["Engines"]}]}

    class Twice:
        async def propose(self, node: Any) -> list[Action]:
            if node.depth:
                return [Action(["DECLARE more AS LIST"], rationale="more")]
            return [Action([*ask, *keep], 0.9, "so"), Action([*ask, "COUNT it AS other", *keep], 0.8, "else")]

    for _ in range(2):
        result = searched(Twice(), Filled(("never",)), Scripted(json.dumps(rows)), strategy="beam")
        assert [branch.status for branch in result.nodes[0].branches] == ["done", "done"], result.tree.text()
        assert len(result.nodes) == 5


def test_an_opener_may_be_told_where_in_the_tree_it_opens() -> None:
    told = []

    class Opens:
        def open(self, state: Any, node: Any, action: Action) -> GASLExecutor:
            told.append((node.number, action.rationale))
            return GASLExecutor(ADAPTER, None, state)

    searched(Learning(NOTHING), opener=Opens(), answers=True, outcomes=True)
    assert told == [(0, "nobody")]
    with pytest.raises(TypeError, match="an opener must be"):
        searched(Learning(NOTHING), opener="no")
