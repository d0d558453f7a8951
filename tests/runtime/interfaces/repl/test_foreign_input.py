"""What people type who know other prompts, and a slip in a dot command: met, or told with what Tab puts right."""

from pathlib import Path

import pytest
from knotwork.runtime.api.session import Session
from knotwork.runtime.api.session_data import Page, Table
from support.command import call, cassette
from support.sessions import new_session, run, run_all

MISERABLES = "nx:les_miserables"


@pytest.fixture(scope="module")
def at() -> Session:
    made = new_session(MISERABLES)
    assert all(
        outcome.is_good for outcome in run_all(made, "FIND nodes WHERE degree > 20 AS hubs\nDECLARE kept AS LIST")
    )
    return made


@pytest.mark.parametrize("text", ["quit", "quit;", "exit", "EXIT;", "exit()", "\\q", ".exit", ".q", ".quit;"])
def test_a_way_out_is_one(at: Session, text: str) -> None:
    assert run(at, text).ends


@pytest.mark.parametrize(
    "text, page", [("help FIND", "FIND nodes|edges"), ("help mode;", ".mode [MODE]"), ("\\h undo", ".undo"), ("help", ".quit")]
)  # fmt: skip
def test_help_is_help(at: Session, text: str, page: str) -> None:
    value = run(at, text).value
    assert isinstance(value, Page) and page in value.text


@pytest.mark.parametrize("text", ["show tables", "SHOW TABLES;", "\\d", "\\dt", "describe weight", "\\d weight"])
def test_what_others_call_tables_is_the_schema(at: Session, text: str) -> None:
    value = run(at, text).value
    assert isinstance(value, Table) and value.columns[0] == "of"


@pytest.mark.parametrize(
    "text",
    [
        "FIND nodes LIMIT 1 AS one;",
        "1 + 1;",
        "n = 2 ;",
        "(a)=CONST(1);",
        "TRY\n  FIND nodes LIMIT 1 AS t\nEND;",
        "len(hubs); ",
    ],
)
def test_a_semicolon_at_the_end_is_nobodys_fault(at: Session, text: str) -> None:
    outcome = run(at, text)
    assert outcome.status == "done" and not at.ran[-1].piece.text.endswith(";")


def test_a_semicolon_hides_no_other_fault(at: Session) -> None:
    assert [d.code for d in run(at, "FNID nodes AS x;").diagnostics] == ["GASL001"]
    assert run(at, "lenn(hubs);").fixed_text == "len(hubs)"
    assert run(at, '"a;').status == "refused" and run(at, '";"').value == ";"


@pytest.mark.parametrize(
    "text, mended",
    [
        (".shema", ".schema"), (".mode tabel", ".mode table"), (".schema weigth", ".schema weight"), (".vars hbus", ".vars hubs"),
        (".state kpet", ".state kept"), (".timer of", ".timer off"), (".budget cals=3", ".budget calls=3"), (".help udno", ".help undo"),
        (".explain FNID nodes AS x", ".explain FIND nodes AS x"), (".load x.gasl", ".read x.gasl"),
    ],
)  # fmt: skip
def test_a_slip_in_a_dot_command_has_its_fix(at: Session, text: str, mended: str) -> None:
    outcome = run(at, text)
    assert not outcome.is_good and outcome.fixed_text == mended


def test_a_file_of_nearly_that_name_is_the_fix(at: Session, folder: Path) -> None:
    (folder / "my commands.gasl").write_text("1", encoding="utf-8")
    assert run(at, ".read 'my comands.gasl'").fixed_text == ".read 'my commands.gasl'"


@pytest.mark.parametrize("text", [".", "..", "\\x"])
def test_what_is_nothing_has_one_error(at: Session, text: str) -> None:
    outcome = run(at, text)
    assert outcome.status == "misused" and not outcome.diagnostics and "\n" not in outcome.message


def test_what_undo_takes_is_said(at: Session) -> None:
    for wrong in (".undo two", ".undo 1 2"):
        assert "a number of commands" in run(at, wrong).message and ".undo 2" in run(at, wrong).hint


def test_what_an_open_string_took_with_it_is_said() -> None:
    done = call("repl", stdin='(a)=LLM("abc\n1\n2\n\n.vars\n')
    assert (
        done.code == 3 and done.out == "" and "the next 3 lines were read as part of this text and not run" in done.err
    )
    assert "behind it" not in call("repl", stdin='(a)=LMM("abc")\n1\n').err


def test_a_budget_that_is_used_up_says_how_more_is_allowed(folder: Path) -> None:
    at = new_session(llm=cassette(folder / "answers", {"x": "y"}))
    run(at, ".budget calls=0")
    outcome = run(at, '(a)=LLM("x")')
    assert outcome.status == "failed" and ".budget" in outcome.hint and "none" in outcome.hint


@pytest.mark.parametrize(
    "text",
    [
        '(p)=CONST("one");\n(q)=EXPR("p", p={(p)});',
        '(p)=CONST("one");\n# second\n(q)=CONST("""a;\nb;\n""");',
        "TRY\n  FIND nodes LIMIT 1 AS t;\n  COUNT t AS n; # how many\nEND;",
        "[1,\n2];",
    ],
)
def test_a_semicolon_at_the_end_of_any_line_is_nobodys_fault(at: Session, text: str) -> None:
    assert run(at, text).status == "done"
    if '"""' in text:
        assert at.values.context.get("q") == "a;\nb;\n"


def test_let_is_no_word_of_the_language_and_what_it_means_is_clear(at: Session) -> None:
    assert run(at, "let a1 = 1").names == ("a1",) and run(at, "const a2 = [1,\n2]").value == [1, 2]
    assert run(at, "let = 5").names == ("let",)


def test_a_command_is_not_assigned(at: Session) -> None:
    named, unnamed = run(at, "h = FIND nodes AS x"), run(at, "h = find nodes WHERE degree > 20")
    assert [d.code for d in (*named.diagnostics, *unnamed.diagnostics)] == ["GASL014", "GASL014"]
    assert "remove h =" in named.diagnostics[0].hints[0] and unnamed.fixed_text == "find nodes WHERE degree > 20 AS h"
    assert run(at, "count = 3").names == ("count",) and run(at, "n = count + 1").value == 4


def test_a_command_over_several_lines_has_one_error_and_its_fix(at: Session) -> None:
    outcome = run(at, "FIND nodes\nWHERE degree > 20;\nAS h;")
    assert [d.code for d in outcome.diagnostics] == ["GASL034"] and "one line" in outcome.diagnostics[0].message
    assert " ".join((outcome.fixed_text or "").split()) == "FIND nodes WHERE degree > 20 AS h"
    assert [o.status for o in run_all(at, "FIND nodes LIMIT 1 AS h\nMAX = 5\nMAX + 1")] == ["done", "done", "done"]
    assert "the end of the line above" in run(at, "WHERE degree > 20").diagnostics[0].hints[0]


def test_the_key_of_the_pager_ends_no_session() -> None:
    at = new_session()
    outcome = run(at, "q")
    assert not outcome.ends and outcome.fixed_text == ".quit" and "Ctrl-D" in outcome.hint
    assert [o.value for o in run_all(at, "q = 4\nq")] == [4, 4]


@pytest.mark.parametrize(
    "text, mended",
    [(".llm gpt-4", ".llm openai:gpt-4"), (".llm opnai:gpt-4", ".llm openai:gpt-4"), (".help FIDN", ".help FIND"),
     (".help clasify", ".help CLASSIFY")],
)  # fmt: skip
def test_a_slip_in_a_name_of_the_languages_or_of_a_model_has_its_fix(at: Session, text: str, mended: str) -> None:
    assert run(at, text).fixed_text == mended


def test_sql_has_its_fix_with_a_name(at: Session) -> None:
    assert run(at, "select * from nodes;").fixed_text == "FIND nodes AS found"


def test_a_long_text_is_told_where_it_belongs(at: Session) -> None:
    outcome = run(at, f"len('{'a' * 20_000}')")
    assert "--input" in outcome.diagnostics[0].hints[-1]
