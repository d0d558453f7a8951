"""Several models for each review: majority, ties, the cascade, confidence, votes, and what counts, is cached and resumed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import BadAnswer
from knotwork.lang.trees.seed import Extracted
from knotwork.runtime.seeds.compute import load
from knotwork.runtime.seeds.readers import Model, Panel, verdict
from knotwork.runtime.seeds.seed_results import Extraction, SeedResult, read_result
from knotwork.runtime.seeds.seed_run import Totals, run_many
from knotwork.runtime.seeds.seed_store import load as stored
from knotwork.runtime.seeds.seed_store import start

FIELDS: Any = [{"name": "mood", "values": ["good", "bad", "none"]}, {"name": "stars", "type": "int"}]
MOOD, STARS = Extracted("mood", "enum", {"good": "", "bad": "", "none": ""}), Extracted("stars", "int")


class Says:
    """A model that gives ``answers`` in turn, then its last answer."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.prompts = list(answers), []

    async def generate(self, prompt: str, **options: Any) -> str:
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else json.dumps(answer)


def said(mood: str, stars: Any = 4) -> dict[str, Any]:
    return {"mood": mood, "stars": stars}


def seed(**more: Any) -> Any:
    count = {"name": "N", "op": "count", "where": {"extraction.mood": "good"}}
    return load({"extract": {"fields": FIELDS}, "compute": [count], "output": ["N"], **more})


def run(panel: Panel, client: Any = None, given: Any = None, **options: Any) -> tuple[SeedResult, Totals]:
    results: list[SeedResult] = []
    fs = options.pop("fs", None) or seed()
    context = given or {"name": "A", "reviews": [{"text": "t"}]}
    llm = client or panel.vote[0].client
    totals = asyncio.run(run_many(fs, [context], llm, on_result=results.append, panel=panel, **options))
    return results[0], totals


def vote(*clients: Any, **more: Any) -> Panel:
    return Panel(tuple(Model(name, client, name) for name, client in zip("abcde", clients, strict=False)), **more)


@pytest.mark.parametrize(
    ("moods", "value", "why"),
    [
        (["good", "good", "bad"], "good", ""), (["good", "bad"], None, "differ"), (["good", "bad", "none"], None, "differ"),
        (["good", None, None], "good", ""), ([None, None], None, "invalid"), (["good", "bad", "good", "bad"], None, "differ"),
    ],
)  # fmt: skip
def test_a_majority_is_the_value_of_most_valid_readings(moods: list[Any], value: Any, why: str) -> None:
    readings = [Extraction(0, {"mood": mood}, invalid={} if mood else {"mood": "?"}) for mood in moods]
    found = verdict([MOOD], readings, majority=True)
    assert (found.values.get("mood"), found.open.get("mood", "")) == (value, why)


def test_two_passes_agree_only_if_both_are_valid_and_equal() -> None:
    one, other = (
        Extraction(0, {"mood": "good", "stars": 3}),
        Extraction(0, {"mood": "bad", "stars": None}, invalid={"stars": "x"}),
    )
    assert verdict([MOOD, STARS], [one, one], majority=False).values == {"mood": "good", "stars": 3}
    assert verdict([MOOD, STARS], [one, other], majority=False).open == {"mood": "differ", "stars": "invalid"}
    lost = Extraction(0, failed="timeout: slow")
    assert verdict([MOOD], [one, lost], majority=False).open == {"mood": "failed"}
    assert verdict([MOOD], [one, lost], majority=True).values == {"mood": "good"}


def test_the_majority_counts_and_the_votes_stand_in_the_extraction() -> None:
    result, totals = run(vote(Says(said("good")), Says(said("good", 5)), Says(said("bad", "many"))))
    (found,) = result.extractions
    assert (found.extraction["mood"], found.confidence["mood"]) == ("good", 0.6667)
    assert (found.extraction["stars"], found.invalid) == (None, {"stars": "no majority"})
    assert found.votes == (
        {"by": "a", "extraction": said("good")}, {"by": "b", "extraction": said("good", 5)},
        {"by": "c", "extraction": said("bad", None), "invalid": {"stars": "many"}},
    )  # fmt: skip
    assert (result.outputs, result.calls, totals.calls) == ({"N": 1}, 4, 4)  # the invalid answer was repaired once
    assert read_result(result.as_json()).extractions == result.extractions


def test_a_tie_is_invalid_unless_a_stronger_model_decides() -> None:
    result, _ = run(vote(Says(said("good")), Says(said("bad"))))
    assert result.extractions[0].invalid == {"mood": "no majority"} and result.status == "failed"
    strong = Says({"mood": "bad"})
    result, totals = run(vote(Says(said("good")), Says(said("bad")), escalate=Model("s", strong, "s")))
    (found,) = result.extractions
    assert (found.extraction, found.invalid) == (said("bad"), {})
    assert found.confidence == {"mood": 0.6667, "stars": 1.0}
    assert found.votes[2] == {"by": "s", "extraction": {"mood": "bad"}, "settles": ["mood"]}
    assert totals.calls == 3
    assert 'Two readers have answered already, and differ. The first said:\n```\n{"mood": "good"}' in strong.prompts[0]


def test_three_readers_are_all_shown() -> None:
    strong = Says({"mood": "none"})
    run(vote(Says(said("good")), Says(said("bad")), Says(said("none")), escalate=Model("s", strong)))
    assert "3 readers have answered already" in strong.prompts[0] and "Reader 3 said:" in strong.prompts[0]


def test_a_voter_that_fails_does_not_vote() -> None:
    result, _ = run(vote(Says(said("good")), Says("no answer"), Says(said("good"))))
    (found,) = result.extractions
    assert (found.extraction, found.confidence["mood"]) == (said("good"), 0.6667)
    assert "failed" in found.votes[1]
    result, _ = run(vote(Says("no"), Says("no")))
    assert result.extractions[0].failed and result.status == "failed"


def test_two_passes_and_a_stronger_model_are_a_cascade() -> None:
    cheap, strong = Says(said("good"), said("bad")), Says({"mood": "bad"})
    panel = Panel(escalate=Model("strong", strong))
    result, totals = run(panel, cheap, fs=seed(passes=2), model="cheap", max_concurrency=1)
    (found,) = result.extractions
    assert (found.extraction, found.confidence) == (said("bad"), {"mood": 0.6667, "stars": 1.0})
    assert [each["by"] for each in found.votes] == ["cheap", "cheap", "strong"]
    assert (len(cheap.prompts), len(strong.prompts), totals.calls) == (2, 1, 3)
    result, totals = run(panel, Says(said("good")), fs=seed(passes=2), model="cheap")
    assert (totals.calls, result.extractions[0].confidence) == (2, {"mood": 1.0, "stars": 1.0})


def test_what_is_not_escalated_is_settled_by_the_same_model() -> None:
    cheap, strong = Says(said("good"), said("bad"), {"mood": "none"}), Says({"mood": "bad"})
    panel = Panel(escalate=Model("strong", strong), when=frozenset({"invalid"}))
    result, _ = run(panel, cheap, fs=seed(passes=2), model="cheap", max_concurrency=1)
    assert result.extractions[0].extraction["mood"] == "none"
    assert (len(cheap.prompts), len(strong.prompts)) == (3, 0)
    assert result.extractions[0].confidence["mood"] == 0.3333


def test_invalid_and_failed_readings_are_escalated() -> None:
    strong = Model("strong", Says({"mood": "bad", "stars": 2}, {"mood": "bad"}))
    result, _ = run(Panel(escalate=strong), Says("nothing"))
    assert result.extractions[0].extraction == {"mood": "bad", "stars": 2}
    assert result.extractions[0].confidence == {"mood": 0.5, "stars": 0.5}
    result, _ = run(Panel(escalate=strong), Says(said("great")))
    assert result.extractions[0].extraction == {"mood": "bad", "stars": 4}
    result, _ = run(Panel(escalate=strong, when=frozenset({"differ"})), Says("nothing"))
    assert result.extractions[0].failed


def test_a_stronger_model_that_fails_leaves_the_field_invalid() -> None:
    panel = vote(Says(said("good")), Says(said("bad")), escalate=Model("s", Says(BadAnswer("no"))))
    result, _ = run(panel)
    assert result.extractions[0].invalid == {"mood": "no majority"}
    assert result.extractions[0].extraction["stars"] == 4
    assert "failed" in result.extractions[0].votes[2]


def test_each_reading_is_cached_under_its_model(tmp_path: Path) -> None:
    cache = tmp_path / "e.sqlite"
    one = Says(said("good"))
    asyncio.run(
        run_many(seed(), [{"reviews": [{"text": "t"}]}], one, on_result=lambda each: None, model="a", cache=cache)
    )
    a, b, strong = Says(said("good")), Says(said("bad")), Says({"mood": "bad"})
    for expected in ((0, 1, 1), (0, 1, 1)):
        result, totals = run(vote(a, b, escalate=Model("s", strong, "s")), model="a", cache=cache)
        assert (len(a.prompts), len(b.prompts), len(strong.prompts)) == expected
        assert result.extractions[0].extraction["mood"] == "bad"
    assert (totals.calls, totals.known) == (0, 1)


@pytest.mark.slow
def test_a_resumed_run_repeats_no_reading(tmp_path: Path) -> None:
    recorder = start(seed(), base=tmp_path)
    cancel = asyncio.Event()

    async def stopped() -> None:
        a = Says(said("good"))
        work = run_many(
            seed(), [{"reviews": [{"text": "t"}]}], a, on_result=lambda each: None, record=recorder, cancel=cancel,
            panel=vote(a, Waits()),
        )  # fmt: skip
        await asyncio.gather(work, stop_soon(cancel))

    asyncio.run(stopped())
    recorder.close()
    again = stored(recorder.path).resume(seed())
    a, b = Says(said("bad")), Says(said("good"))
    result, totals = run(vote(a, b), given={"reviews": [{"text": "t"}]}, record=again)
    again.close()
    assert (len(a.prompts), len(b.prompts), totals.calls) == (0, 1, 1)
    assert result.extractions[0].extraction["mood"] == "good"
    third = stored(recorder.path).resume(seed())
    result, totals = run(vote(a, b), given={"reviews": [{"text": "t"}]}, record=third)
    third.close()
    assert (totals.calls, totals.reused) == (0, 1)
    assert result.extractions[0].confidence == {"mood": 1.0, "stars": 1.0} and len(result.extractions[0].votes) == 2


class Waits:
    async def generate(self, prompt: str, **options: Any) -> str:
        await asyncio.sleep(30)
        return ""


async def stop_soon(cancel: asyncio.Event) -> None:
    await asyncio.sleep(0.2)
    cancel.set()


def test_all_readings_share_the_limit_on_concurrent_calls() -> None:
    running = most = 0

    class Slow(Says):
        async def generate(self, prompt: str, **options: Any) -> str:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.002)
            running -= 1
            return await super().generate(prompt)

    given = {"reviews": [{"text": f"t{number}"} for number in range(10)]}
    run(vote(*(Slow(said("good")) for _ in range(3))), given=given, max_concurrency=4)
    assert most == 4
