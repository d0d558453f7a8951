"""What commands run on is opened in one way: together or not at all, and nothing is written of what is refused."""

from pathlib import Path

import networkx
import pytest
from knotwork import gasl, lwt
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.llm import NotConfigured
from knotwork.adapters.state import StoreError
from knotwork.runtime.api.ask import ask_sync
from knotwork.runtime.api.workspace import (
    EmptyFolderName,
    GraphMissing,
    Models,
    OpeningCallbacks,
    OpeningCancelled,
    OtherGraph,
    WorkspaceOptions,
    graph_in_folder,
    graph_of,
    knowledge_of_graph,
    open_workspace,
)
from knotwork.runtime.errors import RequestError
from knotwork.runtime.models.factory import open_state
from support.graph_databases import write_ladybug
from support.states import FOUND_IN, OTHER, files_of, found


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))
    return found(tmp_path / "state")


def test_the_findings_of_another_graph_are_refused_and_nothing_is_written(state: Path) -> None:
    before = files_of(state)
    with pytest.raises(OtherGraph, match=f"the findings in .* come from {FOUND_IN}, not from {OTHER}") as error:
        open_workspace(WorkspaceOptions(OTHER, state), Models)
    hint = "choose another state for another graph, or use this one with force=True"
    assert error.value.hint == hint and str(error.value) == f"{error.value.message}; {hint}"
    assert files_of(state) == before
    open_state(state).close()  # and nobody holds it


def test_forced_it_goes_on_and_says_so(state: Path) -> None:
    told: list[str] = []
    opened = open_workspace(
        WorkspaceOptions(OTHER, state, force=True), lambda: Models("local"), OpeningCallbacks(told.append)
    )
    opened.close()
    assert told == [f"the findings in {state} come from {FOUND_IN}, not from {OTHER}"]
    store = open_state(state)
    assert store.replay_info()["config"]["llm"] == {"provider": "local", "model": "local"}
    assert graph_of(store.replay_info()) == FOUND_IN  # nothing was found in the other one yet
    store.close()


def test_what_is_left_out_is_taken_from_the_state(state: Path) -> None:
    opened = open_workspace(WorkspaceOptions(state=state), Models, needs_graph=True)
    assert opened.graph == FOUND_IN and opened.adapter is not None
    assert opened.adapter.schema.nodes == 77
    opened.close()


def test_a_graph_that_has_changed_under_its_name_is_another(state: Path) -> None:
    with pytest.raises(OtherGraph, match=r"the findings in .* come from nx:les_miserables, not from mine"):
        open_workspace(WorkspaceOptions(networkx.path_graph(3), state, name="mine"), Models)


def test_only_read_it_is_refused_all_the_same_and_nothing_is_written(state: Path) -> None:
    before = files_of(state)
    with pytest.raises(OtherGraph):
        open_workspace(WorkspaceOptions(OTHER, state, read_only=True), Models)
    open_workspace(WorkspaceOptions(FOUND_IN, state, read_only=True), lambda: Models("local")).close()
    assert files_of(state) == before


def test_no_folder_is_made_where_anything_else_fails(tmp_path: Path) -> None:
    def none() -> Models:
        raise NotConfigured("no model")

    with pytest.raises(GraphMissing):
        open_workspace(WorkspaceOptions(state=tmp_path / "new"), Models, needs_graph=True)
    with pytest.raises(NotConfigured):
        open_workspace(WorkspaceOptions(FOUND_IN, tmp_path / "new"), none)
    with pytest.raises(OpeningCancelled):
        open_workspace(WorkspaceOptions(FOUND_IN, tmp_path / "new"), Models, OpeningCallbacks(cancelled=lambda: True))
    assert not (tmp_path / "new").exists()


def test_what_is_given_up_lets_go_of_the_folder(state: Path) -> None:
    with pytest.raises(OpeningCancelled):
        open_workspace(WorkspaceOptions(FOUND_IN, state), Models, OpeningCallbacks(cancelled=lambda: True))
    open_state(state).close()


def test_a_large_file_is_announced_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))  # the content's hash is kept there
    large, told = tmp_path / "large.graphml", list[str]()
    large.write_bytes(b"<" * (5 << 20))
    with pytest.raises(Exception, match="graphml"):
        open_workspace(WorkspaceOptions(large), Models, OpeningCallbacks(announce=told.append))
    assert told == [f"reading {large} (5 MB)"]


def test_a_store_of_the_caller_is_used_as_it_is(tmp_path: Path) -> None:
    store = open_state(None)
    opened = open_workspace(WorkspaceOptions(FOUND_IN, store), Models)
    opened.close()
    store.commit()  # it is the caller's to close
    assert opened.state is store and store.replay_info()["config"] == {}


def test_in_python_another_graph_needs_force(state: Path) -> None:
    before = files_of(state)
    for refused in (
        lambda: gasl.open(OTHER, state),
        lambda: lwt.run_sync('(a)=GASL("FIND nodes AS x")', graph=OTHER, state=state),
    ):
        with pytest.raises(StoreError, match="the findings in"):
            refused()
    assert files_of(state) == before
    with gasl.open(OTHER, state, force=True) as executor:
        assert executor.state.get("centre")
    assert lwt.run_sync('(a)=GASL("FIND nodes AS x")', graph=OTHER, state=state, force=True).status == "complete"


def test_a_folder_without_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for refused in (
        lambda: gasl.open(OTHER, ""),
        lambda: lwt.run_sync('(a)=GASL("FIND nodes AS x")', graph=OTHER, state=""),
        lambda: open_workspace(WorkspaceOptions(OTHER, "", read_only=True), Models),
    ):
        with pytest.raises(EmptyFolderName, match="the name of the state's folder is empty") as error:
            refused()
        assert error.value.hint == "give a folder (. is the current one), or None for a state in memory"
    with pytest.raises(RequestError, match="the path is empty"):
        ask_sync(OTHER, "Who?", state="")
    assert list(tmp_path.iterdir()) == []


def test_texts_may_be_a_mapping_a_function_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "texts.json").write_text('{"c1": "text"}')
    for texts in ({"c1": "text"}, {"c1": "text"}.get, tmp_path / "texts.json"):
        opened = open_workspace(WorkspaceOptions(FOUND_IN, chunks=texts), Models)
        assert opened.chunks is not None and opened.chunks("c1") == "text"


def test_a_graph_in_a_database(tmp_path: Path) -> None:
    path = write_ladybug(tmp_path / "g.lbug", {"P": {"id": "STRING"}}, [("P", {"id": "a"})])
    warned: list[str] = []
    options = WorkspaceOptions(graph=f"ladybug:{path}", state=tmp_path / "state", raw=True)
    opened = open_workspace(options, Models, OpeningCallbacks(warn=warned.append))
    assert opened.adapter is not None
    assert opened.adapter.find_nodes() == [{"id": "a", "label": "P"}]
    opened.close()
    assert warned == [f"graph ladybug:{path}: values of a database are never rewritten: raw has no effect"]
    with pytest.raises(AdapterError, match="closed"):
        opened.adapter.find_nodes()
    again = open_workspace(WorkspaceOptions(state=tmp_path / "state"), Models)
    assert (again.graph, again.state.replay_info()["config"]["adapter"]["type"]) == (f"ladybug:{path}", "ladybug")
    again.close()
    assert knowledge_of_graph(f"ladybug:{path}")["schema"].nodes == 1


def test_a_graph_is_relative_to_a_folder() -> None:
    folder = Path("/w")
    for source, absolute in (
        ("a.graphml", "/w/a.graphml"),
        ("/x/a.graphml", "/x/a.graphml"),
        ("nx:karate_club", "nx:karate_club"),
        ("ladybug:a.lbug?label=kind", "ladybug:/w/a.lbug?label=kind"),
        ("bolt://host/db", "bolt://host/db"),
    ):
        assert graph_in_folder(source, folder) == absolute
