"""Seed 001's ranking: its prompts, its markers, its worked example, its debug lines. The drive-thru café is item 6."""

import json
import re
from pathlib import Path

import pytest
from knotwork import planner
from knotwork.runtime.excerpts import read_prompt
from knotwork.runtime.loops.rank.draft_script import read_plan
from support.command import call
from support.folders import EXAMPLES

SEED = Path(__file__).parent / "001"
EXAMPLE = EXAMPLES / "rank"
REQUEST = "cafe with drive-thru, kid-friendly, without TVs"
MODEL = f"replay:{EXAMPLE / 'answers.jsonl'}"


def seed(name: str) -> str:
    return (SEED / name).read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KNOTWORK_DEBUG", "ANOT_DEBUG", "KNOTWORK_LLM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))


@pytest.mark.parametrize("name", ["plan", "expand"])
def test_prompts_are_the_seeds_with_more_between(name: str) -> None:
    ours = iter(read_prompt("knotwork.runtime.loops.rank", name).replace("{wanted}", "{context}").splitlines())
    missing = [line for line in seed(f"{name}_prompt.txt").splitlines() if line and line not in ours]
    assert missing == []


def test_the_example_output_is_read_as_the_seed_explains_it() -> None:
    plan = read_plan(seed("example_output.txt"), 10)
    assert plan.faults == ()
    assert plan.notes == ()
    assert plan.skeleton.strip().startswith('(final)=LLM("User wants: cafe with drive-thru')
    assert plan.conditions == "DriveThru=True, GoodForKids=True, HasTV=False"
    assert (plan.remaining, plan.expand) == ((5,), False)


def test_the_worked_example_ranks_item_6() -> None:
    items = json.loads((EXAMPLE / "cafes.json").read_text(encoding="utf-8"))
    assert len(items) == 10
    ranked = planner.rank_sync(items, REQUEST, MODEL)
    assert (ranked.status, ranked.ranking, ranked.names, ranked.output) == ("complete", (6,), ("Milkcrate Cafe",), "5")
    assert [(phase.name, phase.status, phase.spent.calls) for phase in ranked.phases] == [
        ("plan", "done", 1), ("expand", "pass-through", 0), ("execute", "done", 1),
    ]  # fmt: skip


STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\.\d{3}\] \[(P\d:R\d\d)\] (.*)$")


def told(err: str) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for line in err.splitlines() if (found := STAMP.match(line))]


@pytest.mark.parametrize("variable", ["KNOTWORK_DEBUG", "ANOT_DEBUG"])
def test_the_debug_log_prints_the_seeds_lines(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    made = call("rank", EXAMPLE / "cafes.json", "--request", REQUEST, "--llm", MODEL, "--format", "plain")
    assert (made.code, made.out) == (0, "6\n")
    lines = told(made.err)
    assert [(place, text) for place, text in lines if not text.startswith(("Skeleton", "Run "))] == [
        ("P1:R00", f"Planning for: {REQUEST}"),
        ("P2:R00", "ReAct expansion: 1 initial steps..."),
        ("P2:R00", "ReAct done after 0 iterations (pass-through)"),
        ("P3:R00", "Executing 1 steps in 1 layers..."),
        ("P3:R00", "Final ranking: 6"),
    ]
    (skeleton,) = [text for _, text in lines if text.startswith("Skeleton")]
    assert skeleton.startswith('Skeleton: (final)=LLM("User wants: cafe with drive-thru')


def test_request_n_is_rnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "1")
    made = call(
        "rank", EXAMPLE / "cafes.json", "--requests", EXAMPLE / "requests.jsonl", "--llm", MODEL, "--format", "plain",
    )  # fmt: skip
    assert (made.code, made.out) == (0, "6\n8, 2\n6, 10, 9\n")
    final = {place: text for place, text in told(made.err) if text.startswith("Final")}
    assert final == {
        "P3:R00": "Final ranking: 6", "P3:R01": "Final ranking: 8, 2", "P3:R02": "Final ranking: 6, 10, 9",
    }  # fmt: skip


def test_levels_tell_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(level: int) -> list[str]:
        monkeypatch.setenv("ANOT_DEBUG", str(level))
        made = call("rank", EXAMPLE / "cafes.json", "--request", REQUEST, "--llm", MODEL, "--format", "plain")
        return [text for _, text in told(made.err)]

    none, brief, steps, whole = (lines(level) for level in range(4))
    assert none == []
    assert "(final) started" in steps
    assert "(final) started" not in brief
    assert any("===LWT_SKELETON===" in text for text in whole)
    assert not any("===LWT_SKELETON===" in text for text in steps)
