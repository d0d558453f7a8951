"""``knotwork test``: output, exit codes and options."""

import json
from pathlib import Path

import pytest
from support.command import call, cassette


@pytest.fixture
def cases(folder: Path) -> str:
    (folder / "t").mkdir()
    (folder / "t/mood.lwt").write_text("""(mood)=LLM('Glad or sad? {(input)}["text"]', type="glad" | "sad")\n""")
    told = [("cold soup", "Cold", "sad"), ("great cake", "Great", "glad"), ("fine tea", "Fine", "sad")]
    lines = [json.dumps({"name": name, "input": {"text": text}, "expect": {"mood": mood}}) for name, text, mood in told]
    (folder / "t/mood.cases.jsonl").write_text("\n".join(lines) + "\n")
    return cassette(folder / "mood.cassette", {"Cold": "sad", "Great": "glad", "Fine": "glad"})


def test_dots_and_failures(cases: str) -> None:
    result = call("test", "--llm", cases)
    assert result.code == 1
    assert result.out.splitlines()[0].split() == ["t/mood.cases.jsonl", "..F", "[100%]"]
    for part in (
        "FAILURES",
        "t/mood.cases.jsonl::fine tea (line 3)",
        '  expected: "sad"',
        '  actual:   "glad"',
        "| Glad or sad? Fine",
    ):
        assert part in result.out
    assert result.out.splitlines()[-1].startswith("1 failed, 2 passed in ")


def test_names_selection_and_success(cases: str) -> None:
    result = call("test", "t", "-v", "-k", "soup or cake", "--llm", cases)
    assert result.code == 0
    assert "t/mood.cases.jsonl::cold soup PASSED [ 50%]" in result.out
    assert "2 passed, 1 deselected in " in result.out


def test_collect_only_makes_no_call(cases: str) -> None:
    result = call("test", "t/mood.lwt", "--collect-only")
    assert (result.code, result.out.splitlines()[1]) == (0, "t/mood.cases.jsonl::great cake")


def test_exit_codes(folder: Path, cases: str) -> None:
    assert call("test", "-k", "nothing", "--llm", cases).code == 5
    (folder / "empty").mkdir()
    assert call("test", "empty").code == 5
    result = call("test", "t/moood.lwt")
    assert (result.code, "t/moood.lwt has no test cases" in result.err) == (2, True)
    assert call("test", "nowhere").code == 2
    with (folder / "t/mood.cases.jsonl").open("a") as file:
        file.write('{"name": "x", "input": {"text": ""}, "expect": {"moood": "sad"}}\n')
    result = call("test", "t", "--llm", cases)
    assert result.code == 3
    assert "did you mean mood?" in result.err
    assert "t/mood.cases.jsonl:4:" in result.err
    assert call("check", "t/mood.cases.jsonl").code == 3


def test_junit_json_and_the_first_failure(folder: Path, cases: str) -> None:
    result = call("test", "-x", "--junit", "j.xml", "--format", "json", "--max-concurrency", "1", "--llm", cases)
    assert result.code == 1
    assert (result.json["failed"], result.json["passed"]) == (1, 2)
    assert result.json["cases"][2]["mismatches"][0]["expected"] == '"sad"'
    assert 'tests="3" failures="1"' in (folder / "j.xml").read_text()


def test_a_budget(cases: str) -> None:
    result = call("test", "--llm", cases, "--max-calls", "1", "--max-concurrency", "1")
    assert result.code == 1
    assert "the budget of 1 call is used up" in result.out
