"""How far the offered edits alone carry: single slips in good scripts, repaired by a program that thinks nothing.

The bounds are what was reached when they were written, rounded down; a fix that gets lost shows here.
"""

from collections import Counter

import pytest
from knotwork.lang.parse.lwt import parse_lwt
from support.corruptions import CORRUPTIONS, GOOD, corrupted
from support.repairer import errors, repair, reported

CORPUS = [*corrupted(1, seed=1), *corrupted(2, seed=7)]
_SILENT = {"LWT024", "LWT025", "LWT026", "LWT027", "LWT041"}
"""Warnings that are edits to a reference: what strict reading takes for text."""


def fractions(mode: str, wanted=None) -> tuple[float, float, Counter[str]]:
    """Return how many of the corpus come out without errors, how many as they were, and the slips that don't."""
    sound = same = 0
    lost: Counter[str] = Counter()
    for name, text, good in CORPUS:
        done = repair(text, mode, wanted)
        sound += not done.left
        as_it_was = not done.left and steps(done.text, mode) == steps(good, "strict")
        same += as_it_was
        lost[name] += not as_it_was
    return sound / len(CORPUS), same / len(CORPUS), lost


def steps(text: str, mode: str):
    return parse_lwt(text, mode).steps


def test_the_corpus_is_large_and_its_scripts_are_good() -> None:
    assert len(CORPUS) >= 150
    assert {name for name, _, _ in CORPUS} == set(CORRUPTIONS)
    for good in GOOD:
        assert errors(good, "strict") == []


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "sound", "same"), [("strict", 0.99, 0.92), ("lenient", 0.99, 0.95)])
def test_edits_of_errors_repair(mode: str, sound: float, same: float) -> None:
    reached = fractions(mode)
    assert reached[0] >= sound, reached
    assert reached[1] >= same, reached


@pytest.mark.slow
def test_edits_of_slips_in_references_bring_the_meaning_back() -> None:
    reached = fractions("strict", lambda found: found["severity"] == "error" or found["code"] in _SILENT)
    assert reached[1] >= 0.99, reached


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_no_fix_makes_more_errors(mode: str) -> None:
    for name, text, _ in CORPUS:
        before = errors(text, mode)
        for one in before:
            if one["edits"]:
                pieces, done = [], 0
                for edit in sorted(one["edits"], key=lambda edit: (edit["start"], edit["end"])):
                    pieces += [text[done : edit["start"]], edit["text"]]
                    done = edit["end"]
                after = errors("".join(pieces) + text[done:], mode)
                assert len(after) <= len(before), (name, text, one, after)
        counts = repair(text, mode).counts
        assert counts == sorted(counts, reverse=True), (name, text, counts)


@pytest.mark.slow
def test_warnings_have_edits_that_make_no_error() -> None:
    for name, text, _ in CORPUS:
        if errors(text, "strict"):
            continue
        for one in reported(text, "strict"):
            for edit in one["edits"]:
                after = text[: edit["start"]] + edit["text"] + text[edit["end"] :]
                assert errors(after, "strict") == [] or len(one["edits"]) > 1, (name, one)
