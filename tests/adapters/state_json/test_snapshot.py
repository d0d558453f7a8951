"""What ``diff`` says, and that a patch (how a rollback is kept) leads from any state to any other."""

import json
from time import perf_counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.state import Change, DeclareKey, Difference, MergeInto, ReplaceWith, ResetKey, StateError
from knotwork.adapters.state_json import JSONStateStore, open_store
from knotwork.adapters.state_json.journal_records import patch, patched
from support.state_model import Model, Refused, text

GRAPH = {"kind": "graph", "nodes": ["n1"]}
MODEL = {"kind": "model", "model": "m"}


def store_of(*changes: Change) -> JSONStateStore:
    store = open_store()
    for change in changes:
        store.stage(change)
    return store


BASE = (
    DeclareKey("a", "LIST"),
    DeclareKey("net", "DICT"),
    DeclareKey("net.kinds", "COUNTER"),
    MergeInto("a", [{"id": 1, "x": 1}, 2]),
    MergeInto("net", {"f": {"g": 1}, "h": 1}),
    MergeInto("net.kinds", {"p": 1, "q": 1}),
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (DeclareKey("new", "LIST", "d"), [Difference("new", "declared", after={"type": "LIST", "description": "d"})]),
        (MergeInto("a", [2, 3]), [Difference("a", "added", after=[3])]),
        (ResetKey("a"), [Difference("a", "removed", before=[{"id": 1, "x": 1}, 2])]),
        (ReplaceWith("a", [{"x": 1, "id": 1}, 3]), [Difference("a", "changed", {"1": 2}, {"1": 3})]),
        (MergeInto("a", [2], [[GRAPH]]), [Difference("a", "provenance", {"1": []}, {"1": [GRAPH]})]),
        (MergeInto("net", {"i": [1]}), [Difference("net", "added", after={"i": [1]})]),
        (MergeInto("net", {"f": {"g": 2}}), [Difference("net", "changed", {"f": {"g": 1}}, {"f": {"g": 2}})]),
        (MergeInto("net", {"h": 1}, {"h": [GRAPH]}), [Difference("net", "provenance", {"h": []}, {"h": [GRAPH]})]),
        (MergeInto("net.kinds", {"q": 1, "r": 1}), [Difference("net.kinds", "count", {"q": 1}, {"q": 2, "r": 1})]),
        (ReplaceWith("net.kinds", 5), [Difference("net.kinds", "count", {"p": 1, "q": 1}, 5)]),
        (
            MergeInto("net.kinds", {}, [[GRAPH]]),
            [Difference("net.kinds", "provenance", [], [GRAPH])],
        ),
    ],
)
def test_each_kind_of_difference(change: Change, expected: list[Difference]) -> None:
    store = store_of(*BASE)
    before = store.snapshot()
    store.stage(change)
    got = store.diff(before, store.snapshot())
    assert [_sorted(each) for each in got] == [_sorted(each) for each in expected]
    assert store.diff(before, before) == []


def _sorted(difference: Difference) -> str:
    return json.dumps([difference.key, difference.kind, difference.before, difference.after], sort_keys=True)


def test_a_key_that_is_gone() -> None:
    store = store_of(*BASE)
    got = store.diff(store.snapshot(), open_store().snapshot())
    assert [(each.key, each.kind) for each in got] == [
        ("a", "removed"), ("a", "removed"), ("net", "removed"), ("net", "removed"), ("net.kinds", "removed"),
        ("net.kinds", "count"),
    ]  # fmt: skip


def test_the_order_of_keys_and_the_route_are_no_difference() -> None:
    one = store_of(*BASE)
    other = store_of(*BASE[:3], MergeInto("net.kinds", {"q": 1}), MergeInto("net.kinds", {"p": 1}),
                     MergeInto("net", {"h": 1}), MergeInto("net", {"f": {"g": 1}}), MergeInto("a", [{"x": 1, "id": 1}]),
                     MergeInto("a", 2))  # fmt: skip
    assert one.hash == other.hash
    assert one.diff(one.snapshot(), other.snapshot()) == []


def test_commits_are_found_by_the_beginning_of_their_hash() -> None:
    store = store_of(*BASE)
    first = store.commit()
    store.merge("a", [3])
    assert store.diff(first[:8], store.hash) == [Difference("a", "added", after=[3])]
    with pytest.raises(StateError, match="no available commit") as caught:
        store.diff("0" * 64, store.hash)
    assert caught.value.status == "error"
    for wrong in ("abc", "xyz12", ""):
        with pytest.raises(StateError, match="is not a hash"):
            store.rollback(wrong)


KEYS = st.sampled_from(["a", "net", "net.kinds", "net.in", "net.in.l"])
VALUES = st.sampled_from(
    [
        1, 2.5, {"p": 1}, {"p": 2, "r": 1}, [], [1, 2, 3], [{"id": 1}, {"id": 2}], {"f": {"g": 1}}, {"f": {"h": [1]}, "k": None},
        [{"id": number} for number in range(80)], {f"k{number}": {"n": number} for number in range(80)},
    ]
)  # fmt: skip
CHANGES = st.one_of(
    st.builds(DeclareKey, KEYS, st.sampled_from(["LIST", "DICT", "COUNTER"]), st.sampled_from([None, "d"])),
    st.builds(
        MergeInto,
        KEYS,
        VALUES,
        st.sampled_from([(), [[GRAPH]], [[], [GRAPH, MODEL]]]),
        st.sampled_from([(), ("e was cut",)]),
    ),
    st.builds(ReplaceWith, KEYS, VALUES, st.sampled_from([(), [[], [GRAPH]]]), st.sampled_from([(), ("x was cut",)])),
    st.builds(ResetKey, KEYS),
)


def _try(store: JSONStateStore, changes: list[Change]) -> None:
    for change in changes:
        try:
            store.stage(change)
        except StateError:
            continue


@pytest.mark.slow
@given(st.lists(CHANGES, max_size=12), st.lists(CHANGES, max_size=8), st.lists(CHANGES, max_size=8))
@settings(deadline=None, max_examples=80)
def test_a_patch_leads_from_any_state_to_any_other(common: list[Any], left: list[Any], right: list[Any]) -> None:
    one = store_of(*BASE)
    _try(one, common)
    other: Any = one.fork()
    _try(one, left)
    _try(other, right)
    for before, after in ((one, other), (other, one)):
        root = before.snapshot().root
        for operation in orjson.loads(orjson.dumps(patch(root, after.snapshot().root))):
            root = patched(root, operation)
        assert root.digest.hex() == after.hash
        differences = before.diff(before.snapshot(), after.snapshot())
        assert bool(differences) == (before.hash != after.hash)


def test_a_patch_takes_evidence_along() -> None:
    bare, proven = store_of(*BASE), store_of(*BASE)
    proven.stage(MergeInto("a", [2, 9], [[GRAPH, MODEL], [MODEL]]))
    proven.stage(MergeInto("net", {"h": 1}, {"h": [GRAPH]}))
    proven.stage(MergeInto("net.kinds", {}, [[GRAPH]]))
    for before, after in ((bare, proven), (proven, bare)):
        root = before.snapshot().root
        for operation in patch(root, after.snapshot().root):
            root = patched(root, operation)
        assert root.digest.hex() == after.hash


@pytest.mark.slow
@given(st.lists(CHANGES, max_size=15))
@settings(deadline=None, max_examples=60)
def test_the_model_agrees(changes: list[Any]) -> None:
    model, store = Model(), open_store()
    for change in changes:
        try:
            model.apply(change)
        except Refused:
            with pytest.raises(StateError):
                store.stage(change)
        else:
            store.stage(change)
    assert text(store.snapshot().variables()) == text(model.variables())


@pytest.mark.slow
def test_comparing_costs_what_differs() -> None:
    store = store_of(DeclareKey("a", "LIST"), MergeInto("a", [{"id": number} for number in range(30_000)]))
    before = store.snapshot()
    assert before.hash
    store.stage(MergeInto("a", [{"id": -1}]))
    assert store.hash
    began = perf_counter()
    for _ in range(20):
        assert len(store.diff(before, store.snapshot())) == 1
        assert len(patch(store.snapshot().root, before.root)[0]["items"]["more"]) == 0
    few = perf_counter() - began
    began = perf_counter()
    store.get("a")
    assert few < 20 * max(perf_counter() - began, 0.002)
