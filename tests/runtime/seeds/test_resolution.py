"""``resolve``: similarity, groups, what is asked, planted duplicates, and both scopes in a run."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import BudgetExceeded
from knotwork.lang.trees.seed import Extracted, Resolve
from knotwork.runtime.models.caller import Spent
from knotwork.runtime.seeds import spellings
from knotwork.runtime.seeds.compute import load
from knotwork.runtime.seeds.extraction import Extractor
from knotwork.runtime.seeds.group_calls import GroupCalls
from knotwork.runtime.seeds.resolution import Resolved, most_calls, resolved
from knotwork.runtime.seeds.seed_results import SeedResult, read_result
from knotwork.runtime.seeds.seed_run import Totals, run_many
from knotwork.runtime.seeds.seed_store import load as stored
from knotwork.runtime.seeds.seed_store import start
from knotwork.runtime.seeds.spellings import Groups, folded, occurrences, similar_pairs
from support.planted_spellings import RightModel, planted, scores

DISH = Extracted("dish", "text", doc="The dish.")
FIELDS = [{"name": "dish", "type": "text"}]


def names(step: Resolve, counts: dict[str, int], client: Any, limit: int = 8) -> tuple[Resolved, Spent]:
    async def work() -> tuple[Resolved, Spent]:
        extractor, spent = Extractor(seed(), client, limit=limit), Spent()
        calls = GroupCalls(extractor.asker(None), extractor.options)
        return await resolved(step, DISH, counts, calls, "resolve dish_name", 0, spent), spent

    return asyncio.run(work())


def seed(**more: Any) -> Any:
    step = {"field": "dish", "as": "dish_name", **more.pop("step", {})}
    parts = {
        "extract": {"fields": FIELDS},
        "resolve": [step],
        "compute": [{"name": "BY_DISH", "op": "tally", "field": "extraction.dish_name"}],
        "output": ["BY_DISH"],
    }
    return load({**parts, **more})


class Chance:
    """Says of each pair with the probability ``share`` that it is the same thing."""

    def __init__(self, share: float) -> None:
        self.share, self.calls, self.chance = share, 0, random.Random(0)

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        numbers = options["schema"]["properties"]["same"]["items"]["enum"]
        return json.dumps({"same": [each for each in numbers if self.chance.random() < self.share]})


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 25])
def test_the_bound_of_the_calls_holds_for_any_answers(count: int, share: float, small: bool) -> None:
    step, client = Resolve("dish", "dish_name", ask_above=0.1), Chance(share)
    texts = {f"noodle soup {number * 7919:06}": 1 for number in range(count)}
    group = GroupCalls(Extractor(seed(), client).asker(None), {}, has_small_window=small)
    asyncio.run(resolved(step, DISH, texts, group, "resolve", 0, Spent()))
    assert (count < 2) == (client.calls == 0) and client.calls <= most_calls(step, count, has_small_window=small)


def test_steps_that_ask_about_no_pair_make_no_call() -> None:
    assert most_calls(Resolve("dish", "x", "fuzzy"), 100, has_small_window=False) == 0
    assert most_calls(Resolve("dish", "x", same_above=0.5), 100, has_small_window=False) == 0


def test_folding() -> None:
    assert folded("  Pad-Thai, (Large)! ") == "pad thai large"
    assert folded("\uff30\uff21\uff24 thai") == "pad thai"
    assert folded("!!!") == "!!!"


def test_similarity_ignores_case_punctuation_and_the_order_of_words() -> None:
    pairs = {
        (pair.one, pair.other): pair.similarity
        for pair in similar_pairs(["Pad Thai", "thai, pad", "Pad Thay", "Soup"], 0.6)
    }
    assert pairs[0, 1] == 1.0 and 0.8 < pairs[0, 2] < 0.95 and (0, 3) not in pairs
    assert similar_pairs([], 0.6) == [] == similar_pairs(["a"], 0.0)


def test_pairs_are_the_same_whatever_the_size_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = list(planted(30))
    before = similar_pairs(texts, 0.5)
    monkeypatch.setattr(spellings, "_ROWS", 7)
    assert similar_pairs(texts, 0.5) == before


def test_groups_know_what_follows() -> None:
    groups = Groups(4)
    groups.join(2, 1)
    groups.separate(1, 3)
    assert not groups.is_open(2, 3) and not groups.is_open(1, 2) and groups.is_open(0, 3)
    groups.join(0, 2)
    assert not groups.is_open(0, 3)
    assert groups.names(["a", "b", "c", "d"], {"a": 1, "b": 2, "c": 2, "d": 1}) == {
        "a": "b",
        "b": "b",
        "c": "b",
        "d": "d",
    }


def test_occurrences() -> None:
    assert occurrences(["b", "a", ["b", "c", 3, None], None, 3, " "]) == {"a": 1, "b": 2, "c": 1}


def test_fuzzy_asks_nobody() -> None:
    client = RightModel({})
    found, spent = names(
        Resolve("dish", "dish_name", "fuzzy", same_above=0.85), {"Pad Thai": 1, "pad thay": 3, "Soup": 1}, client
    )
    assert found.names == {"Pad Thai": "pad thay", "pad thay": "pad thay", "Soup": "Soup"}
    assert (client.calls, spent.calls, found.asked) == (0, 0, 0)


def test_the_model_decides_what_lies_between() -> None:
    truth = {"Pad Thai": "p", "Pad Thai noodles": "p", "Pad Kraw": "k"}
    client = RightModel(truth)
    found, spent = names(Resolve("dish", "dish_name"), dict.fromkeys(truth, 1), client)
    assert found.names == {"Pad Thai": "Pad Thai", "Pad Thai noodles": "Pad Thai", "Pad Kraw": "Pad Kraw"}
    assert found.asked == client.pairs and spent.calls == client.calls > 0


def test_a_failed_call_leaves_its_pairs_apart_and_says_so() -> None:
    class Refuses:
        async def generate(self, prompt: str, **options: Any) -> str:
            raise BudgetExceeded("the budget of 0 calls is used up", limit="calls")

    step = Resolve("dish", "dish_name")
    found, _ = names(step, {"Pad Thai": 1, "Pad Thai noodles": 1}, Refuses())
    assert found.undecided == {"Pad Thai", "Pad Thai noodles"} and "budget" in found.fault
    assert set(found.names.values()) == {"Pad Thai", "Pad Thai noodles"}


@pytest.mark.parametrize("answer", ["no", '{"same": [7]}', '{"same": "1"}'])
def test_an_unusable_answer_is_a_failed_call(answer: str) -> None:
    found, _ = names(Resolve("dish", "dish_name"), {"Pad Thai": 1, "Pad Thai noodles": 1}, RightModel({}, [answer] * 9))
    assert found.fault


@pytest.mark.slow
def test_planted_duplicates() -> None:
    truth = planted(150)
    client = RightModel(truth)
    found, _ = names(Resolve("dish", "dish_name"), dict.fromkeys(truth, 1), client)
    assert scores(found.names, truth)[2] >= 0.98
    assert client.calls <= -(-client.pairs // 20) + 40
    fuzzy, _ = names(Resolve("dish", "dish_name", "fuzzy", same_above=0.9), dict.fromkeys(truth, 1), client)
    assert scores(fuzzy.names, truth)[2] >= 0.6


@pytest.mark.slow
def test_a_thousand_planted_names_with_three_spellings_each() -> None:
    truth = planted(1_000)
    client = RightModel(truth)
    found, _ = names(Resolve("dish", "dish_name"), dict.fromkeys(truth, 1), client)
    assert scores(found.names, truth)[2] >= 0.98


class Kitchen:
    """Extracts the dish that the review names, and answers about pairs by the truth."""

    def __init__(self, truth: dict[str, str]) -> None:
        self.right, self.calls, self.asked = RightModel(truth), 0, 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        if "pairs below" in prompt:
            self.asked += 1
            return await self.right.generate(prompt)
        return json.dumps({"dish": prompt.split("DISH ")[1].split("\n")[0]})


TRUTH = {"Pad Thai": "p", "Pad Thai noodles": "p", "Pad Kraw": "k"}


def context(*dishes: str, **more: Any) -> dict[str, Any]:
    return {"name": "A", "reviews": [{"text": f"DISH {dish}"} for dish in dishes], **more}


def run(fs: Any, given: Any, client: Any, **options: Any) -> tuple[list[SeedResult], Totals]:
    results: list[SeedResult] = []
    totals = asyncio.run(run_many(fs, given, client, on_result=results.append, **options))
    return results, totals


def test_the_names_are_a_field_of_each_extraction() -> None:
    client = Kitchen(TRUTH)
    results, totals = run(seed(), [context("Pad Thai", "Pad Thai noodles", "Pad Thai", "Pad Kraw")], client)
    (result,) = results
    assert result.outputs == {"BY_DISH": [{"value": "Pad Thai", "count": 3}, {"value": "Pad Kraw", "count": 1}]}
    assert result.extractions[1].extraction == {"dish": "Pad Thai noodles", "dish_name": "Pad Thai"}
    assert (result.status, result.calls) == ("complete", client.calls) == ("complete", totals.calls)
    assert totals.resolved["dish_name"].spellings == 3 and totals.resolved["dish_name"].names == 2
    assert read_result(result.as_json()).extractions == result.extractions


def test_contexts_are_apart_unless_the_scope_is_the_run() -> None:
    given = [context("Pad Thai", "Pad Thai"), context("Pad Thai noodles"), context("Pad Kraw")]
    apart, _ = run(seed(), given, Kitchen(TRUTH))
    assert [each.outputs["BY_DISH"][0]["value"] for each in apart] == ["Pad Thai", "Pad Thai noodles", "Pad Kraw"]
    together, totals = run(seed(step={"scope": "run"}), given, client := Kitchen(TRUTH))
    assert [each.outputs["BY_DISH"][0]["value"] for each in together] == ["Pad Thai", "Pad Thai", "Pad Kraw"]
    assert [each.index for each in together] == [0, 1, 2]
    assert client.asked and totals.calls == client.calls == 4 + client.asked


def test_a_run_over_all_contexts_takes_more_contexts_than_fit_in_the_window_and_faulty_ones() -> None:
    given = [*([3] * 40), *(context("Pad Thai") for _ in range(80))]
    results, totals = run(seed(step={"scope": "run", "method": "fuzzy"}), given, Kitchen(TRUTH), max_concurrency=2)
    assert [each.index for each in results] == list(range(120))
    assert (totals.failed, totals.complete) == (40, 80)


def test_an_invalid_spelling_makes_the_name_invalid_and_the_context_partial() -> None:
    class Wrong(Kitchen):
        async def generate(self, prompt: str, **options: Any) -> str:
            return '{"dish": ["a"]}' if "BAD" in prompt else await super().generate(prompt)

    ((result,), _) = run(seed(), [context("Pad Thai", "BAD")], Wrong(TRUTH))
    assert (result.status, result.extractions[1].invalid) == ("partial", {"dish": '["a"]', "dish_name": '["a"]'})


def test_undecided_pairs_make_the_context_partial() -> None:
    class Silent(Kitchen):
        async def generate(self, prompt: str, **options: Any) -> str:
            return "?" if "pairs below" in prompt else await super().generate(prompt)

    results, _ = run(seed(), [context("Pad Thai", "Pad Thai noodles"), context("Pad Thai")], Silent(TRUTH))
    assert [each.status for each in results] == ["partial", "complete"]
    assert results[0].errors[0].kind == "resolve" and "2 spellings" in results[0].errors[0].message
    assert results[0].outputs["BY_DISH"]


def test_the_answers_about_pairs_are_cached_and_kept_for_a_resumed_run(tmp_path: Path) -> None:
    given = [context("Pad Thai", "Pad Thai noodles")]
    for expected in (1, 0):
        run(seed(), given, client := Kitchen(TRUTH), model="m", cache=tmp_path / "e.sqlite")
        assert client.asked == expected
    recorder = start(seed(), base=tmp_path)
    first, _ = run(seed(), given, Kitchen(TRUTH), record=recorder)
    recorder.close()
    again = stored(recorder.path).resume(seed())
    second, totals = run(seed(), given, client := Kitchen(TRUTH), record=again)
    again.close()
    assert (client.calls, totals.calls) == (0, 0)
    assert [each.outputs for each in first] == [each.outputs for each in second]
    assert second[0].extractions == first[0].extractions


def test_too_many_spellings_are_refused_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spellings, "MOST_SPELLINGS", 2)
    ((result,), _) = run(seed(), [context("Pad Thai", "Pad Thai noodles", "Pad Kraw")], Kitchen(TRUTH))
    assert result.status == "partial" and "more than the maximum of 2" in result.errors[0].message
