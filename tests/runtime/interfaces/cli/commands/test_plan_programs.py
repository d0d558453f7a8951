"""``knotwork plan`` of a GASL program or a plan in JSON: what would run, or why nothing would; never silence."""

import json
from pathlib import Path

import pytest
from support.command import call

PROGRAM = """FIND nodes WHERE degree > 3 AS x
DECLARE found AS LIST
CLASSIFY x BY 'm' INTO ('a', 'b') AS y
UPDATE found WITH y
COUNT x AS n
"""
PLAN = {"plan_id": "p", "why": "w", "commands": PROGRAM.splitlines()}


@pytest.fixture(params=["q.gasl", "plan.json"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    path.write_text(PROGRAM if path.suffix == ".gasl" else json.dumps(PLAN))
    return path


def test_the_commands_are_listed_with_what_they_take_and_whether_they_ask(file: Path) -> None:
    told = call("plan", file)
    assert told.code == 0 and "5 commands, 1 of them calling a model" in told.out
    lines = {line.split()[0]: line for line in told.out.splitlines() if line[:4].strip().isdigit()}
    assert lines["3"].endswith("← 1  calls a model") and lines["4"].endswith("← 2, 3") and lines["5"].endswith("← 1")


def test_the_same_as_json_and_as_drawings(file: Path) -> None:
    found = json.loads(call("plan", file, "--format", "json").out)
    assert [each["takes_from"] for each in found["commands"]] == [[], [], [1], [2, 3], [1]]
    assert [each["binds"] for each in found["commands"]] == [["x"], [], ["y"], [], ["n"]]
    assert [each["asks_a_model"] for each in found["commands"]] == [False, False, True, False, False]
    assert "s0 --> s2" in call("plan", file, "--format", "mermaid").out
    assert '"1" -> "3";' in call("plan", file, "--format", "dot").out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("q.gasl", "# only a remark\n", "has no commands"),
        ("q.gasl", "FIND node AS x", "FIND needs nodes, edges, paths, patterns or cycles"),
        (
            "plan.json",
            '{"plan_id": "p", "why": "w", "commands": ["FIND node AS x"]}',
            "FIND needs nodes, edges, paths, patterns or cycles",
        ),
    ],
)
def test_what_can_not_be_planned_says_why(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    told = call("plan", tmp_path / name)
    assert told.code == 3 and said in told.err and told.out == ""
