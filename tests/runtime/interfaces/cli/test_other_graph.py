"""A state with findings of another graph: every command that would go on in it refuses, in the same words, until it is forced."""

import shutil
from pathlib import Path

import pytest
from support.command import call, process
from support.states import FOUND_IN, OTHER, files_of, found

HINT = "= help: choose another --state for another graph, or use this state with --force"
LOOK = "FIND nodes LIMIT 1 AS one"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return found(tmp_path_factory.mktemp("made") / "state")


@pytest.fixture
def state(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.lwt").write_text(f'(a)=GASL("{LOOK}")\n')
    return Path(shutil.copytree(made, "state"))


COMMANDS = {
    "gasl": ["gasl", "-c", LOOK, "--graph", OTHER],
    "run": ["run", "x.lwt", "--graph", OTHER],
    "repl": ["repl", OTHER, "-c", LOOK],
    "mcp": ["mcp", "--graph", OTHER, "--no-model"],
    "mcp, only reading": ["mcp", "--graph", OTHER, "--no-model", "--read-only"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_refused_and_nothing_of_it_is_written(name: str, state: Path) -> None:
    before = files_of(state)
    done = call(*COMMANDS[name], "--state", state)
    assert done.code == 2 and done.out == ""
    assert f"error: the findings in state come from {FOUND_IN}, not from {OTHER}\n" in done.err and HINT in done.err
    assert files_of(state) == before
    assert not (Path("knotwork") / "runs").exists()  # no run has begun
    again = call("gasl", "-c", LOOK, "--state", state)  # the graph is still the one that it was made with
    assert again.code == 0 and "Napoleon" in again.out


@pytest.mark.parametrize("name", ["gasl", "run", "repl"])
def test_forced_it_goes_on_and_says_so(name: str, state: Path) -> None:
    done = call(*COMMANDS[name], "--state", state, "--force")
    assert done.code == 0
    assert f"warning: the findings in state come from {FOUND_IN}, not from {OTHER}" in done.err


@pytest.mark.slow
def test_a_forced_server_serves(state: Path) -> None:
    done = process(
        *COMMANDS["mcp"], "--state", "state", "--force", home=state.absolute().parent
    )  # the client has gone already
    assert done.code == 0
    assert f"warning: the findings in state come from {FOUND_IN}, not from {OTHER}" in done.err
    assert f"knotwork mcp: graph {OTHER} · state state · model none" in done.err


@pytest.mark.slow
def test_a_server_takes_the_graph_of_its_state(state: Path) -> None:
    done = process("mcp", "--state", "state", "--no-model", home=state.absolute().parent)
    assert f"knotwork mcp: graph {FOUND_IN} · state state · model none" in done.err


@pytest.mark.parametrize("command", [["gasl", "-c", LOOK], ["repl", "-c", LOOK], ["mcp"]])
def test_a_file_in_the_place_of_a_folder_is_refused(command: list[str], state: Path) -> None:
    graph = [OTHER] if command[0] == "repl" else ["--graph", OTHER]
    done = call(*command, *graph, "--state", state / "state.json")
    assert done.code == 2 and "is a file; --state needs a directory" in done.err
    assert "knotwork state fork" in done.err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_without_a_name_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))  # not below: what is cached there is no state
    (here / "x.lwt").write_text(f'(a)=GASL("{LOOK}")\n')
    monkeypatch.chdir(here)
    done = call(*COMMANDS[name], "--state", "")
    assert done.code == 2 and done.out == ""
    assert "error: --state: the name is empty\n  = help: give a directory; . is the current directory" in done.err
    assert [each.name for each in here.iterdir()] == ["x.lwt"]


def test_forced_looking_leaves_the_findings_their_graph(state: Path) -> None:
    assert call("gasl", "-c", LOOK, "--graph", OTHER, "--state", state, "--force").code == 0
    for graph in ([], ["--graph", FOUND_IN]):
        again = call("gasl", "-c", LOOK, *graph, "--state", state)
        assert again.code == 0 and "Napoleon" in again.out and again.err == ""


def test_a_forced_change_makes_the_graph_the_last_one_and_the_mixture_is_told(state: Path) -> None:
    change = ["-c", LOOK, "-c", "UPDATE centre WITH one"]
    assert call("gasl", *change, "--graph", OTHER, "--state", state, "--force").code == 0
    mixed = f"the findings in state were last changed on {OTHER}, and before that on {FOUND_IN}"
    bare = call("gasl", "-c", LOOK, "--state", state)
    assert bare.code == 0 and "Mr. Hi" in bare.out and f"warning: {mixed}\n" in bare.err
    for graph, rest in ((FOUND_IN, ""), ("nx:florentine_families", ", not on nx:florentine_families")):
        refused = call("gasl", "-c", LOOK, "--graph", graph, "--state", state)
        assert refused.code == 2 and f"error: {mixed}{rest}\n" in refused.err and HINT in refused.err
