"""``knotwork eval``: its table, exit codes, files and options; ``check``, ``runs`` and ``report`` for evaluations."""

import json
from pathlib import Path

import pytest
from support.command import call
from support.evaluations import LABELS, cassette, gold_rows, write_csv, write_files


@pytest.fixture
def data(folder: Path) -> Path:
    write_files(folder)
    cassette(folder / "good.jsonl", {"0.0"})
    cassette(folder / "weak.jsonl", {f"{place}.{number}" for place in range(6) for number in range(2 + place % 2)})
    return folder


ARGS = ("eval", "rating.seed.json", "gold.csv", "--contexts", "contexts.jsonl")
GOOD = ("--llm", "replay:good.jsonl")


@pytest.mark.slow
def test_the_first_line_is_a_sentence_and_the_table_has_intervals(data: Path) -> None:
    done = call(*ARGS, *GOOD, "--against", "replay:weak.jsonl", "--format", "table")
    assert done.code == 0, done.err
    first = done.out.split("\n")[0]
    assert first.startswith("rating: the answers of replay:good.jsonl are right in 94.4 % of 18 items (95 % interval ")
    assert "Always answering" in first and "would be right in" in first
    row = next(line for line in done.out.split("\n") if line.startswith("accuracy "))
    assert row.count(" to ") == 2
    assert "replay:good.jsonl is better than replay:weak.jsonl" in done.out
    assert "note: rating: too few groups for a reliable interval (6 groups; 30 are needed)" in done.out
    assert "done: 18 items, 2 candidates" in done.err


def test_a_dry_run_says_items_calls_tokens_and_cost_of_each_model(data: Path) -> None:
    done = call(*ARGS, "--llm", "openai:a", "--against", "openai:b", "--dry-run", "--price", "1/2", "--format", "table")
    assert done.code == 0 and not (data / "knotwork" / "runs").exists(), done.err
    assert done.out.startswith(
        "18 items with 18 labels\nopenai:a (rating.seed.json):\n  model openai:a; price: $1 + $2 per million"
    )
    assert (
        done.out.count(": 18 calls, about ") == 2
        and "\nin all: 36 calls, $" in done.out
        and "no model was called" in done.out
    )
    assert call(*ARGS, "--llm", "openai:a", "--dry-run", "--repeat", "2").json["calls"] == 36
    assert "its price is unknown" in call(*ARGS, "--llm", "openai:no-such", "--dry-run", "--format", "table").out
    assert call(*ARGS, "--dry-run", "--require", "rating.acuracy > 1").code == 3


def test_a_share_may_be_a_percentage_and_a_number_above_1_is_refused(data: Path) -> None:
    assert call(*ARGS, *GOOD, "--max-failed", "10%").json["max_failed"] == 0.1
    refused = call(*ARGS, *GOOD, "--max-failed", "10")
    assert refused.code == 2 and "10 is more than 1" in refused.err and "write 10% or 0.1" in refused.err


def test_json_has_all_numbers(data: Path) -> None:
    report = call(*ARGS, *GOOD).json
    scores = report["candidates"]["replay:good.jsonl"]["fields"]["rating"]
    assert scores["accuracy"]["value"] == pytest.approx(17 / 18) and scores["accuracy"]["method"] == "bootstrap"
    assert report["gold"]["items"] == 18 and report["evaluated"] and report["passed"]


@pytest.mark.slow
def test_exit_codes_tell_met_unmet_undecided_and_faulty(data: Path) -> None:
    assert call(*ARGS, *GOOD, "--require", "rating.accuracy > 0.9").code == 0
    unmet = call(*ARGS, *GOOD, "--require", "rating.accuracy.low > 0.99", "--junit", "eval.xml")
    assert unmet.code == 5
    assert "requirement not met: rating.accuracy.low > 0.99, but rating.accuracy is 0.9444 (" in unmet.err
    assert "<failure message=" in Path("eval.xml").read_text()
    undecided = call(*ARGS, *GOOD, "--max-calls", "3", "--require", "rating.accuracy > 0", "--junit", "eval.xml")
    assert (
        undecided.code == 1
        and "15 of 18 labels have no answer" in undecided.err
        and "resume with: knotwork eval --resume" in undecided.err
    )
    assert "<error message=" in Path("eval.xml").read_text()
    assert call(*ARGS, *GOOD, "--max-calls", "3", "--max-failed", "1").code == 0


def test_faults_end_with_exit_code_3_and_no_call(data: Path) -> None:
    rows = gold_rows()
    rows[2]["rating"], rows[3]["id"] = "neutrl", "9-9"
    write_csv(Path("bad.csv"), rows)
    done = call("eval", "rating.seed.json", "bad.csv", "--contexts", "contexts.jsonl", *GOOD)
    assert done.code == 3 and done.out == ""
    assert 'error: bad.csv, row 3: rating is "neutrl"; did you mean neutral?' in done.err and "row 4" in done.err
    assert done.err.endswith("no call was made\n")
    wrong = call(*ARGS, *GOOD, "--require", "rating.acuracy > 1")
    assert (
        wrong.code == 3
        and "the report has no rating.acuracy" in wrong.err
        and "did you mean rating.accuracy" in wrong.err
    )
    Path("rating.seed.json").write_text('{"task_name": "x", "extract": {"fields": []}}')
    assert call(*ARGS, *GOOD).code == 3
    assert not Path("home/runs").exists()


def test_wrong_usage(data: Path) -> None:
    assert call("eval").code == 2
    assert call("eval", "rating.seed.json").code == 2
    missing = call("eval", "rating.seed.json", "none.csv", "--contexts", "contexts.jsonl", *GOOD)
    assert missing.code == 2 and "none.csv" in missing.err
    assert call("eval", "rating.seed.json", "gold.csv", *GOOD).err.startswith(
        "error: --contexts: the contexts of the seed are missing"
    )
    both = call(*ARGS, *GOOD, "--results", "x.jsonl")
    assert both.code == 2 and "--results and --llm" in both.err
    assert call(*ARGS, *GOOD, "--report", "x.pdf").code == 2
    assert call(*ARGS, *GOOD, "--resume", "nothing").code == 2
    unknown = call("eval", "something", "gold.csv", *GOOD)
    assert unknown.code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (("eval", "ratng.seed.json", *ARGS[2:]), 2, "ratng.seed.json can't be read", "did you mean rating.seed.json?"),
        (("eval", ARGS[1], "golds.csv", *ARGS[3:]), 2, "golds.csv can't be read", "did you mean gold.csv?"),
        (("eval", *ARGS[1:3], "--contexts", "context.jsonl"), 2, "context.jsonl can't be read", "did you mean contexts.jsonl?"),
        (("eval", "gold.csv", "rating.seed.json", *ARGS[3:]), 2, "gold.csv is a table, not a target", "the gold table follows the target"),
        (("eval", "rnk:items.json", "gold.csv"), 2, "'rnk:items.json' is not a target", "did you mean rank:items.json?"),
        ((*ARGS, "--require", "accuracy >= 0.7"), 3, "the report has no accuracy", "did you mean rating.accuracy?"),
        ((*ARGS, "--require", "rating.accuracy"), 3, "a requirement must be true or false", "rating.accuracy >= 0.7"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_was_probably_meant(
    data: Path, words: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    done = call(*words, *GOOD)
    assert (done.code, message in done.err, hint in done.err) == (code, True, True), done.err


def test_a_dry_run_names_what_limits_the_calls_of_a_loop(data: Path) -> None:
    write_csv(data / "questions.csv", [{"question": "Who?", "expect": "a"}])
    words = ("eval", "ask:nx:les_miserables", "questions.csv", "--llm", "openai:a", "--dry-run", "--format", "table")
    done = call(*words)
    assert "1 call or more" in done.out and "at most 48 calls to write plans" in done.out and "max_calls" in done.out
    limited = call(*words, "--max-calls", "20", "--max-cost", "0.5", "--price", "1/2").out
    assert "in all: 1 call, at most 20, $0.00 to at most $0.50 (limited to 20 calls and $0.50)" in limited


def test_a_baseline_is_saved_and_compared(data: Path) -> None:
    assert call(*ARGS, "--llm", "replay:weak.jsonl", "--save-baseline", "base.json").code == 0
    done = call(
        *ARGS,
        *GOOD,
        "--baseline",
        "base.json",
        "--require",
        "rating.accuracy > baseline.rating.accuracy",
        "--format",
        "table",
    )
    assert done.code == 0 and "replay:good.jsonl is better than the baseline" in done.out
    rows = gold_rows()
    rows[0]["rating"] = next(label for label in LABELS if label != rows[0]["rating"])
    write_csv(Path("gold.csv"), rows)
    other = call(*ARGS, *GOOD, "--baseline", "base.json")
    assert other.code == 3 and "another gold table" in other.err


def test_finished_results_are_scored_without_a_model(data: Path) -> None:
    assert call("seed", "run", "rating.seed.json", "contexts.jsonl", "--out", "done.jsonl", *GOOD).code == 0
    done = call(*ARGS, "--results", "done.jsonl", "--format", "table")
    assert done.code == 0 and "the answers of done are right in 94.4 %" in done.out
    assert "calls" not in done.out


def test_a_run_is_listed_shown_reported_and_resumed(data: Path) -> None:
    stopped = call(*ARGS, *GOOD, "--max-calls", "6", "--require", "rating.accuracy > 0.9")
    run = stopped.err.split("--resume ")[1].split()[0]
    listed = call("runs", "--format", "json").json[0]
    assert (listed["kind"], listed["status"], listed["done"], listed["steps"]) == ("eval", "partial", 6, 18)
    resumed = call("eval", "--resume", run, "--format", "table")
    assert resumed.code == 0 and "94.4 % of 18 items" in resumed.out and "met  rating.accuracy > 0.9" in resumed.out
    shown = call("runs", "show", run)
    assert shown.code == 0 and "18 labels, 18 calls" in shown.out and "rating" in shown.out
    assert call("report", run, "-o", "page.html").code == 0
    assert "are right in 94.4 % of 18 items" in Path("page.html").read_text()


def test_the_page_is_written(data: Path) -> None:
    assert call(*ARGS, *GOOD, "--report", "eval.html").code == 0
    assert "<title>Evaluation of rating.seed.json</title>" in Path("eval.html").read_text()


def test_agreement_needs_no_model(data: Path) -> None:
    write_csv(Path("gold.csv"), [{**row, "annotator": who} for row in gold_rows() for who in ("ann", "bob")])
    done = call(*ARGS, "--agreement")
    assert done.code == 0 and "Cohen's kappa" in done.out and "1.000" in done.out


@pytest.mark.slow
def test_an_evaluation_file_runs_everything_and_check_knows_it(data: Path) -> None:
    document = {
        "target": "rating.seed.json", "gold": "gold.csv", "contexts": "contexts.jsonl", "require": ["rating.accuracy > 0.9"],
        "candidates": {"good": {"llm": "replay:good.jsonl"}, "weak": {"llm": "replay:weak.jsonl"}},
    }  # fmt: skip
    Path("x.eval.json").write_text(json.dumps(document))
    assert call("check", "x.eval.json").code == 0
    done = call("eval", "x.eval.json", "--format", "table")
    assert done.code == 0 and "good is better than weak" in done.out
    assert call("eval", "x.eval.json", "gold.csv").code == 2
    for key, value, code, message in (
        ("gold", "gld.csv", "EVAL006", "gld.csv"),
        ("require", ["rating.acc > 1"], "EVAL008", "the report has no rating.acc"),
        ("repeat", "3", "EVAL004", "repeat must be a whole number"),
        ("contxts", "x", "EVAL002", "unknown key contxts"),
    ):
        Path("y.eval.json").write_text(json.dumps({**document, key: value}))
        found = call("check", "y.eval.json", "--format", "json")
        assert found.code == 3 and [(each["code"], message in each["message"]) for each in found.json] == [(code, True)]
    run = call("run", "x.eval.json")
    assert run.code == 2 and "knotwork eval x.eval.json" in run.err


def test_another_version_of_the_seed_is_a_candidate(data: Path) -> None:
    text = Path("rating.seed.json").read_text()
    Path("v1.seed.json").write_text(text)
    done = call(*ARGS, *GOOD, "--against", "v1.seed.json")
    assert done.code == 0 and list(done.json["candidates"]) == ["rating.seed.json", "v1.seed.json"]


def test_versions_with_the_same_file_name_are_called_by_their_paths(data: Path) -> None:
    Path("old").mkdir()
    Path("old/rating.seed.json").write_text(Path("rating.seed.json").read_text())
    done = call(*ARGS, *GOOD, "--against", "old/rating.seed.json")
    assert done.code == 0 and list(done.json["candidates"]) == ["rating.seed.json", "old/rating.seed.json"]
