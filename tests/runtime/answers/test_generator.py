"""The writer: how it is asked, and what its prompts have in them."""

import json

import pytest
from knotwork.adapters.llm import Completion, Truncated
from knotwork.runtime.answers.generator import ANSWER_SCHEMA, way_of_asking
from support.answering import Model, answered


@pytest.mark.parametrize(
    ("spec", "way"),
    [
        ("", "text"), ("local", "text"), ("local:x.gguf", "text"), ("openai:gpt-4o", "json"), ("https://h/v1#m", "json"),
        ("localhost", "json"),
    ],
)  # fmt: skip
def test_small_models_and_clients_of_ones_own_are_asked_for_the_text_itself(spec, way):
    assert way_of_asking("auto", spec) == way
    assert way_of_asking("json", spec) == "json"
    assert way_of_asking("text", spec) == "text"


def test_as_json_the_answer_is_the_seeds_response():
    model = Model([json.dumps({"answer": "the answer"})], [9])
    made = answered(model, ask="json")
    assert made.final_answer == "the answer"
    assert model.wrote[0][1]["schema"] == ANSWER_SCHEMA
    assert ANSWER_SCHEMA["properties"]["answer"]["description"] == "The generated answer"


def test_prose_where_json_was_wanted_is_asked_for_again_once():
    model = Model(["the answer", json.dumps({"answer": "the answer"})], [9])
    assert answered(model, ask="json").final_answer == "the answer"
    failing = Model(["the answer"], [9])
    made = answered(failing, ask="json", iter_max=1)
    assert made.iterations[0].error.kind == "bad_answer"
    assert len(failing.wrote) == 2


def test_an_empty_answer_in_json_is_none():
    made = answered(Model([json.dumps({"answer": " "})], [9]), ask="json", iter_max=1)
    assert made.iterations[0].error.kind == "empty"


def test_an_answer_that_is_cut_off_is_told_with_what_an_answer_offers_and_no_option_of_another_step():
    cut = Truncated("the answer stopped at the token limit", hint="raise max_tokens, or end the answer with type=")
    error = answered(Model([cut]), iter_max=1).iterations[0].error
    assert error.kind == "truncated" and error.message == "the answer stopped at the token limit"
    assert error.hint.startswith("ask for a shorter answer") and "type=" not in error.hint


def test_half_a_surrogate_pair_is_no_answer():
    made = answered(Model([Completion("half \ud83d of one")], [9]), iter_max=1)
    assert made.iterations[0].error.kind == "bad_answer"


def test_white_space_in_an_answer_is_kept():
    assert answered(Model(["  a\n\n b \n"], [9])).final_answer == "  a\n\n b \n"


def test_the_first_prompt_has_no_feedback_and_no_gap_for_it():
    model = Model(["x"], [9])
    answered(model, instruct="  Explain {it}.\n", resp_format="One line.")
    assert model.wrote[0][0] == "Instruction:\n  Explain {it}.\n\n\nResponse format:\nOne line."


def test_a_blank_format_is_said_to_be_any():
    model = Model(["x"], [9])
    answered(model, resp_format=" ")
    assert "Response format:\nAny form that suits the instruction." in model.wrote[0][0]
    assert "```\n(any)\n```" in model.judged[0][0]


def test_system_texts_go_along():
    model = Model(["x"], [9])
    answered(model)
    assert "You write high-quality answers" in model.wrote[0][1]["system"]
    assert "You judge" in model.judged[0][1]["system"]
    brief = Model(["x"], [9])
    answered(brief, template="brief")
    assert "system" not in brief.wrote[0][1]


class Kept:
    def __init__(self, *examples, failing=False):
        self.examples, self.failing, self.kept = list(examples), failing, []

    async def like(self, request):
        if self.failing:
            raise OSError("gone")
        return self.examples

    async def keep(self, request, answer, score):
        if self.failing:
            raise OSError("gone")
        self.kept.append((request.instruct, answer, score))


def test_examples_stand_in_each_prompt_between_fences():
    model = Model(["x"], [3])
    answered(model, examples=Kept(("like {instruct}", "good ```"), ("a" * 9_000, "b")), iter_max=2)
    for prompt, _ in model.wrote:
        assert "```\nlike {instruct}\n```" in prompt
        assert "````\ngood ```\n````" in prompt
        assert "[5,000 characters left out]" in prompt
    assert "like" not in model.judged[0][0]


def test_accepted_answers_are_kept_and_no_others():
    kept = Kept()
    answered(Model(["x", "y"], [3, 9]), examples=kept)
    assert kept.kept == [("Explain it.", "y", 0.9)]
    answered(Model(["x"], [3]), examples=kept)
    assert len(kept.kept) == 1


def test_examples_that_fail_cost_a_warning():
    made = answered(Model(["x"], [9]), examples=Kept(failing=True))
    assert made.success
    assert made.warnings == (
        "no examples were used: OSError: gone", "the answer was not stored as an example: OSError: gone",
    )  # fmt: skip
