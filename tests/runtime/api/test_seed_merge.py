"""Shards of contexts, and their results put together."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import seed
from knotwork.runtime.api.seed_merge import merge, seed_hash
from knotwork.runtime.errors import RequestError
from knotwork.runtime.seeds.samples import Sampling, sampled_contexts
from support.command import call

LOUD = {
    "extract": {"fields": [{"name": "level", "type": "enum", "values": ["quiet", "loud"]}]},
    "compute": [{"name": "N", "op": "count", "where": {"extraction.level": "loud"}}],
    "output": ["N"],
}
SEED = seed.load(LOUD)
CONTEXTS = [{"name": f"p{at % 7}", "reviews": [{"text": f"It is loud, {at}"}, {"text": "quiet"}]} for at in range(30)]


class Reader:
    async def generate(self, prompt: str, **options: Any) -> str:
        return json.dumps({"level": "loud" if "loud," in prompt else "quiet"})


def result(index: int, n: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "name": f"p{index}", "index": index, "status": "complete", "outputs": {"N": n},
        "counts": {"reviews": 2, "kept": 2, "extracted": 2, "invalid": 0, "failed": 0}, "errors": [],
        "usage": {"calls": 2, "prompt_tokens": 9, "completion_tokens": 2}, "cost": 0.0, "context": {"name": f"p{index}"}, **more,
    }  # fmt: skip


def written(path: Path, *results: dict[str, Any], shard: str = "", of: str = "h") -> Path:
    mark = {"sampled": {"shard": shard, "seed": of}} if shard else {}
    path.write_text("".join(json.dumps({**each, **mark, "extractions": []}) + "\n" for each in results))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
@given(st.lists(st.text(max_size=3), max_size=60), st.integers(1, 9))
def test_every_context_is_in_one_shard(names: list[str], count: int) -> None:
    contexts = [{"name": name, "reviews": []} for name in names]
    parts = [
        [each.index for each in sampled_contexts(contexts, Sampling(shard=f"{number}/{count}"))]
        for number in range(1, count + 1)
    ]
    assert sorted(index for part in parts for index in part) == list(range(len(names)))


def test_a_shard_is_a_part_of_the_sample() -> None:
    sample = {each.index for each in sampled_contexts(CONTEXTS, Sampling(sample=12))}
    parts = [
        {each.index for each in sampled_contexts(CONTEXTS, Sampling(sample=12, shard=f"{k}/3"))} for k in (1, 2, 3)
    ]
    assert set.union(*parts) == sample
    assert sum(map(len, parts)) == 12


def test_shards_of_a_table_and_of_contexts_are_those_of_the_whole() -> None:
    rows = [{"product": f"p{at % 11}", "text": "It is loud, yes"} for at in range(40)]
    whole = seed.collect_sync(SEED, seed.contexts(rows, group="product"), llm=Reader())
    parts = [
        seed.collect_sync(SEED, seed.contexts(rows, group="product", shard=f"{k}/2"), llm=Reader()).results
        for k in (1, 2)
    ]
    assert sorted((each for part in parts for each in part), key=lambda each: each.index) == whole.results
    again = seed.collect_sync(SEED, CONTEXTS, llm=Reader(), shard="2/4").results
    assert again == [
        each
        for each in seed.collect_sync(SEED, CONTEXTS, llm=Reader()).results
        if each.index in {r.index for r in again}
    ]
    assert 0 < len(again) < 30


def test_stored_runs_become_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    for k in (1, 2):
        seed.collect_sync(SEED, CONTEXTS, llm=Reader(), shard=f"{k}/2", record=True)
    runs = sorted((tmp_path / "home/runs").iterdir())
    made = merge(runs, tmp_path / "all.csv")
    assert (made.results, made.missing, made.missing_shards, made.is_complete) == (30, (), (), True)
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [[f"p{at % 7}", str(at)] for at in range(30)]
    assert merge(runs[:1], tmp_path / "one.jsonl").missing_shards in (("1/2",), ("2/2",))


def test_files_are_merged_in_the_order_of_the_contexts(tmp_path: Path) -> None:
    one = written(tmp_path / "1.jsonl", result(3), result(0), shard="1/2")
    two = written(tmp_path / "2.jsonl", result(2), result(1), shard="2/2")
    made = merge([one, two], tmp_path / "all.jsonl")
    assert made.is_complete
    assert read(tmp_path / "all.jsonl") == [{**result(index), "extractions": []} for index in range(4)]


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    one = written(tmp_path / "1.jsonl", result(0), result(4), shard="1/3")
    two = written(tmp_path / "2.jsonl", result(1), shard="2/3")
    made = merge([one, two], tmp_path / "all.jsonl")
    assert (made.results, made.missing, made.missing_shards, made.is_complete) == (3, (2, 3), ("3/3",), False)


def test_a_context_may_be_there_twice_if_the_results_are_equal(tmp_path: Path) -> None:
    one = written(tmp_path / "1.jsonl", result(0), result(1), shard="1/2")
    same = written(tmp_path / "2.jsonl", {**result(1), "usage": {"calls": 0}, "cost": 1.0}, shard="2/2")
    assert merge([one, same], tmp_path / "all.jsonl").results == 2
    other = written(tmp_path / "3.jsonl", result(1, n=5), shard="2/2")
    with pytest.raises(RequestError, match=r"1\.jsonl and .*3\.jsonl have different results for context 2"):
        merge([one, other], tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()


def test_parts_of_different_seeds_or_divisions_are_refused(tmp_path: Path) -> None:
    one = written(tmp_path / "1.jsonl", result(0), shard="1/2")
    with pytest.raises(RequestError, match=r"1\.jsonl and .*2\.jsonl are results of different seeds"):
        merge([one, written(tmp_path / "2.jsonl", result(1), shard="2/2", of="other")], tmp_path / "x.jsonl")
    with pytest.raises(RequestError, match=r"shards of different divisions: 1/2, 2/3"):
        merge([one, written(tmp_path / "3.jsonl", result(1), shard="2/3")], tmp_path / "x.jsonl")


@pytest.mark.parametrize("shard", ["", "3", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", 3, [1, 2]])
def test_what_is_no_shard(shard: Any) -> None:
    with pytest.raises(RequestError, match="is not K/N"):
        Sampling(shard=shard)


def test_a_seed_that_needs_all_contexts_has_no_shards() -> None:
    made = seed.load({**LOUD, "extract": {"fields": [{"name": "dish", "type": "text"}]}, "compute": [{"name": "N", "op": "count"}],
                      "resolve": [{"field": "dish", "as": "named", "scope": "run"}]})  # fmt: skip
    with pytest.raises(RequestError, match="resolves spellings over all contexts of a run"):
        seed.collect_sync(made, CONTEXTS, llm=Reader(), shard="1/2")


def test_a_shard_of_contexts_that_are_a_sample_already(tmp_path: Path) -> None:
    rows = [{"product": f"p{at}", "text": "It is loud, yes"} for at in range(40)]
    sample = seed.contexts(rows, group="product", sample=10)
    parts = [seed.collect_sync(SEED, sample, llm=Reader(), shard=f"{k}/2").results for k in (1, 2)]
    assert sum(map(len, parts)) == 10
    needs_all = seed.load({**LOUD, "extract": {"fields": [{"name": "dish", "type": "text"}]}, "compute": [{"name": "N", "op": "count"}],
                           "resolve": [{"field": "dish", "as": "named", "scope": "run"}]})  # fmt: skip
    with pytest.raises(RequestError, match="over all contexts of a run"):
        seed.collect_sync(needs_all, seed.contexts(rows, group="product", shard="1/2"), llm=Reader())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"index": 1', "not a whole result"),
        ("[1]\n", "not a whole result"),
        ('{"index": "1", "sampled": {"shard": "1/2"}}\n', "not a whole result"),
        ('{"index": 1, "sampled": null}\n', "not a whole result"),
        ('{"index": 1}\n', "not the result of a shard"),
        (
            '{"index": 1, "sampled": {"shard": "2/2", "seed": "h"}}\n',
            "the result of another shard than the lines before",
        ),
        (
            '{"index": 0, "name": "other", "sampled": {"shard": "1/2", "seed": "h"}}\n',
            "another result for context 1 stands before",
        ),
    ],
)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, line: str, said: str) -> None:
    one = written(tmp_path / "1.jsonl", result(0), shard="1/2")
    one.write_text(one.read_text() + line)
    with pytest.raises(RequestError, match=f"1.jsonl, line 2: {said}"):
        merge([one], tmp_path / "all.jsonl")


def test_an_empty_shard_is_no_missing_one(tmp_path: Path) -> None:
    one, empty = written(tmp_path / "1.jsonl", result(0), shard="1/2"), written(tmp_path / "2.jsonl")
    made = merge([one, empty], tmp_path / "all.jsonl")
    assert (made.results, made.empty, made.missing_shards, made.is_complete) == (1, 1, (), True)
    three = written(tmp_path / "3.jsonl", result(0), shard="1/3")
    assert merge([three, empty], tmp_path / "all.jsonl").missing_shards == ("2/3", "3/3")


def test_a_sample_that_is_not_whole_is_told(tmp_path: Path) -> None:
    def part(name: str, index: int, shard: str, **sampled: Any) -> Path:
        path = tmp_path / name
        mark = {"sampled": {"sample": 3, "random_state": 0, "shard": shard, "seed": "h", **sampled}}
        path.write_text(json.dumps({**result(index), **mark, "extractions": []}) + "\n")
        return path

    one, two = part("1.jsonl", 4, "1/2"), part("2.jsonl", 9, "2/2")
    made = merge([one, two], tmp_path / "all.jsonl")
    assert (made.results, made.sample, made.missing, made.is_complete) == (2, 3, (), False)
    assert read(tmp_path / "all.jsonl")[0]["sampled"] == {"sample": 3, "random_state": 0}
    with pytest.raises(RequestError, match="parts of different samples"):
        merge([one, part("3.jsonl", 9, "2/2", sample=5)], tmp_path / "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()


def test_a_complete_result_replaces_one_that_failed(tmp_path: Path) -> None:
    one = written(tmp_path / "1.jsonl", {**result(0), "status": "failed", "outputs": {}}, shard="1/1")
    two = written(tmp_path / "2.jsonl", result(0), shard="1/1")
    for parts in ([one, two], [two, one]):
        merge(parts, tmp_path / "all.jsonl")
        assert read(tmp_path / "all.jsonl")[0]["status"] == "complete"


def test_the_seed_has_to_be_that_of_the_parts(tmp_path: Path) -> None:
    one = written(tmp_path / "1.jsonl", result(0), shard="1/1", of=seed_hash(SEED))
    other = seed.load({**LOUD, "output": [], "compute": [{"name": "M", "op": "count"}]} | {"output": ["M"]})
    with pytest.raises(RequestError, match="the result of another seed"):
        merge([one], tmp_path / "all.csv", seed=other)
    assert merge([one], tmp_path / "all.csv", seed=SEED).is_complete


def test_a_run_that_has_not_ended_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    seed.collect_sync(SEED, CONTEXTS, llm=Reader(), shard="01/01", record=True)
    (run,) = (tmp_path / "home/runs").iterdir()
    assert merge([run], tmp_path / "all.jsonl").is_complete
    journal = run / "run.jsonl"
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if "run_finished" not in line))
    made = merge([run], tmp_path / "all.jsonl")
    assert (made.unfinished, made.is_complete) == ((str(run),), False)


def test_the_command(folder: Path) -> None:
    Path("s.seed.json").write_text(json.dumps(LOUD))
    hashed = seed_hash(seed.load("s.seed.json"))
    one = written(Path("1.jsonl"), result(0), result(2), shard="1/2", of=hashed)
    two = written(Path("2.jsonl"), result(1), shard="2/2", of=hashed)
    done = call("seed", "merge", one, two, "-o", "all.jsonl")
    assert (done.code, done.err) == (0, "3 results of 2 parts written to all.jsonl\n")
    assert call("seed", "merge", one, two, "-o", "all.jsonl").code == 2  # it exists
    done = call("seed", "merge", one, "-o", "part.jsonl")
    assert (done.code, done.err) == (4, "2 results of 1 part written to part.jsonl\nmissing shards: 2/2\n")
    done = call("seed", "merge", one, two, "-o", "all.csv")
    assert (done.code, done.err.splitlines()[-1]) == (2, "  = help: give the seed: seed=, or --seed SEED")
    assert call("seed", "merge", one, two, "-o", "all.csv", "--seed", "s.seed.json").code == 0
    assert Path("all.csv").read_text().splitlines()[1].startswith("p0,0,complete,1,")
    for words, said in (
        (("none.jsonl", "-o", "x.jsonl"), "none.jsonl does not exist"),
        (("s.seed.json", "-o", "x.jsonl"), "run 's.seed.json' does not exist"),
        ((one, "-o", "x.txt"), "x.txt"),
        ((one,), "seed merge needs --out or --extractions"),
        ((one, "-o", "1.jsonl", "--force"), "1.jsonl"),
    ):
        done = call("seed", "merge", *words)
        assert done.code == 2, words
        assert said in done.err, (words, done.err)
    assert read(one)[0]["index"] == 0
