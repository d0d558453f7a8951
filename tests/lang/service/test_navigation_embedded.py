"""Names in the programs and expressions that stand in a script's strings, and what hovering over words of them tells."""

import pytest
from knotwork.lang.diagnostic import Diagnostic, apply_edits
from knotwork.lang.service import Known, Variable, definition, diagnose, hover, references, rename
from support.service_known import KNOWN

SCRIPT = """(s)=CONST([1])
(f)=EXPR("sum(v) + len(v) + n * n", v={(s)}, n=2)
(g)=EXPR("v + 1", v=1)
(h)=GASL("FIND nodes AS x
COUNT x AS n")
(final)=LLM("{(f)} {(g)} {(h)}")
"""


def renamed(what, new):
    found = rename("lwt", SCRIPT, SCRIPT.index(what), new)
    return found.message if isinstance(found, Diagnostic) else apply_edits(SCRIPT, found)


def test_a_value_of_an_expression_is_named_by_its_option():
    use = SCRIPT.index("v) +")
    assert definition("lwt", SCRIPT, use).span.start == SCRIPT.index("v={(s)}")
    assert len(references("lwt", SCRIPT, use)) == 3
    assert renamed("v) +", "w").split("\n")[1] == '(f)=EXPR("sum(w) + len(w) + n * n", w={(s)}, n=2)'
    assert renamed("v) +", "w").split("\n")[2:] == SCRIPT.split("\n")[2:]


def test_a_variable_of_a_program_in_a_script_is_one_thing():
    assert definition("lwt", SCRIPT, SCRIPT.index("x AS n")).span.start == SCRIPT.index("x\n")
    assert renamed("x AS n", "found") == SCRIPT.replace("AS x", "AS found").replace("COUNT x", "COUNT found")


def test_a_name_may_be_that_of_another_step_but_not_of_the_same():
    assert renamed("v={", "n") == "a variable n already exists"
    assert renamed("v + 1", "n").split("\n")[2] == '(g)=EXPR("n + 1", n=1)'
    assert renamed("n=2", "when") == "the name when would change the meaning of the text"


@pytest.mark.parametrize(
    ("language", "text", "says"),
    [
        ("lwt", '(s)=CONST(1)\n(f)=EXPR("round(|v) + n", v={(s)}, n=2)', "`v`"),
        ("lwt", '(s)=CONST(1)\n(f)=EXPR("ro|und(v)", v={(s)})', "nearest integer"),
        ("lwt", '(s)=CONST(1)\n(f)=EXPR("round(v)", |v={(s)})', "used once"),
        ("lwt", '(h)=GASL("FIND nodes AS x\nCOUNT |x AS n")', "FIND nodes AS x"),
        ("lwt", '(h)=GASL("FIND nodes AS x\nCO|UNT x AS n")', "COUNT name"),
        ("lwt", '(a)=LLM("x {(input)}[rev|iews][0]")', "1 items"),
        ("lwt", '(a)=EACH({(input)}["rev|iews"][0], LLM("x"))', "1 items"),
        ("gasl", "MEASURE graph USING page|rank AS r", "USING algorithm"),
        ("gasl", "FIND nodes OR|DER BY year AS x", "FIND nodes|edges"),
        ("gasl", "AGGREGATE given BY id COMPUTE su|m(score) AS s", "sum of the numbers"),
        ("gasl", "COUNT given BY fo|ld(id) AS key AS n", "without accents"),
        ("gasl", "SELECT given FIELDS i|f(score > 1, 1, 0) AS one AS s", "if\\(condition, a, b\\)"),
        ("gasl", "UNN|EST given BY id AS s", "UNNEST name BY value"),
        ("gasl", "PAR|AM least INT = 3", "[= constant]"),
        ("gasl", "PARAM le|ast INT = 3\nSELECT given WHERE score > ${least} AS s", "used once"),
        ("gasl", "PARAM least INT = 3\nSELECT given WHERE score > ${le|ast} AS s", "PARAM least INT = 3"),
        ("gasl", "FIND patt|erns (p)-->(q) AS s", "gasl\nFIND patterns (name:LABEL)"),
        ("gasl", "FIND patterns (p:PER|SON)-->(q) AS s", "50"),
        ("gasl", "FIND patterns (p)-[r:KN|OWS]->(q) AS s", "5"),
        ("gasl", "FIND patterns (p)-->(q) WHERE p.ye|ar > 3 AS s", "of p"),
        ("gasl", "FIND patterns (p|)-->(q) WHERE p.year > 3 AS s", "used once"),
        ("gasl", "FIND nodes WHERE deg|ree > 3 AS s", "computed, not stored"),
        ("gasl", "SELECT DIST|INCT given AS s", "Keep only the first of equal rows"),
        ("gasl", "RANK given BY id LIMIT 3 PE|R score AS s", "each group"),
        ("gasl", "SELECT given FIELDS id AS k|ey AS s\nCOUNT s BY key AS n", "used once"),
        ("gasl", "MEASURE graph USING pagerank(damp|ing = 0.5) AS r", "default 0.85"),
        ("gasl", "COUNT given BY id AS a\nASSERT ${a.co|unt} > 1", "of a"),
    ],
)  # fmt: skip
def test_hover_tells_more_than_the_word(language, text, says):
    bar = text.index("|") if "edges" not in text else text.rindex("|")
    found = hover(language, text[:bar] + text[bar + 1 :], bar, KNOWN)
    assert found is not None and says in found.text
    assert found.span.start <= bar <= found.span.end


def test_a_value_of_an_earlier_run_may_be_referred_to():
    known = Known(variables={"before": Variable("12 rows")})
    assert diagnose("lwt", '(final)=LLM("{(before)}")', known) == ()
    assert [each.code for each in diagnose("lwt", '(final)=LLM("{(before)}")')] == ["LWT012"]


def test_a_step_of_many_escapes_and_references_has_its_places():
    script = '(s)=CONST(1)\n(h)=GASL("FIND nodes WHERE a = \\"{(s)}\\" AS found\nCOUNT found AS n\nCOUNT {(s)} AS m")\n'
    places = [script[each.span.start : each.span.end] for each in references("lwt", script, script.index("found AS n"))]
    assert places == ["found", "found"]
