"""Which graph a state's findings are of: the one on which they were changed last, whatever was opened, read or taken back since."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import networkx
import pytest
from knotwork import gasl
from knotwork.adapters.state import StateStore, StoreError
from knotwork.runtime.api.workspace import (
    Models,
    OpeningCallbacks,
    OtherGraph,
    WorkspaceOptions,
    chunks_of,
    graph_of,
    open_workspace,
)
from knotwork.runtime.gasl.surroundings import Origin, origins, roll_back, told_of_findings
from knotwork.runtime.loops.search.nodes import Node
from knotwork.runtime.loops.search.search_run import adopt
from knotwork.runtime.models.factory import fork_state, open_state
from support.states import FOUND_IN, OTHER, found

LOOK = "FIND nodes LIMIT 1 AS one"
CHANGE = (LOOK, "UPDATE centre WITH one")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return found(tmp_path_factory.mktemp("made") / "state")


@pytest.fixture
def state(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "state"))


def run(state: Path, graph: Any, *commands: str, **options: Any) -> None:
    with gasl.open(graph, state, force=True, **options) as executor:
        for command in commands:
            assert executor.execute_one(command).status == "success"


def named(state: Path | StateStore) -> tuple[list[str | None], str | None]:
    """Return the names of the graphs that the findings are of, and of the one that the configuration names."""
    store = open_state(state, read_only=True) if isinstance(state, Path) else state
    return [each.name for each in origins(store)], graph_of(store.replay_info())


def told(state: Path, graph: Any, **options: Any) -> list[str]:
    """Open without force, and return what is told."""
    heard: list[str] = []
    open_workspace(WorkspaceOptions(graph, state, **options), Models, OpeningCallbacks(heard.append)).close()
    return heard


def test_forced_opening_and_looking_label_nothing(state: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.json"
    texts.write_text("{}")
    run(state, OTHER, chunks=texts)
    run(state, OTHER, LOOK)
    assert named(state) == ([FOUND_IN], FOUND_IN)
    assert told(state, None) == told(state, FOUND_IN) == []
    store = open_state(state, read_only=True)
    assert chunks_of(store.replay_info()) is None  # the texts are the other graph's
    with pytest.raises(OtherGraph, match=f"come from {FOUND_IN}, not from {OTHER}"):
        told(state, OTHER)
    run(state, FOUND_IN, "RESET centre")
    assert named(state) == ([FOUND_IN], FOUND_IN)  # who only looked is none of them


def test_the_one_who_changes_the_findings_last_counts(state: Path) -> None:
    run(state, OTHER, *CHANGE)
    assert named(state) == ([FOUND_IN, OTHER], OTHER)
    run(state, FOUND_IN, LOOK)
    assert named(state) == ([FOUND_IN, OTHER], OTHER)
    run(state, FOUND_IN, "RESET centre")
    assert named(state) == ([OTHER, FOUND_IN], FOUND_IN)
    assert told(state, None) == [f"the findings in {state} were last changed on {FOUND_IN}, and before that on {OTHER}"]


def test_what_is_taken_back_is_the_first_graph_s_again(state: Path) -> None:
    with gasl.open(OTHER, state, force=True) as executor:
        before = executor.state.hash
        for command in CHANGE:
            executor.execute_one(command)
        assert roll_back(executor.state, before, ".undo") > 0
        assert named(executor.state) == ([FOUND_IN], FOUND_IN)
        executor.execute_one(CHANGE[1])
        assert named(executor.state) == ([FOUND_IN, OTHER], OTHER)
        executor.state.rollback(before)  # past the commands, in Python
        assert [each.name for each in origins(executor.state)] == [FOUND_IN]


def test_a_rollback_that_a_full_disk_refused_leaves_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_state(state, read_only=True).hash
    run(state, OTHER, *CHANGE)
    store = open_state(state)
    kept = store.as_json()
    for written in range(2):  # every write fails, from the first or from the second on
        real, writes = os.pwrite, iter(range(100))
        with monkeypatch.context() as patch:
            patch.setattr("os.pwrite", lambda *given, w=written, n=writes, r=real: r(*given) if next(n) < w else 0)
            try:
                roll_back(store, before, ".undo")
            except StoreError:
                assert store.as_json() == kept
    assert store.hash == before
    assert store.history[-1]["command"] == f".undo {before[:12]}"
    assert named(store) == ([FOUND_IN], FOUND_IN)
    store.close()


def test_taken_back_by_another_process_and_forked_it_is_known(state: Path, tmp_path: Path) -> None:
    before = open_state(state, read_only=True).hash
    run(state, OTHER, *CHANGE)
    store = open_state(state)
    after = store.hash
    roll_back(store, before, "knotwork state rollback")
    store.close()
    assert named(state) == ([FOUND_IN], FOUND_IN)
    store = open_state(state)
    roll_back(store, after, "knotwork state rollback")
    store.close()
    fork_state(state, tmp_path / "fork")
    assert named(tmp_path / "fork") == named(state) == ([FOUND_IN, OTHER], OTHER)


def test_what_a_search_adopts_is_the_graph_s_that_was_searched(state: Path) -> None:
    with gasl.open(OTHER, state, force=True) as executor:
        root = Node(0, 0, executor.state.hash, executor.state.fork())
        branch = root.fork()
        with gasl.open(OTHER, branch) as beside:
            for command in CHANGE:
                beside.execute_one(command)
            found = Node(1, 1, branch.hash, branch.fork(), root)
        adopt(executor.state, found)
        assert named(executor.state) == ([FOUND_IN, OTHER], OTHER)


def test_a_graph_that_changed_between_two_writers_is_told_so(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "g.gml"
    for nodes in (2, 3):
        networkx.write_gml(networkx.path_graph(nodes), file)
        run(tmp_path / "own", file, "DECLARE centre AS LIST", f"FIND nodes LIMIT {nodes} AS one", CHANGE[1])
    mixed = (
        f"the findings in {tmp_path / 'own'} were last changed on {file}, and before that on {file} as it was before"
    )
    assert told(tmp_path / "own", file) == [mixed]
    networkx.write_gml(networkx.path_graph(4), file)
    with pytest.raises(OtherGraph, match=r"g.gml has changed since the findings in .* were made"):
        told(tmp_path / "own", file)


def test_a_state_of_before_plans_named_their_graph_opens_and_is_judged(state: Path, tmp_path: Path) -> None:
    run(state, OTHER, LOOK)
    whole = open_state(state, read_only=True).as_json()
    for entry in whole["history"]:
        entry.get("plan", {}).pop("source", None)
    for path, names in ((FOUND_IN, [None]), (OTHER, [None])):  # older programs let whoever looked last name it
        whole["config"]["adapter"]["path"] = path
        (tmp_path / "old.json").write_text(json.dumps(whole))
        shutil.rmtree(tmp_path / "old", ignore_errors=True)
        fork_state(tmp_path / "old.json", tmp_path / "old")
        assert named(tmp_path / "old")[0] == names
        with pytest.raises(OtherGraph, match=f"come from another graph, not from {OTHER}"):
            told(tmp_path / "old", OTHER)
        assert told(tmp_path / "old", FOUND_IN) == []
        assert named(tmp_path / "old")[1] == FOUND_IN


def test_a_state_of_one_graph_without_its_name_in_the_plans_has_it_from_the_configuration(
    state: Path, tmp_path: Path
) -> None:
    whole = open_state(state, read_only=True).as_json()
    for entry in whole["history"]:
        entry.get("plan", {}).pop("source", None)
    (tmp_path / "old.json").write_text(json.dumps(whole))
    fork_state(tmp_path / "old.json", tmp_path / "old")
    with pytest.raises(OtherGraph, match=f"come from {FOUND_IN}, not from {OTHER}"):
        told(tmp_path / "old", OTHER)


def test_of_several_graphs_each_is_named_once_and_the_stranger_last() -> None:
    made = [Origin("1", {"path": "a"}), Origin("2"), Origin("3", {"name": "mine"})]
    several = "the findings in s were last changed on mine, and before that on another graph, a"
    assert told_of_findings("s", made, "a", "1") == told_of_findings("s", made, "mine") == several
    assert told_of_findings("s", made, None, "4") == f"{several}, not on this graph"
