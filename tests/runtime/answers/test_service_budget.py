"""Budgets and keys: what ends a run before its time, and what stands then."""

import pytest
from knotwork import answers
from knotwork.adapters.llm import (
    BudgetExceeded,
    Completion,
    LLMError,
    ModelNotFound,
    QuotaExhausted,
    Usage,
    WrongKey,
)
from knotwork.adapters.llm.budget import Price
from knotwork.answers import RequestError
from support.answering import Model, answered, evaluation


def test_a_budget_used_up_in_the_middle_leaves_the_best_of_what_was_done():
    model = Model(["one", "two", "three"], [4, 6, 5])
    made = answers.generate_answer_sync("Explain it.", "", "It is clear.", model=model, max_calls=5)
    assert (made.status, made.stopped, made.final_answer, made.total_iterations) == ("best", "budget", "two", 3)
    assert (made.calls, model.calls) == (5, 5)
    last = made.iterations[2]
    assert (last.answer, last.evaluation, last.error.stage, last.error.kind) == ("three", None, "evaluation", "budget")
    assert made.reason.startswith("the budget of 5 calls is used up")
    assert made.reason.endswith("the best answer scores 0.60")


def test_a_budget_used_up_before_anything_was_evaluated_is_a_failure():
    model = Model(["one"], [4])
    with pytest.raises(answers.AnswerFailed, match="the budget of 1 call is used up") as caught:
        answers.generate_answer_sync("Explain it.", "", "It is clear.", model=model, max_calls=1)
    made = caught.value.result
    assert (made.status, made.stopped, made.total_iterations, made.iterations[0].answer) == (
        "failed",
        "budget",
        1,
        "one",
    )


def test_a_budget_of_no_calls_makes_none():
    model = Model()
    with pytest.raises(answers.AnswerFailed):
        answers.generate_answer_sync("Explain it.", "", "It is clear.", model=model, max_calls=0)
    assert model.calls == 0


def test_what_was_accepted_with_the_last_call_is_accepted():
    made = answers.generate_answer_sync("x", "", "clear", model=Model(["one"], [9]), max_calls=2)
    assert (made.status, made.stopped, made.reason) == ("accepted", "", "")


def test_side_by_side_candidates_share_the_budget():
    model = Model(["x"], [4, 9])
    made = answers.generate_answer_sync("x", "", "clear", model=model, max_calls=5, attempts=4)
    assert model.calls == made.calls == 5
    assert len(made.iterations[0].candidates) == 4
    assert (made.status, made.stopped, made.total_iterations) == ("best", "budget", 1)


def test_repairs_and_failed_calls_count():
    model = Model(["x"], ["no evaluation", evaluation(4)])
    made = answers.generate_answer_sync("x", "", "clear", model=model, max_calls=3)
    assert (made.calls, model.calls, made.final_score, made.stopped) == (3, 3, 0.4, "budget")


def test_tokens_and_money_are_limits_too():
    said = [Completion(f"x {number}", usage=Usage(1_000, 1_000)) for number in range(10)]
    made = answers.generate_answer_sync(
        "x", "", "clear", model=Model(list(said), [4]), max_tokens=15_000, iter_max=10, answer_tokens=1_000
    )
    assert (made.status, made.stopped) == ("best", "budget")
    assert made.usage.total <= 15_000
    paid = answers.generate_answer_sync(
        "x", "", "clear", model=Model(said, [4]), max_cost=0.02, price=(1.0, 2.0), iter_max=10
    )
    assert (paid.status, paid.stopped) == ("best", "budget")
    assert paid.cost == pytest.approx(Price(1.0, 2.0).of(paid.usage))
    assert paid.cost <= 0.02


def test_a_limit_on_cost_needs_a_price():
    with pytest.raises(RequestError, match="price"):
        answers.generate_answer_sync("x", "", "clear", model=Model(), max_cost=1.0)


def test_the_judges_of_a_panel_and_the_writer_share_one_budget():
    writer, judge = Model(["x"]), Model(judges=[4])
    made = answers.generate_answer_sync("x", "", "clear", model=writer, judges=[judge, judge], max_calls=4)
    assert (writer.calls, judge.calls, made.calls) == (2, 2, 4)


@pytest.mark.parametrize(
    "error", [WrongKey("no such key", hint="check it"), QuotaExhausted("no money"), ModelNotFound("no such model")]
)
def test_a_failure_that_every_call_would_share_ends_the_run_at_once(error: LLMError):
    model = Model([error])
    made = answered(model, iter_max=10, attempts=1)
    assert (made.status, made.stopped, made.total_iterations, model.calls) == ("failed", "hopeless", 1, 1)
    assert made.reason == (f"{error.message} ({error.hint})" if error.hint else error.message)
    assert made.iterations[0].error.kind == error.kind


def test_a_key_that_is_withdrawn_in_the_middle_leaves_the_best():
    made = answered(Model(["one", WrongKey("withdrawn")], [4]))
    assert (made.status, made.stopped, made.final_answer, made.total_iterations) == ("best", "hopeless", "one", 2)
    assert made.reason == "withdrawn; the best answer scores 0.40"


def test_candidates_that_are_under_way_find_out_together_and_nobody_asks_after_them():
    model = Model([WrongKey("no")])
    made = answered(model, attempts=3, iter_max=10)
    assert (made.stopped, made.total_iterations, model.calls) == ("hopeless", 1, 3)
    judged = Model(["x"], [WrongKey("no")], delay=0.001)
    made = answered(judged, attempts=2, iter_max=10)
    assert (made.stopped, made.total_iterations, len(judged.wrote)) == ("hopeless", 1, 2)


def test_a_budget_of_the_callers_own_is_one_as_well():
    made = answered(Model(["one", BudgetExceeded("spent")], [4]))
    assert (made.stopped, made.reason) == ("budget", "spent; the best answer scores 0.40")


def test_without_a_model_the_run_fails_and_says_what_to_do():
    made = answered(None)
    assert (made.status, made.stopped) == ("failed", "hopeless")
    assert made.reason == "the run has no model (pass a model as llm=)"
