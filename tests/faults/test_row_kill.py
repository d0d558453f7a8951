"""kill -9 of a script's run over rows: no row is lost, and no answered call is repeated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment
from support.served import served, until

ROWS, IN_FLIGHT = 30, 4
SCRIPT = """
(topic)=LLM('Topic of {(input)}["text"]')
(final)=LLM('Summary of {(input)}["text"], about {(topic)}')
"""


@pytest.mark.slow
def test_a_killed_run_repeats_at_most_what_was_in_flight(tmp_path: Path) -> None:
    (tmp_path / "s.lwt").write_text(SCRIPT)
    (tmp_path / "r.csv").write_text("id,text\n" + "".join(f"{n},review number {n}\n" for n in range(ROWS)))
    with served(tmp_path, "--delay", "0.02") as server:

        def child(*words: str) -> "subprocess.Popen[str]":
            command = ["run", "s.lwt", "--each", "r.csv", "--llm", server.spec, "--out", "o.jsonl", "--no-cache"]
            command += ["--max-concurrency", str(IN_FLIGHT), *words]
            return subprocess.Popen(
                [sys.executable, "-m", "knotwork", *command], cwd=tmp_path, env=environment(tmp_path),
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

        words: tuple[str, ...] = ()
        for requests in (25,):
            running = child(*words)
            try:
                until(server.reached(requests), 60)
            finally:
                running.kill()
                running.communicate()
            assert not (tmp_path / "o.jsonl").exists()
            (run,) = (tmp_path / "knotwork" / "runs").iterdir()
            words = ("--resume", run.name)
        last = child(*words)
        _, said = last.communicate(timeout=120)
        assert last.returncode == 0, said
        asked = server.asked
    assert len(asked) == 2 * ROWS
    assert sum(asked.values()) <= 2 * ROWS + IN_FLIGHT
    results = [json.loads(line) for line in (tmp_path / "o.jsonl").read_bytes().splitlines()]
    assert [each["index"] for each in results] == list(range(ROWS))
    assert all(each["status"] == "complete" for each in results)
