"""``--functions`` of run, check and plan, and scripts that run other scripts, from the command line."""

from pathlib import Path

import pytest
from support.command import call, cassette

FUNCTIONS = """
from os.path import basename

def up(text):
    return _shout(text)

async def later(n):
    return n + 1

def _shout(text):
    return text.upper()
"""
SCRIPT = """\
(a)=CALL("up", text={(input)}["t"])
(b)=EACH({(input)}["ns"], RUN(file="inner.lwt", input={(item)}))
(final)=JOIN(a=[{(a)}, "y"], b={(b)})
"""
INNER = """\
(n)=CALL("later", n={(input)})
(final)=LLM("double {(n)}")
"""


@pytest.fixture(autouse=True)
def llm(folder: Path) -> str:
    (folder / "mine.py").write_text(FUNCTIONS)
    (folder / "x.lwt").write_text(SCRIPT)
    (folder / "inner.lwt").write_text(INNER)
    (folder / "in.json").write_text('{"t": "x", "ns": [1, 2]}')
    return cassette(folder / "x.cassette", {"double 2": "4", "double 3": "6"})


def test_a_run_calls_the_functions_of_the_file(llm: str) -> None:
    result = call("run", "x.lwt", "-i", "in.json", "--functions", "mine.py", "--llm", llm, "--format", "json")
    assert result.code == 0, result.err
    told = result.json
    assert told["value"] == [{"a": "X", "b": "4"}, {"a": "y", "b": "6"}]
    assert list(told["steps"]) == ["a", "b", "final"]
    assert told["usage"]["calls"] == 2
    assert "3 of 3 steps" in result.err
    assert "b[0]/n" not in result.err  # a line a step of the script, not of those that it runs
    kept = call("runs", "show", told["run"], "--format", "json").json
    assert {"a", "b", "b[0]/n", "b[0]/final", "b[1]/final", "final"} <= kept["steps"].keys()
    (row,) = call("runs", "--format", "json").json
    assert row["steps"] == 3, row


def test_without_functions_nothing_runs(llm: str) -> None:
    result = call("run", "x.lwt", "-i", "in.json", "--llm", llm)
    assert result.code == 3
    assert 'unknown function "up"' in result.err
    assert "--functions FILE.py" in result.err
    assert call("check", "x.lwt").code == 0  # a check without the option accepts any name


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_a_name_that_the_file_does_not_define_is_found(command: str, folder: Path, llm: str) -> None:
    (folder / "x.lwt").write_text('(final)=CALL("_shout", text="x")')
    result = call(command, "x.lwt", "--functions", "mine.py")
    assert result.code == 3
    assert 'unknown function "_shout"' in result.out + result.err
    (folder / "inner.lwt").write_text('(final)=CALL("upp", text="x")')
    (folder / "x.lwt").write_text('(final)=RUN(file="inner.lwt")')
    result = call(command, "x.lwt", "--functions", "mine.py")
    assert result.code == 3
    assert 'inner.lwt:1: unknown function "upp" (LWT048)' in result.out + result.err


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [("gone.py", None, "gone.py can't be loaded: it does not exist"), ("mine.txt", "", "it is not a Python file"),
     ("raises.py", "1 / 0", "ZeroDivisionError: division by zero"), ("wrong.py", "def", "SyntaxError"),
     ("none.py", "from os.path import basename", "none.py defines no function")],
)  # fmt: skip
def test_a_file_that_can_not_be_loaded_is_exit_code_2(folder: Path, name: str, text: str | None, told: str) -> None:
    if text is not None:
        (folder / name).write_text(text)
    result = call("check", "x.lwt", "--functions", name)
    assert result.code == 2
    assert told in result.err


def test_an_option_without_effect_is_reported(folder: Path) -> None:
    (folder / "x.gasl").write_text("FIND nodes AS x\n")
    result = call("check", "x.gasl", "--functions", "mine.py")
    assert "--functions has no effect: no file is a prompt script" in result.err


@pytest.mark.parametrize(
    ("form", "shown"),
    [("text", ["  inner.lwt: 2 steps in 2 layers", "layer 1     (n)      CALL"]),
     ("mermaid", ['subgraph s1["b · EACH"]', 's1_0["n · CALL"]', "s1 --> s2"]),
     ("dot", ['subgraph "cluster b" {', '"b/n" -> "b/final";', '"b" -> "final";'])],
)  # fmt: skip
def test_a_plan_draws_a_script_inside_its_step(form: str, shown: list[str]) -> None:
    out = call("plan", "x.lwt", "--format", form).out
    assert [text for text in shown if text not in out] == []
    steps = call("plan", "x.lwt", "--format", "json").json["steps"]
    assert [step.get("script", {}).get("file") for step in steps] == [None, "inner.lwt", None]


def test_a_dry_run_counts_the_calls_of_a_script(llm: str) -> None:
    result = call("run", "x.lwt", "-i", "in.json", "--functions", "mine.py", "--llm", llm, "--dry-run")
    assert result.code == 0, result.err
    assert 'calls the function "up"' in result.out
    assert "2 times" in result.out
    assert "double «{(n)}»" in result.out
    assert result.out.rstrip().endswith("2 calls; no model was called")


def test_a_resumed_run_needs_the_functions_again(folder: Path, llm: str) -> None:
    empty = cassette(folder / "empty.cassette", {"double 2": "4"})
    result = call("run", "x.lwt", "-i", "in.json", "--functions", "mine.py", "--llm", empty)
    assert result.code == 1
    assert "--functions mine.py" in result.err.partition("resume with: ")[2]
    run = result.err.partition("saved in ")[2].split()[0].rpartition("/")[2]
    assert call("run", "x.lwt", "--resume", run, "--llm", llm).code == 3
    again = call("run", "x.lwt", "--resume", run, "--functions", "mine.py", "--llm", llm, "--format", "json")
    assert again.code == 0, again.err
    assert again.json["usage"]["calls"] == 1


def test_functions_are_offered_to_rows_cases_and_evaluations(folder: Path) -> None:
    (folder / "s.lwt").write_text('(word)=LLM("One word: {(input)}["text"]")\n(final)=CALL("up", text={(word)})\n')
    (folder / "rows.jsonl").write_text('{"id": 1, "text": "soup"}\n')
    (folder / "s.cases.jsonl").write_text('{"name": "a", "input": {"text": "soup"}, "expect": {"final": "GOOD"}}\n')
    spec = cassette(folder / "s.cassette", {"soup": "good"})
    for words in (("run", "s.lwt", "--each", "rows.jsonl"), ("test", "s.lwt"), ("eval", "s.lwt", "s.cases.jsonl")):
        result = call(*words, "--llm", spec, "--functions", "mine.py")
        assert result.code == 0, result.err
        without = call(*words, "--llm", spec)
        assert without.code == 3 and 'unknown function "up"' in without.err, without.err
        missing = call(*words, "--llm", spec, "--functions", "yours.py")
        assert missing.code == 2 and "yours.py can't be loaded" in missing.err
    assert call("check", "s.cases.jsonl", "--functions", "mine.py").code == 0
    (folder / "other.py").write_text("def down(text):\n    return text.lower()\n")
    other = call("check", "s.cases.jsonl", "--functions", "other.py")
    assert other.code == 3 and 'unknown function "up"' in other.out
    (folder / "gold.jsonl").write_text('{"instruct": "Say yes.", "criteria": "It is short.", "human": 0.5}\n')
    loop = call("eval", "answer", "gold.jsonl", "--llm", spec, "--functions", "mine.py")
    assert loop.code == 2 and "--functions: only scripts can call them, and answer is not a script" in loop.err


def test_an_evaluation_resumes_with_its_functions(folder: Path) -> None:
    (folder / "s.lwt").write_text('(word)=LLM("One word: {(input)}["text"]")\n(final)=CALL("up", text={(word)})\n')
    (folder / "s.cases.jsonl").write_text(
        '{"name": "a", "input": {"text": "soup"}, "expect": {"final": "GOOD"}}\n'
        '{"name": "b", "input": {"text": "cake"}, "expect": {"final": "GOOD"}}\n'
    )
    spec = cassette(folder / "s.cassette", {"soup": "good", "cake": "good"})
    words = ("eval", "s.lwt", "s.cases.jsonl", "--llm", spec, "--functions", "mine.py", "--max-concurrency", "1")
    first = call(*words, "--max-calls", "1", "--no-cache")
    assert "resume with: knotwork eval --functions mine.py --resume" in first.err, first.err
    (path,) = (folder / "knotwork" / "runs").iterdir()
    again = call("eval", "--functions", "mine.py", "--resume", path.name, "--format", "json")
    assert again.code == 0, again.err
