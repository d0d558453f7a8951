"""The persistent values under the state: vectors and tables, each against Python's own."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.state_json.persistent import BUCKET, EMPTY, EMPTY_TABLE, WIDTH, Table, canonical

SIZES = st.one_of(st.integers(0, 5), st.integers(0, 3 * WIDTH), st.sampled_from([WIDTH**2 - 1, WIDTH**2, WIDTH**2 + 1]))


def texts(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


# Vectors


@pytest.mark.slow
@given(st.lists(SIZES, max_size=4), st.integers(0, 2500), st.integers(0, 2500))
@settings(deadline=None, max_examples=60)
def test_a_vector_is_a_list(sizes: list[int], cut: int, start: int) -> None:
    vector, model = EMPTY, list[bytes]()
    for size in sizes:
        more = texts(size, len(model))
        vector, model = vector.extended(more), model + more
    vector, model = vector.prefix(cut), model[:cut]
    assert list(vector) == model
    assert len(vector) == len(model)
    assert list(vector.from_index(start)) == model[start:]
    assert all(vector[at] == model[at] for at in range(0, len(model), 37))
    assert vector.digest == EMPTY.extended(model).digest, "the shape follows from the length alone"


@pytest.mark.slow
@given(
    st.integers(1, 1200), st.dictionaries(st.integers(0, 1199), st.integers(-9, -1), max_size=8), st.integers(0, 1200)
)
@settings(deadline=None, max_examples=60)
def test_changing_a_vector_leaves_the_old_one(size: int, changes: dict[int, int], other: int) -> None:
    changes = {at: new for at, new in changes.items() if at < size}
    old = EMPTY.extended(texts(size))
    new = old.changed({at: b"%d" % value for at, value in changes.items()})
    assert list(old) == texts(size)
    assert sorted(old.differing(new)) == sorted(changes)
    assert sorted(new.differing(old.prefix(other))) == sorted(at for at in changes if at < other)
    assert (new.digest == old.digest) == (not changes)
    back = new.changed({at: b"%d" % at for at in changes})
    assert back.digest == old.digest


def test_a_vector_that_is_cut_anywhere_can_be_extended_again() -> None:
    whole = texts(WIDTH**2 + 3 * WIDTH)
    vector = EMPTY.extended(whole)
    for cut in (0, 1, WIDTH - 1, WIDTH, WIDTH + 1, WIDTH**2 - 1, WIDTH**2, WIDTH**2 + 1, WIDTH**2 + WIDTH, len(whole)):
        part = vector.prefix(cut)
        assert part.digest == EMPTY.extended(whole[:cut]).digest
        for more in (1, WIDTH, WIDTH**2):
            longer = part.extended(texts(more))
            assert list(longer) == whole[:cut] + texts(more)
            assert longer.digest == EMPTY.extended(whole[:cut] + texts(more)).digest


def test_a_small_change_hashes_a_path_only(monkeypatch: Any) -> None:
    from knotwork.adapters.state_json import persistent

    vector = EMPTY.extended(texts(100_000))
    assert vector.digest
    hashed: list[bytes] = []

    def noticed(elements: Any) -> bytes:
        hashed.extend(elements)
        return b"".join(elements)

    monkeypatch.setattr(persistent, "canonical_list", noticed)
    assert vector.extended([b"-1"]).digest
    assert 0 < len(hashed) <= WIDTH


# Tables

NUMBERS_64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.one_of(st.text(max_size=3), st.integers(0, 200).map(str))


@pytest.mark.slow
@given(st.dictionaries(NAMES, NUMBERS_64, max_size=150), st.dictionaries(NAMES, NUMBERS_64, max_size=50), st.data())
@settings(deadline=None, max_examples=80)
def test_a_table_is_an_object(first: dict[str, int], second: dict[str, int], data: Any) -> None:
    table = Table.of(first).updated(second)
    model = first | second
    assert dict(table.items()) == model
    assert [name for name, _ in table.items()] == list(model), "in the order in which they were first set"
    gone = data.draw(st.lists(st.sampled_from(sorted(model)), max_size=60)) if model else []
    rest = table.without(gone)
    left = {name: value for name, value in model.items() if name not in gone}
    assert dict(rest.items()) == left
    assert len(rest) == len(left)
    assert all(rest.get(name) == left.get(name) for name in model)
    assert rest.digest == Table.of(dict(reversed(left.items()))).digest, "whatever led to it"
    assert sorted(table.differing(rest)) == sorted(set(gone))
    assert sorted(Table.of(first).differing(table)) == sorted(
        name for name in model if name not in first or first[name] != model[name]
    )


@pytest.mark.slow
def test_a_table_that_shrinks_has_the_shape_of_a_small_one() -> None:
    values = {str(number): number for number in range(50 * BUCKET)}
    for left in (BUCKET + 1, BUCKET, 1, 0):
        few = dict(list(values.items())[:left])
        assert Table.of(values).without(list(values)[left:]).digest == Table.of(few).digest


def test_many_keys_that_fall_together_are_kept(monkeypatch: Any) -> None:
    from knotwork.adapters.state_json import persistent

    monkeypatch.setattr(persistent, "_spread", lambda key: 7)
    values = {str(number): number for number in range(3 * BUCKET)}
    table = EMPTY_TABLE.updated(values)
    assert dict(table.items()) == values
    assert dict(table.without(list(values)[: 2 * BUCKET + 1]).items()) == dict(list(values.items())[2 * BUCKET + 1 :])


# Hashing


def test_a_digest_does_not_mind_the_order_of_keys_but_minds_all_else() -> None:
    assert canonical(b'{"b":[{"d":1,"c":2}],"a":0}') == b'{"a":0,"b":[{"c":2,"d":1}]}'
    one, other = EMPTY.extended([b'{"a":1,"b":2}']), EMPTY.extended([b'{"b":2,"a":1}'])
    assert one.digest == other.digest
    different: list[Any] = [
        [b"1"],
        [b"1.0"],
        [b'"1"'],
        [b"true"],
        [b"[1]"],
        [b"1", b"1"],
        [b"11"],
        [],
        [b"null"],
    ]
    assert len({EMPTY.extended(items).digest for items in different}) == len(different)
    assert len({Table.of({"a": value[0]}).digest for value in different if value}) == len(different) - 2


def test_neighbours_can_not_be_taken_for_each_other() -> None:
    pairs = [({"a": b'"b"', "c": b"1"}), ({"a": b'"b"c'}), ({"ac": b'"b"'}), ({"a": b"1", "b": b"2"}), ({"a": b"1b2"})]
    assert len({Table.of(pair).digest for pair in pairs}) == len(pairs)
