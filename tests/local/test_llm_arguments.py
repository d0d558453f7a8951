"""Examples, samples and parts of answers on the local model."""

import asyncio

import pytest
from knotwork import lwt
from knotwork.adapters.llm.local import LocalModel
from knotwork.runtime.events import CallDelta, Event, Events

pytestmark = pytest.mark.slow

SHOTS = (
    'examples=[{"in": "The waiter was kind.", "out": "glad"}, {"in": "The soup was cold.", "out": "sad"}, '
    '{"in": "We loved the view.", "out": "glad"}, {"in": "They were late.", "out": "sad"}]'
)


def test_examples_are_labels_that_the_model_fills_in(model: LocalModel) -> None:
    script = (
        f'(a)=LLM("The food was wonderful.", type="glad" | "sad", {SHOTS})\n'
        f'(b)=LLM("The bill was wrong, and they were rude.", {SHOTS})\n'
        '(c)=LLM("four", type=int, examples=[{"in": "two", "out": 2}, {"in": "seven", "out": 7}, {"in": "one", "out": 1}])\n'
        '(final)=EXPR("[a, b, c]", a={(a)}, b={(b)}, c={(c)})'
    )
    run = lwt.run_sync(script, llm=model)
    assert run.status == "complete", run.steps
    assert run.value == ["glad", "sad", 4]


def test_the_answer_is_shown_token_by_token(model: LocalModel) -> None:
    for more in ("", f", {SHOTS}"):
        events, found = Events(), list[Event]()
        events.subscribe(found.append)
        events.stream_answers()
        run = lwt.run_sync(f'(final)=LLM("Tell me about the sea.", stop="."{more})', llm=model, events=events)
        assert run.status == "complete", run.steps
        parts = [event.text for event in found if isinstance(event, CallDelta)]
        assert "".join(parts) == run.output
        assert len(parts) > 3 or more
        assert run.usage.completion_tokens > 0


def test_samples_differ_at_a_temperature_above_zero_and_are_repeatable(model: LocalModel) -> None:
    async def texts() -> list[str]:
        return [
            (await model.generate("Name a colour.", temperature=1.5, sample=sample, stop=[" ", "\n"])).text
            for sample in range(2)
        ]

    first = asyncio.run(texts())
    assert first[0] != first[1]
    assert asyncio.run(texts()) == first
    run = lwt.run_sync('(final)=LLM("Name a colour.", n=3, stop=" ")', llm=model)
    assert run.trace.votes[0].counts == (3, 3, 3)
    assert "answers at temperature 0" in run.warnings[0]
    each = lwt.run_sync(
        '(final)=EACH({(input)}, LLM("Name {(item)}.", n=2, max_tokens=4))', input=["a", "b"], llm="local"
    )
    assert len([warning for warning in each.warnings if "answers at temperature 0" in warning]) == 1


def test_earlier_messages_are_known_and_images_are_refused(model: LocalModel) -> None:
    talk = '[{"role": "user", "content": "My name is Zora."}, {"role": "assistant", "content": "Hello Zora!"}]'
    run = lwt.run_sync(f'(final)=LLM("What is my name?", messages={talk}, stop=[".", ","])', llm=model)
    assert "Zora" in (run.output or "")
    with pytest.raises(lwt.ScriptError, match="reads only text"):
        lwt.run_sync('(final)=LLM("What?", images={(input)})', input="data:image/png;base64,AAAA", llm=model)
