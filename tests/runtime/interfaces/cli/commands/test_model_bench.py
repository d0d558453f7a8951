"""``knotwork model bench`` against a real server that answers only so many calls at a time."""

from pathlib import Path

import pytest
from support.command import call
from support.served import served

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))


def test_the_levels_are_measured_and_one_is_recommended(tmp_path: Path) -> None:
    with served(tmp_path, "--delay", "0.2") as server:
        made = call("model", "bench", server.spec, "--seconds", "0.5", "--levels", "1,4", "--format", "json")
        asked = sum(server.asked.values())
    assert made.code in (0, 4), made.err
    told = made.json
    assert told["best"] == 4 and [level["concurrency"] for level in told["levels"]] == [1, 4]
    assert told["levels"][0]["p95"] >= 0.2 and told["levels"][1]["answered"] > told["levels"][0]["answered"]
    assert told["calls"] == asked and "use --max-concurrency 4" in made.err
    assert len(server.asked) == asked  # each prompt is asked once


def test_a_limit_ends_the_measurement(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        made = call("model", "bench", server.spec, "--seconds", "0.5", "--max-calls", "9")
        assert sum(server.asked.values()) == 9
    assert "ended early: the budget of 9 calls is used up" in made.err and made.code in (0, 4)


def test_failures_are_named(tmp_path: Path) -> None:
    with served(tmp_path, "--always", "401") as server:
        made = call("model", "bench", server.spec, "--seconds", "0.2", "--levels", "1")
        assert sum(server.asked.values()) == 1
    assert made.code == 1 and "the first call failed: 401: Incorrect API key" in made.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["opnai:m"], "did you mean openai:MODEL?"),
        (["http://127.0.0.1:9/v1#m", "--levels", "1,b"], "is not a list of whole numbers"),
        (["http://127.0.0.1:9/v1#m", "--levels", "0"], "expected whole numbers above 0"),
        (["replay:a.jsonl"], "a cassette has no speed to measure"),
    ],
)
def test_what_can_not_be_measured_is_refused(words: list[str], message: str) -> None:
    made = call("model", "bench", *words)
    assert made.code == 2 and message in made.err
