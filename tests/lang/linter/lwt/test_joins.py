"""What is known about joins and functions before a run: faults are found, and what is not known is accepted."""

from typing import Any

import pytest
from knotwork import lwt
from knotwork.lang.linter.lwt import check

INPUT = {"rows": [{"id": 1, "n": 2}, {"id": None}], "moods": ["glad", "sad"], "text": "[1, 2]", "one": {"id": 1}}


def errors(call: str, above: str = "", input: Any = None) -> list[str]:
    found = lwt.check(f"{above}(final)={call}", input=INPUT if input is None else input)
    return [f"{each.code} {each.message}" for each in found if each.severity == "error"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('JOIN(a={(input)}["rows"], b={(input)}["moods"])', ""),
        ('JOIN(a={(input)}["rows"], b={(input)}["text"])', ""),  # a text that holds a list
        ('JOIN(a={(input)}["rows"][0:1], b=[1])', ""),
        ('JOIN(a={(input)}["rows"], b={(input)}["rows"], on=["id", "n"])', ""),
        ('JOIN(a={(input)}["rows"], b=[], on="id", how=left)', ""),
        ('JOIN(a={(input)}["rows"][0:1], b={(input)}["moods"])', "LWT052 without `on` the lists must have equal lengths, but `a` has 1"),
        ('JOIN(a={(input)}["rows"], b={(input)}["one"])', "LWT052 JOIN needs a list as `b`, not an object"),
        ('JOIN(a={(input)}["rows"], b={(input)}["rows"], on="nn")', 'LWT052 no row of `a` has the column "nn"'),
        ('JOIN(a={(input)}["rows"], b={(input)}["moods"], on="id")', "LWT052 the elements of `b` are no objects"),
        ('JOIN(a={(input)}["rows"], b={(input)}["rowz"])', "LWT023"),
    ],
)  # fmt: skip
def test_the_given_input_is_known(call: str, told: str) -> None:
    found = errors(call)
    assert bool(found) == bool(told), found
    assert not told or found[0].startswith(told) or found[-1].startswith(told)


@pytest.mark.parametrize(
    ("above", "on", "told"),
    [
        ('(x)=LLM("x")\n', "", ""),
        ('(x)=LLM("x", type=list)\n', "id", ""),
        ('(x)=LLM("x", type=int)\n', "", "not a number"),
        ('(x)=LLM("x", type="a" | "b")\n', "", "not the label of a choice"),
        ('(x)=CONST([{"id": 1}, {"k": 2}])\n', "k", "no row of `b`"),
        ('(x)=CONST([{"id": 1}, {"k": 2}], when="1 > 2")\n', "zz", "no row of `b`"),
        ('(x)=EACH({(input)}["rows"], LLM("{(item)}", type=float))\n', "id", "the elements of `a` are numbers"),
        ('(x)=EACH({(input)}["rows"], LLM("{(item)}", type=json))\n', "id", ""),
        ('(x)=JOIN(r={(input)}["rows"], s={(input)}["rows"])\n', "r", "no row of `b`"),
        ('(x)=JOIN(r={(input)}["rows"], s={(input)}["rows"])\n', "id", 'no row of `a` has the column "id"'),
        ('(x)=CALL("f")\n', "id", ""),
    ],
)
def test_the_steps_above_are_known_as_far_as_they_say(above: str, on: str, told: str) -> None:
    by = f', on="{on}"' if on else ""
    call = f'JOIN(a={{(x)}}, b={{(input)}}["rows"]{by})'
    found = errors(call, above)
    assert bool(found) == bool(told), found
    assert told in "".join(found)


def test_a_column_is_corrected() -> None:
    script = '(final)=JOIN(a={(input)}, b={(input)}, on="idd")'
    found = [each for each in lwt.check(script, input=[{"id": 1}]) if each.code == "LWT052"]
    assert [edit.text for each in found for edit in each.edits] == ['"id"']


def test_a_function_is_one_of_those_that_the_host_offers() -> None:
    script = lwt.parse('(a)=CALL("normalise", text="x")\n(final)=EACH({(a)}, CALL("up", text={(item)}))')
    assert [each.code for each in check(script) if each.severity == "error"] == []
    found = [each for each in check(script, functions=("normalize", "up")) if each.severity == "error"]
    assert [(each.code, each.message, each.edits[0].text) for each in found] == [
        ("LWT048", 'unknown function "normalise"', '"normalize"')
    ]
    assert len([each for each in check(script, functions=()) if each.code == "LWT048"]) == 2
