"""``knotwork seed export`` is killed at any moment: the file is the old one or the new one, and complete."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from knotwork import seed
from support.alone import alone_in
from support.cafe_seed import seed_model, write_seed
from support.command import call, environment

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]
COPIES = 5_000


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_killed_export_leaves_the_old_or_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    pytest.importorskip("duckdb")
    folder = alone_in(tmp_path, monkeypatch)
    write_seed(folder)
    assert call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", seed_model(folder / "m.cassette")).code == 0
    (run,) = (folder / "knotwork" / "runs").iterdir()
    first = json.loads((run / "results.jsonl").read_text().splitlines()[0])
    with open(run / "results.jsonl", "w") as file:
        for index in range(COPIES):
            file.write(json.dumps({**first, "index": index}) + "\n")
    out = folder / f"v{suffix}"
    command = [sys.executable, "-m", "knotwork", "seed", "export", run.name, "--out", out.name, "--force"]
    began = time.monotonic()
    subprocess.run(command, env=environment(folder), cwd=folder, check=True, capture_output=True)
    taken = time.monotonic() - began
    whole, rng, killed = out.read_bytes(), random.Random(1), 0
    for old in (b"", b"old"):
        for _ in range(3):
            out.unlink(missing_ok=True)
            if old:
                out.write_bytes(old)
            with subprocess.Popen(command, env=environment(folder), cwd=folder, stderr=subprocess.DEVNULL) as running:
                time.sleep(rng.uniform(0.3, 1.0) * taken)
                running.kill()
                killed += running.wait() != 0
            found = out.read_bytes() if out.exists() else b""
            assert found == old or len(found) >= len(whole) * 0.9
    assert killed
    assert seed.export(run, out) == COPIES  # nothing that a killed export left is in the way


def test_a_run_under_way_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = alone_in(tmp_path, monkeypatch)
    write_seed(folder)
    model = seed_model(folder / "m.cassette")
    command = [sys.executable, "-m", "knotwork", "seed", "run", "noise.seed.json", "-", "--llm", model]
    with subprocess.Popen(
        command, env=environment(folder), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write((folder / "cafes.jsonl").read_bytes().splitlines(keepends=True)[0])
        running.stdin.flush()
        running.stdout.readline()
        (run,) = (folder / "knotwork" / "runs").iterdir()
        assert seed.export(run, folder / "v.csv") == 1
        running.kill()
    assert seed.export(run, folder / "v.csv", extractions=folder / "e.csv") == 1
    assert "Luna" in (folder / "v.csv").read_text()
