"""``knotwork graph``."""

import json
from pathlib import Path

import pytest
from support.command import call
from support.graphs import GRAPHML, HEAD

QUOTED = (
    HEAD
    + '<key id="t" for="node" attr.name="entity_type"/><key id="w" for="edge" attr.name="weight"/>'
    + '<key id="s" for="edge" attr.name="source_id"/><graph edgedefault="undirected">'
    + "".join(f'<node id="&quot;{name}&quot;"><data key="t">"PERSON"</data></node>' for name in ("ANN", "BOB"))
    + '<edge source="&quot;ANN&quot;" target="&quot;BOB&quot;"><data key="w">16.0</data><data key="s">c-1&lt;SEP&gt;c-2</data></edge>'
    + "</graph></graphml>"
)


@pytest.fixture
def quoted(folder: Path) -> str:
    (folder / "quoted.graphml").write_text(QUOTED)
    return "quoted.graphml"


def test_info_says_what_loading_changed(quoted: str) -> None:
    result = call("graph", "info", quoted)
    assert (result.code, result.err) == (0, "")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert lines[:5] == ["graph quoted.graphml", "format graphml", "kind undirected graph", "nodes 2", "edges 1"]
    assert "node id quotes around the whole value removed 2 '\"ANN\"' 'ANN'" in lines
    assert "edge weight numbers written as text, converted to numbers 1 '16.0' 16.0" in lines
    assert "edge source_id <SEP>-separated text split into a list 1 'c-1<SEP>c-2' ['c-1', 'c-2']" in lines
    assert lines[-1] == "--raw keeps quotes, <SEP> and numbers in strings unchanged"


def test_raw_changes_nothing(quoted: str) -> None:
    assert "nothing was changed" in call("graph", "info", quoted, "--raw").out
    assert '"PERSON"' in call("graph", "schema", quoted, "--raw").out


def test_info_as_json(quoted: str) -> None:
    told = call("graph", "info", quoted, "--format", "json").json
    assert (told["nodes"], told["edges"], told["directed"], told["raw"]) == (2, 1, False, False)
    assert [(change["kind"], change["where"], change["count"]) for change in told["changes"]] == [
        ("quotes", "node id", 2),
        ("quotes", "node entity_type", 2),
        ("numbers", "edge weight", 1),
        ("lists", "edge source_id", 1),
    ]


def test_what_differs_in_long_values_is_shown(folder: Path) -> None:
    (folder / "x.csv").write_text(f"source,target,description\na,b,{'long ' * 30}<SEP>more\nb,c,a<SEP>b\n")
    row = next(line for line in call("graph", "info", "x.csv").out.splitlines() if "line break" in line)
    assert "<SEP>more" in row
    assert r"\nmore" in row


def test_warnings_go_to_stderr(folder: Path) -> None:
    (folder / "x.graphml").write_text(GRAPHML.replace('target="bob"', 'target="zoe"'))
    result = call("graph", "info", "x.graphml")
    assert result.code == 0
    assert "warning: 1 nodes occur only in edges" in result.err


def test_schema_lists_labels_and_attributes(quoted: str) -> None:
    result = call("graph", "schema", quoted)
    assert (result.code, result.err) == (0, "")
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "labels entity_type: PERSON (2)" in lines
    assert "entity_type 2 text 1 PERSON (2)" in lines
    assert "weight 1 float 1" in lines
    assert "nodes have no attributes" in call("graph", "schema", "nx:petersen").out


def test_schema_as_json() -> None:
    told = call("graph", "schema", "nx:karate_club", "--format", "json").json
    assert (told["nodes"], told["edges"], told["name"]) == (34, 78, "nx:karate_club")
    assert told["node_attributes"][0] == {
        "name": "club",
        "count": 34,
        "types": {"text": 34},
        "values": [{"value": "Mr. Hi", "count": 17}, {"value": "Officer", "count": 17}],
        "distinct": 2,
        "lowest": None,
        "highest": None,
    }
    assert len(told["hash"]) == 64


@pytest.mark.parametrize("command", ["info", "schema"])
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("typo.graphml", None, "typo.graphml: the file does not exist"),
        ("x.graphml", GRAPHML[:300], "x.graphml:6: not well-formed XML: the file is incomplete"),
        ("x.graphml", "<!DOCTYPE a>" + GRAPHML, "x.graphml:1: the file has a <!DOCTYPE>"),
        ("x.csv", "a,b\n", "x.csv:1: the first line does not name the columns source and target"),
        ("nx:karate", None, "did you mean nx:karate_club?"),
        (".", None, "a folder"),
    ],
)
def test_what_can_not_be_read_is_told_in_a_few_lines(
    folder: Path, command: str, name: str, text: str | None, told: str
) -> None:
    if text is not None:
        (folder / name).write_text(text)
    result = call("graph", command, name)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert told in result.err
    assert len(result.err.splitlines()) <= 2


def test_values_can_not_move_the_cursor(folder: Path) -> None:
    (folder / "x.json").write_text(
        '{"nodes": [{"id": 1, "x": "a\\u001b[2J"}, {"id": 2, "x": "a\\u001b[2J"}], "edges": []}'
    )
    out = call("graph", "schema", "x.json").out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out


@pytest.mark.parametrize("raw", [False, True])
def test_what_loading_rewrites_is_told_once_by_every_command_and_left_with_raw(
    folder: Path, quoted: str, raw: bool
) -> None:
    (folder / "a.gasl").write_text("DECLARE k AS LIST\nFIND nodes AS x\nUPDATE k WITH x\n")
    more = ["--raw"] if raw else []
    for command in (
        ("gasl", "-c", "FIND nodes AS x", "--graph", quoted),
        ("check", "a.gasl", "--graph", quoted),
        ("run", "a.gasl", "--graph", quoted, "--state", "s"),
    ):
        done = call(*command, *more)
        assert done.code == 0, done.err
        told = [line for line in done.err.splitlines() if "quotes around the whole value removed" in line]
        assert len(told) == (0 if raw else 2), done.err
        assert raw or "--raw (in Python raw=True) keeps them unchanged" in told[0]
    kept = call("state", "export", "s").json
    assert ("graph_read" in kept["history"][0]["plan"]) is not raw
    assert (kept["variables"]["k"]["items"][0]["entity_type"] == '"PERSON"') is raw
    again = call("run", "a.gasl", "--state", "s")  # the state knows how its graph was read
    assert again.code == 0, again.err
    assert call("replay", "s").code == 0
    assert call("report", "s", "-o", "-").out.count("What loading the graph rewrote") == (0 if raw else 1)


def test_a_type_that_graphml_does_not_have_and_what_is_not_finite_are_told(folder: Path) -> None:
    text = GRAPHML.replace('attr.type="double"', 'attr.type="quad"')
    assert text != GRAPHML
    (folder / "x.graphml").write_text(text)
    done = call("gasl", "-c", "FIND nodes AS x", "--graph", "x.graphml")
    assert (done.code, 'has the unknown attr.type "quad"' in done.err) == (0, True)
    (folder / "x.graphml").write_text(GRAPHML.replace("0.5", "inf"))
    done = call("gasl", "-c", "FIND edges WHERE weight > 1000 AS x", "--graph", "x.graphml", "--format", "json")
    assert [row["weight"] for row in done.json] == [None]
    assert "non-finite numbers are null in results" in done.err


# Prepared copies.


@pytest.fixture
def large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of 1.2 MB, whose second reading uses its copy."""
    monkeypatch.setenv("KNOTWORK_HOME", str(folder / "home"))
    lines = "".join(f"a{at},b{at % 100},{at / 8},{'x' * 30}\n" for at in range(24_000))
    (folder / "large.csv").write_text("source,target,weight,note\n" + lines)
    return "large.csv"


@pytest.mark.slow
def test_a_copy_is_listed_and_deleted(large: str) -> None:
    assert call("graph", "cache").out == "no prepared copies\n"
    assert json.loads(call("graph", "info", large, "--format", "json").out)["prepared"] is False
    assert json.loads(call("graph", "info", large, "--format", "json").out)["prepared"] is True
    ((name, *row),) = (line.split() for line in call("graph", "cache").out.splitlines()[-1:])
    assert (name.endswith("large.csv"), row[:3]) == (True, ["csv", "24,100", "24,000"])
    (entry,) = json.loads(call("graph", "cache", "--format", "json").out)
    assert (entry["nodes"], entry["edges"], entry["format"]) == (24_100, 24_000, "csv")
    assert entry["bytes"] > 500_000
    assert call("graph", "cache", "--clear").out.startswith("deleted 1 copy (")
    assert json.loads(call("graph", "cache", "--clear", "--format", "json").out) == {"copies": 0, "bytes": 0}
    assert call("graph", "cache", "--format", "json").out == "[]\n"


@pytest.mark.slow
def test_answers_with_and_without_a_copy_are_equal(large: str) -> None:
    told = [
        call("graph", "schema", large, *options) for options in ((), (), ("--verify",), ("--no-cache",), ("--raw",))
    ]
    assert len({result.out for result in told[:4]}) == 1
    assert {result.err for result in told} == {""}
    assert told[4].out != told[0].out
    find = ("gasl", "-c", "FIND edges WHERE weight > 2000 ORDER BY weight DESC LIMIT 3 AS e", "--graph", large)
    one, other = call(*find), call(*find, "--no-cache")
    assert (one.code, one.out) == (0, other.out)
    assert "a23999" in one.out
    assert one.err == other.err


@pytest.mark.slow
def test_no_cache_keeps_no_copy(large: str) -> None:
    call("graph", "info", large, "--no-cache")
    call("gasl", "-c", "FIND nodes LIMIT 1 AS n", "--graph", large, "--no-cache")
    assert call("graph", "cache").out == "no prepared copies\n"


@pytest.mark.slow
def test_a_damaged_copy_is_told_and_made_anew(large: str, folder: Path) -> None:
    call("graph", "info", large)
    (arrays,) = (folder / "home").rglob("arrays.bin")
    arrays.write_bytes(arrays.read_bytes()[:-1] + b"\xff")
    assert "(damaged)" not in call("graph", "cache").out
    result = call("gasl", "-c", "COUNT x AS n", "-c", "FIND nodes LIMIT 1 AS n", "--graph", large)
    again = call("graph", "info", large)
    assert "was deleted and is created again: damaged" in result.err
    assert again.err == ""
