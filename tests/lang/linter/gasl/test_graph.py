"""What the linter says of a program when the graph is known: attributes, values and types."""

import pytest
from attrs import evolve
from knotwork.lang.catalogue.schema import Attribute, Schema
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import PEOPLE


def found(text, schema=PEOPLE):
    return check(parse_gasl(text), schema=schema, variables=("g",))


def report(text):
    program = parse_gasl(text)
    return [f"{d.code} {d.severity} {program.source.slice(d.span)}: {d.message}" for d in found(text)]


def fixed(text):
    return apply_edits(text, [edit for d in found(text) for edit in d.edits])


@pytest.mark.parametrize(
    "text",
    [
        'FIND nodes WHERE entity_type = "PERSON" AND age > 30 AND degree >= 2 AND id = "x" AND id = "x" AS v',
        'FIND nodes WHERE address.city = "Oslo" AND tags CONTAINS "x" AND attr.id = "x" AND `attr.id` = "x" AS v',
        "FIND nodes WHERE active = true AND age = 31.0 AS v",
        'FIND edges WHERE relation = "KNOWS" AND weight > 1 AND source = "a" AND target = 3 AND key = 0 AS v',
        'FIND edges WHERE source.entity_type = "PERSON" AND target.age < 3 AND source.id = "a" AND target.degree > 1 AS v',
        'FIND paths FROM (name = "Ada") TO (name = "Cy") VIA weight > 1 AND source.age > 3 WHERE length < 3 AS v',
        'FIND paths WHERE ALL node.entity_type = "PERSON" AND ANY edge.weight > 1 AND source.age > 1 AS v',
        'FIND nodes WHERE name = "Cy" AS v',
        "FIND nodes ORDER BY in_degree, out_degree AS u",
        "FIND nodes ORDER BY age DESC, degree, id AS v\nSELECT v FIELDS id, age, address.city AS w\nCOUNT v BY entity_type AS c",
        "FIND edges AS v\nSELECT v WHERE source = 'a' AND weight > 1 AS w\nAGGREGATE w BY relation COMPUTE sum(weight) AS c",
        "FIND paths AS p\nSELECT p WHERE ANY edge.weight > 1 AND length < 3 AND source = 'a' AND source.id = 'a' AS q",
        "FIND nodes WHERE age IN ${g} AND entity_type = ${g} AS v",
        "SELECT g WHERE anything = 1 AS v\nCOUNT g BY anything AS c",
        'WALK g VIA relation = "KNOWS" AS v\nCONNECT v TO g VIA weight > 1 AS w',
        "FIND nodes WHERE name MATCHES '^A' AND name > 'A' AND name CONTAINS 'd' AS v",
    ],
)
def test_what_the_graph_has(text):
    assert report(text) == []


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ("FIND nodes WHERE agee > 3 AS v", "GASL070 error agee: no node has an attribute agee", "FIND nodes WHERE age > 3 AS v"),
        ("FIND nodes WHERE Age > 3 AS v", "GASL070 error Age: no node has an attribute Age", "FIND nodes WHERE age > 3 AS v"),
        ('FIND nodes WHERE kind = "PERSON" AS v', "GASL070 error kind: no node has an attribute kind",
         'FIND nodes WHERE entity_type = "PERSON" AS v'),
        ("FIND nodes WHERE agee IS NULL AS v", "GASL070 warning agee: no node has an attribute agee",
         "FIND nodes WHERE age IS NULL AS v"),
        ("FIND nodes WHERE agee = 1 OR age = 2 AS v", "GASL070 warning agee: no node has an attribute agee",
         "FIND nodes WHERE age = 1 OR age = 2 AS v"),
        ("FIND nodes WHERE NOT agee = 1 AS v", "GASL070 warning agee: no node has an attribute agee",
         "FIND nodes WHERE NOT age = 1 AS v"),
        ("FIND nodes WHERE age.years = 1 AS v", "GASL070 error age.years: no node has an attribute age.years", None),
        ("FIND nodes WHERE relation = 'KNOWS' AS v", "GASL070 error relation: no node has an attribute relation", None),
        ("FIND edges WHERE entity_type = 'PERSON' AS v", "GASL070 error entity_type: no edge has an attribute entity_type",
         None),
        ("FIND edges WHERE source.agee > 1 AS v", "GASL070 error source.agee: no node has an attribute agee",
         "FIND edges WHERE source.age > 1 AS v"),
        ("FIND paths WHERE ALL node.agee > 1 AS v", "GASL070 error ALL node.agee: no node has an attribute agee",
         "FIND paths WHERE ALL node.age > 1 AS v"),
        ("FIND paths AS p\nSELECT p WHERE age > 1 AS v", "GASL070 error age: a path has no attribute age", None),
        ("FIND paths WHERE age > 1 AS v", "GASL070 error age: a path has no attribute age", None),
        ("WALK g VIA wieght > 1 AS v", "GASL070 error wieght: no edge has an attribute wieght", "WALK g VIA weight > 1 AS v"),
        ("FIND nodes ORDER BY agee AS v", "GASL070 error agee: no node has an attribute agee", "FIND nodes ORDER BY age AS v"),
        ("FIND nodes AS v\nSELECT v FIELDS id, agee AS w", "GASL070 error agee: no node has an attribute agee",
         "FIND nodes AS v\nSELECT v FIELDS id, age AS w"),
        ("FIND nodes AS v\nCOUNT v BY weight AS w", "GASL070 error weight: no node has an attribute weight", None),
        ("FIND edges AS v\nCOUNT v BY source.agee AS w", "GASL070 error source.agee: no node has an attribute agee",
         "FIND edges AS v\nCOUNT v BY source.age AS w"),
        ("FIND edges ORDER BY source.agee AS v", "GASL070 error source.agee: no node has an attribute agee",
         "FIND edges ORDER BY source.age AS v"),
        ("FIND paths AS p\nRANK p BY weight AS v", "GASL070 error weight: a path has no attribute weight", None),
        ("FIND nodes AS v\nSELECT v WHERE agee > 1 AS w", "GASL070 error agee: no node has an attribute agee",
         "FIND nodes AS v\nSELECT v WHERE age > 1 AS w"),
    ],
)  # fmt: skip
def test_attributes(text, expected, right):
    assert report(text) == [expected]
    if right is None:
        assert fixed(text) == text or "years" in text
    else:
        assert fixed(text) == right
        assert report(right) == []


@pytest.mark.parametrize(
    "text",
    [
        "FIND nodes AS v\nRANK v BY degree AS w",
        "FIND nodes AS v\nSELECT v WHERE age > 1 AS u\nSELECT u FIELDS id, in_degree AS links AS w",
        "FIND edges AS v\nCOUNT v BY source.age, target.degree AS w",
        "FIND paths AS v\nAGGREGATE v BY source.age COMPUTE sum(length) AS w",
    ],
)
def test_computed_fields_can_be_named_in_every_command(text):
    assert report(text) == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("FIND nodes WHERE weight > 1 AS v", "edges have it: use FIND edges"),
        ("FIND edges WHERE age > 1 AS v", "nodes have it: write source.age or target.age"),
        ("FIND nodes WHERE zzz > 1 AS v", "nodes have entity_type, name, age, active, tags, address, mixed, attr.id"),
        ("FIND nodes WHERE source.age > 1 AS v", "source.x belongs to an edge: use FIND edges"),
        ('FIND nodes WHERE entity_type = "KNOWS" AS v', "edges have it as relation: use FIND edges"),
        ('FIND edges WHERE relation = "PERSON" AS v', "nodes have it: write source.entity_type or target.entity_type"),
        ('FIND nodes WHERE entity_type = "ROBOT" AS v', 'its values are "PERSON", "COMPANY"'),
        ("FIND nodes WHERE age > true AS v", "values of different types are unequal and have no order"),
    ],
)
def test_hints(text, hint):
    assert hint in [hint for d in found(text) for hint in d.hints]


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ('FIND nodes WHERE entity_type = "Person" AS v', 'GASL071 warning "Person": entity_type is never "Person"',
         'FIND nodes WHERE entity_type = "PERSON" AS v'),
        ('FIND nodes WHERE entity_type IN ("PERSON", "COMPNY") AS v', 'GASL071 warning "COMPNY": entity_type is never "COMPNY"',
         'FIND nodes WHERE entity_type IN ("PERSON", "COMPANY") AS v'),
        ('FIND nodes WHERE mixed = 2 AS v', "GASL071 warning 2: mixed is never 2", None),
        ('FIND nodes WHERE age > "30" AS v', 'GASL072 error "30": age is always a number, never a string',
         "FIND nodes WHERE age > 30 AS v"),
        ('FIND nodes WHERE age = "thirty" AS v', 'GASL072 error "thirty": age is always a number, never a string', None),
        ('FIND nodes WHERE age = "030" AS v', 'GASL072 error "030": age is always a number, never a string', None),
        ('FIND nodes WHERE age != "30" AS v', 'GASL072 warning "30": age is always a number, never a string',
         "FIND nodes WHERE age != 30 AS v"),
        ("FIND nodes WHERE active = 1 AS v", "GASL072 error 1: active is always a boolean, never a number",
         "FIND nodes WHERE active = true AS v"),
        ("FIND nodes WHERE active > 0 AS v", "GASL072 error 0: active is always a boolean, never a number", None),
        ('FIND nodes WHERE active = "True" AS v', 'GASL072 error "True": active is always a boolean, never a string',
         "FIND nodes WHERE active = true AS v"),
        ("FIND nodes WHERE name = 1.50 AS v", "GASL072 error 1.50: name is always a string, never a number",
         'FIND nodes WHERE name = "1.50" AS v'),
        ("FIND nodes WHERE name > 3 AS v", "GASL072 error 3: name is always a string, never a number", None),
        ('FIND nodes WHERE age CONTAINS "3" AS v',
         'GASL072 error "3": age is always a number, which CONTAINS never matches', None),
        ('FIND nodes WHERE tags STARTS_WITH "3" AS v',
         'GASL072 error "3": tags is always a list, which STARTS_WITH never matches', None),
        ("FIND nodes WHERE name CONTAINS 3 AS v",
         "GASL072 error 3: name is always a string, which CONTAINS never matches", None),
        ('FIND nodes WHERE age IN (30, "40") AS v', 'GASL072 warning "40": age is always a number, never a string',
         "FIND nodes WHERE age IN (30, 40) AS v"),
        ('FIND edges WHERE weight = "1" OR relation = "KNOWS" AS v', 'GASL072 warning "1": weight is always a number, never a string',
         'FIND edges WHERE weight = 1 OR relation = "KNOWS" AS v'),
    ],
)  # fmt: skip
def test_values_and_types(text, expected, right):
    assert report(text) == [expected]
    assert fixed(text) == (text if right is None else right)
    if right is not None:
        assert report(right) == []


def test_labels_are_known_even_where_they_are_many():
    labels = {f"LABEL_{n}": 1 for n in range(500)}
    attribute = Attribute("label", 500, {"text": 500}, (("LABEL_1", 1),), 500)
    schema = evolve(PEOPLE, node_attributes={"label": attribute}, label_attribute="label", labels=labels)
    assert found('FIND nodes WHERE label = "LABEL_499" AS v', schema) == []
    assert [d.code for d in found('FIND nodes WHERE label = "LABLE_499" AS v', schema)] == ["GASL071"]


def test_a_graph_without_attributes():
    schema = Schema(False, False, 3, 2, {}, {})
    assert found('FIND nodes WHERE id = "a" AND degree > 1 AS v', schema) == []
    (diagnostic,) = found("FIND nodes WHERE name = 'a' AS v", schema)
    assert diagnostic.hints == ("nodes have no attributes, only degree, id, in_degree, out_degree",)


def test_a_degree_is_a_number_whatever_the_graph():
    text = 'FIND nodes WHERE degree > "5" AS v\nFIND edges WHERE source.degree = 2 AS w'
    assert report(text) == ['GASL072 error "5": degree is always a number, never a string']
    assert "degree > 5 AS" in fixed(text)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('FIND WHERE relation = "KNOWS" AS v', 'FIND edges WHERE relation = "KNOWS" AS v'),
        (
            "FIND WHERE age > 3 AS v\nFIND WHERE weight > 1 AS w",
            "FIND nodes WHERE age > 3 AS v\nFIND edges WHERE weight > 1 AS w",
        ),
        ("FIND WHERE nonsense = 1 AS v", None),
        ("FIND WHERE age > 3 AND weight > 1 AS v", None),
    ],
)
def test_what_to_find_is_offered_where_only_nodes_or_only_edges_have_the_fields(text, right):
    assert fixed(text) == (right or text)
