"""What the prompts of rank and seed compile show of scripts and expressions passes the checks and runs."""

import re

import pytest
from knotwork import expr, lwt
from knotwork.runtime.excerpts import read_prompt
from knotwork.runtime.loops.rank.draft_script import OPERATIONS
from support.scripted import Scripted

RANK, COMPILE = "knotwork.runtime.loops.rank", "knotwork.runtime.loops.compile"
INPUT = {"items": [{"key": "a", "stars": 3}, {"key": "b", "stars": 5}]}
JUDGED = (
    '{"score": 1.0, "meets_criteria": true, "evaluation_reasoning": "good", "strengths": [], "weaknesses": [], '
    '"improvement_suggestions": []}'
)
DATA = "(list)=CONST([1, 2])\n"


def further_steps() -> list[str]:
    (line,) = [line for line in read_prompt(RANK, "plan").splitlines() if line.startswith("- Further steps: ")]
    return re.findall(r"\(id\)=.*?(?= is a constant| computes| asks| pairs)", line)


def test_the_prompts_of_rank_name_every_operation_and_the_word_none() -> None:
    for name in ("plan", "expand"):
        text = read_prompt(RANK, name)
        assert [operation for operation in OPERATIONS if not re.search(rf"\b{operation}\(", text)] == []
        assert "the word none" in text


@pytest.mark.parametrize("step", further_steps())
def test_the_steps_in_the_prompt_of_rank_run(step: str) -> None:
    script = lwt.parse(f"{DATA}{step.replace('(id)', '(final)')}")
    assert [each for each in lwt.check(script, input=INPUT) if each.severity == "error"] == []
    run = lwt.run_sync(script, input=INPUT, llm=Scripted("good", JUDGED))
    assert run.output
    if "EXPR" in step:
        assert run.value == [INPUT["items"][1]]


def test_there_are_five_steps() -> None:
    assert [re.search(r"=(\w+)", step)[1] for step in further_steps()] == ["CONST", "EXPR", "EACH", "JOIN", "ANSWER"]  # type: ignore[index]


def test_the_expressions_in_the_prompt_of_seed_compile_have_values() -> None:
    text = read_prompt(COMPILE, "seed")
    (line,) = [line for line in text.splitlines() if "comprehension" in line]
    assert '"extractions" is the list of all reviews' in line
    written = line.partition("no other op says: ")[2].removesuffix(".").replace("FIELD", "noise")
    count, stars = written.split(", sorted(")
    rows = [{"noise": "value", "meta": {"year": year, "stars": year - 2020}} for year in (2021, 2022, 2022, 2025)]
    assert expr.evaluate(count, {"extractions": rows}) == 3
    assert expr.evaluate(f"sorted({stars}", {"extractions": rows}) == [5, 2, 2]


def test_every_function_that_the_prompt_of_seed_compile_names_exists() -> None:
    from knotwork.lang.catalogue.operations import FUNCTIONS

    (named,) = re.findall(r"else B, and ([a-z0-9 ]+)\.", read_prompt(COMPILE, "seed"))
    assert [name for name in named.split() if name not in FUNCTIONS] == []
    assert "sorted" in named.split()
