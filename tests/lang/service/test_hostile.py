"""Texts that are large or made to cost time: what is asked of them is answered in seconds, and nothing raises."""

import time

import pytest
from knotwork.lang.service import complete, folds, hover, rename, symbols, tokens
from support.cpu_time import pace
from support.service_known import KNOWN

LARGE = [
    ("gasl", "FIND nodes WHERE year IN (" + "1, " * 60_000),
    ("gasl", "FIND nodes WHERE " + "(" * 50_000),
    ("gasl", "FIND nodes WHERE " + "year = 1 AND " * 1_500),
    ("gasl", "TRY\n" * 20_000),
    ("gasl", '"' * 100_000),
    ("gasl", "`" * 100_001),
    ("gasl", "${" * 100_000),
    ("gasl", "-" * 100_000),
    ("gasl", "FIND nodes AS a\n" * 5_000),
    ("lwt", "(a)=LLM(" * 20_000),
    ("lwt", '(a)=LLM("' + "{" * 100_000),
    ("lwt", '(a)=LLM("' + "{(a)}[" * 20_000),
    ("lwt", '(a)=LLM("' + "x " * 200_000),
    ("lwt", "(a)=CONST(" + "[" * 50_000),
    ("lwt", '(a)=LLM("x")\n' * 5_000),
    ("expr", "(" * 9_000),
    ("expr", "1 + " * 2_400),
    ("expr", "x" * 500_000),
    ("seed", "[" * 100_000),
    ("seed", '{"a":' * 1_000),
    ("seed", '{"compute": [' + '{"name": "a"},' * 20_000),
    ("seed", '"' * 100_001),
]


QUICK = ("gasl", '"' * 100_000), ("lwt", '(a)=LLM("' + "x " * 200_000), ("expr", "x" * 500_000), ("seed", "[" * 100_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "text"),
    [
        pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow, id=f"{each[0]}-{each[1][:20]!r}")
        for each in LARGE
    ],
)
def test_a_large_text_is_answered_in_time(language, text):
    begin = time.process_time()
    complete(language, text, len(text), KNOWN)
    complete(language, text, len(text) // 2, KNOWN)
    taken = time.process_time() - begin
    assert taken < 3, f"completion took {taken:.1f} s"
    tokens(language, text)
    taken = time.process_time() - begin
    assert taken < 5, f"with tokens it took {taken:.1f} s"


@pytest.mark.slow
@pytest.mark.parametrize(("language", "text"), LARGE, ids=[f"{language}-{text[:20]!r}" for language, text in LARGE])
def test_all_else_that_is_asked_of_a_large_text_is_answered_too(language, text):
    begin = time.process_time()
    hover(language, text, len(text) // 2, KNOWN)
    rename(language, text, len(text) // 2, "other", KNOWN)
    symbols(language, text)
    folds(language, text)
    assert time.process_time() - begin < 60 * pace()
