"""EACH over every operation that it can repeat: the same values as a loop in Python, also after a resumption."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import lwt
from knotwork.adapters.llm import Completion
from knotwork.lang.source import Source

SEED = {
    "task_name": "illness",
    "filter": {"keywords": ["ill"]},
    "extract": {"fields": [{"name": "severity", "type": "enum", "values": ["none", "severe"]}]},
    "compute": [{"name": "N", "op": "count", "where": {"extraction.severity": "severe"}}],
    "output": ["N"],
}
INNER = '(a)=LLM("first {(input)}")\n(final)=LLM("then {(a)}")'
CONTEXT = '{"name": {(item)}, "reviews": [{"text": {(item)}}, {"text": "ill at ease"}]}'
CALLS = {
    "LLM": 'LLM("say {(item)}")',
    "EXPR": 'EXPR("t.upper()", t={(item)})',
    "CALL": 'CALL("twice", text={(item)})',
    "RUN": 'RUN(file="inner.lwt", input={(item)})',
    "SEED": f'SEED(file="a.seed.json", context={CONTEXT})',
    "ANSWER": 'ANSWER("name {(item)}", check="words:1..", iter_max=1)',
    "JOIN": 'JOIN(a=[{(item)}], b=[{(index)}])',
}  # fmt: skip
EXPECTED = {
    "LLM": lambda item, index: f"say {item}",
    "EXPR": lambda item, index: item.upper(),
    "CALL": lambda item, index: item * 2,
    "RUN": lambda item, index: f"then first {item}",
    "SEED": lambda item, index: {"N": 2 if "ill" in item else 1},
    "ANSWER": lambda item, index: "an answer",
    "JOIN": lambda item, index: [{"a": item, "b": index}],
}


class Model:
    """Answers prompts and seeds; raises an exception for the calls with the given numbers, from 0."""

    def __init__(self, *faulty: int) -> None:
        self.faulty = set(faulty)
        self.calls = 0

    async def generate(self, prompt: str, **options: Any) -> Completion:
        number, self.calls = self.calls, self.calls + 1
        await asyncio.sleep(0)
        if number in self.faulty:
            raise ValueError("the model is down")
        if "severity" in prompt:
            return Completion('{"severity": "severe"}')
        return Completion("an answer" if "name " in prompt else prompt)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the script and of the files that it names."""
    made = tmp_path_factory.mktemp("each")
    (made / "inner.lwt").write_text(INNER)
    (made / "a.seed.json").write_text(json.dumps(SEED))
    return made


def twice(text: str) -> str:
    return text * 2


def run(folder: Path, operation: str, items: list[str], model: Model, options: str = "", **rest: Any) -> Any:
    text = f"(final)=EACH({{(input)}}, {CALLS[operation]}{options})"
    (folder / "x.lwt").write_text(text)
    script = lwt.parse(Source(text, str(folder / "x.lwt")))
    return asyncio.run(lwt.run(script, input=items, llm=model, functions={"twice": twice}, **rest))


ITEMS = st.lists(st.sampled_from(["ill", "soup", "é", "a b"]), min_size=1, max_size=5)


@pytest.mark.slow
@pytest.mark.parametrize("operation", CALLS)
@given(items=ITEMS, most=st.integers(1, 3))
@settings(max_examples=8)
def test_it_is_the_loop_in_python(folder: Path, operation: str, items: list[str], most: int) -> None:
    made = run(folder, operation, items, Model(), f", max_concurrency={most}")
    assert made.status == "complete", made.warnings
    assert made.value == [EXPECTED[operation](item, index) for index, item in enumerate(items)]


@pytest.mark.slow
@pytest.mark.parametrize("operation", [name for name in CALLS if name not in ("EXPR", "CALL", "JOIN")])
@pytest.mark.parametrize("on_error", ["fail", "keep", "drop"])
@given(items=ITEMS, faulty=st.sets(st.integers(0, 9), min_size=1, max_size=3))
@settings(max_examples=6)
def test_a_resumed_run_equals_an_undisturbed_one(
    folder: Path, operation: str, on_error: str, items: list[str], faulty: set[int]
) -> None:
    whole, first = Model(), Model(*faulty)
    expected = run(folder, operation, items, whole)
    made = run(folder, operation, items, first, f", on_error={on_error}", record=True)
    broken = {number for number in faulty if number < first.calls}
    assert (made.status == "complete") == (not broken)
    again = Model()
    resumed = asyncio.run(lwt.resume(made.run_id, llm=again, functions={"twice": twice}))
    assert (resumed.status, resumed.value, resumed.output) == ("complete", expected.value, expected.output)
    assert first.calls - len(broken) + again.calls == whole.calls, "an answer was paid for twice"


@pytest.mark.parametrize("operation", CALLS)
def test_every_operation_has_the_values_of_a_loop(folder: Path, operation: str) -> None:
    made = run(folder, operation, ["ill", "soup"], Model())
    assert made.value == [EXPECTED[operation]("ill", 0), EXPECTED[operation]("soup", 1)]


def test_a_failed_item_is_handled_as_for_the_model() -> None:
    def picky(n: int) -> int:
        if n == 2:
            raise ValueError("two")
        return n

    for on_error, status, value in [
        ("fail", "failed", None),
        ("keep", "partial", [1, None, 3]),
        ("drop", "partial", [1, 3]),
    ]:
        text = f'(a)=EACH({{(input)}}, CALL("picky", n={{(item)}}), on_error={on_error})\n(final)=EXPR("x", x={{(a)}})'
        made = asyncio.run(lwt.run(text, input=[1, 2, 3], functions={"picky": picky}))
        assert (made.status, made.value) == (status, value)
        failed = made.steps["a"].failed if on_error == "fail" else made.steps["a"].failed_items[0]
        assert failed.message.endswith("picky raised ValueError: two")
        assert failed.item == 1


def test_a_condition_holds_for_each_item() -> None:
    text = '(final)=EACH({(input)}, LLM("say {(item)}", when="{(item)} != null and {(index)} > 0"))'
    model = Model()
    made = asyncio.run(lwt.run(text, input=["a", "b", None], llm=model))
    assert (made.status, made.value, model.calls) == ("complete", [None, "say b", None], 1)


def test_a_condition_without_a_value_fails_its_item() -> None:
    text = '(final)=EACH({(input)}, EXPR("1", when="{(item)}[\\"n\\"] > 1"), on_error=keep)'
    made = asyncio.run(lwt.run(text, input=[{"n": 2}, {"n": "x"}]))
    assert (made.status, made.value[0]) == ("partial", 1)
    assert made.steps["final"].failed_items[0].item == 1


def test_an_answer_that_is_not_accepted_is_partial_with_its_item() -> None:
    text = '(final)=EACH({(input)}, ANSWER("name {(item)}", check="words:9..", iter_max=1))'
    made = asyncio.run(lwt.run(text, input=["a"], llm=Model()))
    assert (made.status, made.value) == ("partial", ["an answer"])
    (failed,) = made.steps["final"].failed_items
    assert (failed.item, failed.kind) == (0, "partial")
    assert made.warnings[0].startswith("(final): item 0: ")


def test_items_are_limited_in_their_concurrency() -> None:
    under_way, most = 0, 0

    async def watch(n: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return n

    text = '(final)=EACH({(input)}, CALL("watch", n={(item)}), max_concurrency=3)'
    made = asyncio.run(lwt.run(text, input=list(range(20)), functions={"watch": watch}))
    assert made.value == list(range(20))
    assert most == 3
