"""``%kw open``: a state of another graph, an open that fails or is interrupted, and a session that is left behind."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api import workspace
from knotwork.runtime.models.factory import open_state
from support.shells import Shell, Told
from support.states import FOUND_IN, OTHER, files_of, found


@pytest.fixture
def state(shell: Shell, tmp_path: Path) -> Path:
    return found(tmp_path / "state")


class Gate:
    """A graph that is not read until it is let go; each interrupt is sent when it is known to be heard."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

    def interrupted(self, shell: Shell, cell: str, times: int) -> Told:
        """Run a cell that opens it, and interrupt it."""

        def interrupt() -> None:
            assert self.reached.wait(20)
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
                time.sleep(0.3)  # several ticks
            if times == 1:
                self.go.set()

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            return shell.run(cell)
        finally:
            thread.join()
            signal.signal(signal.SIGINT, before)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made, load = Gate(), workspace.open_graph

    def slow(source: Any, **options: bool) -> Any:
        made.reached.set()
        assert made.go.wait(20)
        return load(source, **options)

    monkeypatch.setattr(workspace, "open_graph", slow)
    yield made
    made.go.set()


def test_a_state_of_another_graph_is_refused_and_nothing_is_written(shell: Shell, state: Path) -> None:
    before = files_of(state)
    shell.run("%kw n = 41")
    told = shell.run(f"%kw open {OTHER} --state {state}")
    assert f"the findings in {state} come from {FOUND_IN}, not from {OTHER}" in str(told.error)
    assert "use this state with --force" in str(told.error)
    assert files_of(state) == before
    assert shell.run("%kw n + 1").text == "42"  # the session that there was goes on
    assert "77 nodes" in shell.run(f"%kw open --state {state}").text


def test_forced_it_goes_on_and_says_so(shell: Shell, state: Path) -> None:
    told = shell.run(f"%kw open {OTHER} --state {state} --force")
    assert told.error is None and "34 nodes" in told.text
    assert f"warning: the findings in {state} come from {FOUND_IN}, not from {OTHER}" in told.text


def test_a_folder_without_a_name_is_refused_and_the_session_goes_on(shell: Shell) -> None:
    shell.run("%kw n = 41")
    told = shell.run(f"%kw open {OTHER} --state ''")
    assert "--state: the name is empty" in str(told.error) and "a directory; . is the current directory" in str(
        told.error
    )
    assert shell.run("%kw n + 1").text == "42"


def test_a_graph_of_the_notebook_is_another_graph_too(shell: Shell, state: Path) -> None:
    import networkx

    shell.names["mine"] = networkx.path_graph(4)
    before = files_of(state)
    told = shell.run(f"%kw open mine --state {state}")
    assert f"come from {FOUND_IN}, not from mine" in str(told.error)
    assert files_of(state) == before


def test_an_open_that_fails_keeps_the_session_that_there_was(shell: Shell, tmp_path: Path) -> None:
    shell.run("%kw n = 41")
    assert "did you mean nx:les_miserables?" in str(shell.run(f"%kw open nx:les_mis --state {tmp_path / 'new'}").error)
    assert shell.run("%kw n + 1").text == "42"
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_an_open_that_is_interrupted_lets_go_of_the_folder(shell: Shell, state: Path, gate: Gate, times: int) -> None:
    shell.run("%kw n = 41")
    told = gate.interrupted(shell, f"%kw open {FOUND_IN} --state {state}", times)
    assert str(told.error) == "cancelled; finished work is kept"
    assert shell.run("%kw n + 1").text == "42"
    gate.go.set()
    assert "77 nodes" in shell.run(f"%kw open --state {state}").text  # which waits for the thread that can't be stopped
    shell.run("%kw close")
    open_state(state).close()


@pytest.mark.slow
def test_a_session_that_is_left_behind_lets_go_of_its_folder_as_soon_as_it_can(
    shell: Shell, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run(f"%kw open --state {state}")
    reached, go = threading.Event(), threading.Event()

    async def hangs(*given: Any) -> None:
        reached.set()
        assert go.wait(20)

    with monkeypatch.context() as patch:
        patch.setattr("knotwork.runtime.api.session.run_command", hangs)
        gate = Gate()
        gate.reached = reached
        told = gate.interrupted(shell, "%kw FIND nodes LIMIT 1 AS x", 3)
    assert "abandoned" in str(told.error)
    threading.Timer(0.3, go.set).start()
    assert "77 nodes" in shell.run(f"%kw open --state {state}").text
    assert shell.run("%kw 20 + 22").text == "42"
