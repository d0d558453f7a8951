"""Files are told apart by one table: every command agrees about what a file is, and a wrong pairing names the right command."""

from pathlib import Path

import pytest
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.source import Source
from knotwork.lang.trees import gasl as tree
from knotwork.runtime.api.file_kinds import KINDS, kind_of
from support.command import call
from support.folders import GOLDEN

SEED = '{"task_name": "t", "filter": {"keywords": ["x"]}, "compute": [{"name": "N", "op": "count"}], "output": ["N"]}'
FILES = {
    "s.lwt": ("script", '(final)=CONST("x")\n'),
    "p.gasl": ("program", "FIND nodes AS n\n"),
    "plan.json": ("plan", '{"plan_id": "p", "why": "w", "commands": ["FIND nodes AS n"]}'),
    "x.seed.json": ("seed", SEED),
    "seed.json": ("seed", SEED),
    "cafes.json": ("contexts", '{"name": "a", "reviews": [{"text": "x"}]}'),
    "cafes.jsonl": ("contexts", '{"name": "a", "reviews": []}\n{"name": "b", "reviews": []}\n'),
    "results.jsonl": ("results", '{"name": "a", "status": "complete", "extractions": []}\n'),
    "graph.json": ("graph", '{"directed": false, "nodes": [{"id": 1}], "links": []}'),
    "graph.graphml": ("graph", "<graphml/>"),
    "t.csv": ("table", "id,text\n1,hello\n"),
    "no-suffix-script": ("script", '(final)=CONST("x")\n'),
    "no-suffix-program": ("program", "# all nodes\nFIND nodes AS n\n"),
    "no-suffix-plan": ("plan", '{"why": "w", "plan_id": "p", "commands": ["FIND nodes AS n"]}'),
    "no-suffix-graph": ("graph", '<?xml version="1.0"?><graphml/>'),
}
COMMANDS = {
    "check": {"script", "program", "plan", "seed"},
    "plan": {"script", "program", "plan", "seed"},
    "run": {"script", "program", "plan"},
    "fmt": {"script", "program"},
}


@pytest.mark.parametrize("name", FILES)
def test_the_kind_of_a_file(name: str) -> None:
    kind, text = FILES[name]
    assert kind_of(Source(text, name)) == kind


PAIRS = [(command, name) for command in COMMANDS for name in FILES]


@pytest.mark.parametrize(("command", "name"), [pair for pair in PAIRS if FILES[pair[1]][0] not in COMMANDS[pair[0]]])
def test_a_wrong_pairing_is_refused_and_names_the_right_command(tmp_path: Path, command: str, name: str) -> None:
    kind, text = FILES[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    refused = call(command, str(path))
    assert refused.code == 2
    assert f"{path} is {KINDS[kind].noun}; " in refused.err
    assert KINDS[kind].commands.format(path) in refused.err


@pytest.mark.parametrize(
    ("command", "name"), [pair for pair in PAIRS if FILES[pair[1]][0] in COMMANDS[pair[0]] and pair[0] != "run"]
)
def test_a_right_pairing_is_taken(tmp_path: Path, command: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name][1], encoding="utf-8")
    assert call(command, str(path)).code == 0


def test_every_command_is_known_by_its_first_word() -> None:
    golden = GOLDEN / "gasl/identity.gasl"
    program = parse_gasl(golden.read_text(encoding="utf-8"))
    texts = {type(each.command).__name__: program.source.slice(each.span) for each in program.statements}
    known = {
        name
        for name, each in vars(tree).items()
        if isinstance(each, type) and issubclass(each, tree.Node) and name in texts
    }
    assert len(known) > 20
    assert {name: text for name, text in texts.items() if kind_of(Source(text, "<stdin>")) != "program"} == {}


@pytest.mark.parametrize("name", ["plan.json", "graph.json", "cafes.json", "s.lwt", "p.gasl", "t.csv"])
def test_a_seed_s_command_takes_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name][1], encoding="utf-8")
    contexts = tmp_path / "contexts.jsonl"
    contexts.write_text('{"name": "a", "reviews": []}\n', encoding="utf-8")
    refused = call("seed", "run", str(path), str(contexts))
    assert refused.code == 2
    assert "Formula Seed" in refused.err
