"""Whatever writers and judges do: what comes of a run is what the rules say, by a second reckoning of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.llm import BudgetExceeded, Refused, TimedOut, WrongKey
from knotwork.runtime.events import Events
from support.answering import Model, answered, heard

ROUND = st.one_of(st.integers(0, 10), st.sampled_from(["refused", "unjudged", "key", "budget"]))
"""What happens in a round: a score, or a failure."""


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(rounds=st.lists(ROUND, min_size=10, max_size=10), iter_max=st.integers(1, 10), tenths=st.integers(0, 10))
def test_one_candidate_a_round(rounds, iter_max, tenths):
    model = Model(
        [{"refused": Refused("no"), "key": WrongKey("no")}.get(each, f"answer {n}") for n, each in enumerate(rounds)],
        [{"unjudged": TimedOut("late"), "budget": BudgetExceeded("spent")}.get(each, each)
         for each in rounds if each not in ("refused", "key")] or [0],
    )  # fmt: skip
    events = Events()
    told = heard(events)
    made = answered(model, iter_max=iter_max, score_threshold=tenths / 10, events=events)

    scores, stopped, accepted = [], "", False
    for each in rounds[:iter_max]:
        scores.append(each / 10 if isinstance(each, int) else None)
        accepted = isinstance(each, int) and each >= tenths
        stopped = {"key": "hopeless", "budget": "budget"}.get(each, "")
        if accepted or stopped:
            break
    known = [score for score in scores if score is not None]
    assert [iteration.score for iteration in made.iterations] == scores
    assert made.status == ("accepted" if accepted else "best" if known else "failed")
    assert made.stopped == stopped
    if known:
        first = scores.index(max(known))
        assert (made.best, made.final_score, made.final_answer) == (first, max(known), f"answer {first}")
    else:
        assert (made.best, made.final_score, made.final_answer) == (None, None, None)
    assert made.calls == sum(iteration.calls for iteration in made.iterations)
    assert [event.name for event in told if event.name.startswith(("answer", "iteration"))] == [
        "answer.started", *["iteration.started", "iteration.finished"] * len(scores), "answer.finished",
    ]  # fmt: skip
    best = [event.iteration - 1 for event in told if event.name == "iteration.finished" and event.best]
    assert best[-1:] == ([made.best] if known else [])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.lists(st.one_of(st.integers(0, 10), st.none()), min_size=3, max_size=3), min_size=2, max_size=2),
    tenths=st.integers(0, 10),
)
def test_three_candidates_a_round(scores, tenths):
    by_answer = {f"round {r}, candidate {c}": score for r, row in enumerate(scores) for c, score in enumerate(row)}
    names = iter(by_answer)

    def judge(prompt):
        found = next(score for name, score in by_answer.items() if name in prompt)
        return TimedOut("late") if found is None else found

    made = answered(Model(lambda prompt: next(names), judge), attempts=3, iter_max=2, score_threshold=tenths / 10)
    best = None
    for number, (row, iteration) in enumerate(zip(scores, made.iterations, strict=False)):
        known = [score for score in row if score is not None]
        assert iteration.score == (max(known) / 10 if known else None)
        assert iteration.chosen == (row.index(max(known)) if known else 0)
        if known and (best is None or max(known) > best[0]):
            best = (max(known), number)
    assert made.best == (best[1] if best else None)
    assert made.success == (best is not None and best[0] >= tenths)
