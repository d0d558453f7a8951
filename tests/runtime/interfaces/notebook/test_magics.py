"""The magics in a shell: cells, errors in the place of tracebacks, plans, evidence, reports."""

import asyncio
import signal
import threading
from pathlib import Path

import pytest
from support.command import cassette, silent_server
from support.shells import Shell

MISERABLES = "%kw open nx:les_miserables"


def test_a_cell_of_commands_shows_tables_and_binds_python_variables(shell: Shell) -> None:
    opened = shell.run(MISERABLES)
    assert "77 nodes · 254 edges" in opened.text and opened.error is None
    told = shell.run("%%gasl\nFIND nodes WHERE degree > 20 AS hubs\nRANK hubs BY id AS ranked")
    assert "<td>Valjean</td>" in told.shown[0]["text/html"] and "2 nodes in hubs" in told.shown[0]["text/plain"]
    assert shell.names["ranked"] == [{"id": "Gavroche"}, {"id": "Valjean"}]
    assert shell.run("len(hubs)").value == 2


def test_an_error_is_a_picture_and_a_line_and_nothing_after_it_runs(shell: Shell) -> None:
    shell.run(MISERABLES)
    told = shell.run("%%gasl\nFIND nodes WHERE degree > 20 AS hubs\nRANK hbus BY id AS a\nRANK hubs BY id AS b")
    assert "GASL050" in told.html and "     |      ^^^^" in told.html and "did you mean hubs?" in told.text
    assert "RANK hubs BY id AS a" in told.text.split("with the fix:")[1]
    assert "  --> In[1]:3:6" in told.text
    assert str(told.error) == "not run: the variable hbus is not bound (GASL050) at In[1]:3:6; did you mean hubs?"
    assert told.printed.strip().endswith(str(told.error)) and "Traceback" not in told.printed
    assert "hubs" not in shell.names and "the history is empty" in shell.run("%kw log").text


def test_what_a_gasl_cell_can_not_read_is_told_of_as_gasl(shell: Shell) -> None:
    shell.run(MISERABLES)
    assert "GASL" in shell.run("%%gasl\nlook at the nodes").text
    assert "LWT" in shell.run("%%lwt\n1 + 1").text


def test_all_languages_in_one_cell_and_on_one_line(shell: Shell, tmp_path: Path) -> None:
    spec = cassette(tmp_path / "answers", {"Who": "Valjean"})
    shell.run(f"{MISERABLES} --llm {spec}")
    told = shell.run(
        '%%kw\nFIND nodes WHERE degree > 20 AS hubs\n(who)=LLM("Who of {(hubs)}?")\nn = len(hubs)\nwho + str(n)\n.vars'
    )
    assert told.error is None and "Valjean2" in told.text and "step" in told.text
    assert (shell.names["who"], shell.names["n"]) == ("Valjean", 2)
    assert "3" in shell.run("%kw n + 1").text
    assert shell.run("x = %kw value who").error is None and shell.names["x"] == "Valjean"


def test_a_magic_works_where_an_event_loop_is_running(shell: Shell) -> None:
    async def cell() -> str:
        return shell.run("%kw 20 + 22").text

    assert asyncio.run(cell()) == "42"


@pytest.mark.slow
def test_an_interrupt_cancels_the_cell_and_keeps_the_session(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_API_KEY", "x")
    with silent_server() as (spec, asked):
        shell.run(f"%kw open --llm {spec}")
        shell.run("%kw n = 41")

        def interrupt() -> None:
            if asked.wait(20):
                signal.raise_signal(signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            told = shell.run('%%lwt\n(why)=LLM("Why?")')
        finally:
            thread.join()
            signal.signal(signal.SIGINT, before)
        assert str(told.error) == "cancelled; finished work is kept"
        assert "Traceback" not in told.printed
        assert shell.run("%kw n + 1").text == "42"


@pytest.mark.slow
def test_plans_are_drawn_and_nothing_runs(shell: Shell) -> None:
    shell.run(MISERABLES)
    told = shell.run('%%lwt --plan\n(final)=LLM("z {(a)} {(b)}")\n(b)=LLM("y {(a)}")\n(a)=LLM("x")')
    assert told.text.splitlines()[1:] == ["final · LLM ← a, b", "b · LLM ← a", "a · LLM"]
    assert told.html.startswith("<svg") and told.html.count("<rect") == 3 and told.html.count("marker-end") == 3
    told = shell.run(
        "%%gasl --plan\nFIND nodes AS all\nRANK all BY id AS ranked\nDECLARE best AS LIST\nUPDATE best WITH ranked"
    )
    assert told.text.splitlines() == [
        "data flow: all, ranked, best",
        "all · FIND",
        "ranked · RANK ← all",
        "best · DECLARE",
        "best · UPDATE ← ranked, best",
    ]
    assert "all" not in shell.run("%kw vars").text
    assert shell.run("%%gasl --check\nFIND nodes AS all\nRANK all BY id AS ranked").text == "no errors"
    assert "GASL050" in shell.run("%%gasl --check\nRANK all BY id AS ranked").text
    assert "nothing has been run yet" in str(shell.run("%kw plan").error)


@pytest.mark.slow
def test_evidence_and_report(shell: Shell, tmp_path: Path) -> None:
    shell.run(MISERABLES)
    assert "no finding has evidence" in str(shell.run("%kw evidence").error)
    shell.run("%%gasl\nDECLARE centre AS LIST\nFIND nodes WHERE degree > 20 AS hubs\nUPDATE centre WITH hubs")
    told = shell.run("%kw evidence")
    assert "<svg" in told.html and ">Valjean</text>" in told.html and "2 nodes and 1 edge between them" in told.text
    told = shell.run("%kw report")
    assert told.html.startswith("<iframe sandbox srcdoc=") and "<script" not in told.html
    assert shell.run("%kw report page.html").text == "written to page.html"
    assert "Valjean" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "page.html already exists" in str(shell.run("%kw report page.html").error)
    assert shell.run("%kw report page.html --force").error is None


def test_what_is_shown_is_escaped(shell: Shell, tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>\x1b[2J"
    spec = cassette(tmp_path / "answers", {"Say": bad})
    shell.run(f"%kw open --llm {spec}")
    shell.names["rows"] = [{"<b>k": bad}]
    shell.run("%kw rows = rows")
    seen = [
        shell.run(cell)
        for cell in ('%%lwt\n(a)=LLM("Say")', "%kw rows", f"%kw '{bad[:28]}' +", "%%lwt --plan\n(a)=LLM('<b>')")
    ]
    for told in seen:
        assert (
            "<img" not in told.html
            and "<b>" not in told.html
            and "\x1b" not in told.html + told.text + str(told.printed)
        )
    assert "&lt;img" in seen[0].html and "&lt;img" in seen[1].html


def test_long_results_have_a_bound(shell: Shell) -> None:
    shell.names["many"] = [{"n": n} for n in range(5_000)]
    told = shell.run("%kw many")
    assert told.html.count("<tr>") == 61 and "4,940 more rows" in told.html and "4,940 more rows" in told.text
    shell.names["text"] = "x" * 100_000
    assert len(shell.run("%kw text").html) < 30_000


def test_messages_for_what_can_not_be_done(shell: Shell) -> None:
    said = {
        "%kw vras": "unknown subcommand %kw vras; did you mean %kw vars?",
        "%kw open nx:les_miserablse": "did you mean nx:les_miserables?",
        "%kw open --max-calls many": "--max-calls: takes a number, not many",
        "%kw open 'a": "the line can't be parsed: no closing quotation; close the quote",
        "%%lwt --chekc\n(a)=LLM('x')": "%%lwt: unknown option --chekc",
        "%kw value nothing": "unknown value nothing",
        "%kw input nothing": "the notebook has no variable nothing",
        "%%gasl\nFIND nodes AS a": "needs a graph",
        "%kw report 'a": "the line can't be parsed: no closing quotation",
        "%kw .output x.csv": "is not available in a notebook: cells show the results",
    }
    for cell, part in said.items():
        told = shell.run(cell)
        assert part in str(told.error), (cell, told.error)
        assert "Traceback" not in told.printed


def test_opening_again_begins_anew_and_a_state_is_kept(shell: Shell, tmp_path: Path) -> None:
    shell.run(f"{MISERABLES} --state {tmp_path / 'state'}")
    shell.run("%%gasl\nDECLARE centre AS LIST\nFIND nodes WHERE degree > 20 AS hubs\nUPDATE centre WITH hubs")
    told = shell.run(f"%kw open --state {tmp_path / 'state'}")  # the state knows its graph
    assert "77 nodes" in told.text
    assert "Valjean" in shell.run("%kw state centre").text
    assert "no values yet" in shell.run("%kw vars").text
    assert len(shell.names["hubs"]) == 2


def test_a_graph_of_the_notebook_can_be_opened(shell: Shell) -> None:
    import networkx

    shell.names["mine"] = networkx.path_graph(4)
    assert "4 nodes · 3 edges" in shell.run("%kw open mine").text
    assert shell.run("%%gasl\nFIND nodes WHERE degree = 1 AS ends").error is None
    assert len(shell.names["ends"]) == 2


@pytest.mark.slow
def test_a_fault_of_our_own_is_a_line_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("no luck\x1b")

    monkeypatch.setattr("knotwork.runtime.interfaces.notebook.session.names_read_first", broken)
    told = shell.run("%kw 1 + 1")
    assert told.printed.strip() == "internal error: RuntimeError: no luck\\x1b"
    monkeypatch.setenv("KNOTWORK_DEBUG", "3")  # where it broke
    assert "Traceback" in shell.run("%kw 1 + 1").printed


def test_reloading_registers_the_magics_anew(shell: Shell) -> None:
    shell.run("%kw n = 1")
    assert shell.run("%reload_ext knotwork").error is None
    assert "no values yet" in shell.run("%kw vars").text
    shell.run("%unload_ext knotwork")
    assert "not found" in shell.run("%kw vars").printed
    shell.run("%load_ext knotwork")
