"""Evaluations from Python: candidates, comparisons, results of finished runs, resumed runs, and faults before any call."""

import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import evals, seed
from knotwork.runtime.api.evaluation_run import EvaluationRun
from support.evaluations import SEED, Rater, cassette, contexts, gold_rows, write_csv, write_files


def run(model: Any = None, rows: Any = None, target: Any = SEED, **settings: Any) -> evals.EvaluationReport:
    given = {"contexts": contexts(), **settings}
    if "candidates" not in given:
        given["candidates"] = {"m": Rater() if model is None else model}
    return evals.run_sync(target, gold_rows() if rows is None else rows, **given)


def test_candidates_are_scored_and_compared() -> None:
    report = run(candidates={"good": Rater({"0.0"}), "weak": Rater({f"{place}.1" for place in range(6)})})
    assert report["good"].rating.accuracy.value == pytest.approx(17 / 18)
    assert report["good"].rating.accuracy.groups == 6
    compared = report.compare("good", "weak").rating
    assert compared.accuracy.difference == pytest.approx(5 / 18)
    assert (compared.accuracy.only_a, compared.accuracy.only_b) == (6, 1)
    assert report.comparisons[0].rating.accuracy == compared.accuracy
    assert report.passed and report.status == "complete"


def test_unknown_names_tell_the_known_ones() -> None:
    report = run()
    with pytest.raises(KeyError, match="no candidate 'x'; the candidates are m"):
        report["x"]
    with pytest.raises(AttributeError, match="the report of m has no field 'mood'; its fields are rating"):
        report["m"].mood  # noqa: B018


def test_several_candidates_are_corrected_for_their_number() -> None:
    others = {"b": Rater({"0.0"}), "c": Rater({"0.1"})}
    report = run(candidates={"a": Rater(), **others})
    assert [each.rating.accuracy.adjusted for each in report.comparisons] == [1.0, 1.0]


def test_only_the_labelled_reviews_are_asked() -> None:
    model = Rater()
    run(model, gold_rows()[:4])
    assert len(model.prompts) == 4


@pytest.mark.slow
def test_outputs_of_contexts_run_whole_contexts() -> None:
    good = {
        f"drug {place}": sum(row["rating"] == "positive" for row in gold_rows()[3 * place : 3 * place + 3])
        for place in range(2)
    }
    rows = [{"context": name, "id": "", "GOOD": count, "rating": ""} for name, count in good.items()]
    model = Rater()
    report = run(model, [*rows, {**gold_rows()[6], "GOOD": ""}])
    assert report["m"].GOOD.within.value == 1.0 and report["m"].GOOD.items == 2 and report["m"].rating.items == 1
    assert len(model.prompts) == 7


def test_the_filter_counts_and_can_be_left_out() -> None:
    filtered = {**SEED, "filter": {"keywords": [".0:", ".1:"]}}
    model = Rater()
    report = run(model, target=filtered)
    assert report["m"].rating.counts["filtered"] == 6 and len(model.prompts) == 12
    assert sum(kept for kept, _ in report["m"].rating.filter_recall.values()) == 12
    assert report["m"].rating.kept["accuracy"].value == 1.0 and report["m"].rating.accuracy.value == pytest.approx(
        2 / 3
    )
    assert run(target=filtered, filter=False)["m"].rating.accuracy.value == 1.0


def test_invalid_and_failed_answers_are_wrong() -> None:
    report = run(Rater(answers={"0.0": '{"rating": "superb"}', "0.1": ""}))
    assert report["m"].rating.counts["invalid"] == 1 and report["m"].rating.counts["failed"] == 1
    assert report["m"].rating.accuracy.value == pytest.approx(16 / 18)
    rows = {tuple(row["key"].values()): row for row in report.rows()}
    assert rows["drug 0", "0-0"]["status"] == "invalid" and "superb" in rows["drug 0", "0-0"]["error"]
    assert rows["drug 0", "0-1"]["status"] == "failed" and rows["drug 0", "0-1"]["right"] is False


def test_a_limit_leaves_items_unanswered() -> None:
    report = run(max_calls=6)
    assert report["m"].rating.counts["unanswered"] == 12 and report.status == "stopped" and not report.evaluated
    assert "budget" in report.reason and report["m"].run["failed_share"] == pytest.approx(2 / 3)


def test_repeats_ask_for_further_samples() -> None:
    samples = set()

    class Sampled(Rater):
        async def generate(self, prompt: str, **options: Any) -> str:
            samples.add(options.get("sample", 0))
            return await super().generate(prompt, **options)

    report = run(Sampled(), repeat=3)
    assert samples == {0, 1, 2} and report["m"].rating.repeats is not None and report["m"].rating.repeats.same == 1.0
    assert report["m"].run["calls"] == 54


def test_results_of_a_finished_run_are_scored_without_a_call(tmp_path: Path) -> None:
    tree = seed.load({**SEED, "filter": {"keywords": [".0:", ".1:"]}})
    lines = [result.line() for result in seed.run_many_sync(tree, contexts(), llm=Rater({"0.0"}))]
    (tmp_path / "results.jsonl").write_bytes(b"".join(lines))
    report = run(target=tree, candidates={"done": {"results": str(tmp_path / "results.jsonl")}})
    assert report["done"].rating.counts["filtered"] == 6 and report["done"].rating.accuracy.value == pytest.approx(
        11 / 18
    )
    assert report["done"].run["calls"] == 0
    report.write(tmp_path)
    again = run(target=tree, candidates={"items": {"results": str(tmp_path)}})
    assert again["items"].rating.accuracy == report["done"].rating.accuracy


def test_results_without_contexts_serve_as_contexts(tmp_path: Path) -> None:
    lines = [result.line() for result in seed.run_many_sync(seed.load(SEED), contexts(), llm=Rater())]
    (tmp_path / "results.jsonl").write_bytes(b"".join(lines))
    report = run(contexts=None, candidates={"done": {"results": str(tmp_path / "results.jsonl")}})
    assert report["done"].rating.accuracy.value == 1.0


def test_another_version_of_the_seed_is_a_candidate() -> None:
    other = {**SEED, "extract": {"fields": [{**SEED["extract"]["fields"][0], "description": "the overall rating"}]}}
    model = Rater()
    report = run(candidates={"v1": {"llm": model}, "v2": {"llm": model, "target": other}})
    assert report["v2"].rating.items == 18 and "the overall rating" in model.prompts[-1]
    lacking = {"task_name": "mood", "extract": {"fields": [{"name": "mood", "type": "text"}]}}
    with pytest.raises(evals.RequestError, match="has no rating"):
        run(candidates={"v1": {"llm": model}, "v2": {"llm": model, "target": lacking}})


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([{"context": "drug 9", "id": "9-0", "rating": "positive"}], 'unknown context "drug 9"; did you mean drug '),
        ([{"context": "drug 0", "id": "0-9", "rating": "positive"}], 'unknown review id "0-9"; did you mean 0-'),
        (
            [{"context": "drug 0", "review": 7, "rating": "positive"}],
            "review 7 does not exist; drug 0 has the reviews 0 to 2",
        ),
        (
            [{"context": "drug 0", "rating": "positive"}],
            "rating is a field of a review, and drug 0 has 3 reviews; add a column id",
        ),
        ([{"id": "0-1", "GOOD": 1}], "GOOD is an output of a context; leave id and review empty in this row"),
        ([{"id": "0-1", "rating": "positve"}], 'rating is "positve"; did you mean positive?'),
    ],
)
def test_faults_of_the_gold_table_are_raised_before_any_call(rows: list[dict[str, Any]], fault: str) -> None:
    model = Rater()
    with pytest.raises(evals.GoldError) as raised:
        run(model, rows)
    assert fault in raised.value.message and not model.prompts


def test_keys_may_be_ids_alone_or_numbers() -> None:
    assert run(rows=[{"id": "1-2", "rating": "positive"}])["m"].rating.items == 1
    assert run(rows=[{"context": "drug 1", "review": "2", "rating": "positive"}])["m"].rating.items == 1


def test_requirements_seeds_and_settings_are_checked_before_any_call() -> None:
    model = Rater()
    with pytest.raises(evals.RequirementError):
        run(model, require=["rating.f1 > 0.5"])
    with pytest.raises(seed.SeedError):
        run(model, target={**SEED, "output": ["NONE"]})
    with pytest.raises(evals.RequestError, match="did you mean"):
        run(model, repeats=3)
    with pytest.raises(evals.RequestError, match="unknown key"):
        run(candidates={"m": {"llm": model, "modle": 1}})
    with pytest.raises(evals.RequestError, match="contexts"):
        run(model, contexts=None)
    assert not model.prompts


@pytest.mark.slow
def test_a_resumed_evaluation_repeats_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    bad = {"0.2": '{"rating": "superb"}'}
    first = run(Rater({"0.0"}, bad), max_calls=9, record=True)
    assert first.path is not None and not first.evaluated
    model = Rater({"0.0"}, bad)
    second = run(model, resume=first.path)
    whole = run(Rater({"0.0"}, bad))
    assert second.as_json()["candidates"]["m"]["fields"] == whole.as_json()["candidates"]["m"]["fields"]
    done = first["m"].run["calls"]
    assert second["m"].run["calls"] == whole["m"].run["calls"] and len(model.prompts) == whole["m"].run["calls"] - done
    third = run(model, resume=first.path)
    assert third["m"].run["reused"] > 0 and len(model.prompts) == whole["m"].run["calls"] - done
    assert {path.name for path in first.path.iterdir()} == {"run.jsonl", "report.json", "items.jsonl", "texts.jsonl"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in first.path.iterdir())


def test_a_changed_evaluation_is_not_resumed_unless_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    first = run(record=True)
    assert first.path is not None
    with pytest.raises(evals.RunError, match="the gold table changed"):
        run(rows=gold_rows()[:5], resume=first.path)
    with pytest.raises(evals.RunError, match="the candidates changed"):
        run(candidates={"other": Rater()}, resume=first.path)
    model = Rater()
    assert run(model, gold_rows()[:5], resume=first.path, force=True)["m"].rating.items == 5 and not model.prompts


def test_a_document_has_paths_relative_to_its_folder(tmp_path: Path) -> None:
    write_files(tmp_path)
    spec = cassette(tmp_path / "answers.jsonl", {"0.0"})
    document = {
        "target": "rating.seed.json",
        "gold": "gold.csv",
        "contexts": "contexts.jsonl",
        "candidates": {"m": {"llm": spec}},
    }
    (tmp_path / "x.eval.json").write_text(json.dumps(document))
    assert evals.run_sync(tmp_path / "x.eval.json")["m"].rating.accuracy.value == pytest.approx(17 / 18)
    (tmp_path / "bad.eval.json").write_text('{"target": "rating.seed.json", "golf": "gold.csv"}')
    with pytest.raises(Exception, match="gold is missing"):
        evals.read(tmp_path / "bad.eval.json")


def test_flat_tables_of_reviews_are_grouped(tmp_path: Path) -> None:
    rows = [
        {"drug": each["name"], "nr": review["id"], "body": review["text"]}
        for each in contexts()
        for review in each["reviews"]
    ]
    table = write_csv(tmp_path / "reviews.csv", rows)
    report = run(contexts=str(table), group="drug", text="body", columns={"id": "nr"})
    assert report["m"].rating.accuracy.value == 1.0 and report.gold.groups == 6
    with pytest.raises(evals.GoldError, match="unknown context") as caught:
        run(contexts=str(table), text="body", columns={"id": "nr"})
    assert "--group COL" in caught.value.hint


def test_annotators_agree() -> None:
    rows = [{**row, "annotator": who} for row in gold_rows() for who in ("x", "y", "z")]
    rows[0]["rating"] = "neutral" if rows[0]["rating"] != "neutral" else "positive"
    report = run(rows=rows)
    assert (
        report.agreement["rating"]["method"] == "Krippendorff's alpha" and 0.9 < report.agreement["rating"]["value"] < 1
    )
    run_of_two = EvaluationRun(
        {"target": SEED, "gold": rows[::3] + rows[1::3], "contexts": contexts()}, record=False, opens=False
    )
    assert run_of_two.agreement()["rating"]["method"] == "Cohen's kappa" and run_of_two.gold.ties == {"rating": 1}


@pytest.mark.slow
def test_a_vote_has_confidences_thresholds_and_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    wrong = [{f"{place}.0" for place in range(6)}, {"0.0", "1.1"}, set()]
    voters = [cassette(tmp_path / f"voter{number}.jsonl", each) for number, each in enumerate(wrong)]
    strong = cassette(tmp_path / "strong.jsonl")
    candidates = {"vote": {"llm": voters[0], "options": {"vote": voters}}, "strong": strong}
    report = run(candidates=candidates, target_accuracy=0.5, record=True)
    scores = report["vote"].rating
    assert scores.accuracy.value == pytest.approx(17 / 18) and report["vote"].run["calls"] == 54
    assert scores.calibration is not None and scores.calibration["items"] == 18
    found = report.thresholds["rating"]
    assert found["escalated_to"] == "strong" and found["points"][0]["accuracy"] == 1.0
    assert found["choice"]["target"] == 0.5 and found["choice"]["threshold"] is not None
    again = run(candidates=candidates, target_accuracy=0.5, resume=report.path)
    assert again["vote"].run["reused"] == 54 and again["vote"].rating.right == scores.right


def test_a_requirement_on_an_unknown_cost_is_refused_before_any_call() -> None:
    with pytest.raises(evals.RequestError, match=r"run\.cost is unknown"):
        run(candidates={"m": "http://127.0.0.1:9/v1#x"}, require=["run.cost <= 1"])


def test_data_frames_are_tables() -> None:
    pandas = pytest.importorskip("pandas")
    rows = [
        {"drug": each["name"], "nr": review["id"], "body": review["text"]}
        for each in contexts()
        for review in each["reviews"]
    ]
    given = {"group": "drug", "text": "body", "columns": {"id": "nr"}}
    report = run(rows=pandas.DataFrame(gold_rows()), contexts=pandas.DataFrame(rows), **given)
    assert report["m"].rating.accuracy.value == 1.0
    assert run(contexts=seed.contexts(pandas.DataFrame(rows), **given))["m"].rating.items == 18


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_of_extractions_are_scored(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("duckdb")
    typed = {**SEED, "extract": {"fields": [*SEED["extract"]["fields"], {"name": "n", "type": "int"}]}}
    answers = {"0.0": '{"rating": "negative", "n": 3}', "0.1": '{"rating": "superb", "n": 4}', "0.2": ""}
    results = seed.collect_sync(seed.load(typed), contexts(1), llm=Rater(answers=answers))
    table = tmp_path / f"extracted.{suffix}"
    getattr(results.extractions, f"to_{suffix}")(table)
    rows = [{"context": "drug 0", "id": f"0-{number}", "rating": "negative", "n": number + 3} for number in range(3)]
    report = run(rows=rows, target=typed, contexts=contexts(1), candidates={"done": {"results": str(table)}})["done"]
    assert report.rating.right == (True, False, False) and report.n.right == (True, True, False)
    assert report.rating.counts["invalid"] == 1 and report.rating.counts["failed"] == 1


def test_a_dry_run_has_the_calls_of_the_run() -> None:
    model = Rater()
    rows = [*gold_rows()[:4], {"context": "drug 3", "id": "", "rating": "", "GOOD": 1}]
    for settings in ({}, {"repeat": 2}, {"filter": False}):
        before = len(model.prompts)
        given: dict[str, Any] = {"contexts": contexts(), "candidates": {"m": model}, **settings}
        target = {**SEED, "filter": {"keywords": [".0:", ".1:"]}}
        found = evals.dry_run(target, rows, price=(1, 2), **given)
        assert len(model.prompts) == before
        evals.run_sync(target, rows, **given)
        assert len(model.prompts) - before == found.calls == found.calls_at_most
        assert (found.items, found.labels, found.repeat) == (5, 5, settings.get("repeat", 1))
        (each,) = found.candidates["m"].models
        assert (
            found.cost == found.candidates["m"].cost == each.cost_range and found.cost is not None and found.cost[0] > 0
        )


@pytest.mark.slow
def test_a_dry_run_has_the_models_of_each_candidate(tmp_path: Path) -> None:
    (tmp_path / "a.lwt").write_text('(a)=LLM("one {(input)}")\n(final)=LLM("two {(a)}", model="b")\n')
    cascade = {"llm": "openai:a", "options": {"escalate": "openai:b"}}
    plain = {"openai": "openai:a", "none": {"results": str(tmp_path / "r.jsonl")}}
    results = seed.run_many_sync(seed.load(SEED), contexts(), llm=Rater())
    (tmp_path / "r.jsonl").write_bytes(b"".join(result.line() for result in results))
    found = evals.dry_run(
        SEED, gold_rows(), contexts=contexts(), candidates={"cascade": cascade, **plain}, price=(1, 2)
    )
    assert [(each.model, each.purpose, each.calls, each.calls_at_most) for each in found.candidates["cascade"].models] == [
        ("openai:a", "reading", 18, 18), ("openai:b", "escalation", 0, 18),
    ]  # fmt: skip
    assert (found.calls, found.calls_at_most) == (36, 54)
    assert (
        found.candidates["none"].note == "results of a finished run; no call"
        and found.candidates["none"].calls_at_most == 0
    )
    script = {"llm": "openai:a", "models": {"b": "openai:b"}}
    rows = [{"input": "x", "expect": "1"}, {"input": "y", "expect": "2"}]
    found = evals.dry_run(tmp_path / "a.lwt", rows, candidates={"s": script}, price=(1, 2), repeat=3)
    assert (found.calls, found.calls_at_most) == (12, 12) and found.cost is not None and found.cost[1] is not None
    assert {spec for spec, _ in found.candidates["s"].prices} == {"openai:a", "openai:b"}
    questions = [{"question": "Who?", "expect": "a"}]
    found = evals.dry_run("ask:nx:les_miserables", questions, llm="openai:a")
    assert (found.calls, found.calls_at_most, found.cost) == (1, None, None)
    with pytest.raises(evals.GoldError):
        evals.dry_run(SEED, [{**gold_rows()[0], "rating": "wrong"}], contexts=contexts(), llm="openai:a")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repeat": 0}, "repeat: expected a whole number from 1 to 20, not 0"),
        ({"tolerance": -1}, "tolerance: expected a number, 0 or greater"),
        ({"max_failed": "x"}, "max_failed: expected a share from 0 to 1, such as 0.1 for 10 %"),
        ({"target_accuracy": 1}, "target_accuracy: expected a number between 0 and 1"),
        ({"candidates": {}}, "there is no candidate"),
        (
            {"candidates": {"m": {"llm": Rater(), "options": {"temprature": 1}}}},
            "m has an unknown option 'temprature'.*temperature",
        ),
        (
            {"candidates": {"a": Rater(), "b": {"llm": Rater(), "options": {"temperature": 9}}}},
            "expected a number from 0 to 2",
        ),
        ({"candidates": {"m": {"llm": Rater(), "models": {"x": "local"}}}}, "only scripts use"),
    ],
)
def test_settings_are_checked_before_any_call(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(evals.RequestError, match=message):
        run(**settings)


def test_every_option_of_the_command_is_in_python() -> None:
    from typing import get_type_hints

    from knotwork.runtime.api.evaluation_document import KEYS
    from knotwork.runtime.interfaces.cli.commands.eval import eval as command

    otherwise = {
        "against": "candidates", "results": "candidates", "model": "candidates", "llm": "candidates", "column": "columns",
        "no_filter": "filter", "no_cache": "cache", "agreement": "the report has it", "dry_run": "a function",
        "save_baseline": "a method", "report": "a method",
        "junit": "for CI", "output_format": "for the terminal",
    }  # fmt: skip
    known = {*KEYS, *evals._RUN} | set(otherwise)
    assert set(get_type_hints(command)) - {"return"} <= known
    assert {name for name in otherwise.values() if " " not in name} <= {*KEYS, *evals._RUN}


def test_a_baseline_can_be_saved_and_compared_in_python(tmp_path: Path) -> None:
    run(Rater({"0.0", "1.1"})).save_baseline(tmp_path / "base.json")
    report = run(baseline=str(tmp_path / "base.json"), require=["difference.rating > 0"])
    assert report.passed and report.baseline is not None and report.baseline.rating.accuracy.only_a == 2
