"""The printer of GASL: what it writes reads back the same, and is what it would write again."""

import pytest
from hypothesis import HealthCheck, given, settings
from knotwork.lang.parse.gasl import parse_command, parse_condition, parse_gasl
from knotwork.lang.printer.gasl_printer import format_command, format_condition, format_gasl, format_name, format_text
from knotwork.lang.source import Source
from knotwork.lang.trees import gasl
from knotwork.lang.trees.conditions import And, Comparison, Constant, Field, Not, NullTest, Or, Variable
from knotwork.lang.trees.gasl import Branch, Comment, Count, Explain, Key, Name, On, Program, Require, Statement, Try
from support.programs import commands, conditions, programs, values

SLOW = [HealthCheck.too_slow]


@pytest.mark.slow
@given(programs())
@settings(max_examples=70, deadline=None, suppress_health_check=SLOW)
def test_reading_what_was_printed_gives_the_same_program(program):
    printed = format_gasl(program)
    again = parse_gasl(printed)
    assert again.diagnostics == ()
    assert again == program
    assert format_gasl(again) == printed


@pytest.mark.slow
@given(conditions)
@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
def test_every_condition_survives(condition):
    printed = format_condition(condition)
    assert parse_condition(printed) == (condition, ())
    assert "\n" not in printed


@pytest.mark.slow
@given(values)
@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
def test_every_value_survives(value):
    printed = format_condition(value)
    (statement,) = parse_command(f"SELECT x FIELDS {printed} AS column AS rows").statements
    assert statement.command.columns[0].value == value


@pytest.mark.slow
@given(commands)
@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
def test_every_command_is_one_line(command):
    printed = format_command(command)
    assert "\n" not in printed
    (statement,) = parse_command(printed).statements
    assert statement.command == command


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("find NODES where a=1 as x", "FIND nodes WHERE a = 1 AS x"),
        ("FIND edges LIMIT 3 ORDER BY a asc, b.c desc WHERE x<>'y' AS e",
         'FIND edges WHERE x != "y" ORDER BY a, b.c DESC LIMIT 3 AS e'),
        ("FIND paths FROM a TO (id == 'x') VIA w>1 MAXLEN 2 SHORTEST AS p",
         'FIND paths FROM a TO (id = "x") VIA w > 1 MAXLEN 2 SHORTEST AS p'),
        ("MEASURE graph USING pagerank AS r", "MEASURE graph USING pagerank AS r"),
        ("MEASURE `graph` USING pagerank AS r", "MEASURE `graph` USING pagerank AS r"),
        ("MEASURE `people` USING pagerank AS r", "MEASURE people USING pagerank AS r"),
        ("JOIN a WITH b ON id = id AS c", "JOIN a WITH b ON id AS c"),
        ("union a with b as c", "UNION a WITH b AS c"),
        ("SET adapter.caps.max_path_length=2", "SET adapter.caps.max_path_length = 2"),
        ("PROCESS a USING 'it\\'s \"so\"' AS b RETURNING (x text, y INT,)",
         'PROCESS a USING "it\'s \\"so\\"" AS b RETURNING (x TEXT, y INT)'),
        ("CLASSIFY a BY 'kind' INTO ['x', 'y'] AS b", 'CLASSIFY a BY "kind" INTO ("x", "y") AS b'),
        ("FIND nodes WHERE a IN ['x', 2, null] AS b", 'FIND nodes WHERE a IN ("x", 2, null) AS b'),
        ("FIND nodes WHERE ((a = 1 AND (b = 2)) OR NOT (c = 3)) AS d",
         "FIND nodes WHERE a = 1 AND b = 2 OR NOT c = 3 AS d"),
        ("FIND nodes WHERE a = 1 AND (b = 2 OR c = 3) AS d", "FIND nodes WHERE a = 1 AND (b = 2 OR c = 3) AS d"),
        ("FIND nodes WHERE NOT (a = 1 AND b = 2) AS d", "FIND nodes WHERE NOT (a = 1 AND b = 2) AS d"),
        ("FIND nodes WHERE `not` = 1 AND `len`.x = 2 AS d", "FIND nodes WHERE `not` = 1 AND `len`.x = 2 AS d"),
        ("assert len ${ authors } > 0", "ASSERT LEN ${authors} > 0"),
        ("ASSERT ${a.b.0[-1].`c d`} = 1", "ASSERT ${a.b[0][-1].`c d`} = 1"),
        ("BRANCH IF ${a} = 1 THEN BRANCH IF ${b} = 2 THEN RESET k ELSE RESET l ELSE RESET m",
         "BRANCH IF ${a} = 1 THEN BRANCH IF ${b} = 2 THEN RESET k ELSE RESET l ELSE RESET m"),
        ("select distinct x fields lower( name ) as key, a.b where a+1*2 > -b sample 5 as y",
         "SELECT DISTINCT x FIELDS lower(name) AS key, a.b WHERE a + 1 * 2 > -b SAMPLE 5 AS y"),
        ("SELECT x FIELDS (a+b)*c-(d-e)-(-f) AS g AS y", "SELECT x FIELDS (a + b) * c - (d - e) - -f AS g AS y"),
        ("FIND patterns (p:PERSON{id:'x'})-[r:A|B]->()<--(q)--(`a b`) WHERE p.id<q.id AS x",
         'FIND patterns (p:PERSON {id: "x"})-[r:A|B]->()<--(q)--(`a b`) WHERE p.id < q.id AS x'),
        ("FIND cycles MAXLEN 3 VIA a>1 WHERE increasing edge.x AS c",
         "FIND cycles VIA a > 1 WHERE INCREASING edge.x MAXLEN 3 AS c"),
        ("FIND paths DIRECTION both SHORTEST 3 BY fee*2 FROM a TO b LIMIT ${n} AS x",
         "FIND paths FROM a TO b SHORTEST 3 BY fee * 2 DIRECTION both LIMIT ${n} AS x"),
        ("MEASURE graph on e using pagerank(damping=0.9) by w as r",
         "MEASURE graph ON e USING pagerank(damping = 0.9) BY w AS r"),
        ("AGGREGATE x COMPUTE count(distinct a), percentile(b, .5 + .4) AS p AS y", None),
        ("AGGREGATE x COMPUTE count(distinct a), percentile(b,0.9) as p AS y",
         "AGGREGATE x COMPUTE count(DISTINCT a), percentile(b, 0.9) AS p AS y"),
        ("left join a with b as c on x=y, z AS d", "LEFT JOIN a WITH b AS c ON x = y, z AS d"),
        ("JOIN a WITH a ON name similar 0.5 AS d", "JOIN a WITH a ON name SIMILAR 0.5 AS d"),
        ("param n int = 3 with_description 'how many'", 'PARAM n INT = 3 WITH_DESCRIPTION "how many"'),
        ("WALK a TRACE DEPTH 2 AS b", "WALK a DEPTH 2 TRACE AS b"),
        ("RANK x BY a desc, b limit 3 per c, d AS y", "RANK x BY a DESC, b LIMIT 3 PER c, d AS y"),
        ("SELECT x FIELDS `len`, `true`, `distinct`, increasing AS y",
         "SELECT x FIELDS `len`, `true`, `distinct`, `increasing` AS y"),
        ("FIND nodes WHERE a = `null` AS x", "FIND nodes WHERE a = `null` AS x"),
        ("FIND nodes\n", None),
    ],
)  # fmt: skip
def test_one_spelling(written, canonical):
    if canonical is None:
        assert parse_gasl(written).diagnostics
        return
    program = parse_gasl(written)
    assert program.diagnostics == ()
    assert format_gasl(program) == canonical + "\n"


BLOCK = """\
# what follows is careful
#: see who there is
TRY  # all or nothing
  FIND nodes AS people  # everyone
  TRY
    COUNT people AS n

    # and keep it
    UPDATE total WITH n
  FINALLY
  END
CATCH ANY
  #: say so
  RESET total
FINALLY
  RESET other
END

RESET last
"""


def test_blocks_comments_and_whys_are_kept():
    text = "\n".join(line.strip() for line in BLOCK.splitlines()).replace("  #", " #") + "\n"
    printed = format_gasl(parse_gasl(text))
    # A blank line inside a block is not kept; one between statements is.
    assert printed == BLOCK.replace("n\n\n    # and", "n\n    # and")
    assert format_gasl(parse_gasl(printed)) == printed


def test_several_blank_lines_are_one():
    assert format_gasl(parse_gasl("\n\nRESET a\n\n\n# b\n\nRESET c\n\n")) == "RESET a\n\n# b\n\nRESET c\n"


def test_nothing_is_nothing():
    assert format_gasl(parse_gasl("")) == ""
    assert format_gasl(Program((Comment("# only this"),), Source(""))) == "# only this\n"


def test_a_why_of_several_lines():
    program = Program((Statement(gasl.Reset(Key(("a",))), "one\n\n  two "),), Source(""))
    assert format_gasl(program) == "#: one\n#: two\nRESET a\n"
    assert parse_gasl(format_gasl(program)).statements[0].why == "one two"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", '"plain"'),
        ('"', '"\\""'),
        ("it's", '"it\'s"'),
        ("\\n", '"\\\\n"'),
        ("two\nlines", '"two\\nlines"'),
        ("Zoë 名前 😀", '"Zoë 名前 😀"'),
        ("\u202e", '"\\u202e"'),
        ("\U000e0001", '"\\udb40\\udc01"'),
        ("👩\u200d🚀", '"👩\u200d🚀"'),
    ],
)
def test_strings_say_what_is_in_them(text, written):
    assert format_text(text) == written
    condition = Comparison(Field(("a",)), "=", Constant(text))
    assert parse_condition(format_condition(condition))[0] == condition


def test_names():
    assert [format_name(name) for name in ("a1", "where", "a b", "é", "a`b", "1")] == [
        "a1", "where", "`a b`", "`é`", "`a``b`", "`1`",
    ]  # fmt: skip


ELSE = Branch(NullTest(Variable("a")), Branch(NullTest(Variable("b")), Require(Name("x"))), Require(Name("y")))


@pytest.mark.parametrize(
    "command",
    [
        ELSE,
        Branch(NullTest(Variable("a")), On("EMPTY", Name("a"), Explain(ELSE.then)), Require(Name("y"))),
        Explain(Try((Statement(Require(Name("x"))),))),
        Count(Name("two\nlines"), None, Name("x")),
        Count(Name(""), None, Name("x")),
        gasl.Assert(Comparison(Variable("a"), "=", Constant(float("nan")))),
        gasl.Assert(And(())),
    ],
)
def test_what_no_text_can_say_is_refused(command):
    with pytest.raises(ValueError, match=r"cannot be (?:written|inside)"):
        format_command(command)


def test_bound_values_are_shown_as_json():
    listed = Comparison(Field(("a",)), "IN", Constant(("x", 1)))
    assert format_condition(listed) == 'a IN ["x", 1]'


def test_a_single_operand_needs_no_word():
    one = NullTest(Variable("a"))
    assert format_condition(And((Or((one,)),))) == "${a} IS NULL"
    assert format_condition(Not(And((one,)))) == "NOT ${a} IS NULL"


@pytest.mark.slow
def test_depth_is_no_danger():
    deep = NullTest(Variable("a"))
    for _ in range(20_000):
        deep = Not(And((deep, deep)) if _ == 0 else deep)
    assert format_condition(deep).startswith("NOT NOT NOT")
    command = Require(Name("x"))
    for _ in range(20_000):
        command = Explain(On("EMPTY", Name("x"), command))
    assert format_command(command).endswith("THEN REQUIRE EXISTS x")
    nested = Try((Statement(Require(Name("x"))),))
    for _ in range(300):
        nested = Try((Statement(nested),), (), None)
    assert format_command(nested).count("TRY") == 301
