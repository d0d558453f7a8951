"""References in ``GASL("...")``: where a command takes a variable they become its name, elsewhere a value."""

import pytest
from knotwork.lang.embedded_code import embedded_program
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.trees import walk
from knotwork.lang.trees.lwt import Call

PROGRAMS = [
    ("COUNT {(a)} AS n", "COUNT in_1 AS n"),
    ("SELECT {(a)} FIELDS x AS y", "SELECT in_1 FIELDS x AS y"),
    ("SELECT DISTINCT {(a)} AS y", "SELECT DISTINCT in_1 AS y"),
    ("SELECT x SAMPLE {(a)} AS y", "SELECT x SAMPLE ${in_1} AS y"),
    ("UNNEST {(a)} BY f AS x", "UNNEST in_1 BY f AS x"),
    ("RANK {(a)} BY s * {(a)} LIMIT {(a)} PER {(a)} AS y", "RANK in_1 BY s * ${in_2} LIMIT ${in_3} PER ${in_4} AS y"),
    ("AGGREGATE {(a)} COMPUTE count() AS y", "AGGREGATE in_1 COMPUTE count() AS y"),
    ("JOIN {(a)} WITH {(a)} ON {(a)} AS y", "JOIN in_1 WITH in_2 ON ${in_3} AS y"),
    ("LEFT JOIN {(a)} WITH {(a)} AS p ON id = {(a)} AS y", "LEFT JOIN in_1 WITH in_2 AS p ON id = ${in_3} AS y"),
    ("EXCEPT {(a)} WITH {(a)} ON {(a)} AS y", "EXCEPT in_1 WITH in_2 ON ${in_3} AS y"),
    ("MEASURE {(a)} ON {(a)} USING degree BY {(a)} AS y", "MEASURE in_1 ON in_2 USING degree BY ${in_3} AS y"),
    ("MEASURE graph ON {(a)} USING degree AS y", "MEASURE graph ON in_1 USING degree AS y"),
    ("JOIN x WITH y ON id AS z\nMEASURE graph ON {(a)} USING degree AS w",
     "JOIN x WITH y ON id AS z\nMEASURE graph ON in_1 USING degree AS w"),
    ("MEASURE graph ON e USING degree AS x\nJOIN x WITH y ON {(a)} AS z",
     "MEASURE graph ON e USING degree AS x\nJOIN x WITH y ON ${in_1} AS z"),
    ("FIND patterns (p {id: {(a)}})-->(q) WHERE q.x > {(a)} AS y", "FIND patterns (p {id: ${in_1}})-->(q) WHERE q.x > ${in_2} AS y"),
    ("FIND paths FROM {(a)} TO {(a)} SHORTEST BY {(a)} AS y", "FIND paths FROM in_1 TO in_2 SHORTEST BY ${in_3} AS y"),
    ("WALK {(a)} DEPTH {(a)} TRACE AS y", "WALK in_1 DEPTH ${in_2} TRACE AS y"),
    ("EXPLAIN COUNT {(a)} BY lower({(a)}) AS k AS y", "EXPLAIN COUNT in_1 BY lower(${in_2}) AS k AS y"),
    ("ON EMPTY x THEN CONNECT {(a)} TO {(a)} AS y", "ON EMPTY x THEN CONNECT in_1 TO in_2 AS y"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "text"), PROGRAMS, ids=[program for program, _ in PROGRAMS])
def test_a_reference_is_a_name_where_a_variable_stands_and_else_a_value(program: str, text: str) -> None:
    script = parse_lwt(f"(a)=CONST([1])\n(final)=GASL('''{program}''')")
    (call,) = (node for node in walk(script.steps[1]) if isinstance(node, Call))
    made = embedded_program(call.arguments[0]).text(lambda reference: reference.name)
    assert made == text
    assert parse_gasl(made).diagnostics == ()
