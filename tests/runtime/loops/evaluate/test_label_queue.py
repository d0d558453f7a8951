"""Which reviews are picked for labelling."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import seed
from knotwork.runtime.loops.evaluate.label_queue import (
    LabelError,
    _sizes,
    extractions_by_place,
    label_items,
    pick_disagreements,
    pick_random,
    pick_unsure,
    stratum_reader,
)
from knotwork.runtime.seeds.reviews import read_context
from knotwork.runtime.seeds.seed_results import Extraction, SeedResult

FS = seed.load(
    {
        "filter": {"keywords": ["noise"]}, "extract": {"fields": [{"name": "level", "type": "enum", "values": ["quiet", "loud"]}]},
        "compute": [{"name": "N", "op": "count"}], "output": ["N"],
    }
)  # fmt: skip
CONTEXTS = [
    read_context(
        {"name": f"c{place}", "city": "Rom" if place % 4 else "Oslo", "reviews": [
            {"text": f"noise {number}" if number else "fine", "stars": 1 + number % 5} for number in range(10)
        ]},
        place,
    )
    for place in range(20)
]  # fmt: skip
ITEMS = label_items(FS, CONTEXTS)


def results(value, **more):
    return [
        SeedResult(
            f"c{place}", place, extractions=tuple(Extraction(n, {"level": value(place, n)}, **more) for n in range(10))
        )
        for place in range(20)
    ]


def test_only_kept_reviews_are_labelled_unless_the_filter_is_off():
    assert len(ITEMS) == 180 and len(label_items(FS, CONTEXTS, use_filter=False)) == 200
    assert ITEMS[0].keys == {"context": "c0", "id": "", "review": "1"} and ITEMS[0].about["stars"] == 2


def test_a_larger_sample_begins_with_the_smaller_one():
    small, large = pick_random(ITEMS, 10), pick_random(ITEMS, 50)
    assert large[:10] == small and len({item.place for item in large}) == 50
    assert pick_random(ITEMS, 10, 1) != small and len(pick_random(ITEMS, 500)) == 180


def test_strata_get_their_shares():
    by_city = stratum_reader("city", CONTEXTS, {})
    picked = pick_random(ITEMS, 40, 0, by_city)
    assert Counter(item.stratum for item in picked) == {"Rom": 30, "Oslo": 10}
    assert Counter(stratum_reader("meta.stars", CONTEXTS, {})(item) for item in ITEMS)["3"] == 40
    with pytest.raises(LabelError, match="did you mean 'city'"):
        stratum_reader("ctiy", CONTEXTS, {})


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 100))
def test_the_sizes_of_strata_add_up(strata, count):
    sizes = _sizes(strata, count)
    total = sum(strata.values())
    assert sum(sizes.values()) == min(count, total) and all(0 <= sizes[name] <= strata[name] for name in strata)
    if count >= len(strata):
        assert all(sizes.values())
        exact = {name: min(count, total) * strata[name] / total for name in strata}
        assert all(sizes[name] <= exact[name] + 1 or sizes[name] == 1 for name in strata)


def test_disagreements_are_marked():
    one = extractions_by_place(results(lambda place, number: "loud"), CONTEXTS, "a")
    two = extractions_by_place(results(lambda place, number: "quiet" if number == 3 else "loud"), CONTEXTS, "b")
    found = pick_disagreements(ITEMS, [one, two], ["level"], 100)
    assert (
        len(found) == 20
        and {item.place[1] for item in found} == {3}
        and {item.picked for item in found} == {"disagree"}
    )
    assert pick_disagreements(ITEMS, [one, one], ["level"], 100) == []
    broken = extractions_by_place(results(lambda place, number: "loud", failed="timeout"), CONTEXTS, "c")
    assert len(pick_disagreements(ITEMS, [one, broken], ["level"], 1_000)) == 180
    assert pick_disagreements(ITEMS, [broken, broken], ["level"], 1_000) == []


def test_invalid_ones_are_the_least_sure():
    made = results(lambda place, number: "loud")
    made[4] = SeedResult("c4", 4, extractions=(Extraction(5, {"level": None}, invalid={"level": "lod"}),))
    (found,) = pick_unsure(ITEMS, extractions_by_place(made, CONTEXTS, "a"), ["level"], 10)
    assert (found.place, found.picked) == ((4, 5), "unsure")
    sure = results(lambda place, number: "loud", confidence={"level": 1.0})
    sure[2] = SeedResult(
        "c2", 2, extractions=tuple(Extraction(n, {"level": "loud"}, confidence={"level": n / 10}) for n in range(10))
    )
    places = [item.place for item in pick_unsure(ITEMS, extractions_by_place(sure, CONTEXTS, "a"), ["level"], 3)]
    assert places == [(2, 1), (2, 2), (2, 3)]
    with pytest.raises(LabelError, match="no confidence"):
        pick_unsure(ITEMS, extractions_by_place(results(lambda place, number: "loud"), CONTEXTS, "a"), ["level"], 10)


def test_results_of_other_data_are_refused():
    with pytest.raises(LabelError, match="no extraction of these contexts"):
        extractions_by_place([SeedResult("elsewhere", 0, extractions=(Extraction(0),))], CONTEXTS, "a.jsonl")
