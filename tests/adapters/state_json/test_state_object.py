"""The state as seed 003 writes it, out and in."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Golden
from knotwork.adapters.state import DeclareKey, MergeInto, StoreError
from knotwork.adapters.state_json import JSONStateStore, open_store
from support.folders import GOLDEN

WRITTEN = GOLDEN / "state"


def started() -> JSONStateStore:
    """The state after the seed's initial plan."""
    store = open_store(
        query="who works with whom", config={"llm": {"model": "m"}}, clock=lambda: "2025-09-16T12:34:56Z"
    )
    above = "co_authorship_analysis"
    for change in (
        DeclareKey(above, "DICT"),
        DeclareKey(f"{above}.authors", "LIST", "List of all unique authors found."),
        DeclareKey(f"{above}.institutions", "DICT", "Institutions and their associated authors."),
        DeclareKey(f"{above}.collaboration_graph", "LIST", "Edge list of (author1, author2, shared_entity)."),
        DeclareKey(f"{above}.summary", "DICT"),
    ):
        store.stage(change)
    store.commit()
    return store


def filled() -> JSONStateStore:
    """A state with one of everything."""
    store = started()
    store.stage(DeclareKey("kinds", "COUNTER", "How many of each."))
    store.stage(DeclareKey("total", "COUNTER"))
    authors = [{"name": "Ada", "id": 1}, "Grace", 3]
    evidence = [[{"kind": "graph", "nodes": ["n1"]}], [], [{"kind": "model", "model": "m"}]]
    store.stage(MergeInto("co_authorship_analysis.authors", authors, evidence))
    fields = {"MIT": {"authors": ["Ada"], "n": 1}, "ETH": None}
    store.stage(MergeInto("co_authorship_analysis.institutions", fields, {"MIT": [{"kind": "graph", "nodes": []}]}))
    store.stage(MergeInto("kinds", [{"type": "PERSON", "count": 2}], [[{"kind": "graph"}]]))
    store.stage(MergeInto("total", 2.5))
    store.note({"step": 1, "command": "DECLARE kinds AS COUNTER", "why": None, "status": "success"})
    store.ran("DECLARE kinds AS COUNTER")
    store.answered({"request": "ab", "text": "yes"})
    store.commit()
    return store


def test_the_seeds_initial_plan_leaves_the_variables_that_the_seed_prints() -> None:
    printed = (WRITTEN / "seed_variables.json").read_text(encoding="utf-8")  # the seed's own; nothing writes it anew
    assert json.dumps(started().snapshot().variables(), indent=2) + "\n" == printed


def test_the_whole_object(golden: Golden) -> None:
    golden.check(WRITTEN / "whole.json", json.dumps(filled().as_json(), indent=2, ensure_ascii=False) + "\n")


def test_provenance_and_answers_are_there_only_where_there_are_any() -> None:
    assert list(started().as_json()) == [
        "version", "created_at", "updated_at", "query", "config", "variables", "history", "replay"
    ]  # fmt: skip
    assert list(started().as_json()["replay"]) == ["seed", "config", "commands"]


def test_what_is_written_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(filled().as_json()), encoding="utf-8")
    store = open_store(path)
    assert store.as_json() == filled().as_json()
    assert store.hash == filled().hash
    store.merge("total", 1)
    assert store.get("total") == 3.5
    store.close()
    assert json.loads(path.read_text(encoding="utf-8")) == filled().as_json(), "an imported file is never written"


def test_the_seeds_own_state_can_be_opened(tmp_path: Path) -> None:
    variables = json.loads((WRITTEN / "seed_variables.json").read_text(encoding="utf-8"))
    state = {
        "version": "0.1", "created_at": "2025-09-16T12:34:56Z", "updated_at": "2025-09-16T13:45:00Z", "query": "q",
        "config": {"llm": {"provider": "p"}}, "variables": variables, "history": [{"step": 1}],
        "replay": {"seed": 0, "commands": ["FIND nodes AS a"]},
    }  # fmt: skip
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state), encoding="utf-8")
    store = open_store(path)
    assert store.snapshot().variables() == variables
    assert store.replay_info() == {"seed": 0, "config": {"llm": {"provider": "p"}}, "commands": ["FIND nodes AS a"]}


LIST: dict[str, Any] = {"_meta": {"type": "LIST", "description": None}, "items": []}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "$ must be an object"),
        ('{"version": "0.1", "version": "0.1"}', "has the key 'version' twice"),
        ('{"version": "0.1", "query": NaN}', "contains NaN, which JSON can't represent"),
        ('{"version": "0.1", "query": "\\ud800"}', "lone surrogate"),
        ('{"version": "0.1", "replay": {"seed": 18446744073709551616}}', "$.replay.seed is an integer beyond 64 bits"),
        ("[" * 20_000 + "]" * 20_000, ""),
        ({}, '$.version must be "0.1"'),
        ({"version": "0.2"}, "$.version must be"),
        ({"version": "0.1", "more": 1}, "$.more is an unknown key"),
        ({"version": "0.1", "query": 1}, "$.query must be a string"),
        ({"version": "0.1", "config": []}, "$.config must be an object"),
        ({"version": "0.1", "history": {}}, "$.history must be a list"),
        ({"version": "0.1", "history": ["x"]}, "$.history[0] must be an object"),
        ({"version": "0.1", "replay": {"seed": True}}, "$.replay.seed must be an integer"),
        ({"version": "0.1", "replay": {"commands": [1]}}, "$.replay.commands[0] must be a string"),
        ({"version": "0.1", "variables": {"a": []}}, "$.variables.a must be an object"),
        ({"version": "0.1", "variables": {"a": {}}}, "$.variables.a._meta must be an object"),
        ({"version": "0.1", "variables": {"a": {"_meta": {"type": "SET"}}}}, "$.variables.a._meta.type must be"),
        ({"version": "0.1", "variables": {"a": {"_meta": {"type": "LIST"}}}}, "$.variables.a.items must be a list"),
        ({"version": "0.1", "variables": {"a": LIST | {"x": 1}}}, "$.variables.a.x is an unknown key"),
        ({"version": "0.1", "variables": {"items": LIST}}, "items can't be part of a key"),
        ({"version": "0.1", "variables": {"a.b": LIST}}, "a part of a key must have"),
        ({"version": "0.1", "variables": {"": LIST}}, "a part of a key must have"),
        ({"version": "0.1", "variables": {"a": {"_meta": {"type": "COUNTER"}, "value": "1"}}}, "it takes a number"),
        ({"version": "0.1", "variables": {"a": {"_meta": {"type": "COUNTER"}, "value": []}}}, "must be a number"),
        (
            {"version": "0.1", "variables": {}, "provenance": {"a": []}},
            "$.provenance.a does not belong to a declared key",
        ),
        ({"version": "0.1", "variables": {"a": LIST}, "provenance": {"a": [[]]}}, "has evidence for 1 items"),
        ({"version": "0.1", "variables": {"a": LIST}, "provenance": {"a": {}}}, "$.provenance.a must be a list"),
    ],
)
def test_what_is_no_state_is_refused_with_the_place(state: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(state if isinstance(state, str) else json.dumps(state), encoding="utf-8")
    with pytest.raises(StoreError) as caught:
        open_store(path)
    assert message in caught.value.message
    assert len(caught.value.message) < 1000


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(StoreError, match="is not JSON"):
        open_store(path)


def test_keys_nested_too_deep_are_refused(tmp_path: Path) -> None:
    form: dict[str, Any] = {"_meta": {"type": "DICT"}}
    for _ in range(30):
        form = {"_meta": {"type": "DICT"}, "a": form}
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"version": "0.1", "variables": {"a": form}}), encoding="utf-8")
    with pytest.raises(StoreError, match="is nested too deeply"):
        open_store(path)
