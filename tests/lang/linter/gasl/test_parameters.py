"""What the linter says of parameters, and of the numbers and settings of searches and measures."""

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import PEOPLE


def found(text):
    return check(parse_gasl(text), schema=PEOPLE, variables=("g",))


def report(text):
    """Return "CODE severity text under the span: message" for each diagnostic."""
    program = parse_gasl(text)
    return [f"{d.code} {d.severity} {program.source.slice(d.span)}: {d.message}" for d in found(text)]


def fixed(text):
    return apply_edits(text, [edit for d in found(text) for edit in d.edits])


@pytest.mark.parametrize(
    "text",
    [
        "PARAM account TEXT\nPARAM least FLOAT = 5\nFIND edges WHERE source = ${account} AND weight >= ${least} AS t",
        "# before all\nPARAM n INT = 10 WITH_DESCRIPTION 'how many'\nFIND nodes LIMIT ${n} AS t\nSELECT t SAMPLE ${n} AS u",
        "PARAM ids LIST = null\nFIND nodes WHERE id IN ${ids} AS t",
        "PARAM ids LIST\nWALK ids DEPTH 2 AS t",
        "PARAM on BOOL = true\nFIND nodes WHERE active = ${on} AS t",
        "PARAM share FLOAT = 0.5\nAGGREGATE g COMPUTE percentile(age, ${share}) AS p AS t",
        "PARAM n INT = -3\nBRANCH IF ${n} > 3 THEN FIND nodes AS t ELSE FIND nodes LIMIT ${n} AS t",
        "COUNT g AS n\nFIND nodes LIMIT ${n} AS t",
        "FIND nodes LIMIT ${g.count} AS t\nFIND nodes LIMIT ${g} AS u",
    ],
)
def test_what_is_right(text):
    assert [line for line in report(text) if "GASL054" not in line] == []


def test_a_misplaced_parameter_is_moved():
    text = "# people\n#: all of them\nFIND nodes AS a\nPARAM n INT = 3\n\nRANK a BY age LIMIT ${n} AS b"
    right = "# people\nPARAM n INT = 3\n#: all of them\nFIND nodes AS a\n\nRANK a BY age LIMIT ${n} AS b"
    assert report(text) == ["GASL087 error PARAM n INT = 3: parameters must come before the first command"]
    assert fixed(text) == right
    assert report(right) == []


@pytest.mark.parametrize("other", ["INT = 4", "FLOAT = 3", "INT", "TEXT"])
def test_two_parameters_of_one_name_are_refused(other):
    text = f"PARAM n INT = 3\nPARAM n {other}\nFIND nodes WHERE age > ${{n}} AS a"
    assert report(text)[0] == "GASL098 error n: the parameter n is already declared in line 1"
    assert [line[:7] for line in report(text) if line[:7] not in ("GASL096", "GASL097", "GASL074")] == ["GASL098"]
    assert fixed(text) == text


def test_a_parameter_that_is_declared_twice_alike_is_removed_once():
    text = (
        "PARAM n INT = 3\nPARAM m INT\n#: again\nPARAM n INT = 3\nFIND nodes LIMIT ${n} AS a\nRANK a BY age + ${m} AS b"
    )
    right = "PARAM n INT = 3\nPARAM m INT\nFIND nodes LIMIT ${n} AS a\nRANK a BY age + ${m} AS b"
    assert report(text) == ["GASL098 error n: the parameter n is already declared in line 1"]
    assert fixed(text) == right
    assert report(right) == []


def test_a_parameter_declared_again_after_a_command_is_misplaced_too():
    text = "PARAM n INT = 3\nFIND nodes LIMIT ${n} AS a\nPARAM n INT = 4\nRANK a BY age LIMIT ${n} AS b"
    assert [line[:7] for line in report(text)] == ["GASL087", "GASL098"]


def test_several_misplaced_parameters_keep_their_order():
    text = (
        "FIND nodes AS a\n#: how many\nPARAM n INT = 3\nPARAM m INT\nRANK a BY age + ${m} LIMIT ${n} AS b\nPARAM k INT"
    )
    right = (
        "#: how many\nPARAM n INT = 3\nPARAM m INT\nPARAM k INT\nFIND nodes AS a\nRANK a BY age + ${m} LIMIT ${n} AS b"
    )
    assert fixed(text) == right
    assert [line[:7] for line in report(right)] == ["GASL088"]


@pytest.mark.parametrize(
    "text",
    [
        "TRY\nPARAM n INT = 3\nEND\nFIND nodes LIMIT ${n} AS a",
        "BRANCH IF ${g} > 3 THEN PARAM n INT ELSE PARAM n INT",
        "FIND nodes AS a\nPARAM n INT = 3  # why\nRANK a BY age LIMIT ${n} AS b",
    ],
)
def test_a_parameter_inside_another_command_is_not_moved(text):
    assert "GASL087" in {d.code for d in found(text)}
    assert fixed(text) == text


def test_unused_parameters():
    assert report("PARAM n INT\nFIND nodes AS a") == ["GASL088 warning n: no command reads the parameter n"]
    assert "GASL088" not in "".join(report("PARAM n INT\nFIND noes LIMIT ${n} AS a")), "a command could not be read"


@pytest.mark.parametrize(
    ("default", "right"),
    [
        ('INT = "30"', "INT = 30"), ("INT = 30.0", "INT = 30"), ("INT = 30.5", None), ('INT = "x"', None), ("INT = true", None),
        ('FLOAT = "30.5"', "FLOAT = 30.5"), ('FLOAT = "3"', "FLOAT = 3"), ("FLOAT = false", None), ("TEXT = 30", 'TEXT = "30"'),
        ("TEXT = 1.50", 'TEXT = "1.50"'), ("TEXT = true", 'TEXT = "true"'), ('BOOL = "True"', "BOOL = true"), ("BOOL = 1", None),
        ("LIST = 3", None), ('LIST = "a"', None),
    ],
)  # fmt: skip
def test_defaults(default, right):
    text = f"PARAM p {default}\nASSERT ${{p}} IS NOT NULL"
    assert [(d.code, d.severity) for d in found(text)] == [("GASL089", "error")]
    assert fixed(text) == (text if right is None else f"PARAM p {right}\nASSERT ${{p}} IS NOT NULL")
    if right is not None:
        assert report(fixed(text)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("FIND nodes AS a\nFIND nodes LIMIT ${a} AS b", "LIMIT takes a whole number, but a is a list of nodes"),
        ("FIND edges AS a\nSELECT a SAMPLE ${a} AS b", "SAMPLE takes a whole number, but a is a list of edges"),
        ("COUNT g BY x AS a\nWALK g DEPTH ${a} AS b", "DEPTH takes a whole number, but a is a list of rows"),
        ("ANALYZE k USING 'x' AS a\nFIND paths MAXLEN ${a} AS b", "MAXLEN takes a whole number, but a is an object"),
        ("PARAM a TEXT\nRANK g BY x LIMIT ${a} PER y AS b", "LIMIT takes a whole number, but a is a parameter of the type TEXT"),
        ("PARAM a FLOAT\nFIND cycles LIMIT ${a} AS b", "LIMIT takes a whole number, but a is a parameter of the type FLOAT"),
        ("FIND nodes AS a\nMEASURE graph ON a USING degree AS b",
         "MEASURE ... ON takes edges, paths or rows with source and target, but a is a list of nodes"),
        ("COUNT g BY x AS a\nMEASURE graph ON a USING degree AS b",
         "MEASURE ... ON takes edges, paths or rows with source and target, but a is a list of rows without source and target"),
        ("PARAM a INT\nCOUNT a AS b", "COUNT takes a list of items, but a is a number"),
    ],
)  # fmt: skip
def test_kinds_of_variables(text, message):
    assert [(d.code, d.message) for d in found(text)] == [("GASL059", message)]


@pytest.mark.parametrize(
    "made", ["FIND edges AS e", "FIND paths AS e", "AGGREGATE g BY a AS source, b AS target COMPUTE count() AS e"]
)
def test_what_is_measured_as_a_graph(made):
    assert report(f"{made}\nMEASURE graph ON e USING degree AS d") == []
    assert report(f"FIND nodes AS n\n{made}\nMEASURE n ON e USING degree AS d") == []


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("-1", "the cost of every edge is -1, but shortest paths need costs of 0 or greater"),
        ("1 - 2.5", "the cost of every edge is -1.5, but shortest paths need costs of 0 or greater"),
        ('"weight"', 'a cost must be a number, but "weight" is the string "weight"'),
        ("1 / 0", "a cost must be a number, but 1 / 0 is null"),
        ("0", None),
        ("1 / (1 + weight)", None),
        ("-weight", None),
        ("${g}", None),
    ],
)
def test_costs(cost, message):
    text = f"FIND paths FROM (name = 'Ada') TO (name = 'Bo') SHORTEST 2 BY {cost} AS ways"
    assert [(d.code, d.message) for d in found(text)] == ([("GASL090", message)] if message else [])


@pytest.mark.parametrize(
    ("algorithm", "message", "right"),
    [
        ("pagerank(dampning = 0.5)", "pagerank has no setting dampning", "pagerank(damping = 0.5)"),
        ("pagerank(pagerank = 0.5)", "pagerank has no setting pagerank", None),
        ("degree(damping = 0.5)", "degree has no setting damping", None),
        ("pagerank(damping = 1.5)", "damping of pagerank takes a number from 0 to 1, not 1.5", None),
        ('pagerank(damping = "x")', 'damping of pagerank takes a number from 0 to 1, not "x"', None),
        ('communities(method = "louvan", resolution = 2)',
         'method of communities takes "louvain" or "leiden" or "label_propagation", not "louvan"',
         'communities(method = "louvain", resolution = 2)'),
        ("communities(resolution = true)", "resolution of communities takes a number from 0 to 1000, not true", None),
        ('communities(method = "leiden", resolution = 0.5)', None, None),
        ("pagerank(damping = 0)", None, None),
    ],
)  # fmt: skip
def test_settings_of_measures(algorithm, message, right):
    text = f"MEASURE graph USING {algorithm} AS m"
    assert [(d.code, d.message) for d in found(text)] == ([("GASL091", message)] if message else [])
    assert fixed(text) == (f"MEASURE graph USING {right} AS m" if right else text)


def test_samples():
    assert report("SELECT g SAMPLE 0 AS v") == ["GASL075 warning 0: SAMPLE 0 takes no items"]
    assert report("SELECT g SAMPLE 3 AS v") == []


@pytest.mark.parametrize(
    ("made", "useless"),
    [
        ("FIND nodes AS v", True), ("FIND edges AS v", True), ("WALK g AS v", True), ("FIND paths AS v", True),
        ("FIND nodes AS n\nUNNEST n BY tags AS v", False), ("COUNT g BY x AS v", False),
        ("FIND nodes AS n\nUNION n WITH n ON age AS v", False),
    ],
)  # fmt: skip
def test_distinct_items(made, useless):
    told = found(f"{made}\nSELECT DISTINCT v AS w")
    assert [(d.code, d.severity) for d in told] == ([("GASL093", "warning")] if useless else [])
    assert "GASL093" not in [d.code for d in found(f"{made}\nSELECT DISTINCT v FIELDS source AS w")]
