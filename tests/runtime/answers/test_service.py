"""The loop: accept, feed back, the best at the end. What the seed got wrong has a test of its own."""

import pytest
from knotwork.adapters.llm import BadAnswer, EmptyAnswer, Refused, TimedOut
from knotwork.runtime.answers.answer_results import AnswerRequest, points
from knotwork.runtime.errors import RequestError
from support.answering import Model, answered, evaluation


def test_an_answer_that_reaches_the_threshold_ends_the_loop():
    model = Model(["one", "two"], [4, 8, 9])
    made = answered(model, iter_max=5)
    assert (made.status, made.final_answer, made.final_score, made.total_iterations) == ("accepted", "two", 0.8, 2)
    assert made.success
    assert made.stopped == made.reason == ""
    assert model.calls == 4


def test_the_best_answer_is_returned_not_the_last():
    made = answered(Model(["one", "two", "three"], [4, 7, 5]))
    assert (made.status, made.final_answer, made.final_score) == ("best", "two", 0.7)
    assert (made.success, made.best, made.total_iterations) == (False, 1, 3)
    assert made.reason == "no answer in 3 iterations reached 0.8; the best answer scores 0.70"


def test_the_same_answer_is_told_after_two_repetitions_and_ends_the_loop_after_three():
    model = Model(["the same"], [4])
    made = answered(model, iter_max=10)
    assert (made.status, made.stopped, made.total_iterations) == ("best", "no_progress", 4)
    assert made.reason == (
        "the model repeated its earlier answers in the last 3 of 4 iterations; the best answer scores 0.40"
    )
    told = ["Your answers in the last 2 rounds were the same as before." in prompt for prompt, _ in model.wrote]
    assert told == [False, False, False, True]
    turns = Model(["a", "b"] * 5, [4])
    assert answered(turns, iter_max=10).total_iterations == 5  # a, b, and the two of them again


def test_of_equal_scores_the_first_counts():
    assert answered(Model(["one", "two", "three"], [5, 5, 5])).final_answer == "one"


def test_a_threshold_of_zero_accepts_the_first_evaluated_answer():
    """The seed: ``score_threshold or self.score_threshold`` takes 0.0 for "not given"."""
    made = answered(Model(["one"], [0]), score_threshold=0.0)
    assert (made.status, made.final_score, made.total_iterations) == ("accepted", 0.0, 1)


def test_a_threshold_of_one_wants_everything():
    made = answered(Model(["one", "two"], [9, 10]), score_threshold=1.0)
    assert (made.final_answer, made.final_score) == ("two", 1.0)


def test_the_judge_sees_instruction_format_criteria_and_answer():
    """The seed's evaluator sees the answer and the criteria alone."""
    model = Model(["the answer itself"], [9])
    answered(model, instruct="the question", resp_format="the form", eval_crit="the criteria")
    prompt = model.judged[0][0]
    for told in ("the question", "the form", "the criteria", "the answer itself"):
        assert f"```\n{told}\n```" in prompt


def test_the_writer_is_told_its_answer_its_score_and_what_to_do_better():
    model = Model(["first try", "second"], [evaluation(4, "say why", "be brief", reason="no reason given"), 9])
    made = answered(model)
    told = model.wrote[1][0]
    for piece in ("```\nfirst try\n```", "0.40 of 1.00", "no reason given", "1. say why", "2. be brief"):
        assert piece in told
    assert made.iterations[0].feedback is None
    assert made.iterations[1].feedback is not None
    assert made.iterations[1].feedback in told


def test_a_failed_evaluation_is_no_score_of_zero():
    """It has no score at all: it can't be the best, not even with nothing better than 0.0 beside it."""
    made = answered(Model(["one", "two"], [TimedOut("too late"), 0]), iter_max=2)
    first, second = made.iterations
    assert (first.evaluation, first.score, first.answer) == (None, None, "one")
    assert first.error is not None
    assert (first.error.stage, first.error.kind, first.error.message) == ("evaluation", "timeout", "too late")
    assert second.score == 0.0
    assert (made.status, made.final_answer, made.best) == ("best", "two", 1)


def test_with_no_evaluation_at_all_the_run_fails():
    made = answered(Model(["one"], [TimedOut("too late")]))
    assert (made.status, made.final_answer, made.final_score, made.best) == ("failed", None, None, None)
    assert made.reason == "no answer was evaluated: too late"
    assert made.total_iterations == 3
    assert made.as_json()["iterations"][0]["evaluation"] is None


def test_after_a_failed_evaluation_the_writer_hears_the_last_one_that_there_was():
    model = Model(["one", "two", "three"], [evaluation(4, "say why"), TimedOut("late"), 9])
    made = answered(model)
    assert made.iterations[1].feedback == made.iterations[2].feedback
    assert "```\none\n```" in model.wrote[2][0]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [(Refused("no"), "refused"), (EmptyAnswer("nothing"), "empty"), (ValueError("odd"), "error"), ("  \n", "empty")],
)
def test_a_failed_generation_is_an_iteration_without_an_answer(failure, kind):
    model = Model([failure, "two"], [9])
    made = answered(model)
    first = made.iterations[0]
    assert first.error is not None
    assert (first.answer, first.error.stage, first.error.kind) == ("", "generation", kind)
    assert (made.status, made.final_answer, made.total_iterations) == ("accepted", "two", 2)
    assert model.wrote[0][0] == model.wrote[1][0]  # there was nothing to tell
    assert model.wrote[1][1]["sample"] == 1  # or a cache would answer the same


def test_an_answer_that_is_cut_off_is_none():
    from knotwork.adapters.llm import Completion

    made = answered(Model([Completion("half an an", "length"), "whole"], [9]))
    assert made.iterations[0].error.kind == "truncated"
    assert made.final_answer == "whole"


def test_the_best_of_several_candidates_counts_in_each_iteration():
    model = Model(lambda prompt: f"answer {model.now} {len(model.wrote)}", [2, 6, 6, 9, 1, 1], delay=0.001)
    made = answered(model, attempts=3)
    assert [iteration.chosen for iteration in made.iterations] == [1, 0]
    first = made.iterations[0]
    assert [candidate.evaluation.score for candidate in first.candidates] == [0.2, 0.6, 0.6]
    assert first.answer == first.candidates[1].answer
    assert model.most == 3  # side by side


def test_candidates_differ_in_sample_and_those_after_the_first_are_warmer():
    model = Model(["x"], [1])
    answered(model, attempts=2, iter_max=2)
    assert [call[1].get("sample", 0) for call in model.wrote] == [0, 1, 2, 3]
    assert [call[1].get("temperature") for call in model.wrote] == [None, 0.8, None, 0.8]


def test_a_temperature_that_is_given_holds_for_all_candidates_and_no_judge():
    model = Model(["x"], [9])
    answered(model, attempts=2, options={"temperature": 0.3, "max_tokens": 7, "timeout": 9.0})
    assert [call[1]["temperature"] for call in model.wrote] == [0.3, 0.3]
    assert all(call[1]["max_tokens"] == 7 and call[1]["timeout"] <= 9 for call in model.wrote)
    assert all(call[1]["temperature"] == 0.0 and "max_tokens" not in call[1] for call in model.judged)


def test_one_failed_candidate_does_not_cost_the_others():
    made = answered(Model([Refused("no"), "two", "three"], [TimedOut("late"), 9]), attempts=3)
    kinds = [candidate.error and candidate.error.kind for candidate in made.iterations[0].candidates]
    assert kinds == ["refused", "timeout", None]
    assert (made.status, made.iterations[0].chosen) == ("accepted", 2)
    assert len(made.as_json()["iterations"][0]["candidates"]) == 3


def test_where_no_candidate_was_evaluated_one_with_an_answer_is_shown():
    made = answered(Model([Refused("no"), "two"], [TimedOut("late")]), attempts=2, iter_max=1)
    assert made.iterations[0].answer == "two"
    assert made.reason == "no answer was evaluated: late"


def test_usage_calls_and_costs_are_added_up():
    made = answered(Model(["a", "b"], [4, 9], cost=0.5))
    assert [iteration.calls for iteration in made.iterations] == [2, 2]
    assert (made.calls, made.usage.prompt_tokens, made.usage.completion_tokens, made.cost) == (4, 40, 20, 2.0)
    assert made.as_json()["metadata"]["usage"] == {"calls": 4, "prompt_tokens": 40, "completion_tokens": 20}
    assert answered(Model(["a"], [9])).cost is None


def test_failed_calls_count_as_calls():
    made = answered(Model([Refused("no"), "b"], [BadAnswer("x"), 9]), iter_max=3)
    assert made.calls == 5


class TestChecks:
    def test_where_a_check_fails_no_judge_is_asked(self):
        model = Model(["one", "one two three"], [9])
        made = answered(model, checks=("words:3..5", "contains:one"))
        assert made.iterations[0].score == 0.5
        assert made.iterations[0].evaluation.improvement_suggestions == ("Write 3 to 5 words",)
        assert len(model.judged) == 1
        assert (made.status, made.final_score) == ("accepted", 0.9)

    def test_with_all_checks_passed_and_no_judge_the_score_is_one(self):
        made = answered(Model(["one two"]), checks=("words:2",), judges=0, eval_crit="")
        assert (made.final_score, made.calls) == (1.0, 1)

    def test_blank_criteria_with_checks_mean_no_judge(self):
        model = Model(["one two"])
        made = answered(model, checks=("words:2",), eval_crit=" \n")
        assert (made.success, model.judged, made.told["judges"]) == (True, [], 0)

    def test_a_share_of_checks_that_reaches_the_threshold_is_accepted_only_without_judges(self):
        checks = ("contains:a", "contains:b", "contains:c", "contains:d")
        alone = answered(Model(["a b c"]), checks=checks, judges=0, score_threshold=0.7)
        assert (alone.status, alone.final_score) == ("accepted", 0.75)
        model = Model(["a b c"], [evaluation(5, "more depth")])
        judged = answered(model, checks=checks, score_threshold=0.7, iter_max=1)
        assert (judged.status, judged.final_score) == ("best", 0.5)
        assert judged.iterations[0].evaluation.improvement_suggestions[-1] == "more depth"
        generous = answered(Model(["a b c"], [10]), checks=checks, score_threshold=0.7)
        assert generous.final_score == 0.75
        assert not generous.iterations[0].evaluation.meets_criteria

    def test_the_callers_own_evaluators_decide_too(self):
        async def long_enough(answer: str) -> tuple[float, str]:
            return min(1.0, len(answer) / 10), "ten characters are wanted"

        made = answered(Model(["short", "long enough"], []), evaluators=[long_enough], judges=0)
        assert [iteration.score for iteration in made.iterations] == [0.5, 1.0]
        assert made.told["evaluators"] == ["long_enough"]

    def test_an_evaluator_that_raises_is_a_failed_evaluation(self):
        def broken(answer: str) -> float:
            raise KeyError(answer)

        made = answered(Model(["one"]), evaluators=[broken], judges=0, iter_max=1)
        assert made.status == "failed"
        assert made.iterations[0].error.stage == "evaluation"
        assert "broken raised KeyError" in made.reason

    def test_with_a_threshold_of_zero_a_failed_check_is_still_judged(self):
        model = Model(["x"], [9])
        assert answered(model, checks=("contains:y",), score_threshold=0.0).final_score == 0.0
        assert len(model.judged) == 1


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"instruct": "  "}, "instruct"), ({"instruct": 3}, "instruct"), ({"instruct": "x" * 100_001}, "instruct"),
        ({"instruct": "\ud83d"}, "instruct"), ({"iter_max": 0}, "iter_max"), ({"iter_max": 11}, "iter_max"),
        ({"iter_max": True}, "iter_max"), ({"iter_max": 3.0}, "iter_max"), ({"score_threshold": 1.01}, "score_threshold"),
        ({"score_threshold": float("nan")}, "score_threshold"), ({"score_threshold": True}, "score_threshold"),
        ({"attempts": 9}, "attempts"), ({"judges": 10}, "judges"), ({"judges": -1}, "judges"), ({"checks": 3}, "checks"),
        ({"checks": ("nonsense",)}, "checks"), ({"eval_crit": ""}, "eval_crit"), ({"judges": 0}, "judges"),
        ({"template": "defalt"}, "template"), ({"options": {"temprature": 1}}, "options"),
        ({"checks": ["contains:\ud83d"]}, "checks"), ({"iter_max": 10**5000}, "iter_max"),
        ({"score_threshold": 10**5000}, "score_threshold"), ({"cancel": True}, "cancel"), ({"events": print}, "events"),
        ({"on_iteration": 3}, "on_iteration"), ({"options": {"temperature": "hot"}}, "temperature"),
        ({"options": {"max_tokens": 0}}, "max_tokens"), ({"options": {"stop": 5}}, "stop"), ({"options": {"seed": "a"}}, "seed"),
        ({"options": {"timeout": 0}}, "timeout"), ({"options": {"retries": -1}}, "retries"),
        ({"time_limit": 0}, "time_limit"), ({"time_limit": float("nan")}, "time_limit"), ({"evaluators": [3]}, "evaluators"),
    ],
)  # fmt: skip
def test_what_can_not_be_asked_is_refused_before_any_call(wrong, parameter):
    model = Model()
    with pytest.raises(RequestError) as caught:
        answered(model, **wrong)
    assert caught.value.parameter == parameter
    assert model.calls == 0


def test_the_bounds_are_the_seeds():
    asked = AnswerRequest("x")
    assert (asked.iter_max, asked.score_threshold) == (3, 0.8)
    assert AnswerRequest("x", iter_max=10, score_threshold=1).iter_max == 10
    assert AnswerRequest("x", checks="json").checks == AnswerRequest("x", checks=["json"]).checks == ("json",)


def test_an_unknown_option_gets_a_hint():
    with pytest.raises(RequestError, match="did you mean 'temperature'"):
        answered(Model(), options={"temprature": 1})


def test_a_time_limit_may_be_longer_than_a_float_can_say():
    assert answered(Model(judges=[9]), time_limit=10**400).success


def test_what_on_iteration_returns_does_not_matter_unless_it_can_be_waited_for():
    seen = []
    made = answered(Model(judges=[2]), on_iteration=lambda iteration: seen.append(iteration) or len(seen))
    assert len(seen) == made.total_iterations == 3


@pytest.mark.parametrize(
    ("score", "threshold", "shown"),
    [(0.5, 0.8, "0.50"), (0.7996, 0.8, "0.7996"), (0.7999996, 0.8, "0.7999996"), (0.804, 0.8, "0.80"), (0.849, 0.85, "0.849"),
     (1.0, 1.0, "1.00"), (0.9999999999, 1.0, "0.9999999999"), (0.0, 0.0, "0.00"), (0.7, 0.701, "0.70")],
)  # fmt: skip
def test_a_score_below_the_threshold_looks_like_one(score, threshold, shown):
    assert points(score, threshold) == shown


def test_neither_the_writer_nor_the_reason_says_that_the_threshold_was_reached_where_it_was_not():
    model = Model()
    made = answered(model, judges=0, eval_crit="", evaluators=[lambda answer: 0.7996], score_threshold=0.8, iter_max=2)
    assert "Its score is 0.7996 of 1.00; the required score is 0.80." in model.wrote[1][0]
    assert made.reason == "no answer in 2 iterations reached 0.8; the best answer scores 0.7996"
    model = Model()
    answered(model, judges=0, eval_crit="", evaluators=[lambda answer: 0.5], score_threshold=0.855, iter_max=2)
    assert "Its score is 0.50 of 1.00; the required score is 0.855." in model.wrote[1][0]
