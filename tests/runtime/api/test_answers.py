"""``knotwork.answers``: the function, its sync form, the seed's service; models by spec or as clients, and who closes them."""

import asyncio
import subprocess
import sys

import knotwork
import pytest
from knotwork import answers
from knotwork.adapters.llm import NotConfigured
from knotwork.runtime.events import Events
from support.answer_server import AnswerServer
from support.answering import Model, evaluation, heard


def test_the_same_function_stands_at_the_root():
    assert knotwork.generate_answer is answers.generate_answer
    assert set(answers.__all__) <= set(dir(answers))
    assert all(getattr(answers, name) is not None for name in answers.__all__)
    with pytest.raises(AttributeError):
        answers.nothing  # noqa: B018


def test_importing_it_brings_no_model_library():
    loaded = "print(sorted({'openai', 'asyncio', 'jsonschema'} & set(sys.modules)))"
    code = f"import sys; from knotwork import answers, generate_answer; {loaded}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_client_may_be_any_object_or_function():
    def plain(prompt):
        return evaluation(9) if "Score it" in prompt else "an answer"

    async def waiting(prompt, **options):
        return plain(prompt)

    for client in (plain, waiting, Model(["an answer"], [9])):
        for given in ({"model": client}, {"llm": client}):
            made = answers.generate_answer_sync("Explain it.", "", "It is clear.", **given)
            assert (made.final_answer, made.final_score) == ("an answer", 0.9)


def test_a_callers_own_client_is_left_open():
    model = Model(["x"], [9])
    answers.generate_answer_sync("Explain it.", "", "It is clear.", model=model)
    assert not model.closed


def test_a_client_that_was_opened_is_closed(monkeypatch):
    opened = []

    def open_model(settings, *_, **more):
        opened.append(Model(["x"], [evaluation(9.0)]))
        return opened[-1]

    monkeypatch.setattr("knotwork.runtime.models.factory.open_model", open_model)
    made = answers.generate_answer_sync(
        "x", "", "clear", model="openai:a", judges=["openai:b", "openai:a", "openai:b"], scale="ten", ask="text"
    )
    assert len(opened) == 2
    assert all(model.closed for model in opened)
    assert (len(opened[0].wrote), len(opened[0].judged), len(opened[1].judged)) == (1, 1, 2)
    assert made.told["model"] == "openai:a"


def test_without_a_model_the_environment_names_it(monkeypatch):
    monkeypatch.setenv("KNOTWORK_LLM", "nonsense:x")
    with pytest.raises(NotConfigured, match="'nonsense:x' is not a model"):
        answers.generate_answer_sync("x", "", "clear")


def test_the_seeds_default_model_is_not_assumed_and_gets_a_hint():
    with pytest.raises(NotConfigured) as caught:
        answers.generate_answer_sync("x", "", "clear", model="gpt-4o")
    assert caught.value.hint == "did you mean openai:gpt-4o?"


def test_model_and_llm_are_one():
    with pytest.raises(answers.RequestError, match="llm is another name for model"):
        answers.generate_answer_sync("x", "", "clear", model=Model(), llm=Model())


def test_a_failed_run_is_raised_with_its_iterations():
    with pytest.raises(answers.AnswerFailed, match="no answer was evaluated: ValueError: odd") as caught:
        answers.generate_answer_sync("x", "", "clear", model=Model(["one"], [ValueError("odd")]))
    assert caught.value.result.total_iterations == 3


def test_what_is_wrong_in_the_request_is_told_before_a_model_is_opened(monkeypatch):
    monkeypatch.setenv("KNOTWORK_LLM", "nonsense:x")
    for wrong in (
        {"iter_max": 11},
        {"judges": 12},
        {"instruct": ""},
        {"judges": []},
        {"ask": "jsn"},
        {"scale": "five"},
        {"max_concurrency": 0},
        {"template": "x"},
        {"checks": ["x"]},
        {"time_limit": -1},
        {"temprature": 1},
    ):
        with pytest.raises(answers.RequestError):
            answers.generate_answer_sync(**{"instruct": "x", "eval_crit": "clear", **wrong})


def test_unknown_settings_are_refused_with_a_hint():
    with pytest.raises(answers.RequestError, match="did you mean 'temperature'"):
        answers.generate_answer_sync("x", "", "clear", model=Model(), temprature=0.3)


def test_a_judge_may_be_a_model_a_number_or_a_list():
    for judge, judged in ((Model(judges=[9]), 1), ([Model(judges=[9])] * 2, 2), ((Model(judges=[9]),), 1)):
        writer = Model(["x"], [3])
        assert answers.generate_answer_sync("x", "", "clear", model=writer, judges=judge).final_score == 0.9
        assert writer.judged == []
        assert len((judge if isinstance(judge, Model) else judge[0]).judged) == judged
    writer = Model(["x"], [9])
    assert answers.generate_answer_sync("x", "", "clear", model=writer, judges=[writer, writer]).success
    assert len(writer.judged) == 2
    with pytest.raises(NotConfigured, match="'gpt-4o' is not a model"):
        answers.generate_answer_sync("x", "", "clear", model=writer, judges="gpt-4o")


def test_options_reach_the_writer():
    model = Model(["x"], [9])
    answers.generate_answer_sync("x", "", "clear", model=model, temperature=0.3, answer_tokens=99, seed=7)
    told = model.wrote[0][1]
    assert (told["temperature"], told["max_tokens"], told["seed"]) == (0.3, 99, 7)


def test_templates_are_taken_as_objects_and_files(tmp_path):
    text = '{"mine": {"generator_system": "Be terse."}}'
    file = tmp_path / "mine.json"
    file.write_text(text)
    for templates in ({"mine": {"generator_system": "Be terse."}}, file, answers.read_templates(file)):
        model = Model(["x"], [9])
        answers.generate_answer_sync("x", "", "clear", model=model, template="mine", templates=templates)
        assert model.wrote[0][1]["system"] == "Be terse."


def test_a_cache_answers_the_second_time(tmp_path):
    async def run():
        async with AnswerServer() as server:
            for calls in (6, 0):
                made = await answers.generate_answer(
                    "Explain it. [[scores 0.4 0.7 0.9]]",
                    "",
                    "clear",
                    model=f"{server.url}#m",
                    cache=tmp_path / "calls.db",
                )
                assert (made.calls, made.final_score, made.total_iterations) == (calls, 0.9, 3)
            assert len(server.requests) == 6

    asyncio.run(run())


def test_a_client_of_ones_own_has_no_cache(tmp_path):
    with pytest.raises(answers.RequestError, match="use a spec"):
        answers.generate_answer_sync("x", "", "clear", model=Model(), cache=tmp_path / "calls.db")


def test_a_cache_that_can_not_be_used_is_told_of_and_costs_nothing_else(tmp_path):
    broken = tmp_path / "calls.db"
    broken.write_bytes(b"not a database" * 100)

    async def run():
        events = Events()
        told = heard(events)
        async with AnswerServer() as server:
            made = await answers.generate_answer(
                "Explain it. [[scores 0.9]]", "", "clear", model=f"{server.url}#m", cache=broken, events=events
            )
        assert made.success
        assert len(made.warnings) == 1
        assert [event.message for event in told if event.name == "warning"] == list(made.warnings)

    asyncio.run(run())


def test_accepted_answers_become_examples(tmp_path):
    file = tmp_path / "examples.db"
    first = Model(["Bees dance."], [9])
    answers.generate_answer_sync("Explain how bees talk.", "", "clear", model=first, examples=file)
    second = Model(["x"], [9])
    answers.generate_answer_sync("Explain how bees talk", "", "clear", model=second, examples=file)
    assert "Bees dance." in second.wrote[0][0]
    assert "Bees dance." not in first.wrote[0][0]
    third = Model(["x"], [9])
    answers.generate_answer_sync("Explain how bees talk", "", "clear", model=third)
    assert "Bees dance." not in third.wrote[0][0]


class TestService:
    """Seed 004, ``IterativeAnswerService``."""

    def test_its_threshold_holds_unless_another_is_given(self):
        service = answers.IterativeAnswerService(model_free := 0.3)
        assert service.score_threshold == model_free
        made = asyncio.run(service.generate_answer("x", "", "clear", model=Model(["a"], [4])))
        assert made.success
        strict = asyncio.run(service.generate_answer("x", "", "clear", 2, Model(["a"], [4]), 0.9))
        assert (strict.success, strict.total_iterations) == (False, 2)

    def test_a_threshold_of_zero_is_one(self):
        service = answers.IterativeAnswerService()
        made = asyncio.run(service.generate_answer("x", "", "clear", model=Model(["a"], [0]), score_threshold=0.0))
        assert (made.success, made.total_iterations) == (True, 1)

    def test_settings_hold_for_all_answers(self):
        model = Model(["a"], [4])
        service = answers.IterativeAnswerService(llm=model, attempts=2)
        asyncio.run(service.generate_answer("x", "", "clear", 1))
        asyncio.run(service.generate_answer("x", "", "clear", 1, attempts=1))
        assert len(model.wrote) == 3


def test_in_a_running_loop_the_sync_form_says_what_to_do():
    async def run():
        with pytest.raises(RuntimeError, match=r"await answers\.generate_answer"):
            answers.generate_answer_sync("x", "", "clear", model=Model())

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"max_calls": "3"}, "max_calls"), ({"max_calls": -1}, "max_calls"), ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_cost": float("nan")}, "max_cost"), ({"price": (1,)}, "price"), ({"price": "1/2"}, "price"),
        ({"price": (-1, 2)}, "price"), ({"answer_tokens": 0}, "answer_tokens"), ({"judges": None}, "judges"),
        ({"cache": 5}, "cache"), ({"examples": 5}, "examples"), ({"cancel": "yes"}, "cancel"), ({"events": []}, "events"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_told_before_any_call(wrong, parameter):
    model = Model()
    with pytest.raises(answers.RequestError) as caught:
        answers.generate_answer_sync("x", "", "clear", model=model, **wrong)
    assert (caught.value.parameter, model.calls) == (parameter, 0)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("score_treshold", "score_threshold"), ("threshold", "score_threshold"), ("criteria", "eval_crit"), ("check", "checks"),
        ("max_iter", "iter_max"), ("maxcalls", "max_calls"), ("attempt", "attempts"), ("format", "resp_format"),
    ],
)  # fmt: skip
def test_a_setting_by_another_name_leads_to_its_own(wrong, right):
    with pytest.raises(answers.RequestError) as caught:
        answers.generate_answer_sync("x", "", "clear", model=Model(), **{wrong: 1})
    assert (caught.value.parameter, caught.value.hint) == (wrong, f"did you mean {right!r}?")


def test_a_client_that_judges_twice_is_one_model():
    judge = Model(judges=[3])
    answers.generate_answer_sync("x", "", "clear", 1, model=Model(), judges=[judge, Model(judges=[3]), judge])
    assert [options["temperature"] for _, options in judge.judged] == [0.0, 0.8]


def test_templates_may_be_named_as_a_text(tmp_path):
    file = tmp_path / "t.json"
    file.write_text('{"letter": {"generator_system": "You write letters."}}')
    model = Model(judges=[9])
    answers.generate_answer_sync("x", "", "clear", model=model, templates=str(file), template="letter")
    assert model.wrote[0][1]["system"] == "You write letters."
