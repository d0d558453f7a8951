"""Samples depend on names, positions and the random state only."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.errors import RequestError
from knotwork.runtime.seeds.reviews import Context, InvalidContext
from knotwork.runtime.seeds.samples import Sampling, sampled_contexts

NAMES = st.lists(st.text(max_size=5), max_size=40)


@pytest.mark.slow
@given(names=NAMES, small=st.integers(1, 20), more=st.integers(0, 20), state=st.integers(0, 9))
def test_a_smaller_sample_is_part_of_a_larger_one(names: list[str], small: int, more: int, state: int) -> None:
    few = Sampling(sample=small, random_state=state).contexts(names)
    many = Sampling(sample=small + more, random_state=state).contexts(names)
    assert len(few) == min(small, len(names)) and few == sorted(few)
    assert set(few) <= set(many)
    assert Sampling().contexts(names) == list(range(len(names)))


@pytest.mark.slow
@given(name=st.text(max_size=5), number=st.integers(0, 50), wanted=st.integers(1, 50))
def test_reviews_keep_their_order(name: str, number: int, wanted: int) -> None:
    chosen = list(Sampling(sample_reviews=wanted).reviews(name, number))
    assert chosen == sorted(set(chosen)) and len(chosen) == min(number, wanted)
    assert set(chosen) <= set(Sampling(sample_reviews=wanted + 1).reviews(name, number))


def test_contexts_keep_their_positions_and_faults() -> None:
    contexts: list[Any] = [{"name": str(n), "reviews": [{"text": f"{n} {m}"} for m in range(5)]} for n in range(20)]
    contexts[3] = {"name": "broken"}
    found = list(sampled_contexts(iter(contexts), Sampling(sample=19, sample_reviews=2)))
    assert [each.index for each in found] == sorted(each.index for each in found)
    for each in found:
        if isinstance(each, InvalidContext):
            assert (each.index, each.name) == (3, "broken")
        else:
            assert isinstance(each, Context) and each.name == str(each.index)
            assert [review.text for review in each.reviews] == [
                f"{each.index} {review.index}" for review in each.reviews
            ]
            assert len(each.reviews) == 2
    assert [each.index for each in sampled_contexts(contexts, Sampling(limit=2))] == [0, 1]


def test_another_random_state_gives_another_sample() -> None:
    names = [str(n) for n in range(1000)]
    assert Sampling(sample=10).contexts(names) != Sampling(sample=10, random_state=1).contexts(names)
    assert Sampling(sample=10).as_json() == {"sample": 10, "random_state": 0}
    assert (Sampling().as_json(), Sampling(limit=3).as_json(), Sampling().is_all) == ({}, {"limit": 3}, True)


@pytest.mark.parametrize(
    "options", [{"sample": 0}, {"limit": -1}, {"sample_reviews": 1.5}, {"random_state": -1}, {"sample": True}]
)
def test_invalid_numbers(options: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        Sampling(**options)
