"""The local model: real weights, real llama.cpp."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from knotwork.adapters import llm
from knotwork.adapters.llm import LLM, Usage
from knotwork.adapters.llm.local import LocalModel, choice_grammar, is_continued
from support.cpu_time import pace

pytestmark = pytest.mark.slow

LONG = "Write a long story about a fox and the sea."
OBJECT = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "no anchors"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def generate(model: LocalModel, prompt: str, **options: object) -> llm.Completion:
    return asyncio.run(model.generate(prompt, **options))  # type: ignore[arg-type]


def threads_at_work() -> int:
    return sum(thread.name.startswith("knotwork-local") for thread in threading.enumerate())


def test_an_answer_says_what_it_took(model: LocalModel) -> None:
    assert isinstance(model, LLM)
    answer = generate(model, "Name the capital of France.")
    assert answer.text == "The capital of France is Paris."
    assert (answer.finish_reason, answer.cost, answer.cached, answer.attempts) == ("stop", 0.0, False, 1)
    assert answer.usage == Usage(36, 8)
    assert answer.model == "SmolLM2-135M-Instruct.Q4_1"
    assert model.spec == "local"


def test_the_same_request_has_the_same_answer_whatever_came_before(model: LocalModel) -> None:
    async def several() -> list[str]:
        story = {"max_tokens": 30, "stop": ["Once more"]}
        texts = []
        for other in ("Hello", "Name three fruits.", LONG + " And a boat."):
            with contextlib.suppress(llm.Truncated):
                await model.generate(other, max_tokens=5)
            try:
                texts.append((await model.generate(LONG, **story)).text)
            except llm.Truncated as cut:
                texts.append(cut.text)
        return texts

    first, *others = asyncio.run(several())
    assert len(first) > 50
    assert others == [first, first]


def test_eight_calls_at_once_answer_as_one_at_a_time(model: LocalModel) -> None:
    prompts = [f"Name the capital of {country}." for country in ("France", "Italy", "Spain", "Japan")] * 2

    async def together() -> list[str]:
        return [a.text for a in await asyncio.gather(*(model.generate(p, stop=["."]) for p in prompts))]

    texts = asyncio.run(together())
    assert texts[:4] == texts[4:]
    assert texts == [generate(model, prompt, stop=["."]).text for prompt in prompts]


@pytest.mark.slow
def test_a_seed_chooses_the_sample(model: LocalModel) -> None:
    def sample(seed: int) -> str:
        return generate(model, "Name an animal.", temperature=1.5, seed=seed, stop=[".", "\n"]).text

    assert sample(1) == sample(1)
    assert len({sample(seed) for seed in range(1, 4)}) > 1


def test_a_stop_ends_the_answer_and_is_no_part_of_it(model: LocalModel) -> None:
    assert generate(model, "Name the capital of France.", stop=[" Paris", "xyz"]).text == "The capital of France is"


def test_a_system_prompt_is_heard(model: LocalModel) -> None:
    with_it = generate(model, "Hello", system="You are a pirate.", stop=["."])
    assert with_it.usage.prompt_tokens != generate(model, "Hello", stop=["."]).usage.prompt_tokens


@pytest.mark.parametrize("label", ['say "yes"', "back\\slash", "été", "日本 😀", "two\nlines", "]|[ \t'", "ab", "\\n"])
@pytest.mark.parametrize("prompt", ["Choose.", "Word: one\nKind: a\nWord: two\nKind: b\nWord: three\nKind:"])
def test_a_choice_is_exactly_one_of_the_labels(model: LocalModel, label: str, prompt: str) -> None:
    assert generate(model, prompt, choices=[label]).text == label


def test_choices_must_be_texts() -> None:
    for choices in ([], ["a", ""], ["\ud800"]):
        with pytest.raises(llm.BadRequest):
            choice_grammar(choices)


def test_a_choice_is_made(model: LocalModel) -> None:
    assert generate(model, "Is Paris in France? Answer yes or no.", choices=["yes", "no"]).text in ("yes", "no")


def test_a_schema_shapes_the_answer(model: LocalModel, capfd: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(generate(model, "Tom is 12. Give name and age as JSON.", schema=OBJECT).text)
    assert answer == {"name": "Tom", "age": 12}
    assert capfd.readouterr() == ("", "")  # llama.cpp would write about the pattern on stderr


def test_a_schema_that_makes_no_grammar_is_a_bad_request(model: LocalModel) -> None:
    with pytest.raises(llm.BadRequest, match="nonsense"):
        generate(model, "x", schema={"type": "nonsense"})
    with pytest.raises(llm.BadRequest, match=r"can.t be combined"):
        generate(model, "x", schema={}, choices=["a"])


def test_a_lone_surrogate_is_a_bad_request(model: LocalModel) -> None:
    with pytest.raises(llm.BadRequest, match="surrogate"):
        generate(model, "a \ud800 b")


def test_the_token_limit_is_an_error_with_what_came(model: LocalModel) -> None:
    with pytest.raises(llm.Truncated) as caught:
        generate(model, LONG, max_tokens=5)
    assert caught.value.text
    assert caught.value.usage.completion_tokens == 5


def test_an_answer_without_text_is_an_error(model: LocalModel) -> None:
    with pytest.raises(llm.EmptyAnswer):
        generate(model, "Name the capital of France.", stop=["The"])


def test_a_prompt_that_does_not_fit_is_an_error_at_once(model: LocalModel) -> None:
    with pytest.raises(llm.PromptTooLong, match="8192"):
        generate(model, "hello " * 9000)


def test_a_pattern_of_examples_is_continued() -> None:
    examples = "Dog: bow\nCat: miau\nDog: wow\n"
    assert is_continued(examples + "Dog:")
    assert not is_continued(examples + "Cat:")  # one example is not a pattern
    assert not is_continued(examples + "Dog: ")
    assert not is_continued("List three fruits:")
    assert not is_continued("")


@pytest.mark.parametrize("prompt", [LONG, "word " * 3000], ids=["writing", "reading"])
def test_a_cancelled_call_ends_soon_and_the_next_one_works(model: LocalModel, prompt: str) -> None:
    async def cancel() -> float:
        call = asyncio.create_task(model.generate(prompt, max_tokens=2000))
        queued = asyncio.create_task(model.generate(prompt, max_tokens=2000))
        await asyncio.sleep(0.4)
        begun = time.process_time()
        call.cancel()
        queued.cancel()
        results = await asyncio.gather(call, queued, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        took = time.process_time() - begun
        assert (await model.generate("Name the capital of France.")).text.endswith("Paris.")
        return took

    generate(model, "Hello", stop=["!"])  # loaded
    # Processor time does not depend on other processes. The whole call would take about a minute on two cores.
    assert asyncio.run(cancel()) < 10


def test_a_deadline_ends_a_call(model: LocalModel) -> None:
    generate(model, "Hello", stop=["!"])
    begun = time.process_time()
    with pytest.raises(llm.TimedOut, match=r"0\.3 s") as caught:
        generate(model, LONG, max_tokens=2000, timeout=0.3)
    assert time.process_time() - begun < 10 * pace()
    assert caught.value.usage.prompt_tokens > 0


def test_a_closed_model_leaves_no_thread_and_refuses(model: LocalModel) -> None:
    before = threads_at_work()

    async def closing() -> None:
        own = LocalModel()
        await own.generate("Hello", stop=["!"])
        running = asyncio.create_task(own.generate(LONG, max_tokens=2000))
        queued = asyncio.create_task(own.generate(LONG, max_tokens=2000))
        await asyncio.sleep(0.3)
        await own.aclose()
        await own.aclose()
        for call in (running, queued):
            with pytest.raises(llm.Unavailable):
                await call
        with pytest.raises(llm.Unavailable):
            await own.generate("Hello")

    asyncio.run(closing())
    assert threads_at_work() <= before


@pytest.mark.parametrize(
    "content",
    [b"", b"GGUF", b"no model at all" * 1000, b"GGUF" + bytes(range(256)) * 4000, b"GGUF\3" + bytes(19)],
    ids=["empty", "magic only", "text", "noise", "no tensors"],
)
def test_a_bad_model_file_is_said_to_be_one(tmp_path: Path, content: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(llm.NotConfigured, match=r"bad\.gguf"):
        generate(LocalModel(str(path)), "Hello")
    assert capfd.readouterr() == ("", "")


def test_a_missing_model_file_is_said_to_be_missing(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(llm.NotConfigured, match="can't be read: No such file"):
        generate(LocalModel(str(tmp_path / "none.gguf")), "Hello")
    with pytest.raises(llm.NotConfigured, match="can't be read: Is a directory"):
        generate(LocalModel(str(tmp_path)), "Hello")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(llm.NotConfigured) as caught:
        generate(LocalModel(), "Hello")
    assert caught.value.hint == "type: pip install 'knotwork[local]'"


NEVER_CLOSED = """
import asyncio
from knotwork.adapters.llm.local import LocalModel
model = LocalModel()
print(asyncio.run(model.generate("Name the capital of France.")).text)
"""

INTERRUPTED = """
import asyncio, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
from knotwork.adapters.llm.local import LocalModel
async def main():
    model = LocalModel()
    await model.generate("Hello", stop=["!"])
    print("ready", flush=True)
    await model.generate("word " * 4000, max_tokens=2000)
asyncio.run(main())
"""


def run(code: str) -> subprocess.Popen[str]:
    pytest.importorskip("xllamacpp")
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONFAULTHANDLER": "1"},
    )


def test_a_model_that_nobody_closes_leaves_quietly(model: LocalModel) -> None:
    generate(model, "Hello", stop=["!"])  # the weights are there
    with run(NEVER_CLOSED) as process:
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "The capital of France is Paris.\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_in_the_middle_ends_the_process(model: LocalModel) -> None:
    generate(model, "Hello", stop=["!"])
    with run(INTERRUPTED) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert time.monotonic() - begun < 5
    assert process.returncode in (130, -signal.SIGINT)
    assert err.rstrip().endswith("KeyboardInterrupt")
