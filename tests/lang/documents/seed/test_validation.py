"""What is sure in a faulty seed is mended by its edits, and one fault is one diagnostic."""

import json
from typing import Any

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.documents.seed import read_seed
from knotwork.lang.documents.seed.validation import meant_test
from knotwork.lang.linter.seed import check
from knotwork.lang.source import Source

GOOD: dict[str, Any] = {
    "filter": {"keywords": ["allergy", "peanut"], "match": "word"},
    "extract": {"fields": [{"name": "severity", "values": ["none", "mild", "severe"]}, {"name": "served", "type": "bool"}]},
    "review_handling": {"max_length": 900},
    "passes": 2,
    "compute": [
        {"name": "F", "op": "define_filter", "extraction": {"severity": {"in": ["mild", "severe"]}}},
        {"name": "N", "op": "count", "where": {"$F": True}},
        {"name": "NS", "op": "count", "where": {"extraction.severity": "severe", "meta.year": {">=": 2023}}},
        {"name": "M", "op": "max", "field": "meta.year", "default": 0},
        {"name": "L", "op": "lookup", "source": "context.kinds", "table": {"Thai": 2, "Pizza": 1}, "default": 0},
        {"name": "S", "op": "expr", "expr": "N + NS + L + M"},
        {"name": "V", "op": "case", "source": "S", "rules": [{"when": "< 4", "then": "low"}, {"else": "high"}]},
    ],
    "output": ["S", "V"],
}  # fmt: skip
OLD: dict[str, Any] = {
    "filter_keywords": ["allergy"],
    "extraction_fields": [{"name": "severity", "values": ["none", "mild"]}],
    "extraction_prompt": "Read {review_text}",
    "compute_dag": [{"name": "n", "formula": "sum(1 for e in extractions if e['severity'] == 'mild')"}],
    "output_fields": ["n"],
}


def _found(text: str) -> list[Any]:
    read = read_seed(Source(text, "s.json"))
    seed = read.seed or read.draft
    return check(seed) if seed is not None else list(read.diagnostics)


def _mended(text: str) -> Any:
    """Return the document with all edits made, one round."""
    return json.loads(apply_edits(text, [edit for each in _found(text) for edit in each.edits]))


def _with(old: str, new: str, seed: dict[str, Any] = GOOD) -> str:
    text = json.dumps(seed)
    assert old in text
    return text.replace(old, new, 1)


def test_the_seeds_are_good() -> None:
    assert _found(json.dumps(GOOD)) == _found(json.dumps(OLD)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"keywords"', '"keyword"'), ('"filter"', '"filtr"'), ('"extract"', '"extracts"'), ('"fields"', '"feilds"'),
        ('"compute"', '"compte"'), ('"output"', '"outputs"'), ('"name": "severity"', '"nmae": "severity"'),
        ('"name": "NS"', '"nmae": "NS"'), ('"table"', '"tabel"'), ('"rules"', '"rule"'), ('"when"', '"wen"'),
        ('"then"', '"than"'), ('"else"', '"esle"'), ('"expr": "N', '"exp": "N'), ('"count"', '"cont"'),
        ('"op": "lookup"', '"type": "lookup"'), ('"op": "lookup", ', ""), ('"op": "expr", ', ""), ('"op": "case", ', ""),
        ('"op": "expr", "expr"', '"formula"'), ('"field"', '"source"'), ('"$F": true', '"$F": "yes"'),
        ("context.kinds", "contex.kinds"), ('"context.kinds"', "\"context['kinds']\""), ('"context.kinds"', '"kinds"'),
        ('{"else": "high"}', '{"default": "high"}'), ('{"else": "high"}', '{"when": "else", "then": "high"}'),
        (', {"else": "high"}]', '], "default": "high"'), ('"< 4"', '{"<": 4}'), ('"< 4"', '"S is less than 4"'),
        ('"< 4"', '"below 4"'), ('{"$F": true}', '"$F"'), ("900", '"900"'), ('"passes": 2', '"passes": "2"'),
        ('["S", "V"]', '"S, V"'), ('["S", "V"]', '["S", {"name": "V"}]'), ('["S", "V"]', '{"S": "S", "V": "V"}'),
        ('["allergy", "peanut"]', '"allergy, peanut"'), ('["none", "mild", "severe"]', '"none, mild, severe"'),
        ('{"Thai": 2, "Pizza": 1}', '[{"key": "Thai", "value": 2}, {"key": "Pizza", "value": 1}]'),
        ('{"extraction.severity": "severe", "meta.year": {">=": 2023}}',
         '[{"extraction.severity": "severe"}, {"meta.year": {">=": 2023}}]'),
        ('{"extraction.severity": "severe", "meta.year": {">=": 2023}}',
         '[{"field": "extraction.severity", "op": "==", "value": "severe"}, {"meta.year": {">=": 2023}}]'),
        ('{">=": 2023}', '">= 2023"'), ('"compute"', '"steps"'),
        ('"filter": {"keywords": ["allergy", "peanut"], "match": "word"}', '"filter": ["allergy", "peanut"]'),
        ('"filter": {"keywords": ["allergy", "peanut"], "match": "word"}', '"keywords": ["allergy", "peanut"]'),
        ('[{"when": "< 4", "then": "low"}, {"else": "high"}]', '{"< 4": "low", "else": "high"}'),
    ],
)  # fmt: skip
def test_one_fault_is_one_diagnostic_and_its_edit_mends_it(old: str, new: str) -> None:
    text = _with(old, new)
    found = _found(text)
    assert [each.severity for each in found] == ["error"]
    mended = _mended(text)
    assert mended == (GOOD if "match" not in old else {**GOOD, "filter": {"keywords": ["allergy", "peanut"]}})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"filter_keywords"', '"filter_keyword"'), ('"extraction_fields"', '"extraction_field"'),
        ('"compute_dag"', '"compute_dags"'), ('"formula"', '"expr"'), ("{review_text}", "{review}"),
        ('"output_fields"', '"output"'),
        ('[{"name": "severity", "values": ["none", "mild"]}]', '{"severity": ["none", "mild"]}'),
    ],
)  # fmt: skip
def test_the_older_form_too(old: str, new: str) -> None:
    text = _with(old, new, OLD)
    assert [each.severity for each in _found(text)] == ["error"]
    assert _mended(text) == OLD


@pytest.mark.parametrize(
    "text",
    [
        _with('"output"', '"output_fields"'),
        _with('{"fields": [', "[").replace('"bool"}]}', '"bool"}]'),
        _with('{"keywords": ["allergy", "peanut"], "match": "word"}', '["allergy", "peanut"]'),
        _with('"filter": {"keywords": ["allergy", "peanut"], "match": "word"}', '"filter_keywords": ["allergy"]'),
    ],
)  # fmt: skip
def test_what_stands_in_the_other_forms_place_is_put_into_its_own(text: str) -> None:
    assert len(_found(text)) == 1
    assert [each for each in _found(json.dumps(_mended(text))) if each.severity == "error"] == []


def test_fields_and_steps_in_odd_places_are_put_right() -> None:
    fields = {**GOOD, "fields": GOOD["extract"]["fields"]}
    del fields["extract"]
    steps = {
        **GOOD,
        "compute": {each["name"]: {k: v for k, v in each.items() if k != "name"} for each in GOOD["compute"]},
    }
    for faulty in (fields, steps):
        assert [each.severity for each in _found(json.dumps(faulty))] == ["error"]
        assert _mended(json.dumps(faulty)) == GOOD


def test_a_condition_in_words_keeps_its_operator() -> None:
    text = _with('"extraction.severity": "severe"', '"extraction.severity": "!= none"')
    assert _mended(text)["compute"][2]["where"]["extraction.severity"] == {"!=": "none"}


def test_a_missing_list_is_told_once() -> None:
    for key in ("compute", "output"):
        found = _found(json.dumps({name: value for name, value in GOOD.items() if name != key}))
        assert [each.code for each in found if each.severity == "error"] == ["SEED003"]


def test_a_context_read_like_an_object_is_written_with_a_dot() -> None:
    for written in ("len(context['kinds'])", "len(context.get('kinds'))"):
        text = _with("N + NS + L + M", f"N + NS + L + M + {written}")
        assert _mended(text)["compute"][5]["expr"] == "N + NS + L + M + len(context.kinds)"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("=< 4", "<= 4"), ("<> 4", "!= 4"), ("at least 3", ">= 3"), ("S greater than or equal to 2.5", ">= 2.5"),
        ("is equal to 'low'", "== 'low'"), (">= 4 and < 8", "S >= 4 and S < 8"), ("T less than 4", None), ("N > 3", None),
        ("< 4", None), ("over", None), ("x" * 400 + " less than 4", None),
    ],
)  # fmt: skip
def test_tests_in_words(written: str, meant: str | None) -> None:
    assert meant_test(written, "S") == meant
