"""What single rules say without a graph: messages, places and fixes."""

import pytest
from knotwork.lang.catalogue.schema import Attribute, Schema
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.gasl import check
from knotwork.lang.parse.gasl import parse_gasl
from support.gasl_schema import PEOPLE


def report(text, **options):
    """Return "CODE text under the span: message" for each diagnostic."""
    program = parse_gasl(text)
    return [f"{d.code} {program.source.slice(d.span)}: {d.message}" for d in check(program, **options) if d.span]


def codes(text, **options):
    return [d.code for d in check(parse_gasl(text), **options)]


def fixed(text, **options):
    return apply_edits(text, [edit for d in check(parse_gasl(text), **options) for edit in d.edits])


def hints(text, **options):
    return [hint for d in check(parse_gasl(text), **options) for hint in d.hints]


# Conditions


@pytest.mark.parametrize(
    ("via", "expected"),
    [
        ("NOT closed = true", ["to follow them, write (closed IS NULL OR NOT closed = true)"]),
        ("weight > 1 AND closed != true", ["to follow them, write (closed IS NULL OR closed != true)"]),
        ("NOT (weight > 1 OR closed = true)", ["to follow them, add OR closed IS NULL to the condition"]),
        ("closed NOT IN (true)", ["to follow them, write (closed IS NULL OR closed NOT IN (true))"]),
        ("NOT closed != true", []),
        ("NOT NOT closed = true", []),
        ("closed = true", []),
        ("NOT weight > 1", []),
        ("closed IS NULL OR NOT closed = true", []),
    ],
)
def test_a_negated_test_in_via_says_which_edges_are_not_followed(via, expected):
    assert hints(f"FIND paths VIA {via} AS ways", schema=PEOPLE) == expected
    assert codes(f"FIND nodes AS x\nWALK x VIA {via} AS y", schema=PEOPLE) == ["GASL100"] * len(expected)


# Variables


@pytest.mark.parametrize(
    "text",
    [
        "TRY\nFIND nodes AS a\nEND\nCOUNT a AS n",
        "TRY\nFIND nodes AS a\nCATCH ANY\nCOUNT a AS n\nFINALLY\nCOUNT a AS m\nEND\nCOUNT a AS k",
        "TRY\nRESET x\nCATCH ANY\nASSERT ${error.message} CONTAINS 'x' AND ${error.status} = 'error'\nEND",
        "FIND nodes AS a\nBRANCH IF LEN ${a} > 0 THEN COUNT a AS n ELSE COUNT a AS m\nCOUNT n AS k",
        "FIND nodes AS a\nON EMPTY a THEN FIND edges AS b\nCOUNT b AS n",
        "FIND nodes AS a\nON EMPTY a THEN FIND edges AS a\nON PARTIAL a THEN RESET k\nWALK a AS b",
        "COUNT given AS n\nFIND nodes WHERE id IN ${given.id} AS m",
        "FIND nodes AS a\nSELECT a WHERE x = 1 AS a\nRANK a BY x AS a",
        "FIND nodes AS a\nREQUIRE EXISTS a\nFIND nodes AS a",
        "FIND nodes AS a\nON EMPTY a THEN RESET k\nFIND nodes AS a\nCOUNT a AS n",
        "FIND nodes AS nodes\nFIND edges AS edges",
    ],
)
def test_what_may_be_bound_is_no_fault(text):
    assert codes(text, variables=("given",)) == (["GASL059"] if text.endswith("COUNT n AS k") else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FIND nodes AS a\nWALK b AS c", ["GASL050 b: the variable b is not bound"]),
        ("ASSERT ${a.b} = 1", ["GASL050 ${a.b}: the variable a is not bound"]),
        ("ON EMPTY a THEN RESET k", ["GASL050 a: the variable a is not bound"]),
        ("REQUIRE EXISTS a", ["GASL050 a: the variable a is not bound"]),
        ("FIND paths FROM a TO (id = ${b}) AS p",
         ["GASL050 a: the variable a is not bound", "GASL050 ${b}: the variable b is not bound"]),
        ("ASSERT ${error.message} = 'x'", ["GASL050 ${error.message}: the variable error is not bound"]),
        ("EXPLAIN FIND nodes AS a\nCOUNT a AS n",
         ["GASL051 a: the variable a is bound in line 1, which has no effect on this command"]),
        ("BRANCH IF ${x} = 1 THEN FIND nodes AS a ELSE COUNT a AS n",
         ["GASL051 a: the variable a is bound in line 1, which has no effect on this command"]),
        ("COUNT a AS n\n\nFIND nodes AS a", ["GASL051 a: the variable a is used before it is bound in line 3"]),
        ("WALK a AS a", ["GASL051 a: the variable a is bound only by this command itself"]),
        ("FIND nodes AS a\nFIND edges AS a",
         ["GASL052 a: the variable a is overwritten before its value from line 1 is read"]),
        ("FIND nodes AS a\nRESET k\nON EMPTY a THEN RESET k\nON ERROR a THEN RESET k",
         ["GASL053 a: this ON does not directly follow the command in line 1 that binds a"] * 2),
        ("FIND nodes AS end", ["GASL054 end: the variable end has the name of a keyword"]),
    ],
)  # fmt: skip
def test_variables(text, expected):
    assert report(text, variables=("x",)) == expected


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (
            "FIND nodes AS people\nASSERT LEN ${ poeple.name } > 0",
            "FIND nodes AS people\nASSERT LEN ${ people.name } > 0",
        ),
        ("FIND nodes AS `my people`\nCOUNT `my poeple` AS n", "FIND nodes AS `my people`\nCOUNT `my people` AS n"),
        ("FIND nodes AS People\nCOUNT people AS n", "FIND nodes AS People\nCOUNT People AS n"),
    ],
)
def test_names_are_put_right(text, right):
    assert fixed(text) == right


def test_a_key_is_no_variable():
    text = "DECLARE people AS LIST\nCOUNT people AS n"
    assert "people is a key of the state; commands read variables, ANALYZE reads keys" in hints(text)
    assert "the variables are given" in hints("COUNT people AS n", variables=("given",))
    assert "bind it first: FIND nodes AS people" in hints("COUNT people AS n")


def test_what_could_not_be_read_may_bind():
    assert "GASL050" not in codes("FIND noes AS people\nCOUNT people AS n")
    assert "GASL050" in codes("FIND noes AS people\nCOUNT others AS n")


# Keys


def test_undeclared_keys():
    text = "FIND nodes AS a\n#: keep\nUPDATE x.y WITH a\nUPDATE x.y WITH a\nCOUNT a AS n\n  UPDATE n WITH n\nRESET q"
    assert report(text) == [], "nothing is known of the state"
    assert report(text, state={}) == [
        "GASL055 x.y: the key x.y is not declared",
        "GASL055 n: the key n is not declared",
        "GASL055 q: the key q is not declared",
    ]
    assert fixed(text, state={"x": "DICT"}) == (
        "FIND nodes AS a\nDECLARE x.y AS LIST\n#: keep\nUPDATE x.y WITH a\nUPDATE x.y WITH a\nCOUNT a AS n\n"
        "  DECLARE n AS COUNTER\n  UPDATE n WITH n\nRESET q"
    )
    assert report(fixed(text, state={}), state={}) == ["GASL055 q: the key q is not declared"], "its type is not known"
    assert [d.severity for d in check(parse_gasl("DECLARE a AS LIST\nRESET b"))] == ["warning"]
    assert [d.severity for d in check(parse_gasl("DECLARE a AS LIST\nRESET b"), state={})] == ["error"]


def test_parents_are_declared_too():
    text = "DECLARE a.b.c AS LIST\nANALYZE z USING 'x' AS y"
    assert report(text) == ["GASL055 a.b.c: the parent key a.b is not declared", "GASL055 z: the key z is not declared"]
    assert fixed(text).startswith("DECLARE a AS DICT\nDECLARE a.b AS DICT\nDECLARE a.b.c AS LIST\n")
    assert report("DECLARE a.b AS LIST", state={"a": "COUNTER"}) == [
        "GASL057 a.b: a is a COUNTER, but only a DICT can contain keys"
    ]


def test_misspelt_keys():
    assert (
        fixed("RESET network.autors", state={"network": "DICT", "network.authors": "LIST"}) == "RESET network.authors"
    )
    assert (
        fixed("RESET netwrk.authors", state={"network": "DICT", "network.authors": "LIST"}) == "RESET network.authors"
    )


def test_a_key_keeps_its_type():
    assert report("DECLARE a AS LIST\nDECLARE a AS list") == []
    assert report("DECLARE a AS LIST", state={"a": "COUNTER"}) == [
        "GASL056 a: the key a is already declared as COUNTER in the state, not as LIST"
    ]
    assert fixed("DECLARE a AS LIST\nDECLARE a AS DICT") == "DECLARE a AS LIST\nDECLARE a AS LIST"


FITS = {
    "LIST": {"nodes", "edges", "paths", "rows", "counts", "answer", "subgraph"},
    "DICT": {"answer", "subgraph"},
    "COUNTER": {"number", "counts"},
}
MADE = {
    "nodes": "FIND nodes AS v",
    "edges": "FIND edges AS v",
    "paths": "FIND paths FROM (id = 'a') TO (id = 'b') AS v",
    "rows": "AGGREGATE a BY x COMPUTE sum(y), mean(y) AS v",
    "counts": "COUNT a BY x AS v",
    "number": "COUNT a AS v",
    "answer": "ANALYZE k USING 'x' AS v",
    "subgraph": "SUBGRAPH a RADIUS 1 AS v",
}


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("made", MADE)
def test_what_goes_into_a_key(kind, made):
    text = f"{MADE[made]}\nUPDATE k WITH v"
    assert codes(text, state={"k": kind}, variables=("a",)) == ([] if made in FITS[kind] else ["GASL058"])


# What commands are given


@pytest.mark.parametrize("command", ["SELECT v FIELDS x AS w", "SELECT v WHERE x = 1 AS w", "RANK v BY x AS w", "WALK v AS w",
                                     "PROCESS v USING 'x' AS w", "UNION v WITH v AS w", "MEASURE v USING degree AS w",
                                     "FIND paths FROM v TO v AS w", "COUNT v AS w"])  # fmt: skip
def test_a_number_has_no_items(command):
    assert "GASL059" in codes(f"COUNT a AS v\n{command}", variables=("a",))


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        ("nodes", True),
        ("edges", True),
        ("paths", True),
        ("rows", False),
        ("counts", False),
        ("answer", False),
        ("subgraph", True),
    ],
)
def test_what_stands_for_nodes(made, fits):
    found = codes(f"{MADE[made]}\nWALK v AS w", variables=("a",), state={"k": "LIST"})
    assert ("GASL059" not in found) == fits


def test_fields_of_rows():
    text = "COUNT a BY kind AS v\nRANK v BY cuont DESC AS w\nSELECT w WHERE kind = 1 AS x\nCOUNT x BY kinds AS y"
    assert report(text, variables=("a",)) == [
        "GASL073 cuont: the rows of v have no field cuont",
        "GASL073 kinds: the rows of x have no field kinds",
    ]
    assert fixed(text, variables=("a",)) == text.replace("cuont", "count").replace("kinds", "kind")
    assert codes("AGGREGATE a BY count COMPUTE count(), sum(x.y) AS v\nSELECT v FIELDS `by.count`, count, `sum_x.y` AS w",
                 variables=("a",)) == []  # fmt: skip
    assert codes("JOIN a WITH a ON id AS v\nSELECT v FIELDS anything AS w", variables=("a",)) == []


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("SELECT j FIELDS source, weight, right.weight, right.target AS x", []),
        ("SELECT j WHERE right.weight > 3 AND right.sourse IS NULL AS x", ["GASL073 right.sourse"]),
        ("RANK j BY right.source AS x", ["GASL073 right.source"]),
        ("AGGREGATE j BY source COMPUTE sum(right.wieght) AS x", ["GASL073 right.wieght"]),
        ("COUNT j BY relation AS x", []),
        ("JOIN j WITH a ON source AS k\nRANK k BY right.right.weight AS x", []),
        ("JOIN j WITH a ON source AS k\nRANK k BY right.right.right.weight AS x", ["GASL073 right.right.right.weight"]),
        ("CLASSIFY j BY 'q' INTO ('y', 'n') AS k\nSELECT k FIELDS label, right.weight, lable AS x", ["GASL073 lable"]),
        ("UNION j WITH j AS k\nCOUNT k BY wait AS x", ["GASL073 wait"]),
        ("EXCEPT j WITH a AS k\nCOUNT k BY wait AS x", ["GASL073 wait"]),
    ],
)
def test_fields_of_joined_rows(use, found):
    text = f"FIND edges AS a\nJOIN a WITH a ON source AS j\n{use}"
    schema = Schema(False, False, 2, 1, {}, {"weight": Attribute("weight", 1, {"integer": 1}),
                                             "relation": Attribute("relation", 1, {"text": 1})})  # fmt: skip
    program = parse_gasl(text)
    told = [d for d in check(program, schema=schema) if d.code in ("GASL070", "GASL073")]
    assert [f"{d.code} {program.source.slice(d.span)}" for d in told] == found
    assert all(hint.startswith("the fields are source, target, weight") for d in told for hint in d.hints[-1:])


def test_fields_listed_twice():
    assert fixed("FIND nodes ORDER BY a, b, a DESC AS v") == "FIND nodes ORDER BY a, b AS v"
    text = "AGGREGATE a BY x COMPUTE sum(y), sum(y), mean(y) AS v"
    assert fixed(text, variables=("a",)) == "AGGREGATE a BY x COMPUTE sum(y), mean(y) AS v"


# Settings and numbers


@pytest.mark.parametrize(
    ("text", "message", "right"),
    [
        ("SET max_paths = 3", "unknown setting max_paths", "SET adapter.caps.max_paths = 3"),
        ("SET foo = 3", "unknown setting foo", None),
        ("SET llm.max_tokens = '20'", "llm.max_tokens takes a whole number, not a string", "SET llm.max_tokens = 20"),
        ("SET llm.max_tokens = 2.0", "llm.max_tokens takes a whole number, not 2.0", "SET llm.max_tokens = 2"),
        ("SET llm.max_tokens = 0", "llm.max_tokens takes a whole number from 1 to 1,000,000, not 0", None),
        ("SET llm.temperature = true", "llm.temperature takes a number, not true", None),
        ("SET llm.temperature = null", "llm.temperature takes a number, not null", None),
        ("SET llm.model = 3", "llm.model takes a string, not a number", None),
        ('SET llm.model = "smal"', "the host does not offer the model smal", 'SET llm.model = "small"'),
        ("SET adapter.caps.max_paths = 101", "adapter.caps.max_paths may be at most 100 here, not 101",
         "SET adapter.caps.max_paths = 100"),
        ("SET adapter.caps.timeout_s = 61", "adapter.caps.timeout_s may be at most 60.5 here, not 61",
         "SET adapter.caps.timeout_s = 60.5"),
        ('FIND nodes WHERE a = "LIMIT 2000" LIMIT 2000 AS v', "LIMIT 2,000 is above the limit max_results, which is 1,000",
         None),
        ('FIND patterns (a {id: "LIMIT 2000"})-->(b) LIMIT 2000 AS v', "LIMIT 2,000 is above the limit max_results, which is 1,000",
         'FIND patterns (a {id: "LIMIT 2000"})-->(b) LIMIT 1000 AS v'),
        ("FIND cycles LIMIT 101 AS v", "LIMIT 101 is above the limit max_paths, which is 100", "FIND cycles LIMIT 100 AS v"),
        ("FIND paths MAXLEN 9 WHERE length > 1 AS p", "MAXLEN 9 is above the limit max_path_length, which is 8",
         "FIND paths MAXLEN 8 WHERE length > 1 AS p"),
        ("WALK a DEPTH 0 AS v", "DEPTH 0 reaches no other node", None),
        ("MEASURE a USING `page rank` AS v", "unknown algorithm page rank", None),
        ("MEASURE degree USING degre AS v", "unknown algorithm degre", "MEASURE degree USING degree AS v"),
    ],
)  # fmt: skip
def test_settings_and_numbers(text, message, right):
    ceiling = {"adapter.caps.max_path_length": 8, "max_results": 1000, "max_paths": 100, "timeout_s": 60.5}
    options = {"ceiling": ceiling, "models": ("small", "large"), "variables": ("a", "degree")}
    (found,) = check(parse_gasl(text), **options)
    assert found.message == message
    assert right is None or fixed(text, **options) == right


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("FIND paths MAXLEN 9 AS v", "the search finds paths of at most 8 edges; if longer ones may exist, its status is partial"),
        ("FIND cycles LIMIT 101 AS v", "the search stops after 100 cycles; if more may exist, its status is partial"),
        ("FIND patterns (a)-->(b) LIMIT 1001 AS v", "the search stops after 1,000 rows; if more may exist, its status is partial"),
        ("FIND edges LIMIT 1001 AS v", "the variable may hold more items, but at most 1,000 of them are shown, stored or sent to a model"),
        ("WALK a DEPTH 99 AS v", None),
        ("SUBGRAPH a RADIUS 99 AS v", None),
        ("FIND paths SHORTEST MAXLEN 99 AS v", None),
    ],
)  # fmt: skip
def test_a_number_above_a_limit_is_told_as_the_executor_treats_it(text, hint):
    ceiling = {"max_path_length": 8, "max_results": 1000, "max_paths": 100}
    told = check(parse_gasl(text), ceiling=ceiling, variables=("a",))
    assert [each.hints for each in told if each.code == "GASL063"] == ([] if hint is None else [(hint,)])


def test_the_engine_says_what_it_measures():
    assert codes("MEASURE graph USING modularity AS v") == ["GASL064"]
    assert codes("MEASURE graph USING modularity AS v", measures=("modularity",)) == []


# Conditions


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a IN ()", "IN with an empty list is never true"),
        ("a NOT IN (1, null)", "NOT IN with null in the list is never true"),
        ("a IN (null)", "IN with null in the list is never true"),
        ("a STARTS_WITH 3", "STARTS_WITH takes a string, not a number"),
        ("a = 1 AND a = 2", "a = 2 contradicts a = 1"),
        ("a = 1 AND b = 2 AND a > 1", "a > 1 contradicts a = 1"),
        ("a IN (1, 2) AND a = 3", "a = 3 contradicts a IN (1, 2)"),
        ("a < 2 AND a >= 2", "a >= 2 contradicts a < 2"),
        ('a = "x" AND a STARTS_WITH "y"', 'a STARTS_WITH "y" contradicts a = "x"'),
        ("a IS NULL AND a != 1", "a != 1 contradicts a IS NULL"),
        ("a IS NULL AND a IS NOT NULL", "a IS NOT NULL contradicts a IS NULL"),
        ("b = 1 OR (a > 5 AND NOT b = 1 AND a < 3)", "a < 3 contradicts a > 5"),
    ],
)
def test_never_true(condition, message):
    assert [d.message for d in check(parse_gasl(f"FIND nodes WHERE {condition} AS v"))] == [message]


@pytest.mark.parametrize(
    "condition",
    ["a = 1 OR a = 2", "a = 1 AND a = 1.0", "a >= 2 AND a <= 2", "a > 1 AND a < 2", "a NOT IN (1, 2) AND a = 3", "NOT a = 1 AND a = 1",
     "a CONTAINS 1 AND a CONTAINS 2", "a != 1 AND a != 2", "a = ${g} AND a = 1", "a IN (1, null)", 'a > "x" AND a < 3',
     "a IS NOT NULL AND a = 1", "a.b = 1 AND a.c = 2", "source.a = 1 AND target.a = 2", 'a = "x" AND a MATCHES "^y"'],
)  # fmt: skip
def test_what_may_be_true(condition):
    assert codes(f"FIND edges WHERE {condition} AS v", variables=("g",)) == []


def test_quantified_fields_differ_from_node_to_node():
    assert codes("FIND paths WHERE ANY node.a = 1 AND ANY node.a = 2 AS p") == []


def test_lengths():
    assert report('ASSERT LEN ${g} = "3"', variables=("g",)) == [
        'GASL065 LEN ${g} = "3": LEN is a number, but this is a string'
    ]
    assert fixed('ASSERT LEN ${g} = "3"', variables=("g",)) == "ASSERT LEN ${g} = 3"
    assert codes("ASSERT LEN ${g} < 0", variables=("g",)) == ["GASL065"]
    assert codes("ASSERT LEN ${g} = 1.5", variables=("g",)) == ["GASL065"]
    assert codes("ASSERT LEN ${g} >= 0 AND LEN ${g} <= 3", variables=("g",)) == []


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("FIND edges WHERE ALL edge.w > 1 AS v", "FIND edges WHERE w > 1 AS v"),
        ("FIND paths VIA ANY edge.w > 1 AS p", "FIND paths VIA w > 1 AS p"),
        ("FIND nodes AS v\nSELECT v WHERE ANY node.a = 1 AS w", "FIND nodes AS v\nSELECT v WHERE a = 1 AS w"),
    ],
)
def test_quantifiers(text, right):
    assert codes(text)[:1] == ["GASL066"]
    assert fixed(text) == right
    assert codes(right) == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "FIND paths WHERE node.a = 1 OR edge.`b c` = 2 AS p",
            "write ANY before it if one match is enough, ALL if all must match",
        ),
        ("FIND nodes AS v\nSELECT v WHERE NONE node.a = 1 AS w", "write NOT (a ...)"),
        ("FIND nodes WHERE ANY edge.a = 1 AS v", ""),
    ],
)
def test_no_edit_decides_between_quantifiers(text, hint):
    found = check(parse_gasl(text))
    assert {each.code for each in found} == {"GASL066"}
    assert not any(each.edits for each in found)
    assert found[0].hints == ((hint,) if hint else ())


def test_quantifiers_on_paths_in_a_variable():
    assert codes("FIND paths AS p\nSELECT p WHERE ANY node.id = 'a' AS q") == []
    assert codes("SELECT g WHERE ANY node.id = 'a' AS q", variables=("g",)) == []


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a{2000}", "\\\\1", "["])
def test_patterns(pattern):
    assert codes(f'FIND nodes WHERE a MATCHES "{pattern}" AS v') == ["GASL067"]


def test_a_test_has_no_item():
    assert fixed("FIND nodes AS a\nASSERT a > 0") == "FIND nodes AS a\nASSERT LEN ${a} > 0"
    assert fixed("COUNT g AS n\nBRANCH IF n > 0 THEN RESET k", variables=("g",)) == (
        "COUNT g AS n\nBRANCH IF ${n} > 0 THEN RESET k"
    )
    assert hints("ASSERT a.b = 1") == ["write a variable as ${a.b}"]


def test_ends_are_of_edges():
    assert report("FIND nodes WHERE source.a = 1 AS v") == [
        "GASL069 source.a: source.a belongs to an edge, but this condition tests nodes"
    ]
    text = "FIND paths AS p\nSELECT p WHERE source.a = 1 OR ALL node.b = 2 OR ANY edge.c = 3 OR ANY node.id = 'x' AS q"
    assert report(text) == [
        "GASL069 ALL node.b: ALL node.b is not saved when the paths of a variable are stored",
    ]
    assert codes("FIND edges WHERE source.a = 1 AS v\nSELECT v WHERE source.id = 'x' AND source.a > 1 AS w") == []


@pytest.mark.slow
def test_rows_joined_with_themselves_over_and_over_are_not_followed_without_end() -> None:
    joins = "JOIN x WITH x ON v AS x\n" * 200
    assert codes(f"SELECT a FIELDS v, w AS x\n{joins}RANK x BY nothing AS y", variables=("a",)) == []
    names = "SELECT a FIELDS v, w AS x\n" + "JOIN x WITH x ON v AS x\n" * 3
    assert codes(f"{names}RANK x BY {'right.' * 7}w AS y", variables=("a",)) == []
    assert codes(f"{names}RANK x BY {'right.' * 8}w AS y", variables=("a",)) != []
