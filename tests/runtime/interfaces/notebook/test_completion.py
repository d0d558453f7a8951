"""Tab in a magic's cell: the languages' own completions, over what there is here."""

from pathlib import Path

import networkx
import pytest
from support.shells import Shell


def offered(shell: Shell, text: str) -> dict[str, str]:
    """Return what Tab offers at the mark: the text that each makes of the cell, by what is put in."""
    at = text.index("|")
    text = text.replace("|", "")
    with shell.provisional():
        found = list(shell.shell.Completer.completions(text, at))
    return {each.text: text[: each.start] + each.text + text[each.end :] for each in found}


def test_cells_offer_commands_fields_and_names(shell: Shell) -> None:
    shell.run("%kw open nx:les_miserables")
    shell.names["least"] = 3
    shell.run("%%gasl\nFIND nodes WHERE degree > 20 AS hubs")
    assert offered(shell, "%%gasl\nFI|")["FIND"].endswith("\nFIND")
    assert offered(shell, "%%gasl\nFIND nodes AS a\nRANK hu|")["hubs"].endswith("RANK hubs")
    assert any("degree" in each for each in offered(shell, "%%gasl\nFIND nodes WHERE deg|"))
    made = offered(shell, '%%lwt\n(a)=LLM("{(hu|')
    assert any(text.startswith('%%lwt\n(a)=LLM("{(hubs)}') for text in made.values()), made
    assert offered(shell, "%%kw\nn = 1\nm = lea|")["least"].endswith("m = least")
    assert not any(each.startswith("%") for each in offered(shell, "%%gasl\nFIND nodes |"))


def test_tab_opens_no_session(shell: Shell) -> None:
    shell.names["least"] = 3
    assert "least" in offered(shell, "%%kw\nn = lea|") and "FIND" in offered(shell, "%%gasl\n|")
    assert shell.shell.magics_manager.magics["line"]["kw"].__self__.notebook.current is None


@pytest.mark.slow
def test_lines_offer_the_words_and_expressions(shell: Shell) -> None:
    shell.run("%kw hubs = [1]")
    assert offered(shell, "x = 1\n%kw evi|")["evidence"] == "x = 1\n%kw evidence"
    assert {"schema", "state", "save"} <= set(offered(shell, "%kw s|"))
    assert offered(shell, "%kw len(hu|")["hubs"] == "%kw len(hubs"
    assert "hubs" in offered(shell, "hu|")  # Python's own, as ever


def test_options_are_offered_and_nothing_of_pythons(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "papers.graphml").write_text("x")
    (tmp_path / "run").mkdir()
    shell.names["mine"] = networkx.path_graph(3)
    assert offered(shell, "%kw open --st|") == {"--state": "%kw open --state"}
    assert set(offered(shell, "%kw open --max|")) == {"--max-calls", "--max-tokens", "--max-cost"}
    assert offered(shell, "%kw open nx:les|") == {"nx:les_miserables": "%kw open nx:les_miserables"}
    assert offered(shell, "%kw open pap|") == {"papers.graphml": "%kw open papers.graphml"}
    assert "mine" in offered(shell, "%kw open mi|")
    assert set(offered(shell, "%kw open mine --state r|")) == {"run/"}
    assert set(offered(shell, "%kw open mine --llm lo|")) == {"local", "local:PATH"}
    for magic in ("gasl", "lwt", "kw"):
        assert offered(shell, f"%%{magic} --in|\n") == {"--input": f"%%{magic} --input\n"}
        assert set(offered(shell, f"%%{magic} --ch|\nx")) == {"--check"}
    assert set(offered(shell, "%%lwt --input mi|\n")) == {"mine"}
    assert offered(shell, "%kw report --f|") == {"--force": "%kw report --force"}
    assert offered(shell, "%kw value mi|") == {"mine": "%kw value mine"}


@pytest.mark.slow
def test_dot_commands_are_offered_with_what_they_take(shell: Shell) -> None:
    shell.run("%kw open nx:karate_club")
    shell.run("%%gasl\nDECLARE qq AS LIST\nFIND nodes AS people")
    assert offered(shell, "%%kw\n.sc|") == {".schema": "%%kw\n.schema"}
    assert offered(shell, "%%kw\nn = 1\n.state q|") == {"qq": "%%kw\nn = 1\n.state qq"}
    assert offered(shell, "%kw state q|") == {"qq": "%kw state qq"}
    assert offered(shell, "%kw .state q|") == {"qq": "%kw .state qq"}
    assert set(offered(shell, "%kw schema cl|")) == {"club"}
    assert "FIND" in offered(shell, "%kw help FI|")
    assert offered(shell, "%kw explain COUNT peo|")["people"] == "%kw explain COUNT people"
    assert offered(shell, "%kw check RANK peo|")["people"] == "%kw check RANK people"
    assert set(offered(shell, "%kw budget ca|")) == {"calls="}
    assert "quit" not in offered(shell, "%kw q|") and offered(shell, "%%kw\n.q|") == {}


@pytest.mark.slow
def test_unloading_takes_it_back(shell: Shell) -> None:
    shell.run("%unload_ext knotwork")
    assert not any("FIND" in each for each in offered(shell, "%%gasl\nFI|"))
    shell.run("%load_ext knotwork")
