"""Examples, earlier messages, sampling and images of ``LLM`` steps, with both services' protocols over loopback."""

import asyncio
import base64
import json

import pytest
from knotwork import lwt
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.cache import Cached
from knotwork.adapters.llm.middleware import as_client
from knotwork.adapters.llm.openai import OpenAIModel
from support.clients import Scripted, Timed
from support.model_server import ModelServer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SHOWN = f"data:text/plain;base64,{base64.b64encode(PNG).decode()}"


def asked(script, *, anthropic=False, cache=None, status="complete", **options):
    """Run a script at the model server; return the run and the bodies of the requests."""

    async def main():
        async with ModelServer() as server:
            model = AnthropicModel("m", base_url=server.root) if anthropic else OpenAIModel("m", base_url=server.url)
            client = model if cache is None else Cached(model, cache, "m")
            run = await lwt.run(script, llm=client, **options)
            await client.aclose()
            return run, [request.body for request in server.requests]

    run, bodies = asyncio.run(main())
    assert run.status == status, run.steps
    return run, bodies


SHOTS = [{"in": "Lovely!", "out": "glad"}, {"in": "Never again.", "out": "sad"}]


@pytest.mark.parametrize("anthropic", [False, True])
def test_examples_are_turns_in_the_form_in_which_the_answer_is_requested(anthropic):
    script = '(final)=LLM("Fine.", type="glad" | "sad", examples={(input)}["shots"])'
    _, (body,) = asked(script, anthropic=anthropic, input={"shots": SHOTS})
    assert body["messages"] == [
        {"role": "user", "content": "Lovely!"},
        {"role": "assistant", "content": '{"answer": "glad"}'},
        {"role": "user", "content": "Never again."},
        {"role": "assistant", "content": '{"answer": "sad"}'},
        {"role": "user", "content": "Fine."},
    ]


def test_examples_of_texts_are_sent_as_they_are_and_other_values_as_json():
    script = '(final)=LLM("x", examples=[{"in": {(input)}, "out": "one"}, {"in": "b", "out": [1, 2]}])'
    _, (body,) = asked(script, input={"n": 1})
    assert [turn["content"] for turn in body["messages"]] == ['{"n": 1}', "one", "b", "[1, 2]", "x"]


def test_examples_that_do_not_fit_fail_the_step_before_its_call():
    script = '(final)=LLM("x", type=int, examples={(input)})'
    run, bodies = asked(script, input=[{"in": "one", "out": "1"}, {"in": "two", "out": "zwei"}], status="failed")
    assert not bodies
    assert "example 2" in run.steps["final"].reason
    assert "does not fit the type" in run.steps["final"].reason
    run, bodies = asked(script, input=[{"in": "x", "out": 1}] * 51, status="failed")
    assert "at most 50 examples, not 51" in run.steps["final"].reason


def test_examples_of_each_may_refer_to_the_item():
    script = '(final)=EACH({(input)}, LLM("{(item)}", examples=[{"in": {(item)}, "out": "same"}]))'
    _, bodies = asked(script, input=["a", "b"])
    assert sorted(body["messages"][0]["content"] for body in bodies) == ["a", "b"]


@pytest.mark.parametrize("anthropic", [False, True])
def test_messages_come_before_the_prompt_and_a_first_system_message_is_the_system_prompt(anthropic):
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi!"},
    ]
    _, (body,) = asked('(final)=LLM("And now?", messages={(input)})', anthropic=anthropic, input=talk)
    if anthropic:
        assert body["system"] == "Be brief."
        assert body["messages"] == [*talk[1:], {"role": "user", "content": "And now?"}]
    else:
        assert body["messages"] == [*talk, {"role": "user", "content": "And now?"}]


def test_messages_of_a_wrong_role_fail_the_step():
    script = '(final)=LLM("x", messages={(input)})'
    run, bodies = asked(script, input=[{"role": "tool", "content": "x"}], status="failed")
    assert "the role is one of system, user, assistant" in run.steps["final"].reason
    run, bodies = asked(
        '(final)=LLM("x", system="Be kind.", messages={(input)})', input=[{"role": "system", "content": "x"}],
        status="failed",
    )  # fmt: skip
    assert "system prompt already" in run.steps["final"].reason
    assert not bodies


@pytest.mark.slow
def test_examples_messages_and_sampling_are_part_of_the_key_of_the_cache(tmp_path):
    base = '(final)=LLM("x"{})'
    variants = [
        "", ', examples=[{"in": "a", "out": "b"}]', ', examples=[{"in": "a", "out": "c"}]',
        ', messages=[{"role": "user", "content": "a"}]', ', messages=[{"role": "assistant", "content": "a"}]',
        ", seed=1", ", seed=2", ", top_p=0.5", ', stop="a"', f', images="{SHOWN}"',
    ]  # fmt: skip
    for _ in range(2):
        count = sum(len(asked(base.format(variant), cache=tmp_path / "calls.db")[1]) for variant in variants)
        assert count in (len(variants), 0)
    assert count == 0


def test_sampling_reaches_the_services():
    _, (body,) = asked('(final)=LLM("x", seed=7, top_p=0.25, stop=["END", "."])')
    assert (body["seed"], body["top_p"], body["stop"]) == (7, 0.25, ["END", "."])
    _, (body,) = asked('(final)=LLM("x", top_p=0.25, stop="END")', anthropic=True)
    assert (body["top_p"], body["stop_sequences"]) == (0.25, ["END"])


def test_a_model_without_a_seed_is_refused_before_the_first_call():
    script = '(a)=LLM("first")\n(final)=EACH({(input)}, LLM("{(item)} {(a)}", seed=1))'
    model = AnthropicModel("m", base_url="http://127.0.0.1:9")
    with pytest.raises(lwt.ScriptError, match=r"\(final\) can't take `seed`: Anthropic's API has no seed"):
        lwt.run_sync(script, input=["x"], llm=model)


def test_a_custom_client_that_takes_no_seed_is_refused_and_one_that_takes_it_gets_it():
    with pytest.raises(lwt.ScriptError, match="parameter seed"):
        lwt.run_sync('(final)=LLM("x", seed=1)', llm=lambda prompt: "y")
    client = Scripted()
    assert lwt.run_sync('(final)=LLM("x", seed=1)', llm=client).output == "ok"
    assert client.options[0]["seed"] == 1


def test_a_custom_client_without_examples_gets_them_as_labels():
    run = lwt.run_sync('(final)=LLM("c", examples=[{"in": "a", "out": "b"}])', llm=lambda prompt: prompt)
    assert run.output == "Input: a\nOutput: b\n\nInput: c\nOutput:"


# Images


def test_an_image_of_the_input_reaches_both_services_with_the_type_of_its_content(tmp_path):
    script = '(final)=LLM("What is it?", images={(input)}["photo"])'
    _, (body,) = asked(script, input={"photo": SHOWN})
    image, text = body["messages"][-1]["content"]
    assert image == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
    }
    assert text == {"type": "text", "text": "What is it?"}
    _, (body,) = asked(script, input={"photo": SHOWN}, anthropic=True)
    image, text = body["messages"][-1]["content"]
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}


def file_run(tmp_path, script, client=None, **options):
    (tmp_path / "s.lwt").write_text(script)
    from knotwork.lang.source import Source

    source = Source(script, str(tmp_path / "s.lwt"))
    return lwt.run_sync(lwt.parse(source), llm=client or Scripted(), **options)


def test_a_file_beside_the_script_is_read_by_its_content(tmp_path):
    (tmp_path / "photo.txt").write_bytes(PNG)
    client = Scripted()
    script = '(final)=LLM("What?", images={(input)})'
    run = file_run(tmp_path, script, client, input=["photo.txt"])
    assert run.status == "complete"
    (image,) = client.options[0]["images"]
    assert (image.data, image.media_type) == (PNG, "image/png")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../secret.png", "is not allowed"),
        ("/etc/passwd", "is not allowed"),
        ("link.png", "is not allowed"),
        ("missing.png", "can't be read"),
        ("fake.png", "its content is not an image"),
        ("big.png", "larger than 5 MiB"),
        (".", "is not allowed"),
        ("https://example.com/a.png", "not an address"),
        ("data:image/png;base64,!!!!", "not valid Base64"),
        ("data:image/png,abc", "not in Base64"),
        ("data:image/png;base64,", "it is empty"),
    ],
)
def test_other_files_are_refused_before_the_call(tmp_path, name, why):
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    (below / "link.png").symlink_to(tmp_path / "secret.png")
    (below / "fake.png").write_text("<svg/>")
    with open(below / "big.png", "wb") as file:
        file.write(PNG)
        file.truncate((5 << 20) + 1)
    client = Scripted()
    run = file_run(below, '(final)=LLM("What?", images={(input)})', client, input=name)
    assert run.status == "failed"
    assert why in run.steps["final"].reason
    assert not client.prompts


def test_the_answer_of_a_model_names_no_file_but_a_constant_does(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    client = Scripted({"Which": "a.png"})
    run = file_run(tmp_path, '(a)=LLM("Which?")\n(final)=LLM("What?", images={(a)})', client)
    assert "the output of a step must not name a file" in run.steps["final"].reason
    run = file_run(tmp_path, '(a)=CONST(["a.png", "a.png"])\n(final)=LLM("What?", images={(a)})')
    assert run.status == "complete"
    run = file_run(tmp_path, '(a)=CONST(["a.png"])\n(final)=EACH({(a)}, LLM("What?", images={(item)}))')
    assert run.status == "complete"
    run = file_run(
        tmp_path,
        '(a)=LLM("Which list?")\n(final)=EACH({(a)}, LLM("What?", images={(item)}))',
        Scripted({"Which": '["a.png"]'}),
    )
    assert "must not name a file" in run.steps["final"].reason


def test_a_run_without_files_reads_no_image():
    client = Scripted()
    with pytest.raises(lwt.ScriptError, match="this run reads no files"):
        lwt.run_sync('(a)=LLM("x")\n(final)=LLM("What? {(a)}", images="a.png")', llm=client)
    assert not client.prompts


@pytest.mark.parametrize(
    ("above", "images", "why"),
    [
        ("", '"missing.png"', "can't be read"),
        ("", '["a.png", "../a.png"]', "is not allowed"),
        ('(list)=CONST(["a.png", "fake.png"])\n', "{(list)}", "its content is not an image"),
        ("", '"data:image/png;base64,!!!!"', "not valid Base64"),
    ],
)
def test_the_images_of_a_script_are_read_before_its_first_call(tmp_path, above, images, why):
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "fake.png").write_text("<svg/>")
    client = Scripted()
    script = f'{above}(a)=LLM("x")\n(final)=LLM("What? {{(a)}}", images={images})'
    with pytest.raises(lwt.ScriptError, match=why):
        file_run(tmp_path, script, client)
    (tmp_path / "below.lwt").write_text(script)
    with pytest.raises(lwt.ScriptError, match=why):
        file_run(tmp_path, '(a)=LLM("x")\n(final)=RUN(file="below.lwt", input={(a)})', client)
    assert not client.prompts


# Samples


def test_the_most_frequent_answer_wins_and_ties_go_to_the_first():
    for answers, won in ((["a", "b", " b "], "b"), (["b", "a", "c"], "b"), (["a", "b", "b", "a"], "a")):
        client = Scripted(default=list(answers))
        run = lwt.run_sync(f'(final)=LLM("x", n={len(answers)}, temperature=1)', llm=client)
        assert run.output == won
        assert (run.calls, len(client.prompts)) == (len(answers), len(answers))
        (vote,) = run.trace.votes
        assert vote.samples == tuple(answers)
        assert max(vote.counts) == vote.counts[vote.chosen]


def test_typed_samples_are_compared_by_value_and_each_has_its_place_in_the_cache(tmp_path):
    script = '(final)=LLM("x", type=json, n=3)'
    client = Scripted(default=['{"a": 1, "b": 2}', '{"b": 3}', '{"b": 2, "a": 1}'])
    cached = Cached(as_client(client), tmp_path / "calls.db", "m")

    async def main():
        runs = [await lwt.run(script, llm=cached) for _ in range(2)]
        await cached.aclose()
        return runs

    first, second = asyncio.run(main())
    assert first.value == second.value == {"a": 1, "b": 2}
    assert len(client.prompts) == 3
    assert first.trace.votes[0].counts == second.trace.votes[0].counts == (2, 1, 2)
    assert [options.get("sample") for options in client.options] == [None, 1, 2]


def test_samples_have_seeds_of_their_own_and_count_in_the_budget():
    client = Scripted()
    run = lwt.run_sync('(final)=LLM("x", n=3, seed=5)', llm=client, max_calls=3)
    assert run.status == "complete"
    assert sorted(options["seed"] for options in client.options) == [5, 6, 7]
    run = lwt.run_sync('(final)=LLM("x", n=3)', llm=Scripted(), max_calls=2)
    assert run.status == "failed"
    assert "sample 3 of 3" in run.steps["final"].reason
    assert run.calls == 2


def test_a_resumed_run_asks_only_for_the_samples_that_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    broken = Scripted(default=["a", "b", RuntimeError("gone")])
    run = lwt.run_sync('(final)=LLM("x", n=3)', llm=broken, record=True)
    assert run.status == "failed"
    client = Scripted(default=["b"])
    again = lwt.resume_sync(run.run_id, llm=client)
    assert (again.output, len(client.prompts)) == ("b", 1)


def test_the_dry_run_counts_samples():
    script = lwt.parse('(a)=EACH({(input)}, LLM("{(item)}", n=3))\n(final)=LLM("{(a)}", n=5)')
    found = lwt.dry_run(script, input=["x", "y"])
    assert (found.least, found.most) == (11, 11)
    assert (lwt.dry_run(script).open_ends[0].per, lwt.dry_run(script).open_ends[0].each) == (3, "element of {(input)}")


def test_the_dry_run_shows_examples_and_messages():
    script = lwt.parse(
        '(a)=LLM("x")\n(final)=LLM("y", examples=[{"in": {(a)}, "out": "z"}], messages={(input)}, images={(input)})'
    )
    step = lwt.dry_run(script, input=[{"role": "user", "content": "Hi"}]).steps[-1]
    (call,) = step.as_json()["prompts"]
    assert call["examples"] == '[{"in": «{(a)}», "out": "z"}]'
    assert json.loads(call["messages"]) == [{"role": "user", "content": "Hi"}]


def test_a_recording_with_images_is_replayed_by_their_content(tmp_path):
    async def main():
        async with ModelServer() as server:
            spec = f"record:{tmp_path / 'c.jsonl'},{server.url}#m"
            return await lwt.run('(final)=LLM("What?", images={(input)})', input=SHOWN, llm=spec)

    recorded = asyncio.run(main())
    replay = f"replay:{tmp_path / 'c.jsonl'}"
    script = '(final)=LLM("What?", images={(input)})'
    assert lwt.run_sync(script, input=SHOWN, llm=replay).output == recorded.output
    other = f"data:image/png;base64,{base64.b64encode(PNG + b'0').decode()}"
    assert lwt.run_sync(script, input=other, llm=replay).status == "failed"
    assert base64.b64encode(PNG).decode() not in (tmp_path / "c.jsonl").read_text()


def test_a_prompt_of_a_session_is_refused_with_its_place():
    from knotwork.runtime.lwt.runner import run

    model = AnthropicModel("m", base_url="http://127.0.0.1:9")
    script = lwt.parse('(final)=LLM("x", seed=1)')
    result = asyncio.run(run(script, llm=model, refuses_options=False))  # as for scripts that a model wrote
    assert "Anthropic's API has no seed" in result.steps["final"].reason
    with pytest.raises(lwt.ScriptError) as raised:
        asyncio.run(run(script, llm=model))
    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.code, diagnostic.span.start) == ("LWT054", 17)


def test_the_images_of_a_call_are_bounded_together():
    image = f"data:image/png;base64,{base64.b64encode(PNG + bytes((5 << 20) - len(PNG))).decode()}"
    run = lwt.run_sync('(final)=LLM("What?", images={(input)})', input=[image] * 5, llm=Scripted())
    assert "more than 20 MiB together" in run.steps["final"].reason


def test_samples_of_each_keep_its_limit_and_end_with_the_first_failure():
    client = Timed(0.001)
    script = '(final)=EACH({(input)}, LLM("{(item)}", n=3, temperature=1), max_concurrency=2)'
    run = lwt.run_sync(script, input=["a", "b", "c"], llm=client)
    assert (run.value, client.most, len(client.order)) == (["<a>", "<b>", "<c>"], 2, 9)
    failing = Scripted({"a": ["x", RuntimeError("gone"), "x"]})
    run = lwt.run_sync('(final)=EACH({(input)}, LLM("{(item)}", n=3), on_error=keep)', input=["a"], llm=failing)
    assert len(failing.prompts) == 2
    assert "sample 2 of 3" in run.steps["final"].failed_items[0].message
