"""What the linter says of the types of computed values and variables, where the graph makes a fault certain."""

import attrs
import pytest
from knotwork.lang.catalogue.schema import Attribute
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import PEOPLE

SCHEMA = attrs.evolve(
    PEOPLE,
    node_attributes={**PEOPLE.node_attributes, "born": Attribute("born", 60, {"text": 60})},
    id_types={"text": 60},
)


def found(text):
    return check(parse_gasl(text), schema=SCHEMA)


def report(text):
    return [(d.code, d.severity, parse_gasl(text).source.slice(d.span), d.message) for d in found(text)]


def fixed(text):
    return apply_edits(text, [edit for d in found(text) for edit in d.edits])


def where(condition):
    return f"FIND nodes WHERE {condition} AS x"


@pytest.mark.parametrize(
    ("condition", "at", "message", "right"),
    [
        ("lower(age) = 'x'", "age", "lower takes a string, but age is a number", None),
        ("year(age) > 3", "age", "year takes a string, but age is a number", None),
        ("abs(name) > 3", "name", "abs takes a number, but name is a string", None),
        ("round(LEN name, name) > 3", "name", "round takes a number, but name is a string", None),
        ("substring(name, name, 1) = 'x'", "name", "substring takes a number, but name is a string", None),
        ("age + 'x' = '3x'", "age + 'x'",
         '+ takes two numbers or two strings, but age is a number and "x" a string', None),
        ("name * 2 > 3", "name", "* takes two numbers, but name is a string", None),
        ("-(name - 1) > 3", "name", "- takes two numbers, but name is a string", None),
        ("date_trunc('mnth', born) = '2024-01-01'", "'mnth'", '"mnth" is not a unit of date_trunc',
         "date_trunc(\"month\", born) = '2024-01-01'"),
        ("date_trunc(born, 'year') = '2024-01-01'", "born", "the unit of date_trunc must come first",
         "date_trunc('year', born) = '2024-01-01'"),
        ("days_between(born, '2024-13-45') > 3", "'2024-13-45'", '"2024-13-45" is not a date, so days_between is null', None),
    ],
)  # fmt: skip
def test_operands_of_another_type(condition, at, message, right):
    assert report(where(condition)) == [("GASL096", "error", at, message)]
    assert report(where(f"{condition} OR age > 3")) == [("GASL096", "warning", at, message)]
    assert fixed(where(condition)) == where(right or condition)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("SELECT n FIELDS lower(age) AS low AS rows", "error"),
        ("RANK n BY sqrt(name) AS rows", "error"),
        ("SELECT n FIELDS if(age > 3, lower(age), 'x') AS low AS rows", "warning"),
        ("JOIN n WITH n ON age SIMILAR 0.5 AS rows", "error"),
    ],
)
def test_operands_in_values_that_are_kept(text, severity):
    assert [each[:2] for each in report(f"FIND nodes AS n\n{text}")] == [("GASL096", severity)]


@pytest.mark.parametrize(
    ("condition", "message", "right"),
    [
        ("year(born) = '2023'", "year(born) is always a number, never a string", "year(born) = 2023"),
        ("year(born) > '2023'", "year(born) is always a number, never a string", "year(born) > 2023"),
        ("str(age) = 36", "str(age) is always a string, never a number", 'str(age) = "36"'),
        ("str(age) > 36", "str(age) is always a string, never a number", None),
        ("age * 2 = 'many'", "age * 2 is always a number, never a string", None),
        ("age * 2 CONTAINS 'many'", "age * 2 is always a number, which CONTAINS never matches", None),
        ("name < age", "name is a string, but age is a number", None),
        ("coalesce(age, 0) = name", "coalesce(age, 0) is a number, but name is a string", None),
    ],
)
def test_comparisons_of_values_that_are_never_equal(condition, message, right):
    (told,) = found(where(condition))
    assert (told.code, told.severity, told.message) == ("GASL097", "error", message)
    assert fixed(where(condition)) == where(right or condition)


def test_what_may_be_true_is_no_error():
    assert [d.severity for d in found(where("str(age) IN (36, '37')"))] == ["warning"]
    assert [d.severity for d in found(where("year(born) != '2023'"))] == ["warning"]
    for condition in (
        "mixed = age",
        "mixed + 1 > 3",
        "coalesce(mixed, 'x') = 3",
        "mixed IN (1, 'a')",
        "lower(mixed) = 'a'",
    ):
        assert found(where(condition)) == []


def test_a_similarity_is_at_most_one():
    (told,) = found(where("similarity(name, 'x') > 50"))
    assert (told.code, told.message) == ("GASL065", "similarity is never > 50")
    assert found(where("similarity(name, 'x') >= 0.5")) == []


# Variables


@pytest.mark.parametrize(
    ("text", "message", "hint", "right"),
    [
        ("FIND nodes WHERE id IN ${n} AS x", "id is a string, but ${n} is a list of items",
         "write IN ${n.id} for the list of a field", "FIND nodes WHERE id IN ${n.id} AS x"),
        ("FIND edges WHERE source NOT IN ${n} AS x", "source is a string, but ${n} is a list of items",
         "write NOT IN ${n.id} for the list of a field", "FIND edges WHERE source NOT IN ${n.id} AS x"),
        ("FIND nodes WHERE name IN ${c} AS x", "name is a string, but ${c} is a list of items",
         "write IN ${c.name} for the list of a field", None),
        ("FIND nodes WHERE name = ${c.name} AS x", "name is a string, but ${c.name} is a list",
         "write IN ${c.name}, or ${c[0].name} for the first item", None),
        ("FIND nodes WHERE age > ${n.age} AS x", "age is a number, but ${n.age} is a list",
         "write ${n[0].age} for the first item, or max(${n.age}) for the largest value", None),
        ("FIND nodes WHERE age IN ${k} AS x", "IN takes a list, but ${k} is a number", "write = ${k}", None),
        ("ASSERT ${n} > 3", "${n} is always a list, never a number", "LEN ${n} is the number of its items", None),
        ("FIND nodes WHERE age > ${t} AS x", "age is a number, but ${t} is a string", None, None),
        ("FIND nodes WHERE name IN ${t} AS x", "IN takes a list, but ${t} is a string", "write = ${t}", None),
        ("FIND nodes WHERE name = ${l} AS x", "name is a string, but ${l} is a list", "write IN ${l}", None),
    ],
)  # fmt: skip
def test_variables_of_another_type(text, message, hint, right):
    before = "PARAM t TEXT\nPARAM l LIST\nFIND nodes AS n\nCOUNT n BY name AS c\nCOUNT n AS k\n"
    told = [d for d in found(before + text) if d.code != "GASL088"]
    assert [(d.code, d.severity, d.message) for d in told] == [("GASL097", "error", message)]
    assert told[0].hints == ((hint,) if hint else ())
    assert apply_edits(before + text, told[0].edits) == before + (right or text)


@pytest.mark.parametrize(
    "text",
    [
        "FIND nodes WHERE id IN ${n.id} AND age > ${k} AND name IN ${c.name} AS x",
        "FIND nodes WHERE age > ${n[0].age} AND name = ${c[0].name} AS x",
        "FIND nodes WHERE age > max(${n.age}) AS x",
        "FIND nodes WHERE name = ${t} AND name IN ${l} AS x",
        "FIND edges WHERE source IN ${p.a.id} AND target IN ${n.id} AS x",
        "ASSERT LEN ${n} > 3 AND ${k} > 3 AND ${n[0].name} = 'Ada' AND ${n.id} CONTAINS 'x'",
        "SELECT p WHERE a.age > 3 AS x",
    ],
)
def test_variables_of_the_right_type(text):
    before = "PARAM t TEXT\nPARAM l LIST\nFIND nodes AS n\nCOUNT n BY name AS c\nCOUNT n AS k\nFIND patterns (a)-->(b) AS p\n"
    assert [d for d in found(before + text) if d.code != "GASL088"] == []


@pytest.mark.parametrize(
    ("text", "message", "hint", "right"),
    [
        ("id IN ${n.idd}", "the nodes of n have no field idd", "did you mean id?", "id IN ${n.id}"),
        ("age > ${n[0].agee}", "the nodes of n have no field agee", "did you mean age?", "age > ${n[0].age}"),
        ("age > ${n.length}", "the nodes of n have no field length", "LEN ${n} is the number of items", None),
        ("id = ${n.first.id}", "the nodes of n have no field first.id", "write ${n[0].id}", None),
        ("id IN ${n.degree}", "the nodes of n have no field degree",
         "add it to the items first: SELECT n FIELDS id, degree AS rows", None),
        ("age > ${k.count}", "k is a number, so ${k.count} has no value", "write ${k}", None),
        ("name IN ${e.source.name}", "the edges of e have no field source.name", "source is only the id of a node", None),
        ("name IN ${c.title}", "the rows of c have no field title", "the fields are name, count", None),
    ],
)  # fmt: skip
def test_fields_of_variables(text, message, hint, right):
    before = "FIND nodes AS n\nFIND edges AS e\nCOUNT n BY name AS c\nCOUNT n AS k\n"
    (told,) = found(before + where(text))
    assert (told.code, told.severity, told.message, told.hints[0]) == ("GASL073", "error", message, hint)
    assert fixed(before + where(text)) == before + where(right or text)
