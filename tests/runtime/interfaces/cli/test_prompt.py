"""The first screen: what there is, and a command that does something on this very graph."""

import networkx as nx
import pytest
from knotwork.runtime.api.workspace import WorkspaceOptions, example_command
from knotwork.runtime.interfaces.cli.prompt import greet
from support.sessions import new_session, run


def told(capfd: pytest.CaptureFixture[str]) -> dict[str, str]:
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("knotwork ") and lines[-1] == ".help shows the commands"
    return {name: text for name, text in (line.split(maxsplit=1) for line in lines[1:-1])}


def test_it_says_what_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    at = new_session("nx:les_miserables", llm="replay:answers")
    greet(WorkspaceOptions("nx:les_miserables"), at)
    assert told(capfd) == {
        "graph": "nx:les_miserables · 77 nodes, 254 edges", "state": "in memory · --state DIR saves it", "model": "replay:answers",
        "try": "FIND nodes ORDER BY degree DESC LIMIT 10 AS hubs",
    }  # fmt: skip


def test_a_state_is_told_with_its_keys(capfd: pytest.CaptureFixture[str]) -> None:
    at = new_session("nx:les_miserables", llm="replay:answers")
    greet(WorkspaceOptions(state="story"), at)
    assert told(capfd)["state"] == "story · no keys declared"
    for number in range(10):
        run(at, f"DECLARE key{number} AS LIST")
    greet(WorkspaceOptions(state="story"), at)
    assert told(capfd)["state"] == f"story · {', '.join(f'key{n}' for n in range(8))}, and 2 more"


def test_without_a_graph_it_says_how_one_is_opened(capfd: pytest.CaptureFixture[str]) -> None:
    at = new_session(llm="replay:answers")
    greet(WorkspaceOptions(), at)
    found = told(capfd)
    assert "nx:les_miserables" in found["graph"] and run(at, found["try"]).value == 14


def test_weights_that_are_not_there_are_told_with_their_size(capfd: pytest.CaptureFixture[str]) -> None:
    greet(WorkspaceOptions(), new_session(llm="local"))
    assert told(capfd)["model"] == "local · downloaded on first use (93 MB)"


def test_no_key_in_an_address_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    greet(WorkspaceOptions(), new_session(llm="https://me:sk-abcdefghijklmnopqrstuvwxyz123456@host/v1#m"))
    assert "abcdefghijkl" not in told(capfd)["model"]


@pytest.mark.parametrize(
    "values, wanted",
    [
        ({"entity_type": ["PERSON", "PERSON", "PLACE"]}, 'WHERE entity_type = "PERSON" '),
        ({"colour": ["red", "blue", "red"], "kind": ["a", "b", "b"]}, 'WHERE kind = "b" '),
        ({"note": ["only"]}, ""),
        ({"kind": ['a"b', 'a"b', "c"]}, ""),
        ({"kind": ["\x1b[2J", "\x1b[2J", "c"]}, ""),
        ({"the kind": ["a", "a", "b"]}, ""),
        ({"name": [f"n{number}" for number in range(30)]}, ""),
    ],
)
def test_what_is_worth_trying_runs_on_the_graph(values: dict[str, list[str]], wanted: str) -> None:
    graph = nx.path_graph(30)
    for node in graph:
        graph.nodes[node].update({name: texts[node % len(texts)] for name, texts in values.items()})
    at = new_session(graph, llm="replay:answers")
    assert at.adapter is not None
    text = example_command(at.adapter)
    assert text == f"FIND nodes {wanted}ORDER BY degree DESC LIMIT 10 AS hubs"
    outcome = run(at, text)
    assert outcome.status == "done" and not outcome.diagnostics


def test_an_empty_graph_has_a_first_screen(capfd: pytest.CaptureFixture[str]) -> None:
    greet(WorkspaceOptions(), new_session(nx.Graph(), llm="replay:answers"))
    assert told(capfd)["graph"] == "0 nodes, 0 edges"
