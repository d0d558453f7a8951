"""What GASL texts mean: the trees, the spans, comments and reasons, blocks, names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.parse.gasl import parse_command, parse_condition, parse_gasl
from knotwork.lang.source import Source
from knotwork.lang.trees import gasl, walk
from knotwork.lang.trees.conditions import And, Comparison, Constant, Field, Items, Length, Not, NullTest, Or, Variable
from knotwork.lang.trees.gasl import Comment, Statement, Try

SEED = [
    "DECLARE co_authorship_analysis AS DICT",
    "DECLARE co_authorship_analysis.authors AS LIST WITH_DESCRIPTION 'List of all unique authors found.'",
    "DECLARE co_authorship_analysis.graph AS LIST WITH_DESCRIPTION 'Edge list of (author1, author2, shared_entity).'",
    'FIND nodes WHERE entity_type = "PERSON" AS authors',
    'PROCESS authors USING "..." AS coauthor_triplets',
    "UPDATE coauthorship_network WITH coauthor_triplets MERGE",
    "ASSERT LEN ${authors} > 0",
    "SET adapter.caps.max_path_length=2",
    'CANCEL PLAN "plan-init-state-001"',
    "REQUIRE EXISTS authors",
    "ON EMPTY authors THEN FIND nodes AS authors",
    'ANALYZE coauthorship_network USING "..." AS answer',
    "SELECT authors FIELDS name, age AS names",
    'SELECT authors WHERE name CONTAINS "Jean" AS jeans',
    'FIND paths WHERE source.entity_type = "PERSON" LIMIT 10 AS p',
]


def command(text: str):
    program = parse_command(text)
    assert program.diagnostics == ()
    return program.statements[0].command


def condition(text: str):
    found, diagnostics = parse_condition(text)
    assert diagnostics == ()
    return found


@pytest.mark.parametrize("text", SEED)
def test_the_seed_is_read_as_it_is_written(text: str) -> None:
    assert parse_gasl(text).diagnostics == ()


def test_single_quotes_and_no_blanks_around_equals() -> None:
    assert command(SEED[1]).description == "List of all unique authors found."
    assert command(SEED[7]) == gasl.SetCommand(gasl.Key(("adapter", "caps", "max_path_length")), 2)


def test_keywords_in_any_case() -> None:
    assert command('find Nodes where a = 1 and b in ("x") order by c desc limit 3 as d') == command(
        'FIND nodes WHERE a = 1 AND b IN ("x") ORDER BY c DESC LIMIT 3 AS d'
    )


def test_a_keyword_is_reserved_only_where_it_could_stand() -> None:
    found = command("COUNT count BY by AS limit")
    assert (found.source.text, found.by[0].column, found.into.text) == ("count", "by", "limit")


def test_options_in_any_order() -> None:
    assert command("FIND nodes LIMIT 3 WHERE a = 1 AS x") == command("FIND nodes WHERE a = 1 LIMIT 3 AS x")
    assert command("FIND paths SHORTEST MAXLEN 2 FROM a TO b AS x") == command(
        "FIND paths FROM a TO b MAXLEN 2 SHORTEST AS x"
    )


def test_backticks_make_any_name() -> None:
    found = command("SELECT `two words` FIELDS `a.b`.c, `back``tick` AS `as`")
    assert found.source.text == "two words"
    assert [each.value.path for each in found.columns] == [("a.b", "c"), ("back`tick",)]
    assert found.into.text == "as"


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("${a}", Variable("a")),
        ("${ a }", Variable("a")),
        ("${a.b[0].c}", Variable("a", ("b", 0, "c"))),
        ("${a.0.b}", Variable("a", (0, "b"))),
        ("${a[-1]}", Variable("a", (-1,))),
        ("${a[0][1]}", Variable("a", (0, 1))),
        ("${`a b`.`c.d`.e}", Variable("a b", ("c.d", "e"))),
        ("${error.message}", Variable("error", ("message",))),
    ],
)
def test_variables(text: str, variable: Variable) -> None:
    assert condition(f"x = {text}").right == variable
    assert condition(f"LEN {text} > 0").left == Length(variable)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-0", 0), ("1.0", 1.0), ("1e3", 1000.0), ("-2.5E-1", -0.25), ("true", True), ("False", False), ('"x"', "x"),
        ("'x'", "x"), (r"'it\'s'", "it's"), (r'"a\"b"', 'a"b'), (r'"\u00e9\n\t\\\/"', "é\n\t\\/"),
        (r'"\ud83d\ude42"', "\U0001f642"), (r"'\ud83d\ude42 \''", "\U0001f642 '"), ('"\t"', "\t"), ('"#"', "#"),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = condition(f"x = {text}").right
    assert found == Constant(value)
    assert type(found.value) is type(value)


def test_operators_have_one_spelling_each() -> None:
    assert condition("a == 1") == condition("a = 1")
    assert condition("a <> 1") == condition("a != 1")
    assert condition("a in ['x', 2, null,]") == Comparison(
        Field(("a",)), "IN", Items((Constant("x"), Constant(2), Constant(None)))
    )
    assert condition("a not in ${b}") == Comparison(Field(("a",)), "NOT IN", Variable("b"))
    assert condition("a is not null") == NullTest(Field(("a",)), True)


def test_precedence() -> None:
    a, b, c = (Comparison(Field((name,)), "=", Constant(1)) for name in "abc")
    assert condition("a = 1 OR b = 1 AND c = 1") == Or((a, And((b, c))))
    assert condition("(a = 1 OR b = 1) AND c = 1") == And((Or((a, b)), c))
    assert condition("NOT a = 1 AND b = 1") == And((Not(a), b))
    assert condition("NOT NOT a = 1") == Not(Not(a))
    assert condition("a = 1\n  AND b = 1  # both\n") == And((a, b))


def test_quantifiers_speak_of_paths() -> None:
    assert condition("ANY node.kind.name = 1").left == Field(("node", "kind", "name"), "any")
    assert condition("none edge.w = 1").left == Field(("edge", "w"), "none")


def test_else_belongs_to_the_nearest_branch() -> None:
    found = command("BRANCH IF ${a} = 1 THEN ON EMPTY x THEN BRANCH IF ${b} = 1 THEN RESET c ELSE RESET d")
    assert found.otherwise is None
    assert found.then.then.otherwise == gasl.Reset(gasl.Key(("d",)))


def test_lines_go_on_in_brackets_only() -> None:
    text = 'FIND nodes WHERE a IN (\n  "x",  # first\n  "y"\n) AS b\nFIND edges AS c\n'
    program = parse_gasl(text)
    assert program.diagnostics == ()
    assert program.items[0] == Comment("# first")
    assert len(program.statements) == 2
    assert parse_gasl("FIND nodes\nAS x").diagnostics


def test_comments_and_reasons() -> None:
    text = "# one\n#: because\n#:  of this \n# between\nFIND nodes AS x  # behind\n\n#\nCOUNT x AS n"
    program = parse_gasl(text)
    assert program.diagnostics == ()
    find, count = program.statements
    assert (find.why, count.why) == ("because of this", None)
    assert [item for item in program.items if isinstance(item, Comment)] == [
        Comment("# one"), Comment("# between"), Comment("# behind", trailing=True), Comment("#")
    ]  # fmt: skip
    assert program.source.slice(find.span).startswith("#: because")


BLOCK = """\
#: try it
TRY  # now
  FIND nodes AS a
CATCH ANY
  # nothing
  TRY
    RESET k
  END
FINALLY
  #: always
  COUNT a AS n
END  # done
"""


def test_blocks() -> None:
    program = parse_gasl(BLOCK)
    assert program.diagnostics == ()
    (statement,) = program.statements
    block = statement.command
    assert isinstance(block, Try)
    assert statement.why == "try it"
    assert block.body == (Comment("# now", trailing=True), Statement(command("FIND nodes AS a")))
    assert block.caught[0] == Comment("# nothing")
    assert isinstance(block.caught[1].command, Try)
    assert block.always == (Statement(command("COUNT a AS n"), "always"),)
    assert program.items[-1] == Comment("# done", trailing=True)


def test_a_block_on_one_line_and_without_parts() -> None:
    one = command("TRY FIND nodes AS a CATCH ANY RESET k END")
    assert one == command("TRY\nFIND nodes AS a\nCATCH ANY\nRESET k\nEND")
    assert command("TRY\nEND") == Try(())
    assert command("TRY\nRESET k\nFINALLY\nEND").always == ()


def test_a_block_is_the_same_behind_a_fault() -> None:
    program = parse_gasl(f"FIND nothing\n{BLOCK}")
    assert len(program.diagnostics) == 1
    assert program.items == parse_gasl(BLOCK).items


@pytest.mark.parametrize("text", [*SEED, BLOCK, 'FIND nodes WHERE (a = 1 OR b IN ("x")) AND NOT c IS NULL AS d'])
def test_spans_lie_inside_each_other_and_name_the_text(text: str) -> None:
    program = parse_gasl(text)
    for item in program.items:
        for node in walk(item):
            shown = text[node.span.start : node.span.end]
            assert shown == shown.strip() != ""
            if isinstance(node, gasl.Name):
                assert shown.strip("`") == node.text
            if isinstance(node, gasl.Key | Field):
                assert shown == node.text
            if isinstance(node, Comparison | Not):
                assert parse_condition(shown)[0] == node


def test_offsets_count_code_points_and_line_ends_may_be_windows() -> None:
    program = parse_gasl('\ufeff# 🙂\r\nFIND nodes WHERE a = "🙂" AS x\r\nCOUNT x AS n\r\n')
    assert program.diagnostics == ()
    assert program.items[0] == Comment("# 🙂")
    assert program.source.slice(program.statements[0].command.into.span) == "x"


def test_source_keeps_its_name() -> None:
    assert parse_gasl(Source("RESET a", "plan.gasl")).source.name == "plan.gasl"
    assert parse_gasl("").items == ()
    assert parse_gasl(" \n\t\n").diagnostics == ()


words = st.sampled_from(
    ["FIND", "nodes", "WHERE", "a", "=", '"x"', "AS", "x", "\n", "(", ")", "TRY", "END", "#: y", "# z", "${a}", "IN", "1", "'", "\\",
     ";", "AND", "NOT", "CATCH ANY", "LIMIT", ",", "COUNT", "`", "é", "{", "THEN", "BRANCH IF", "LEN"]
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(words, max_size=25).map(" ".join))
def test_reading_never_raises(text: str) -> None:
    program = parse_gasl(text)
    for diagnostic in program.diagnostics:
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    parse_condition(text)


@pytest.mark.slow
@given(st.text(max_size=60))
def test_reading_any_text_never_raises(text: str) -> None:
    parse_gasl(text)
    parse_condition(text)


@pytest.mark.slow
@given(st.text(max_size=30))
def test_any_text_can_be_a_value(text: str) -> None:
    import json

    from hypothesis import assume

    assume(not any(0xD800 <= ord(c) < 0xE000 for c in text))
    assert condition(f"a = {json.dumps(text)}").right == Constant(text)
