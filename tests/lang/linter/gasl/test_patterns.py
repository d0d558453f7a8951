"""What the linter says of patterns: their names, labels, edges and symmetry."""

import pytest
from attrs import evolve
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import PEOPLE

UNDIRECTED = evolve(PEOPLE, directed=False)
UNLABELLED = evolve(PEOPLE, label_attribute=None, labels={}, relation_attribute=None, relations={})


def found(text, schema=PEOPLE, ceiling=None):
    return check(parse_gasl(text), schema=schema, ceiling=ceiling)


def report(text, schema=PEOPLE):
    """Return "CODE severity text under the span: message" for each diagnostic."""
    program = parse_gasl(text)
    return [f"{d.code} {d.severity} {program.source.slice(d.span)}: {d.message}" for d in found(text, schema)]


def fixed(text, schema=PEOPLE):
    return apply_edits(text, [edit for d in found(text, schema) for edit in d.edits])


@pytest.mark.parametrize(
    "pattern",
    [
        "(p:PERSON)-[r:KNOWS|WORKS_FOR]->(q:PERSON|COMPANY)",
        "(a)-[x]->(b)-[y]->(c)-[z]->(a) WHERE a.id < b.id AND a.id < c.id",
        "(a:PERSON)-[t:KNOWS]->(b), (b)-[:WORKS_FOR]->(c) WHERE t.weight > a.age AND a.address.city = c.name",
        "(a)-->(b), (c)-->(d), (d)-->(b)",
        "(p {name: 'Ada', age: 30})-->(q) WHERE p.degree > q.degree ORDER BY p.age DESC, q.name LIMIT 3 PER p.name",
        "(`odd name`)-->(q) WHERE `odd name`.age > 3",
        "(p:PERSON)-[r]->(o)<-[s]-(q:COMPANY)",
        "(p {name: 'Ada'})-[r]-(q)",
        "(p)-[r]->(q)",
    ],
)
def test_what_is_right(pattern):
    text = f"FIND patterns {pattern} AS rows"
    assert report(text) == []
    assert report(text, None) == []


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ("FIND patterns (p:PERSN)-->(q) AS x", 'GASL071 warning PERSN: no node has entity_type "PERSN"',
         "FIND patterns (p:PERSON)-->(q) AS x"),
        ("FIND patterns (p:PERSON|CMPANY)-->(q) AS x", 'GASL071 warning CMPANY: no node has entity_type "CMPANY"',
         "FIND patterns (p:PERSON|COMPANY)-->(q) AS x"),
        ("FIND patterns (p)-[KNWS:KNWS]->(q) AS x", 'GASL071 warning KNWS: no edge has relation "KNWS"',
         "FIND patterns (p)-[KNWS:KNOWS]->(q) AS x"),
        ("FIND patterns (p:KNOWS)-->(q) AS x", 'GASL071 warning KNOWS: no node has entity_type "KNOWS"', None),
        ("FIND patterns (p:`a robot`)-->(q) AS x", 'GASL071 warning `a robot`: no node has entity_type "a robot"', None),
        ("FIND patterns (p {entity_type: 'Person'})-->(q) AS x", "GASL071 warning 'Person': entity_type is never \"Person\"",
         'FIND patterns (p {entity_type: "PERSON"})-->(q) AS x'),
        ("FIND patterns (p {naem: 'Ada'})-->(q) AS x", "GASL070 error naem: no node has an attribute naem",
         "FIND patterns (p {name: 'Ada'})-->(q) AS x"),
        ("FIND patterns (p {age: '30'})-->(q) AS x", "GASL072 error '30': age is always a number, never a string",
         "FIND patterns (p {age: 30})-->(q) AS x"),
        ("FIND patterns (p)-->(q) WHERE p.agee > 3 AS x", "GASL070 error p.agee: no node has an attribute agee",
         "FIND patterns (p)-->(q) WHERE p.age > 3 AS x"),
        ("FIND patterns (p)-[r]->(q) WHERE q.age > r.wieght AS x", "GASL070 error r.wieght: no edge has an attribute wieght",
         "FIND patterns (p)-[r]->(q) WHERE q.age > r.weight AS x"),
        ("FIND patterns (p)-[r]->(q) ORDER BY r.wieght LIMIT 3 PER p.name AS x",
         "GASL070 error r.wieght: no edge has an attribute wieght",
         "FIND patterns (p)-[r]->(q) ORDER BY r.weight LIMIT 3 PER p.name AS x"),
        ("FIND patterns (p)-->(q) WHERE age > 3 AS x", "GASL073 error age: the patterns have no name age", None),
        ("FIND patterns (person)-->(q) WHERE persn.age > 3 AS x", "GASL073 error persn.age: the patterns have no name persn", None),
        ("FIND patterns (p)-[r]->(q) AS x\nSELECT x FIELDS p.agee AS y", "GASL070 error p.agee: no node has an attribute agee",
         "FIND patterns (p)-[r]->(q) AS x\nSELECT x FIELDS p.age AS y"),
        ("FIND patterns (p)-[r]->(q) AS x\nSELECT x FIELDS p AS who AS y\nRANK y BY who.agee AS z",
         "GASL070 error who.agee: no node has an attribute agee",
         "FIND patterns (p)-[r]->(q) AS x\nSELECT x FIELDS p AS who AS y\nRANK y BY who.age AS z"),
        ("FIND patterns (p)-[r]->(q) AS x\nCOUNT x BY o.name AS y", "GASL073 error o.name: the rows of x have no field o.name", None),
    ],
)  # fmt: skip
def test_labels_and_fields(text, expected, right):
    told = report(text)
    assert told == [expected]
    if right is None:
        return
    assert fixed(text) == right
    assert report(right) == []


def test_hints_about_labels_and_names():
    assert "edges have it: -[:KNOWS]->" in found("FIND patterns (p:KNOWS)-->(q) AS x")[0].hints
    assert "nodes have it: (p:PERSON)" in found("FIND patterns (p)-[:PERSON]->(q) AS x")[0].hints
    assert found("FIND patterns (p)-->(q) WHERE age > 3 AS x")[0].hints == (
        "write p.age for the field of p",
        "the names are p, q",
    )
    assert found("FIND patterns (p)-[r]->(q) WHERE weight > 3 AS x")[0].hints[0] == "write r.weight for the field of r"
    assert found("FIND patterns ()-->() WHERE age > 3 AS x")[0].hints == ("name the nodes: (p)-[r]->(q)",)


def test_a_graph_without_kinds_refuses_labels():
    text = "FIND patterns (p:PERSON)-[:KNOWS]->(q) AS x"
    assert report(text, UNLABELLED) == [
        "GASL083 error PERSON: this graph has no attribute that distinguishes kinds of nodes",
        "GASL083 error KNOWS: this graph has no attribute that distinguishes kinds of edges",
    ]
    hint = found(text, UNLABELLED)[0].hints[0]
    assert hint.startswith('write WHERE p.entity_type = "PERSON", with one of: entity_type, name, age')
    bare = evolve(UNLABELLED, node_attributes={}, edge_attributes={})
    assert found(text, bare)[0].hints == ("its nodes have no attributes; remove :PERSON",)
    assert report("FIND patterns (p)-->(q) AS x", UNLABELLED) == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(p:PERSON)-[r]->(q:COMPANY)", "the graph is undirected: -> matches in both directions"),
        ("(p:PERSON)<-[r]-(q:COMPANY)", "the graph is undirected: <- matches in both directions"),
        ("(p:PERSON)-[r]-(q:COMPANY)", None),
    ],
)
def test_arrows_on_undirected_graphs(pattern, message):
    told = found(f"FIND patterns {pattern} AS x", UNDIRECTED)
    assert [(d.code, d.severity, d.message) for d in told] == ([("GASL084", "info", message)] if message else [])
    assert report(f"FIND patterns {pattern} AS x") == []


@pytest.mark.parametrize(
    ("patterns", "shared"),
    [
        ("(a)-->(b), (c)-->(d)", False),
        ("(a)-->(b), (b)-->(d)", True),
        ("(a)-->(b), (c)-->(d), (b)-->(c)", True),
        ("(a)-->(b), (b)-->(c), (d)-->(e)", False),
        ("(a)-->(), ()-->(b)", False),
    ],
)
def test_patterns_share_names(patterns, shared):
    assert [d.code for d in found(f"FIND patterns {patterns} AS x")] == ([] if shared else ["GASL081"])


def chain(edges):
    return "FIND patterns (a)" + "-->()" * edges + " AS x"


def test_patterns_have_few_edges():
    assert report(chain(6)) == []
    assert [d.message for d in found(chain(7))] == ["the patterns of a command can have at most 6 edges here, not 7"]
    assert [d.code for d in found("FIND patterns (a)-->()-->()-->(b), (b)-->()-->()-->()-->(c) AS x")] == ["GASL082"]
    assert [d.code for d in found(chain(4), ceiling={"adapter.caps.max_pattern_edges": 3})] == ["GASL082"]
    assert "GASL082" not in [d.code for d in found(f"SET adapter.caps.max_pattern_edges = 7\n{chain(7)}")]
    assert "GASL082" in [
        d.code for d in found(f"SET adapter.caps.max_pattern_edges = 9\n{chain(9)}", ceiling={"max_pattern_edges": 8})
    ]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a)-[r]->(b)-[r]->(c)", "two edges have the name r, but a row uses each edge only once"),
        ("(a)-[a]->(b)", "a is the name of a node and of an edge"),
        ("(a)-[r]->(b), (b)-[s]->(r)", "r is the name of a node and of an edge"),
        ("(a)-[r]->(b)-[s]->(a)", None),
    ],
)
def test_names_of_edges(pattern, message):
    told = found(f"FIND patterns {pattern} AS x")
    assert [(d.code, d.message) for d in told] == ([("GASL086", message)] if message else [])


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("(p)-[r]-(q)", "add p.id < q.id"),
        ("(p:PERSON)-[r]->(o)<-[s]-(q:PERSON)", "add p.id < q.id"),
        ("(p:PERSON)-[r]->(o)<-[s]-(q:PERSON) WHERE o.age > 3", "add p.id < q.id"),
        ("(p)-[r]->(o)<-[s]-(q) WHERE p.id != q.id", "add p.id < q.id"),
        ("(p)-[r]->(o)<-[s]-(q) WHERE p.age > 3 AND q.age > 3 AND s.weight > 1 AND r.weight > 1", "add p.id < q.id"),
        ("(p)-[r]->(o)<-[s]-(q) WHERE p.age = q.age", "add p.id < q.id"),
        ("(a)--(b)--(c)--(a)", "add b.id < c.id"),
        ("(:PERSON)-[r]->(o)<-[s]-(:PERSON)", "name both ends, and order them in WHERE, as in p.id < q.id"),
        ("(p {name: 'Ada'})--(q {name: 'Ada'})", "add p.id < q.id"),
        ("(p)-[r]->(o)<-[s]-(q) WHERE p.id < q.id", None),
        ("(p)-[r]->(o)<-[s]-(q) WHERE q.age > p.age", None),
        ("(p)-[r]->(o)<-[s]-(q) WHERE r.weight < s.weight", None),
        ("(p)-[r]->(o)<-[s]-(q) WHERE p.id = 'a'", None),
        ("(p)-[r]->(o)<-[s]-(q) WHERE days_between(p.name, q.name) < 2", None),
        ("(p)-[r]->(o)->(q)", None),
        ("(p)-[r:KNOWS]->(o)<-[s:WORKS_FOR]-(q)", None),
        ("(p:PERSON)--(q:COMPANY)", None),
        ("(p {age: 3})--(q)", None),
        ("(p)--()", None),
        ("(p)-[r]->(q)", None),
        ("(p)", None),
    ],
)  # fmt: skip
def test_symmetric_patterns(pattern, hint):
    told = [d for d in found(f"FIND patterns {pattern} AS x") if d.code == "GASL085"]
    assert [(d.severity, d.hints) for d in told] == ([("info", (hint,))] if hint else [])


def test_an_arrow_of_an_undirected_graph_gives_no_order():
    told = found("FIND patterns (p)-[r]->(q) AS x", UNDIRECTED)
    assert sorted(d.code for d in told) == ["GASL084", "GASL085"]
    assert [d.code for d in found("FIND patterns (p)-[r]->(q) WHERE p.id < q.id AS x", UNDIRECTED)] == ["GASL084"]


@pytest.mark.slow
def test_hostile_patterns_are_checked_in_bounded_time():
    many = ", ".join(f"(a{i}:PERSN)-[r{i}:KNWS]->(a{i + 1})" for i in range(500))
    assert {d.code for d in found(f"FIND patterns {many} AS x")} >= {"GASL071", "GASL082"}


# Labels in the place of names


@pytest.mark.parametrize(
    ("pattern", "right"),
    [
        ("(a)-[KNOWS]->(b)", "(a)-[:KNOWS]->(b)"),
        ("(PERSON)-[r]->(COMPANY)", "(:PERSON)-[r]->(:COMPANY)"),
        ("(PERSON)-[r]->(b) WHERE b.age > 3", "(:PERSON)-[r]->(b) WHERE b.age > 3"),
    ],
)
def test_a_label_without_its_colon_is_a_warning(pattern, right):
    text = f"FIND patterns {pattern} AS x"
    assert {(d.code, d.severity) for d in found(text)} == {("GASL095", "warning")}
    assert fixed(text) == f"FIND patterns {right} AS x"
    assert report(text, None) == []


@pytest.mark.parametrize(
    "text",
    [
        "FIND patterns (PERSON)-[KNOWS]->(b) WHERE PERSON.age > 3 AND KNOWS.weight > 1 AS x",
        "FIND patterns (a)-[KNOWS]->(b) AS x\nSELECT x FIELDS KNOWS.weight AS y",
        "FIND patterns (a)-[KNOWS]->(b) AS x\nFIND edges WHERE weight IN ${x.KNOWS.weight} AS y",
        "FIND patterns (PERSON)-[r]->(b), (PERSON)-[s]->(c) AS x",
        "FIND patterns (person)-[knows]->(b) AS x",
        "FIND patterns (KNOWS)-[PERSON]->(b) AS x",
    ],
)
def test_a_label_that_is_used_as_a_name_is_one(text):
    assert "GASL095" not in {d.code for d in found(text)}


def test_functions_of_cypher_on_elements():
    text = 'FIND patterns (p)-[r]->(q) WHERE type(r) = "KNOWS" AS x'
    assert fixed(text) == 'FIND patterns (p)-[r]->(q) WHERE r.relation = "KNOWS" AS x'
    (told,) = found('FIND patterns (p)-[r]->(q) WHERE labels(p) = "PERSON" AS x')
    assert told.hints == ("write p.entity_type",) and not told.edits
