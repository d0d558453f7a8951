"""Names without their backticks: the linter finds them in the graph, in rows or in the program, and its edit adds the backticks."""

import pytest
from knotwork.lang.catalogue.schema import Attribute, Schema
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.documents.plan import read_plan
from knotwork.lang.linter.gasl import check, check_plan
from knotwork.lang.parse.gasl import parse_gasl

SIGNED = (
    "Home Town",
    "schema:age",
    "shoe-size",
    "Height (cm)",
    "3rd prize",
    "m/s",
    "Wärme",
    "chef's rate",
    "100%",
    "a. b",
    "[x]",
)
SCHEMA = Schema(
    False, False, 4, 4,
    {name: Attribute(name, 4, {"integer": 4}, ((1, 4),), 1) for name in (*SIGNED, "order", "len", "not", "any", "true")},
    {name: Attribute(name, 4, {"integer": 4}, ((1, 4),), 1) for name in ("how often", "order")},
)  # fmt: skip


def found(text, **known):
    return check(parse_gasl(text), **{"schema": SCHEMA, **known})


FORMS = (
    "FIND nodes WHERE {} = 1 AS x",
    "FIND nodes WHERE order = 1 AND NOT ({} > 0 OR {} IN (1, 2)) AS x",
    "FIND nodes WHERE {} IS NULL ORDER BY {} DESC LIMIT 2 PER {} AS x",
    "FIND nodes AS x\nRANK x BY {} DESC, id AS y",
    "FIND nodes AS x\nAGGREGATE x BY {} COMPUTE max({}) AS most AS y",
    "FIND nodes AS x\nSELECT x FIELDS id, {} WHERE {} > 0 AS y",
    "FIND nodes AS x\nCOUNT x BY {} AS y",
    "FIND nodes AS x\nFIND nodes AS y\nJOIN x WITH y ON {} AS z",
    "FIND edges WHERE source.{} > 0 AS x",
    'FIND paths FROM ({} = 1) TO (id = "b") AS x',
    "FIND patterns (p)-[r]->(q) WHERE p.{} > 0 AS x",
)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        *((form, "schema:age") for form in FORMS),
        *(("FIND nodes WHERE NOT {} < 3 AS x", name) for name in SIGNED),
        *(("FIND nodes WHERE {} < 3 AS x", name) for name in ("len", "not", "any", "true")),
    ],
)
def test_the_edit_puts_the_name_of_an_attribute_in_backticks(form, name):
    text, right = form.replace("{}", name), form.replace("{}", f"`{name}`")
    errors = [each for each in found(text) if each.severity == "error"]
    assert {each.code for each in errors} == {"GASL033"}
    assert apply_edits(text, [edit for each in errors for edit in each.edits]) == right
    assert not [each for each in found(right) if each.severity == "error"]


@pytest.mark.parametrize(("text", "hint"), [
    ("FIND nodes WHERE home  town = 1 AS x", "write `Home Town`"),
    ("FIND edges WHERE how often > 1 AS x", "write `how often`"),
    ("FIND nodes AS x\nAGGREGATE x COMPUTE count() AS `the count` AS y\nRANK y BY the count DESC AS z", "write `the count`"),
])  # fmt: skip
def test_names_in_other_case_of_edges_and_of_rows(text, hint):
    assert [(each.code, each.hints) for each in found(text)] == [("GASL033", (hint,))]


def test_other_faults_of_the_line_stay_at_their_places():
    text = "FIND nodes WHERE Home Town = 1 AND orderr = 1 AS x"
    assert [(each.code, text[each.span.start : each.span.end]) for each in found(text)] == [
        ("GASL033", "Home Town"), ("GASL070", "orderr"),
    ]  # fmt: skip
    assert apply_edits(text, [edit for each in found(text) for edit in each.edits]) == (
        "FIND nodes WHERE `Home Town` = 1 AND order = 1 AS x"
    )


@pytest.mark.parametrize("text", [
    'FIND nodes WHERE id != "Home Town" AND agee = 1 AS x',
    "FIND nodes WHERE `Home Town` = 1 AND agee = 1 AS x  # Home Town",
])  # fmt: skip
def test_strings_comments_and_names_in_backticks_stay(text):
    assert [each.code for each in found(text) if each.severity == "error"] == ["GASL070"]


def test_a_plan_in_json():
    text = '{"plan_id": "p", "why": "w", "commands": ["FIND nodes WHERE schema:age = 1 AS x"]}'
    (error,) = check_plan(read_plan(text), schema=SCHEMA)
    assert apply_edits(text, error.edits) == text.replace("schema:age", "`schema:age`")


@pytest.mark.parametrize(("text", "hint", "fixed"), [
    ("FIND nodes WHERE Home Town = 1 AS x", "write `Home Town` for a field of this name", None),
    ("FIND nodes WHERE NOT Home Town IS NULL AS x", "write `Home Town` for a field of this name", None),
    ("FIND edges WHERE source.schema:age > 1 AS x", "write source.`schema:age`", "FIND edges WHERE source.`schema:age` > 1 AS x"),
    ("FIND nodes WHERE 3rd prize = 1 AS x", "write `3rd prize`", "FIND nodes WHERE `3rd prize` = 1 AS x"),
    ("FIND nodes ORDER BY Home Town DESC AS x", "write `Home Town` for one field of this name", None),
    ("FIND nodes WHERE lower(rdf:type) = 1 AS x", "write `rdf:type`", "FIND nodes WHERE lower(`rdf:type`) = 1 AS x"),
    ("FIND patterns (p {a: 1, rdf:type: 2})-[r]->(q) AS x", "write `rdf:type`", "FIND patterns (p {a: 1, `rdf:type`: 2})-[r]->(q) AS x"),
    ("FIND nodes WHERE rdf:size + 1 > 2 AS x", "write `rdf:size`", "FIND nodes WHERE `rdf:size` + 1 > 2 AS x"),
    ("FIND nodes WHERE coalesce(x, rdf:size) > 2 AS x", "write `rdf:size`", "FIND nodes WHERE coalesce(x, `rdf:size`) > 2 AS x"),
    ("FIND nodes AS n\nJOIN n WITH n ON rdf:type AS x", "write `rdf:type` for one field of this name", None),
])  # fmt: skip
def test_without_a_graph_only_a_certain_name_is_edited(text, hint, fixed):
    (error,) = check(parse_gasl(text))
    assert error.hints[-1] == hint
    assert (apply_edits(text, error.edits) if error.edits else None) == fixed


def test_a_name_with_a_unit_in_brackets_is_called_like_a_function():
    (error,) = check(parse_gasl("FIND nodes WHERE height (cm) > 2 AS x"))
    assert (error.code, error.hints[0], error.edits) == ("GASL078", "write `height (cm)` for a field of this name", ())


def test_a_similar_name_is_shown_in_backticks():
    (error,) = found("FIND nodes WHERE Home_Town = 1 AS x")
    assert (error.code, error.hints[0]) == ("GASL070", "did you mean `Home Town`?")
