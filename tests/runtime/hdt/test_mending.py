"""A plan is mended only where every command stays; what was mended is shown, and faults are about the plan as it was written."""

import json

import pytest
from knotwork import gasl
from knotwork.runtime.context import ContextStore
from knotwork.runtime.hdt.checking import Action, Refusal, check_draft, renamed
from knotwork.runtime.hdt.reading import Draft
from support.executing import library
from support.traversing import Planning, asked, plan


def checked(*commands: str) -> Action | Refusal:
    with gasl.open(library()) as executor:
        return check_draft(Draft({"commands": list(commands)}), "why", executor.session, ContextStore(), "p")


@pytest.mark.parametrize(
    "commands",
    [
        ["BLA BLA"],
        ["FIND nodes AS x", "KEEP x IN f"],
        ["(FIND nodes AS x)"],
        ["Top is Ada"],
        ["FIND nodes AS x // COUNT x AS c"],
        ["FIND nodes WHERE AS x"],
        ['FIND nodes WHERE age = 36 AND AS x'],
        ["FIND nodes DISTINCT AS x"],
        ["found = FIND nodes AS x"],
        ["IF EXISTS x", "FIND nodes AS x", "END"],
        ["CATCH", "FIND nodes AS x"],
    ],
)  # fmt: skip
def test_no_command_and_no_word_with_a_meaning_is_left_out(commands: list[str]) -> None:
    found = checked(*commands)
    assert isinstance(found, Refusal), found
    assert json.loads(found.written)["commands"] == commands
    assert "commands[" in found.told


@pytest.mark.parametrize(
    ("commands", "made"),
    [
        (["1. FIND nodes AS x", "2. COUNT x AS c"], ["FIND nodes AS x", "COUNT x AS c"]),
        (["FIND all the nodes AS x"], ["FIND nodes AS x"]),
        (["FIND nodes AS x -- all of them"], ["FIND nodes AS x # all of them"]),
        (["FIND nodes AS x LIMIT 3"], ["FIND nodes LIMIT 3 AS x"]),
        (["SEARCH nodes AS x"], ["FIND nodes AS x"]),
        (["x = FIND nodes"], ["FIND nodes AS x"]),
        (["SELECT * FROM nodes WHERE age > 40 AS x"], ["FIND nodes WHERE age > 40 AS x"]),
        (["FIND nodes AS x", "RANK x ORDER BY age AS y"], ["FIND nodes AS x", "RANK x BY age AS y"]),
        (["TRY", "FIND nodes AS x", "END TRY"], ["TRY", "FIND nodes AS x", "END"]),
    ],
)
def test_what_keeps_everything_is_mended(commands: list[str], made: list[str]) -> None:
    found = checked(*commands)
    assert isinstance(found, Action), found.told
    assert list(found.commands) == made
    assert found.mended


def test_what_can_not_be_mended_is_told_about_the_plan_as_it_was_written() -> None:
    found = checked("SEARCH nodes AS x", "UPDATE f")
    assert isinstance(found, Refusal)
    assert "SEARCH nodes" in found.told and "SEARCH nodes" in found.written
    found = checked("SEARCH nodes WHERE bla = 4 AS x")  # the second fault shows when the first is put right
    assert isinstance(found, Refusal)
    assert "there is no command SEARCH" in found.told and "no node has an attribute bla" in found.told


@pytest.mark.parametrize("commands", [["# FIND nodes AS x"], ["#: why"], ["# a", "# b"]])
def test_a_plan_of_remarks_is_refused(commands: list[str]) -> None:
    found = checked(*commands)
    assert isinstance(found, Refusal), found
    assert "no command of this plan does anything" in found.told


def test_an_unknown_command_goes_back_to_the_model_and_never_runs_as_nothing() -> None:
    made = asked(Planning(plan("BLA BLA")))
    assert {step.status for step in made.steps} == {"refused"}
    assert made.status == "failed"


def test_the_model_is_shown_what_was_mended() -> None:
    model = Planning(plan("SEARCH nodes AS x"), "COMPLETE: x")
    made = asked(model)
    assert made.steps[0].mended
    assert "mended before it ran: commands[0]: there is no command SEARCH" in model.prompts[1].split("THE LAST STEP")[1]


def test_no_two_plans_have_one_id() -> None:
    action = Action({"plan_id": "a", "why": "w", "commands": ["FIND nodes AS x"]})
    assert renamed(action, {"b"}, 3).plan_id == "a"
    assert renamed(action, {"a"}, 3).plan_id == "a-3"
    assert renamed(action, {"a", "a-3", "a-3-2"}, 3).plan_id == "a-3-3"
