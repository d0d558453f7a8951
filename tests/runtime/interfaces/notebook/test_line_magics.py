"""What stands behind ``%kw``: its own words, names that are the same, flags; and what messages tell to type."""

from pathlib import Path

import networkx
from knotwork.runtime.models.factory import open_state
from support.command import cassette
from support.shells import Shell

MISERABLES = "%kw open nx:les_miserables"


REFUSED = {
    "report --froce r.html": "%kw report: unknown option --froce; %kw report [FILE] [--force]",
    "report a b": "%kw report takes one file",
    "report ''": "%kw report takes one file",
    "evidence foo": "%kw evidence takes no argument: foo",
    "close now please": "%kw close takes no argument: now please",
    "input": "%kw input takes one name; %kw input VARIABLE",
    "value a b": "%kw value takes one name; %kw value NAME",
    "check": "the text to check is empty; %kw check TEXT",
    "plan .schema": "there is nothing to draw",
    "open --stat x": "%kw open: unknown option --stat; did you mean --state?",
    "open a b": "%kw open: unknown option b; %kw open [GRAPH] [--state DIR]",
    "open --max-calls": "--price IN/OUT] [--no-cache]",
}


def test_what_is_not_understood_is_refused(shell: Shell, tmp_path: Path) -> None:
    shell.run("%kw n = 1")
    for line, said in REFUSED.items():
        assert said in str(shell.run(f"%kw {line}").error), line
    assert shell.run("%kw n").text == "1" and not list(tmp_path.glob("*.html")) and not (tmp_path / "--froce").exists()


def test_cells_refuse_flags_with_what_was_meant(shell: Shell) -> None:
    assert "did you mean --check?" in str(shell.run("%%lwt --chekc\n(a)=LLM('x')").error)
    assert "--input takes a variable; %%lwt --input VARIABLE" in str(shell.run("%%lwt --input\n(a)=LLM('x')").error)
    assert "there is nothing to draw" in str(shell.run("%%gasl --plan\n# nothing").error)
    assert "the text to check is empty" in str(shell.run("%%gasl --check\n# nothing").error)


def test_a_word_of_ours_may_be_a_name(shell: Shell) -> None:
    shell.names["value"] = [1]
    assert "2 items" in shell.run("%kw value + [1]").text
    for word in ("state", "plan", "report"):
        assert "a number in" in shell.run(f"%kw {word} = 3").text
    assert shell.run("%kw state - 1").text == "2" and shell.run("%kw (state)").text == "3"
    assert "no keys declared yet" in shell.run("%kw state").text  # alone it is the word


def test_help_is_there_wherever_it_is_asked_for(shell: Shell) -> None:
    for line in ("%kw open --help", "%kw --help", "%kw", "%%gasl --help\nx", "%kw report -h"):
        told = shell.run(line)
        assert told.error is None and "%kw report [FILE]" in told.text, line


def test_help_on_one_thing_is_one_output(shell: Shell) -> None:
    told = shell.run("%kw help FIND")
    assert len(told.shown) == 1 and "FIND nodes|edges" in told.text
    assert ".vars [NAME]" in shell.run("%kw vars --help").text


def test_messages_name_what_is_typed_here(shell: Shell) -> None:
    said = {
        "%%gasl\nFIND nodes AS a": "%kw open GRAPH opens one",
        "%kw schema": "%kw open GRAPH opens one",
        "%kw log a": "%kw log takes a number of steps, not a; %kw log 50",
        "%kw help nosuchthing": "%kw help lists all",
        "%kw explain": "%kw explain takes a command",
    }
    for cell, part in said.items():
        told = shell.run(cell)
        assert part in str(told.error) and "knotwork repl" not in str(told.error), cell


def test_a_state_that_is_open_elsewhere_says_how_a_notebook_lets_go(shell: Shell, tmp_path: Path) -> None:
    held = open_state(str(tmp_path / "state"))
    try:
        told = shell.run(f"%kw open --state {tmp_path / 'state'}")
    finally:
        held.close()
    assert "close that prompt or notebook (%kw close there), or wait" in str(told.error)


def test_a_state_of_a_variables_graph_says_so(shell: Shell, tmp_path: Path) -> None:
    shell.names["mine"] = networkx.path_graph(4)
    shell.run(f"%kw open mine --state {tmp_path / 'state'}")
    shell.run("%%gasl\nDECLARE ends AS LIST")
    shell.run("%kw close")
    told = shell.run(f"%kw open --state {tmp_path / 'state'}")
    assert (
        "the state was made with a graph that was a variable or is unknown; open it with %kw open VARIABLE --state DIR"
        in told.text
    )


def test_a_cell_does_not_quit_its_own_session(shell: Shell, tmp_path: Path) -> None:
    shell.run("%kw open nx:karate_club")
    for cell in ("%%kw\nz = 1\n.quit\nz = 2", "%kw quit", "%kw .quit", "%%kw\n.QUIT ;"):
        told = shell.run(cell)
        assert "can't end its own session; use %kw close on a separate line" in str(told.error)
    assert "z" not in shell.names, "nothing was run"
    assert "%kw close" in str(shell.run("%%kw\n.exit").error)
    (tmp_path / "q.txt").write_text("n = 1\n.exit\n")
    assert "a cell can't end" in str(shell.run(f"%kw read {tmp_path / 'q.txt'}").error)
    assert "karate_club" in shell.run("%kw schema").text


def test_what_fails_as_it_runs_has_its_place(shell: Shell) -> None:
    shell.run("%kw open nx:karate_club")
    told = shell.run("%%gasl\nFIND nodes AS ok1\n#: why\nASSERT LEN ${ok1} > 500")
    assert str(told.error).startswith("error: the assertion does not hold: LEN ${ok1} > 500")
    number = shell.shell.execution_count
    assert str(told.error).endswith(f" is 34 at In[{number}]:4")
    assert "asserted no" not in told.text
    told = shell.run("%%kw\n\nn = 1\nm = n / 0")
    assert f" at In[{number}]:4" in str(told.error)


def test_what_is_used_up_names_what_raises_it_here(shell: Shell, tmp_path: Path) -> None:
    spec = cassette(tmp_path / "answers.jsonl", {"": "yes"})
    shell.run(f"%kw open --llm {spec} --max-calls 1 --no-cache")
    told = shell.run('%%lwt\n(a)=LLM("x")\n(b)=LLM("y {(a)}")')
    number = shell.shell.execution_count
    assert f"the budget of 1 call is used up at In[{number}]:3; " in str(told.error)
    assert "%kw budget calls=N changes the limit" in str(told.error) and "raise the limit" not in str(told.error)


def test_what_was_spent_on_a_model_without_a_price_is_not_known(shell: Shell) -> None:
    def cost() -> list[str]:
        return next(line.split() for line in shell.run("%kw budget").text.splitlines() if line.startswith("cost"))

    assert cost()[:2] == ["cost", "0.0"], "nobody was asked"
    shell.run("%kw llm http://127.0.0.1:1#model")
    assert "0.0" not in cost()
