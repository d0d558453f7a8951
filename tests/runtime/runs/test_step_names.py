"""What the record of a step includes: its items, and the steps of the scripts that it runs."""

from knotwork.runtime.report.run_reader import events_of
from knotwork.runtime.runs.step_names import Contained, containers


def test_a_name_shows_the_containing_steps() -> None:
    assert containers("a") == []
    assert containers("a/b.1") == ["a"]
    assert containers("a[3]/b/c[0]") == ["a", "a[3]", "a[3]/b", "a[3]/b/c"]


def record(kind: str, step: str, item: int | None = None, used: int = 0) -> dict[str, object]:
    return {
        "record": kind,
        "step": step,
        "item": item,
        "status": "done",
        "input_hash": "x",
        "usage": [used, 0],
        "attempts": 1,
    }


def test_nothing_is_counted_twice() -> None:
    records = [
        {"record": "run_started"}, record("step_done", "a[0]/b", used=2), record("item_done", "a[0]/c", 0, 3),
        record("item_done", "a[0]/c", 1, 4), record("step_done", "a[0]/c", used=7), record("item_done", "a", 0, 9),
        record("item_done", "a[1]", 5, 1), record("step_done", "a", used=10), record("step_done", "d", used=20),
    ]  # fmt: skip
    counted = [event for event in events_of(None, records) if event["event"] == "call.finished" and event["counted"]]
    assert sum(event["prompt_tokens"] for event in counted) == 30
    total, contained = 0, Contained[int]()
    for each in records[1:]:
        more = each["usage"][0] - sum(contained.close(each))
        contained.add(each, more)
        total += more
    assert total == 30


def test_a_killed_run_counts_its_finished_parts() -> None:
    records = [
        {"record": "run_started"},
        record("item_done", "a[0]/c", 0, 3),
        record("step_done", "a[0]/c", used=3),
        record("step_done", "d", used=4),
    ]
    counted = [event for event in events_of(None, records) if event["event"] == "call.finished" and event["counted"]]
    assert sum(event["prompt_tokens"] for event in counted) == 7
