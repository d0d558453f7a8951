"""What DECLARE, UPDATE and RESET do to a LIST, a DICT and a COUNTER. Seed 003, ``state.py``; GASL's reference, "Commands"."""

from typing import Any

import pytest
from knotwork.adapters.state import Change, DeclareKey, MergeInto, ReplaceWith, ResetKey, StateError
from knotwork.adapters.state_json import JSONStateStore, open_store
from knotwork.adapters.state_json.changes import change_of, encode_change

GRAPH = {"kind": "graph", "nodes": ["n1"]}
MODEL = {"kind": "model", "model": "m"}


def store_of(*changes: Change) -> JSONStateStore:
    store = open_store()
    store.stage(DeclareKey("authors", "LIST"))
    store.stage(DeclareKey("net", "DICT"))
    store.stage(DeclareKey("net.people", "LIST"))
    store.stage(DeclareKey("net.kinds", "COUNTER"))
    store.stage(DeclareKey("total", "COUNTER"))
    for change in changes:
        store.stage(change)
    return store


def refused(store: JSONStateStore, change: Change, status: str, message: str) -> StateError:
    before = store.snapshot()
    with pytest.raises(StateError) as caught:
        store.stage(change)
    assert (caught.value.status, message in caught.value.message) == (status, True), caught.value.message
    assert store.snapshot().root is before.root, "nothing changed"
    return caught.value


# LIST


def test_a_list_takes_what_no_item_contains() -> None:
    """Nothing is dropped: of one id, only what says nothing new is the same item."""
    ada = {"id": 1, "name": "Ada", "born": 1815}
    store = store_of(MergeInto("authors", [ada, {"name": "Grace", "n": 1}]))
    other, longer = {"id": 1, "name": "other"}, {**ada, "died": 1852}
    store.stage(
        MergeInto("authors", [{"born": 1815, "id": 1}, {"n": 1, "name": "Grace"}, {"name": "Grace"}, other, longer])
    )
    assert store.get("authors") == [ada, {"name": "Grace", "n": 1}, {"name": "Grace"}, other, longer]
    store.stage(MergeInto("authors", [{"id": 2}, {"id": 2}, {"id": 1}, {"id": 1, "name": None}]))
    assert store.get("authors")[5:] == [{"id": 2}, {"id": 1, "name": None}]


def test_evidence_goes_to_the_item_that_contains_the_new_one() -> None:
    rows = [{"id": "A", "with": "B"}, {"id": "A", "with": "C"}]
    store = store_of(MergeInto("authors", rows, [[GRAPH], []]))
    store.stage(MergeInto("authors", [{"with": "C", "id": "A"}, {"id": "A", "with": "D"}], [[MODEL], [MODEL]]))
    assert store.get("authors") == [*rows, {"id": "A", "with": "D"}]
    assert store.snapshot().evidence("authors") == [[GRAPH], [MODEL], [MODEL]]


def test_changes_of_earlier_versions_compare_by_id() -> None:
    """Journals that were written before rows were compared by all their fields give the state that they gave then."""
    text, plain = encode_change(
        MergeInto("authors", [{"id": 1, "name": "Ada"}, {"id": 1, "name": "other"}], by_id=True)
    )
    assert plain["do"] == "merge" and b'"by_id"' not in text
    store = store_of(change_of(plain), MergeInto("net", {"people": [{"id": 1}, {"id": 1, "n": 2}]}, by_id=True))
    assert store.get("authors") == [{"id": 1, "name": "Ada"}]
    assert store.get("net") == {"people": [{"id": 1}], "kinds": 0}
    assert encode_change(MergeInto("authors", []))[1]["do"] == "add"


def test_identity_is_json_as_written() -> None:
    values = [1, 1.0, True, "1", None, [1], [1.0], {"id": 1}, {"id": 1.0}, {"id": "1"}, {"id": None}, {}]
    store = store_of(MergeInto("authors", values), MergeInto("authors", values))
    got = store.get("authors")
    assert [repr(item) for item in got] == [repr(value) for value in values]


@pytest.mark.parametrize("value", [{"id": 1}, "x", 1, False])
def test_what_is_no_list_is_one_item(value: Any) -> None:
    assert store_of(MergeInto("authors", value)).get("authors") == [value]


def test_null_is_no_item() -> None:
    refused(store_of(), MergeInto("authors", None), "schema_mismatch", "null can't be an item")


def test_evidence_of_what_is_there_is_united() -> None:
    store = store_of(MergeInto("authors", [{"id": 1}, {"id": 2}], [[GRAPH]]))
    store.stage(MergeInto("authors", [{"id": 2}, {"id": 1}, {"id": 3}], [[MODEL], [MODEL, GRAPH], []]))
    assert store.snapshot().evidence("authors") == [[GRAPH, MODEL], [MODEL]]


def test_replace_keeps_what_is_given_as_it_is() -> None:
    store = store_of(MergeInto("authors", [1], [[GRAPH]]), ReplaceWith("authors", [2, 2], [[], [MODEL]]))
    assert store.get("authors") == [2, 2]
    assert store.snapshot().evidence("authors") == [[], [MODEL]]
    store.stage(MergeInto("authors", [2, 3]))
    assert store.get("authors") == [2, 2, 3]


def test_evidence_may_be_made_when_it_is_asked_for() -> None:
    class Lazy:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> list[Any]:
            if index >= 3:
                raise IndexError
            return [{"kind": "graph", "nodes": [index]}]

    store = store_of(MergeInto("authors", ["a", "b", "c"], Lazy()))  # type: ignore[arg-type]
    assert store.snapshot().evidence("authors")[2] == [{"kind": "graph", "nodes": [2]}]


# DICT


def test_a_dict_is_merged_deep_and_later_wins() -> None:
    store = store_of(MergeInto("net", {"a": {"x": 1, "y": {"z": [1]}}, "b": 1}))
    store.stage(MergeInto("net", {"a": {"y": {"z": [2], "w": 3}}, "b": {"c": 1}, "d": None}))
    assert store.get("net") == {
        "people": [], "kinds": 0, "a": {"x": 1, "y": {"z": [2], "w": 3}}, "b": {"c": 1}, "d": None
    }  # fmt: skip


def test_a_field_that_bears_the_name_of_a_declared_key_goes_to_that_key() -> None:
    store = store_of(MergeInto("net.people", ["Ada"]), MergeInto("net.kinds", 1))
    store.stage(MergeInto("net", {"people": ["Ada", "Grace"], "kinds": 2, "x": 1}, {"people": [GRAPH], "x": [MODEL]}))
    assert store.get("net") == {"people": ["Ada", "Grace"], "kinds": 3, "x": 1}
    assert store.snapshot().evidence("net.people") == [[GRAPH], [GRAPH]]
    assert store.snapshot().evidence("net") == {"x": [MODEL]}
    refused(store, MergeInto("net", {"x": 2, "kinds": "many"}), "schema_mismatch", "net.kinds is a COUNTER")


def test_replacing_a_dict_keeps_the_keys_declared_in_it() -> None:
    store = store_of(MergeInto("net.people", ["Ada"]), MergeInto("net", {"a": 1}, {"a": [GRAPH]}))
    store.stage(ReplaceWith("net", {"b": 2}))
    assert store.get("net") == {"people": ["Ada"], "kinds": 0, "b": 2}
    assert store.snapshot().evidence("net") == {}


def test_evidence_under_index_0_is_that_of_all_fields() -> None:
    store = store_of(MergeInto("net", {"a": 1, "b": 2}, [[GRAPH]]))
    assert store.snapshot().evidence("net") == {"a": [GRAPH], "b": [GRAPH]}


@pytest.mark.parametrize("value", [[1], "x", 1, None, True])
def test_a_dict_takes_objects_only(value: Any) -> None:
    refused(store_of(), MergeInto("net", value), "schema_mismatch", "net is a DICT; it takes an object")


@pytest.mark.parametrize("value", [{"_meta": 1}, {"a": {"_meta": {"type": "LIST"}}}, {"": 1}])
def test_names_that_the_file_needs_are_no_fields(value: Any) -> None:
    refused(store_of(), MergeInto("net", value), "schema_mismatch", "net")


# COUNTER


def test_a_counter_adds_numbers() -> None:
    store = store_of(
        MergeInto("total", 2), MergeInto("total", 0.5, [[GRAPH]]), MergeInto("total", -1, [[GRAPH], [MODEL]])
    )
    assert store.get("total") == 1.5
    assert store.snapshot().evidence("total") == [GRAPH, MODEL]


def test_a_counter_counts_per_key() -> None:
    store = store_of(MergeInto("total", {"a": 1}), MergeInto("total", {"a": 2, "b": 1.5}))
    assert store.get("total") == {"a": 3, "b": 1.5}
    refused(store, MergeInto("total", 1), "schema_mismatch", "total counts per key")
    store.stage(ReplaceWith("total", 1))
    refused(store, MergeInto("total", {"a": 1}), "schema_mismatch", "total is a single number")


def test_a_counter_takes_the_rows_of_count_by() -> None:
    rows = [{"type": "PERSON", "count": 2}, {"type": None, "count": 1}, {"type": 3, "count": 1}]
    store = store_of(MergeInto("total", rows), MergeInto("total", [{"type": "PERSON", "count": 1}]))
    assert store.get("total") == {"PERSON": 3, "null": 1, "3": 1}


@pytest.mark.parametrize(
    "value",
    [
        "1", True, None, [1], {"a": "1"}, {"a": True}, {"a": None}, [{"count": 1}], [{"a": 1, "b": 2}],
        [{"a": 1, "count": 1, "b": 1}], [{"a": "x", "count": 1}, {"b": "x", "count": 1}], [{"a": [], "count": 1}],
        [{"a": "x", "count": "1"}],
    ],
)  # fmt: skip
def test_what_does_not_count_is_refused(value: Any) -> None:
    refused(store_of(), MergeInto("total", value), "schema_mismatch", "total is a COUNTER")


@pytest.mark.parametrize(
    ("first", "second"), [(2**63 - 1, 1), (-(2**63), -1), (1e308, 1e308), ({"a": 2**62}, {"a": 2**62})]
)
def test_a_counter_does_not_overflow(first: Any, second: Any) -> None:
    refused(store_of(MergeInto("total", first)), MergeInto("total", second), "schema_mismatch", "exceed 64 bits")


# Declaring


def test_declaring_again_keeps_the_data() -> None:
    store = store_of(MergeInto("authors", [1]), DeclareKey("authors", "LIST", "another description"))
    assert store.get("authors") == [1]
    assert store.snapshot().declared("authors")[0].description is None
    refused(store, DeclareKey("authors", "DICT"), "schema_mismatch", "declared as a LIST; it can't become a DICT")


@pytest.mark.parametrize("kind", ["LIST", "DICT", "COUNTER"])
def test_the_description_is_part_of_the_state(kind: Any) -> None:
    bare, described = open_store(), open_store()
    bare.stage(DeclareKey("a", kind))
    described.stage(DeclareKey("a", kind, "all"))
    assert bare.hash != described.hash
    assert [each.kind for each in bare.diff(bare.snapshot(), described.snapshot())] == ["changed"]


def test_keys_nest_in_declared_dicts_only() -> None:
    store = store_of()
    error = refused(store, DeclareKey("a.b.c", "LIST"), "binding_failure", "a.b is not declared")
    assert error.hint == "DECLARE a AS DICT\nDECLARE a.b AS DICT"
    refused(store, DeclareKey("authors.x", "LIST"), "schema_mismatch", "authors is a LIST")
    store.stage(MergeInto("net", {"place": 1}))
    refused(store, DeclareKey("net.place", "LIST"), "schema_mismatch", "already has a field place")


@pytest.mark.parametrize("key", ["_meta", "items", "value", "net.items", "", "a..b", ".", "a\nb", "x" * 201])
def test_some_names_are_no_keys(key: str) -> None:
    with pytest.raises(StateError) as caught:
        store_of().stage(DeclareKey(key, "LIST"))
    assert caught.value.status in ("schema_mismatch", "binding_failure")


def test_a_key_can_lie_twenty_deep() -> None:
    store = open_store()
    for parts in range(1, 21):
        store.stage(DeclareKey(".".join("k" * parts), "DICT"))
    refused(store, DeclareKey(".".join("k" * 21), "LIST"), "schema_mismatch", "at most 20 parts")


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("autors", [1], "DECLARE autors AS LIST"),
        ("other", {"a": 1}, "DECLARE other AS DICT"),
        ("other", 3, "DECLARE other AS COUNTER"),
        ("net.deep.er", "x", "DECLARE net.deep AS DICT\nDECLARE net.deep.er AS LIST"),
        ("my key", 1, "DECLARE `my key` AS COUNTER"),
    ],
)
def test_an_undeclared_key_is_refused_with_the_commands_that_declare_it(key: str, value: Any, hint: str) -> None:
    error = refused(store_of(), MergeInto(key, value), "binding_failure", f"{key} is not declared")
    assert error.hint == hint
    assert ("did you mean authors?" in error.message) == (key == "autors")


# RESET


def test_reset_empties_and_keeps_the_declarations() -> None:
    store = store_of(
        MergeInto("net.people", ["Ada"], [[GRAPH]]), MergeInto("net", {"a": 1}), MergeInto("net.kinds", {"a": 1})
    )
    store.stage(ResetKey("net"))
    assert store.get("net") == {"people": [], "kinds": 0}
    assert store.snapshot().provenance() == {}
    assert store.hash == store_of().hash
    refused(store, ResetKey("nett"), "binding_failure", "did you mean net?")


# What is not JSON


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        2**63,
        -(2**63) - 1,
        "\ud800",
        {1: 2},
        {"\ud800": 1},
        {1, 2},
        b"x",
        object(),
        deep(250),
        deep(20_000),
    ],
)
def test_what_is_no_json_is_refused_at_the_door(value: Any) -> None:
    for key, wrapped in (("authors", [value]), ("net", {"a": value}), ("total", {"a": value})):
        refused(store_of(), MergeInto(key, wrapped), "schema_mismatch", "")
    refused(store_of(), MergeInto("authors", [1], [[{"kind": value}]]), "schema_mismatch", "")


def test_a_circle_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    refused(store_of(), MergeInto("authors", value), "schema_mismatch", "")


def test_the_message_names_the_place() -> None:
    error = refused(store_of(), MergeInto("authors", [{"n": [1, float("nan")]}]), "schema_mismatch", "")
    assert "$.value[0].n[1] is nan" in error.message


def test_what_is_as_deep_as_the_door_allows_can_be_kept(tmp_path: Any) -> None:
    store = open_store(tmp_path / "s")
    for key, kind in (("l", "LIST"), ("d", "DICT")):
        store.stage(DeclareKey(key, kind))  # type: ignore[arg-type]
    nested: Any = 1
    for _ in range(190):
        nested = {"a": nested}
    store.stage(MergeInto("l", [nested]))
    store.stage(MergeInto("d", nested))
    store.stage(MergeInto("d", {"a": {"a": {"b": 1}}}))
    state = store.commit()
    store.close()
    again = open_store(tmp_path / "s")
    assert again.hash == state
    again.close()
    assert open_store(tmp_path / "s" / "state.json").hash == state


@pytest.mark.slow
def test_whatever_the_door_lets_in_can_be_committed_and_written(tmp_path: Any) -> None:
    store = open_store(tmp_path / "s")
    for parts in range(1, 20):
        store.stage(DeclareKey(".".join("k" * parts), "DICT"))
    key = ".".join("k" * 20)
    store.stage(DeclareKey(key, "LIST"))
    let_in = 0
    for levels in range(180, 210):
        mark = store.mark()
        try:
            store.stage(MergeInto(key, [deep(levels)], [[{"kind": deep(levels - 2)}]]))
        except StateError:
            store.back(mark)
        else:
            let_in += 1
        store.note({"x": 1})
        store.commit()
    assert 10 < let_in < 20
    state = store.hash
    store._log.compact({"hash": state, "state": store.as_json()})  # type: ignore[union-attr]
    store.close()
    for path in (tmp_path / "s", tmp_path / "s" / "state.json"):
        assert open_store(path, read_only=True).hash == state


def test_who_gave_a_value_can_change_it_afterwards() -> None:
    item = {"id": 1, "tags": ["a"]}
    evidence = {"kind": "graph", "nodes": ["n"]}
    store = store_of(MergeInto("authors", [item], [[evidence]]), MergeInto("net", {"x": item}))
    item["tags"].append("b")  # type: ignore[attr-defined]
    evidence["nodes"].append("m")  # type: ignore[attr-defined]
    store.get("authors")[0]["tags"].append("c")
    store.get("net")["x"]["tags"].append("c")
    store.snapshot().evidence("authors")[0][0]["nodes"].append("c")
    assert store.get("authors") == [{"id": 1, "tags": ["a"]}]
    assert store.get("net")["x"] == {"id": 1, "tags": ["a"]}
    assert store.snapshot().evidence("authors") == [[{"kind": "graph", "nodes": ["n"]}]]


# Incomplete


def marks(store: Any) -> dict[str, tuple[str, ...]]:
    return {each.key: each.incomplete for each in store.snapshot().declared() if each.incomplete}


def test_a_key_knows_why_it_is_incomplete_until_it_is_replaced_or_reset() -> None:
    store = store_of()
    complete = store.hash
    store.stage(MergeInto("total", 0, incomplete=("e was cut",)))
    assert marks(store) == {"total": ("e was cut",)}
    assert store.hash != complete
    store.stage(MergeInto("total", 1))
    store.stage(MergeInto("total", 1, incomplete=("x was cut", "e was cut")))
    assert marks(store) == {"total": ("e was cut", "x was cut")}
    assert store.snapshot().variables()["total"]["_meta"]["incomplete"] == ["e was cut", "x was cut"]
    assert store.summary(["total"])["total"]["incomplete"] == ["e was cut", "x was cut"]
    store.stage(ReplaceWith("total", 1, incomplete=("x was cut",)))
    assert marks(store) == {"total": ("x was cut",)}
    store.stage(ReplaceWith("total", 0))
    assert (marks(store), store.hash) == ({}, complete)
    store.stage(MergeInto("total", 1, incomplete=("e was cut",)))
    store.stage(ResetKey("total"))
    assert (marks(store), store.hash) == ({}, complete)


def test_keys_declared_in_an_object_are_incomplete_with_what_they_are_given() -> None:
    store = store_of()
    store.stage(MergeInto("net", {"kinds": {"a": 1}}, incomplete=("e was cut",)))
    assert marks(store) == {"net": ("e was cut",), "net.kinds": ("e was cut",)}
    store.stage(ReplaceWith("net", {"kinds": {"a": 2}}))
    assert marks(store) == {}
