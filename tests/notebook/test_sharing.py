"""Names both ways: Python's variables in cells, and what cells bind in Python."""

import enum

import numpy
import pytest
from knotwork.runtime.interfaces.notebook.room import read
from knotwork.runtime.interfaces.notebook.sharing import NotShared, as_json, mentioned
from support.shells import Shell


def test_python_variables_are_values_of_commands_steps_and_expressions(shell: Shell) -> None:
    shell.run("%kw open nx:les_miserables")
    shell.names.update(least=20, wanted=("Valjean", "Javert"), data={"names": ["a", "b"]})
    assert shell.run("%%gasl\nFIND nodes WHERE degree > ${least} AS hubs").error is None
    assert [node["id"] for node in shell.names["hubs"]] == ["Valjean", "Gavroche"]
    assert shell.run("%kw sorted(wanted)[0]").text == "Javert"
    assert shell.run('%%lwt --input data\n(n)=EXPR("len(x) + y", x={(input)}["names"], y={(least)})').error is None
    assert shell.names["n"] == 22


def test_a_change_in_python_is_seen_and_evidence_stays_where_nothing_has_changed(shell: Shell) -> None:
    shell.run("%kw open nx:les_miserables")
    shell.run("%%gasl\nFIND nodes WHERE degree > 20 AS hubs\nDECLARE centre AS LIST\nUPDATE centre WITH hubs")
    assert "Valjean" in shell.run("%kw evidence").text
    shell.run("hubs.append({'id': 'Javert'})")
    assert "3" in shell.run("%kw len(hubs)").text
    shell.run("%kw n = 1")
    shell.run("n = True")
    assert shell.run("%kw n").text == "true"


def test_a_cell_changes_nothing_that_python_holds_and_the_other_way_round(shell: Shell) -> None:
    shell.names["rows"] = [{"a": 1}]
    held = shell.names["rows"]
    shell.run("%kw copy = rows")
    shell.names["copy"][0]["a"] = 2
    assert held == [{"a": 1}]
    assert shell.run("%kw rows[0]['a']").text == "1"


def test_undo_takes_python_variables_back_too(shell: Shell) -> None:
    shell.run("%kw n = 1")
    shell.run("%kw n = 2")
    shell.run("%kw m = 3")
    shell.run("%kw undo 2")
    assert shell.names["n"] == 1 and "m" not in shell.names


def test_names_of_python_are_not_replaced(shell: Shell) -> None:
    shell.run("def mine(): return 7")
    told = shell.run('%%kw\nmine = 1\nlist = 2\n(for)=EXPR("3")')
    assert told.error is None
    assert shell.run("mine()").value == 7 and "list" not in shell.names
    assert "mine is something else in the notebook, which is kept; NAME = %kw value mine gives its value" in told.text
    assert "list is a name of Python's own" in told.text and "for is no name of Python" in told.text
    shell.run("x = %kw value for")
    assert shell.names["x"] == 3


def test_what_json_can_not_say_is_told_of_where_it_was_wanted(shell: Shell) -> None:
    shell.names["odd"] = object()
    told = shell.run("%kw odd + 1")
    assert "the notebook's odd is of the type object: texts, numbers, lists and objects are shared" in told.text
    assert told.error is not None


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "shared"),
    [
        ((1, 2), [1, 2]), (numpy.arange(3), [0, 1, 2]), (numpy.float64(0.5), 0.5), (True, True), (None, None), (Colour.RED, "red"),
    ],
)  # fmt: skip
def test_values_become_those_of_json(value: object, shared: object) -> None:
    made = as_json(value)
    assert made == shared and type(made) is type(shared)


def test_a_list_in_itself_and_others_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    for value in (endless, float("nan"), {1: 2}, {1, 2}, b"x", numpy.array([1j])):
        with pytest.raises(NotShared):
            as_json(value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("FIND nodes WHERE degree > ${least} AS hubs", ["least"]),
        ("RANK hubs BY id AS hubs", ["hubs"]),
        ('(a)=LLM("{(b)} {(c)}")\n(b)=LLM("x")', ["c"]),
        ("m = [n for n in hubs if n > least]", ["hubs", "least"]),
        (".vars hubs", []),
    ],
)
def test_only_what_is_taken_from_outside_is_shared(text: str, names: list[str]) -> None:
    found = [name for piece in read(text, "lwt" if text.startswith("(") else None, "x") for name in mentioned(piece)]
    assert sorted(found) == names
