"""What a search promises: budgets hold, failures close branches only, equal states merge, nothing runs after it."""

import asyncio

import pytest
from knotwork import gasl
from knotwork.adapters.llm import BudgetExceeded
from knotwork.runtime.events import Events
from knotwork.runtime.gasl import GASLExecutor
from knotwork.runtime.loops.search import Action, Budget, Filled, Settings, search
from knotwork.runtime.models.caller import Spent
from knotwork.runtime.models.factory import NetworkXAdapter, open_state
from support.executing import library
from support.scripted import Scripted

ADAPTER = NetworkXAdapter(library())


def take(key, kind, confidence=0.5):
    """Return an action that puts the nodes of a kind under a key."""
    commands = [f"DECLARE {key} AS LIST", f'FIND nodes WHERE entity_type = "{kind}" AS it', f"UPDATE {key} WITH it"]
    return Action(commands, confidence, f"{key} from {kind}")


class Proposes:
    """Proposes the same in every state, or what ``by_depth`` says."""

    def __init__(self, *actions, by_depth=None):
        self.actions, self.by_depth, self.asked = actions, by_depth, 0

    async def propose(self, node):
        self.asked += 1
        return self.actions if self.by_depth is None else self.by_depth.get(node.depth, ())


THREE = Proposes(take("people", "PERSON", 0.9), take("papers", "PAPER", 0.8), take("places", "PLACE", 0.7))
ALL = Filled(("people", "papers", "places"))
STRATEGIES = ("greedy", "beam", "mcts")


def searched(proposer=THREE, value=ALL, *, state=None, llm=None, budget=None, **more):
    """Search over the library."""
    keys = ("rollout", "spent", "events")
    settings = {name: value for name, value in more.items() if name not in keys}
    others = {name: value for name, value in more.items() if name in keys}
    begin = state or open_state(None)
    return asyncio.run(
        search(
            begin, lambda fork: GASLExecutor(ADAPTER, llm, fork), proposer, value, settings=settings,
            budget=budget or Budget(max_steps=30), **others,
        )
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_finds_what_is_easy(strategy):
    result = searched(strategy=strategy)
    assert (result.status, result.stopped, result.best.value) == ("found", "found", 1.0)
    assert {each.key for each in result.best.snapshot.declared()} == {"people", "papers", "places"}
    assert len(result.path) == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_more_plans_are_executed_than_the_budget_has(strategy, most):
    result = searched(strategy=strategy, budget=Budget(max_steps=most), rollout_depth=2, batch=4)
    assert (result.steps, result.stopped) == (most, "steps")


@pytest.mark.slow
def test_the_state_that_was_searched_from_is_only_read():
    state = open_state(None)
    before = (state.hash, len(state.history))
    searched(state=state, strategy="beam")
    assert (state.hash, len(state.history)) == before


@pytest.mark.slow
def test_states_that_are_the_same_are_one():
    result = searched(strategy="beam", width=10, enough=None, max_depth=3)
    hashes = [node.hash for node in result.tree.nodes]
    assert len(set(hashes)) == len(hashes)
    merged = [branch for node in result.nodes for branch in node.branches if branch.status == "merged"]
    assert merged and result.stopped == "exhausted"
    # Three keys, each there or not, in any order of declaration: the order is part of a state.
    assert all(node.depth <= 3 for node in result.nodes)


def test_the_same_plan_in_the_same_state_is_executed_once():
    doubled = Proposes(take("people", "PERSON", 0.9), take("people", "PERSON", 0.4))
    result = searched(doubled, strategy="beam", max_depth=1)
    assert result.steps == 1 and len(result.nodes[0].branches) == 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_branch_that_fails_is_closed_and_the_others_go_on(strategy):
    refused = Action(["FIND nodes WHERE entity_typ = 'PERSON' AS x"], 0.99, "a typo")
    failing = Action(["FIND nodes AS x", "ASSERT LEN ${x} > 99"], 0.98, "an assertion")
    nonsense = Action({"commands": 3}, 0.97, "no plan")
    proposer = Proposes(refused, failing, nonsense, *THREE.actions)
    result = searched(proposer, strategy=strategy, budget=Budget(max_steps=40))
    assert result.status == "found"
    failed = {branch.action.rationale: branch for branch in result.nodes[0].branches if branch.status == "failed"}
    assert failed["a typo"].outcome == "refused" and "entity_typ" in failed["a typo"].message
    assert failed["an assertion"].outcome == "error"
    assert failed["no plan"].outcome == "refused"


def test_a_plan_that_is_refused_is_no_step():
    typo = Action(["FIND nodes WHERE entity_typ = 'PERSON' AS x"], 0.99, "a typo")
    result = searched(Proposes(typo, *THREE.actions), strategy="beam", budget=Budget(max_steps=3), max_depth=1)
    assert (result.steps, result.stopped) == (3, "exhausted")
    assert [branch.status for branch in result.nodes[0].branches] == ["failed", "done", "done", "done"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_proposer_that_fails_closes_its_state(strategy):
    class Breaks(Proposes):
        async def propose(self, node):
            if node.depth:
                raise RuntimeError("no idea")
            return self.actions

    result = searched(Breaks(*THREE.actions), strategy=strategy)
    assert result.status == "best" and "no idea" in result.warnings[0]


@pytest.mark.parametrize("said", [float("nan"), 2, -0.1, True, "good", None])
def test_a_value_that_is_none_counts_as_zero_and_is_told(said):
    result = searched(value=lambda node: said, strategy="beam", max_depth=1)
    assert result.best.value is None and "from 0 to 1" in result.warnings[0]


def test_a_user_function_may_be_async():
    async def value(node):
        return await ALL.value(node)

    assert searched(value=value, strategy="greedy").status == "found"


def test_an_answer_ends_its_branch_without_a_plan():
    say = Action(answer="five people", confidence=0.6)
    proposer = Proposes(by_depth={0: [take("people", "PERSON", 0.9)], 1: [say]})
    result = searched(proposer, lambda node: 1.0 if node.answer else 0.2, strategy="mcts")
    assert (result.status, result.answer, result.steps) == ("found", "five people", 1)


def test_a_rollout_that_finds_more_is_kept_in_the_tree():
    proposer = Proposes(by_depth={0: THREE.actions, 1: [Action(answer="enough", confidence=0.9)]})
    result = searched(proposer, strategy="mcts", rollout_depth=2)
    assert result.status == "found"
    assert any(branch.simulated for node in result.nodes for branch in node.branches)


def test_a_rollout_policy_that_raises_ends_its_rollout_only():
    class Breaks:
        async def choose(self, node, known, random):
            raise RuntimeError("lost")

    result = searched(strategy="mcts", rollout=Breaks(), rollout_depth=2)
    assert result.status == "found" and "lost" in result.warnings[0]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_runs_after_a_cancellation(strategy):
    class Waits(Proposes):
        running = 0

        async def propose(self, node):
            Waits.running += 1
            try:
                await asyncio.sleep(60)
            finally:
                Waits.running -= 1

    async def cancelled():
        cancel = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, cancel.set)
        result = await search(
            open_state(None), lambda fork: GASLExecutor(ADAPTER, None, fork), Waits(), ALL,
            settings={"strategy": strategy}, budget=Budget(cancel=cancel),
        )  # fmt: skip
        assert len(asyncio.all_tasks()) == 1
        return result

    result = asyncio.run(cancelled())
    assert (result.status, result.stopped, Waits.running) == ("failed", "cancelled", 0)


@pytest.mark.slow
def test_time_ends_a_plan_that_waits_for_its_model():
    class Slow:
        async def generate(self, prompt, **options):
            await asyncio.sleep(60)

    asks = Action(["FIND nodes AS x", 'PROCESS x USING "what is it?" AS y'], 0.5)
    result = searched(Proposes(asks), llm=Slow(), strategy="greedy", budget=Budget(time_limit=0.1))
    assert result.stopped == "time" and result.seconds < 5


def test_a_cancelled_task_leaves_nothing_behind():
    class Waits(Proposes):
        async def propose(self, node):
            await asyncio.sleep(60)

    async def main():
        work = search(open_state(None), lambda fork: GASLExecutor(ADAPTER, None, fork), Waits(), ALL)
        task = asyncio.ensure_future(work)
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_calls_of_plans_and_of_others_are_counted_together():
    spent = Spent()

    class Asks(Proposes):
        async def propose(self, node):
            spent.calls += 2
            return await super().propose(node)

    result = searched(Asks(*THREE.actions), spent=spent, strategy="greedy", budget=Budget(max_calls=3))
    assert (result.stopped, result.calls, result.steps) == ("calls", 4, 1)


def test_a_budget_of_the_models_that_is_used_up_ends_the_search():
    class Broke(Proposes):
        async def propose(self, node):
            if node.depth:
                raise BudgetExceeded("the budget of 1 calls is used up", attempts=0)
            return self.actions

    assert searched(Broke(*THREE.actions), strategy="beam").stopped == "budget"


@pytest.mark.slow
def test_branches_share_what_models_answered():
    llm = Scripted("unused")
    assert searched(llm=llm, strategy="beam").calls == 0


def test_events_tell_of_every_branch():
    heard = []
    events = Events()
    events.subscribe(heard.append)
    result = searched(strategy="greedy", events=events)
    opened = [event for event in heard if event.name == "branch.opened"]
    closed = [event for event in heard if event.name == "branch.closed"]
    assert len(opened) == len(closed) >= 3
    assert closed[-1].child == result.best.number and closed[-1].value == 1.0


@pytest.mark.parametrize(
    "wrong", [{"strategy": "best"}, {"width": 0}, {"at_once": 0}, {"rollout_depth": -1}, {"exploration": float("nan")}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)) if wrong != {"strategy": "best"} else "strategy"):
        Settings(**wrong)


def test_greedy_takes_the_next_one_where_the_surest_leads_nowhere_new():
    nothing = Action(["FIND nodes WHERE age > 900 AS x"], 1.0, "nothing")
    result = searched(Proposes(nothing, *THREE.actions), strategy="greedy")
    assert result.status == "found"
    assert gasl.plan_status(result.best.records) == "success"
