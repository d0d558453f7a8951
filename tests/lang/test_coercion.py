"""The table of what is taken for a type and what is refused: DATA, section 4."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.coercion import Fit, Unfit, as_type, as_value
from knotwork.lang.literals import WrittenFloat
from support.cpu_time import within

MOODS = ("glad", "sad")
SIGNS = ("positive", "negative", "not positive")
GRADES = ("good", "good enough", "very good")

TAKEN: list[tuple[str, Any, Any]] = [
    ("any text", "text", "any text"),
    ("5", "int", 5),
    (" -12. ", "int", -12),
    ('"7"', "int", 7),
    ("3.0", "int", 3),
    ("**5**", "int", 5),
    ("__5__", "int", 5),
    ("**5.**", "int", 5),
    ("`5`", "int", 5),
    ("```\n5\n```", "int", 5),
    (r"\boxed{5}", "int", 5),
    (r"So the answer is $\boxed{5}$.", "int", 5),
    (r"\boxed{5}, that is \boxed{5}", "int", 5),
    ("<think>6? 7?</think>\n\n5", "int", 5),
    ("six, no, seven</think>5", "int", 5),
    ("<THINKING>x</THINKING> **5**", "int", 5),
    ("2.5", "float", 2.5),
    ("4", "float", 4.0),
    ('"4.5"', "float", 4.5),
    ("-1e-3", "float", -0.001),
    ("TRUE", "bool", True),
    ("No.", "bool", False),
    ("**Yes**", "bool", True),
    ("[1]", "list", [1]),
    ("[a, b]", "list", ["a", "b"]),
    ('"one"', "list", ["one"]),
    ("<think>[1]</think>[2]", "list", [2]),
    ("{'a': 1}", "json", {"a": 1}),
    ('Sure! Here is the JSON: {"a": 1} Anything else?', "json", {"a": 1}),
    ('<think>{"a": 2}</think>{"a": 1}', "json", {"a": 1}),
    ("Glad", MOODS, "glad"),
    (' "SAD." ', MOODS, "sad"),
    ("**sad**", MOODS, "sad"),
    ("_sad_", MOODS, "sad"),
    ("**“Sad.”**", MOODS, "sad"),
    ("sad, because the food was not hot", MOODS, "sad"),
    ("sad because the food was not hot", MOODS, "sad"),
    ("sad, because …", MOODS, "sad"),
    ("sad, because ...", MOODS, "sad"),
    ("Sad. The reviewer waited for an hour.", MOODS, "sad"),
    ("**sad**\n\nThe reviewer waited for an hour.", MOODS, "sad"),
    ("**Sad**: the reviewer waited", MOODS, "sad"),
    ("**Sad:** the reviewer waited", MOODS, "sad"),
    ("sad - the reviewer waited", MOODS, "sad"),
    ("sad — the reviewer waited", MOODS, "sad"),
    ("sad (the reviewer waited)", MOODS, "sad"),
    ('"sad" because the reviewer waited', MOODS, "sad"),
    (r"\boxed{\text{Sad}}", MOODS, "sad"),
    (r"It is glad at first, then \boxed{sad}", MOODS, "sad"),
    ("<think>glad? not sad?</think>sad", MOODS, "sad"),
    ("A", ("a", "A"), "A"),
    ("A, because it is the first of them", ("a", "A"), "A"),
    ("`yes`", ("yes", "no"), "yes"),
    ("not positive", SIGNS, "not positive"),
    ("not positive, because it was cold", SIGNS, "not positive"),
    ("Not  Positive.", SIGNS, "not positive"),
    ("good enough", GRADES, "good enough"),
    ("Good enough: it was warm", GRADES, "good enough"),
    ("good, because it was warm", GRADES, "good"),
    ("etc.", ("etc.", "other"), "etc."),
    ("cafe\u0301", ("caf\u00e9", "bar"), "caf\u00e9"),
]

REFUSED: list[tuple[str, Any, str]] = [
    ("about 5", "int", 'it is not an integer: "about 5"'),
    ("5.5", "int", "it is not an integer"),
    ("1,200", "int", "it is not an integer"),
    ("3/5", "int", "it is not an integer"),
    ("5 stars", "int", "it is not an integer"),
    ("three", "int", "it is not an integer"),
    ("true", "int", "it is not an integer"),
    ("1e3", "int", "it is not an integer"),
    ("5..", "int", "it is not an integer"),
    ("\uff13", "int", "it is not an integer"),
    ("\u0663", "int", "it is not an integer"),
    ("~~5~~", "int", "it is not an integer"),
    ("null", "int", "it is not an integer"),
    ("9" * 400, "int", "it is not an integer"),
    (r"\boxed{5} or \boxed{6}", "int", "two "),
    (r"it is not \boxed{5}", "int", "retracted"),
    ("<think>5", "int", "thinking"),
    ("</think>5<think>", "int", "thinking"),
    ("85%", "float", "it is not a number"),
    ("4,5", "float", "it is not a number"),
    ("$5", "float", "it is not a number"),
    ("1e999", "float", "it is not a number"),
    ("nan", "float", "it is not a number"),
    ("maybe", "bool", 'it is not true or false: "maybe"'),
    ("1", "bool", "it is not true or false"),
    ("{}", "list", "it is an object, not a list"),
    ('"a, b"', "list", "it is a string, not a list"),
    ("prose", "json", "it is not JSON"),
    ('{"a": NaN}', "json", "NaN and Infinity"),
    ('so: {"a": [1e999]}', "json", "NaN and Infinity"),
    (r'{"a": "\udc00"}', "json", "lone surrogate"),
    (r'{"a": "\maps\new"}', "json", "not JSON"),
    (r'{"a": "\alpha + \beta"}', "json", "not JSON"),
    ('{"a": 1} or {"a": 2}', "json", "two "),
    ('```\n{"a": 1}\n```\nor\n```\n{"a": 2}\n```', "json", "two "),
    ("```\n[1]\n```\nor\n```\n[2]\n```", "list", "two "),
    ('{"a": [1, 2', "json", "cut off"),
    ("I am glad", MOODS, 'it is not one of "glad", "sad": "I am glad"'),
    ("Answer: sad", MOODS, "it is not one of"),
    ("not sad", MOODS, "it is not one of"),
    ("sad or glad", MOODS, "it is not one of"),
    ("sad or angry", MOODS, "it is not one of"),
    ("sad/glad", MOODS, "it is not one of"),
    ("sad, glad", MOODS, "two "),
    ("sad, because not glad", MOODS, "two "),
    ("Sad.\n\nGlad.", MOODS, "two "),
    ("sad, angry", MOODS, "may retract it"),
    ("sad? No.", MOODS, "it is not one of"),
    ("sad, is it? No", MOODS, "may retract it"),
    ("sad is not the word", MOODS, "it is not one of"),
    ("sad, but I doubt it", MOODS, "may retract it"),
    ("sad: no", MOODS, "may retract it"),
    ("sad: 10 %", MOODS, "may retract it"),
    ("sad. Wait, that is wrong", MOODS, "may retract it"),
    ("Sad. On second thought it is more like angry", MOODS, "may retract it"),
    ("sad, though he would not be called sad by all", MOODS, "may retract it"),
    ("sad, the reviewer is not really sad", MOODS, "may retract it"),
    ("sad (or angry)", MOODS, "may retract it"),
    ("sad, I guess not", MOODS, "may retract it"),
    ("sad, said no one", MOODS, "may retract it"),
    ("sad: 0.9, the rest: 0.1", MOODS, "may retract it"),
    ("sad<|im_end|>", MOODS, "it is not one of"),
    ("sad-ish, because of the rain", MOODS, "it is not one of"),
    ("sadness", MOODS, "it is not one of"),
    ("sa", MOODS, "it is not one of"),
    ("unhappy", MOODS, "it is not one of"),
    ("~~sad~~", MOODS, "it is not one of"),
    ("sad..", MOODS, "it is not one of"),
    ("No doubt about it", ("yes", "no"), "it is not one of"),
    ("positive", ("not positive", "neutral"), "it is not one of"),
    ("not positive", ("positive", "negative"), "it is not one of"),
    ("good. But not good enough.", GRADES, "two "),
    ("Yes", ("yes", "YES"), "it is more than one of"),
    ("1. The food was cold", ("1", "2", "3"), "it is not one of"),
    ("4/5", ("4", "5"), "it is not one of"),
    ("\u4e0d\u597d", ("\u597d", "\u574f"), "it is not one of"),
    ("\u597d\uff0c\u5176\u5b9e\u574f\u900f\u4e86", ("\u597d", "\u574f"), "two "),
    ("", MOODS, "it is not one of"),
]


@pytest.mark.parametrize(("text", "kind", "value"), TAKEN)
def test_an_answer_fits_its_type(text: str, kind: Any, value: Any) -> None:
    fit = as_type(text, kind)
    assert isinstance(fit, Fit)
    assert fit.value == value
    assert type(fit.value) is type(value)


@pytest.mark.parametrize(("text", "kind", "reason"), REFUSED)
def test_what_does_not_fit_says_why(text: str, kind: Any, reason: str) -> None:
    fit = as_type(text, kind)
    assert isinstance(fit, Unfit)
    assert reason in fit.reason


@pytest.mark.parametrize(("text", "kind", "value"), TAKEN)
def test_what_is_read_otherwise_than_it_is_written_says_so(text: str, kind: Any, value: Any) -> None:
    fit = as_type(text, kind)
    assert isinstance(fit, Fit)
    written = (
        value
        if isinstance(value, str)
        else {True: "true", False: "false"}.get(value, str(value))
        if kind == "bool"
        else str(value)
    )
    if (text.strip() == written and kind != "json") or text in ("4", "-1e-3", "[1]"):
        assert fit.coerced == ""
    else:
        assert fit.coerced


@pytest.mark.parametrize(("text", "kind", "value"), TAKEN)
def test_strict_types_take_the_type_alone(text: str, kind: Any, value: Any) -> None:
    found = as_type(text, kind, strict=True)
    exact = text in (
        "any text",
        "5",
        "2.5",
        "4",
        "-1e-3",
        "[1]",
        "A",
        "not positive",
        "good enough",
        "etc.",
        "cafe\u0301",
    )
    assert isinstance(found, Fit if exact else Unfit)


VALUES_TAKEN: list[tuple[Any, Any, Any]] = [
    (WrittenFloat("1234567890123456789.0"), "int", 1234567890123456789),
    (3, "int", 3), (3.0, "int", 3), ("3", "int", 3), (" 3 ", "int", 3), ("3.0", "int", 3), ("-3", "int", -3),
    (4.5, "float", 4.5), ("4.5", "float", 4.5), (4, "float", 4), ("4", "float", 4.0),
    (True, "bool", True), ("true", "bool", True), ("False", "bool", False), ("YES", "bool", True), ("no", "bool", False),
    (["a", 1, True], "list", ["a", 1, True]), ("a", "list", ["a"]), ("cold soup", "list", ["cold soup"]),
    ("Nordic walking", "list", ["Nordic walking"]),
    ("a", "text", "a"), (3, "text", "3"), (2.50, "text", "2.5"), ("null", "text", "null"), ("", "text", ""),
    ("sad", MOODS, "sad"), (" Sad.", MOODS, "sad"), ("**sad**", MOODS, "sad"), ("sad, because it rained", MOODS, "sad"),
    (3, ("1", "2", "3"), "3"), (True, ("true", "false"), "true"),
    (None, "int", None), ("null", "int", None), ("N/A", "float", None), ("", "bool", None), (" ", "list", None), (None, "text", None),
]  # fmt: skip

VALUES_REFUSED: list[tuple[Any, Any]] = [
    (4.5, "int"), ("4.5", "int"), ("three", "int"), ("3/5", "int"), ("1,200", "int"), (True, "int"), ([3], "int"), (2**63, "int"),
    (1e30, "int"), ("No pets", "list"), ("without pets", "list"), ("0", "list"), ("kein Haustier", "list"),
    ("4,5", "float"), ("85%", "float"), (math.nan, "float"), (math.inf, "float"), ("NaN", "float"), (False, "float"),
    (0, "bool"), (1, "bool"), ("maybe", "bool"), ("1", "bool"), ("y", "bool"),
    ("a, b", "list"), ("a; b", "list"), ("a\nb", "list"), ('["a"]', "list"), ([["a"]], "list"), ([{"a": 1}], "list"), ([None], "list"),
    (3, "list"), ({"a": 1}, "list"),
    (["a"], "text"), ({"a": 1}, "text"), (True, "text"), ("half \ud800", "text"),
    ("sa", MOODS), ("sad, glad", MOODS), ("unhappy", MOODS), (None, MOODS), ("null", MOODS), ("", MOODS), (["sad"], MOODS), (1, MOODS),
    ("positive", ("not positive", "neutral")), (1, ("true", "false")), (True, ("yes", "no")),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind", "wanted"), VALUES_TAKEN)
def test_a_value_is_taken(value: Any, kind: Any, wanted: Any) -> None:
    fit = as_value(value, kind, nullable=True)
    assert isinstance(fit, Fit)
    assert fit.value == wanted
    assert type(fit.value) is type(wanted)
    assert bool(fit.coerced) == (not (fit.value == value and type(fit.value) is type(value)))


@pytest.mark.parametrize(("value", "kind"), VALUES_REFUSED)
def test_a_value_is_refused(value: Any, kind: Any) -> None:
    fit = as_value(value, kind, nullable=True)
    assert isinstance(fit, Unfit)
    assert fit.reason


@pytest.mark.parametrize(("value", "kind", "wanted"), VALUES_TAKEN)
def test_strict_types_take_values_of_the_type_alone(value: Any, kind: Any, wanted: Any) -> None:
    same = value == wanted and type(value) is type(wanted)
    assert isinstance(as_value(value, kind, strict=True, nullable=True), Fit if same else Unfit)


def test_null_is_taken_only_where_it_may_be() -> None:
    for kind in ("int", "float", "bool", "list"):
        for value in (None, "null", "N/A", ""):
            assert isinstance(as_value(value, kind), Unfit)


def test_floats_are_finite() -> None:
    fit = as_type("1e308", "float")
    assert isinstance(fit, Fit)
    assert math.isfinite(fit.value)


@pytest.mark.slow
@given(st.text(alphabet="[](){}'\"\\,:` \n1.eE+-_ab#NTrue*sad<>/think", max_size=60))
@settings(max_examples=500, deadline=None)
def test_no_text_makes_it_raise(text: str) -> None:
    for kind in ("json", "list", "int", "float", "bool", ("a", "b", "sad")):
        as_type(text, kind)
        as_value(text, kind)


@pytest.mark.slow
@given(
    st.sampled_from(("glad", "sad", "very sad")),
    st.text("glad sve.,;:not*()\n", max_size=40),
    st.text("glad sve.,;:not*()\n", max_size=40),
)
@settings(max_examples=500, deadline=None)
def test_a_label_is_never_taken_where_another_stands(label: str, before: str, behind: str) -> None:
    found = as_type(f"{before} {label} {behind}", ("glad", "sad", "very sad"))
    if isinstance(found, Fit):
        rest = (
            f"{before} {label} {behind}".replace("very sad", "")
            if found.value == "very sad"
            else f"{before} {label} {behind}"
        )
        others = {"glad", "sad", "very sad"} - {found.value}
        words = [word.strip(".,;:*()") for word in rest.split()]
        assert not any(other in words for other in others)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["**" * 90_000, "sad, " * 40_000, r"\boxed{" * 25_000, "sad. " + "not " * 45_000, " " * 190_000 + "x",
     "<think>" * 25_000, '"' * 190_000,
     "sad because " + "\\boxed{" + "{a}" * 60_000, "`" * 190_000, "sad - " + "- " * 90_000],
)  # fmt: skip
def test_reading_is_linear(text: str) -> None:
    within(2, lambda: [as_type(text, kind) for kind in ("int", "float", "bool", "json", "list", MOODS)])
