"""Whatever is typed, each question has the same answer for a text that was read as for the text itself, in every language."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.catalogue.schema import Schema
from knotwork.lang.service import (
    Known,
    Language,
    Reading,
    definition,
    folds,
    hover,
    references,
    rename,
    symbols,
    tokens,
)
from knotwork.lang.source import Source
from knotwork.runtime.api.checks import check_reading as check
from knotwork.runtime.models.factory import open_graph
from support.examples import many
from support.typing_edits import PROGRAMS, SCRIPTS, SEEDS, histories

SCHEMA: Schema = open_graph("nx:les_miserables").adapter.schema
CASES = st.one_of(
    st.tuples(st.just("lwt"), histories(SCRIPTS), st.sampled_from([Known(), Known(input={"a": [1]}, models=("small",))])),
    st.tuples(st.just("gasl"), histories(PROGRAMS), st.sampled_from([Known(), Known(schema=SCHEMA, state={})])),
)  # fmt: skip


def agree(language: Language, texts: list[str], known: Known) -> None:
    for text in texts:
        reading = Reading(language, Source(text))
        check(reading, known)
        for ask in (tokens, symbols, folds):
            assert ask(language, reading) == ask(language, text)
        for offset in range(0, len(text), 1 + len(text) // 3):
            for about in (hover, definition, references):
                assert about(language, reading, offset, known) == about(language, text, offset, known)
            assert rename(language, reading, offset, "renamed", known) == rename(
                language, text, offset, "renamed", known
            )


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(CASES)
def test_readings_and_texts_agree(case: tuple[Language, list[str], Known]) -> None:
    agree(*case)


@pytest.mark.slow
@settings(deadline=None, max_examples=many(250))
@given(CASES)
def test_readings_and_texts_agree_under_many_edits(case: tuple[Language, list[str], Known]) -> None:
    agree(*case)


@pytest.mark.slow
@settings(deadline=None, max_examples=4)
@given(histories(SEEDS))
def test_seeds_are_checked_whatever_is_typed(texts: list[str]) -> None:
    agree("seed", texts, Known())
