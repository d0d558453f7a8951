"""What is offered at the cursor: what the grammar takes next, and the names that fit."""

import pytest
from knotwork.lang.catalogue.value_functions import AGGREGATE_FUNCTIONS, VALUE_FUNCTIONS
from knotwork.lang.service import Known, complete
from support.service_known import KNOWN


def offered(language, text, known=KNOWN):
    """Complete at the ``|`` in ``text`` (the last one); return the texts."""
    offset = text.rindex("|")
    return [each.text for each in complete(language, text[:offset] + text[offset + 1 :], offset, known)]


CALLS = [f"{name}(" for name in VALUE_FUNCTIONS]
GIVEN = ["${given}", "${given.id}", "${given.score}"]
VALUE = [*GIVEN, *CALLS, "LEN", "-", "("]
"""What may begin a value, besides the fields."""
NODE = ["entity_type", "year", "`odd name`", "degree", "id", "in_degree", "out_degree"]
EDGE = ["weight", "type", "key", "source", "target"]
ENDS = [f"{end}.{name}" for end in ("source", "target") for name in NODE[:3]]
SIGNS = ["+", "-", "*", "/", "%"]

GASL = [
    ("FI|", ["FIND"]),
    ("FIND |", ["cycles", "paths", "patterns", "nodes", "edges"]),
    ("FIND nodes |", ["AS", "LIMIT", "ORDER", "WHERE"]),
    ("FIND nodes LIMIT 3 |", ["AS", "PER", "ORDER", "WHERE"]),
    ('FIND nodes WHERE entity_type = "PE|', ['"PERSON"']),
    ("FIND nodes WHERE entity_type = 'PE|' AS x", ["'PERSON"]),
    ('FIND nodes WHERE entity_type = "PE|" AS x', ['"PERSON']),
    ("FIND nodes WHERE year = 20|", ["2020", "2021"]),
    (
        "FIND nodes WHERE `odd name` = s|",
        [
            '"say \\"x\\"\\\\"',
            "similarity(",
            "split(",
            "sqrt(",
            "str(",
            "strip(",
            "substring(",
            "sum(",
            "${given.score}",
        ],
    ),
    ("FIND edges WHERE target.y|", ["target.year", "target.entity_type"]),
    ("FIND paths WHERE ANY node.y|", ["node.year", "node.entity_type"]),
    ("FIND nodes AS a\nCOUNT |", ["a", "given"]),
    ("COUNT given BY |", ["id", "score", *VALUE]),
    (
        "COUNT given BY score AS s\nSELECT s FIELDS |",
        ["score", "count", "${s}", "${given}", "${s.score}", "${s.count}", *GIVEN[1:], *CALLS, "LEN", "-", "("],
    ),
    (
        "FIND edges AS e\nJOIN e WITH given ON source = id AS j\nSELECT j FIELDS sc|",
        ["score", "${j.score}", "${given.score}", "coalesce(", "source", "${j.source}", "${e.source}"],
    ),
    (
        "COUNT given BY id AS n\nJOIN n WITH given ON count = score AS j\nRANK j BY |",
        [
            "id",
            "count",
            "right.id",
            "score",
            "${j}",
            "${n}",
            "${given}",
            "${j.id}",
            "${j.count}",
            "${j.`right.id`}",
            "${j.score}",
            "${n.id}",
            "${n.count}",
            *GIVEN[1:],
            *CALLS,
            "LEN",
            "-",
            "(",
        ],
    ),
    ("SELECT given WHERE sc|", ["score", "${given.score}", "coalesce("]),
    ("AGGREGATE given BY id COMPUTE m|", ["mean", "min", "max", "median"]),
    ("AGGREGATE given BY id COMPUTE |", [*AGGREGATE_FUNCTIONS]),
    ("MEASURE graph USING |", ["pagerank", "degree"]),
    ("UPDATE st|", ["story", "story.hubs"]),
    ("DECLARE x AS |", ["COUNTER", "LIST", "DICT"]),
    ("SET llm.m|", ["llm.model", "llm.max_concurrency", "llm.max_tokens", "llm.temperature"]),
    ('SET llm.model = "s|', ['"small"']),
    ("ASSERT ${gi|} > 1", ["${given", "${given.id", "${given.score"]),
    ("COUNT given BY id AS a\nCOUNT given BY id AS b\nCOUNT a AS c\nCOUNT a AS d\nASSERT ${a.c|", ["${a.count}"]),
    ("WALK given DIRECTION |", ["both", "out", "in"]),
    ("RANK given BY score |", ["AS", "LIMIT", "DESC", "ASC", ",", *SIGNS]),
    ("TRY\nFIND nodes AS x\nEN|", ["END"]),
    ("FIND nodes AS x\nEN|", []),
    ("TRY\nFIND nodes AS x\nCATCH ANY\nCATC|", []),
    ("# FI|", []),
    ("FIND nodes WHERE year = 1 AS a|", []),
    ("nonsense here |", []),
    # the forms of analysis
    ("LEFT |", ["JOIN"]),
    ("LEFT JOIN |", ["given"]),
    ("PARAM |", []),
    ("PARAM least |", ["FLOAT", "TEXT", "BOOL", "LIST", "INT"]),
    ("PARAM least INT |", ["WITH_DESCRIPTION", "="]),
    ("PARAM least BOOL = |", ["null", "true", "false"]),
    ("PARAM least INT = 3\nFIND nodes WHERE year > ${le|", ["${least}"]),
    ("SELECT |", ["given", "DISTINCT"]),
    ("SELECT given |", ["FIELDS", "SAMPLE", "WHERE"]),
    ("SELECT given SAMPLE |", GIVEN),
    ("SELECT given FIELDS |", ["id", "score", *VALUE]),
    ("SELECT given FIELDS id |", ["AS", "SAMPLE", "WHERE", ",", *SIGNS]),
    ("SELECT given FIELDS lower(id) AS |", []),
    ("SELECT given FIELDS lower(id) AS name |", ["AS", "SAMPLE", "WHERE", ","]),
    (
        "SELECT given FIELDS lower(id) AS name AS x\nCOUNT x BY |",
        ["name", "${x}", "${given}", "${x.name}", *GIVEN[1:], *CALLS, "LEN", "-", "("],
    ),
    ("UNNEST given |", ["BY"]),
    ("UNNEST given BY |", ["id", "score", *VALUE]),
    ("COUNT given BY id, |", ["id", "score", *VALUE]),
    ("COUNT given BY lower(id) |", ["AS", *SIGNS]),
    ("COUNT given BY lower(id) AS name |", ["AS", ","]),
    ("COUNT given BY clamp(score |", [",", *SIGNS]),
    ("COUNT given BY lower(|", ["id", "score", *VALUE]),
    ("AGGREGATE given |", ["BY", "COMPUTE"]),
    ("AGGREGATE given BY |", ["id", "score", *VALUE]),
    ("AGGREGATE given BY lo|", ["log(", "log10(", "log2(", "lower(", "floor("]),
    ("AGGREGATE given BY id, lo| COMPUTE count() AS n", ["log(", "log10(", "log2(", "lower(", "floor("]),
    ("AGGREGATE given BY lower(|", ["id", "score", *VALUE]),
    ("AGGREGATE given BY lower(id) |", ["AS", *SIGNS]),
    ("AGGREGATE given BY lower(id) AS name |", ["COMPUTE", ","]),
    ("AGGREGATE given COMPUTE sum(|", ["id", "score", *VALUE]),
    ("AGGREGATE given COMPUTE percentile(|", ["id", "score", *VALUE]),
    ("AGGREGATE given COMPUTE percentile(id |", [",", *SIGNS]),
    ("AGGREGATE given COMPUTE count(|", ["id", "score", *GIVEN, *CALLS, "DISTINCT", "LEN", "-", "(", ")"]),
    ("AGGREGATE given COMPUTE sum(score) AS total AS t\nRANK t BY to|", ["total", "${t.total}"]),
    ("RANK given BY score LIMIT 3 PER |", ["id", "score", *VALUE]),
    ("FIND nodes ORDER BY |", [*NODE, *VALUE]),
    ("FIND nodes LIMIT 3 PER |", [*NODE, *VALUE]),
    ("FIND nodes WHERE year + |", [*NODE, *VALUE]),
    ("FIND nodes WHERE year-de|", ["degree", "in_degree", "out_degree", "date(", "date_trunc("]),
    ("FIND nodes WHERE if(year > 3, |", [*NODE, *GIVEN, *CALLS, "true", "false", "LEN", "-", "("]),
    ("FIND nodes AS n\nCOUNT n BY deg|", ["degree", "in_degree", "out_degree"]),
    ("FIND edges AS e\nCOUNT e BY source.|", ["source.entity_type", "source.year", "source.`odd name`"]),
    ("JOIN given WITH given |", ["ON", "AS"]),
    ("JOIN given WITH given ON |", ["id", "score", *VALUE]),
    ("JOIN given WITH given ON id |", ["AS", "SIMILAR", "=", ",", *SIGNS]),
    (
        "FIND nodes AS n\nJOIN given WITH n AS p ON id AS j\nRANK j BY p.|",
        ["p.entity_type", "p.year", "p.`odd name`", "p.id"],
    ),
    ("EXCEPT given WITH given ON |", ["id", "score", *VALUE]),
    ("FIND cycles |", ["AS", "LIMIT", "MAXLEN", "VIA", "WHERE"]),
    ("FIND paths SHORTEST |", [*GIVEN, "AS", "BY", "DIRECTION", "FROM", "LIMIT", "MAXLEN", "VIA", "WHERE"]),
    ("FIND paths SHORTEST BY |", [*EDGE, *ENDS, *VALUE]),
    ("FIND paths WHERE INCREASING |", ["node.entity_type", "node.year", "node.`odd name`", "edge.weight", "edge.type"]),
    ("FIND paths FROM given TO given SHORTEST BY weight AS w\nRANK w BY co|", ["cost", "coalesce(", "${given.score}"]),
    ("WALK given |", ["AS", "TRACE", "DEPTH", "DIRECTION", "VIA"]),
    (
        "WALK given TRACE AS w\nRANK w BY |",
        [
            "depth",
            "parent",
            *NODE,
            "${w}",
            "${given}",
            "${w.entity_type}",
            "${w.year}",
            "${w.`odd name`}",
            "${w.id}",
            *GIVEN[1:],
            *CALLS,
            "LEN",
            "-",
            "(",
        ],
    ),
    ("MEASURE given |", ["ON", "USING"]),
    ("MEASURE given ON |", ["given"]),
    ("MEASURE graph USING pagerank |", ["AS", "BY", "("]),
    ("MEASURE graph USING pagerank(|", ["damping = "]),
    ("MEASURE graph USING communities(method = |", ['"louvain"', '"leiden"', '"label_propagation"']),
    ('MEASURE graph USING communities(method = "louvain", |', ["resolution = "]),
    ("MEASURE graph USING pagerank BY |", [*EDGE, *ENDS, *VALUE]),
    ("COUNT given BY id AS n\nFIND nodes WHERE year > ${n[0].|", ["${n[0].id}", "${n[0].count}"]),
    # patterns
    ("FIND patterns |", ["("]),
    ("FIND patterns (|", [":", "{", ")"]),
    ("FIND patterns (p:|", ["PERSON", "ORGANIZATION"]),
    ("FIND patterns (p:PERSON|", ["PERSON"]),
    ("FIND patterns (p:PERSON)|", ["AS", "LIMIT", "ORDER", "WHERE", ",", "<-", "-"]),
    ("FIND patterns (p)-|", ["->", "-", "["]),
    ("FIND patterns (p)-[r:|", ["KNOWS", "`WORKS FOR`"]),
    ("FIND patterns (p)-[r]|", ["->", "-"]),
    ("FIND patterns (p)-[r]->(|", ["p", ":", "{", ")"]),
    ("FIND patterns (p {|", ["id: ", "entity_type: ", "year: ", "`odd name`: "]),
    ("FIND patterns (p {entity_type: |", ['"PERSON"', '"ORGANIZATION"', *GIVEN]),
    ("FIND patterns (p)-[r]->(q) WHERE p.|", [f"p.{name}" for name in NODE]),
    (
        "FIND patterns (p)-[r]->(q) WHERE r.type = |",
        [
            "p",
            "r",
            "q",
            *(f"p.{name}" for name in NODE),
            *(f"q.{name}" for name in NODE),
            *(f"r.{name}" for name in EDGE),
            '"KNOWS"',
            *VALUE,
        ],
    ),
    ("FIND patterns (p)-[r]->(q) AS x\nSELECT x FIELDS p.|", ["p.entity_type", "p.year", "p.`odd name`", "p.id"]),
    ("FIND patterns (p)-[r]->(q) AS x\nSELECT x FIELDS p, q AS both\nCOUNT both BY p.ye|", ["p.year"]),
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
    ('(a)=EACH({(input)}["reviews"], C|', ["CALL", "max_concurrency="]),
    ('(a)=EACH({(input)}["reviews"], G|', ["{(given)}"]),  # not GASL
    ("(a)=JOIN(h|", ["how="]),
    ('(a)=JOIN(a={(input)}, b={(input)}, on="id", how=|', ["inner", "left"]),
    ("(a)=RUN(f|", ["file="]),
    ('(a)=RUN(file="x.lwt", input={(i|', ["{(input)}"]),
    ('(a)=CALL("x", t|', ["timeout="]),
    ('(a)=CALL("up")\n(b)=CALL("|', ['"up"']),
    ('(a)=CALL("up")\n(b)=CALL("u|")', ['"up']),
    ('(a)=CALL("up", n={(input)})\n(b)=CALL("x|', []),
    ('(a)=LLM(file="|', ['"prompts/mood.txt"', '"tone.md"']),
    ('(a)=LLM(file="p|")', ['"prompts/mood.txt']),
    ('(a)=LLM("x", schema_file="|', ['"mood.json"']),
    ('(a)=CONST(file="|', ['"mood.json"', '"prompts/mood.txt"', '"tone.md"']),
    ('(a)=RUN(file="|', ['"inner.lwt"']),
    ('(a)=GASL(file="|', []),
    ('(a)=CONST([{"id": 1, "name": "x"}])\n(b)=JOIN(a={(a)}, b=[{"stars": 2, "id": 1}], on="|', ['"id"']),
    ('(a)=CONST([{"id": 1, "name": "x"}])\n(b)=JOIN(a={(a)}, b={(c)}, on=["|', ['"id"', '"name"']),
    ('(b)=JOIN(a={(x)}, b={(c)}, on="|', []),
    ('(a)=LLM("x {(b)}")\n(|', ["(b)=", "(final)="]),
    ('(a)=EXPR("1 + {|', []),
    ('(a)=EXPR("cla|", n={(input)})', ["clamp("]),
    ('(a)=EXPR("1 + n|", n={(input)})', ["n", "number(", "null"]),
    ('(a)=LLM("x", when="cla|', ["clamp("]),
    ('(a)=GASL("FIND nodes WHERE ye|', ["year", "year("]),
    ('(a)=GASL("FIND patterns (p:|', ["PERSON", "ORGANIZATION"]),
    ('(a)=GASL("""PARAM least INT = 3\nFIND nodes AS x\nUNNEST x BY ye|', ["year", "year("]),
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
    ("max(given, de|", ["default=", "mode(", "stdev(", "date(", "date_trunc("]),
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
    ('{"op": "expr", "expr": "1 + N|', ["N", "number(", "null"]),
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
    found = complete("gasl", "COUNT given BY date_", 20, KNOWN)[0]
    assert (found.kind, found.detail) == ("function", "date_trunc(unit, t)")
    assert found.documentation.startswith("The beginning of the year")
    found = complete("gasl", "AGGREGATE given COMPUTE perc", 28, KNOWN)[0]
    assert (found.text, found.detail) == ("percentile", "percentile(value, share)")
    found = complete("gasl", "MEASURE graph USING pagerank(d", 30, KNOWN)[0]
    assert (found.kind, found.detail) == ("option", "0 to 1; default 0.85")


def test_a_pattern_knows_only_labels_of_a_graph_with_labels():
    assert offered("gasl", "FIND patterns (p:|", Known()) == []


@pytest.mark.parametrize("offset", [-5, 0, 3, 99])
@pytest.mark.parametrize("language", ["gasl", "lwt", "expr", "seed"])
def test_an_offset_beside_the_text_is_moved_into_it(language, offset):
    complete(language, "abc", offset, KNOWN)
