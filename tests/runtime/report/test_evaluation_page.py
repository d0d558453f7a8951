"""The page of an evaluation: everything escaped, no scripts, filters by style rules, a bounded size."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from knotwork import evals
from knotwork.runtime.api.reports import render_evaluation
from support.evaluations import SEED, Rater, contexts, gold_rows


@pytest.fixture(scope="module")
def report() -> evals.EvaluationReport:
    data = contexts()
    data[0]["reviews"][0]["text"] += " <script>alert(1)</script>"
    models = {"good": Rater({"0.0"}, {"0.1": '{"rating": "<b>superb</b>"}'}), "weak": Rater({"0.0", "1.1"})}
    return evals.run_sync(SEED, gold_rows(), contexts=data, candidates=models, require=["rating.accuracy > 0.99"])


class Page(HTMLParser):
    """Collects the tags and the classes of the items."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.items: list[set[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        assert not any(name.startswith("on") or name in ("src", "href") for name in given if given[name] != "#items"), (
            attrs
        )
        if tag == "li" and (given.get("class") or "x").startswith(("i-", "")) and "class" in given:
            self.items.append(set((given["class"] or "").split()))


@pytest.mark.slow
def test_the_page_has_no_scripts_and_no_resources_and_escapes_texts(report: evals.EvaluationReport) -> None:
    text = evals.to_html(report)
    assert text == report.to_html()
    page = Page(text)
    assert "script" not in page.tags and "link" not in page.tags and "iframe" not in page.tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text and "&lt;b&gt;superb&lt;/b&gt;" in text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert "http" not in text.replace("http-equiv", "")


def test_items_have_the_marks_that_the_filters_use(report: evals.EvaluationReport) -> None:
    text = evals.to_html(report)
    marks = Page(text).items
    assert len(marks) == 18
    assert [sum(f"i-{name}" in each for each in marks) for name in ("wrong", "differs", "invalid")] == [2, 2, 1]
    for name, count in (("wrong", 2), ("differs", 2), ("invalid", 1)):
        assert f'<label for="show-{name}">{name} ({count})</label>' in text
        assert f"#show-{name}:checked ~ ol.items > li:not(.i-{name})" in text


def test_scores_comparisons_and_requirements_are_on_the_page(report: evals.EvaluationReport) -> None:
    text = evals.to_html(report)
    assert "rating: the answers of good are right in 88.9 % of 18 items" in text
    assert "no difference shown between good and weak" in text
    assert "not met</b> <code>rating.accuracy &gt; 0.99</code>" in text
    assert text.count("confusion matrix</h3>") == 2 and text.count('<svg class="bar"') == 6


@pytest.mark.slow
@pytest.mark.parametrize("body", ["plain words ", "<&>'\" "])
def test_the_size_is_bounded_for_many_long_items(report: evals.EvaluationReport, body: str) -> None:
    document = report.as_json()
    rows: list[dict[str, Any]] = []
    texts = []
    for number in range(5_100):
        key = {"context": f"a product with a name {number // 3}", "id": f"review-{number}"}
        said = "negative" if number >= 5_000 else "positive"
        texts.append({"key": key, "group": "g", "text": (body * 400)[:2000], "cut": 0})
        rows += [
            {
                "key": key, "field": "rating", "gold": "positive", "candidate": name, "repeat": 0, "value": said,
                "status": "answered", "right": number < 5_000, "confidence": None, "seconds": 0.1, "cost": 0.001,
            }
            for name in document["candidates"]
        ]  # fmt: skip
    text = render_evaluation(json.loads(json.dumps(document)), rows, texts)
    assert len(text.encode()) < 5_000_000
    assert "100 more items are in items.jsonl" in text and "wrong (100)" in text, (
        "wrong answers are never left out first"
    )
