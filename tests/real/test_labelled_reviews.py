"""Evaluations of real labelled reviews: the tables that ``docs/examples/real_reviews.py`` makes of them, and the local model on a few."""

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
from knotwork import evals
from support.command import call
from support.folders import DATA, EXAMPLES

REVIEWS = DATA / "reviews"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not REVIEWS.is_dir(), reason="the reviews are not here (KNOTWORK_TEST_DATA names their folder)"),
]
FIELDS = {"drugs": "opinion", "clothes": "happy"}


def made(folder: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tables of ``size`` reviews of each set, beside copies of the seeds."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import real_reviews

    for name in FIELDS:
        shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("*.csv"))
    real_reviews.main(REVIEWS, size, folder)
    sys.modules.pop("real_reviews")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_tables_are_samples_without_labels_in_the_reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, 100, monkeypatch)
    for name, field in FIELDS.items():
        reviews, gold = table(tmp_path / name / "reviews.csv"), table(tmp_path / name / "gold.csv")
        assert len(reviews) == len(gold) == 100
        assert list(reviews[0]) == ["item", "id", "text"] and list(gold[0]) == ["context", "id", field]
        assert [each["id"] for each in reviews] == [each["id"] for each in gold]
        seed = json.loads((tmp_path / name / "examples.seed.json").read_text(encoding="utf-8"))
        shown = {each["text"] for each in seed["extract"]["examples"]}
        assert shown and not shown & {each["text"] for each in reviews}
        done = call("check", tmp_path / name / f"{name}.eval.json")
        assert done.code == 0, done.err


def test_a_larger_sample_contains_a_smaller_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large").mkdir()
    made(tmp_path, 20, monkeypatch)
    made(tmp_path / "large", 40, monkeypatch)
    assert table(tmp_path / "drugs/gold.csv") == table(tmp_path / "large/drugs/gold.csv")[:20]


@pytest.mark.timeout(600)  # a call of the local model takes up to ten seconds on a busy machine
@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_local_model_is_compared_with_and_without_examples(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    made(tmp_path, 4, monkeypatch)
    report = evals.run_sync(tmp_path / name / f"{name}.eval.json", cache=False)
    assert report.evaluated and set(report.candidates) == {"examples", "zero-shot"}
    for candidate in ("examples", "zero-shot"):
        scores = getattr(report[candidate], FIELDS[name])
        assert scores.items == 4 and scores.accuracy.value is not None
