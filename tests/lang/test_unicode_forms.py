"""Canonically equivalent texts: the form in which texts are compared, and the conditions and expressions that compare them."""

from unicodedata import normalize

import pytest
from knotwork.lang.coercion import Fit, as_type, as_value
from knotwork.lang.evaluate.conditions import compiled, interpreter
from knotwork.lang.evaluate.conditions.comparison import compare, sort_key
from knotwork.lang.evaluate.expr import evaluate
from knotwork.lang.evaluate.expr.generator import compiled as compiled_expr
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.parse.gasl import parse_condition
from knotwork.lang.unicode_forms import canonical, caseless, common_start, has_equivalents, mark_in

COMPOSED, DECOMPOSED = "Am\u00e9lie K\u00f6nig", "Ame\u0301lie Ko\u0308nig"
KELVIN = "\u212a"


def test_a_combining_character_is_named():
    assert (mark_in("cafe\u0301"), mark_in("caf\u00e9"), mark_in("\u0928\u093e\u092e")) == ("U+0301", "", "U+093E")


def test_the_canonical_form_is_nfc_and_no_other_difference_disappears() -> None:
    assert canonical(DECOMPOSED) == COMPOSED == canonical(COMPOSED)
    assert canonical(KELVIN) == "K"
    assert [canonical(text) for text in ("\ufb01", "\uff21", "A", "e")] == ["\ufb01", "\uff21", "A", "e"]
    assert caseless("CAFE\u0301") == caseless("caf\u00e9") == "caf\u00e9"
    assert has_equivalents([COMPOSED, DECOMPOSED]) and not has_equivalents([COMPOSED, "Amelie Konig"])


def test_a_long_run_of_marks_stays_and_the_text_around_it_is_composed() -> None:
    marks = "\u0301\u0327" * 50_000
    assert canonical(f"e\u0301 {marks} e\u0301") == f"\u00e9 {marks} \u00e9"


def test_the_common_start_begins_every_equivalent_text() -> None:
    assert [common_start(text) for text in (COMPOSED, DECOMPOSED, "Bake", "Keks", "")] == ["Am", "Am", "Bake", "", ""]
    assert all(normalize(form, COMPOSED).startswith("Am") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('name = "{}"', True), ('name != "{}"', False), ('name IN ("x", "{}")', True), ('name NOT IN ("{}")', False),
        ('name CONTAINS "\u00e9lie K\u00f6"', True), ('name CONTAINS "e\u0301lie"', True), ('name CONTAINS "Amelie"', False),
        ('name STARTS_WITH "Am\u00e9"', True), ('name STARTS_WITH "Ame"', False), ('name ENDS_WITH "o\u0308nig"', True),
        ('name MATCHES "^Am\u00e9.ie"', True), ('name MATCHES "(?i)^am.lie"', True), ('name MATCHES "^Ame"', False),
        ('name <= "{}"', True), ('name < "{}"', False), ('name >= "Amf"', True), ('names CONTAINS "{}"', True),
        ('name = other', True), ('name < other', False), ('name = "Amelie"', False),
    ],
)  # fmt: skip
def test_a_condition_has_one_result_for_all_forms(text: str, answer: bool) -> None:
    for written in (COMPOSED, DECOMPOSED):
        condition, _ = parse_condition(text.format(written))
        assert condition is not None
        for name, other in ((COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)):
            item = {"name": name, "other": other, "names": [name]}
            assert interpreter.matches(condition, item) is answer
            assert compiled(condition)(item) is answer


def test_texts_are_ordered_in_their_composed_form() -> None:
    texts = ["z", "e\u0301", "f", "\u00e9"]
    assert sorted(texts, key=sort_key) == ["f", "z", "e\u0301", "\u00e9"]
    assert compare({"e\u0301": 1}, "=", {"\u00e9": 1}) is True


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a == b", True), ("a != b", False), ("a == 'caf\u00e9'", True), ("a != 'cafe\u0301'", False), ("a in [b]", True),
        ("a in ['x', 'cafe\u0301']", True), ("a not in ['caf\u00e9']", False), ("'\u00e9' in a", True), ("'e' in a", False),
        ("[b, 'x'].count(a)", 1), ("len(set([a, b]))", 1), ("a <= b", True), ("a < b", False), ("a > 'cafz'", True),
        ("a.startswith('caf\u00e9')", True), ("a.endswith('e\u0301')", True), ("a.count('\u00e9')", 1), ("[a] == [b]", True),
        ("{'caf\u00e9': 3}[a]", 3), ("{'caf\u00e9': 3}.get(a)", 3), ("a in {'caf\u00e9': 3}", True), ("k == 'K'", True),
        ("mode(['x', a, b]) == a", True), ("max([a, b]) == a", True),
    ],
)  # fmt: skip
def test_an_expression_has_one_result_for_all_forms(text: str, value: object) -> None:
    expr = parse_expr(text).expr
    assert expr is not None
    for one, other in (("caf\u00e9", "cafe\u0301"), ("cafe\u0301", "caf\u00e9")):
        names = {"a": one, "b": other, "k": KELVIN}
        assert evaluate(expr, names) == value
        assert compiled_expr(expr)(names) == value


def test_a_result_has_the_text_as_it_was_written() -> None:
    expr = parse_expr("sorted(set([a, b, 'x']))").expr
    assert expr is not None and evaluate(expr, {"a": "e\u0301", "b": "\u00e9"}) == ["x", "e\u0301"]


def test_a_label_in_another_form_is_the_label() -> None:
    labels = ("caf\u00e9", "bar")
    assert as_type("cafe\u0301", labels) == Fit("caf\u00e9", "coerced", "cafe\u0301")
    assert as_type("cafe\u0301", labels, strict=True) == as_value("cafe\u0301", labels, strict=True) == Fit("caf\u00e9")
