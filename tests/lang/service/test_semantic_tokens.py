"""Tokens, hover, symbols, folds, and the Pygments lexers."""

import json
import tomllib
from importlib.metadata import EntryPoint

import pytest
from knotwork.lang.service import Fold, folds, hover, symbols, tokens
from pygments import token as pygments_token
from support.folders import ROOT
from support.service_known import KNOWN

PROGRAM = """# a remark
# and one more
TRY
  FIND nodes WHERE entity_type = "PERSON" AND year > 3.5 AS people # x
  COUNT count BY by AS limit
CATCH ANY
  FIND nodes AS b
END
MEASURE graph USING pagerank AS p
PROCESS p USING "x" AS y RETURNING (a TEXT,
   b INT)
ASSERT LEN ${people} > 1
FIDN x = "open
"""
SCRIPT = '''# x
(a)=LLM("Hi {(input)}["x"] (there)", type="a" | "b", n=3, w=json)
prose (here)
(b)=EACH({(a)}, LLM("""multi (a)=
line {(item)}"""))
(c)=CONST([1, true, {"k": null}])
(d)=LLM("open
(e)=LLM('y')
'''


def told(language, text):
    return [(text[each.start : each.end], each.type) for each in tokens(language, text)]


def test_a_word_of_gasl_is_what_the_parser_says_it_is():
    found = told("gasl", PROGRAM)
    assert found[:5] == [
        ("# a remark", "comment"),
        ("# and one more", "comment"),
        ("TRY", "command"),
        ("FIND", "command"),
        ("nodes", "keyword"),
    ]
    at = found.index(("COUNT", "command"))
    assert found[at : at + 6] == [
        ("COUNT", "command"), ("count", "variable"), ("BY", "keyword"), ("by", "property"), ("AS", "keyword"), ("limit", "variable"),
    ]  # fmt: skip
    assert ("pagerank", "function") in found
    assert found[-13:-9] == [("a", "property"), ("TEXT", "type"), ("b", "property"), ("INT", "type")]
    assert found[-3:] == [("x", "variable"), ("=", "operator"), ('"open', "string")]


ANALYSIS = """PARAM least INT = -3
FIND patterns (p:PERSON|ORG {id: "A"})-[r]->(q)<--(s) WHERE p.year -1 > r.x AS z
SELECT z FIELDS lower(p.id) AS key, q AS key2 WHERE LEN key > -1 AS a
MEASURE a ON b USING pagerank(damping = 0.5) BY w * 2 AS r
LEFT JOIN a WITH b AS c ON key = id AS d
"""


def test_a_word_of_an_analysis_is_what_the_parser_says_it_is():
    assert told("gasl", ANALYSIS) == [
        ("PARAM", "command"), ("least", "variable"), ("INT", "type"), ("=", "operator"), ("-3", "number"),
        ("FIND", "command"), ("patterns", "keyword"), ("p", "variable"), ("PERSON", "type"), ("ORG", "type"), ("id", "property"),
        ('"A"', "string"), ("-", "operator"), ("r", "variable"), ("->", "operator"), ("q", "variable"), ("<-", "operator"),
        ("-", "operator"), ("s", "variable"), ("WHERE", "keyword"), ("p.year", "property"), ("-", "operator"), ("1", "number"),
        (">", "operator"), ("r.x", "property"), ("AS", "keyword"), ("z", "variable"),
        ("SELECT", "command"), ("z", "variable"), ("FIELDS", "keyword"), ("lower", "function"), ("p.id", "property"),
        ("AS", "keyword"), ("key", "property"), ("q", "property"), ("AS", "keyword"), ("key2", "property"), ("WHERE", "keyword"),
        ("LEN", "keyword"), ("key", "property"), (">", "operator"), ("-1", "number"), ("AS", "keyword"), ("a", "variable"),
        ("MEASURE", "command"), ("a", "variable"), ("ON", "keyword"), ("b", "variable"), ("USING", "keyword"),
        ("pagerank", "function"), ("damping", "property"), ("=", "operator"), ("0.5", "number"), ("BY", "keyword"),
        ("w", "property"), ("*", "operator"), ("2", "number"), ("AS", "keyword"), ("r", "variable"),
        ("LEFT", "command"), ("JOIN", "keyword"), ("a", "variable"), ("WITH", "keyword"), ("b", "variable"), ("AS", "keyword"),
        ("c", "property"), ("ON", "keyword"), ("key", "property"), ("=", "operator"), ("id", "property"), ("AS", "keyword"),
        ("d", "variable"),
    ]  # fmt: skip


def test_a_bracket_of_a_pattern_continues_on_the_next_line():
    assert told("gasl", 'FIND patterns (p {\n id: "A"})-->(q) AS x')[2:5] == [
        ("p", "variable"), ("id", "property"), ('"A"', "string"),
    ]  # fmt: skip


def test_tokens_of_a_script_know_references_in_strings():
    found = told("lwt", SCRIPT)
    assert found[:3] == [("# x", "comment"), ("a", "step"), ("=", "operator")]
    assert ("input", "step") in found
    assert ('["x"]', "property") in found
    assert ("json", "type") in found
    assert ("true", "keyword") in found
    assert ('"""multi (a)=', "string") in found
    assert ("prose", "type") not in found
    assert [name for name, kind in found if kind == "step"] == ["a", "input", "b", "a", "item", "c", "d"]


def test_tokens_of_a_document_go_into_its_expressions():
    text = json.dumps(
        {"compute": [{"name": "N", "expr": "round(a.b, 2) if x is not null else 1"}], "n": -1.5e3, "t": True}
    )
    found = told("seed", text)
    assert found[:3] == [('"compute"', "property"), ('"name"', "property"), ('"N"', "string")]
    assert ("round", "function") in found
    assert ("is not null", "keyword") in found
    assert found[-2:] == [('"t"', "property"), ("true", "keyword")]


def test_an_expression_that_cannot_be_read_has_tokens_of_its_words():
    assert told("expr", "1 + + if x") == [
        ("1", "number"),
        ("+", "operator"),
        ("+", "operator"),
        ("if", "keyword"),
        ("x", "variable"),
    ]


@pytest.mark.parametrize(("language", "text"), [("gasl", PROGRAM), ("lwt", SCRIPT)])
def test_the_tokens_of_a_text_do_not_depend_on_what_was_asked_before(language, text):
    whole = told(language, text)
    assert told(language, text + "\n# more") == [*whole, ("# more", "comment")] or language == "lwt"
    assert told(language, text) == whole


HOVERS = [
    ("gasl", "FIND nodes WHERE entity_ty|pe = 1 AS x", "**field** `entity_type` · of nodes"),
    ("gasl", "FI|ND nodes AS x", "```gasl\nFIND nodes|edges [WHERE condition]"),
    ("gasl", 'FIND nodes WHERE entity_type = "PER|SON" AS x', "**value** `PERSON` · 50"),
    ("gasl", "FIND nodes AS x\nCOUNT |x AS y", "**variable** `x`\n\n```gasl\nFIND nodes AS x\n```"),
    ("gasl", "FIND nodes AS x|\nCOUNT x AS y", "**variable** `x`, defined here, used once"),
    ("gasl", "ASSERT LEN ${gi|ven} > 1", "**variable** `given` · 12 rows"),
    ("gasl", "UPDATE sto|ry WITH x", "**key** `story` · DICT\n\nWhat we \\*know\\*."),
    ("gasl", "SET llm.mo|del = 'x'", "**setting** `llm.model` · text"),
    ("gasl", "ON EMPTY x THEN JOIN x WITH y O|N id AS z", "**keyword** `ON`, in\n\n```gasl\n[LEFT] JOIN"),
    ("gasl", "LEFT JOIN x WITH y O|N id AS z", "**keyword** `ON`, in\n\n```gasl\nLEFT JOIN"),
    ("gasl", "EXCEPT x WITH y O|N id AS z", "**keyword** `ON`, in\n\n```gasl\nEXCEPT"),
    ("gasl", "MEASURE x O|N y USING pagerank AS z", "**keyword** `ON`, in\n\n```gasl\nMEASURE"),
    ("gasl", "O|N EMPTY x THEN RESET k", "```gasl\nON EMPTY|ERROR"),
    ("gasl", "BRANCH IF ${x} > 0 THEN O|N EMPTY x THEN RESET k ELSE RESET j", "```gasl\nON EMPTY|ERROR"),
    ("gasl", "JOIN x WITH x ON id SIMI|LAR 0.5 AS z", "**keyword** `SIMILAR`, in\n\n```gasl\n[LEFT] JOIN"),
    ("gasl", "COU|NT x AS n", "```gasl\nCOUNT name"),
    ("gasl", "AGGREGATE x COMPUTE COU|NT() AS n", "**function** `count` · count"),
    ("gasl", "AGGREGATE x COMPUTE max(ma|x(a, 1)) AS n", "**function** `max` · max\\(xs\\)"),
    ("gasl", "AGGREGATE x COMPUTE ma|x(max(a, 1)) AS n", "**function** `max` · max\\(value\\)"),
    ("gasl", "EXPLAIN FIND no|des AS x", "**keyword** `nodes`, in\n\n```gasl\nFIND nodes"),
    ("gasl", "BRANCH IF ${x} > 0 THEN RESET a EL|SE RESET b", "**keyword** `ELSE`, in\n\n```gasl\nBRANCH IF"),
    ("gasl", "TRY\n  RESET k\nCAT|CH ANY\n  RESET j\nEND", "**keyword** `CATCH`, in\n\n```gasl\nTRY\n"),
    ("gasl", "TRY\n  RESET k\nCATCH AN|Y\n  RESET j\nEND", "**keyword** `ANY`, in\n\n```gasl\nTRY\n"),
    ("lwt", '(a)=L|LM("x")', "**operation** `LLM` · One answer"),
    ("lwt", '(a)=LLM("x", ty|pe=json)', "**option** `type` · text"),
    ("lwt", '(b)=LLM("x")\n(a)=LLM("{(b|)}")', '**step** `b`\n\n```lwt\n(b)=LLM("x")\n```'),
    ("lwt", '(b)=LLM("x")\n(a|)=LLM("{(b)}")', "**step** `a`, defined here, not used in this text"),
    ("expr", "rou|nd(x)", "**function** `round` · round\\(x\\)"),
    ("seed", '{"compute": [{"na|me": "N", "op": "count"}]}', "**property** `name` · required"),
]


@pytest.mark.parametrize(("language", "text", "begin"), HOVERS, ids=[text for _, text, _ in HOVERS])
def test_hover_says_what_completion_says(language, text, begin):
    offset = text.rindex("|") if language == "expr" else text.index("|")
    found = hover(language, text[:offset] + text[offset + 1 :], offset, KNOWN)
    assert found.text.startswith(begin)
    assert found.span.start <= offset <= found.span.end


def test_a_command_after_explain_is_a_command():
    assert told("gasl", "EXPLAIN LEFT JOIN a WITH b ON c AS d")[:3] == [
        ("EXPLAIN", "command"), ("LEFT", "command"), ("JOIN", "keyword"),
    ]  # fmt: skip


def test_nothing_from_data_becomes_markup():
    found = hover("gasl", "FIND nodes WHERE `odd name` = 1 AS x", 20, KNOWN).text
    assert '``"`*evil*`\\n<b>"``' in found
    assert "<b>" not in found.replace('``"`*evil*`\\n<b>"``', "")


@pytest.mark.parametrize("text", ["FIND nodes AS x # a| b", "|", "  |  "])
def test_there_is_nothing_to_say_of_comments_and_blanks(text):
    offset = text.index("|")
    assert hover("gasl", text.replace("|", ""), offset, KNOWN) is None


def test_symbols_are_what_a_text_defines():
    block, p, _ = symbols("gasl", PROGRAM)
    assert (block.name, block.kind, [each.name for each in block.children]) == (
        "TRY",
        "block",
        ["people", "limit", "b"],
    )
    assert (p.name, p.kind, PROGRAM[p.name_span.start : p.name_span.end]) == ("p", "variable", "p")
    assert [(each.name, each.detail) for each in symbols("lwt", SCRIPT)][:2] == [("a", "LLM"), ("b", "EACH")]
    seed = '{"extract": {"fields": [{"name": "mood", "type": "text"}]}, "compute": [{"name": "N", "op": "count"}], "output": []}'
    assert [(each.name, each.kind, each.detail) for each in symbols("seed", seed)] == [
        ("mood", "field", "text"), ("N", "computation", "count"),
    ]  # fmt: skip
    assert symbols("expr", "1 + 1") == ()


def test_blocks_steps_and_remarks_fold():
    assert folds("gasl", PROGRAM) == (Fold(1, 2, "comment"), Fold(3, 8), Fold(10, 11))
    assert Fold(4, 5) in folds("lwt", SCRIPT)
    assert folds("seed", '{\n"a": [\n1],\n"b": {}}') == (Fold(1, 4), Fold(2, 3))


def test_the_lexers_of_pygments_keep_every_character_and_are_entry_points():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["pygments.lexers"]
    assert {"lwt", "gasl"} <= points.keys()
    for name, value in points.items():
        lexer = EntryPoint(name, value, "pygments.lexers").load()()
        assert name in lexer.aliases
        for text in (PROGRAM, SCRIPT, '{"a": 1}', "x\u00e9\n"):
            assert "".join(said for _, _, said in lexer.get_tokens_unprocessed(text)) == text
    gasl = EntryPoint("gasl", points["gasl"], "pygments.lexers").load()()
    assert (pygments_token.Keyword.Declaration, "FIND") in list(gasl.get_tokens("FIND nodes AS x"))
