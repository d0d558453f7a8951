"""Names both ways: Python's variables in cells, and what cells bind in Python."""

import enum
from collections.abc import Iterator

import numpy
import pytest
from knotwork.runtime.api.data_flow import names_read
from knotwork.runtime.interfaces.notebook.cells import cell_pieces
from knotwork.runtime.interfaces.notebook.variables import NotShared, as_json
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
    assert (
        "mine has a different value in the notebook, which is not replaced; use NAME = %kw value mine to get its value"
        in told.text
    )
    assert "list is a name that Python uses itself" in told.text and "for is not a valid Python name" in told.text
    shell.run("x = %kw value for")
    assert shell.names["x"] == 3


def test_a_cell_that_wants_what_can_not_be_shared_says_so_at_once(shell: Shell) -> None:
    shell.run("%kw open nx:les_miserables")
    shell.names.update(x=5, least=14)
    assert shell.run("%kw x").text == "5"
    shell.run("%%gasl\nFIND nodes WHERE degree > ${least} AS hubs")
    said = {
        "x = {1, 2}": "the notebook's x can't be shared: it is a value of type set; x = list(x) converts it to a list",
        "x = float('nan')": "the notebook's x can't be shared: it is a number that JSON does not support (nan); use None for",
        "def x(): pass": "the notebook's x can't be shared: it is a value of type function; only strings, numbers, lists and",
    }
    for python, wanted in said.items():
        assert shell.run(python).error is None
        told = shell.run("%kw x + 1")
        assert wanted in str(told.error) and not told.shown, python
    shell.run("from decimal import Decimal; least = Decimal('30')")
    for magic in ("%%gasl", "%%gasl --check"):
        told = shell.run(f"{magic}\nFIND nodes WHERE degree > ${{least}} AS hubs")
        assert "the notebook's least can't be shared: it is a value of type Decimal" in str(told.error)


def test_a_variable_that_is_deleted_is_gone(shell: Shell) -> None:
    shell.names["x"] = 5
    shell.run("%kw x")
    shell.run("%kw y = x + 1")
    shell.run("del x, y")
    assert "unknown value `x`" in str(shell.run("%kw x").error)
    assert "no values yet" in shell.run("%kw vars").text


def test_undo_gives_python_its_own_again(shell: Shell) -> None:
    shell.names["w"] = 5
    shell.run("%kw w = 7")
    assert shell.names["w"] == 7
    shell.run("%kw undo")
    assert shell.names["w"] == 5
    shell.run("%kw m = w")
    shell.run("%kw undo")
    assert shell.names["w"] == 5 and "m" not in shell.names


def test_names_of_the_shell_are_not_replaced_and_not_offered(shell: Shell) -> None:
    held = shell.names["In"]
    told = shell.run('%%lwt\n(In)=EXPR("3")')
    assert "In is a name that the shell uses itself; use NAME = %kw value In to get its value" in told.text
    shell.run("%kw undo")
    assert shell.names["In"] is held
    assert "get_ipython" not in str(shell.run("%kw input nothing").error)


def test_objects_of_anybody_are_named_when_they_fail(shell: Shell) -> None:
    class Broken(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise RuntimeError("boom\x1b")

    shell.names["mine"] = Broken([1])
    told = shell.run("%kw mine")
    assert "the notebook's mine can't be shared: it is an object that can't be read (RuntimeError: boom" in str(
        told.error
    )
    assert "\x1b" not in told.printed and "internal" not in told.printed


def test_an_interrupt_while_a_value_is_copied_is_a_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise KeyboardInterrupt

    shell.names["mine"], shell.names["n"] = Slow([1]), 1
    told = shell.run("%kw mine")
    assert told.printed.strip() == "cancelled; finished work is kept"
    assert shell.run("%kw n + 1").text == "2"


class Colour(enum.StrEnum):
    RED = "red"


class Older(str, enum.Enum):  # noqa: UP042 - str() of one is "Older.RED"
    RED = "red"


@pytest.mark.parametrize(
    ("value", "shared"),
    [
        ((1, 2), [1, 2]), (numpy.arange(3), [0, 1, 2]), (numpy.float64(0.5), 0.5), (True, True), (None, None), (Colour.RED, "red"),
        (Older.RED, "red"), ({Older.RED: 1}, {"red": 1}),
    ],
)  # fmt: skip
def test_values_become_those_of_json(value: object, shared: object) -> None:
    made = as_json(value)
    assert made == shared and type(made) is type(shared)


def test_a_list_in_itself_and_others_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NotShared, match="a list that contains itself"):
        as_json(endless)
    shared = [1]
    assert as_json([shared, shared]) == [[1], [1]]
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
    found = [
        name for piece in cell_pieces(text, "lwt" if text.startswith("(") else None, "x") for name in names_read(piece)
    ]
    assert sorted(found) == names


@pytest.mark.slow
def test_a_variable_of_the_notebook_is_the_value_of_a_parameter(shell: Shell) -> None:
    shell.run("%kw open nx:les_miserables")
    cell = "%%gasl\nPARAM least INT = 5\nFIND nodes WHERE degree > ${least} AS hubs"
    shell.run(cell)
    assert shell.names["least"] == 5 and len(shell.names["hubs"]) > 2
    shell.run(cell.replace("= 5", "= 20"))
    assert shell.names["least"] == 20 and len(shell.names["hubs"]) == 2
    shell.run("least = 30")
    shell.run(cell)
    assert shell.names["least"] == 30 and len(shell.names["hubs"]) == 1
