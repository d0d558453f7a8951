"""Which reviews a filter keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.trees.seed import FormulaSeed, Keep
from knotwork.runtime.seeds.reviews import FilterError, Review, ReviewFilter, keyword_counts, read_context


def keeps(text: str, *keywords: str, match: str = "substring") -> bool:
    return ReviewFilter.of(FormulaSeed(keep=Keep(keywords, match))).keeps(text)


def test_a_keyword_is_found_inside_words_whatever_the_case() -> None:
    assert keeps("The PEANUTS were stale", "peanut")
    assert keeps("minutes", "NUT")
    assert keeps("Straße", "STRASSE")
    assert not keeps("almond", "nut", "peanut")


@pytest.mark.parametrize("match", ["substring", "word", "regex"])
def test_a_keyword_is_found_in_any_unicode_form(match: str) -> None:
    for keyword in ("caf\u00e9", "cafe\u0301"):
        texts = ("a caf\u00e9", "a cafe\u0301.", "CAFE\u0301", "CAF\u00c9", "a cafe")
        assert [keeps(text, keyword, match=match) for text in texts] == [True] * 4 + [False]
        seed = FormulaSeed(keep=Keep((keyword,), match))  # type: ignore[arg-type]
        assert keyword_counts(seed, texts)[1] == 4


def test_without_keywords_all_are_kept() -> None:
    assert keeps("anything")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a nut.", True),
        ("minutes", False),
        ("nuts", False),
        ("NUT!", True),
        ("nut-free", True),
        ("nut_1", False),
        ("Nüt", False),
    ],
)
def test_a_word_stands_by_itself(text: str, kept: bool) -> None:
    assert keeps(text, "nut", match="word") is kept


def test_words_are_those_of_any_script() -> None:
    assert not keeps("größer", "größe", match="word")
    assert keeps("die Größe!", "größe", match="word")


def test_a_word_may_be_several_or_end_in_a_mark() -> None:
    assert keeps("an epi pen,", "epi pen", match="word")
    assert keeps("C++!", "c++", match="word")


def test_a_pattern_does_not_mind_case() -> None:
    assert keeps("Peanuts", "pea ?nuts?", match="regex")
    assert not keeps("Peanuts", "(?-i)peanut", match="regex")
    assert not keeps("nothing", "^peanut$", match="regex")


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "a" * 5 + "{1000}{1000}"])
def test_a_pattern_that_cant_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(FilterError, match="can't be used"):
        keeps("a", pattern, match="regex")


def test_a_pattern_takes_linear_time() -> None:
    assert not keeps("a" * 100_000, "(a+)+$b", match="regex")  # a search that goes back would not end


def test_counts_are_by_keyword_and_together() -> None:
    seed = FormulaSeed(keep=Keep(("nut", "milk", "soy")))
    counts, kept, total = keyword_counts(seed, ["nut and milk", "minute", "bread"])
    assert [(each.keyword, each.kept) for each in counts] == [("nut", 2), ("milk", 1), ("soy", 0)]
    assert (kept, total) == (2, 3)


def test_counts_without_keywords() -> None:
    assert keyword_counts(FormulaSeed(), ["a", "b"]) == ([], 2, 2)


def test_order_stays() -> None:
    reviews = [Review(index, text, {}) for index, text in enumerate(["nut", "x", "nuts"])]
    assert [each.index for each in ReviewFilter.of(FormulaSeed(keep=Keep(("nut",)))).reviews_to_keep(reviews)] == [0, 2]


@pytest.mark.slow
@given(st.text().filter(str.strip), st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3))
def test_substrings_are_those_of_seed_000_but_for_case(text: str, keywords: list[str]) -> None:
    plain = any(keyword.casefold() in text.casefold() for keyword in keywords)
    assert keeps(text, *keywords) is plain


def test_a_review_without_a_word_is_never_kept() -> None:
    read = read_context({"reviews": [{"text": None, "stars": 5}, {"text": " \n"}, {"text": "good"}]})
    keeper = ReviewFilter.of(FormulaSeed())
    assert [review.index for review in keeper.reviews_to_keep(read.reviews)] == [2]
