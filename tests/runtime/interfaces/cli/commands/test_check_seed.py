"""``knotwork check`` of Formula Seeds, and what the commands for scripts say of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import CAFES, call
from support.seed_texts import of_form_000, of_form_002

GOOD = of_form_002({"name": "N", "op": "count", "where": {"extraction.severity": "mild"}})
BAD = of_form_002(
    {"name": "N", "op": "count", "where": {"extraction.severity": "mil"}}, {"name": "T", "op": "expr", "expr": "NN + 1"}
)


def write(folder: Path, document: Any, name: str = "a.seed.json") -> str:
    (folder / name).write_text(json.dumps(document, indent=2), encoding="utf-8")
    return name


@pytest.mark.parametrize("document", [GOOD, of_form_000("len(extractions)")])
def test_nothing_wrong(folder: Path, document: Any) -> None:
    result = call("check", write(folder, document))
    assert (result.code, result.out, result.err) == (0, "nothing to report in 1 file (1 step)\n", "")


def test_all_that_is_wrong_is_drawn_in_the_document(folder: Path) -> None:
    result = call("check", write(folder, BAD))
    assert result.code == 3
    assert 'error[SEED044]: compute[0].where["extraction.severity"]: severity is never "mil"' in result.out
    assert "--> a.seed.json:" in result.out
    assert "help: did you mean mild?" in result.out
    assert result.out.endswith("2 errors in 1 file (2 steps)\n")


def test_json_has_places_hints_and_edits(folder: Path) -> None:
    result = call("check", write(folder, BAD), "--format", "json")
    assert result.code == 3
    assert [found["code"] for found in result.json] == ["SEED044", "EXPR050"]
    text = (folder / "a.seed.json").read_text(encoding="utf-8")
    (edit,) = result.json[0]["edits"]
    assert (text[edit["start"] : edit["end"]], edit["text"]) == ('"mil"', '"mild"')
    assert result.json[1]["message"].startswith("compute[1].expr: ")


def test_a_seed_is_known_by_its_name_or_its_keys(folder: Path) -> None:
    for document, name in ((BAD, "b.json"), ({}, "c.seed.json"), (of_form_000("x +"), "d.json")):
        assert call("check", write(folder, document, name), "--format", "json").json[0]["code"][:4] in ("SEED", "EXPR")
    assert call("check", "-", stdin=json.dumps(BAD)).code == 3


def test_a_seed_that_can_not_be_read(folder: Path) -> None:
    (folder / "a.seed.json").write_text('{"compute": [')
    result = call("check", "a.seed.json")
    assert (result.code, "error[JSON010]" in result.out) == (3, True)


def test_scripts_and_seeds_together(folder: Path) -> None:
    (folder / "x.lwt").write_text(CAFES)
    result = call("check", "x.lwt", write(folder, GOOD))
    assert (result.code, result.out) == (0, "nothing to report in 2 files (4 steps)\n")


def test_contexts_tell_what_keywords_keep_and_which_keys_there_are(folder: Path) -> None:
    seed = of_form_002({"name": "L", "op": "lookup", "source": "context.categorie", "table": {"Thai": 1}, "default": 0})
    context = {
        "name": "Cafe",
        "categories": ["Thai"],
        "reviews": [{"text": "An ALLERGY"}, {"text": "good", "stars": 3}],
    }
    for given in (context, [context]):
        result = call("check", write(folder, seed), "--input", write(folder, given, "c.json"))
        assert result.code == 3
        assert '"allergy" keeps 1 of 2 reviews' in result.out
        assert "the context has no categorie" in result.out
        assert "did you mean categories?" in result.out
    assert call("check", "a.seed.json", "--input", write(folder, 5, "c.json")).code == 2


@pytest.mark.parametrize("command", ["fmt", "run"])
def test_commands_for_scripts_say_what_they_do_not_do(folder: Path, command: str) -> None:
    name = write(folder, GOOD)
    before = (folder / name).read_bytes()
    result = call(command, name)
    assert (result.code, result.out) == (2, "")
    assert "a.seed.json is a Formula Seed" in result.err
    assert (folder / name).read_bytes() == before


def test_an_input_of_lines_is_told_how_to_become_one_list(folder: Path) -> None:
    (folder / "s.seed.json").write_text(json.dumps(GOOD))
    (folder / "c.jsonl").write_text('{"reviews": []}\n{"reviews": []}\n')
    told = call("check", "s.seed.json", "--input", "c.jsonl")
    assert told.code == 3 and "jq -s . c.jsonl | knotwork check s.seed.json --input -" in told.out
