"""In which language a text is, and whether Enter may run it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.api.pieces import command_words, expression_of, is_complete, language_of, pieces


@pytest.mark.parametrize(
    "text, language",
    [
        ("FIND nodes AS x", "gasl"),
        ("find nodes where degree > 2 as x", "gasl"),
        ("FNID nodes AS x", "gasl"),
        ("SELECT * FROM people", "gasl"),
        ("MATCH (n) RETURN n", "gasl"),
        ("END", "gasl"),
        ("#: because\nFIND nodes AS x", "gasl"),
        ('(a)=LLM("x")', "lwt"),
        ("( a )= 1", "expr"),
        ('why = LLM("x")', "lwt"),
        ('(why=LLM("x")', "lwt"),
        ("# knotwork: ignore[LWT041]\n(a)=CONST(1)", "lwt"),
        ("(a) == 3", "expr"),
        ("n = 3", "expr"),
        ("count", "expr"),
        ("count in xs", "expr"),
        ("rank(1)", "expr"),
        ("hubs where degree > 3", "expr"),
        (".help", "dot"),
        ("  .vars x", "dot"),
        (".5 + 1", "expr"),
        ("# a remark", "comment"),
        ("", "comment"),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "FIND nodes AS x", "FIND nodes WHERE", "FIND nodes LIMIT 5", "TRY\nFIND nodes AS x\nEND", '(a)=LLM("x")',
        '(a)=EACH({(b)}, LLM("{(item)}"))',
        "1 +", "len(xs)", "xs[0].id", ".help", "# remark", "", '(a)=LLM("x",\n  type=list)', "x y z", '"open', "n = 1", "n =",
        '(a)=LLM("""x\n\ny""")', "FIND nodes WHERE id IN (1,\n2) AS x",
    ],
)  # fmt: skip
def test_what_is_run_at_once(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "TRY", "TRY\nFIND nodes AS x", "FIND nodes WHERE (degree > 2", "FIND nodes WHERE id IN (1,", "#: because", '(a)=LLM("x', "(a)=LLM(",
        '(a)=LLM("x"', '(a)=LLM("x",', '(a)=LLM("""x"', "(a)=CONST([1,", "len(xs", "[x for x in xs", "n = [1,", "{'a': 1,",
    ],
)  # fmt: skip
def test_what_waits_for_another_line(text: str) -> None:
    assert not is_complete(text)


def test_a_text_falls_into_its_pieces_and_steps_that_stand_together_stay_together() -> None:
    text = (
        'FIND nodes AS x\n\n# remark\nTRY\n  FIND nodes AS y\nEND\n(a)=LLM("""one\n\ntwo""")\n\n'
        '# knotwork: ignore[LWT041]\n(b)=LLM("{(a)}")\nlen(x)\n.vars\n'
    )
    found = list(pieces(text, "file"))
    assert [(piece.language, piece.first_line) for piece in found] == [
        ("gasl", 1),
        ("gasl", 4),
        ("lwt", 7),
        ("expr", 13),
        ("dot", 14),
    ]
    assert found[2].text == '(a)=LLM("""one\n\ntwo""")\n\n# knotwork: ignore[LWT041]\n(b)=LLM("{(a)}")'
    lines = text.split("\n")
    for piece in found:
        first = piece.text.split("\n")[0]
        assert (
            lines[piece.first_line - 1] == first
            and piece.source.position(piece.source.text.index(first))[0] == piece.first_line
        )


def test_what_is_never_whole_is_a_piece_all_the_same() -> None:
    assert [piece.text for piece in pieces("1\n(a)=LLM('open\n2")] == ["1", "(a)=LLM('open\n2"]


def test_a_name_keeps_its_place_when_it_is_taken_out() -> None:
    assert expression_of("\n n  = len(x)") == ("n", "\n      len(x)")
    assert expression_of("n == 1") == (None, "n == 1")


def test_the_words_of_commands_come_from_the_grammar() -> None:
    assert {"FIND", "UNION", "TRY", "SET"} < command_words() and "WHERE" not in command_words()


_BITS = st.sampled_from(
    ["FIND nodes", " AS x", "\n", "(a)=", "LLM(", '"', "'", "{(a)}", ")", "(", "[", "]", "TRY", "END", "# ",
     "#: ", ".vars", "len(", "x", " = ", '"""', "\r\n", "\0", "é"]
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(_BITS, max_size=14).map("".join))
def test_no_text_is_lost_and_none_is_too_strange(text: str) -> None:
    found = list(pieces(text))
    lines = text.replace("\r\n", "\n").split("\n")
    seen = [
        line for piece in found for line in piece.text.split("\n") if line.strip() and not line.lstrip().startswith("#")
    ]
    kept = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    assert [line for line in kept if line not in seen] == []
    for piece in found:
        assert piece.language == language_of(piece.text)
        is_complete(piece.text)


def test_a_block_with_a_fault_in_it_is_one_piece_to_its_end() -> None:
    text = "TRY\n  FIDN nodes AS x\n  TRY\n    FIND nodes WHRE a = 1 AS y\n  END\n  FIND nodes AS z\nEND # done\nlen(z)"
    assert [piece.language for piece in pieces(text)] == ["gasl", "expr"]
    text = '(a)=LLM("x" "y", """\nFIND nodes AS x\n""")\n1'
    assert [piece.text for piece in pieces(text)] == [text[:-2], "1"]
