"""The items of a LIST and their index, against plain Python: which item is the same as another one, and versions that share an index."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.state_json import item_index
from knotwork.adapters.state_json.item_index import Items, identity, identity_of


def test_identity_is_the_id_else_all_of_it() -> None:
    assert identity(b'{"id":1,"a":2}') == identity(b'{"a":3,"id":1}') == identity_of({"id": 1})
    assert identity(b'{"id":null,"a":2}') == identity(b'{"a":2,"id":null}') != identity(b'{"a":2}')
    others = [b"1", b"1.0", b'"1"', b"true", b'{"id":1}', b'{"id":1.0}', b'{"id":"1"}', b'"id1"', b'"%b"' % (b"x" * 99)]
    assert len({identity(text) for text in others}) == len(others)


# The index that versions share

NUMBERS = st.lists(st.integers(0, 60), max_size=12)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 30), NUMBERS, st.integers(0, 60)), max_size=40))
@settings(deadline=None, max_examples=150)
def test_versions_of_a_list_do_not_see_each_other(steps: list[tuple[int, list[int], int]]) -> None:
    """Any version may be extended again, or cut and extended, and each knows its own items only."""
    versions: list[tuple[Items, list[bytes]]] = [(Items(), [])]
    for which, numbers, keep in steps:
        items, model = versions[which % len(versions)]
        if keep < len(model):
            items, model = items.spliced(keep, []), model[:keep]
        new = [b"%d" % number for number in numbers]
        items, positions = items.merged(new, [identity(text) for text in new])
        model = [*model, *(text for text in dict.fromkeys(new) if text not in model)]
        assert positions == [model.index(text) for text in new]
        versions.append((items, model))
    assert all(list(items.vector) == model for items, model in versions)


def test_a_deep_line_of_forks_stays_shallow() -> None:
    items = Items()
    known: list[bytes] = []
    for turn in range(60):
        texts_of_turn = [b"%d" % (turn * 10 + at) for at in range(5)]
        items.merged(
            [b'"side %d"' % turn], [identity(b'"side %d"' % turn)]
        )  # what makes the next one a second extension
        items, _ = items.merged(texts_of_turn, [identity(text) for text in texts_of_turn])
        known += texts_of_turn
    assert list(items.vector) == known
    assert items._index[0].depth <= 9
    assert items.merged(known, [identity(text) for text in known])[0] is items
    sides = [b'"side %d"' % turn for turn in range(60)]
    assert items.merged(sides, [identity(text) for text in sides])[1] == list(range(300, 360)), "none of them is there"


# Which item is the same as another one

SMALL = st.sampled_from([0, 1, 1.0, True, None, "1", [1], {"b": 1, "c": 2}])
OBJECTS = st.builds(
    lambda name, fields: {"id": name, **fields},
    st.sampled_from(["a", "b", 1, 1.0, None]),
    st.dictionaries(st.sampled_from(["x", "y", "z"]), SMALL, max_size=3),
)
VALUES = st.lists(st.one_of(OBJECTS, OBJECTS, OBJECTS, SMALL), max_size=12)


def plain(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def contains(item: Any, value: Any) -> bool:
    """The promise: equal, or of the same id, and with all that ``value`` has."""
    if plain(item) == plain(value):
        return True
    if not (isinstance(item, dict) and isinstance(value, dict)) or value.get("id") is None:
        return False
    return all(name in item and plain(item[name]) == plain(part) for name, part in value.items())


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 8])
@given(steps=st.lists(st.tuples(st.integers(0, 30), VALUES, st.integers(0, 40)), max_size=25))
@settings(deadline=None, max_examples=120)
def test_what_another_item_contains_is_not_appended(few: int, steps: list[tuple[int, list[Any], int]]) -> None:
    """Any version may be extended again, or cut and extended. ``few``: with views for all identities, and for none."""
    versions: list[tuple[Items, list[Any]]] = [(Items(), [])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_index, "_FEW", few)
        patch.setattr(item_index, "_VIEWED", 20)
        for which, values, keep in steps:
            items, model = versions[which % len(versions)]
            if keep < len(model):
                items, model = items.spliced(keep, []), model[:keep]
            items, positions = items.united([orjson.dumps(value) for value in values], values)
            model = list(model)
            for value, position in zip(values, positions, strict=True):
                known = next((at for at, item in enumerate(model) if contains(item, value)), None)
                if known is None:
                    known = len(model)
                    model.append(value)
                assert position == known
            assert list(items.vector) == [orjson.dumps(item) for item in model]
            versions.append((items, model))


def test_many_items_of_one_id_are_found_without_reading_all(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [{"id": "same", "n": number, "of": "all"} for number in range(2_000)]
    items, _ = Items().united([orjson.dumps(value) for value in values], values)
    read = 0
    projected = item_index._projected

    def counted(*arguments: Any) -> Any:
        nonlocal read
        read += 1
        return projected(*arguments)

    monkeypatch.setattr(item_index, "_projected", counted)
    values = [{"n": number, "id": "same"} for number in range(2_000)]
    again, positions = items.united([orjson.dumps(value) for value in values], values)
    assert again is items and positions == list(range(2_000))
    assert read < 3 * len(values), "each item once for the view, and the first item once for each look-up"
