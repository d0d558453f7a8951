"""Kept runs of seeds: their records, what is recalled, what is refused, and their place among other runs."""

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest
from knotwork.lang.trees.seed import FormulaSeed
from knotwork.runtime.lwt import run_store
from knotwork.runtime.runs.journal import RunError, hash_of, records
from knotwork.runtime.seeds import seed_store
from knotwork.runtime.seeds.seed_run import Totals, run_many
from knotwork.runtime.seeds.seed_store import SeedRecorder, contexts_hash, file_hash
from support.clients import Scripted
from support.review_server import answer_review, contexts
from support.seeds import COUNT, PEOPLE, SEVERITY, food_seed

GIVEN = contexts(3, 2)


def go(
    recorder: SeedRecorder, seed: FormulaSeed | None = None, given: Any = None, client: Any = None
) -> tuple[list[str], Totals]:
    """Run and return the prompts that were sent."""
    client = client or Scripted(default=answer_review)
    totals = asyncio.run(
        run_many(seed or food_seed(), given or GIVEN, client, on_result=lambda result: None, record=recorder)
    )
    return client.prompts, totals


def begun(tmp_path: Path, seed: FormulaSeed | None = None, given: Any = None) -> SeedRecorder:
    made = given or GIVEN
    return seed_store.start(
        seed or food_seed(), contexts=contexts_hash(made), model="m", options={"x": 1}, base=tmp_path
    )


def test_a_run_is_a_private_folder_with_a_record_for_each_extraction_and_context(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder)
    assert stat.S_IMODE(recorder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((recorder.path / "run.jsonl").stat().st_mode) == 0o600
    found = [entry[1] for entry in records(recorder.path / "run.jsonl") if isinstance(entry, tuple)]
    assert [record["record"] for record in found].count("extraction_done") == 6
    assert [record["record"] for record in found].count("context_done") == 3
    assert found[0]["record"] == "run_started"
    assert (found[0]["kind"], found[0]["name"], found[0]["model"], found[0]["options"]) == (
        "seed",
        "food",
        "m",
        {"x": 1},
    )
    assert (found[-1]["record"], found[-1]["status"], found[-1]["calls"]) == ("run_finished", "complete", 6)


def test_a_finished_run_asks_nothing_when_it_is_resumed(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder)
    stored = seed_store.load(recorder.run_id, tmp_path)
    assert (stored.status, stored.extracted, stored.contexts_done, stored.damage) == ("complete", 6, 3, [])
    prompts, totals = go(stored.resume(food_seed(), contexts=contexts_hash(GIVEN)))
    assert (prompts, totals.reused, totals.calls) == ([], 6, 0)


def test_a_run_is_found_by_its_folder_too(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    recorder.close()
    assert seed_store.load(recorder.path).run_id == recorder.run_id


def test_what_failed_is_asked_again(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder, client=Scripted({"visit 1": RuntimeError("down")}, default=answer_review))
    prompts, totals = go(seed_store.load(recorder.run_id, tmp_path).resume())
    assert len(prompts) == 3
    assert all("visit 1" in prompt for prompt in prompts)
    assert totals.status == "complete"


def test_what_is_invalid_is_not_asked_again(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder, client=Scripted(default='{"severity": "awful", "people": 1}'))
    prompts, totals = go(seed_store.load(recorder.run_id, tmp_path).resume())
    assert prompts == []
    assert totals.counts.invalid == 6


def test_a_changed_seed_is_refused_unless_forced_and_then_asks_what_is_affected(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder)
    stored = seed_store.load(recorder.run_id, tmp_path)
    formula = food_seed(steps=(COUNT,), outputs=("N",))
    with pytest.raises(RunError, match="can't be resumed: the seed changed") as raised:
        stored.resume(formula)
    assert "--force" in raised.value.hint
    assert go(stored.resume(formula, force=True), formula)[0] == []
    fields = food_seed(fields=(PEOPLE, SEVERITY))
    assert len(go(seed_store.load(recorder.run_id, tmp_path).resume(fields, force=True), fields)[0]) == 6


def test_changed_contexts_are_refused_unless_forced(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder)
    more = contexts(4, 2)
    more[0] = {**more[0], "reviews": [{"text": "other food"}, more[0]["reviews"][1]]}
    stored = seed_store.load(recorder.run_id, tmp_path)
    with pytest.raises(RunError, match="the contexts changed"):
        stored.resume(contexts=contexts_hash(more))
    prompts, totals = go(stored.resume(contexts=contexts_hash(more), force=True), given=more)
    assert (len(prompts), totals.reused) == (3, 5)


def test_a_stream_of_contexts_is_known_by_its_reviews(tmp_path: Path) -> None:
    assert contexts_hash(iter(GIVEN)) == ""
    recorder = seed_store.start(food_seed(), base=tmp_path)
    go(recorder, given=iter(GIVEN))
    prompts, _ = go(seed_store.load(recorder.run_id, tmp_path).resume(), given=iter(contexts(3, 3)))
    assert len(prompts) == 3


def test_one_process_at_a_time(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    with pytest.raises(RunError, match="active in another process"):
        seed_store.load(recorder.run_id, tmp_path).resume()
    recorder.close()
    seed_store.load(recorder.run_id, tmp_path).resume().close()


def test_a_torn_last_record_is_no_record(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder)
    path = recorder.path / "run.jsonl"
    body = path.read_bytes()
    lines = body.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b"extraction_done" in line)
    path.write_bytes(b"".join(lines[: at + 1]) + lines[at + 1][:20])
    stored = seed_store.load(recorder.run_id, tmp_path)
    assert (stored.extracted, stored.damage, stored.status) == (1, [], "")
    assert len(go(stored.resume())[0]) == 5


def test_a_damaged_record_is_told_and_never_used(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    go(recorder)
    path = recorder.path / "run.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"extraction": {"severity"', b'"extraction": {"severitY"', 1))
    stored = seed_store.load(recorder.run_id, tmp_path)
    assert "the checksum is wrong" in stored.damage[0]
    with pytest.raises(RunError, match="damaged"):
        stored.resume()
    assert len(go(stored.resume(force=True))[0]) == 1


def test_seeds_and_scripts_are_listed_together_and_not_taken_for_each_other(tmp_path: Path) -> None:
    from knotwork import lwt

    script = run_store.start(lwt.parse('(final)=LLM("x")'), base=tmp_path)
    script.close()
    recorder = begun(tmp_path)
    go(recorder)
    listed = {info.run_id: (info.kind, info.script, info.status) for info in run_store.list_runs(tmp_path)}
    assert listed[recorder.run_id] == ("seed", "food", "complete")
    assert listed[script.run_id][0] == "script"
    with pytest.raises(RunError, match="is a Formula Seed run"):
        run_store.load(recorder.run_id, tmp_path)
    with pytest.raises(RunError, match="is a script run"):
        seed_store.load(script.run_id, tmp_path)


def test_there_is_no_such_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="run 'x' does not exist"):
        seed_store.load("x", tmp_path)


def test_a_file_is_told_apart_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "contexts.jsonl"
    path.write_bytes(b"x" * 3_000_000)
    assert file_hash(path) == hash_of(b"x" * 3_000_000)


def test_a_run_that_cant_be_kept_any_further_goes_on_and_says_so(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    recorder._journal.damage = "the run can't be recorded any further: No space left on device"
    prompts, totals = go(recorder)
    assert len(prompts) == 6
    assert totals.warnings == ["the run can't be recorded any further: No space left on device"]
