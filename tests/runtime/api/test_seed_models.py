"""Several models in ``seed.run`` and ``knotwork seed run``: options, refusals, limits over all models, and a resumed run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import seed
from knotwork.runtime.errors import RequestError
from support.cafe_seed import CONTEXTS, seed_model, write_seed
from support.command import Result, call
from support.review_server import ReviewServer

FIELDS: Any = [{"name": "mood", "values": ["good", "bad"]}]
CONTEXT = {"name": "A", "reviews": [{"text": "t"}, {"text": "u"}]}


class Says:
    def __init__(self, mood: str) -> None:
        self.mood, self.calls = mood, 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        return json.dumps({"mood": self.mood})


def loaded(**more: Any) -> Any:
    return seed.load({"extract": {"fields": FIELDS}, **more})


def moods(result: seed.SeedResult) -> list[Any]:
    return [each.extraction["mood"] for each in result.extractions]


def test_a_vote_needs_no_other_model() -> None:
    voters = [Says("good"), Says("bad"), Says("bad")]
    result = seed.run_sync(loaded(), CONTEXT, vote=voters)
    assert moods(result) == ["bad", "bad"]
    assert [each["by"] for each in result.extractions[0].votes] == ["client 1", "client 2", "client 3"]
    assert result.extractions[0].confidence == {"mood": 0.6667}


def test_a_cascade() -> None:
    strong = Says("bad")
    result = seed.run_sync(loaded(), CONTEXT, llm=Says("great"), escalate=strong, escalate_when=["invalid"])
    assert (moods(result), strong.calls) == (["bad", "bad"], 2)
    result = seed.run_sync(loaded(), CONTEXT, llm=Says("great"), escalate=strong, escalate_when="failed")
    assert moods(result) == [None, None]


def test_many_contexts() -> None:
    results = list(seed.run_many_sync(loaded(), [CONTEXT] * 3, vote=[Says("good"), Says("good")]))
    assert [moods(each) for each in results] == [["good", "good"]] * 3


def test_a_limit_holds_over_all_models() -> None:
    voters = [Says("good"), Says("good"), Says("good")]
    result = seed.run_sync(loaded(), CONTEXT, vote=voters, max_calls=4, max_concurrency=1)
    assert sum(each.calls for each in voters) == 4
    assert result.calls == 4


@pytest.mark.parametrize(
    ("options", "parameter", "message"),
    [
        ({"vote": "a,b"}, "vote", "expected a list of models, not str"),
        ({"vote": [Says("good")]}, "vote", "1 models; a vote has 2 to 9"),
        ({"vote": ["local", "local"]}, "vote", "local is listed twice"),
        ({"escalate_when": ["differ"]}, "escalate_when", "there is no model to escalate to"),
        ({"escalate": Says("bad"), "escalate_when": ["diffr"]}, "escalate_when", "unknown reason 'diffr'"),
        ({"escalate": Says("bad"), "escalate_when": []}, "escalate_when", "the list is empty"),
    ],
)
def test_faulty_options_are_refused_before_any_call(options: Any, parameter: str, message: str) -> None:
    with pytest.raises(RequestError) as error:
        seed.run_sync(loaded(), CONTEXT, llm=Says("good"), **options)
    assert (error.value.parameter, error.value.message) == (parameter, message)


def test_a_vote_over_two_passes_is_refused() -> None:
    with pytest.raises(RequestError, match="passes: 2"):
        asyncio.run(seed.run(loaded(passes=2), CONTEXT, vote=[Says("good"), Says("bad")]))


# The cache


@pytest.mark.slow
def test_python_and_the_command_use_the_same_caches(folder: Path) -> None:
    write_seed(folder)
    noise = seed.load(folder / "noise.seed.json")

    async def work() -> list[int]:
        async with ReviewServer() as server:
            asked: list[int] = []
            for options in ({}, {}, {"cache": False}, {"cache": "own.sqlite"}, {"cache": Path("own.sqlite")}):
                await seed.collect(noise, CONTEXTS, llm=f"{server.url}#m", **options)
                asked.append(len(server.requests))
            (done,) = [each async for each in seed.run_many(noise, [CONTEXTS[1]], llm=f"{server.url}#m")]
            assert (await seed.run(noise, CONTEXTS[0], llm=f"{server.url}#m")).calls == done.calls == 0
            command = await asyncio.to_thread(run, "--llm", f"{server.url}#m")
            assert command.code == 0 and "extractions from the cache" in command.err, command.err
            return [*asked, len(server.requests)]

    assert asyncio.run(work()) == [3, 3, 6, 9, 9, 9]
    assert sorted(path.name for path in folder.glob("*.sqlite")) == ["own.sqlite"]


def test_the_cache_of_a_custom_client_has_its_name(folder: Path) -> None:
    client = Says("good")
    for _ in range(2):
        seed.run_sync(loaded(), CONTEXT, llm=client, model="mine", cache="own.sqlite")
    assert client.calls == 2
    seed.run_sync(loaded(), CONTEXT, llm=client, model="mine")  # by default, a custom client has no cache
    seed.run_sync(loaded(), CONTEXT, llm=client, model="mine", max_calls=9)
    assert client.calls == 6
    seed.run_sync(loaded(), CONTEXT, llm=client, model="mine", max_calls=9, cache="own.sqlite")
    assert client.calls == 6


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"llm": Says("good"), "cache": True}, "give model=NAME"),
        ({"llm": Says("good"), "cache": "own.sqlite", "max_calls": 3}, "give model=NAME"),
        ({"llm": "openai:m", "escalate": Says("bad"), "cache": True}, "use specs in vote and escalate"),
        ({"vote": [Says("good"), Says("bad")], "model": "m", "cache": True}, "use specs in vote and escalate"),
    ],
)
def test_a_cache_refuses_clients_without_a_name(options: Any, hint: str) -> None:
    for function in (seed.run_sync, lambda fs, each, **more: seed.collect_sync(fs, [each], **more)):
        with pytest.raises(RequestError) as error:
            function(loaded(), CONTEXT, **options)
        assert (error.value.parameter, error.value.hint) == ("cache", hint)
    with pytest.raises(RequestError, match="a cache can't have the scheme 'redis'"):
        seed.run_sync(loaded(), CONTEXT, llm="openai:m", cache="redis://host")


# The dry run


@pytest.mark.parametrize(
    ("passes", "options", "expected"),
    [
        (1, {"model": "m"}, [("m", 2, 2)]),
        (2, {"model": "m"}, [("m", 4, 6)]),
        (1, {"vote": ["a", "b", "c"]}, [("a", 2, 2), ("b", 2, 2), ("c", 2, 2)]),
        (1, {"vote": ["a", "b"], "escalate": "s"}, [("a", 2, 2), ("b", 2, 2), ("s", 0, 2)]),
        (1, {"model": "m", "escalate": "s"}, [("m", 2, 2), ("s", 0, 2)]),
        (2, {"model": "m", "escalate": "s"}, [("m", 4, 4), ("s", 0, 2)]),
        (2, {"model": "m", "escalate": "s", "escalate_when": ["failed"]}, [("m", 4, 6), ("s", 0, 2)]),
    ],
)
def test_an_estimate_has_the_calls_of_each_model(passes: int, options: Any, expected: Any) -> None:
    named = {key: [f"openai:{each}" for each in value] if key == "vote" else value for key, value in options.items()}
    named |= {key: f"openai:{value}" for key, value in options.items() if key in ("model", "escalate")}
    found = seed.estimate(loaded(passes=passes), [CONTEXT], price=(1, 2), **named)
    assert [(each.model, each.calls, each.calls_at_most) for each in found.models] == [
        (f"openai:{name}", least, most) for name, least, most in expected
    ]
    assert (found.calls, found.calls_at_most) == tuple(sum(each[place] for each in expected) for place in (1, 2))
    assert found.cost_range is not None and found.cost is not None and found.cost_range[0] < found.cost
    assert found.cost_range[1] == pytest.approx(sum(each.cost_range[1] for each in found.models if each.cost_range))


@pytest.mark.parametrize("moods", ["good good", "good bad", "x x", "x good"])
@pytest.mark.parametrize("when", [None, ["differ"], ["failed", "invalid"]])
@pytest.mark.parametrize("passes", [1, 2])
def test_a_run_makes_at_most_the_estimated_calls(moods: str, when: Any, passes: int) -> None:
    first, second = (Says(mood) for mood in moods.split())
    strong = Says("good")
    voters: dict[str, Any] = {"vote": [first, second]} if passes == 1 else {}
    options = {**voters, "escalate": strong, "escalate_when": when}
    most = seed.estimate(loaded(passes=passes), [CONTEXT], **options).calls_at_most
    # an invalid answer is asked for once more
    result = seed.run_sync(
        loaded(passes=passes), CONTEXT, options={"retries": 0}, **options, **({} if voters else {"llm": first})
    )
    repairs = sum(each.calls for each in (first, second) if each.mood == "x") // 2
    assert result.calls - repairs <= most


def test_the_dry_run_of_the_command_says_what_is_a_bound(folder: Path) -> None:
    write_seed(folder)
    told = run("--vote", "openai:a,openai:b", "--escalate", "openai:s", "--price", "1/2", "--dry-run")
    lines = told.out.splitlines()
    assert told.code == 0 and any(
        "model openai:a; price: $1 + $2 per million tokens (given): 3 calls, about" in line for line in lines
    )
    assert any(
        line.startswith("stronger model openai:s;") and ": 0 to 3 calls, at most about " in line for line in lines
    )
    assert any(line.startswith("6 calls, at most 9, about ") and " to at most $" in line for line in lines)
    told = run("--llm", "openai:a", "--escalate", "openai:s", "--dry-run", "--format", "jsonl")
    assert [each["purpose"] for each in told.json["models"]] == ["reading", "escalation"]
    key = run("--llm", "openai:a", "--escalate", "sk-" + "a" * 40, "--dry-run")
    assert key.code != 0 and "a" * 40 not in key.err + key.out


# The command


def model(folder: Path, name: str, level: str) -> str:
    return seed_model(
        folder / f"{name}.cassette",
        {"noise": {"level": level, "minutes": 5}, "quiet": {"level": "quiet", "minutes": 5}},
    )


def run(*args: str) -> Result:
    return call("seed", "run", "noise.seed.json", "cafes.jsonl", *args)


def levels(text: str) -> list[Any]:
    return [each["extraction"]["level"] for line in text.splitlines() for each in json.loads(line)["extractions"]]


def test_vote_and_escalate_on_the_command_line(folder: Path) -> None:
    write_seed(folder)
    a, b, c = (model(folder, name, level) for name, level in (("a", "loud"), ("b", "none"), ("c", "loud")))
    told = run("--vote", f"{a},{b},{c}")
    assert (told.code, levels(told.out)) == (0, ["loud", "loud", "quiet"])
    assert "9 calls" in told.err
    first = json.loads(told.out.splitlines()[0])["extractions"][0]
    assert [each["by"] for each in first["votes"]] == [a, b, c]
    assert first["confidence"] == {"level": 0.6667, "minutes": 1.0}
    told = run("--vote", f"{a},{b}", "--escalate", c)
    assert (told.code, levels(told.out)) == (0, ["loud", "loud", "quiet"])
    assert "8 calls" in told.err


def test_a_tie_without_a_stronger_model_is_partial(folder: Path) -> None:
    write_seed(folder)
    told = run("--vote", f"{model(folder, 'a', 'loud')},{model(folder, 'b', 'none')}")
    assert told.code == 4 and levels(told.out)[0] is None


def test_a_resumed_run_has_the_same_models(folder: Path) -> None:
    write_seed(folder)
    a, b = model(folder, "a", "loud"), model(folder, "b", "loud")
    told = run("--vote", f"{a},{b}", "--max-calls", "3", "--out", "r.jsonl")
    assert told.code != 0
    run_id = told.err.split("--resume ")[1].split()[0]
    again = run("--resume", run_id, "--out", "r.jsonl")
    assert again.code == 0, again.err
    assert levels((folder / "r.jsonl").read_text()) == ["loud", "loud", "quiet"]
    first = json.loads((folder / "r.jsonl").read_text().splitlines()[0])["extractions"][0]
    assert [each["by"] for each in first["votes"]] == [a, b]


def test_faulty_flags_are_a_usage_error(folder: Path) -> None:
    write_seed(folder)
    a = model(folder, "a", "loud")
    sample = ["--llm", a, "--escalate", a, "--dry-run", "--sample", "3"]
    for flags in (["--vote", a], ["--vote", a, "--dry-run"], ["--llm", a, "--escalate-when", "differ"], sample):
        assert run(*flags).code == 2
