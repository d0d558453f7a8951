"""Tuning: the best variant is found and tested once, on items that nothing was learnt from; limits, resume and honest verdicts."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from knotwork import seed as seeds
from knotwork.adapters.llm import Completion
from knotwork.adapters.llm.budget import Ledger
from knotwork.runtime.api.tune_run import TuneRun
from knotwork.runtime.errors import RequestError
from knotwork.runtime.loops.evaluate.gold import GoldError
from knotwork.runtime.loops.evaluate.tune import Tuner, rounds_of
from knotwork.runtime.loops.evaluate.tune_results import Trial, Tuned
from support.tuning import SEED, Reader, gold_and_contexts, review_of


def tuned(
    client: Any = None, *, items: int = 120, shuffled: int | None = None, **settings: Any
) -> tuple[Tuned, Any, TuneRun]:
    """Tune the seed of ``support.tuning``; return the result, the client and the run."""
    gold, contexts = gold_and_contexts(items, 40, shuffled)
    client = client or Reader()
    run = TuneRun(SEED, gold, contexts=contexts, llm=client, **{"record": False, **settings})
    return asyncio.run(run.run()), client, run


@pytest.fixture(scope="module")
def whole() -> tuple[Tuned, Any, TuneRun]:
    """A run with all trials."""
    return tuned()


def texts_of(run: TuneRun, part: str) -> set[str]:
    target = {item.number: run.contexts[item.place[0]].reviews[item.place[1]].text for item in run.gold.items}
    return {target[item.number] for item in getattr(run.split, part)}


@pytest.mark.slow
def test_the_best_variant_is_found_and_tested_once(whole: tuple[Tuned, Any, TuneRun]) -> None:
    made, client, run = whole
    assert made.status == "complete" and made.verdict == "better"
    assert made.original is not None and made.tuned is not None and made.comparison is not None
    assert (made.original.value or 0) < (made.tuned.value or 0)
    assert made.comparison.items == made.tuned.items == len(run.split.test)
    assert made.seed is not None and len(made.seed.examples) == 8
    asked = Counter(review_of(prompt) for prompt in client.prompts if "Write better" not in prompt)
    assert {asked[text] for text in texts_of(run, "test")} == {2}, "the original and the winner, each once"
    assert {asked[text] for text in texts_of(run, "train")} == {1}
    assert len(client.prompts) == made.figures.calls == len(set(client.prompts))


@pytest.mark.slow
def test_nothing_is_learnt_from_dev_and_test_items(whole: tuple[Tuned, Any, TuneRun]) -> None:
    made, client, run = whole
    train = texts_of(run, "train")
    assert made.seed is not None and {each.text for each in made.seed.examples} <= train
    others = texts_of(run, "dev") | texts_of(run, "test")
    for prompt in client.prompts:
        if "Write better" in prompt:
            assert not any(text in prompt for text in others)
        else:
            shown = prompt.replace(review_of(prompt), "")
            assert not any(text in shown for text in others)
    tested = texts_of(run, "test")
    places = [
        index
        for index, prompt in enumerate(client.prompts)
        if "Write better" not in prompt and review_of(prompt) in tested
    ]
    assert min(places) == len(client.prompts) - len(places), "the test comes last"


@pytest.mark.slow
def test_the_tuned_seed_says_where_it_comes_from(whole: tuple[Tuned, Any, TuneRun]) -> None:
    made, _, run = whole
    assert made.seed is not None
    document = json.loads(json.dumps(made.seed.document))
    origin = document.pop("tuned_from")
    assert origin["test"]["verdict"] == "better" and origin["gold_hash"] == run.gold.hash
    assert origin["split"]["train"] == {"items": 48, "groups": 16}
    assert origin["split"]["dev"] == origin["split"]["test"] == {"items": 36, "groups": 12}
    assert [
        each for each in seeds.check(seeds.load({**document, "tuned_from": origin})) if each.severity == "error"
    ] == []
    document["extract"].pop("examples")
    names = [(each["name"], each.get("type")) for each in document["extract"]["fields"]]
    assert names == [(each["name"], each.get("type")) for each in SEED["extract"]["fields"]]


def test_trials_are_halved_and_the_original_stays(whole: tuple[Tuned, Any, TuneRun]) -> None:
    made, _, _ = whole
    assert len(made.trials) == 20
    assert made.trials[0].examples is None and len(made.trials[0].scores) == 2
    assert Counter(len(each.scores) for each in made.trials[1:]) == {1: 9, 2: 10}
    assert {each.items for each in made.trials} == {18, 36}
    assert made.trials[made.winner].items == 36


@pytest.mark.parametrize(
    ("trials", "items", "rounds"),
    [
        (23, 36, [18, 36]),
        (23, 300, [18, 37, 75, 150, 300]),
        (3, 300, [150, 300]),
        (1, 300, [300]),
        (23, 18, [18]),
        (23, 29, [29]),
    ],
)
def test_rounds(trials: int, items: int, rounds: list[int]) -> None:
    assert rounds_of(trials, items) == rounds


def test_the_best_is_ahead_of_the_original_on_the_same_items_and_was_not_eliminated() -> None:
    gold, contexts = gold_and_contexts()
    run = TuneRun(SEED, gold, contexts=contexts, llm=Reader(), record=False)
    tuner = Tuner(run.seed, run.contexts, run.gold, run.split, run.settings, None, None, Ledger())
    original, lucky, steady, partial = tuner.trials[:] = [
        Trial(number, 0, number or None, run.seed) for number in range(4)
    ]
    original.scores, lucky.scores, steady.scores, partial.scores = [0.5, 0.6], [0.9], [0.7, 0.7], [0.55]
    lucky.is_left = False
    assert tuner._best() is steady
    partial.scores = [0.65]
    assert tuner._best() is partial, "0.15 ahead in the last round that it had, when the limits ended the next one"
    steady.scores, partial.scores = [0.7, 0.6], [0.5]
    assert tuner._best() is original


@pytest.mark.slow
def test_without_a_better_variant_there_is_no_test() -> None:
    made, client, run = tuned(Reader(examples=-0.05, rules=-0.2), trials=5)
    assert (made.status, made.verdict, made.winner, made.comparison) == ("complete", "no difference shown", 0, None)
    assert not texts_of(run, "test") & {review_of(prompt) for prompt in client.prompts if "Write better" not in prompt}
    assert made.seed is not None and made.seed.document["extract"] == SEED["extract"]


@pytest.mark.slow
def test_a_single_metric_of_one_field() -> None:
    made, _, _ = tuned(metric="macro_f1", descriptions=0, trials=4)
    assert made.metric == "macro_f1" and made.comparison is not None and made.comparison.test == "randomisation"
    assert made.verdict == "better" and made.descriptions == ()


@pytest.mark.slow
def test_several_fields_count_together() -> None:
    gold, contexts = gold_and_contexts()
    rows = [{**row, "people": number % 5} for number, row in enumerate(gold)]
    made = seeds.tune_sync(SEED, rows, contexts=contexts, llm=Reader(), trials=4)
    assert made.metric == "share right" and made.status == "complete"
    run = TuneRun(SEED, rows, contexts=contexts, llm=Reader(), field="people", record=False)
    assert run.settings.columns == ("people",) and run.settings.metric == "within"


class _Odd(Reader):
    """Writes descriptions that can't be used."""

    async def generate(self, prompt: str, **options: Any) -> Completion:
        said = await super().generate(prompt, **options)
        return Completion('{"mood": {"description": ""}}') if "Write better" in prompt else said


@pytest.mark.slow
def test_descriptions_that_cannot_be_used_are_noted() -> None:
    made, _, _ = tuned(_Odd(), descriptions=2, trials=3)
    assert made.status == "complete" and made.descriptions == ()
    assert sum("can't be used" in note for note in made.notes) == 2


class _Broken:
    """Fails each call."""

    async def generate(self, prompt: str, **options: Any) -> str:
        raise ValueError("no model here")


def test_a_model_that_fails_ends_the_run() -> None:
    made, _, _ = tuned(_Broken())
    assert made.status == "failed" and made.seed is None and "no model here" in made.reason


class _Cancelling(Reader):
    """Cancels the run at its hundredth call."""

    def __init__(self, cancel: asyncio.Event) -> None:
        super().__init__()
        self._cancel = cancel

    async def generate(self, prompt: str, **options: Any) -> Completion:
        if len(self.prompts) == 100:
            self._cancel.set()
        return await super().generate(prompt, **options)


@pytest.mark.slow
def test_cancelling() -> None:
    async def main() -> Tuned:
        cancel = asyncio.Event()
        gold, contexts = gold_and_contexts()
        return await seeds.tune(SEED, gold, contexts=contexts, llm=_Cancelling(cancel), cancel=cancel)

    made = asyncio.run(main())
    assert made.status == "cancelled" and made.seed is None and made.verdict == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit", [230, pytest.param(300, marks=pytest.mark.slow), pytest.param(420, marks=pytest.mark.slow)]
)
def test_the_test_is_made_when_the_limit_ends_the_trials(limit: int) -> None:
    made, client, run = tuned(max_calls=limit)
    assert made.status == "complete" and "the trials ended early" in made.reason
    assert len(client.prompts) <= limit
    if made.winner:
        assert made.comparison is not None and made.comparison.items == len(run.split.test)


def test_a_limit_that_does_not_cover_the_test_is_refused_before_any_call() -> None:
    gold, contexts = gold_and_contexts()
    client = Reader()
    for limits in ({"max_calls": 100}, {"max_tokens": 5_000}, {"max_cost": 0.001, "price": (1.0, 2.0)}):
        with pytest.raises(RequestError, match="the test of 36 items may need"):
            TuneRun(SEED, gold, contexts=contexts, llm=client, record=False, **limits)
    assert client.prompts == []


class _Silent(Reader):
    """Reports no usage, so that the budget counts the bytes that were sent."""

    reports_usage = False


@pytest.mark.slow
@pytest.mark.parametrize(("reader", "limit"), [(Reader, 0.15), pytest.param(_Silent, 0.6, marks=pytest.mark.slow)])
def test_a_limit_on_cost_keeps_the_test(reader: type[Reader], limit: float) -> None:
    made, _, run = tuned(reader(), max_cost=limit, price=(1.0, 2.0))
    assert made.status == "complete" and "the trials ended early" in made.reason, (made.status, made.reason)
    assert made.comparison is not None and run.reserve.cost < limit


def test_a_limit_that_ends_before_the_first_trial_is_no_result() -> None:
    made, client, run = tuned(_Silent(), max_cost=0.1, price=(1.0, 2.0))
    assert made.status == "partial" and made.seed is None and made.verdict == "" and "budget" in made.reason
    assert not texts_of(run, "test") & {review_of(prompt) for prompt in client.prompts if "Write better" not in prompt}


@pytest.mark.slow
def test_items_that_the_filter_drops_are_wrong_and_teach_nothing() -> None:
    gold, contexts = gold_and_contexts()
    client = Reader()
    document = {**SEED, "filter": {"keywords": ["good", "mixed"]}}
    run = TuneRun(document, gold, contexts=contexts, llm=client, record=False, trials=4, descriptions=1)
    made = asyncio.run(run.run())
    assert made.tuned is not None and (made.tuned.value or 0) <= 2 / 3
    assert "which was bad" not in "".join(client.prompts)
    assert any("the filter of the seed drops" in note for note in made.notes)


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"trials": 25}, "trials"), ({"descriptions": 9}, "descriptions"), ({"field": "moood"}, "field"), ({"metric": "mae"}, "metric"),
    ],
)  # fmt: skip
def test_faulty_settings_are_refused(settings: dict[str, Any], parameter: str) -> None:
    gold, contexts = gold_and_contexts()
    with pytest.raises(RequestError) as caught:
        TuneRun(SEED, gold, contexts=contexts, llm=Reader(), record=False, **settings)
    assert caught.value.parameter == parameter


def test_other_seeds_and_labels_are_refused() -> None:
    gold, contexts = gold_and_contexts()
    with pytest.raises(GoldError, match="label 8 more"):
        TuneRun(SEED, gold[:52], contexts=contexts, llm=Reader(), record=False)
    formulas = {
        "extraction_fields": SEED["extract"]["fields"],
        "compute_dag": [{"name": "N", "formula": "1"}],
        "output_fields": ["N"],
    }
    with pytest.raises(RequestError, match="formula form"):
        TuneRun(formulas, gold, contexts=contexts, llm=Reader(), record=False)


@pytest.mark.slow
def test_a_stored_run_lists_its_trials_and_is_resumed_without_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    first, client, run = tuned(record=True, trials=4)
    assert first.path is not None and run.recorder is not None
    lines = [json.loads(line) for line in (first.path / "tune.jsonl").read_text().splitlines()]
    kinds = Counter(line["record"] for line in lines)
    assert [line["kept"] for line in lines if line.get("round") == 1].count(True) == 3
    assert all(isinstance(line["scores"], list) for line in lines if line["record"] == "trial")
    assert kinds == {"split": 1, "description": 4, "example_set": 4, "trial": 4 + 3, "test": 1}
    again, other, _ = tuned(record=True, trials=4, resume=first.run_id)
    assert other.prompts == [] and again.figures.reused == len(client.prompts)
    assert again.seed is not None and first.seed is not None and again.seed.document == first.seed.document
    assert again.comparison == first.comparison and [each.scores for each in again.trials] == [
        each.scores for each in first.trials
    ]
    from knotwork.runtime.runs.journal import RunError

    with pytest.raises(RunError, match="can't be resumed"):
        tuned(record=True, trials=5, resume=first.run_id)


@pytest.mark.slow
def test_shuffled_labels_show_no_difference() -> None:
    verdicts = Counter(
        tuned(Reader(examples=0.0, rules=0.0), items=180, shuffled=seed, random_state=seed)[0].verdict
        for seed in range(20)
    )
    assert verdicts["no difference shown"] >= 19, verdicts
