"""What the linter says of names that are not bound: a forgotten name of a column, the id of a node, a parameter."""

import attrs
import pytest
from knotwork.lang.diagnostic import apply_edits, nearest
from knotwork.lang.evaluate.conditions import matches
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import PEOPLE


class Ids(set):
    """The ids of a graph's nodes."""

    def nearest(self, node_id):
        return nearest(node_id, [each for each in self if isinstance(each, str)])

    def matching(self, whose, condition, most):
        return [{"id": each} for each in self if matches(condition, {"id": each})][:most]


SCHEMA = attrs.evolve(PEOPLE, all_ids=Ids({"SCROOGE", "TINY TIM", 7}), id_types={"text": 59, "integer": 1})


def found(text, schema=SCHEMA):
    return check(parse_gasl(text), schema=schema, state={"k": "LIST"})


def fixed(text, schema=SCHEMA):
    return apply_edits(text, [edit for d in found(text, schema) for edit in d.edits])


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ("FIND edges AS t\nAGGREGATE t BY relation COMPUTE count() AS n\nUPDATE k WITH flows",
         "FIND edges AS t\nAGGREGATE t BY relation COMPUTE count() AS n AS flows\nUPDATE k WITH flows",
         "AS n names the result of AGGREGATE; write AS n AS flows to name the column too"),
        ("FIND nodes AS top\nSELECT top FIELDS id, degree AS links\nUPDATE k WITH shown",
         "FIND nodes AS top\nSELECT top FIELDS id, degree AS links AS shown\nUPDATE k WITH shown",
         "AS links names the result of SELECT; write AS links AS shown to name the column too"),
        ("FIND nodes AS top\nCOUNT top BY name AS n\nRANK ranking BY count AS y",
         "FIND nodes AS top\nCOUNT top BY name AS n AS ranking\nRANK ranking BY count AS y", None),
        ("FIND nodes AS top\nUNNEST top BY tags AS tag\nCOUNT words BY tag AS y",
         "FIND nodes AS top\nUNNEST top BY tags AS tag AS words\nCOUNT words BY tag AS y", None),
    ],
)  # fmt: skip
def test_the_last_as_was_meant_for_a_column(before, after, hint):
    (told,) = found(before)
    assert told.code == "GASL050"
    assert hint is None or told.hints == (hint,)
    assert fixed(before) == after
    assert not [d for d in found(after) if d.severity == "error"]


@pytest.mark.parametrize(
    "text",
    [
        "FIND nodes AS top\nSELECT top FIELDS id, degree AS links\nCOUNT links AS m\nUPDATE k WITH shown",
        "FIND nodes AS top\nSELECT top FIELDS id AS a\nSELECT top FIELDS name AS b\nUPDATE k WITH shown",
        "FIND nodes AS top\nSELECT top FIELDS id, degree AS d AS links\nUPDATE k WITH shown",
        "FIND nodes AS top\nSELECT top FIELDS id WHERE age > 3 AS links\nUPDATE k WITH shown",
        "FIND nodes AS top\nSELECT top FIELDS id AS links\nUPDATE k WITH shown\nUPDATE k WITH others",
        "UPDATE k WITH shown\nFIND nodes AS top\nSELECT top FIELDS id AS links",
    ],
)
def test_where_it_is_unclear_nothing_is_named(text):
    assert fixed(text) == text


def test_a_similar_name_is_more_likely():
    text = "FIND nodes AS top\nSELECT top FIELDS id, degree AS links\nRANK link BY id AS y"
    assert fixed(text) == text.replace("RANK link", "RANK links")


def test_ends_of_paths_that_are_ids():
    assert fixed("FIND paths FROM SCROOGE TO `TINY TIM` AS w") == (
        'FIND paths FROM (id = "SCROOGE") TO (id = "TINY TIM") AS w'
    )
    (told, _) = found("FIND paths FROM CRATCHIT TO FRED AS w")
    assert told.hints == ('FROM and TO take a variable, or a condition in ( ): (id = "CRATCHIT")',)
    assert found("FIND nodes AS SCROOGE\nFIND paths FROM SCROOGE TO SCROOGE AS w") == []


def test_a_value_from_outside_is_a_parameter():
    (told,) = found("FIND nodes WHERE age > ${least} AS x")
    assert told.hints == (
        "for a value from outside, begin the program with PARAM least and its type: TEXT, INT, FLOAT, BOOL or LIST",
    )
    assert {d.code for d in found("PARAM least INT = x\nFIND nodes WHERE age > ${least} AS x")}.isdisjoint({"GASL050"})


# Ids of nodes


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("FIND paths FROM (id = SCROOGE) TO (id = `TINY TIM`) AS w",
         'FIND paths FROM (id = "SCROOGE") TO (id = "TINY TIM") AS w'),
        ("FIND edges WHERE source = SCROOGE AS w", 'FIND edges WHERE source = "SCROOGE" AS w'),
        ("FIND nodes WHERE id IN (SCROOGE) AS w", 'FIND nodes WHERE id IN ("SCROOGE") AS w'),
        ("FIND patterns (a)-->(b) WHERE a.id = SCROOGE AS w", 'FIND patterns (a)-->(b) WHERE a.id = "SCROOGE" AS w'),
        ("FIND nodes WHERE id = MARLEY AS w", None),
        ("FIND nodes AS SCROOGE\nFIND nodes WHERE id = SCROOGE AS w", None),
        ("FIND nodes WHERE name = SCROOGE AS w", None),
    ],
)  # fmt: skip
def test_a_bare_word_may_be_an_id(text, right):
    assert {d.code for d in found(text)} <= {"GASL076", "GASL007"}
    assert fixed(text) == (right or text)


@pytest.mark.parametrize(
    ("condition", "message", "right"),
    [
        ('id = "SCROOEG"', 'no node has the id "SCROOEG"', 'id = "SCROOGE"'),
        ('id IN ("SCROOGE", "X")', 'no node has the id "X"', None),
        ('id = "7"', 'no node has the id "7"', "id = 7"),
        ("id = 8", "no node has the id 8", None),
    ],
)
def test_an_id_that_no_node_has_is_a_warning(condition, message, right):
    text = f"FIND nodes WHERE {condition} AS x"
    (told,) = found(text)
    assert (told.code, told.severity, told.message) == ("GASL071", "warning", message)
    assert fixed(text) == f"FIND nodes WHERE {right or condition} AS x"
    assert found(text, PEOPLE) == []


def test_few_unknown_ids_are_looked_up():
    names = ", ".join(f'"SCROOGE {number}"' for number in range(50))
    told = found(f"FIND nodes WHERE id IN ({names}) OR id IN ({names}) AS x")
    assert len(told) == 10
    assert sum(bool(d.edits) for d in told) <= 5


# Fields with the name of their variable


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("FIND nodes AS x\nSELECT x FIELDS x.id, x.age AS y", "FIND nodes AS x\nSELECT x FIELDS id, age AS y"),
        ("FIND nodes AS x\nJOIN x WITH x ON x.id = x.id AS y", "FIND nodes AS x\nJOIN x WITH x ON id = id AS y"),
        ("FIND nodes AS x\nCOUNT x BY name AS c\nSELECT c WHERE c.count > 3 AS y",
         "FIND nodes AS x\nCOUNT x BY name AS c\nSELECT c WHERE count > 3 AS y"),
        ("FIND nodes AS x\nWALK x VIA edge.weight > 3 AS y", "FIND nodes AS x\nWALK x VIA weight > 3 AS y"),
        ("FIND paths SHORTEST BY edge.weight AS y", "FIND paths SHORTEST BY weight AS y"),
        ("FIND nodes AS x\nFIND edges AS z\nJOIN x WITH z ON z.source = x.id AS y", None),
        ("FIND nodes AS x\nJOIN x WITH x ON right.age = age AS y", None),
    ],
)  # fmt: skip
def test_fields_stand_without_their_variable(text, right):
    assert {d.code for d in found(text)} <= {"GASL070", "GASL073"}
    assert fixed(text) == (right or text)


def test_depth_needs_trace():
    told = found("FIND nodes AS x\nWALK x DEPTH 2 AS y\nRANK y BY depth AS z")
    assert told[0].hints[0] == "WALK ... TRACE AS y adds depth and parent"
