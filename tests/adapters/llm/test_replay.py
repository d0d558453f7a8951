"""Cassettes: recorded, read, written by hand, and faulty."""

import asyncio
import itertools
import json
import time
from io import FileIO

import pytest
from knotwork.adapters.llm import BY_HAND, BadAnswer, Completion, NotConfigured, NotRecorded, Refused, Truncated, Usage
from knotwork.adapters.llm import replay as llm_replay
from knotwork.adapters.llm.middleware import Again
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.replay import RecordModel, ReplayModel
from support.model_server import KEY, ModelServer
from support.scripted import Scripted

HEADER = '{"cassette": 1, "made_by": "knotwork", "model": "openai:m"}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tape.jsonl"


def record(path, inner, *calls):
    async def main():
        recorder = RecordModel(inner, path, "openai:m")
        came = [await one(recorder, *call) for call in calls]
        await recorder.aclose()
        return came

    return asyncio.run(main())


async def one(client, prompt, options=None):
    try:
        return await client.generate(prompt, **(options or {}))
    except Exception as error:
        return error


def replay(path, *calls):
    async def main():
        client = ReplayModel(path)
        return [await one(client, *call) for call in calls]

    return asyncio.run(main())


def test_what_was_recorded_comes_back_in_order_and_then_the_last(path):
    calls = [("hi", {"system": "s"}), ("hi", {"system": "s"}), ("hi",), ("é😀\u2028 line", {"choices": ["a"]})]
    came = record(path, Scripted("one", "two", "three", "four"), *calls)
    assert replay(path, *calls) == came
    again = replay(path, *[calls[0]] * 4, ("hi", {"system": "s", "sample": 0}), ("hi", {"system": "s", "sample": 1}))
    assert [answer.text for answer in again] == ["one", "two", "two", "two", "one", "two"]


@pytest.mark.parametrize(("recorded", "asked"), [(0, 0.0), (0.0, 0), (1.0, 1), (1, 1.0)])
@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_a_whole_number_and_its_float_are_one_request(path, name, recorded, asked):
    line = json.dumps({"request": {"prompt": "hi", name: recorded}, "answer": {"text": "one"}})
    path.write_text(f"{HEADER}{line}\n")
    assert replay(path, ("hi", {name: asked}))[0].text == "one"
    lines = [
        json.dumps(OpenAIModel("m", api_key=KEY).batch_line("k", "hi", {name: each})) for each in (recorded, asked)
    ]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("failing", [{1}, {2, 3}, {1, 2, 4}])
def test_an_answer_that_could_not_be_written_and_is_asked_again_is_there_once(path, failing, monkeypatch):
    writes = itertools.count(1)

    class Full(FileIO):
        def write(self, data):
            return super().write(data[: len(data) // 2] if next(writes) in failing else data)

    monkeypatch.setattr(llm_replay, "open", lambda path, mode, **_: Full(path, mode), raising=False)
    recorder = RecordModel(Scripted(*"abcdefgh"), path, "openai:m")

    async def main():
        came = [await one(recorder, "hi", {}) for _ in range(5)]
        await recorder.aclose()
        return came

    came = asyncio.run(main())
    monkeypatch.undo()
    kept = [answer.text for answer in came if not isinstance(answer, Exception)]
    assert len(kept) == 5 - len(failing)
    assert all("only part of a line was written" in str(answer) for answer in came if isinstance(answer, Exception))
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert header["cassette"] == 1
    assert [line["answer"]["text"] for line in lines] == kept


def test_a_cassette_is_reviewable(path):
    record(path, Scripted("Oslo"), ("Capital?", {"temperature": 0.0, "timeout": 5, "retries": 1, "sample": 0}))
    header, line = path.read_text().splitlines()
    assert json.loads(header) == {"cassette": 1, "made_by": "knotwork", "model": "openai:m"}
    assert line == (
        '{"answer":{"finish_reason":"stop","model":"","text":"Oslo","usage":{"completion_tokens":5,"prompt_tokens":10}},'
        '"request":{"prompt":"Capital?","temperature":0.0}}'
    )


def test_errors_are_recorded_and_raised_again(path):
    inner = Scripted(Truncated("cut", text="Os"), Refused("no"), BadAnswer("odd", text="{"), "x")
    came = record(path, inner, ("a",), ("b",), ("c",))
    back = replay(path, ("a",), ("b",), ("c",))
    assert [(type(e), e.message, getattr(e, "text", None)) for e in back] == [
        (type(e), e.message, getattr(e, "text", None)) for e in came
    ]


def test_layers_over_a_replay_go_the_same_way(path):
    record(path, Scripted(Truncated("cut"), "whole"), ("a",), ("a",))
    assert asyncio.run(Again(ReplayModel(path)).generate("a")).text == "whole"


def test_no_key_is_in_a_cassette(path):
    async def main():
        async with ModelServer(faults=[None, "echo_key", "echo_key_in_answer"]) as server:
            client = RecordModel(OpenAIModel("m", base_url=server.url, api_key=KEY), path, "openai:m")
            for _ in range(3):
                await one(client, "hi")
            await client.aclose()

    asyncio.run(main())
    assert len(path.read_text().splitlines()) == 4
    assert KEY not in path.read_text()


def test_a_missing_request_names_the_nearest(path):
    record(path, Scripted("x"), ("What is the capital of Norway?",), ("Write a poem.",))
    (error,) = replay(path, ("What is the capital of Sweden?",))
    assert type(error) is NotRecorded
    assert 'the nearest recorded prompt is "What is the capital of Norway?"' in str(error)
    (error,) = replay(path, ("Write a poem.", {"seed": 3}))
    assert "with other options" in str(error)


def test_a_cassette_written_by_hand_may_name_a_part_of_the_prompt(path):
    path.write_text(
        HEADER
        + '{"request": {"prompt_contains": "Norway"}, "answer": {"text": "Oslo"}}\n'
        + '{"request": {"prompt_contains": "Norway"}, "answer": {"text": "Bergen"}}\n'
        + '\n{"request": {"prompt_contains": "", "system": "s"}, "answer": {"text": "anything"}}\n'
        + '{"request": {"prompt": "all of Norway"}, "answer": {"text": "whole", "usage": {"prompt_tokens": 3}}}\n'
    )
    answers = replay(path, ("in Norway?",), ("Norway",), ("all of Norway",), ("x", {"system": "s"}), ("x",))
    assert [answer.text for answer in answers[:4]] == ["Oslo", "Bergen", "whole", "anything"]
    assert answers[2] == Completion("whole", usage=Usage(3, 0), model="openai:m")
    assert type(answers[4]) is NotRecorded


def test_an_answer_without_a_model_of_its_own_is_of_the_headers(path):
    path.write_text(
        '{"cassette": 1, "made_by": "a person", "model": "hand-written"}\n'
        '{"request": {"prompt": "a"}, "answer": {"text": "x"}}\n'
        '{"request": {"prompt_contains": "b"}, "answer": {"text": "y"}}\n'
        '{"request": {"prompt": "c"}, "answer": {"text": "z", "model": "m-1"}}\n'
        '{"request": {"prompt": "d"}, "answer": {"text": "z", "model": ""}}\n'
    )
    assert [answer.model for answer in replay(path, ("a",), ("bb",), ("c",), ("d",))] == [
        "hand-written", "hand-written", "m-1", "",
    ]  # fmt: skip
    path.write_text('{"cassette": 1, "model": null}\n{"request": {"prompt": "a"}, "answer": {"text": "x"}}\n')
    assert replay(path, ("a",))[0].model == ""


def test_an_answer_of_a_cassette_made_by_hand_says_so_whatever_model_it_names(path):
    path.write_text(
        '{"cassette": 1, "made_by": "hand, to try it", "model": "openai:m"}\n'
        '{"request": {"prompt": "a"}, "answer": {"text": "x", "model": "openai:m"}}\n'
    )
    assert replay(path, ("a",))[0].model == BY_HAND


def test_a_recording_gives_back_the_model_that_was_told(path):
    class Named(Scripted):
        async def generate(self, prompt, **options):
            return Completion("x", model=prompt)

    for name in ("openai:m", "m-2026", ""):
        assert record(path, Named(), (name,)) == replay(path, (name,))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("{}\n", 1),
        ('{"cassette": 2}\n', 1),
        ("hello\n", 1),
        (HEADER + "{\n", 2),
        (HEADER + "[]\n", 2),
        (HEADER + '\n{"request": {"prompt": "a"}}\n', 3),
        (HEADER + '{"request": {"prompt": "a"}, "answer": {}}\n', 2),
        (HEADER + '{"request": {"prompt": 5}, "answer": {"text": "x"}}\n', 2),
        (HEADER + '{"request": {"prompt": "a", "prompt_contains": "b"}, "answer": {"text": "x"}}\n', 2),
        (HEADER + '{"request": {"prompt": "a"}, "answer": {"text": "x", "text": "y"}}\n', 2),
        (HEADER + '{"request": {"prompt": "a"}, "error": {"kind": "odd"}}\n', 2),
        (HEADER + '{"request": {"prompt": "a"}, "error": {}}\n', 2),
        (HEADER + '{"request": {"prompt": "a"}, "answer": {"text": "x", "usage": {"prompt_tokens": "many"}}}\n', 2),
    ],
)
def test_a_bad_line_is_named(path, text, number):
    path.write_text(text)
    with pytest.raises(NotConfigured) as caught:
        ReplayModel(path)
    assert "tape.jsonl" in str(caught.value)
    assert not number or f"tape.jsonl:{number}: " in str(caught.value)


def test_files_that_are_no_cassette(path, tmp_path):
    for bad in (tmp_path / "missing", tmp_path):
        with pytest.raises(NotConfigured, match="can't be read"):
            ReplayModel(bad)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(NotConfigured, match="UTF-8"):
        ReplayModel(path)


def test_a_recording_overwrites_cassettes_only_and_not_before_its_first_answer(path):
    path.write_text("dear diary\n")
    with pytest.raises(NotConfigured, match="not overwritten"):
        RecordModel(Scripted("x"), path, "m")
    path.write_text(HEADER)
    RecordModel(Scripted("x"), path, "m")
    assert path.read_text() == HEADER


@pytest.mark.slow
def test_a_replayed_call_takes_at_most_a_third_of_a_millisecond(path):
    record(path, Scripted("x" * 1000), ("hi" * 500, {"system": "s"}))

    async def main():
        client = ReplayModel(path)
        best = 1.0
        for _ in range(20):
            started = time.perf_counter()
            for _ in range(20):
                await client.generate("hi" * 500, system="s")
            best = min(best, (time.perf_counter() - started) / 20)
        return best

    assert asyncio.run(main()) < 0.0003
