"""What is told of a text under edits is what is told of it when it is opened as it is: for every language, with and without a graph."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.schema import Schema
from knotwork.lang.service import Known, Language
from knotwork.lang.source import Source
from knotwork.runtime.interfaces.lsp.checking import Checker
from knotwork.runtime.wiring import open_graph
from support.typing_edits import PROGRAMS, SCRIPTS, SEEDS, histories

SCHEMA: Schema = open_graph("nx:les_miserables").adapter.schema
CASES = st.one_of(
    st.tuples(st.just("lwt"), histories(SCRIPTS), st.sampled_from([Known(), Known(input={"a": [1]}, models=("small",))])),
    st.tuples(st.just("gasl"), histories(PROGRAMS), st.sampled_from([Known(), Known(schema=SCHEMA, state={})])),
)  # fmt: skip


def agree(language: Language, texts: list[str], known: Known) -> None:
    checker = Checker(language)
    for text in texts:
        alone = Checker(language)
        assert checker.check(Source(text), known) == alone.check(Source(text), known)
        assert checker.items == alone.items


@settings(deadline=None, max_examples=40)
@given(CASES)
def test_incremental_and_full_diagnostics_agree(case: tuple[Language, list[str], Known]) -> None:
    agree(*case)


@pytest.mark.slow
@settings(deadline=None, max_examples=800)
@given(CASES)
def test_incremental_and_full_diagnostics_agree_under_many_edits(case: tuple[Language, list[str], Known]) -> None:
    agree(*case)


@settings(deadline=None, max_examples=8)
@given(histories(SEEDS))
def test_seeds_are_checked_whatever_is_typed(texts: list[str]) -> None:
    agree("seed", texts, Known())
