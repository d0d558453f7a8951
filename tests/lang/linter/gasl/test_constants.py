"""What the linter says of constants where a command needs a field: fields in quotes, numbers, variables with the name of a field."""

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import PEOPLE

NODES = "FIND nodes AS n\n"


def found(text, schema=PEOPLE):
    return check(parse_gasl(text), schema=schema)


def fixed(text, schema=PEOPLE):
    return apply_edits(text, [edit for d in found(text, schema) for edit in d.edits])


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('FIND nodes ORDER BY "age" DESC LIMIT 1 AS x', "FIND nodes ORDER BY age DESC LIMIT 1 AS x"),
        ('FIND nodes ORDER BY lower("name") AS x', "FIND nodes ORDER BY lower(name) AS x"),
        ('FIND patterns (a)-[r]->(b) ORDER BY "r.weight" AS x', "FIND patterns (a)-[r]->(b) ORDER BY r.weight AS x"),
        ('RANK n BY ("age") AS x', "RANK n BY (age) AS x"),
        ('RANK n BY age LIMIT 1 PER "entity_type" AS x', "RANK n BY age LIMIT 1 PER entity_type AS x"),
        ('JOIN n WITH n ON "id" AS x', "JOIN n WITH n ON id AS x"),
        ('JOIN n WITH n ON "name" SIMILAR 0.5 AS x', "JOIN n WITH n ON name SIMILAR 0.5 AS x"),
        ('EXCEPT n WITH n ON id = "id" AS x', "EXCEPT n WITH n ON id = id AS x"),
        ('COUNT n BY "entity_type" AS kind AS x', "COUNT n BY entity_type AS kind AS x"),
        ('UNNEST n BY "tags" AS tag AS x', "UNNEST n BY tags AS tag AS x"),
        (
            'AGGREGATE n BY "name" AS k COMPUTE sum("age") AS s AS x',
            "AGGREGATE n BY name AS k COMPUTE sum(age) AS s AS x",
        ),
        ('AGGREGATE n COMPUTE percentile("age", 0.5) AS m AS x', "AGGREGATE n COMPUTE percentile(age, 0.5) AS m AS x"),
        ("AGGREGATE n COMPUTE count(1) AS m AS x", "AGGREGATE n COMPUTE count() AS m AS x"),
        ('MEASURE graph USING pagerank BY "weight" AS x', "MEASURE graph USING pagerank BY weight AS x"),
        ('FIND paths SHORTEST BY "weight" AS x', "FIND paths SHORTEST BY weight AS x"),
        ('FIND nodes WHERE "age" IN (30, 40) AS x', "FIND nodes WHERE age IN (30, 40) AS x"),
        ('FIND nodes WHERE lower("name") = "ada" AS x', 'FIND nodes WHERE lower(name) = "ada" AS x'),
    ],
)
def test_a_field_in_quotes_is_refused(text, right):
    before = NODES if text.split()[1] == "n" else ""
    told = found(before + text)
    assert {d.code for d in told} <= {"GASL094", "GASL080", "GASL090"}
    assert all(d.severity == "error" for d in told)
    assert fixed(before + text) == before + right
    assert not [d for d in found(before + right) if d.severity == "error"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('FIND nodes ORDER BY "agee" AS x', "names of fields have no quotes; did you mean the field age?"),
        ('FIND nodes ORDER BY "height" AS x', "names of fields have no quotes; these items have no field of this name"),
        ("FIND nodes ORDER BY 2 AS x", "write the name of a field; a name that begins with a digit needs backticks"),
        ("FIND nodes ORDER BY true AS x", "write `true` for a field of this name"),
        ("FIND nodes AS n\nAGGREGATE n COMPUTE sum(1) AS s AS x",
         "write count() for the number of items, or the name of a field"),
        ("PARAM field TEXT = 'age'\nFIND nodes ORDER BY ${field} AS x",
         "a variable holds a value, not the name of a field: write the name of the field"),
        ("PARAM v TEXT\nFIND nodes AS n\nJOIN n WITH n ON name = ${v} AS x",
         "write ON with a field of each side; SELECT ... WHERE compares a field with a variable"),
    ],
)  # fmt: skip
def test_where_no_field_is_meant_for_certain_there_is_no_edit(text, hint):
    assert [(d.code, d.severity, d.hints) for d in found(text)] == [("GASL094", "error", (hint,))]
    assert fixed(text) == text


def test_without_a_graph_the_place_decides():
    assert fixed('FIND nodes ORDER BY "height" AS x', None) == "FIND nodes ORDER BY height AS x"
    assert fixed('FIND nodes WHERE "age" IN (1) AS x', None) == 'FIND nodes WHERE "age" IN (1) AS x'


@pytest.mark.parametrize(
    "text",
    [
        "MEASURE graph USING pagerank BY 1 AS x",
        "FIND paths SHORTEST BY 1 AS x",
        NODES + "SELECT n FIELDS id, 'old' AS label, 3 AS k AS x",
        NODES + "AGGREGATE n COMPUTE sum(if(age > 30, 1, 0)) AS s AS x",
        "PARAM w FLOAT = 2\nFIND nodes ORDER BY ${w} * age AS x",
        "PARAM k LIST\n" + NODES + "UNNEST n BY ${k} AS k AS x",
    ],
)
def test_constants_where_they_have_a_meaning(text):
    assert found(text) == []


def test_a_column_with_the_name_of_a_field_in_quotes_is_a_warning():
    (told,) = found(NODES + "SELECT n FIELDS id, 'age' AS years AS x")
    assert (told.code, told.severity) == ("GASL094", "warning")
    assert fixed(NODES + "SELECT n FIELDS id, 'age' AS years AS x") == NODES + "SELECT n FIELDS id, age AS years AS x"
    (told,) = found("PARAM k TEXT\n" + NODES + "COUNT n BY ${k} AS k AS x")
    assert (told.code, told.severity) == ("GASL094", "warning")
