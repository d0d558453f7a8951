"""What compiling is bounded by: how long prompts get, what a client's own fault costs, what may be given, what a cache may say."""

import asyncio
import json
import sqlite3
import threading
from pathlib import Path

import pytest
from blake3 import blake3
from knotwork import seed
from knotwork.lang.diagnostic import Diagnostic, Edit
from knotwork.lang.source import Source, Span
from knotwork.runtime.events import Events
from knotwork.runtime.loops.compile.compile_store import (
    LONGEST_ANSWER,
    LONGEST_SHOWN,
    LONGEST_TOLD,
    diagnostics_for_model,
    repair_prompt,
)
from support.compiling import GOOD, TASK, Author, told, written


def compiled(author, *given, **options):
    return seed.compile_sync(TASK, author, *given, **options)


# Prompts


def long_seed(size: int) -> str:
    """Return a seed with a fault near its middle, of ``size`` characters or some more."""
    document = json.loads(written(GOOD["seed"]))
    note = {"name": "N", "op": "const", "value": 1}
    many = [note | {"name": f"N{number}", "value": "v" * 180} for number in range(size // 225)]
    half = len(many) // 2
    document["compute"] += [*many[:half], {"name": "ODD", "op": "no_such_op"}, *many[half:]]
    return written(document)


@pytest.mark.slow
def test_a_long_draft_goes_back_as_what_stands_around_its_faults() -> None:
    text = long_seed(150_000)
    author = Author({"seed": text}, lambda answer, found: text)
    made = compiled(author, repairs=3)
    assert (made.status, made.repairs) == ("failed", 3)
    asked, *again = author.prompts[2:]
    assert len(text) > 150_000 and len(again) == 3
    for prompt in again:
        assert len(prompt) <= len(asked) + LONGEST_SHOWN + LONGEST_TOLD + 1_000
        answer, found = told(prompt)
        assert len(answer) <= LONGEST_SHOWN
        assert '"ODD", "op": "no_such_op"' in answer
        assert answer.startswith(text[:100]) and answer.endswith(text[-100:])
        assert any("no_such_op" in each["message"] or "op" in each["message"] for each in found)
    assert f"(It has {len(text):,} characters; only its beginning" in again[0]


@pytest.mark.slow
def test_a_draft_of_a_usual_length_goes_back_whole() -> None:
    text = long_seed(LONGEST_SHOWN - 12_000)
    author = Author({"seed": text}, lambda answer, found: text)
    compiled(author, repairs=1)
    assert len(text) < LONGEST_SHOWN
    assert told(author.prompts[-1])[0] == text


def faults(length: int, places: list[tuple[int, int]], edits: int = 0, hint: str = "h") -> list[Diagnostic]:
    return [
        Diagnostic(
            "SEED002", "error", "m" * 900, Span(min(a, length), min(b, length)), (hint,) * 20,
            tuple(Edit(Span(a, a + 1), "y" * 40) for _ in range(edits)),
        )
        for a, b in places
    ]  # fmt: skip


@pytest.mark.parametrize("length", [LONGEST_SHOWN + 1, 60_000, 200_000])
@pytest.mark.parametrize(
    "places",
    [
        [], [(0, 0)], [(0, 200_000)], [(200_000, 200_000)], [(30_000, 30_001)] * 30,
        [(number * 6_000, number * 6_000 + 9_000) for number in range(30)],
    ],
)  # fmt: skip
def test_a_prompt_for_a_repair_has_a_bound_wherever_the_faults_are(length: int, places: list[tuple[int, int]]) -> None:
    text = "".join(f"{number:09} " for number in range(length // 10 + 1))[:length]
    source = Source(text, "<seed>")
    found = diagnostics_for_model(faults(length, places, edits=300, hint="hint " * 500), source)
    prompt = repair_prompt("request", text, found)
    assert len(prompt) <= len("request") + LONGEST_SHOWN + LONGEST_TOLD + 1_000
    answer = prompt.split("```\n")[1]
    assert bool(found) == bool(places)
    for each in found:
        at = min(each["span"]["start"], length - 10)
        assert text[at : at + 10] in answer


def test_what_is_told_has_a_bound_and_edits_are_offered_whole_or_not() -> None:
    source = Source("x" * 100, "<seed>")
    few, many = (
        diagnostics_for_model(faults(100, [(0, 1)], 20), source),
        diagnostics_for_model(faults(100, [(0, 1)], 200), source),
    )
    assert (len(few[0]["edits"]), len(many[0]["edits"])) == (20, 0)
    listed = diagnostics_for_model(faults(100, [(number, number + 1) for number in range(30)], 70), source)
    assert 1 <= len(listed) < 30
    assert len(json.dumps(listed, ensure_ascii=False)) <= LONGEST_TOLD


def test_the_answers_that_are_repeated_in_later_prompts_are_bounded() -> None:
    text = written(GOOD["conditions"])
    text = text[:-1] + " " * (LONGEST_ANSWER["conditions"] - len(text) + 1) + "}"
    made = compiled(Author({"conditions": text}), repairs=0)
    assert made.status == "failed"
    assert f"at most {LONGEST_ANSWER['conditions']:,} are allowed" in made.diagnostics[0].message
    assert made.steps[-1].phase == "conditions"


# A client's own fault


@pytest.mark.parametrize("answer", [None, 5, b"{}", {"text": "x"}])
def test_a_client_that_answers_no_text_is_asked_once(answer: object) -> None:
    asked = []

    class Broken:
        async def generate(self, prompt: str, **options: object) -> object:
            asked.append(prompt)
            return answer

    made = compiled(Broken())
    assert (made.status, made.calls, made.repairs, len(asked)) == ("failed", 1, 0, 1)
    assert type(answer).__name__ in made.reason
    assert made.hint == "generate(prompt, **options) returns a str or a Completion"


def test_a_model_that_answers_nothing_is_asked_again() -> None:
    author = Author({"conditions": " "}, lambda answer, found: "")
    made = compiled(author, repairs=2)
    assert (made.status, len(author.prompts)) == ("failed", 3)


# What may be given


@pytest.mark.slow
def test_the_model_may_stand_in_its_place() -> None:
    author = Author()
    assert seed.compile_sync(TASK, author).status == "done"
    assert asyncio.run(seed.compile(TASK, author)).status == "done"
    assert seed.compile_sync(TASK, llm=author).status == "done"


@pytest.mark.parametrize(
    ("given", "parameter", "said"),
    [
        ({"cancel": threading.Event()}, "cancel", "expected an asyncio.Event, not threading.Event"),
        ({"cancel": True}, "cancel", "not bool"), ({"events": []}, "events", "expected an Events object, not list"),
        ({"events": print}, "events", "events.subscribe(function)"), ({"options": "x"}, "options", "not str"),
        ({"options": {"temprature": 0}}, "options", "did you mean 'temperature'?"), 
        ({"options": {"temperature": "hot"}}, "temperature", "number"),
        ({"repair": 1}, "repair", "did you mean 'repairs'?"), ({"max_call": 1}, "max_call", "did you mean 'max_calls'?"),
        ({"xyz": 1}, "xyz", "the settings are: llm, model"), ({"example": 5}, "example", "not int"), ({"model": 5}, "model", "not int"),
        ({"record": "yes"}, "record", "not str"), ({"cache": 5, "model": "m"}, "cache", "expected a file, not int"),
    ],
)  # fmt: skip
def test_what_is_no_argument_is_told_before_anything_is_spent(given: dict, parameter: str, said: str) -> None:
    author = Author()
    with pytest.raises(seed.RequestError) as caught:
        compiled(author, **given)
    assert (caught.value.parameter, author.prompts) == (parameter, [])
    assert said in str(caught.value)


@pytest.mark.slow
def test_what_fits_is_taken() -> None:
    author = Author()
    made = compiled(author, options={"temperature": 0, "seed": None}, events=Events(), cancel=None, example=None)
    assert made.status == "done"
    assert author.options[0]["temperature"] == 0 and "seed" not in author.options[0]


# The cache


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [b"[]", b"5", b'"x"', b"{", b"\xff", b'{"a":' * 100_000, b'{"text": 5}', b"{}"],
)
def test_a_kept_value_that_is_none_of_ours_is_passed_over(tmp_path: Path, body: bytes) -> None:
    file = tmp_path / "compiled.sqlite"
    compiled(Author(), cache=file, model="m")
    with sqlite3.connect(file) as opened:
        ((key,),) = opened.execute("SELECT key FROM compiled_1").fetchall()
        digest = blake3(key + body).digest(length=8)
        opened.execute("UPDATE compiled_1 SET value = ?, digest = ?", (body, digest))
    opened.close()
    author = Author()
    made = compiled(author, cache=file, model="m")
    assert (made.status, made.cached, len(author.prompts)) == ("done", False, 3)
    object_ = body in (b"{}", b'{"text": 5}')  # of its shape, and no seed: it is compiled again and kept in its place
    assert len(made.warnings) == (0 if object_ else 1)
    assert object_ or "the cache of compiled tasks can't be used" in made.warnings[0]
