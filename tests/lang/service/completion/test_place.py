"""A completion in the middle of a word or a string takes the place of its rest too: nothing stands there twice."""

import pytest
from knotwork.lang.diagnostic import Edit, apply_edits
from knotwork.lang.service import complete
from support.service_known import KNOWN

CASES = [
    ("lwt", '(a)=LL|M("x")', '(a)=LLM("x")'),
    ("lwt", '(a)=LLM("x", te|mperature=0)', '(a)=LLM("x", temperature=0)'),
    ("lwt", '(a)=LLM("x", temperature|=0)', '(a)=LLM("x", temperature=0)'),
    ("lwt", '(a)=LLM("x {(input)}[|]")', '(a)=LLM("x {(input)}[reviews]")'),
    ("lwt", '(a)=LLM("x {(input)}[rev|iews][0]")', '(a)=LLM("x {(input)}[reviews][0]")'),
    ("lwt", '(a)=EACH({(input)}["|"], LLM("x"))', '(a)=EACH({(input)}["reviews"], LLM("x"))'),
    ("lwt", '(a)=EACH({(input)}["rev|iews"][0], LLM("x"))', '(a)=EACH({(input)}["reviews"][0], LLM("x"))'),
    ("lwt", '(a)=LLM("x", model="sm|all")', '(a)=LLM("x", model="small")'),
    ("lwt", '(abc)=LLM("x")\n(b)=LLM("x {(a|bc)} y")', '(abc)=LLM("x")\n(b)=LLM("x {(abc)} y")'),
    ("lwt", '(a)=EXPR("su|m(x)", x={(input)})', '(a)=EXPR("sum(x)", x={(input)})'),
    ("gasl", "FI|ND nodes AS x", "FIND nodes AS x"),
    ("gasl", 'FIND nodes WHERE entity_type = "PER|SON" AS x', 'FIND nodes WHERE entity_type = "PERSON" AS x'),
    ("gasl", "FIND edges WHERE tar|get.year = 3 AS x", "FIND edges WHERE target.year = 3 AS x"),
    ("gasl", "FIND nodes WHERE `odd| name` = 1 AS x", "FIND nodes WHERE `odd name` = 1 AS x"),
    ("gasl", "ASSERT ${gi|ven.id} > 1", "ASSERT ${given.id} > 1"),
    ("seed", '{"compute": [{"na|me": "N"}]}', '{"compute": [{"name": "N"}]}'),
    ("seed", '{"compute": [{"name": "N", "op":"cou|nt"}]}', '{"compute": [{"name": "N", "op":"count"}]}'),
]


@pytest.mark.parametrize(("language", "text", "becomes"), CASES, ids=[text for _, text, _ in CASES])
def test_the_rest_of_what_is_completed_is_replaced(language, text, becomes):
    offset = text.index("|")
    text = text.replace("|", "", 1)
    made = [apply_edits(text, [Edit(each.span, each.text)]) for each in complete(language, text, offset, KNOWN)]
    assert becomes in made


@pytest.mark.parametrize(
    ("language", "text", "absent", "present"),
    [
        ("lwt", '(a)=LLM("x", |)', ['"', "[", "{", "{(input)}"], ["temperature="]),
        ("lwt", '(a)=LLM("x", temperature=|)', ['"', "[", "{(input)}"], ["0"]),
        ("gasl", "FIND nodes WHERE year = |", ["true", "TRUE", "null", "NULL"], ["2020"]),
        ("gasl", "SET llm.model = |", ["true", "TRUE", "null", "NULL"], ['"small"']),
        ("gasl", "FIND nodes AS x\nASSERT ${x.|", ["${x.degree}"], ["${x.id}"]),  # it is computed, not in the items
        ("gasl", "FIND nodes WHERE |", ["ANY", "INCREASING"], ["NOT"]),
        ("gasl", "FIND nodes WHERE lower(|", ["NOT", ")", ","], ["year"]),
        ("gasl", "FIND nodes WHERE lower(year |", [","], ["+"]),
        ("gasl", "COUNT given BY |", ["true", "false"], ["id"]),
        ("gasl", "PARAM least INT = |", ["true"], ["null"]),
        ("gasl", "SELECT given FIELDS id AS key, score AS n AS x\nCOUNT |", ["key", "n"], ["x"]),
        ("seed", '{"compute": [{"name": "A", "op": "expr", "expr": "|"}]}', ["A"], ["abs("]),
        ("seed", '{"compute": [{"name": "A", "op": "define_filter", "where": {"$|"}}]}', ['"$A'], []),
    ],
)  # fmt: skip
def test_what_the_checker_refuses_at_once_is_not_offered(language, text, absent, present):
    offset = text.index("|")
    found = [each.text for each in complete(language, text.replace("|", "", 1), offset, KNOWN)]
    assert not set(absent) & set(found)
    assert set(present) <= set(found)


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        ("gasl", "MEASURE graph USING b|", "betweenness"),
        ("gasl", "FIND nodes AS x\nASSERT ${x.|", "${x.id}"),
        ("gasl", "FIND nodes AS x\nRANK x BY deg|", "degree"),
        ("lwt", '(s)=CONST(1)\n(a)=LLM("x", when="|")', "{(s)}"),
        ("lwt", '(s)=CONST(1)\n(a)=LLM("x", when="{(s)} |")', ">="),
        ("lwt", "# knotwork: ignore[LWT02|", "LWT024"),
        ("gasl", "# knotwork: ignore[GASL052, |", "GASL053"),
        ("seed", '{"compute": [{"name": "A", "op": "sum", "expr": "meta.|"}]}', "stars"),
        ("seed", '{"compute": [{"name": "A", "op": "count", "where": {"meta.|"}}]}', '"meta.stars'),
    ],
)  # fmt: skip
def test_what_the_grammar_and_the_registries_know_is_offered(language, text, wanted):
    from attrs import evolve

    offset = text.index("|")
    known = evolve(KNOWN, measures=None)
    assert wanted in [each.text for each in complete(language, text.replace("|", "", 1), offset, known)]
