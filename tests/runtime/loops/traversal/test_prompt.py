"""What the planner is told beside the language: ids, ranges, ceilings, all columns, when it may answer, and the search so far."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.lang.catalogue.language_card import language_card
from knotwork.runtime.excerpts import read_prompt
from knotwork.runtime.loops.traversal.plan_answer import Unreadable, read_answer
from knotwork.runtime.loops.traversal.planner import small_grammar
from support.admitting import admits
from support.traversing import Planning, asked, done, plan
from support.wondering import Wondering

PACKAGE = "knotwork.runtime.loops.traversal"
KEEP = ("DECLARE found AS LIST", 'FIND nodes WHERE entity_type = "ACCOUNT" AS x', "UPDATE found WITH x")


def accounts() -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph()
    for number in range(1, 6):
        graph.add_node(number, entity_type="ACCOUNT", balance=number * 2.5, **{f"field_{at}": at for at in range(14)})
    for number in range(1, 5):
        graph.add_edge(number, number + 1, relation="TRANSFER", at=f"2024-0{number}-01")
    return graph


def prompts_of(*plans: str, **settings: Any) -> list[str]:
    model = Planning(*plans)
    asked(model, graph=accounts(), **settings)
    return model.prompts


def test_the_card_is_the_language_of_the_prompt() -> None:
    assert language_card() in prompts_of(plan(*KEEP), done("x", "found"))[0]


def test_ids_ranges_and_ceilings_are_shown() -> None:
    prompt = prompts_of(plan(*KEEP), done("x", "found"))[0]
    assert "ids of nodes: integer, such as 1, 2, 3, 4, 5" in prompt
    assert "- balance: float, from 2.5 to 12.5; 5 different" in prompt
    assert '- at: text, from "2024-01-01" to "2024-04-01"; 4 different' in prompt
    assert "max_results 100,000 (at most 10,000,000)" in prompt
    assert '(p:ACCOUNT) means entity_type = "ACCOUNT"' in prompt
    assert '-[r:TRANSFER]- means relation = "TRANSFER"' in prompt


@pytest.mark.parametrize("most", [9_000, 24_000])
def test_all_columns_of_the_last_results_are_named(most: int) -> None:
    columns = ", ".join(["id", "entity_type", "balance", *(f"field_{at}" for at in range(14))])
    prompt = prompts_of(plan(*KEEP), done("x", "found"), prompt_characters=most)[1]
    assert f"columns of x: {columns}\n" in prompt
    assert f"found LIST, 5; columns: {columns}; such as" in prompt
    assert "more fields" not in prompt and '"…"' not in prompt


def test_the_notes_of_a_command_are_shown() -> None:
    prompt = prompts_of(plan("MEASURE graph USING degree AS ranks"), plan(*KEEP), done("x", "found"))[1]
    assert "-> success 5; note: degree, unweighted without BY; on the whole graph (5 nodes, 4 edges)" in prompt


def test_items_with_different_fields_show_the_columns_of_all() -> None:
    graph = nx.Graph()
    graph.add_node("a", first=1)
    graph.add_node("b", second=2)
    model = Planning(plan("DECLARE found AS LIST", "FIND nodes AS x", "UPDATE found WITH x"), done("x", "found"))
    asked(model, graph=graph)
    assert "columns of x: id, first, second" in model.prompts[1]


def test_an_answer_is_offered_only_with_findings_in_the_state(tmp_path: Path) -> None:
    first, second, third = prompts_of(plan("FIND nodes AS x"), plan(*KEEP), done("x", "found"))
    for prompt in (first, second):
        assert '"complete"' not in prompt
        assert "An answer is not possible yet, because the state is empty" in prompt
    assert '{"complete": the whole answer' in third and "not possible yet" not in third
    with gasl.open(accounts(), tmp_path / "s") as executor:
        executor.run_plan("\n".join(KEEP))
    model = Planning(done("x", "found"))
    asked(model, graph=accounts(), state=tmp_path / "s")
    assert '{"complete": the whole answer' in model.prompts[0]


def test_a_key_that_stayed_empty_may_be_cited() -> None:
    plans = (
        plan("DECLARE found AS LIST", 'FIND nodes WHERE entity_type = "ACCOUNT" AND balance > 99 AS x'),
        done("none", "found"),
    )
    prompt = prompts_of(*plans)[1]
    assert "If nothing was found, cite the key that stayed empty" in prompt


@pytest.mark.parametrize("name", ["first", "next", "ending", "several", "step"])
def test_no_form_in_a_prompt_is_an_answer_or_a_plan(name: str) -> None:
    text = read_prompt(PACKAGE, name)
    assert isinstance(read_answer(text), Unreadable)
    for line in text.splitlines():
        assert isinstance(read_answer(line), Unreadable), line


def test_a_small_model_ends_only_with_findings() -> None:
    answer = '{"complete": "Mr. Hi", "evidence": ["found"]}'
    assert admits(small_grammar(["club"]), answer)
    assert not admits(small_grammar(["club"], may_end=False), answer)

    class Small(Planning):
        spec = "local"

    model = Small(plan("DECLARE found AS LIST", "FIND nodes AS x", "UPDATE found WITH x"), done("x", "found"))
    made = asked(model, graph=accounts())
    first, second = (str(options["grammar"]) for options in model.options)
    assert "complete" not in first and "complete" in second
    assert made.status == "complete"
    assert [each for each in made.warnings if each.startswith("the model is small (135 million parameters)")]


def test_each_branch_shows_its_rationale_its_value_and_what_its_siblings_found() -> None:
    model = Wondering()
    asked(model, search={"strategy": "beam", "width": 1, "branching": 3}, value=lambda node: 0.25, max_steps=4)
    later = [prompt for prompt in model.prompts if "THE SEARCH" in prompt]
    assert later
    for prompt in later:
        lines = prompt.split("THE SEARCH")[1].split("WHAT TO ANSWER")[0].splitlines()
        (own,) = [line for line in lines if line.startswith("this branch: ")]
        assert "value 0.25; rationale: " in own
        siblings = [line for line in lines if line.startswith("- ")]
        assert siblings and all("->" in line for line in siblings)
        assert any("value 0.25: " in line for line in siblings)
        assert "rationale of the plan: " in prompt
    assert "THE SEARCH" not in model.prompts[0]


def test_the_judge_reads_the_plans_and_their_reasons() -> None:
    class Judging(Wondering):
        def __init__(self) -> None:
            super().__init__()
            self.judged: list[str] = []

        async def generate(self, prompt: str, **options: Any) -> Any:
            if "You judge how far" in prompt:
                self.judged.append(prompt)
                return json.dumps({"reason": "so", "score": 0.5})
            return await super().generate(prompt, **options)

    model = Judging()
    asked(model, search={"strategy": "beam", "width": 1, "branching": 2}, max_steps=2)
    assert model.judged
    assert all("The plans that led to these findings, each with its reason" in prompt for prompt in model.judged)
