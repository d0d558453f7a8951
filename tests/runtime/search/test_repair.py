"""A program that makes slips and repairs them by our diagnostics alone comes close to one that makes none."""

import pytest
from support.planted import tasks
from support.planted_repair import attempt, mend, solve
from support.planted_slips import PLAN_SLIPS, SCRIPT_SLIPS, corrupted

STAY_WRONG = {
    "unescaped_quotes",  # the edits split the string: what stands between the quotes becomes a string of its own
    "undeclared_key",  # `result.answer` gets its DECLARE, and the answer stands there
    "a_key_too_many",  # `confidence` is taken for `config`
}


def test_the_first_oracle_solves_every_task_and_nothing_is_told_of_it():
    for task in tasks(18):
        assert attempt(task, task.correct) == (task.answer, [])


def share(count, seed, **how):
    """Return how many of ``count`` texts with slips are right without and with repairs, and the mean number of repairs."""
    trials = []
    for task in tasks(count, seed):
        text, slips = corrupted(task, seed, **how)
        if not STAY_WRONG & set(slips):
            trials.append((solve(task, text, 0), solve(task, text)))
    assert len(trials) >= count / 3
    return (
        sum(plain.solved for plain, _ in trials) / len(trials),
        sum(mended.solved for _, mended in trials) / len(trials),
        sum(mended.repairs for _, mended in trials) / len(trials),
    )


def test_repairs_bring_back_what_slips_cost():
    plain, mended, repairs = share(36, 1)
    assert plain < 0.4 and mended >= 0.95 and repairs < 2


@pytest.mark.slow
def test_on_a_few_hundred_tasks():
    plain, mended, repairs = share(300, 1)
    assert plain < 0.4 and mended >= 0.95 and repairs < 2


def test_slips_are_the_same_for_a_seed_and_others_for_another():
    chosen = list(tasks(12))
    assert [corrupted(task, 3) for task in chosen] == [corrupted(task, 3) for task in chosen]
    assert [corrupted(task, 3) for task in chosen] != [corrupted(task, 4) for task in chosen]
    assert all(text != task.correct and slips for task in chosen for text, slips in [corrupted(task, 3)])
    assert len(PLAN_SLIPS) > 25 and len(SCRIPT_SLIPS) > 10


def test_the_repairer_needs_what_is_told_and_does_nothing_without():
    task = next(iter(tasks(1)))
    text = task.correct.replace("entity_type", "entity_typ")
    assert mend(text, []) == text
    assert mend(text, attempt(task, text)[1]) == task.correct
