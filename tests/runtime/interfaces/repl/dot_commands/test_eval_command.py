"""``.eval``: scores with the model, the limits and the account of the session, and what it refuses."""

from pathlib import Path

import pytest
from knotwork.runtime.api.session_data import Outcome, Table
from support.folders import ROOT
from support.sessions import new_session, run, run_all

FOLDER = ROOT / "docs/examples/eval"
LLM = f"replay:{FOLDER}/careful.jsonl"
DATA = f"--gold {FOLDER}/gold.csv --contexts {FOLDER}/reviews.jsonl --group product --text body"
EVAL = f".eval {FOLDER}/rating.seed.json {DATA}"


def cells(outcome: Outcome) -> dict[str, list[object]]:
    assert isinstance(outcome.value, Table), outcome
    return {str(row[0]): list(row[1:]) for row in outcome.value.rows}


@pytest.mark.slow
def test_the_scores_are_those_of_eval_and_the_budget_counts_the_calls(tmp_path: Path) -> None:
    at = new_session(llm=LLM)
    page = tmp_path / "eval.html"
    scored, budget = run_all(at, f"{EVAL} --require 'rating.accuracy > 0.99' --report {page}\n.budget")
    assert scored.status == "partial" and cells(scored)["accuracy"] == ["0.917 (0.714 to 1.000)", "0.500"]
    assert "right in 91.7 % of 12 items" in scored.summary and "NOT MET: rating.accuracy > 0.99" in scored.summary
    assert cells(budget)["calls"][0] == 12 and "<html" in page.read_text()


@pytest.mark.slow
def test_the_limit_of_the_session_ends_the_calls() -> None:
    _, stopped = run_all(new_session(llm=LLM), f".budget calls=3\n{EVAL}")
    assert stopped.status == "failed" and "12 of 12" not in stopped.message
    assert stopped.message.startswith("not evaluated: 9 of 12 labels") and "the budget of 3 calls" in stopped.hint


@pytest.mark.slow
def test_a_dry_run_makes_no_call_and_other_candidates_are_compared() -> None:
    at = new_session(llm=LLM)
    dry, compared = run_all(at, f"{EVAL} --dry-run\n{EVAL} --against replay:{FOLDER}/hasty.jsonl")
    assert cells(dry)["model"][:2] == [12, 12] and at.model.ledger.calls == 24  # those of the comparison
    assert compared.is_complete and "no difference shown" in compared.summary


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (".eval", ".eval needs a target", ".eval rating.seed.json"),
        (f"{EVAL} --requir x", ".eval has no option --requir", "did you mean --require?"),
        (f"{EVAL} --require 'ratin.accuracy>1'", "the report has no ratin.accuracy", "did you mean rating.accuracy?"),
        (f"{EVAL} --repeat x", "--repeat takes a number, not x", ""),
        (f"{EVAL} --gold other.csv", "the gold is given twice", ".eval rating.seed.json"),
        (f"{EVAL} --report eval.pdf", "--report writes HTML", "--report eval.html"),
        (f".eval nope.seed.json {DATA}", "nope.seed.json can't be read: No such file or directory", ""),
        (f".evl {FOLDER}/rating.seed.json", "unknown command .evl", "did you mean .eval?"),
    ],
)  # fmt: skip
def test_faults_are_refused_before_any_call(text: str, message: str, hint: str) -> None:
    at = new_session(llm=LLM)
    outcome = run(at, text)
    assert outcome.status == "misused" and outcome.message.startswith(message) and hint in outcome.hint
    assert at.model.ledger.calls == 0
