"""What the linter says of values: bare names, functions, computed fields, and fields on both sides and inside of calls."""

import pytest
from attrs import evolve
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import CEILING, PEOPLE


def found(text, schema=PEOPLE):
    return check(parse_gasl(text), schema=schema, ceiling=CEILING, variables=("g",))


def report(text, schema=PEOPLE):
    """Return "CODE severity text under the span: message" for each diagnostic."""
    program = parse_gasl(text)
    return [f"{d.code} {d.severity} {program.source.slice(d.span)}: {d.message}" for d in found(text, schema)]


def fixed(text):
    return apply_edits(text, [edit for d in found(text) for edit in d.edits])


def hints(text, schema=PEOPLE):
    return [hint for d in found(text, schema) for hint in d.hints]


SAME = [
    "FIND edges WHERE source.age > target.age AND 2 * weight < source.age + 1 AS e",
    "FIND edges WHERE source.entity_type != target.entity_type AS e",
    "FIND nodes WHERE lower(name) = name AND LEN tags > 2 AND coalesce(age, 0) > degree AS n",
    "FIND nodes WHERE if(age > 30 AND active = true, 1, 2) = 1 AS n",
    "FIND nodes ORDER BY degree * age DESC, lower(name) LIMIT 3 PER entity_type, lower(name) AS n",
    "FIND nodes AS n\nSELECT n FIELDS id, degree AS links, in_degree AS ins, lower(name) AS low AS rows\nRANK rows BY links AS r",
    "FIND nodes AS n\nSELECT n WHERE degree > 2 AND out_degree < in_degree AS m\nRANK m BY degree DESC LIMIT 3 PER entity_type AS top",
    "FIND nodes AS n\nRANK n BY age AS m\nUNION n WITH m AS b\nCOUNT b BY degree AS c",
    "FIND edges AS e\nCOUNT e BY source.entity_type, target.entity_type AS kinds\nRANK kinds BY `source.entity_type` AS r",
    "FIND edges AS e\nSELECT e WHERE source.age > target.age AND source.degree > 3 AS f\nRANK f BY source.degree AS r",
    "FIND paths AS p\nSELECT p WHERE source.age > 3 AND target.degree > length AS q\nSELECT q FIELDS source.name AS n AS rows",
    "FIND paths AS p\nRANK p BY sum(edges.weight) DESC LIMIT 2 PER source AS r",
    "FIND nodes AS n\nAGGREGATE n BY lower(entity_type) AS kind COMPUTE sum(if(age > 30, 1, 0)) AS old, count(DISTINCT name) AS m AS t",
    "FIND nodes AS n\nUNNEST n BY tags AS t\nCOUNT t BY tags, name, degree AS c\nSELECT t WHERE tags = 'x' AND age > 3 AS u",
    "FIND nodes AS n\nUNNEST n BY split(name, ' ') AS word AS t\nCOUNT t BY word AS c\nRANK c BY count DESC AS r",
    "FIND nodes AS n\nJOIN n WITH n ON age AS b\nSELECT b WHERE id < right.id AND name = right.name AS c",
    "FIND edges AS e\nFIND nodes AS n\nJOIN e WITH n AS payer ON source = id AS b\nRANK b BY payer.age, weight AS r",
    "FIND paths FROM (name = 'Ada') TO (name = 'Bo') SHORTEST 3 BY weight + source.age AS w\nRANK w BY cost, length AS r",
    "FIND paths FROM (name = 'Ada') TO (name = 'Bo') SHORTEST BY weight WHERE cost < 3 AS w\nSELECT w FIELDS cost, length AS r",
    "WALK g TRACE AS w\nRANK w BY depth + age AS v\nJOIN w WITH v ON id AS both\nRANK both BY depth + right.depth, parent AS r",
    "MEASURE graph USING pagerank BY weight * source.age AS ranks\nRANK ranks BY pagerank AS r",
    "FIND edges AS e\nMEASURE graph ON e USING degree BY weight AS d",
    "SELECT g WHERE anything > other AND lower(x) = y AS h\nSELECT h FIELDS source.x AS a, degree AS b AS i",
    "ASSERT ${g} > 3 AND LEN ${g} > 2 * ${g}",
    "FIND nodes WHERE name MATCHES ${g} AND name CONTAINS entity_type AS n",
]


@pytest.mark.parametrize("text", SAME)
def test_what_is_right(text):
    assert report(text) == []
    assert [d for d in found(text, None) if d.severity == "error"] == []


# Bare names


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ("FIND nodes WHERE entity_type = PERSON AS v",
         "GASL076 error PERSON: PERSON is neither a field of these nodes nor a quoted string",
         'FIND nodes WHERE entity_type = "PERSON" AS v'),
        ("FIND nodes WHERE entity_type != (PERSON) AS v",
         "GASL076 error (PERSON): PERSON is neither a field of these nodes nor a quoted string",
         'FIND nodes WHERE entity_type != ("PERSON") AS v'),
        ("FIND edges WHERE relation = KNOWS AS v",
         "GASL076 error KNOWS: KNOWS is neither a field of these edges nor a quoted string",
         'FIND edges WHERE relation = "KNOWS" AS v'),
        ("FIND edges WHERE source.entity_type = PERSON AS v",
         "GASL076 error PERSON: PERSON is neither a field of these edges nor a quoted string",
         'FIND edges WHERE source.entity_type = "PERSON" AS v'),
        ("FIND nodes AS n\nSELECT n WHERE entity_type = PERSON AS v",
         "GASL076 error PERSON: PERSON is neither a field of these nodes nor a quoted string",
         'FIND nodes AS n\nSELECT n WHERE entity_type = "PERSON" AS v'),
        ("FIND patterns (p)-->(q) WHERE p.entity_type = PERSON AS v",
         "GASL076 error PERSON: PERSON is neither a field of these patterns nor a quoted string",
         'FIND patterns (p)-->(q) WHERE p.entity_type = "PERSON" AS v'),
        ("FIND nodes WHERE name = Bob AS v", "GASL076 error Bob: Bob is neither a field of these nodes nor a quoted string", None),
        ("FIND nodes WHERE lower(name) = Ada AS v",
         "GASL076 error Ada: Ada is neither a field of these nodes nor a quoted string", None),
        ("FIND nodes WHERE NOT name = Bob AS v",
         "GASL076 error Bob: Bob is neither a field of these nodes nor a quoted string", None),
        ("FIND nodes AS n\nCOUNT n BY name AS c\nSELECT c WHERE name = Ada AS v",
         "GASL076 error Ada: Ada is neither a field of these rows nor a quoted string", None),
        ("FIND nodes AS PERSON\nFIND nodes WHERE entity_type = PERSON AS v",
         "GASL076 error PERSON: PERSON is neither a field of these nodes nor a quoted string", None),
    ],
)  # fmt: skip
def test_bare_names(text, expected, right):
    assert report(text) == [expected]
    assert fixed(text) == (right or text)
    if right:
        assert report(right) == []


def test_hints_about_bare_names():
    assert hints("FIND nodes WHERE name = Bob AS v") == ['write "Bob" for the text, or ${Bob} for a variable']
    assert hints("FIND nodes WHERE age > two AS v") == ['write a number, "two" for the text, or ${two} for a variable']
    assert hints("FIND nodes AS Bob\nFIND nodes WHERE name = Bob AS v") == [
        'write "Bob" for the text, or ${Bob} for the variable'
    ]
    assert "did you mean the field weight?" in hints("FIND edges WHERE weight > wieght * 1 OR weight = wieght AS v")


def test_without_a_graph_or_known_rows_a_bare_name_may_be_a_field():
    assert report("FIND nodes WHERE country = uk AS v", None) == []
    assert report("SELECT g WHERE country = uk AS v") == []
    assert [line[:7] for line in report("COUNT g BY country AS c\nSELECT c WHERE country = uk AS v", None)] == [
        "GASL076"
    ]


def test_a_list_has_only_constants():
    text = "FIND nodes WHERE age IN (30, degree) AS v"
    assert report(text) == ["GASL007 error degree: degree is a field, but a list can contain only constants"]
    assert "to compare two fields, write age = degree, joined to the rest with OR" in hints(text)
    assert fixed("FIND nodes WHERE entity_type IN (PERSON) AS v") == 'FIND nodes WHERE entity_type IN ("PERSON") AS v'


# Fields on both sides, and inside of calls and lists


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ("FIND nodes WHERE 30 < agee AS v", None, None),
        ("FIND nodes WHERE LEN (agee) > 3 AS v", "GASL070 error (agee): no node has an attribute agee",
         "FIND nodes WHERE LEN (age) > 3 AS v"),
        ("FIND nodes WHERE 2 * agee > 3 AS v", "GASL070 error agee: no node has an attribute agee",
         "FIND nodes WHERE 2 * age > 3 AS v"),
        ("FIND nodes WHERE age > abs(agee) AS v", "GASL070 error agee: no node has an attribute agee",
         "FIND nodes WHERE age > abs(age) AS v"),
        ("FIND nodes WHERE coalesce(agee, 3) = 3 AS v", "GASL070 warning agee: no node has an attribute agee",
         "FIND nodes WHERE coalesce(age, 3) = 3 AS v"),
        ("FIND nodes WHERE if(agee > 3, 1, 2) = 1 AS v", "GASL070 warning agee: no node has an attribute agee",
         "FIND nodes WHERE if(age > 3, 1, 2) = 1 AS v"),
        ("FIND edges WHERE source.age > target.agee AS v", "GASL070 error target.agee: no node has an attribute agee",
         "FIND edges WHERE source.age > target.age AS v"),
        ("FIND nodes ORDER BY -agee AS v", "GASL070 error agee: no node has an attribute agee", "FIND nodes ORDER BY -age AS v"),
        ("FIND nodes LIMIT 3 PER naem AS v", "GASL070 error naem: no node has an attribute naem",
         "FIND nodes LIMIT 3 PER name AS v"),
        ("FIND nodes AS n\nRANK n BY age LIMIT 3 PER lower(naem) AS v", "GASL070 error naem: no node has an attribute naem",
         "FIND nodes AS n\nRANK n BY age LIMIT 3 PER lower(name) AS v"),
        ("FIND nodes AS n\nSELECT n FIELDS lower(naem) AS low AS v", "GASL070 error naem: no node has an attribute naem",
         "FIND nodes AS n\nSELECT n FIELDS lower(name) AS low AS v"),
        ("FIND nodes AS n\nAGGREGATE n BY entity_type COMPUTE sum(if(agee > 3, 1, 0)) AS s AS v",
         "GASL070 warning agee: no node has an attribute agee",
         "FIND nodes AS n\nAGGREGATE n BY entity_type COMPUTE sum(if(age > 3, 1, 0)) AS s AS v"),
        ("FIND nodes AS n\nUNNEST n BY tagz AS v", "GASL070 error tagz: no node has an attribute tagz",
         "FIND nodes AS n\nUNNEST n BY tags AS v"),
        ("FIND nodes AS n\nJOIN n WITH n ON lower(name) = lower(naem) AS v", "GASL070 error naem: no node has an attribute naem",
         "FIND nodes AS n\nJOIN n WITH n ON lower(name) = lower(name) AS v"),
        ("FIND paths FROM (id = 'a') TO (id = 'b') SHORTEST BY 1 / wieght AS v",
         "GASL070 error wieght: no edge has an attribute wieght",
         "FIND paths FROM (id = 'a') TO (id = 'b') SHORTEST BY 1 / weight AS v"),
        ("MEASURE graph USING pagerank BY wieght AS v", "GASL070 error wieght: no edge has an attribute wieght",
         "MEASURE graph USING pagerank BY weight AS v"),
        ("FIND edges AS e\nMEASURE graph ON e USING degree BY wieght AS v", "GASL070 error wieght: no edge has an attribute wieght",
         "FIND edges AS e\nMEASURE graph ON e USING degree BY weight AS v"),
        ("FIND edges AS e\nSELECT e WHERE source.agee > 3 AS v", "GASL070 error source.agee: no node has an attribute agee",
         "FIND edges AS e\nSELECT e WHERE source.age > 3 AS v"),
        ("FIND paths WHERE INCREASING edge.wieght AS v", "GASL070 error edge.wieght: no edge has an attribute wieght",
         "FIND paths WHERE INCREASING edge.weight AS v"),
        ("FIND nodes AS n\nCOUNT n BY name AS c\nSELECT c FIELDS cuont / 2 AS half AS v",
         "GASL073 error cuont: the rows of c have no field cuont",
         "FIND nodes AS n\nCOUNT n BY name AS c\nSELECT c FIELDS count / 2 AS half AS v"),
        ("FIND nodes AS n\nCOUNT n BY name AS c\nSELECT c WHERE 2 * cuont > 3 AS v",
         "GASL073 error cuont: the rows of c have no field cuont",
         "FIND nodes AS n\nCOUNT n BY name AS c\nSELECT c WHERE 2 * count > 3 AS v"),
    ],
)  # fmt: skip
def test_fields_anywhere(text, expected, right):
    if expected is None:
        expected = "GASL076 error agee: agee is neither a field of these nodes nor a quoted string"
        assert report(text) == [expected]
        return
    assert report(text) == [expected]
    assert fixed(text) == right
    assert report(right) == []


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ("FIND nodes WHERE 'x' < age AS v", "GASL014", None),
        ("FIND nodes WHERE true = age AS v", "GASL072 error true: age is always a number, never a boolean", None),
        ("FIND nodes WHERE if(age > '30', 1, 2) = 1 AS v", "GASL072 warning '30': age is always a number, never a string",
         "FIND nodes WHERE if(age > 30, 1, 2) = 1 AS v"),
        ("FIND nodes AS n\nSELECT n FIELDS if(entity_type = 'Person', 1, 0) AS p AS v",
         "GASL071 warning 'Person': entity_type is never \"Person\"",
         'FIND nodes AS n\nSELECT n FIELDS if(entity_type = "PERSON", 1, 0) AS p AS v'),
        ("FIND edges AS e\nSELECT e WHERE source.entity_type = 'Person' AS v",
         "GASL071 warning 'Person': entity_type is never \"Person\"",
         'FIND edges AS e\nSELECT e WHERE source.entity_type = "PERSON" AS v'),
        ("FIND nodes WHERE 30 < age AND age < 20 AS v", "GASL065 warning age < 20: age < 20 contradicts 30 < age", None),
        ("FIND nodes WHERE -1 > LEN tags AS v", "GASL065 warning -1 > LEN tags: LEN is never < -1", None),
        ("FIND nodes WHERE age = age AS v", "GASL065 warning age = age: age is compared with itself", None),
        ("FIND nodes AS n\nSELECT n FIELDS if(age > 3 AND age < 2, 1, 2) AS p AS v",
         "GASL065 warning age < 2: age < 2 contradicts age > 3", None),
        ("FIND nodes WHERE if(name MATCHES '(', 1, 2) = 1 AS v", "GASL067", None),
        ("FIND nodes WHERE name MATCHES entity_type AS v",
         "GASL067 error entity_type: MATCHES takes a pattern in quotes, but entity_type is a field", None),
        ("FIND nodes WHERE name MATCHES lower(name) AS v",
         "GASL067 error lower(name): MATCHES takes a pattern in quotes, but lower(name) is computed", None),
        ("FIND nodes WHERE 1 + 1 = 2 AS v", "GASL080 error 1 + 1 = 2: two constants are compared", None),
        ("FIND nodes WHERE 'name' IN ('Ada') AS v", "GASL080 error 'name' IN ('Ada'): two constants are compared", None),
        ("FIND nodes WHERE lower('x') IS NULL AS v", "GASL080 error lower('x') IS NULL: a constant is tested for null", None),
    ],
)  # fmt: skip
def test_conditions_with_values(text, expected, right):
    told = report(text)
    assert told == [expected] or (len(told) == 1 and told[0].startswith(f"{expected} "))
    if right is not None:
        assert fixed(text) == right
        assert report(right) == []


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ("ASSERT 3 < a", "GASL068 error a: a is a field, but this condition has no item", None),
        (
            "ASSERT LEN (a) > 3",
            "GASL068 error (a): a is a field, but this condition has no item",
            "ASSERT LEN (${a}) > 3",
        ),
        (
            "ASSERT len(a) > 2",
            "GASL068 error (a): a is a field, but this condition has no item",
            "ASSERT len(${a}) > 2",
        ),
        ("ASSERT ${g} = PERSON", "GASL068 error PERSON: PERSON is a field, but this condition has no item", None),
        (
            "ASSERT ${g} > 2 * g",
            "GASL068 error g: g is a field, but this condition has no item",
            "ASSERT ${g} > 2 * ${g}",
        ),
        ("ASSERT COUNT(${g}) > 2", "GASL078 error COUNT: count is allowed only in AGGREGATE", "ASSERT LEN (${g}) > 2"),
    ],
)
def test_conditions_without_items(text, expected, right):
    assert report(text) == [expected]
    assert fixed(text) == (right or text)
    if right:
        assert [line for line in report(right) if "GASL050" not in line] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FIND nodes WHERE INCREASING edge.weight AS v",
         "GASL066 error INCREASING edge.weight: INCREASING compares the edges or nodes along a path, but this condition tests nodes"),
        ("FIND paths VIA INCREASING edge.weight AS v",
         "GASL066 error INCREASING edge.weight: INCREASING compares the edges or nodes along a path, but this condition tests edges"),
        ("FIND paths WHERE sum(edge.weight) > 3 AS v",
         "GASL066 error edge.weight: a path has several edges, so edge.weight is not a single value"),
        ("FIND paths WHERE length > node.age AS v",
         "GASL066 error node.age: a path has several nodes: node.age needs ANY, ALL or NONE"),
        ("FIND paths AS p\nSELECT p WHERE INCREASING node.age AS v",
         "GASL069 error node.age: node.age is not saved when the paths of a variable are stored"),
    ],
)  # fmt: skip
def test_paths(text, expected):
    assert report(text) == [expected]


def test_paths_whose_edges_increase():
    text = "FIND cycles VIA weight > 1 WHERE INCREASING edge.weight MAXLEN 5 AS loops\nSELECT loops WHERE INCREASING edge.weight AS v"
    assert report(text) == []


# Computed fields, which rows do not have


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("SELECT rows WHERE source.age > 3 AS v",
         "GASL069 error source.age: source.age is not stored with the rows of a variable: source is the id of a node"),
        ("RANK rows BY source.age AS v",
         "GASL069 error source.age: source.age is not stored with the rows of a variable: source is the id of a node"),
        ("SELECT rows WHERE degree > 3 AS v", "GASL073 error degree: the rows of rows have no field degree"),
        ("COUNT rows BY target.age AS v", None),
        ("SELECT rows WHERE source = 'a' AND t.age IS NULL AND source.id = 'a' AS v",
         "GASL069 warning t.age: t.age is not stored with the rows of a variable: t is the id of a node"),
    ],
)  # fmt: skip
def test_computed_fields_of_rows(command, expected):
    text = f"FIND edges AS e\nSELECT e FIELDS source, target AS t, target.age, weight AS rows\n{command}"
    assert report(text) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("made", "refused"),
    [
        ("JOIN e WITH e ON target AS rows", "source.age"),
        ("JOIN e WITH e ON target AS rows", "right.source.age"),
        ("CLASSIFY e BY 'q' INTO ('a', 'b') AS rows", "source.age"),
        ("COUNT e BY source AS rows", "source.age"),
        ("MEASURE graph USING bridges AS rows", "source.age"),
        ("FIND patterns (a)-[r]->(b) WHERE a.id < b.id AS p\nSELECT p FIELDS a.id AS account AS rows", "account.age"),
    ],
)
def test_ids_in_rows_have_no_fields(made, refused):
    told = report(f"FIND edges AS e\n{made}\nRANK rows BY {refused} AS v")
    assert [line.split(":")[0] for line in told if "GASL064" not in line] == [f"GASL069 error {refused}"]


def test_nested_items_have_their_fields():
    text = "FIND edges AS e\nFIND nodes AS n\nJOIN e WITH n AS payer ON source = id AS b\nRANK b BY payer.agee AS r"
    assert report(text) == ["GASL070 error payer.agee: no node has an attribute agee"]
    assert fixed(text).endswith("payer.age AS r")


# Functions


@pytest.mark.parametrize(
    ("value", "message", "right"),
    [
        ("toLower(name)", "unknown function toLower", "lower(name)"),
        ("Lower(name)", "unknown function Lower", "lower(name)"),
        ("loewr(name)", "unknown function loewr", "lower(name)"),
        ("name.lower()", "unknown function name.lower: GASL has no methods", "lower(name)"),
        ("name.split(' ')", "unknown function name.split: GASL has no methods", "split(name, ' ')"),
        ("size(tags)", "unknown function size", "LEN (tags)"),
        ("toFloat(name)", "unknown function toFloat", "number(name)"),
        ("ifnull(age, 1)", "unknown function ifnull", "coalesce(age, 1)"),
        ("IIF(age > 1, 1, 2)", "unknown function IIF", "if(age > 1, 1, 2)"),
        ("substr(name, 1, 2)", "unknown function substr", None),
        ("xyzzy(name)", "unknown function xyzzy", None),
        ("upr(name)", "unknown function upr", None),
        ("now()", "now() is not available: a program must give the same result each time", None),
        ("today()", "today() is not available: a program must give the same result each time", None),
        ("date()", "date() is not available: a program must give the same result each time", None),
        ("rand()", "rand() is not available: a program must give the same result each time", None),
        ("count(age)", "count is allowed only in AGGREGATE", None),
        ("avg(age)", "avg is allowed only in AGGREGATE, where it is called mean", None),
        ("stddev(age)", "stddev is allowed only in AGGREGATE, where it is called stdev", None),
        ("percentileCont(age, 0.5)", "percentileCont is allowed only in AGGREGATE, where it is called percentile", None),
        ("MAX(degree)", "MAX is allowed only in AGGREGATE", None),
        ("type(name)", "unknown function type", None),
    ],
)  # fmt: skip
def test_unknown_functions(value, message, right):
    for form in ("FIND nodes WHERE {} IS NOT NULL AS v", "FIND nodes AS n\nSELECT n FIELDS {} AS c AS v"):
        told = found(form.format(value))
        assert [(d.code, d.message) for d in told] == [("GASL078", message)]
        assert told[0].hints
        assert fixed(form.format(value)) == form.format(right or value)
        if right:
            assert report(form.format(right)) == []


def test_hints_about_functions():
    count = "FIND nodes AS n\nSELECT n WHERE count(age) > 3 AS v"
    assert hints(count) == [
        "compute it first: AGGREGATE n BY field COMPUTE count() AS n AS groups", "then SELECT groups WHERE n > 3 AS found",
    ]  # fmt: skip
    assert hints("FIND nodes AS n\nRANK n BY avg(age) AS v") == [
        "write AGGREGATE n BY field COMPUTE mean(age) AS mean AS groups"
    ]
    assert "PARAM today TEXT" in hints("FIND nodes WHERE name > now() AS v")[0]
    assert "SAMPLE" in hints("FIND nodes WHERE age > rand() AS v")[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sum(age)", "sum(age): sum with one argument takes a list, but age is a number"),
        ("max(name)", "max(name): max with one argument takes a list, but name is a string"),
        ("min(2 * age)", "min(2 * age): min with one argument takes a list, but 2 * age is a number"),
        ("sum(degree)", "sum(degree): sum with one argument takes a list, but degree is a number"),
        ("lower()", "lower(): wrong number of arguments for lower: 0"),
        ("replace(name, 'a')", "replace(name, 'a'): wrong number of arguments for replace: 2"),
        ("if(age > 3, 1)", "if(age > 3, 1): wrong number of arguments for if: 2"),
        ("if(active, 1, 2)", "active: the first argument of if is a condition, but active is a value"),
        ("if(age > 3, age > 4, 2)", "age > 4: age > 4 is a condition, but if takes a value here"),
        ("lower(age > 3)", "age > 3: age > 3 is a condition, but lower takes a value here"),
    ],
)
def test_arguments(value, expected):
    assert report(f"FIND nodes AS n\nSELECT n FIELDS {value} AS c AS v") == [f"GASL079 error {expected}"]


@pytest.mark.parametrize(
    "value", ["sum(tags)", "max(age, 3)", "min(mixed)", "sum(split(name, ' '))", "sum(address.x)", "max(attr.id, name)"]
)
def test_lists_may_be_added_up(value):
    assert report(f"FIND nodes AS n\nSELECT n FIELDS {value} AS c AS v") == []


def test_the_hint_about_a_sum_can_be_followed():
    (told,) = found("FIND nodes AS n\nSELECT n FIELDS sum(age) AS s AS v")
    command = told.hints[0].removesuffix(" computes it over all items")
    assert report(f"FIND nodes AS n\n{command}") == []


@pytest.mark.parametrize(
    ("share", "right"),
    [("95", "0.95"), ("99.5", "0.995"), ("1.5", "0.015"), ("-1", None), ("150", None), ("age", None), ("'x'", None)],
)
def test_shares_of_percentiles(share, right):
    text = f"FIND nodes AS n\nAGGREGATE n COMPUTE percentile(age, {share}) AS p AS v"
    assert [d.code for d in found(text)] == ["GASL092"]
    assert fixed(text) == (text.replace(f", {share})", f", {right})") if right else text)


@pytest.mark.parametrize("share", ["0", "1", "0.5", "${g}"])
def test_valid_shares(share):
    assert report(f"FIND nodes AS n\nAGGREGATE n COMPUTE percentile(age, {share}) AS p AS v") == []


# Columns


@pytest.mark.parametrize(
    ("text", "codes", "right"),
    [
        ("SELECT g FIELDS a, b AS a AS v", ["GASL060 error"], None),
        (
            "SELECT g FIELDS lower(a) AS a, lower(a) AS a AS v",
            ["GASL060 warning"],
            "SELECT g FIELDS lower(a) AS a AS v",
        ),
        ("COUNT g BY a, b, a AS v", ["GASL060 warning"], "COUNT g BY a, b AS v"),
        ("AGGREGATE g COMPUTE sum(a) AS x, mean(a) AS x AS v", ["GASL060 error"], None),
        ("RANK g BY a, b DESC, a DESC AS v", ["GASL060 warning"], "RANK g BY a, b DESC AS v"),
        ("SELECT g FIELDS a AS b, b AS a AS v", [], None),
        ("COUNT g BY a AS x, b AS x AS v", [], None),
    ],
)
def test_repeated_columns(text, codes, right):
    assert [f"{d.code} {d.severity}" for d in found(text)] == codes
    assert fixed(text) == (right or text)


def test_unnamed_columns_are_told_by_the_parser():
    assert [d.code for d in found("SELECT g FIELDS lower(a) AS key")] == ["GASL077"]
    assert found("SELECT g FIELDS lower(a) AS key AS rows") == []


@pytest.mark.parametrize(
    ("made", "columns"),
    [
        ("FIND patterns (a)-[r]->(b) WHERE a.id < b.id AS v", "a, r, b"),
        ("COUNT g BY a, b AS c\nUNNEST c BY a AS part AS v", "a, b, count, part"),
        ("FIND edges AS e\nCOUNT e BY source.name, count AS v", "source.name, by.count, count"),
        ("FIND edges AS e\nAGGREGATE e COMPUTE count(), percentile(weight, 0.5), sum(weight) AS s AS v", "count, percentile_weight, s"),
        ("FIND edges AS e\nSELECT e FIELDS weight / 2 AS half, source AS v", "half, source"),
        ("FIND edges AS e\nSELECT DISTINCT e FIELDS source AS v", "source"),
        ("FIND edges AS e\nFIND nodes AS n\nJOIN e WITH n AS payer ON source = id AS v", "source, target, relation, weight, closed, payer"),
        ("COUNT g BY a AS x\nCOUNT g BY b AS y\nLEFT JOIN x WITH y ON a = b AS v", "a, count, b, right.count"),
        ("COUNT g BY a AS x\nJOIN x WITH x ON a SIMILAR 0.5 AS v", "a, count, right.a, right.count, similarity"),
        ("MEASURE graph USING pagerank AS v", "id, pagerank"),
    ],
)  # fmt: skip
def test_columns_of_commands(made, columns):
    (told,) = [d for d in found(f"{made}\nRANK v BY zzzzzz AS w") if d.code == "GASL073"]
    assert told.hints[-1] == f"the fields are {columns}"


def test_unnested_items_have_the_fields_of_the_graph_and_the_element():
    text = "FIND edges AS e\nUNNEST e BY weight AS part AS v\nRANK v BY source.age, part, parrt AS w"
    assert report(text) == ["GASL070 error parrt: no edge has an attribute parrt"]
    assert fixed(text).endswith("source.age, part, part AS w")
    rows = "FIND edges AS e\nUNNEST e BY nodes AS source AS v\nRANK v BY target.age AS w"
    assert [line[:7] for line in report(rows)] == ["GASL070", "GASL069"]


@pytest.mark.parametrize("field", ["a.degree", "r.source.age"])
def test_items_inside_of_rows_have_computed_fields(field):
    made = "FIND patterns (a)-[r]->(b) WHERE a.degree > 2 AND r.source.age > 2 AS p"
    assert report(f"{made}\nSELECT p WHERE a.age > r.weight AND a.id = r.source AS v") == []
    assert report(f"{made}\nRANK p BY {field} AS v") == []
    assert report(f"{made}\nSELECT p FIELDS {field} AS x WHERE {field} > 2 AS v") == []


def test_a_multigraph_has_keys():
    text = "FIND edges AS e\nJOIN e WITH g AS x ON weight AS v\nRANK v BY zzzzzz AS w"
    assert "the fields are source, target, key, relation, weight, closed, x" in hints(text, evolve(PEOPLE, multi=True))
