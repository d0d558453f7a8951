"""Definitions, references and renaming."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.diagnostic import Diagnostic, apply_edits
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.service import Known, Variable, definition, diagnose, references, renamable, rename
from knotwork.lang.trees import walk
from knotwork.lang.trees.conditions import Variable as Braces
from knotwork.lang.trees.gasl import Name
from knotwork.lang.trees.lwt import references as lwt_references

PROGRAM = """FIND nodes AS people
COUNT people BY kind AS n
FIND nodes AS others
FIND paths FROM people TO others AS ways
ASSERT LEN ${ people } > 1 AND ${n.count} = 1
TRY
  RANK people BY kind AS people
CATCH ANY
  SELECT error FIELDS message AS said
END
UNION people WITH `odd one` AS both
"""
SCRIPT = """(a)=LLM("x {(input)}")
(b.1)=EACH({(a)}, LLM("y {(item)} {(a)}[0]"))
(c)=EXPR("n + 1", n={(a)}, when="{(b.1)} == 1")
(final)=LLM("{{(q)}} {(c)} {(b.1)}")
"""
SEED = json.dumps(
    {
        "extract": {"fields": [{"name": "mood", "type": "enum", "values": ["glad", "sad"]}, {"name": "stars", "type": "int"}]},
        "compute": [
            {"name": "GOOD", "op": "define_filter", "where": {"extraction.mood": "glad"}},
            {"name": "N", "op": "count", "where": {"$GOOD": True, "extraction.stars": {">=": 3}}},
            {"name": "S", "op": "sum", "expr": "extraction.stars * 2"},
            {"name": "M", "op": "max", "field": "extraction.stars"},
            {"name": "R", "op": "expr", "expr": "S / N if N > 0 else len([e for e in extractions if e['mood'] == \"N\"])"},
            {"name": "V", "op": "case", "source": "R", "rules": [{"when": ">= N", "then": "N"}, {"else": "no"}]},
        ],
        "output": ["N", "V", "M"],
    },
    indent=1,
)  # fmt: skip
EXPRESSION = "sum(x for x in xs if x > 1) + max([y for x in xs for y in x if y != x], default=len(xs))"
TEXTS = {"gasl": PROGRAM, "lwt": SCRIPT, "seed": SEED, "expr": EXPRESSION}


def named(language, text, offset):
    return [text[place.span.start : place.span.end] for place in references(language, text, offset)]


def renamed(language, text, old, new, known=None, nth=0):
    offset = -1
    for _ in range(nth + 1):
        offset = text.index(old, offset + 1)
    found = rename(language, text, offset, new, known or Known())
    return found.message if isinstance(found, Diagnostic) else apply_edits(text, found)


def test_a_variable_is_defined_by_the_command_that_binds_it_last_above():
    use = PROGRAM.index("people WITH")
    assert definition("gasl", PROGRAM, use).span.start == PROGRAM.index("people\nCATCH")
    assert definition("gasl", PROGRAM, PROGRAM.index("people }")).span.start == PROGRAM.index("people")
    assert definition("gasl", PROGRAM, PROGRAM.index("odd one")) is None


def test_all_places_of_a_variable_are_found_in_braces_too():
    assert named("gasl", PROGRAM, PROGRAM.index("people")) == ["people"] * 7
    assert named("gasl", PROGRAM, PROGRAM.index("n.count")) == ["n", "n"]
    assert named("gasl", PROGRAM, PROGRAM.index("kind")) == []


def test_a_step_is_defined_at_its_head_and_text_that_only_looks_like_a_reference_is_none():
    assert definition("lwt", SCRIPT, SCRIPT.index("{(a)}, LLM") + 2).span.start == 1
    assert len(references("lwt", SCRIPT, 1)) == 4
    assert (
        renamed("lwt", SCRIPT, "(a)", "first").count("first") == 0
    )  # the cursor is before the name, on its parenthesis
    assert renamed("lwt", SCRIPT, "a)=", "first") == SCRIPT.replace("(a)", "(first)")


def test_a_seeds_names_are_found_in_keys_fields_sources_outputs_and_expressions():
    made = json.loads(renamed("seed", SEED, "mood", "feeling"))
    assert made["extract"]["fields"][0]["name"] == "feeling"
    assert made["compute"][0]["where"] == {"extraction.feeling": "glad"}
    assert "e['feeling']" in made["compute"][4]["expr"]
    made = json.loads(renamed("seed", SEED, "N", "TOTAL", nth=0))
    assert made["compute"][4]["expr"].startswith("S / TOTAL if TOTAL > 0")
    assert made["compute"][4]["expr"].endswith('== "N"])')
    assert made["compute"][5]["rules"][0] == {"when": ">= TOTAL", "then": "N"}
    assert made["output"] == ["TOTAL", "V", "M"]
    made = json.loads(renamed("seed", SEED, "GOOD", "FINE"))
    assert made["compute"][1]["where"] == {"$FINE": True, "extraction.stars": {">=": 3}}
    made = json.loads(renamed("seed", SEED, "stars", "points"))
    assert made["compute"][3]["field"] == "extraction.points"
    assert made["compute"][2]["expr"] == "extraction.points * 2"


def test_two_comprehensions_with_the_same_name_are_two_things():
    made = renamed("expr", EXPRESSION, "x for", "z")
    assert made == EXPRESSION.replace("sum(x for x in xs if x > 1)", "sum(z for z in xs if z > 1)")


def test_a_name_that_is_no_plain_word_gets_backticks():
    assert renamed("gasl", PROGRAM, "others", "my people").count("`my people`") == 2


COLUMNS = """FIND nodes AS n
FIND patterns (p:A)-[r]->(q), (q)-->(p) WHERE p.x > r.y ORDER BY LEN p.x AS x
SELECT x FIELDS p.name, q AS other, lower(q.id) AS key AS y
COUNT y BY p.name, (key) AS k2, key, other.id AS kinds
AGGREGATE kinds BY key COMPUTE sum(count) AS total AS sums
JOIN kinds WITH sums AS s ON key AS both
JOIN both WITH both ON count AS twice
ASSERT ${sums[0].total} > 1 AND LEN ${kinds.key} > 0
RANK both BY s.total DESC, s.key AS z
RANK twice BY right.key, right.s.key AS z
"""


def columns(*old_and_new):
    text = COLUMNS
    for old, new in old_and_new:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_a_name_in_a_pattern_is_followed_through_the_rows():
    assert renamed("gasl", COLUMNS, "p:A", "person") == columns(
        ("(p:A)", "(person:A)"), ("(p) W", "(person) W"), ("p.x", "person.x"), ("p.name", "person.name")
    )
    assert renamed("gasl", COLUMNS, "q)-->", "other one").startswith(
        "FIND nodes AS n\nFIND patterns (p:A)-[r]->(`other one`), (`other one`)-->(p)"
    )
    assert definition("gasl", COLUMNS, COLUMNS.rindex("p.name")).span.start == COLUMNS.index("p:A")


@pytest.mark.slow
def test_a_column_is_followed_through_the_rows():
    assert renamed("gasl", COLUMNS, "total", "sum") == columns(("total", "sum"))
    assert renamed("gasl", COLUMNS, "other,", "q2") == columns(("q AS other", "q AS q2"), ("other.id", "q2.id"))
    assert renamed("gasl", COLUMNS, "key AS y", "not") == columns(
        ("AS key", "AS not"), ("(key)", "(`not`)"), ("k2, key", "k2, `not`"), ("BY key", "BY `not`"), ("ON key", "ON `not`"),
        ("right.key", "right.not"), ("s.key", "s.not"),
    )  # fmt: skip


def test_a_parameter_is_a_variable():
    program = "PARAM least INT = 3\nFIND nodes WHERE x > ${least} AS a\nMEASURE graph ON a USING degree AS b\n"
    assert renamed("gasl", program, "least", "most") == program.replace("least", "most")
    assert renamed("gasl", program, "a\nM", "e") == program.replace("AS a", "AS e").replace("ON a", "ON e")


def test_columns_that_are_read_as_one_are_renamed_as_one():
    branches = (
        "FIND nodes AS n\nBRANCH IF LEN ${n} > 3 THEN COUNT n BY lower(id) AS key AS a ELSE COUNT n BY upper(id) AS key AS a\n"
        "RANK a BY key AS b\n"
    )
    assert renamed("gasl", branches, "key", "k") == branches.replace("key", "k")
    joined = "FIND nodes AS n\nCOUNT n BY lower(id) AS key AS a\nCOUNT n BY upper(id) AS key AS b\nJOIN a WITH b ON key AS c\n"
    assert renamed("gasl", joined, "key", "k") == joined.replace("key", "k")


REFUSED_COLUMNS = [
    ("FIND patterns (p|)-->(q) AS x", "q", "the name q would change the meaning of the text"),
    ("FIND nodes AS n\nCOUNT n BY id AS key, lower(id) AS k|2 AS a", "key", "the name key would change the meaning of the text"),
    ("FIND nodes AS n\nCOUNT n BY lower(id) AS k|ey AS a\nJOIN a WITH n ON key AS c", "k",
     "a field of another variable also has this name"),
    ("FIND nodes AS n\nCOUNT n BY lower(id) AS k|ey AS a\nUNION a WITH n AS c", "k", "a field of another variable also has this name"),
    ("FIND nodes AS n\nAGGREGATE n COMPUTE sum(x) AS to|tal AS a\nAGGREGATE a COMPUTE mean(total) AS b\nRANK b BY mean_total AS c", "t",
     "with the name t, the check would report: the rows of b have no field mean_total (GASL073)"),
    ("FIND nodes AS n\nCOUNT n BY lower(id) AS k|ey AS a\nRANK a BY key AS b", "a\nb", "a\\nb can't be the name of a field"),
    ("FIND nodes AS n\nRANK n BY na|me AS a", "k", "no name at this place can be renamed"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "new", "message"), REFUSED_COLUMNS)
def test_a_column_that_can_not_be_renamed(text, new, message):
    offset = text.index("|")
    text = text.replace("|", "", 1)
    found = rename("gasl", text, offset, new, Known())
    assert isinstance(found, Diagnostic) and found.message == message


def test_a_column_of_a_program_in_a_script_is_not_renamed():
    script = '(a)=GASL("""FIND nodes AS n\nCOUNT n BY lower(id) AS key AS k""")\n(final)=LLM("{(a)}[0][key]")\n'
    found = rename("lwt", script, script.index("key"), "k2", Known())
    assert found.message == "other steps of the script may read this column by its name"


REFUSED = [
    ("gasl", "people", "n", "a variable n already exists"),
    ("gasl", "people", "", "the name is empty"),
    ("gasl", "people", "x\ny", "x\\ny can't be the name of a variable"),
    ("gasl", "people", "x" * 201, "the name exceeds 200 characters"),
    ("gasl", "odd one", "x", "odd one is not defined in this text"),
    ("gasl", "error", "x", "the name error is set by CATCH and can't be renamed"),
    ("gasl", "COUNT", "x", "no name at this place can be renamed"),
    ("lwt", "a)=", "input", "input can't be the name of a step"),
    ("lwt", "a)=", "two words", "two words can't be the name of a step"),
    ("lwt", "a)=", "c", "a step c already exists"),
    ("lwt", "input", "x", "input is not a step"),
    ("lwt", "final", "last", "with the name last, the check would report: the output of (last) is the result"),
    ("seed", "mood", "stars", "a field stars already exists"),
    ("seed", "mood", "a b", "a b can't be the name of a field"),
    (
        "seed",
        "GOOD",
        "if",
        "with the name if, the check would report: compute[0].name: if is a keyword of expressions (SEED043)",
    ),
    ("expr", "x for", "xs", "a variable xs already exists"),
    ("expr", "x for", "null", "the name null would change the meaning of the text"),
    ("expr", "xs", "ys", "the value comes from outside the expression"),
]


@pytest.mark.parametrize(("language", "old", "new", "message"), REFUSED)
def test_a_rename_that_would_break_something_is_refused_with_why(language, old, new, message):
    assert renamed(language, TEXTS[language], old, new).startswith(message)


def test_a_name_that_is_bound_outside_keeps_it_and_is_no_new_name():
    known = Known(variables={"people": Variable("3 nodes"), "mine": Variable("1 row")})
    assert renamed("gasl", PROGRAM, "people", "x", known) == "people is also bound outside this text"
    assert renamed("gasl", PROGRAM, "others", "mine", known) == "mine is already bound outside this text"


def test_a_key_of_the_state_keeps_its_name():
    text = "DECLARE found AS LIST\nFIND nodes AS a\nUPDATE found WITH a"
    assert len(references("gasl", text, 9)) == 2
    assert "can't be renamed" in renamed("gasl", text, "found", "x")


def test_a_variable_called_as_the_word_graph_is_told_from_it():
    text = "FIND nodes AS a\nMEASURE a USING pagerank AS r"
    assert renamed("gasl", text, "a\n", "graph") == "the name graph would change the meaning of the text"


def test_what_cannot_be_read_and_has_the_name_stands_in_the_way():
    text = "FIND nodes AS a\nCUONT a AS n\nCOUNT a AS m"
    assert renamed("gasl", text, "a\n", "b").startswith("an invalid part of the text")
    assert renamed("gasl", text, "m", "k") == text[:-1] + "k"


def test_where_a_name_can_be_another_is_told_beforehand():
    assert renamable("gasl", PROGRAM, PROGRAM.index("people")).span.start == PROGRAM.index("people")
    assert renamable("gasl", PROGRAM, 0).message == "no name at this place can be renamed"


def names_of(language, text):
    """Return the names in order, by the trees alone."""
    if language == "gasl":
        nodes = [node for item in parse_gasl(text).items for node in walk(item)]
        return [node.text if isinstance(node, Name) else node.name for node in nodes if isinstance(node, Name | Braces)]
    script = parse_lwt(text)
    return [name for step in script.steps for name in (step.id, *(each.name for each in lwt_references(step)))]


NEW = st.one_of(
    st.sampled_from(
    ["n", "graph", "AS", "error", "x y", "a", "input", "item", "final",
     "N", "S", "stars", "if", "e", "xs", "é", "`", "a.b", "1"]),
    st.text(max_size=8),
    st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("language", TEXTS)
@settings(max_examples=60, deadline=None)
@given(st.data(), NEW)
def test_a_rename_keeps_what_the_text_says(language, data, new):
    text = TEXTS[language]
    offset = data.draw(st.integers(0, len(text)))
    found = rename(language, text, offset, new)
    if isinstance(found, Diagnostic):
        assert found.message
        return
    made = apply_edits(text, found)
    assert [each.code for each in diagnose(language, made)] == [each.code for each in diagnose(language, text)]
    if language in ("gasl", "lwt") and found:
        old = text[found[0].span.start : found[0].span.end].strip("`")
        assert names_of(language, made) == [new if name == old else name for name in names_of(language, text)]
    elif found:
        at = found[0].span
        back = rename(language, made, at.start, text[at.start : at.end])
        if isinstance(back, Diagnostic):  # another thing has the old name, in a comprehension of its own
            assert back.message.startswith("there is a variable")
        else:
            assert apply_edits(made, back) == text
