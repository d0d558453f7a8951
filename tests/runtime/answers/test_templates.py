"""Named prompt templates: what they must have, what is refused, and that they are filled in once."""

import json

import pytest
from knotwork.runtime.answers.templates import BUILTIN, Template, find_template, read_templates
from knotwork.runtime.errors import RequestError
from knotwork.runtime.excerpts import filled
from support.answering import Model, answered, evaluation

MINE = {
    "generator": "DO {instruct} AS {resp_format} FOR {eval_crit}\n{feedback}",
    "feedback": "SAID {answer} GOT {score}/{threshold} BECAUSE {reasoning} SO {suggestions}",
    "evaluator": "JUDGE {answer} OF {instruct} IN {resp_format} BY {eval_crit}",
    "generator_system": "write", "evaluator_system": "judge",
}  # fmt: skip


def test_a_template_of_ones_own_is_used_throughout():
    model = Model(["x"], [4])
    answered(
        model,
        instruct="i",
        resp_format="f",
        eval_crit="c",
        iter_max=2,
        template="mine",
        templates=read_templates({"mine": MINE}),
    )
    assert model.wrote[0][0] == "DO i AS f FOR c"
    assert model.wrote[1][0].startswith("DO i AS f FOR c\nSAID ```\nx\n``` GOT 0.40/0.80 BECAUSE ```")
    assert model.judged[0][0].startswith("JUDGE ```\nx\n``` OF ```\ni\n``` IN ```\nf\n``` BY ```\nc\n```\n\nScore it")
    assert (model.wrote[0][1]["system"], model.judged[0][1]["system"]) == ("write", "judge")


def test_what_a_template_leaves_out_is_the_defaults():
    made = read_templates({"mine": {"generator_system": "Be terse."}})["mine"]
    assert made.generator_system == "Be terse."
    assert made.evaluator == BUILTIN["default"].evaluator
    assert made.name == "mine"


def test_one_may_stand_in_a_builtins_place():
    mine = read_templates({"default": MINE})
    assert find_template("default", mine).generator == MINE["generator"]
    assert find_template("brief", mine) is BUILTIN["brief"]


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(RequestError, match="unknown template 'defualt' \\(did you mean 'default'\\?\\)"):
        find_template("defualt", {})
    with pytest.raises(RequestError, match="the templates are brief, default"):
        find_template("entirely different", {})


@pytest.mark.parametrize(
    ("part", "placeholder"),
    [
        ("generator", "instruct"), ("generator", "resp_format"), ("generator", "feedback"), ("feedback", "suggestions"),
        ("evaluator", "instruct"), ("evaluator", "resp_format"), ("evaluator", "eval_crit"), ("evaluator", "answer"),
    ],
)  # fmt: skip
def test_one_that_lacks_a_placeholder_that_it_needs_is_refused(part, placeholder):
    texts = {**MINE, part: MINE[part].replace(f"{{{placeholder}}}", f"{{{{{placeholder}}}}}")}
    with pytest.raises(RequestError, match=f"template: mine: {part} lacks {{{placeholder}}}") as caught:
        read_templates({"mine": texts})
    assert caught.value.parameter == "template"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mine": {"generator": MINE["generator"] + "{instrukt}"}}, "did you mean {instruct}"),
        ({"mine": {"generator_system": "about {instruct}"}}, "generator_system can't contain placeholders"),
        ({"mine": {"generatr": "x"}}, "did you mean 'generator'"),
        ({"mine": {"name": "x"}}, "unknown key 'name'"),
        ({"mine": {"generator": 3}}, "generator must be a string"),
        ({"mine": {"generator": "x" * 20_001}}, "the maximum is 20,000"),
        ({"mine": {"generator_system": "\ud83d"}}, "surrogate"),
        ({"mine": {"shown": 3}}, "shown"), ({"mine": {"shown": True}}, "shown"),
        ({"mine": "x"}, "JSON object"), ({" ": MINE}, "not a valid template name"), ({3: MINE}, "not a valid template name"),
        ([], "JSON object"),
        ({str(n): {} for n in range(101)}, "too many"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(wrong, message):
    with pytest.raises(RequestError) as caught:
        read_templates(wrong)
    assert message in str(caught.value)


def test_templates_are_read_from_a_file(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text("\ufeff" + json.dumps({"mine": MINE}))
    assert read_templates(file)["mine"].evaluator == MINE["evaluator"]
    for text, message in (
        ("{", "can't be read as JSON"), ('{"a": {}, "a": {}}', "occurs twice"), ("[]", "JSON object"),
        (" " * 4_000_001, "larger"), ("\udcff", "can't be read"),
    ):  # fmt: skip
        file.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(RequestError, match=message):
            read_templates(file)
    with pytest.raises(FileNotFoundError):
        read_templates(tmp_path / "none.json")


def test_braces_that_are_no_placeholder_are_text():
    assert filled('{"a": {}} {{answer}} {A} {answer} { answer }', {"answer": "{answer}"}) == (
        '{"a": {}} {answer} {A} {answer} { answer }'
    )


def test_filling_is_one_pass():
    values = {"instruct": "{feedback}", "feedback": "{instruct} \\g<1> \\1", "resp_format": "{{instruct}}"}
    assert filled("{instruct}|{feedback}|{resp_format}", values) == "{feedback}|{instruct} \\g<1> \\1|{{instruct}}"


def test_a_line_that_is_an_empty_placeholder_alone_goes():
    assert filled("a\n\n{feedback}\n\nb", {"feedback": ""}) == "a\n\nb"
    assert filled("a {feedback}\nb", {"feedback": ""}) == "a \nb"
    assert filled("a\n\n{feedback}", {"feedback": "x"}) == "a\n\nx"


def test_the_brief_one_is_brief():
    parts = ("generator_system", "generator", "feedback", "evaluator_system", "evaluator")
    brief, default = (sum(len(getattr(BUILTIN[name], part)) for part in parts) for name in ("brief", "default"))
    assert brief < default / 4
    model = Model(["x", "y"], [evaluation(4, "Say\n why", "Be brief!"), 9])
    answered(model, template="brief", instruct="Explain {wants}.", resp_format="One line.")
    assert model.wrote[0][0] == "Explain {wants}.\nFormat: One line."
    assert model.wrote[1][0] == "Explain {wants}.\nFormat: One line.\n\nSay why.\nBe brief!"


def test_a_template_says_how_much_of_the_last_answer_is_shown():
    model = Model(["x" * 9_000, "y"], [4, 9])
    answered(model, template="mine", templates=read_templates({"mine": {**MINE, "shown": 1_500}}))
    assert "[7,500 characters left out]" in model.wrote[1][0]


def test_a_template_made_in_python_is_checked_too():
    with pytest.raises(RequestError, match=r"generator lacks {instruct}"):
        Template("write", "{answer}{reasoning}{suggestions}", "{instruct}{resp_format}{eval_crit}{answer}")
    made = Template("{instruct}{resp_format}{feedback}", "{answer}{reasoning}{suggestions}", MINE["evaluator"])
    assert find_template("mine", {"mine": made}) is made


def test_braces_that_are_text_are_no_scale_and_no_examples():
    class Kept:
        async def like(self, request):
            return [("An instruction.", "An answer.")]

        async def keep(self, request, answer, score):
            raise AssertionError

    evaluator = "{instruct} {resp_format} {eval_crit} {answer} {{scale}}"
    templates = read_templates(
        {"x": {"evaluator": evaluator, "generator": "{{examples}} {instruct} {resp_format} {feedback}"}}
    )
    model = Model(["text"], [5])
    answered(model, template="x", templates=templates, iter_max=1, examples=Kept())
    assert "a number from 0.0 to 1.0" in model.judged[0][0]
    assert "An answer." in model.wrote[0][0] and "{examples}" in model.wrote[0][0]
