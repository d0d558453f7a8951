"""The codec: what goes in comes out the same; what would not is refused at the door, with its place."""

import datetime
import enum
import json
import math
import uuid
from collections import OrderedDict
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.state_json.log.codec import DEPTH, decode, encode, encode_again

INTEGERS = st.integers(-(2**63), 2**63 - 1)
LEAVES = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5), max_leaves=30
)


def typed(value: Any) -> Any:
    """Return the value with the type of every leaf beside it: 1 and 1.0 and true are equal in Python."""
    if isinstance(value, dict):
        return {key: typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [typed(part) for part in value]
    return type(value), repr(value)


@pytest.mark.slow
@given(VALUES)
def test_what_goes_in_comes_out_the_same(value: Any) -> None:
    written = encode(value)
    assert typed(decode(written)) == typed(value)
    assert encode_again(value) == written
    assert b"\n" not in written
    assert json.loads(written) == value


@pytest.mark.slow
@given(VALUES, st.sampled_from([math.nan, math.inf, -math.inf, 2**63, -(2**63) - 1, 10**400, "\ud800", b"bytes", {1}]))
def test_a_foreign_value_is_refused_wherever_it_hides(value: Any, foreign: Any) -> None:
    for around in ([value, foreign], {"a": value, "b": foreign}, {"a": [{"b": (value, [foreign])}]}):
        with pytest.raises(ValueError, match=r"^\$"):
            encode(around)


class Colour(enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "$ is nan, which JSON can't represent"),
        ({"authors": [{}, {"h-index": math.inf}]}, '$.authors[1]["h-index"] is inf, which JSON can\'t represent'),
        ([2**63], "$[0] is an integer beyond 64 bits"),
        ([2**64], "$[0] is an integer beyond 64 bits"),
        ([-(2**63) - 1], "$[0] is an integer beyond 64 bits"),
        ({"a": "x\udfff"}, "$.a has a lone surrogate, which is not valid text"),
        ({"\ud800": 1}, "$ has a key with a lone surrogate: '\\ud800'"),
        ({"a": {1: 2}}, "$.a has a key that is not a string: '1'"),
        ({None: 2}, "$ has a key that is not a string: 'None'"),
        ({True: 2}, "$ has a key that is not a string: 'True'"),
        ([b"x"], "$[0] is a bytes, which JSON can't represent"),
        ([{1, 2}], "$[0] is a set, which JSON can't represent"),
        ({"id": uuid.UUID(int=1)}, "$.id is a UUID, which JSON can't represent"),
        ({"at": datetime.datetime(2026, 1, 1)}, "$.at is a datetime, which JSON can't represent"),
        ([Colour.RED], "$[0] is a Colour, which JSON can't represent"),
        ([OrderedDict(a=1)], "$[0] is a OrderedDict, which JSON can't represent"),
        ([object], "$[0] is a type, which JSON can't represent"),
    ],
)
def test_what_is_refused_is_named_with_its_place(value: Any, said: str) -> None:
    with pytest.raises(ValueError) as raised:
        encode(value)
    assert str(raised.value) == said


def test_null_is_a_value_and_nan_beside_it_is_found() -> None:
    assert encode([None, 1.5]) == b"[null,1.5]"
    with pytest.raises(ValueError, match=r"\$\[1\]"):
        encode([None, math.nan])


def test_a_tuple_is_written_as_a_list() -> None:
    assert encode({"a": (1, (2, None))}) == b'{"a":[1,[2,null]]}'


def nested(levels: int, leaf: Any = 1, key: str = "") -> Any:
    for _ in range(levels):
        leaf = {key: leaf} if key else [leaf]
    return leaf


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "k"])
def test_the_depth_is_bounded(key: str) -> None:
    assert decode(encode(nested(DEPTH, key=key))) == nested(DEPTH, key=key)
    for levels in (DEPTH + 1, 300, 20_000):
        with pytest.raises(ValueError, match=r"^\$\.\.\..* is nested deeper than 200 levels$") as raised:
            encode(nested(levels, key=key))
        assert len(str(raised.value)) < 100


def test_orjson_still_has_the_limit_of_depth_that_ours_is_made_of() -> None:
    orjson.dumps(nested(254))
    with pytest.raises(TypeError, match="Recursion limit"):
        orjson.dumps(nested(255))


def test_a_circle_is_refused() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    with pytest.raises(ValueError, match="deeper than 200"):
        encode(circle)


@pytest.mark.parametrize(
    "written",
    [
        b"", b"{", b"nan", b"[NaN]", b"[Infinity]", b"[1e999]", b"\xff", b'"\\ud800"', b"[9223372036854775808]",
        b"[18446744073709551616]", b"[-9223372036854775809]", b"[" + b"9" * 10_000 + b"]", b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_can_not_be_read_as_it_was_written_is_refused(written: bytes) -> None:
    with pytest.raises(ValueError):
        decode(written)


@pytest.mark.parametrize(
    "value", [2**63 - 1, -(2**63), 12345678901234567890.0, "1234567890123456789012", 0.1, -0.0, 5e-324]
)
def test_long_digits_that_are_fine(value: Any) -> None:
    assert typed(decode(encode([value]))) == typed([value])
