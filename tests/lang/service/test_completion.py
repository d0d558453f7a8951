"""What is offered at the cursor: what the grammar takes next, and the names that fit."""

import pytest
from knotwork.lang.service import Known, complete
from support.service_known import KNOWN


def offered(language, text, known=KNOWN):
    """Complete at the ``|`` in ``text`` (the last one); return the texts."""
    offset = text.rindex("|")
    return [each.text for each in complete(language, text[:offset] + text[offset + 1 :], offset, known)]


GASL = [
    ("FI|", ["FIND"]),
    ("FIND |", ["paths", "nodes", "edges"]),
    ("FIND nodes |", ["AS", "LIMIT", "ORDER", "WHERE"]),
    ("FIND nodes LIMIT 3 |", ["AS", "ORDER", "WHERE"]),
    ('FIND nodes WHERE entity_type = "PE|', ['"PERSON"']),
    ("FIND nodes WHERE entity_type = 'PE|' AS x", ["'PERSON"]),
    ('FIND nodes WHERE entity_type = "PE|" AS x', ['"PERSON']),
    ("FIND nodes WHERE year = 20|", ["2020", "2021"]),
    ("FIND nodes WHERE `odd name` = s|", ['"say \\"x\\"\\\\"', "${given.score}"]),
    ("FIND edges WHERE target.y|", ["target.year", "target.entity_type"]),
    ("FIND paths WHERE ANY node.y|", ["node.year", "node.entity_type"]),
    ("FIND nodes AS a\nCOUNT |", ["a", "given"]),
    ("COUNT given BY |", ["id", "score"]),
    ("COUNT given BY score AS s\nSELECT s FIELDS |", ["score", "count"]),
    ("FIND edges AS e\nJOIN e WITH given ON source = id AS j\nSELECT j FIELDS sc|", ["score", "source"]),
    (
        "COUNT given BY id AS n\nJOIN n WITH given ON count = score AS j\nRANK j BY |",
        ["id", "count", "right.id", "score"],
    ),
    ("SELECT given WHERE sc|", ["score", "${given.score}"]),
    ("AGGREGATE given BY id COMPUTE m|", ["median", "mean", "min", "max"]),
    ("MEASURE graph USING |", ["pagerank", "degree"]),
    ("UPDATE st|", ["story", "story.hubs"]),
    ("DECLARE x AS |", ["COUNTER", "LIST", "DICT"]),
    ("SET llm.m|", ["llm.model", "llm.max_concurrency", "llm.max_tokens", "llm.temperature"]),
    ('SET llm.model = "s|', ['"small"']),
    ("ASSERT ${gi|} > 1", ["${given", "${given.id", "${given.score"]),
    ("COUNT given BY id AS a\nCOUNT given BY id AS b\nCOUNT a AS c\nCOUNT a AS d\nASSERT ${a.c|", ["${a.count}"]),
    ("WALK given DIRECTION |", ["both", "out", "in"]),
    ("RANK given BY score |", ["AS", "LIMIT", "DESC", "ASC"]),
    ("TRY\nFIND nodes AS x\nEN|", ["END"]),
    ("FIND nodes AS x\nEN|", []),
    ("TRY\nFIND nodes AS x\nCATCH ANY\nCATC|", []),
    ("# FI|", []),
    ("FIND nodes WHERE year = 1 AS a|", []),
    ("nonsense here |", []),
]


@pytest.mark.parametrize(("text", "expected"), GASL, ids=[text for text, _ in GASL])
def test_gasl_offers(text, expected):
    assert offered("gasl", text) == expected


def test_a_field_is_written_as_the_printer_writes_it():
    assert offered("gasl", "FIND nodes WHERE odd|") == ["`odd name`"]


def test_every_command_is_offered_where_a_statement_begins():
    from knotwork.lang.catalogue.commands import FORMS

    assert set(offered("gasl", "|")) == {*FORMS, "TRY"}
    assert set(offered("gasl", "TRY\nCOUNT given AS n\n|")) == {*FORMS, "TRY", "CATCH", "FINALLY", "END"}
    assert set(offered("gasl", "BRANCH IF LEN ${given} > 1 THEN |")) == set(FORMS)


LWT = [
    ("(a)=L|", ["LLM"]),
    ('(a)=LLM("x", ty|', ["type="]),
    ('(a)=LLM("x", type=json, ty|', []),
    ('(a)=EACH({(input)}["reviews"], LLM("x"), on_error=|', ["fail", "keep", "drop"]),
    ('(a)=LLM("x", model=|', ['"small"', '"big"']),
    ('(a)=LLM("x", model="s|', ['"small"']),
    ('(a)=LLM("x", model="s|")', ['"small']),
    ('(a)=LLM("x {|', ["{(given)}", "{(input)}"]),
    ('(b)=LLM("y")\n(a)=LLM("x {(b|)}")', ["{(b"]),
    ('(a)=LLM("x {(input)}[me|', ["[meta]"]),
    ('(a)=LLM("x {(input)}[meta][|]")', ["[stars"]),
    ('(a)=EACH({(input)}["r|', ['["reviews"]']),
    ('(c)=CONST({"k": [1]})\n(a)=LLM("{(c)}[|', ["[k]"]),
    ('(a)=EACH({(input)}["reviews"], LLM("{(i|', ["{(item)}", "{(index)}", "{(input)}"]),
    ('(a)=EACH({(input)}["reviews"], L|', ["LLM"]),
    ('(a)=LLM("x {(b)}")\n(|', ["(b)=", "(final)="]),
    ('(a)=EXPR("1 + {|', []),
    ('(a)=EXPR("cla|", n={(input)})', ["clamp("]),
    ('(a)=EXPR("1 + n|", n={(input)})', ["n", "null"]),
    ('(a)=LLM("x", when="cla|', ["clamp("]),
    ('(a)=GASL("FIND nodes WHERE ye|', ["year"]),
    ('(a)=GASL("FIND no|des AS x")', ["nodes"]),
    ("(a)=GASL('FIND nodes WHERE entity_type = \"PE|", ['"PERSON"']),
    ('(a)=GASL("FIND {(b)} no|', []),
    ('(a)=LLM("FIND no|', []),
    ("# {(|", []),
    ("prose {(|", []),
]


@pytest.mark.parametrize(("text", "expected"), LWT, ids=[text for text, _ in LWT])
def test_lwt_offers(text, expected):
    assert [each for each in offered("lwt", text) if each.strip("\"'([{)|")] == expected


EXPR = [
    ("gi|", ["given"]),
    ("given.st|", ["startswith", "strip", "split"]),
    ("cla|", ["clamp("]),
    ("max(given, de|", ["default=", "mode(", "stdev("]),
    ("sum(x for x in given if |", None),
    ("given is|", ["is null", "is not null"]),
    ('"abc|', []),
    ("1 1|", []),
]


@pytest.mark.parametrize(("text", "expected"), EXPR, ids=[text for text, _ in EXPR])
def test_expr_offers(text, expected):
    found = offered("expr", text)
    assert found == expected if expected is not None else found[0] == "x"


SEED = """{"task_name": "t", "extract": {"fields": [{"name": "mood", "type": "enum", "values": ["glad", "sad"]}]},
 "compute": [{"name": "GOOD", "op": "define_filter", "where": {"extraction.mood": "glad"}}, {"name": "N", "op": "count"},
  @], "output": ["N"]}"""
IN_SEED = [
    ('{"a" |', []),
    ('{"a": 1, } {"op": "c|', ['"count"', '"const"', '"case"']),
    ("|", []),
    ("{|", ['"name": ', '"op": ', '"extraction": ', '"where": ', '"expr": ', '"field": ', '"default": ']),
    ('{"na|"', ['"name']),
    ('{"op": "c|', ['"count"', '"const"', '"case"']),
    ('{"op": "count", |', ['"name": ', '"where": ']),
    (
        '{"op": "count", "where": {|',
        ['"extraction.mood": ', '"$GOOD": ', '"N": ', '"context.reviews": ', '"context.a b": '],
    ),
    ('{"op": "count", "where": {"extraction.mood": |', ['"glad"', '"sad"']),
    ('{"op": "count", "where": {"extraction.mood": {"in": ["s|', ['"sad"']),
    ('{"op": "count", "where": {"$GOOD": |', ["true", "false"]),
    ('{"op": "expr", "expr": "1 + N|', ["N", "null"]),
    ('{"op": "sum", "expr": "extraction.|', ["mood"]),
    ('{"op": "case", "rules": [{"when": ">= cla|', ["clamp("]),
    ('{"op": "lookup", "source": "N|"', ['"N']),
]


@pytest.mark.parametrize(("part", "expected"), IN_SEED, ids=[part for part, _ in IN_SEED])
def test_seed_offers(part, expected):
    found = offered("seed", SEED.replace("@", part))
    assert (
        found[: len(expected)] == expected
        if part == "{|"
        else [f for f in found if not f.startswith(('"context.meta', '"meta.'))] == expected
    )


def test_outputs_are_steps_that_have_a_value_and_stand_there_not_yet():
    assert offered("seed", SEED.replace("@], ", "], ").replace('["N"]', "[|")) == ['"N"']


def test_what_is_typed_exactly_comes_before_what_is_only_like_it():
    known = Known(
        variables=dict.fromkeys(("my_total", "Total", "total", "t_o_t_a_l", "other"), KNOWN.variables["given"])
    )
    assert offered("gasl", "COUNT tot|", known) == ["total", "Total", "my_total", "t_o_t_a_l"]


def test_at_most_200_are_offered_and_ranks_are_their_places():
    many = Known(variables={f"v{i}": KNOWN.variables["given"] for i in range(1_000)})
    found = complete("gasl", "COUNT ", 6, many)
    assert len(found) == 200
    assert [each.rank for each in found] == list(range(200))


def test_a_thing_is_described():
    found = complete("gasl", "FIND nodes WHERE ent", 20, KNOWN)[0]
    assert found.detail == "of nodes"
    assert '`"PERSON"` (50)' in found.documentation
    found = complete("gasl", "FIN", 3, KNOWN)[0]
    assert found.kind == "command"
    assert found.detail.startswith("FIND nodes|edges")


@pytest.mark.parametrize("offset", [-5, 0, 3, 99])
@pytest.mark.parametrize("language", ["gasl", "lwt", "expr", "seed"])
def test_an_offset_beside_the_text_is_moved_into_it(language, offset):
    complete(language, "abc", offset, KNOWN)
