"""``run``, ``plan`` and ``check`` of scripts with expressions, conditions and Formula Seeds."""

import json
from pathlib import Path

import pytest
from support.command import call, cassette

SCRIPT = """\
(score)=LLM("How angry? {(input)}", type=int)
(limit)=EXPR("one * 2 + 1", one=1)
(never)=LLM("never", when="{(limit)} > 10")
(sorry)=LLM("Apologise", when="{(score)} > {(limit)}")
(final)=EXPR("[sorry if sorry != null else 'thanks', never]", sorry={(sorry)}, never={(never)})
"""
SEED = {
    "task_name": "illness",
    "filter": {"keywords": ["ill"]},
    "extract": {"fields": [{"name": "severity", "type": "enum", "values": ["mild", "severe"]}]},
    "compute": [{"name": "N", "op": "count", "where": {"extraction.severity": "severe"}}],
    "output": ["N"],
}  # fmt: skip
CONTEXT = {"name": "Chez Nous", "reviews": [{"text": "I was ill."}, {"text": "Lovely."}]}
STEP = '(seed)=SEED(file="ill.seed.json", context={(input)})\n(final)=EXPR("n > 0", n={(seed)}["N"])\n'


@pytest.fixture
def angry(folder: Path) -> str:
    (folder / "x.lwt").write_text(SCRIPT)
    (folder / "in.json").write_text('"cold soup"')
    return cassette(folder / "x.cassette", {"How angry": "3", "Apologise": "Sorry."})


@pytest.fixture
def ill(folder: Path) -> str:
    (folder / "s.lwt").write_text(STEP)
    (folder / "ill.seed.json").write_text(json.dumps(SEED))
    (folder / "in.json").write_text(json.dumps(CONTEXT))
    return cassette(folder / "s.cassette", {"I was ill": '{"severity": "severe"}'})


def test_a_run_says_which_steps_their_conditions_left_out(angry: str) -> None:
    result = call("run", "x.lwt", "-i", "in.json", "--llm", angry, "--format", "plain")
    assert (result.code, json.loads(result.out)) == (0, ["thanks", None])
    assert "skipped (sorry): its condition is false: {(score)} > {(limit)}" in result.err
    assert "complete: 3 of 5 steps done · 1 call " in result.err
    assert "resume with" not in result.err


def test_the_document_tells_a_condition_from_a_failure(angry: str) -> None:
    told = call("run", "x.lwt", "-i", "in.json", "--llm", angry, "--format", "json").json
    assert (told["status"], told["value"]) == ("complete", ["thanks", None])
    left_out = told["steps"]["sorry"]
    assert (left_out["status"], left_out["kind"], left_out["output"]) == ("skipped", "condition", "null")
    kept = call("runs", "show", told["run"], "--format", "json").json
    assert kept["steps"]["never"]["reason"] == "its condition is false: {(limit)} > 10"


def test_a_final_step_that_is_left_out_gives_null(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=CONST(1, when="{(input)} > 3")')
    result = call("run", "x.lwt", "-i", "-", "--format", "plain", stdin="1")
    assert (result.code, result.out) == (0, "null\n")


def test_a_dry_run_computes_and_decides_what_it_can(angry: str) -> None:
    result = call("run", "x.lwt", "-i", "in.json", "--dry-run")
    assert result.code == 0
    assert '"one * 2 + 1"\n    = 3\n' in result.out
    assert "skipped: its condition is false: {(limit)} > 10" in result.out
    assert '(sorry) LLM  when="{(score)} > {(limit)}"' in result.out
    assert "1 to 2 calls; no model was called" in result.out
    told = call("run", "x.lwt", "-i", "in.json", "--dry-run", "--format", "json").json
    assert (told["calls"], told["calls_at_least"]) == (None, 1)


def test_a_dry_run_says_what_would_fail(folder: Path) -> None:
    (folder / "x.lwt").write_text('(a)=EXPR("1 / n", n={(input)})\n(final)=LLM("x {(a)}", when="{(input)} < \'a\'")')
    assert call("run", "x.lwt", "-i", "-", "--dry-run", stdin="0").out.count("would fail") == 2


def test_plan_shows_conditions(angry: str) -> None:
    result = call("plan", "x.lwt")
    assert '(sorry)  LLM   ← (score), (limit)  when="{(score)} > {(limit)}"' in result.out
    steps = {step["id"]: step for step in call("plan", "x.lwt", "--format", "json").json["steps"]}
    assert steps["never"]["when"] == '"{(limit)} > 10"'
    assert "when" not in steps["score"]


def test_a_seed_in_a_script(ill: str) -> None:
    result = call("run", "s.lwt", "-i", "in.json", "--llm", ill)
    assert (result.code, result.out) == (0, "true\n")
    assert "· 1 call " in result.err
    assert "once for each review that ill.seed.json keeps" in call("run", "s.lwt", "-i", "in.json", "--dry-run").out


def test_a_seed_needs_a_model_and_an_expression_none(folder: Path, ill: str) -> None:
    (folder / "x.lwt").write_text('(final)=EXPR("1 + 1")')
    assert call("run", "x.lwt").out == "2\n"
    refused = call("run", "s.lwt", "-i", "in.json", "--llm", "replay:none.cassette")
    assert refused.code != 0


@pytest.mark.parametrize("command", [("check", "s.lwt"), ("run", "s.lwt", "-i", "in.json")])
def test_a_faulty_seed_is_told_before_anything_runs(folder: Path, ill: str, command: tuple[str, ...]) -> None:
    (folder / "ill.seed.json").write_text(json.dumps({**SEED, "compute": [{"name": "N", "op": "cuont"}]}, indent=1))
    result = call(*command)
    assert result.code == 3
    assert "error[LWT049]: ill.seed.json:" in result.out + result.err
    (folder / "ill.seed.json").unlink()
    result = call(*command)
    assert "ill.seed.json can't be read: No such file or directory" in result.out + result.err


def test_a_faulty_program_s_file_is_told_too(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=GASL(file="p.gasl")')
    (folder / "p.gasl").write_text("FIND nodes AS x\nFIND node AS y\n")
    result = call("check", "x.lwt")
    assert "error[LWT049]: p.gasl:2: " in result.out


def test_a_script_that_is_no_file_is_not_looked_beside(ill: str) -> None:
    result = call("run", "-", "-i", "in.json", "--llm", ill, stdin=STEP)
    assert result.code == 1
    assert "this run reads no files" in result.err
