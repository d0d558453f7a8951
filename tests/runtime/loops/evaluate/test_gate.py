"""Requirements, the baseline and the JUnit file."""

import asyncio
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from attrs import evolve
from knotwork import evals
from knotwork.runtime.loops.evaluate.evaluation_report import EvaluationReport
from knotwork.runtime.loops.evaluate.gate import (
    RequirementError,
    judge,
    junit,
    known_paths,
    read_baseline,
    read_requirement,
    report_numbers,
    save_baseline,
    unanswered_message,
    with_baseline,
)
from knotwork.runtime.loops.evaluate.gold import GoldError
from support.evaluations import SEED, Rater, contexts, gold_rows


def report_of(model: Any, rows: list[dict[str, Any]] | None = None, **settings: Any) -> EvaluationReport:
    return asyncio.run(evals.run(SEED, rows or gold_rows(), contexts=contexts(), candidates={"m": model}, **settings))


@pytest.fixture(scope="module")
def report() -> EvaluationReport:
    return report_of(Rater({"0.0", "1.1", "2.2"}))


def held(report: EvaluationReport, text: str) -> bool | None:
    known = known_paths(report.gold.columns)
    (result,) = judge(report, [read_requirement(text, known)]).requirements
    return result.holds


def test_requirements_are_expressions_over_dotted_paths(report: EvaluationReport) -> None:
    assert held(report, "rating.accuracy > rating.majority")
    assert held(report, "rating.accuracy.low <= rating.accuracy and rating.accuracy <= rating.accuracy.high")
    assert held(report, "round(rating.accuracy, 3) == 0.833 and run.calls == 18 and run.failed_share == 0")
    assert held(report, "'rating.x' != 'y' and rating.positive.recall > 0.5")
    assert held(report, "rating.macro_f1 >= 0.99") is False


def test_a_result_has_the_value_and_its_interval(report: EvaluationReport) -> None:
    made = judge(report, [read_requirement("rating.accuracy.low >= 0.99", known_paths(report.gold.columns))])
    (result,) = made.requirements
    assert result.message.startswith("rating.accuracy is 0.8333 (0.") and not made.passed


def test_an_unknown_cost_does_not_hold_and_says_so(report: EvaluationReport) -> None:
    (result,) = judge(report, [read_requirement("run.cost <= 1", known_paths(report.gold.columns))]).requirements
    assert result.holds is False and "run.cost is unknown" in result.message


@pytest.mark.parametrize(
    "text",
    ["rating.accuracy", "rating.accuracy and rating.kappa > 0", "rating.accuracy - 0.7", "0.7", "[rating.accuracy]"],
)
def test_a_requirement_must_be_true_or_false(report: EvaluationReport, text: str) -> None:
    with pytest.raises(RequirementError, match="a requirement must be true or false"):
        read_requirement(text, known_paths(report.gold.columns))


def test_a_value_that_is_known_only_after_the_calls_must_be_true_or_false(report: EvaluationReport) -> None:
    (result,) = judge(
        report, [read_requirement("max(rating.accuracy, 1)", known_paths(report.gold.columns))]
    ).requirements
    assert result.holds is False and "not true or false" in result.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rating.macro_f.low >= 0.7", "the report has no rating.macro_f.low"),
        ("ratng.accuracy > 0.7", "the report has no ratng.accuracy"),
        ("baseline.rating.accuracy > 0", "the report has no baseline.rating.accuracy"),
        ("accuracy > 0.7", "accuracy"),
        ("rating.accuracy >", ""),
    ],
)
def test_unknown_names_and_broken_expressions_are_refused(report: EvaluationReport, text: str, message: str) -> None:
    with pytest.raises(RequirementError) as raised:
        read_requirement(text, known_paths(report.gold.columns))
    assert message in raised.value.message and text in str(raised.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("rating.f1", "did you mean rating.macro_f1?"),
        ("rating.f1_macro", "did you mean rating.macro_f1?"),
        ("rating.macro-f1", "did you mean rating.macro_f1?"),
        ("rating.f1-score", "did you mean rating.macro_f1?"),
        ("rating.acc", "did you mean rating.accuracy?"),
        ("rating.Cohens_Kappa", "did you mean rating.kappa?"),
        ("rating.weighted_f1", "its metrics are accuracy, macro_f1, kappa, answered_accuracy"),
        ("f1", "did you mean rating.macro_f1?"),
        ("rating", "a path names a field and a metric, such as rating.accuracy, rating.macro_f1, rating.kappa"),
    ],
)
def test_another_usual_name_of_a_metric_is_refused_with_the_right_name(
    report: EvaluationReport, written: str, meant: str
) -> None:
    with pytest.raises(RequirementError) as raised:
        read_requirement(f"{written} >= 0.7", known_paths(report.gold.columns))
    assert raised.value.hint == meant


def test_every_number_of_the_report_can_be_named(report: EvaluationReport) -> None:
    assert set(report_numbers(report)) <= set(known_paths(report.gold.columns, has_evidence=True))


def test_too_many_failed_items_decide_nothing() -> None:
    failing = {f"{place}.{number}": "" for place in range(6) for number in range(1)}
    report = report_of(Rater(answers=failing), require=["rating.accuracy > 0"], max_failed=0.2)
    assert not report.evaluated and report.requirements[0].holds is None
    assert "6 of 18 labels have no answer from m (33.3%), more than the allowed 20.0%" in unanswered_message(report)
    suite = ElementTree.fromstring(junit(report))[0]
    assert (suite.get("errors"), suite.get("failures")) == ("2", "0")


def test_junit_has_a_case_for_each_requirement(report: EvaluationReport) -> None:
    known = known_paths(report.gold.columns)
    texts = ['rating.accuracy > 0.1 and "<&" != ""', "rating.accuracy > 0.99"]
    suite = ElementTree.fromstring(junit(judge(report, [read_requirement(text, known) for text in texts])))[0]
    assert [case.get("name") for case in suite] == texts
    assert [[child.tag for child in case] for case in suite] == [[], ["failure"]]
    (passed,) = ElementTree.fromstring(junit(report))[0]
    assert passed.get("name") == "enough items are answered" and not list(passed)


def test_a_baseline_is_compared_in_pairs(report: EvaluationReport, tmp_path: Path) -> None:
    save_baseline(report, tmp_path / "base.json")
    better = report_of(Rater(), gold_rows()[::-1])  # the order of the rows does not matter
    baseline = read_baseline(tmp_path / "base.json", better.gold)
    made = with_baseline(better, baseline)
    assert made.baseline is not None
    comparison = made.baseline.rating.accuracy
    assert (comparison.only_a, comparison.only_b) == (3, 0) and comparison.difference == pytest.approx(1 / 6)
    known = known_paths(better.gold.columns, has_baseline=True)
    judged = judge(
        made,
        [read_requirement("rating.accuracy >= baseline.rating.accuracy and difference.rating > 0", known)],
        baseline,
    )
    assert judged.passed


def test_a_baseline_of_another_gold_table_is_refused(report: EvaluationReport, tmp_path: Path) -> None:
    save_baseline(report, tmp_path / "base.json")
    rows = gold_rows()
    rows[0]["rating"] = "neutral" if rows[0]["rating"] != "neutral" else "positive"
    other = report_of(Rater(), rows)
    with pytest.raises(GoldError, match="another gold table"):
        read_baseline(tmp_path / "base.json", other.gold)
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(GoldError, match="is not a baseline"):
        read_baseline(tmp_path / "x.json", other.gold)
    with pytest.raises(GoldError, match="can't be read"):
        read_baseline(tmp_path / "none.json", other.gold)


def test_colliding_paths_are_kept_apart(report: EvaluationReport) -> None:
    found = read_requirement("a.b_c > a_b.c and a.b_c > 1", ("a.b_c", "a_b.c"))
    assert sorted(found.paths.values()) == ["a.b_c", "a_b.c"] and len(found.paths) == 2
    assert evolve(report) == report
