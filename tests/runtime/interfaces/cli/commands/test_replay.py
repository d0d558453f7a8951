"""`knotwork replay` and `knotwork report`."""

import json
from pathlib import Path

import pytest
from support.command import call

GRAPH = ("--graph", "nx:karate_club")


@pytest.fixture
def kept(folder: Path) -> str:
    (folder / "a.gasl").write_text(
        "DECLARE hubs AS LIST\n#: the busy ones\nFIND nodes WHERE degree > 15 AS h\nUPDATE hubs WITH h\n"
    )
    assert call("run", "a.gasl", *GRAPH, "--state", "kept", "--query", "Who is busy?").code == 0
    return "kept"


def test_a_session_comes_out_the_same(kept: str) -> None:
    assert call("replay", kept).out == "identical: 3 commands\n"
    told = call("replay", kept, "--format", "json")
    assert (told.code, told.json["identical"], told.json["commands"]) == (0, True, 3)
    assert call("state", "log", kept, "--format", "json").json[-1]["step"] == 3, "the state itself is not touched"


def test_on_another_graph_it_does_not(kept: str) -> None:
    result = call("replay", kept, "--graph", "nx:les_miserables")
    assert result.code == 1
    assert result.out.startswith("different: 3 commands")
    assert "variables.hubs.items" in result.out
    assert "the graph differs from the recorded graph" in result.err
    assert call("replay", kept, "--graph", "nx:les_miserables", "--format", "json").json["identical"] is False


def test_after_a_rollback_it_does_not_and_says_why(kept: str) -> None:
    first = call("state", "log", kept, "--format", "json").json[0]["state"]
    assert call("state", "rollback", kept, first[:8]).code == 0
    result = call("replay", kept)
    assert (result.code, "rolled back" in result.err) == (1, True)


def test_an_exported_state_is_replayed_and_told_like_a_folder(folder: Path, kept: str) -> None:
    assert call("state", "export", kept, "-o", "all.json").code == 0
    assert call("replay", "all.json").code == 0
    assert call("report", "all.json").code == 0
    assert call("report", kept, "-o", "-").out.rstrip("\n") == (folder / "all.html").read_text().rstrip("\n")


@pytest.mark.parametrize("command", ["replay", "report"])
def test_a_state_that_is_not_there(folder: Path, kept: str, command: str) -> None:
    result = call(command, "kpet")
    assert (result.code, result.out) == (2, "")
    assert "did you mean kept?" in result.err
    assert {path.name for path in folder.iterdir()} - {"knotwork"} == {
        "a.gasl",
        "kept",
    }  # the home may hold built grammars


def test_a_state_that_names_no_graph(folder: Path, kept: str) -> None:
    made = call("state", "export", kept).json
    made["config"] = {}
    del made["check"]  # or it would be refused as damaged
    (folder / "x.json").write_text(json.dumps(made))
    result = call("replay", "x.json")
    assert (result.code, "--graph FILE" in result.err) == (2, True)
    assert call("report", "x.json").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("config", [{"adapter": "x"}, {"adapter": {"path": 1, "params": [1]}}, {"llm": 3}])
def test_a_configuration_that_was_changed_by_hand(folder: Path, kept: str, config: object) -> None:
    made = call("state", "export", kept).json
    made["config"] = config
    del made["check"]  # or it would be refused as damaged
    (folder / "x.json").write_text(json.dumps(made))
    assert call("report", "x.json").code == 0
    assert call("replay", "x.json").code == 2
    assert call("replay", "x.json", *GRAPH).code == 0


def test_a_report_lies_beside_the_state_or_where_it_is_asked_for(folder: Path, kept: str) -> None:
    assert "written to kept/report.html" in call("report", kept).err
    page = (folder / kept / "report.html").read_text()
    assert "<h1>Who is busy?</h1>" in page
    assert "Why: the busy ones" in page
    assert "<svg" in page
    assert call("report", kept, "--output", "x.html").code == 0
    assert (folder / "x.html").read_text() == page
    assert call("state", "verify", kept).code == 0, "the page in the folder is not part of the state"
    assert call("report", kept, "-o", "no/where.html").code == 1


def test_a_graph_that_has_gone_is_told_and_the_page_is_made(folder: Path, kept: str) -> None:
    made = call("state", "export", kept).json
    made["config"]["adapter"]["path"] = "gone.graphml"
    del made["check"]  # or it would be refused as damaged
    (folder / "x.json").write_text(json.dumps(made))
    result = call("report", "x.json")
    assert result.code == 0
    assert "gone.graphml" in result.err
    assert call("report", "x.json", "--graph", "nowhere.graphml").code == 1, "one that was named must be there"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"variables": 1}', '{"variables": {"a": 1}}', "[" * 20_000, "\x00", '{"history": [1]}']
)
@pytest.mark.parametrize("command", ["replay", "report", "state show", "state log", "state verify", "state export"])
def test_a_file_that_is_no_state_is_refused_in_words(folder: Path, text: str, command: str) -> None:
    (folder / "x.json").write_text(text)
    result = call(*command.split(), "x.json")
    assert result.code in (0, 1, 2)
    assert "internal error" not in result.err
    assert "Traceback" not in result.err
