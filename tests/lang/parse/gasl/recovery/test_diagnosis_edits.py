"""No edit takes away what was meant: a name, a text, a condition, a line of a program.

A program makes the edits of a check without a look at them, and what then runs must not be less than what was written.
"""

import re
from pathlib import Path

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.parse.gasl import parse_gasl
from support.folders import GOLDEN

INVALID = sorted((GOLDEN / "gasl/invalid").glob("*.gasl"))
WORDS = (
    "AND",
    "OR",
    "WITH",
    "TO",
    "FROM",
    "ON",
    "USING",
    "BY",
    "FOR",
    "OF",
    "IN",
    "INTO",
    "PER",
    "SET",
    "VIA",
    "BETWEEN",
    "THEN",
    "=",
    ",",
    "->",
    "",
)
FORMS = (
    "JOIN a {} b ON id AS c", "JOIN a WITH b {} id AS c", "UNION a {} b AS c", "EXCEPT a {} b AS c", "INTERSECT a {} b {} id AS c",
    "CONNECT a {} b AS c", "UPDATE k {} a", "RESET a {} b", "REQUIRE EXISTS a {} b", "COUNT a {} b AS n", "RANK a {} id AS r",
    "RANK a BY id {} 3 AS r", "WALK a {} kind = 'x' AS c", "WALK {} a DEPTH 2 AS c", "SUBGRAPH a {} 2 AS c", "PROCESS a {} 'do' AS c",
    "CLASSIFY a {} 'q' {} ('x', 'y') AS c", "AGGREGATE a {} b COMPUTE count() AS z", "MEASURE a {} b AS c", "SELECT a {} id AS c",
    "FIND paths FROM a {} b AS c", "FIND paths {} a TO b AS c", "FIND nodes {} a AS c", "ON EMPTY a {} b THEN RESET c",
    "BRANCH IF LEN ${{a}} > 2 {} RESET c",
)  # fmt: skip


def mended(text: str) -> str:
    return apply_edits(text, [edit for found in parse_gasl(text).diagnostics for edit in found.edits])


def named(text: str) -> set[str]:
    """Return the names, texts and numbers of a program: what is not a word in capitals."""
    return {word for word in re.findall(r"\w+", text) if not word.isupper()}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_word_of_another_language_takes_no_name_along(form: str) -> None:
    for word in WORDS:
        text = form.format(word, word)
        after = mended(text)
        assert named(text) == named(after), (text, after)


REPLACED = {
    "all", "the", "key", "node", "vertices", "relationships", "ten", "two", "outgoing", "Step", "gasl", "wher", "n",
    "PERSON", "items", "None", "1", "3", "FINDnodes", "mod", "paterns",
}  # fmt: skip
"""Words of the programs that are no names: another language's, numbers in words, markup, escapes."""


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_the_edits_of_faulty_programs_keep_every_name(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    after = mended(text)
    lost = {word for word in named(text) - named(after) if not re.search(re.escape(word), after, re.IGNORECASE)}
    assert lost <= REPLACED, after
    assert after.count("\n# ") <= text.count("\n# ") or path.stem in ("prose", "comment-marks", "dangling-reason")


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("JOIN a AND b ON id AS c", "JOIN a WITH b ON id AS c"),
        ("JOIN a AND b USING id AS c", "JOIN a WITH b ON id AS c"),
        ("UNION a, b AS c", "UNION a WITH b AS c"),
        ("CONNECT a AND b AS c", "CONNECT a TO b AS c"),
        ("FIND paths BETWEEN a AND b AS c", "FIND paths FROM a TO b AS c"),
        ("SUBGRAPH a DEPTH 2 AS c", "SUBGRAPH a RADIUS 2 AS c"),
        ("UPDATE a b", "UPDATE a WITH b"),
        ("PROCESS a WITH 'do' AS c", "PROCESS a USING 'do' AS c"),
        ("COUNT the people AS n", "COUNT people AS n"),
        ("DECLARE my key AS LIST", "DECLARE my_key AS LIST"),
        ("RNAK hubs BY id AS r", "RANK hubs BY id AS r"),
        ("rnak hubs by id as r", "RANK hubs by id as r"),
        ("LIST nodes AS x", "FIND nodes AS x"),
        ("PROCESS x USING 'q' AS y RETURNING (a STRING)", "PROCESS x USING 'q' AS y RETURNING (a TEXT)"),
    ],
)
def test_the_word_is_put_right(text: str, right: str) -> None:
    assert mended(text) == right
    assert parse_gasl(right).diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "SHOW orgs", "show orgs limit 2", "LIST nodes", "show tables", "DANCE nodes", "help FIND", "( FIND nodes AS x )", "42 nodes",
        "FIND nodes WHERE AS x", "FIND nodes WHERE a = 1 AND AS x", "WALK a DEPTH ALL AS b", "EXCEPT a FROM b AS c",
        "SELECT DISTINCT people FIELDS city AS c", "authors = FIND nodes AS x", "FIND nodes WHERE a = 10k AS x", "RESET a b",
        "BRANCH IF 1 = 1 THEN RESET x", "MEASURE betweenness ON graph AS b", "DECLARE a._meta AS LIST",
        "FIND nodes AS x\nCATCH ANY\nRESET k\nEND", "TYR\nFIND nodes AS x\nEND",
    ],
)  # fmt: skip
def test_where_something_would_be_lost_there_is_a_hint_and_no_edit(text: str) -> None:
    assert mended(text) == text
    assert all(found.hints for found in parse_gasl(text).diagnostics)


@pytest.mark.parametrize(
    "text",
    [
        "Here are the commands:", "Plan:", "**Step one**", "I hope this helps.", "Findings are below.", "> It finds people.", "---",
        "| a | b |", "Let me know if it helps!", "-- all of them", "// all of them",
    ],
)  # fmt: skip
def test_text_by_all_signs_becomes_a_remark(text: str) -> None:
    assert mended(f"{text}\nFIND nodes AS x") == f"# {text}\nFIND nodes AS x"


@pytest.mark.parametrize("text", ["SELECT * FROM edges", "SELECT * FROM", "SHOW orgs", "BRANCH IF 1 = 1", "LIST nodes"])
def test_what_the_hint_has_said_is_not_told_again(text: str) -> None:
    assert len(parse_gasl(text).diagnostics) == 1


def test_a_block_word_alone_is_meant_as_a_block() -> None:
    (found,) = parse_gasl("TYR").diagnostics
    assert found.hints == ("did you mean TRY?",)
