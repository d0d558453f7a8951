"""The store is what the port says: the same names, the same arguments."""

import inspect
from typing import Any

import pytest
from knotwork.adapters import state
from knotwork.adapters.state_json import JSONStateStore, open_store
from knotwork.adapters.state_json.snapshot import JSONSnapshot


def members(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


@pytest.mark.parametrize(("protocol", "real"), [(state.StateStore, JSONStateStore), (state.Snapshot, JSONSnapshot)])
def test_every_member_is_there_with_the_same_arguments(protocol: type, real: type) -> None:
    assert members(protocol)
    for name in members(protocol):
        wanted, found = inspect.getattr_static(protocol, name), inspect.getattr_static(real, name)
        if isinstance(wanted, property):
            assert not inspect.isfunction(found), name
            continue
        arguments: list[Any] = [
            [parameter for parameter in inspect.signature(function).parameters.values() if parameter.name != "raw"]
            for function in (wanted, found)
        ]
        assert [(each.name, each.kind, each.default) for each in arguments[1]] == [
            (each.name, each.kind, each.default) for each in arguments[0]
        ], name


def test_a_type_checker_agrees() -> None:
    store: state.StateStore = open_store()
    snapshot: state.Snapshot = store.snapshot()
    assert snapshot.declared() == []
    assert snapshot.kind("a") is None
    assert snapshot.hash == store.hash == open_store().hash
    for ask in (snapshot.get, snapshot.evidence, snapshot.declared, lambda key: snapshot.sample(key, 1)):
        with pytest.raises(state.StateError) as caught:
            ask("a.b")
        assert caught.value.status == "binding_failure"
        assert caught.value.hint == "DECLARE a AS DICT\nDECLARE a.b AS LIST"


def test_the_empty_state_is_the_seeds_object() -> None:
    store = open_store(query="q", clock=lambda: "2025-09-16T12:34:56Z")
    assert store.as_json() == {
        "version": "0.1", "created_at": "2025-09-16T12:34:56Z", "updated_at": "2025-09-16T12:34:56Z", "query": "q",
        "config": {}, "variables": {}, "history": [], "replay": {"seed": 0, "config": {}, "commands": []},
    }  # fmt: skip
