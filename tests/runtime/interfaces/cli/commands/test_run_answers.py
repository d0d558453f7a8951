"""``run``, ``check`` and ``--dry-run`` of scripts with iterative answers."""

import json
from pathlib import Path

import pytest
from knotwork.runtime.api.checks import check_script
from support.command import call, cassette

GOOD = {"score": 0.9, "meets_criteria": True, "evaluation_reasoning": "Whole.", "improvement_suggestions": []}
POOR = {
    "score": 0.4,
    "meets_criteria": False,
    "evaluation_reasoning": "No reason is given.",
    "improvement_suggestions": ["Say why."],
}


def planned(folder: Path, text: str, *args: str) -> str:
    (folder / "x.lwt").write_text(text)
    result = call("run", "x.lwt", "--dry-run", *args)
    assert result.code == 0, result.err
    return result.out


def last(folder: Path, text: str) -> str:
    return planned(folder, text).splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ('criteria="y"', "2 to 6 calls"), ('check="json"', "1 to 3 calls"), ('criteria="y", check="json"', "1 to 6 calls"),
        ('criteria="y", judges=0, check="json"', "1 to 3 calls"), ('criteria="y", judges=3, attempts=2, iter_max=4', "8 to 32 calls"),
        ('criteria="y", iter_max=1', "2 calls"), ('check="json", iter_max=1', "1 call"), ('criteria="y", threshold=0', "2 calls"),
        ('criteria=" ", check="json", judges=3', "1 to 3 calls"), ('criteria="y", when="{(a)} > 1"', "0 to 6 calls"),
    ],
)  # fmt: skip
def test_a_dry_run_counts_at_least_and_at_most(folder: Path, options: str, calls: str) -> None:
    text = f'(final)=ANSWER("x", {options})'
    if "{(a)}" in options:
        text, calls = f'(a)=LLM("x")\n{text}', "1 to 7 calls"
    assert last(folder, text) == f"{calls}; no model was called"


def test_a_dry_run_shows_what_will_be_asked(folder: Path) -> None:
    step = '(final)=ANSWER("Join {(a)}", format="Two\\nlines of {(c)}", criteria="It names {(a)}.", iter_max=2)'
    text = f'(a)=LLM("x")\n{step}\n(c)=CONST("y")'
    told = planned(folder, text.replace("\\n", "\n"))
    assert (
        "(final) ANSWER  iter_max=2\n    | Join «{(a)}»\n    | format: Two\n    | lines of y\n    | criteria: It names «{(a)}».\n"
        in told
    )
    assert "    2 to 4 calls, until an answer is good enough" in told


def test_the_document_of_a_dry_run_has_bounds(folder: Path) -> None:
    told = json.loads(planned(folder, '(a)=ANSWER("x", criteria="y")\n(final)=LLM("{(a)}")', "--format", "json"))
    assert (told["calls"], told["calls_at_least"], told["calls_at_most"]) == (None, 3, 7)
    first = told["layers"][0][0]
    assert (first["calls"], first["calls_at_least"], first["calls_at_most"]) == (None, 2, 6)
    assert first["prompts"][0]["criteria"] == "y" and first["prompts"][0]["system"] is None
    assert told["layers"][1][0]["calls"] == 1


def test_the_document_has_no_most_where_a_step_depends_on_an_answer(folder: Path) -> None:
    text = '(l)=LLM("x", type=list)\n(e)=EACH({(l)}, LLM("{(item)}"))\n(final)=ANSWER("{(e)}", criteria="y")'
    told = json.loads(planned(folder, text, "--format", "json"))
    assert (told["calls"], told["calls_at_least"], told["calls_at_most"]) == (None, 3, None)


def test_a_template_that_leads_nowhere_would_fail(folder: Path) -> None:
    told = planned(folder, '(a)=CONST({})\n(final)=ANSWER("x", criteria="{(a)}["k"]")')
    assert 'would fail: {(a)}["k"]: unknown key "k"' in told


@pytest.mark.parametrize(
    ("call", "needed"),
    [
        ('ANSWER("x", criteria="y")', True),
        ('ANSWER("x", check="json", judge="m")', True),
        ('ANSWER("x", criteria="y", model="m")', False),
    ],
)
def test_a_model_of_the_run_s_own_is_needed_where_none_is_named(call: str, needed: bool) -> None:
    assert check_script(f"(final)={call}").needs_default_model is needed


def test_a_run_prints_the_answer(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=ANSWER("Why?", criteria="It says why.")')
    spec = cassette(
        folder / "x.cassette",
        {"Judge it by": json.dumps(GOOD), "": '{"answer": "Because of the moon."}'},
    )
    result = call("run", "x.lwt", "--llm", spec, "--format", "plain")
    assert (result.code, result.out.strip()) == (0, "Because of the moon."), result.err
    assert "2 calls" in result.err


def test_an_answer_below_the_threshold_makes_the_run_partial(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=ANSWER("Why?", criteria="It says why.", iter_max=2)')
    spec = cassette(
        folder / "x.cassette",
        {"Judge it by": json.dumps(POOR), "": '{"answer": "Who knows."}'},
    )
    result = call("run", "x.lwt", "--llm", spec, "--format", "plain")
    assert result.out.strip() == "Who knows."
    assert result.code == call("run", "x.lwt", "--llm", spec, "--format", "json").code != 0
    assert "partial" in result.err and "reached 0.8; the best answer scores 0.40 (Say why.)" in result.err


def test_a_check_that_can_not_be_read_stops_the_run_before_it_costs_anything(folder: Path) -> None:
    (folder / "x.lwt").write_text('(a)=LLM("dear")\n(final)=ANSWER("{(a)}", check="regex:(?=a)")')
    result = call("run", "x.lwt", "--llm", cassette(folder / "x.cassette", {}))
    assert result.code == 3
    assert "LWT050" in result.err and "nothing was run" in result.err
    assert "without look-around" in call("check", "x.lwt").err + call("check", "x.lwt").out


def test_a_budget_that_ends_gives_the_best_so_far_and_resume_goes_on(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=ANSWER("Why?", criteria="It says why.", iter_max=2)')
    answers = {
        "Judge it by": json.dumps(POOR),
        "Improvement suggestions": '{"answer": "It is so."}',
        "": '{"answer": "Who knows."}',
    }
    spec = cassette(folder / "x.cassette", answers)
    result = call("run", "x.lwt", "--llm", spec, "--format", "json", "--max-calls", "3")
    told = result.json
    assert (told["status"], told["output"], told["usage"]["calls"]) == ("partial", "Who knows.", 3)
    (lacking,) = told["steps"]["final"]["failed_items"]
    assert "3 calls" in lacking["message"] and "the best answer scores 0.40" in lacking["message"]
    spec = cassette(folder / "x.cassette", {**answers, "Judge it by": json.dumps(GOOD)})
    again = call("run", "--resume", told["run"], "--llm", spec, "--format", "json").json
    assert (again["status"], again["output"], again["usage"]["calls"]) == ("complete", "It is so.", 1)


def test_a_budget_that_ends_before_an_answer_fails_the_step(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=ANSWER("Why?", criteria="It says why.")')
    spec = cassette(folder / "x.cassette", {"": '{"answer": "Who knows."}'})
    told = call("run", "x.lwt", "--llm", spec, "--format", "json", "--max-calls", "1").json
    assert (told["status"], told["steps"]["final"]["kind"]) == ("failed", "budget")
