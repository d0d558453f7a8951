"""What a search is told that is none is refused before anything is asked."""

import asyncio

import pytest
from knotwork.runtime.loops.search import Action, Budget, Settings, search
from support.planted_search import METHODS, run, world


class Nobody:
    """May not be asked."""

    async def propose(self, node):
        raise AssertionError("nobody may be asked")


def none(state):
    """Open nothing."""
    raise AssertionError("nothing may be opened")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"width": 2.5}, "width"), ({"width": "3"}, "width"), ({"width": True}, "width"), ({"branching": 2.5}, "branching"),
        ({"max_depth": float("nan")}, "max_depth"), ({"batch": 1.5}, "batch"), ({"at_once": None}, "at_once"),
        ({"rollout_depth": 1.5}, "rollout_depth"), ({"rollout_depth": -1}, "rollout_depth"), ({"seed": "x"}, "seed"),
        ({"exploration": float("nan")}, "exploration"), ({"exploration": "x"}, "exploration"), ({"enough": "x"}, "enough"),
        ({"enough": float("nan")}, "enough"), ({"enough": 1.5}, "enough"), ({"enough": True}, "enough"), ({"answers": 1}, "answers"),
        ({"widht": 3}, "unknown setting widht"), (5, "Settings or settings by name"), ({"strategy": ["mcts"]}, "unknown strategy"),
    ],
)  # fmt: skip
def test_settings_of_another_type_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        asyncio.run(search(None, none, Nobody(), lambda node: 0.0, settings=settings))


@pytest.mark.parametrize(
    "budget",
    [
        {"max_steps": 1.5}, {"max_steps": "3"}, {"max_calls": float("nan")}, {"max_calls": True}, {"max_tokens": -1},
        {"max_cost": "1"}, {"max_cost": float("nan")}, {"time_limit": "x"}, {"cancel": 5},
    ],
)  # fmt: skip
def test_budgets_of_another_type_are_refused(budget):
    with pytest.raises(ValueError, match=next(iter(budget))):
        Budget(**budget)


@pytest.mark.parametrize("others", [{"budget": 5}, {"rollout": 5}])
def test_other_parts_that_are_none_are_refused(others):
    with pytest.raises(ValueError, match="5"):
        asyncio.run(search(None, none, Nobody(), lambda node: 0.0, **others))


def test_calls_are_bounded_where_nobody_says_how_many():
    assert Budget().max_calls == 500
    assert Budget(max_calls=None).max_calls is None


def test_usual_settings_are_taken():
    assert Settings(enough=None, seed=-3, exploration=0, width=1).enough is None
    assert run(world(2), METHODS["greedy"], 3).steps <= 3
    assert Action(["FIND nodes AS x"], 1).confidence == 1.0
