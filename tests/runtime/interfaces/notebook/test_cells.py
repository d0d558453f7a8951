"""A cell is right as a whole, or nothing of it runs; one that ends early leaves no old values; errors have their places."""

from pathlib import Path

import pytest
from IPython.utils.capture import capture_output
from support.command import cassette
from support.notebooks import answering
from support.shells import Shell

MISERABLES = "%kw open nx:les_miserables"
HUBS = "FIND nodes WHERE degree > 20 AS hubs"


FAULTS = {
    f'%%gasl\n{HUBS}\nPROCESS hubs USING "Who?" AS who\nRNAK hubs BY id AS ranked': "unknown command RNAK (GASL001) at In[1]:4:1",
    f'%%gasl\n{HUBS}\n(who)=LLM("Who are {{(hbus)}}?")': "unknown step (hbus) (LWT012) at In[1]:3:22; did you mean `{(hubs)}`?",
    f"%%kw\n{HUBS}\nn = len(hubs)\nlenn(hubs)": "unknown function `lenn` (EXPR051) at In[1]:4:1; did you mean `len`?",
    f"%%kw\n{HUBS}\n.vras": "unknown command .vras; did you mean %kw vars?",
    f"%%kw\n{HUBS}\n.Output x.csv": "is not available in a notebook: cells show the results",
    '%%lwt\n(a)=LLM("x")\n(b)=LLM("{(c)}")': "unknown step (c) (LWT012) at In[1]:3:12",
    f"%%kw\nn = len(hubs)\n{HUBS}": "unknown value `hubs`",
    "%%gasl\nUPDATE hubs WITH hubs\nDECLARE hubs AS LIST": "the key hubs is not declared",
}


@pytest.mark.slow
def test_a_cell_with_a_fault_anywhere_runs_not_at_all(shell: Shell, tmp_path: Path) -> None:
    shell.run(f"{MISERABLES} --llm {cassette(tmp_path / 'answers', {})}")
    for cell, said in FAULTS.items():
        told = shell.run(cell)
        assert said in str(told.error), (cell, told.error)
        assert "the history is empty" in shell.run("%kw log").text
        assert "no values yet" in shell.run("%kw vars").text


def test_faults_of_all_languages_are_shown_together_with_one_fix(shell: Shell) -> None:
    shell.run(MISERABLES)
    told = shell.run(f"%%kw\n{HUBS}\nn = lenn(hubs)\nRANK hbus BY id AS ranked")
    assert "(and 1 more)" in str(told.error)
    assert told.text.split("with the fix:\n")[1] == f"{HUBS}\nn = len(hubs)\nRANK hubs BY id AS ranked"


def test_pieces_see_what_those_before_them_bind_and_declare(shell: Shell, tmp_path: Path) -> None:
    shell.run(f"{MISERABLES} --llm {cassette(tmp_path / 'answers', {'Who': 'Valjean'})}")
    told = shell.run(
        f"%%kw\nDECLARE centre AS LIST\n{HUBS}\nn = len(hubs)\n_ + 1\n(who)=LLM('Who')\nwho + str(n)\n"
        "UPDATE centre WITH hubs\nFIND nodes WHERE degree > ${n} AS more\nhelp"
    )
    assert told.error is None and "Valjean2" in told.text and "added 2" in told.text


def test_what_a_file_binds_is_known_when_it_has_run(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "more.gasl").write_text(f"{HUBS}\n", encoding="utf-8")
    shell.run(MISERABLES)
    told = shell.run("%%kw\n.read more.gasl\nn = len(hubs)")
    assert told.error is None and shell.names["n"] == 2


def test_check_and_plan_take_what_the_magic_runs(shell: Shell) -> None:
    shell.run(MISERABLES)
    cell = f'{HUBS}\n(a)=LLM("x {{(hubs)}}")\n.schema'
    for magic in ("%%gasl", "%%kw"):
        assert shell.run(f"{magic} --check\n{cell}").text == "no errors"
        assert shell.run(f"{magic} --plan\n{cell}").text.splitlines()[1:] == ["hubs · FIND", "a · LLM ← hubs"]
    assert "no values yet" in shell.run("%kw vars").text


def test_a_text_under_another_magic_is_no_remark(shell: Shell) -> None:
    shell.run(MISERABLES)
    said = {
        "%%lwt\nFIND nodes AS x": "use %%gasl for commands",
        "%%lwt\n1 + 1": "use %%kw for expressions",
        "%%gasl\nn = 1": "use %%kw for expressions",
        "%%gasl\nlook at the nodes": "a command begins with its keyword",
    }
    for cell, part in said.items():
        told = shell.run(cell)
        assert part in str(told.error) and "with the fix" not in told.text, cell


def test_a_partial_result_ends_the_cell_and_old_values_are_gone(shell: Shell, tmp_path: Path) -> None:
    spec = cassette(tmp_path / "answers", {"p1": "one", "p2": "two", "one two": "three"})
    shell.run(f"%kw open --llm {spec} --no-cache --max-calls 4")
    cell = '%%lwt\n(x1)=LLM("p1")\n(x2)=LLM("p2")\n(final)=LLM("{(x1)} {(x2)}")'
    assert "3 calls" in shell.run(cell).text
    assert [shell.names[name] for name in ("x1", "x2", "final")] == ["one", "two", "three"]
    told = shell.run(cell)
    assert "the budget of 4 calls is used up" in str(told.error) and str(told.error).startswith("partial: (x")
    done = [name for name in ("x1", "x2") if name in shell.names]
    assert len(done) == 1 and "final" not in shell.names
    assert f"a text of 3 characters in ({done[0]}) · 1 call · " in told.text
    assert "the value from an earlier run was removed" in told.text
    assert "final" not in shell.run("%kw vars").text
    shell.run("%kw undo")
    assert [shell.names[name] for name in ("x1", "x2", "final")] == ["one", "two", "three"]


@pytest.mark.slow
def test_what_a_cell_takes_from_outside_stays_when_it_fails(shell: Shell, tmp_path: Path) -> None:
    spec = cassette(tmp_path / "answers", {})
    shell.run(f"{MISERABLES} --llm {spec}")
    shell.run("%%kw\nn = 1\nm = 2")
    told = shell.run("%%kw\nk = n\nn = n / (k - 1)\nm = 3")
    assert told.error is not None and shell.names["n"] == 1 and "m" not in shell.names
    assert "m: the value from an earlier run was removed" in told.text
    assert shell.run("%kw n = n / 0").error is not None and shell.names["n"] == 1


def test_calls_that_the_cache_answered_are_told_apart(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_API_KEY", "x")
    with answering() as spec:
        shell.run(f"%kw open --llm {spec}")
        cell = '%%lwt\n(a)=LLM("p1")\n(b)=LLM("p2")'
        assert " · 2 calls · " in shell.run(cell).text
        assert " · 2 steps done · 0 calls (2 cached)" in shell.run(cell).text


def test_the_place_of_an_error_is_that_of_the_cell(shell: Shell) -> None:
    shell.shell.run_cell("1", store_history=True)
    shell.shell.run_cell("2", store_history=True)
    with capture_output():
        result = shell.shell.run_cell("a = 1\n\n%kw lenn(a)", store_history=True)
    assert result.execution_count == 3
    assert " at In[3]:3:1; " in str(result.error_in_exec)
    with capture_output():
        result = shell.shell.run_cell("%%kw\na\nlenn(a)", store_history=True)
    assert result.execution_count == 4 and " at In[4]:3:1; " in str(result.error_in_exec)


def test_a_step_is_not_what_was_meant_in_itself(shell: Shell) -> None:
    told = shell.run('%%lwt\n(o)=LLM("{(p)}")')
    assert "unknown step (p)" in str(told.error) and "(o)" not in str(told.error) and "with the fix" not in told.text
