"""Test cases of scripts: what counts as equal, failures with expected and actual values, and faults before any call."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.lang.source import Source
from knotwork.runtime.api.script_cases import check_cases, is_selected, junit
from knotwork.runtime.lwt.case_run import is_equal
from support.clients import Scripted

SCRIPT = """
(mood)=LLM('Glad or sad? {(input)}["text"]', type="glad" | "sad")
(spare)=LLM('Spare: {(input)}["text"]')
(final)=LLM('Why {(mood)}? {(input)}["text"]', type=json)
"""


def model(**more: Any) -> Scripted:
    return Scripted({"Why": '{"about": {"dish": "soup"}, "stars": [4, 5]}', "Cold": "sad", **more}, default="glad")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(*cases: dict[str, Any], script: str = SCRIPT) -> Path:
        (tmp_path / "s.lwt").write_text(script)
        path = tmp_path / "s.cases.jsonl"
        path.write_text("".join(json.dumps({"input": {"text": "Great"}, **case}) + "\n" for case in cases))
        return path

    return write


def test_a_case_passes_if_all_expectations_are_met(write: Any) -> None:
    path = write(
        {"name": "a", "expect": {"mood": "glad", "final.about.dish": "soup", "final.stars.1": 5}, "checks": ["json"]},
        {
            "name": "b",
            "expect": {"final": {"stars": [4.0, 5], "about": {"dish": "soup"}}},
            "checks": {"mood": ["words:1"]},
        },
        {"name": "c", "expect": {"spare": "glad"}, "checks": ["expr:len(answer['stars']) == 2"]},
    )
    for given in (path, path.parent, path.with_name("s.lwt"), [path]):
        report = lwt.run_cases_sync(given, llm=model())
        assert report.passed, report.results
    assert [each.name for each in report.results] == ["a", "b", "c"]


def test_a_failure_has_the_place_both_values_and_the_prompt(write: Any) -> None:
    path = write({"name": "a", "expect": {"mood": "sad", "final.stars.7": 5, "final.abot": 1}, "checks": ["words:1"]})
    (result,) = lwt.run_cases_sync(path, llm=model()).results
    assert result.status == "failed"
    assert [(each.place, each.expected, each.actual) for each in result.mismatches[:2]] == [
        ("mood", '"sad"', '"glad"'),
        ("final.stars.7", "5", 'the list has no element 7: {"about": {"dish": "soup"}, "stars": [4, 5]}'),
    ]
    assert result.mismatches[0].prompt == "Glad or sad? Great"
    assert result.mismatches[2].actual.startswith("the value has no 'abot'")
    assert result.mismatches[3].actual.endswith("(expected exactly 1 word, found 6)")


def test_a_failed_step_fails_the_case(write: Any) -> None:
    path = write({"name": "a", "expect": {"mood": "glad"}})
    (result,) = lwt.run_cases_sync(path, llm=model(Why=RuntimeError("no"))).results
    assert [each.place for each in result.mismatches] == ["final"]
    assert "the step failed" in result.mismatches[0].actual


@pytest.mark.parametrize(
    ("expected", "actual", "output", "equal"),
    [
        ("sad", " sad\n", None, True), ("sad", "Sad", None, False), ("3", 3, "3", True), (3, "3", None, True), (3, 3.0, None, True),
        (0.3, 0.1 + 0.2, None, True), (1, True, None, False), (None, None, None, True), (None, "null", None, True),
        ([1, 2], "[1, 2]", None, True), ([1, 2], [2, 1], None, False), ({"a": 1}, {"a": 1, "b": 2}, None, False), (3, "three", None, False),
    ],
)  # fmt: skip
def test_equality(expected: Any, actual: Any, output: str | None, equal: bool) -> None:
    assert is_equal(expected, actual, output) is equal


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ('["a"]', "CASE001", "a case must be an object"), ('{"name": "a", "expct": 1}', "CASE002", "unknown key expct"),
        ('{"name": "a"}', "CASE003", "expects nothing"), ('{"expect": {"mood": 1}}', "CASE003", "name is missing"),
        ('{"name": "a", "expect": 3}', "CASE004", "expect"), ('{"name": "a", "checks": [3]}', "CASE004", "checks"),
        ('{"name": "a", "input": {"text": ""}, "expect": {"moood": 1}}', "CASE006", "no step 'moood'"),
        ('{"name": "a", "input": {"text": ""}, "checks": ["wrods:3"]}', "CASE007", "not a check"),
        ('{"name": "a", "input": {"text": ""}, "checks": {"mood": ["expr:anser > 3"]}}', "CASE007", "anser"),
        ('{"name": "a", "input": {"text": ""}, "checks": {"final.x": ["json"]}}', "CASE007", "not a part of it"),
        ('{"name": "a", "input": {"txt": ""}, "expect": {"mood": "sad"}}', "CASE008", 'no key "text"'),
        ('{"name": "a", "expect": {"mood": "sad"}}', "CASE008", "the run has no input"),
        ('{"name": "a", "expect": {"mood": "sad",}', "JSON003", "surplus comma"),
    ],
)  # fmt: skip
def test_faults_are_found_before_any_call(line: str, code: str, part: str, write: Any) -> None:
    path = write({"name": "first", "expect": {"mood": "glad"}})
    text = path.read_text() + line + "\n"
    path.write_text(text)
    checked = check_cases(Source(text, str(path)))
    told = next(each for each in checked.diagnostics if each.code == code)
    assert part in told.message
    assert told.span is not None
    assert checked.source.position(told.span.start)[0] == 2
    client = model()
    with pytest.raises(lwt.ScriptError):
        lwt.run_cases_sync(path, llm=client)
    assert client.prompts == []


def test_equal_names_and_missing_scripts(write: Any) -> None:
    path = write({"name": "a", "expect": {"mood": "glad"}}, {"name": "a", "expect": {"mood": "sad"}})
    assert [each.code for each in check_cases(Source(path.read_text(), str(path))).diagnostics] == ["CASE005"]
    path.with_name("s.lwt").unlink()
    assert check_cases(Source(path.read_text(), str(path))).diagnostics[0].code == "CASE009"


def test_the_run_ends_at_the_first_failure(write: Any) -> None:
    path = write(*({"name": str(n), "expect": {"mood": "sad" if n == 1 else "glad"}} for n in range(5)))
    report = lwt.run_cases_sync(path, llm=model(), first_failure=True, max_concurrency=1)
    assert [each.status for each in report.results] == ["passed", "failed", "not run", "not run", "not run"]
    assert not report.passed


def test_keywords() -> None:
    name = "a/soup.cases.jsonl::a Cold soup"
    assert all(
        is_selected(name, each) for each in ("", "cold", "SOUP and cold", "x or cold", "not x", "cold and not x")
    )
    assert not any(is_selected(name, each) for each in ("x", "cold and x", "not cold", "x or not soup"))


def test_junit_is_xml(write: Any) -> None:
    from xml.etree import ElementTree

    path = write({"name": "a <b>", "expect": {"mood": "sad"}}, {"name": "b", "expect": {"mood": "glad"}})
    suite = ElementTree.fromstring(junit(lwt.run_cases_sync(path, llm=model())))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite[0].get("name") == "a <b>"
    failure = suite[0].find("failure")
    assert failure is not None and "Glad or sad? Great" in str(failure.text)


def test_an_evaluation_scores_the_same_file(write: Any) -> None:
    from knotwork import evals

    path = write(
        {"name": "a", "expect": {"mood": "glad", "final.about.dish": "soup"}, "checks": ["json"]},
        {
            "name": "b", "input": {"text": "Fine"}, "expect": {"mood": "sad", "spare": "glad"}, "checks": {"mood": ["words:2"]},
        },
    )  # fmt: skip
    report = asyncio.run(evals.run(path.with_name("s.lwt"), path, llm=model()))
    fields = report.first.fields
    values = {name: scores.metrics[scores.first].value for name, scores in fields.items()}
    assert values == {
        "expect.(mood)": 0.5, "expect.(final).about.dish": 1.0, "check.1": 1.0, "expect.(spare)": 1.0, "check.(mood).1": 0.0,
    }  # fmt: skip
