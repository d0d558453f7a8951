"""What is read and told of a seed under edits is what is read and told of it as it is, whatever was edited before: seeds of many steps."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.documents.json_text import read_json
from knotwork.lang.documents.json_tree import JsonNode
from knotwork.lang.documents.seed import Document, read_seed, reread_json
from knotwork.lang.linter.seed import check
from knotwork.lang.service import Known, Reading, diagnose
from knotwork.lang.source import Source
from knotwork.lang.trees import walk

NAMES = ("N0", "N1", "N2", "F0", "F1", "S0", "S1", "else", "stars", "mood", "len", "extractions")
WHERES: tuple[Any, ...] = (
    {"extraction.mood": "good", "meta.stars": {">=": 2}}, {"extraction.mood": {"in": ["good", "odd"]}}, {"$F0": True, "$N1": False},
    {"mood": "good"}, {"N0": 3}, {"extraction.kind": True}, {"meta.stars": {"between": [1, 3]}}, {"meta.star": {">": "3"}},
    {"extraction.mood": {"=": "bad"}}, {}, {"F1": True},
)  # fmt: skip
EXPRS = (
    "N0 / N1", "N0 / 2 if N1 > 3 else N2 + S0", "sum(1 for e in extractions if e['mood'] == 'good')", "len(extractions)", "N0 + N1",
    "[N0 for N0 in extractions]", "1 if N0 > 2 else 2 if N0 > 3 else 3", "F0", "S0 +", "context.city", "extraction.mood", "mean(N0)",
    "'a \\u00e9 \\n' + N9", "[[[[1]]]]",
)  # fmt: skip
RULES: tuple[Any, ...] = (
    {"when": "N0 > 3", "then": "a"}, {"when": "> 3", "then": "b"}, {"when": "else", "then": 1}, {"else": "c"}, {"when": "good", "then": 1},
    {"when": 3, "then": None}, {"default": 2}, {"when": "N0 > 4", "then": "a"},
)  # fmt: skip
KEYS: tuple[dict[str, Any], ...] = (
    *({"op": "count", "where": where} for where in WHERES), *({"op": "define_filter", "where": where} for where in WHERES),
    *({"op": "expr", "expr": text} for text in EXPRS), {"op": "count"}, {"op": "const", "value": [1, {"a": 2}]},
    {"op": "sum", "field": "meta.useful"}, {"op": "max", "field": "extraction.mood"}, {"op": "min", "field": "N0", "default": 0},
    {"op": "sum", "expr": "5 - meta.stars", "where": {"extraction.mood": "goood"}}, {"op": "counts"}, {"wher": {}, "op": "count"},
    {"op": "lookup", "source": "S0", "table": {"a": 1, "A": 2, "": "x"}, "match": "substring_max"}, {"formula": "N0 + 1"},
    {"op": "lookup", "source": "context.city", "table": {}, "default": 1}, {"operation": "count"}, {"op": "max", "expr": "S0 +"},
)  # fmt: skip
SNIPPETS = (
    "",
    " ",
    "\n",
    '"',
    ",",
    "{",
    "}",
    "[",
    "]",
    "x",
    "0",
    "\\",
    ":",
    "é𝄞",
    "// a remark\n",
    "},{",
    '"N0"',
    "null",
    "\ud800",
)


def case(rules: list[Any], source: str | None) -> dict[str, Any]:
    return {"op": "case", "rules": rules} | ({} if source is None else {"source": source})


STEPS = st.builds(
    lambda name, keys: {"name": name, **keys},
    st.sampled_from(NAMES) | st.integers(0, 60).map("V{}".format),
    st.sampled_from(KEYS) | st.builds(case, st.lists(st.sampled_from(RULES), max_size=4), st.sampled_from((None, "N0", "mood"))),
)  # fmt: skip
FORMULAS = st.builds(lambda name, text: {"name": name, "formula": text}, st.sampled_from(NAMES), st.sampled_from(EXPRS))
MOOD = {"name": "mood", "type": "enum", "values": {"good": "a", "bad": "b"}}
FIELDS: tuple[Any, ...] = (
    MOOD,
    {"name": "kind", "type": "bool"},
    {"nam": "N0", "type": "int"},
    {"name": "N1", "type": "string"},
    3,
)


def text_of(seed: dict[str, Any], indent: int | None) -> str:
    if indent is not None:
        return json.dumps(seed, indent=indent, ensure_ascii=False)
    return "{" + ",\n".join(f'"{key}": ' + lines_of(value) for key, value in seed.items()) + "}"


def lines_of(value: Any) -> str:
    return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]" if isinstance(value, list) else json.dumps(value)


@st.composite
def histories(draw: st.DrawFn, most: int) -> list[str]:
    """A seed's text and what becomes of it: under edits of its steps, and under edits of its letters, well and badly."""
    is_old = draw(st.integers(0, 4)) == 0
    made = FORMULAS if is_old else STEPS
    steps = draw(st.lists(made, min_size=1, max_size=most))
    fields = draw(st.lists(st.sampled_from(FIELDS), max_size=3))
    indent = draw(st.sampled_from((None, None, 1)))
    texts: list[str] = []
    for _ in range(draw(st.integers(2, 6))):
        if texts and draw(st.booleans()):
            text = texts[-1]
            start = draw(st.integers(0, len(text)))
            end = min(len(text), start + draw(st.sampled_from((0, 0, 0, 1, 1, 3, 30))))
            texts.append(text[:start] + draw(st.sampled_from(SNIPPETS)) + text[end:])
            texts += draw(st.sampled_from(([], [text])))
            continue
        at = draw(st.integers(0, len(steps)))
        steps = [*steps[:at], *draw(st.lists(made, max_size=2)), *steps[at + draw(st.integers(0, 2)) :]]
        fields = draw(st.sampled_from((fields, fields, [MOOD, *fields[1:]])))
        outputs = [*{step["name"]: 0 for step in steps}][draw(st.integers(0, 2)) :]
        seed = {"extraction_fields": fields, "compute_dag": steps, "output_fields": outputs} if is_old else {
            "task_name": "t", "extract": {"fields": fields}, "compute": steps, "output": outputs}  # fmt: skip
        texts.append(text_of(seed, indent))
    return texts


def tree(node: JsonNode | None) -> Any:
    if node is None:
        return None
    fields = {key: (tree(each), node.keys[key]) for key, each in node.fields.items()}
    return (
        json.dumps(node.value),
        type(node.value),
        node.start,
        node.end,
        [*fields.items()],
        [*map(tree, node.items)],
        node.faulty,
    )


def agree(texts: list[str]) -> None:
    reading = Reading("seed", Source("", "<seed>"))
    for text in texts:
        reading, source = reading.changed(Source(text, "<seed>")), Source(text, "<seed>")
        assert tree(reading.document.root) == tree(read_json(source).root)
        read = read_seed(source)
        seed, mine = read.seed or read.draft, reading.seed.seed or reading.seed.draft
        assert reading.seed.diagnostics == read.diagnostics
        told = diagnose("seed", reading, Known())
        assert (mine is None) == (seed is None)
        if seed is None or mine is None:
            assert told == read.diagnostics
            continue
        assert mine == seed
        for one, other in zip(mine.steps, seed.steps, strict=True):
            assert [node.span for node in walk(one)] == [node.span for node in walk(other)]
        assert told == tuple(check(seed))


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(histories(12))
def test_a_seed_that_changes_is_read_and_checked_as_if_it_were_new(texts: list[str]) -> None:
    agree(texts)


@pytest.mark.slow
@settings(deadline=None, max_examples=1_500)
@given(histories(40))
def test_a_seed_of_many_steps_that_changes_much_is_read_and_checked_as_if_it_were_new(texts: list[str]) -> None:
    agree(texts)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": [1, 2, 3]}', '{"a": [1, 3]}'),
        ('{"a": [], "b": [{"c": 1}]}', '{"a": [7], "b": [{"c": 1}]}'),
        ('{"a": [{"b": {"c": 1}}]}', '{"a": [{"b": {"c": 1}}, {"b": {"c": 2}}]}'),
        ('{"a": [{"b": {"c": 1}}]}', '{"a": [{"b": {"c": 1}}, {"b": {"c": 2}}}'),
        ('{"a": [[1, 2], [3]], "b": "é"}', '{"a": [[1, 2], [3, "𝄞"]], "b": "é"}'),
        ('{"a": [[1, 2], [3]]}', '{"a": [[1, 2]], [[3]]}'),
        ('{"a": [1]}', '{"a": [1]}'),
        ('{"a": {"b": "c", "d": [1]}, "e": 1.5}', '{"a": {"b": "cd", "d": [1]}, "e": 1.5}'),
        ('{"a": {"b": "c", "d": [1]}, "e": 1.5}', '{"a": {"b": "x", "y": "c", "d": [1]}, "e": 1.5}'),
        ('{"a": {"b": {"c": 1}}, "e": 15}', '{"a": {"b": {"c": 1}, "d": {}}, "e": 15}'),
        ('{"a": 15, "b": 2}', '{"a": 1e5, "b": 2}'),
        ('{"a": 15, "b": 2}', '{"a": 1, "c": 5, "b": 2}'),
        ("[" * 63 + "1" + "]" * 63, "[" * 63 + "[[1]]" + "]" * 63),
    ],
)
def test_only_the_elements_that_are_new_are_read_and_the_tree_is_the_same(before: str, after: str) -> None:
    read, whole = reread_json(Source(after), Document(read_json(before))), read_json(after)
    assert tree(read.root) == tree(whole.root)
    assert read.diagnostics == whole.diagnostics
