"""What the functions of values say of an argument that they do not take."""

import pytest
from knotwork.lang.evaluate.conditions.values import Mismatch, function_of
from knotwork.lang.trees.conditions import Call, Constant


@pytest.mark.parametrize(
    ("name", "arguments", "message", "wrapped"),
    [
        ("lower", [3], "lower requires a string, not a number: 3", "str"),
        ("split", [3, ","], "split requires a string, not a number: 3", "str"),
        ("year", [3], "year takes a string, not a number: 3", "str"),
        ("abs", ["x"], 'abs takes a number, not a string: "x"', "number"),
        ("substring", ["abc", "x", 1], 'substring takes a whole number as from, not a string: "x"', "number"),
    ],
)
def test_a_message_names_the_function_and_the_conversion(name, arguments, message, wrapped):
    with pytest.raises(Mismatch) as told:
        function_of(Call(name, tuple(map(Constant, arguments))))(*arguments)
    assert told.value.message == message
    assert told.value.hint.startswith(f"write {wrapped}(...)")
