"""The grammar files: no conflicts, no colliding terminals, and the forms that constrain a model's output."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import grammar
from knotwork.lang.catalogue.commands import FORMS
from knotwork.lang.constrain import constrain
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.parse.expr.builder import RESERVED
from knotwork.lang.parse.gasl import keywords, parse_gasl
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.service import diagnose
from knotwork.lang.trees.gasl import Command
from lark import Lark
from llguidance import LLMatcher, LLTokenizer
from support.derivation import Sentences
from support.generation import generate

LANGUAGES = ("lwt", "gasl", "expr")
PARSERS = {"lwt": parse_lwt, "gasl": parse_gasl, "expr": parse_expr}
LIKED = {
    "lwt": b'(){}[]"= ,|LMabx019.\n#:',
    "gasl": b'()[]"= ,ABCDEFINOSTWabx019.\n#:$',
    "expr": b'abmexsu019 ()[]{}"+*-=<>.,ifornotad',
}
ENDS = {"lwt": b'")]}', "gasl": b'\n")]}', "expr": b'")]}'}


class Everywhere:
    always_accept = ("_NEWLINE", "COMMENT", "WHY")

    def process(self, stream):
        return stream


def matcher(language: str) -> LLMatcher:
    return LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain(language, "llguidance")))


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_grammar_has_no_conflicts(language: str) -> None:
    options = {"start": ["program", "condition_only"], "postlex": Everywhere()} if language == "gasl" else {}
    text = grammar.inlined(language)
    Lark(text, parser="lalr", lexer="contextual", strict=True, maybe_placeholders=False, **options)


@pytest.mark.parametrize("language", ["lwt", "gasl"])
def test_inlining_leaves_no_import(language: str) -> None:
    assert "%import .terminals" in grammar.text(language)
    assert "%import" not in grammar.inlined(language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_llguidance_takes_the_grammar(language: str) -> None:
    is_bad, messages = LLMatcher.validate_grammar_with_warnings(constrain(language, "llguidance"))
    assert not is_bad, messages


@pytest.mark.parametrize("language", LANGUAGES)
def test_openai_form_is_a_custom_tool(language: str) -> None:
    tool = json.loads(constrain(language, "openai"))
    assert tool["format"]["definition"] == constrain(language, "llguidance")
    assert (tool["type"], tool["name"], tool["format"]["syntax"]) == ("custom", language, "lark")


def test_the_form_of_expressions_has_no_look_around() -> None:
    assert "(?" not in constrain("expr", "llguidance")
    assert "->" not in constrain("expr", "llguidance")


def test_every_command_has_a_form_for_hints() -> None:
    words = {kind.__name__ for kind in Command.__args__}
    same = {"FindPatterns": "FIND", "FindPaths": "FIND", "FindCycles": "FIND", "SetCommand": "SET"}
    shown = {same.get(word, word).upper() for word in words} - {"SETOPERATION", "TRY"}
    assert shown | {"UNION", "INTERSECT", "EXCEPT", "LEFT"} == set(FORMS)
    assert set(FORMS) < keywords()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("lwt", '(a)=LLM("Is {(input)}["items"][5]["name"] good, and {(b.c)}?", temperature=0.5)'),
        ("lwt", '(a)=LLM("{(b)}{(c)}")'),
        ("lwt", '(a)=LLM("a {brace} and {{(b)}, \\"quotes\\", a back\\slash")\n(b)=LLM("")'),
        ("gasl", 'FIND nodes WHERE entity_type = "PERSON" AND age > 3 LIMIT 10 AS authors\nCOUNT authors AS n\n'),
        ("gasl", '#: why\nDECLARE network.authors AS LIST WITH_DESCRIPTION "All of them."'),
        ("gasl", "TRY \nFIND nodes AS x\nCATCH ANY \nRESET k\nEND \n"),
        ("gasl", "BRANCH IF LEN ${x} > 0 THEN RESET a ELSE RESET b"),
        (
            "gasl",
            'AGGREGATE x BY f COMPUTE sum(y), count() AS z\nPROCESS x USING "go" AS y RETURNING (a TEXT , b INT )',
        ),
        ("gasl", "PARAM a BOOL = true \nPARAM b BOOL = false \nPARAM c BOOL = null \nFIND nodes AS x"),
        (
            "gasl",
            "PARAM a FLOAT = 0.5 \nPARAM b FLOAT = -12.25 \nPARAM c FLOAT = -3 \nPARAM d INT = -3 \nFIND nodes AS x",
        ),
        (
            "gasl",
            "PARAM a INT = null \nPARAM b FLOAT = null \nPARAM c TEXT = null \nPARAM d LIST = null \nFIND nodes AS x",
        ),
        (
            "gasl",
            'PARAM d LIST = null WITH_DESCRIPTION "Ids."\nFIND nodes ORDER BY year - ${n} DESC , -number(name) AS x',
        ),
        ("gasl", 'RANK x BY ${n} * (1 - a) LIMIT 3 PER if(a > ${n}, b, "none"), coalesce("x", b) AS y'),
        ("gasl", 'JOIN x WITH y ON "p" + id = clamp(LEN a, 0 , ${n}), (b) AS z'),
        ("gasl", 'PARAM least INT = 3 \nPARAM account TEXT WITH_DESCRIPTION "An id."\nFIND nodes AS x'),
        (
            "gasl",
            'FIND patterns (p:PERSON|ORG {id: "A", year: 3 })-[r:KNOWS]->(q)<--(s), (s)-[]-(:X)--() '
            "WHERE p.year - 1 >= 0.9 * r.amount ORDER BY p.year DESC LIMIT 3 PER q.id AS rows",
        ),
        ("gasl", "FIND cycles VIA amount >= 1000 WHERE INCREASING edge.date MAXLEN 5 AS loops"),
        ("gasl", 'FIND paths FROM (id = "A") TO b SHORTEST 3 BY fee / 2 DIRECTION out LIMIT 5 AS ways'),
        ("gasl", "WALK x DEPTH 2 TRACE AS y\nSELECT DISTINCT y AS z\nSELECT y SAMPLE 5 AS few"),
        (
            "gasl",
            "SELECT DISTINCT x FIELDS lower(a) AS k, b, if(c > 1 , 1 , 0 ) AS d, -b AS n WHERE LEN a > 1 SAMPLE 50 AS y",
        ),
        ("gasl", 'UNNEST x BY split(a, ",") AS part AS y\nCOUNT y BY part, source.name AS n AS z'),
        (
            "gasl",
            'AGGREGATE x BY date_trunc("month", at) AS m COMPUTE count(), count(DISTINCT a) AS n, percentile(a, 0.95 ) AS p, '
            "sum(if(amount > 9000 , 1 , 0 )) AS big AS y",
        ),
        ("gasl", "AGGREGATE x COMPUTE mean(a) AS y\nRANK x BY a * b DESC , c LIMIT ${n} PER d AS y"),
        ("gasl", "LEFT JOIN x WITH y AS payer ON a = lower(b), c AS z\nJOIN x WITH x ON id SIMILAR 0.5 AS z"),
        ("gasl", "EXCEPT x WITH y ON source, target AS z"),
        ("gasl", 'MEASURE people ON inner USING communities(method = "louvain", resolution = 0.5 ) BY amount / 2 AS z'),
        ("gasl", "MEASURE graph USING pagerank AS z"),
        ("expr", '"Low" if score < 4 else "High" if score < 8 else "Critical"'),
        ("expr", 'sum(1 for e in extractions if e["severity"] == "mild" and e["account_type"] != "none")'),
        ("expr", "max(0.1, min(1.0, raw)) * -2 ** n"),
        ("expr", 'extraction.severity in ["mild", "severe"] and meta.stars is not null'),
        ("expr", 'max((e["stars"] for e in extractions), default=0)'),
        ("expr", "[[y for y in x] for x in xs][0][1: ].count((1,))"),
        ("expr", 'not {"a": ()}.get("a")'),
    ],
)
def test_canonical_texts_are_admitted(language: str, text: str) -> None:
    admitting = matcher(language)
    assert admitting.consume_tokens(list(text.encode()))
    assert admitting.is_accepting()
    assert not PARSERS[language](text).diagnostics


@pytest.mark.parametrize(
    "text",
    [
        '#: why it is\nFIND nodes WHERE (`a b` = "PER SON" AND NOT age > 3 ) ORDER BY f DESC LIMIT 10 AS authors\nCOUNT authors AS n\n',
        "TRY \nFIND nodes AS x\nCATCH ANY \nRESET k\nEND \nBRANCH IF LEN ${`a b`.c[0]} > 0 THEN RESET a ELSE RESET b",
        'PROCESS x USING "go" AS y RETURNING (a TEXT , b INT )\nCLASSIFY x BY "is it" INTO ["a", "b"] AS y',
        'FIND patterns (p:A|B {id: "x"})-[r]->(q), (q)<--() WHERE p.a - 1 < number(q.b) + 2 LIMIT 3 PER r.x AS y\nAGGREGATE y BY a AS b '
        "COMPUTE count(DISTINCT c) AS d, percentile(e, 0.5 ) AS f AS g",
    ],
)
def test_no_place_allows_endless_blanks(text: str) -> None:
    """A small model that may write a blank writes nothing else."""
    start = matcher("gasl")
    for byte in text.encode():
        at = start.deep_copy()
        blanks = sum(at.try_consume_tokens([each]) for each in b"\n\t" + b" " * 20)
        assert blanks <= 10, text
        assert start.consume_tokens([byte]), text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FIELDS lower(a) AS y",  # the column has no name
        "SELECT x AS y",
        "SELECT x FIELDS upperCase(a) AS b AS y",
        "SELECT x FIELDS clamp(a, 1 ) AS b AS y",
        "SELECT x FIELDS lower(a > 1 ) AS b AS y",
        "AGGREGATE x COMPUTE percentile(a) AS y",
        "AGGREGATE x COMPUTE sum() AS y",
        "AGGREGATE x COMPUTE sum(DISTINCT a) AS y",
        "UNNEST x BY a, b AS y",
        "FIND cycles DIRECTION out AS y",
        "FIND paths LIMIT 3 PER a AS y",
        "FIND nodes WHERE 1 < age AS y",
        "FIND paths WHERE ANY age > 1 AS y",
        "LEFT JOIN x WITH y ON a SIMILAR 0.5 AS z",
        "UNION x WITH y ON a SIMILAR 0.5 AS z",
        "MEASURE graph USING louvain AS y",
        "MEASURE graph USING degree(damping = 0.5 ) AS y",
        "RESET k\nPARAM least INT = 3 ",
        "PARAM a INT = 0.5 \n",
        "PARAM a INT = 007 \n",
        "PARAM a BOOL = 1 \n",
        'PARAM a BOOL = "true"\n',
        "PARAM a TEXT = 3 \n",
        "PARAM a LIST = 3 \n",
        "PARAM a FLOAT = true \n",
        "FIND nodes ORDER BY ${n} AS x",
        "FIND nodes ORDER BY -${n} AS x",
        "FIND nodes ORDER BY 1 + ${n} AS x",
        'FIND nodes ORDER BY lower("A") AS x',
        "FIND nodes LIMIT 3 PER ${n} AS x",
        "RANK x BY LEN ${n} AS y",
        "RANK x BY if(a > 1 , ${n}, 2 ) AS y",
        "JOIN x WITH y ON ${n} AS z",
        "JOIN x WITH y ON id = ${n} AS z",
        "JOIN x WITH y ON id = ${n} SIMILAR 0.5 AS z",
        "UNION x WITH y ON ${n} AS z",
        'MEASURE graph USING pagerank BY "weight" AS y',
        "MEASURE graph USING triangles BY weight AS y",
        "COUNT `a b`AS n",
        "FIND nodes WHERE LEN -age > 3 AS x",
        "FIND nodes WHERE LEN age < 0 AS x",
        "FIND nodes WHERE ANY node.age > 3 AS x",
        "FIND nodes WHERE INCREASING edge.age AS x",
        "FIND nodes WHERE age IN () AS x",
        'FIND nodes WHERE age + 1 = "3" AS x',
        "FIND nodes WHERE lower(name) > 3 AS x",
        'FIND nodes WHERE name + 1 + "a" = "a" AS x',
        "FIND nodes WHERE name MATCHES lower(other) AS x",
        'FIND nodes WHERE name MATCHES "(" AS x',
        "FIND nodes WHERE name STARTS_WITH 3 AS x",
        "FIND nodes WHERE similarity(a, b) > 3 AS x",
        "FIND nodes WHERE sqrt(lower(name)) > 3 AS x",
        'FIND nodes WHERE year("3") > 3 AS x',
        'FIND nodes WHERE date_trunc("decade", d) = e AS x',
        "FIND nodes WHERE max(3 ) > 2 AS x",
        "FIND nodes WHERE true = 3 AS x",
        "FIND nodes ORDER BY len AS x",
        "ASSERT age > 3 ",
        "BRANCH IF age > 3 THEN RESET a",
        "SET speed = 3 ",
        "SET llm.temperature = 7 ",
        "DECLARE a.items AS LIST ",
        "TRY #: why\nRESET a\nEND ",
    ],
)
def test_what_is_refused_is_not_admitted(text: str) -> None:
    refusing = matcher("gasl")
    assert not (refusing.consume_tokens(list(text.encode())) and refusing.is_accepting())


@pytest.mark.slow
@pytest.mark.parametrize(
    "begun",
    ["FIND nodes ORDER BY ", "FIND nodes LIMIT 3 PER ", "RANK x BY ", "JOIN x WITH y ON ", "JOIN x WITH y ON a = ", "EXCEPT x WITH y ON ",
     "MEASURE graph USING pagerank BY ", "PARAM p TEXT = ", "PARAM p INT = ", "PARAM p FLOAT = ", "PARAM p BOOL = ", "PARAM p LIST = "],
)  # fmt: skip
def test_what_the_linter_refuses_is_never_written(begun: str) -> None:
    """No value without a field where a field is needed, and no default of another type."""
    start, told = matcher("gasl"), []
    assert start.consume_tokens(list(begun.encode()))
    for seed in range(12):
        rest = generate(seed, start.deep_copy(), LIKED["gasl"], ENDS["gasl"], endless=True)
        first = (begun + (rest or "")).split("\n")[0]
        told += [each for each in diagnose("gasl", first) if each.code in ("GASL012", "GASL022", "GASL089", "GASL094")]
    assert not told


@pytest.mark.slow
@given(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True) | st.sampled_from(sorted(RESERVED)))
def test_the_form_of_expressions_has_the_names_of_the_parser(name: str) -> None:
    form = re.search(r"^NAME: /(.*)/$", constrain("expr", "llguidance"), re.MULTILINE)
    is_constant = name in ("None", "True", "False", "null", "true", "false")
    is_name = parse_expr(name).expr is not None and parse_expr(f"{name} + a").expr is not None and not is_constant
    assert form
    assert bool(re.fullmatch(form[1], name)) == is_name


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_generated_under_the_grammar_parse(language: str) -> None:
    tokenizer, text = LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain(language, "llguidance"))
    options = {} if language == "lwt" else {"endless": True}
    count = (
        100 if language == "gasl" else 300
    )  # a value in GASL may nest until it contains a field, so some texts do not end
    written = [
        generate(seed, LLMatcher(tokenizer, text), LIKED[language], ENDS[language], **options) for seed in range(count)
    ]
    whole = [each for each in written if each]
    assert len(whole) > count * 0.8
    refused = [each for each in whole if PARSERS[language](each).diagnostics]
    # A program may repeat a label or a field, or nest too deep; this is rare.
    assert all(
        fault.code in ("GASL017", "GASL023") for each in refused for fault in PARSERS[language](each).diagnostics
    )
    assert len(refused) <= len(whole) // 50


WORDS = {
    "IDENTIFIER": ["a", "people", "total", "nonesuch", "`a b` "], "LABEL": ["a", "PERSON", "`a b`"],
    "PATH": ["a", "name", "source.id", "x.y", "nonesuch", "`a b` ", "b.`a b` "], "VARIABLE": ["${n}", "${m.c}", "${k[0]}"],
    "ELEMENT": ["node.a", "edge.b"], "STRING": ['"t"', '"a b"', '"3"', '"[a-z]+"'], "_NEWLINE": ["\n"], "_BLANK": [" "],
}  # fmt: skip
OF_NAMES = frozenset({
    "GASL050", "GASL051", "GASL052", "GASL053", "GASL055", "GASL059", "GASL060", "GASL066", "GASL069", "GASL073", "GASL076", "GASL081",
    "GASL085", "GASL086", "GASL088", "GASL093", "GASL098",
})  # fmt: skip
"""Rules about names: whether one is bound, what it holds, whether it is repeated. No grammar knows them."""
OF_LIMITS = "GASL082"
"""A program may lower a limit with SET, and exceed it later."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_derived_programs_are_refused_only_for_their_names(seed: int) -> None:
    text = constrain("gasl", "llguidance")
    sentences, start = Sentences(text.replace("_BLANK?", "_BLANK"), seed, WORDS), matcher("gasl")
    for number in range(60):
        program = sentences.draw("program" if number % 10 == 0 else "statement")
        admitting = start.deep_copy()
        assert admitting.consume_tokens(list(program.encode())) and admitting.is_accepting(), program
        assert {each.code for each in parse_gasl(program).diagnostics} <= {"GASL017"}, program
        for found in diagnose("gasl", program):
            may_be = found.code in OF_NAMES or found.code in ("GASL017", OF_LIMITS) or "contradicts" in found.message
            assert may_be or "compared with itself" in found.message, (found, program)
