"""The prompt's parts without a terminal: what Tab offers, what Enter does, colours, pages."""

import asyncio
from pathlib import Path

import pytest
from knotwork.runtime.api.session import Session
from knotwork.runtime.interfaces.repl.tables import value_lines
from knotwork.runtime.interfaces.repl.terminal import Dropped, PromptCompleter, coloured, is_ready, make_prompt, paged
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from support.folders import EXAMPLES
from support.sessions import new_session, run, run_all

PAPERS = str(EXAMPLES / "papers" / "papers.graphml")


@pytest.fixture(scope="module")
def at() -> Session:
    made = new_session(PAPERS)
    run_all(
        made,
        'FIND nodes WHERE entity_type = "PERSON" AS authors\nDECLARE network AS DICT\nDECLARE network.authors AS LIST\n'
        '(why)=CONST("so")\n(info)=CONST({"born": 1815})',
    )
    return made


def offered(at: Session, text: str, fix: str = "", behind: str = "") -> list[str]:
    """Return what Tab offers behind ``text``, as the whole lines that come of it."""
    schema = at.adapter.schema if at.adapter is not None else None
    found = PromptCompleter(at, lambda: fix, lambda: schema).get_completions(
        Document(text + behind, len(text)), CompleteEvent()
    )
    return [text[: len(text) + each.start_position] + each.text for each in found]


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("FI", "FIND"),
        ("FIND no", "FIND nodes"),
        ("FIND nodes WHERE entity_t", "FIND nodes WHERE entity_type"),
        ('FIND nodes WHERE entity_type = "PE', 'FIND nodes WHERE entity_type = "PERSON"'),
        ("COUNT au", "COUNT authors"),
        ("UPDATE network.au", "UPDATE network.authors"),
        ("len(auth", "len(authors"),
        ("le", "len"),
        ("aut", "authors"),
        ('(x)=LLM("{(wh', '(x)=LLM("{(why'),
        ('(x)=LLM("why?", temp', '(x)=LLM("why?", temperature'),
        ("(x)=EA", "(x)=EACH"),
        (".sch", ".schema"),
        (".schema ent", ".schema entity_type"),
        (".vars wh", ".vars why"),
        (".state net", ".state network"),
        (".mode c", ".mode csv"),
        (".help und", ".help undo"),
        (".explain FI", ".explain FIND"),
        (".budget ca", ".budget calls="),
        (".llm op", ".llm openai:MODEL"),
        (".timer o", ".timer on"),
        ("FIND nodes AS x\nCOUNT au", "FIND nodes AS x\nCOUNT authors"),
        ("n = len(auth", "n = len(authors"),
        ('authors[0]["', 'authors[0]["entity_type"]'),
        ("authors[0]['ent", "authors[0]['entity_type']"),
        ('n = len(authors[-1]["des', 'n = len(authors[-1]["description"]'),
        ('info["bo', 'info["born"]'),
        (".shema", ".schema"),
        (".tables x", ".schema x"),
        (".mode tabel", ".mode table"),
        (".vars autors", ".vars authors"),
    ],
)
def test_what_tab_offers(at: Session, text: str, wanted: str) -> None:
    found = offered(at, text)
    assert any(line.startswith(wanted) for line in found[:10]), found[:10]


def test_a_key_in_brackets_is_closed_once(at: Session) -> None:
    found = offered(at, 'authors[0]["', behind='"]')
    assert 'authors[0]["entity_type' in found
    assert 'authors[0]["entity_type"' in offered(at, 'authors[0]["ent', behind="]")
    assert [line for line in offered(at, '[a["', behind=" for a in authors]") if "entity_type" in line] == [
        '[a["entity_type"]'
    ]


@pytest.mark.parametrize("text", ['authors["', 'why["', 'nobody[0]["', 'x + "', '["', 'authors[0]["xyzzy'])
def test_where_no_key_is_known_none_is_offered_and_no_bracket_stands_in_a_string(at: Session, text: str) -> None:
    assert [line for line in offered(at, text) if line.count('"') % 2 and line.endswith("]")] == []


def test_tab_offers_files_where_a_file_is_wanted(at: Session, folder: Path) -> None:
    (folder / "commands.gasl").write_text("", encoding="utf-8")
    assert ".read commands.gasl" in offered(at, ".read comm")


def test_tab_on_an_empty_prompt_offers_the_fix_of_the_latest_error(at: Session) -> None:
    assert offered(at, "", "FIND nodes AS x") == ["FIND nodes AS x"]
    assert "FIND" in " ".join(offered(at, ""))


def test_tab_on_what_is_wrong_offers_its_fix(at: Session) -> None:
    assert offered(at, "FNID nodes AS x")[0] == "FIND nodes AS x"
    assert offered(at, "len(autors)")[0] == "len(authors)"
    assert (
        offered(at, 'FIND nodes WHERE entity_type = "PERSN" AS x')[0] == 'FIND nodes WHERE entity_type = "PERSON" AS x'
    )


def test_tab_in_the_midst_of_a_word_ends_the_word(at: Session) -> None:
    assert offered(at, "FIND nodes WHERE degree > 5 O") == [
        "FIND nodes WHERE degree > 5 ORDER",
        "FIND nodes WHERE degree > 5 OR",
    ]
    assert offered(at, "FIND nodes WHERE degree > 5 ")[0].endswith(" AS")


def test_no_completion_moves_a_cursor(at: Session) -> None:
    evil = new_session()
    evil.values.bind("evil\x1b[2J", 1)
    run(evil, 'evil = "\x1b[31m"')
    found = list(
        PromptCompleter(evil, lambda: "", lambda: None).get_completions(Document("(a)=LLM({(ev", 12), CompleteEvent())
    )
    found += list(
        PromptCompleter(evil, lambda: "", lambda: None).get_completions(Document(".vars ev", 8), CompleteEvent())
    )
    assert found and not any("\x1b" in str(each.display_text) + str(each.display_meta_text) for each in found)


@pytest.mark.parametrize(
    "text, ready",
    [
        ("1 + 1", True), ("TRY", False), ("TRY\n\n", True), ("(a)=LLM('open", False), ("(a)=LLM('open\n\n", True), ("", True),
        ("1\nTRY", False), ("1\n(a)=LLM(", False), ("1\n2", True),
    ],
)  # fmt: skip
def test_enter_runs_what_is_whole_or_stands_before_two_empty_lines(text: str, ready: bool) -> None:
    assert is_ready(text, True) is ready


def test_enter_in_the_middle_of_a_block_makes_a_line() -> None:
    assert not is_ready("1\n2", False) and is_ready("1 + 1", False)


def test_colours_lose_no_letter() -> None:
    text = (
        'FIND nodes WHERE entity_type = "PERSON" AS x # why\n(a)=LLM("""x\n{(b)}""", type=list)\n'
        '.help x\n# remark\n[n for n in xs]\nFNID "open'
    )
    lines = coloured(text)
    assert "\n".join("".join(part[1] for part in line) for line in lines) == text
    styles = {part[0] for line in lines for part in line}
    assert {"class:command", "class:string", "class:dot", "class:comment"} <= styles, styles


@pytest.mark.slow
def test_a_long_paste_stays_plain() -> None:
    assert coloured("x\n" * 30_000)[0] == [("", "x")]


def _pages(lines: int, height: int, answers: list[str]) -> tuple[list[str], list[str], int]:
    said: list[str] = []
    asked: list[str] = []

    async def ask(text: str):  # type: ignore[no-untyped-def]
        asked.append(text)
        return answers.pop(0)

    printed = asyncio.run(
        paged(
            value_lines([{"n": n} for n in range(lines)], "table", 40, safe=True), lambda: height, said.append, ask=ask
        )
    )
    return said, asked, printed


def test_what_fits_is_not_paged() -> None:
    said, asked, printed = _pages(10, 24, [])
    assert printed == 10 and not asked and len(said) == 12


def test_pages_have_their_head_and_end_when_they_are_told_to() -> None:
    said, asked, printed = _pages(100_000, 24, ["more", "more", "stop"])
    assert [text.split(" of")[0] for text in asked] == [" rows 1-19", " rows 1-39", " rows 1-59"] and printed == 59
    assert sum(line.strip() == "n" for line in said) == 3
    assert _pages(500, 24, ["all"])[2] == 500


@pytest.mark.slow
def test_typing_at_the_prompt_in_process(folder: Path) -> None:
    at = new_session(PAPERS)

    async def typed(text: str, history: Path | None = None) -> str:
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            prompt = make_prompt(at, lambda: "", lambda: at.adapter.schema, history, colour=False)
            pipe.send_text(text)
            return await asyncio.wait_for(prompt.prompt_async(), 10)

    assert asyncio.run(typed("1 + 1\r")) == "1 + 1"
    assert asyncio.run(typed("TRY\rFIND nodes AS x\rEND\r")) == "TRY\nFIND nodes AS x\nEND"
    assert asyncio.run(typed("\x1b[200~FIND nodes AS x\nCOUNT x AS n\x1b[201~\r")) == "FIND nodes AS x\nCOUNT x AS n"
    # What is typed right behind a Tab is not lost.
    assert asyncio.run(typed("FIND nodes WHERE degr\t > 5 AS x\r")) == "FIND nodes WHERE degree > 5 AS x"
    file = folder / "home" / "history"
    assert asyncio.run(typed("n = 1\r", file)) == "n = 1"
    assert asyncio.run(typed("n = 1\r", file)) == "n = 1"
    assert asyncio.run(typed("\x1b[A\r", file)) == "n = 1"
    assert file.stat().st_mode & 0o777 == 0o600 and file.read_text().count("+n = 1") == 1
    with pytest.raises(Dropped):
        asyncio.run(typed("half\x03"))
    with pytest.raises(EOFError):
        asyncio.run(typed("\x04"))
