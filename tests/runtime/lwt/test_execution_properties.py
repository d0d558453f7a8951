"""What holds for every script: schedules agree, and every step ends in exactly one way."""

import asyncio
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import lwt
from knotwork.lang.trees.lwt import Call, Option, Reference, Scalar, Script, Step, Template, Text
from knotwork.runtime.scheduler import Policy
from support.clients import Scripted


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Scripts of up to ten LLM steps in any order, each referring to steps that come before it in some order."""
    count = draw(st.integers(1, 10))
    steps = []
    for number in range(count):
        inputs = draw(st.lists(st.integers(0, number - 1), max_size=3)) if number else []
        parts: list[Text | Reference] = [Text(f"step {number}:")]
        for target in inputs:
            parts += [Reference(f"s{target}"), Text(",")]
        steps.append(Step(f"s{number}", Call("LLM", (Template(tuple(parts)),), (Option("temperature", Scalar(0)),))))
    return Script(tuple(draw(st.permutations(steps))))


outputs = st.text(max_size=5).map(lambda text: f"<{text}>") | st.sampled_from(["{(input)}", "{(s0)}", '{(s1)}["k"]'])


@pytest.mark.slow
@given(
    scripts(), st.sets(st.integers(0, 9), max_size=2), st.lists(outputs, min_size=10, max_size=10), st.integers(1, 4)
)
@settings(max_examples=60, deadline=None)
def test_eager_and_layered_give_the_same(script: Script, failing: set[int], texts: list[str], limit: int) -> None:
    def answer(prompt: str) -> Any:
        number = int(prompt.split(":", 1)[0].removeprefix("step "))
        if number in failing:
            raise ConnectionError("gone")
        return texts[number]

    found = []
    for schedule in get_args(Policy):
        result = asyncio.run(
            lwt.run(
                script,
                input="SECRET",
                llm=Scripted(default=answer),
                schedule=schedule,
                max_concurrency=limit,
                all_steps=True,
                prompts=True,
            )
        )
        prompts = result.trace.prompts or {}
        assert not [prompt for prompt in prompts.values() if "SECRET" in prompt]
        assert result.steps.keys() == {step.id for step in script.steps}
        assert prompts.keys() == {step for step, r in result.steps.items() if r.status != "skipped"}
        assert (result.output is None) == (result.status == "failed")
        steps = {step: (r.status, r.output, r.reason) for step, r in result.steps.items()}
        found.append((result.status, result.output, steps, prompts))
    assert found[0] == found[1]
