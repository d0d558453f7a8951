"""What is left out of an answer, or of a prompt, is the least of it, and it is said."""

import json

import networkx as nx
import pytest
from knotwork.lang.catalogue.language_card import language_card
from knotwork.runtime.loops.traversal.plan_answer import read_answer
from knotwork.runtime.loops.traversal.prompt import fitted, outcome_view, trail_view
from knotwork.runtime.loops.traversal.traversal_results import Hypothesis, Step
from support.traversing import Planning, asked, plan

WORDS = "The company was founded in Zurich and makes instruments for laboratories; it employs people and owns patents. "


def described(nodes: int) -> nx.DiGraph:
    """Return a graph as extraction from texts gives it: long descriptions beside short names."""
    graph = nx.DiGraph()
    for number in range(nodes):
        graph.add_node(
            f"ORG {number}",
            entity_type="ORGANIZATION",
            description=WORDS * 4,
            source_id=f"chunk-{number:04d}",
            rank=number,
        )
    return graph


@pytest.mark.parametrize("most", [9_000, 24_000])
def test_the_planner_sees_which_nodes_it_found_however_long_their_texts_are(most: int) -> None:
    model = Planning(
        plan("DECLARE found AS LIST", "FIND nodes ORDER BY rank DESC AS x", "UPDATE found WITH x"), "COMPLETE: x"
    )
    asked(model, graph=described(30), prompt_characters=most)
    prompt = model.prompts[1]
    state, outcome = prompt.split("STATE (the findings")[1].split("THE LAST STEP")
    assert len(prompt) <= most
    assert all(f'"ORG {number}"' in state for number in range(30))
    assert all(f'"ORG {number}"' in outcome for number in range(20, 30))


def test_the_surest_of_many_plans_are_taken_and_what_is_left_out_is_said() -> None:
    actions = [{"plan": [f"FIND nodes LIMIT {n + 1} AS x"], "confidence": 0.1 + n / 100} for n in range(12)]
    made = asked(Planning(json.dumps({"next_actions": actions}), "COMPLETE: x"))
    assert made.steps[0].commands == ("FIND nodes LIMIT 12 AS x",)
    assert len(made.steps[0].alternatives) == 7
    assert any(
        "4 of 12 plans were omitted; only the 8 most confident plans are tried" in warning for warning in made.warnings
    )
    said = read_answer(json.dumps({"next_actions": actions}))
    assert len(getattr(said, "drafts", ())) == 12


def test_a_plan_that_is_too_long_goes_back_to_the_model() -> None:
    model = Planning(plan(*(f"FIND nodes AS x{n}" for n in range(251))), plan("FIND nodes AS x"), "COMPLETE: x")
    made = asked(model)
    assert "a plan has at most 200 commands; this one has 251" in model.prompts[1]
    assert len(made.steps[0].entries) == 1


def test_a_line_that_is_too_long_is_skipped_and_those_behind_it_are_kept() -> None:
    assert fitted(["a", "b" * 100, "c"], 80) == "a\nc\n… [more is left out]"
    assert fitted(["a", "c"], 80) == "a\nc"


def test_a_step_with_a_long_end_still_shows_its_beginning() -> None:
    entries = tuple(
        {"command": f"FIND nodes AS x{number} " + "y" * (900 if number == 2 else 1), "status": "success"}
        for number in range(3)
    )
    told = outcome_view(Step(1, Hypothesis("start"), "success", {}, entries), 300)
    assert "x0" in told and "x1" in told and "left out" in told
    steps = [Step(n, Hypothesis("start", "", f"idea {n} " + "w " * (90 if n == 2 else 1)), "empty") for n in (1, 2)]
    assert "idea 1" in trail_view(steps, 150)


def test_values_that_a_command_left_out_for_their_type_are_shown() -> None:
    metrics = {"mismatched": {"built > 1900": 2}, "examples": {"built > 1900": ['h2 "1950"', 'h4 "old"']}}
    entries = ({"command": "FIND nodes WHERE built > 1900 AS x", "status": "success", "metrics": metrics},)
    told = outcome_view(Step(1, Hypothesis("start"), "success", {}, entries), 600)
    assert 'built > 1900 left out 2 rows whose values have another type (h2 "1950", h4 "old")' in told


def test_what_is_mended_is_shown_within_the_bound() -> None:
    entries = ({"command": "FIND nodes AS x", "status": "success"},)
    step = Step(1, Hypothesis("start"), "success", {}, entries, mended=tuple("m" * 500 for _ in range(50)))
    told = outcome_view(step, 600)
    assert len(told) <= 600
    assert "FIND nodes AS x -> success" in told and "mended before it ran" not in told[151:]


def test_the_prompt_says_that_a_counter_adds() -> None:
    assert "a COUNTER adds" in language_card()
