"""Scripts as targets: inputs from columns, values and parts of values, checks."""

import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import evals, lwt

MOOD = '(final)=LLM("Mood of {(input)}["text"]?", type="happy" | "sad")\n'
PARTS = '(final)=LLM("Parts of {(input)}["text"]?", type=json)\n'


class Model:
    """Answers with what stands behind ``say:`` in the prompt."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        return prompt.partition("say:")[2].removesuffix("?").strip()


def run(script: str, rows: list[dict[str, Any]], model: Any = None, **settings: Any) -> evals.EvaluationReport:
    return evals.run_sync(lwt.parse(script), rows, candidates={"m": model or Model()}, **settings)


def test_the_columns_are_the_input_and_the_type_of_the_final_step_gives_the_labels() -> None:
    report = run(
        MOOD,
        [
            {"text": "say:happy", "expect": "happy"},
            {"text": "say: sad", "expect": "happy"},
            {"text": "say:glad", "expect": "sad"},
        ],
    )
    scores = report["m"].expect
    assert scores.kind == "label" and scores.labels == ("happy", "sad")
    assert scores.accuracy.value == pytest.approx(1 / 3) and scores.counts["failed"] == 1


def test_a_label_outside_of_the_type_is_a_fault() -> None:
    with pytest.raises(evals.GoldError, match="did you mean happy"):
        run(MOOD, [{"text": "x", "expect": "hapy"}])


def test_parts_of_the_value_are_scored_by_type() -> None:
    said = json.dumps({"n": 3, "tags": ["a", "b"], "ok": True, "name": "Ann"})
    rows = [{"text": f"say:{said}", "expect.n": 3, "expect.tags": ["b", "a"], "expect.ok": True, "expect.name": "ann"}]
    report = run(PARTS, rows)["m"]
    assert {name: scores.kind for name, scores in report.fields.items()} == {
        "expect.n": "number", "expect.tags": "set", "expect.ok": "flag", "expect.name": "text",
    }  # fmt: skip
    assert all(scores.right == (True,) for scores in report.fields.values())
    missing = run(PARTS, [{"text": "say:{}", "expect.n": 3}])["m"].fields["expect.n"]
    assert missing.counts["invalid"] == 1


def test_checks_pass_or_not() -> None:
    rows = [
        {"text": "say:one two", "check": "words:1..3", "check.2": "contains:two"},
        {"text": "say:one", "check": "words:2..", "check.2": ""},
    ]
    report = run('(final)=LLM("{(input)}["text"]?")\n', rows)["m"]
    assert report.check.pass_rate.value == 0.5 and report.fields["check.2"].pass_rate.value == 1.0
    with pytest.raises(evals.GoldError, match="row 1"):
        run('(final)=LLM("{(input)}["text"]?")\n', [{"text": "x", "check": "wrds:3"}])


def test_the_input_may_be_json_and_is_checked_before_any_call() -> None:
    model = Model()
    rows = [{"input": '{"text": "say:sad"}', "expect": "sad"}]
    assert run(MOOD, rows, model)["m"].expect.accuracy.value == 1.0
    with pytest.raises(evals.GoldError, match="row 1"):
        run(MOOD, [{"input": '{"txt": "x"}', "expect": "sad"}], model)
    with pytest.raises(evals.GoldError, match="input is not JSON"):
        run(MOOD, [{"input": "{text", "expect": "sad"}], model)
    assert model.calls == 1


def test_groups_come_from_a_column() -> None:
    rows = [{"text": f"say:sad{' ' * place}", "who": f"w{place % 2}", "expect": "sad"} for place in range(6)]
    assert run(MOOD, rows, group="who").gold.groups == 2


def test_a_script_with_errors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.lwt").write_text('(final)=LLM("{(nothing)}")\n')
    with pytest.raises(lwt.ScriptError):
        evals.run_sync(tmp_path / "x.lwt", [{"text": "x", "expect": "y"}], candidates={"m": Model()})
