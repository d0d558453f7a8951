"""What a person reads who types something wrong about seeds: one line that says what, one that says what to type."""

import json
import shutil
from pathlib import Path

import pytest
from support.cafe_seed import CONTEXTS, SEED, lines, seed_model, write_seed
from support.command import call

COMMANDS = ("run", "compute", "explain", "sensitivity", "schema", "convert")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A seed, contexts, results, and a few files that are none of these: made once, since a run takes a while."""
    folder = tmp_path_factory.mktemp("made")
    write_seed(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KNOTWORK_HOME", str(tmp_path_factory.mktemp("home")))
        patch.chdir(folder)
        seed_model(folder / "m.cassette")
        run = ("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", "replay:m.cassette", "-o")
        assert call(*run, "r.jsonl").code == call(*run, "brief.jsonl", "--brief").code == 0
    (folder / "cafes.csv").write_text("name,text\nLuna,noise\n")
    (folder / "cafes.txt").write_text("Luna was noisy.\n")
    (folder / "empty.jsonl").write_text("\n")
    (folder / "x.lwt").write_text("(final)=CONST(1)\n")
    (folder / "numbers.json").write_text("[1, 2]")
    (folder / "other.jsonl").write_text(
        lines([{"name": "a", "index": 0, "extractions": [{"extraction": {"smell": "bad"}}]}])
    )
    (folder / "wide.json").write_text(json.dumps(CONTEXTS))
    return folder


@pytest.fixture
def everything(folder: Path, made: Path) -> Path:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    told = call("seed", command, "-h")
    assert told.code == 0
    assert f"Example: knotwork seed {command}" in " ".join(told.out.split())


def test_help_names_every_command() -> None:
    told = call("seed", "-h")
    assert all(f" {command} " in told.out for command in COMMANDS)
    assert " seed " in call("--help").out


_RUN, _COMPUTE = "seed run noise.seed.json", "seed compute noise.seed.json"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("seed run cafes.jsonl noise.seed.json", "cafes.jsonl contains contexts, not a Formula Seed"),
        ("seed run wide.json noise.seed.json", "the argument order is: knotwork seed run SEED CONTEXTS"),
        ("seed run r.jsonl noise.seed.json", "r.jsonl contains results, not a Formula Seed"),
        ("seed run cafes.csv noise.seed.json", "cafes.csv is not JSON, so it is not a Formula Seed"),
        ("seed run x.lwt cafes.jsonl", "x.lwt is a prompt script, not a Formula Seed"),
        (f"{_RUN} noise.seed.json", "noise.seed.json is a Formula Seed, not contexts"),
        (f"{_RUN} cafes.csv --text txet", "unknown column 'txet'; did you mean 'text'?"),
        (f"{_RUN} .", "the folder . has no .parquet files"),
        (f"{_RUN} cafes.txt", "cafes.txt is not JSON; contexts are JSON objects, one per line"),
        (f"{_RUN} r.jsonl", "recompute from results with: knotwork seed compute SEED r.jsonl"),
        (f"{_RUN} empty.jsonl", "empty.jsonl has no contexts"),
        (f"{_RUN} cafes.jsonl -o r.jsonl", "r.jsonl already exists"),
        (f"{_RUN} cafes.jsonl -o cafes.jsonl --force", "cafes.jsonl is an input file"),
        (
            f"{_RUN} cafes.jsonl -o noise.seed.json --force",
            "noise.seed.json is an input file",
        ),
        (f"{_RUN} cafes.jsonl -o t.txt --format table", "a table can't be written to a file"),
        (f"{_RUN} cafes.jsonl --resume yesterday", "run 'yesterday' does not exist"),
        (f"{_RUN} cafes.jsonl --input cafes.jsonl", "the contexts are an argument"),
        (f"{_RUN} cafes.jsonl --price cheap", "--price 0.25/2"),
        ("seed run noise.seed.json", "Missing argument 'CONTEXTS'"),
        ("seed run - -", "stdin (-) can be read only once"),
        ("seed check noise.seed.json", "check takes files of all languages: knotwork check SEED"),
        ("seed noise.seed.json", "run a seed with: knotwork seed run SEED CONTEXTS"),
        ("seed rnu noise.seed.json cafes.jsonl", "'run'"),
        ("noise.seed.json", "Did you mean: knotwork seed run noise.seed.json CONTEXTS"),
        ("sensitivity noise.seed.json r.jsonl", "Did you mean 'knotwork seed sensitivity'?"),
        ("run noise.seed.json", "run it with knotwork seed run noise.seed.json CONTEXTS"),
        ("fmt noise.seed.json", "noise.seed.json is a Formula Seed"),
        (f"{_COMPUTE} cafes.jsonl", "cafes.jsonl contains contexts, not extractions"),
        (f"{_COMPUTE} brief.jsonl", "brief.jsonl has no extractions: it was written with --brief"),
        (f"{_COMPUTE} other.jsonl", "other.jsonl belongs to another seed: its fields are smell"),
        (f"{_COMPUTE} noise.seed.json", "the argument order is: knotwork seed compute SEED RESULTS"),
        (f"{_COMPUTE} r.jsonl --contexts noise.seed.json", "knotwork seed compute SEED RESULTS --contexts FILE"),
        (f"{_COMPUTE} r.jsonl -o cafes.csv", "knotwork seed run --resume RUN to complete"),
        (f"{_COMPUTE} cafes.csv", "cafes.csv is CSV; results are JSON objects, one per line"),
        (f"{_COMPUTE} r.jsonl --contexts r.jsonl", "is given both as the results and as the contexts"),
        ("seed compute r.jsonl noise.seed.json", "the argument order is: knotwork seed compute SEED RESULTS"),
        ("seed explain noise.seed.json r.jsonl VERDCIT", "did you mean VERDICT?"),
        ("seed explain noise.seed.json r.jsonl level", "level is a field of each review, not a step"),
        ("seed explain noise.seed.json r.jsonl VERDICT --context Lunna", "did you mean Luna?"),
        ("seed explain noise.seed.json r.jsonl VERDICT --context 9", "give a number from 1 to 3"),
        ("seed explain noise.seed.json empty.jsonl VERDICT", "empty.jsonl has no results"),
        (f"{_COMPUTE} empty.jsonl", "empty.jsonl has no results"),
        ("seed sensitivity noise.seed.json empty.jsonl", "empty.jsonl has no results"),
        ("seed sensitivity noise.seed.json r.jsonl SCROE", "did you mean SCORE?"),
        ("seed schema --form 003", "'003' is not one of '002', '000'"),
    ],
)
def test_wrong_usage_says_what_to_type(everything: Path, typed: str, told: str) -> None:
    before = {path.name: path.read_bytes() for path in everything.iterdir() if path.is_file()}
    result = call(*typed.split())
    assert result.code == 2, result.err
    assert told in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    lines_told = [line for line in result.err.splitlines() if not line.startswith(("Usage:", "See "))]
    assert len(lines_told) <= 2
    assert {path.name: path.read_bytes() for path in everything.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("seed run noise.seed.jsn cafes.jsonl", "the file does not exist"),
        ("seed run noise.seed.json cafs.jsonl", "did you mean cafes.jsonl?"),
        ("seed compute noise.seed.json rr.jsonl", "rr.jsonl can't be read: the file does not exist"),
        ("seed compute noise.seed.json r.jsonl --contexts nothing.jsonl", "nothing.jsonl can't be read"),
        ("seed explain noise.seed.json rr.jsonl VERDICT", "rr.jsonl can't be read: the file does not exist"),
        ("seed sensitivity noise.seed.json rr.jsonl", "rr.jsonl can't be read: the file does not exist"),
        ("seed convert nothing.seed.json", "nothing.seed.json can't be read"),
    ],
)
def test_a_file_that_is_not_there(everything: Path, typed: str, told: str) -> None:
    result = call(*typed.split())
    assert (result.code, result.out) == (3, "")
    assert told in result.err
    assert "Traceback" not in result.err


def test_contexts_that_are_none_fail_one_by_one(everything: Path) -> None:
    told = call("seed", "run", "noise.seed.json", "numbers.json", "--llm", "replay:m.cassette")
    assert told.code == 1
    assert "numbers.json, line 1: a number, not an object" in told.err
    assert "failed: 0 of 2 contexts complete · 2 failed" in told.err


def test_a_seed_that_is_no_json(folder: Path) -> None:
    write_seed(folder)
    (folder / "noise.seed.json").write_text(json.dumps(SEED)[:-1])
    told = call("seed", "run", "noise.seed.json", "cafes.jsonl")
    assert told.code == 3
    assert "-->" in told.err


@pytest.mark.slow
def test_out_in_a_folder_that_is_not_there(everything: Path) -> None:
    told = call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", "replay:m.cassette", "-o", "no/r.jsonl")
    assert told.code == 1
    assert "no/r.jsonl: No such file or directory" in told.err
    assert not (everything / "knotwork" / "runs").exists()  # none for what never began
