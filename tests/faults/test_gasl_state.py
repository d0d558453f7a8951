"""GASL over a state that is damaged, and a program that is killed: what was acknowledged is there."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.adapters.llm.middleware import Own
from support.command import environment
from support.examples import many
from support.graphs import persons


def damaged(data: bytes, at: int) -> list[bytes]:
    """Return the file cut at a byte, with the byte changed, without it, and with one more."""
    made = [data[:at], data[:at] + b"9" + data[at:]]
    return (
        made
        if at == len(data)
        else [*made, data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :], data[:at] + data[at + 1 :]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("stride", [41, 5])
def test_a_damaged_state_is_refused_or_a_state_that_was_acknowledged(stride: int, tmp_path: Path) -> None:
    source, copy = tmp_path / "state", tmp_path / "copy"
    wholes: list[Any] = []
    with gasl.open(persons(), source) as executor:
        for text in ("DECLARE keep AS LIST", "FIND nodes AS x", "UPDATE keep WITH x"):
            executor.execute_one(text)
            wholes.append((executor.state.as_json()["variables"], len(executor.state.history)))
    wholes.insert(0, ({}, 0))
    (source / "state.json").unlink()
    (journal,) = source.glob("wal-*.jsonl")
    data, refused = journal.read_bytes(), 0
    for at in range(0, len(data) + 1, stride):
        for new in damaged(data, at):
            if new == data:
                continue
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy)
            (copy / journal.name).write_bytes(new)
            try:
                with gasl.open(persons(), copy) as executor:
                    found = executor.state.as_json()["variables"], len(executor.state.history)
            except gasl.StoreError as error:
                refused += 1
                assert "damaged" in error.message
                assert "byte" in error.message
            else:
                assert found in wholes
    assert refused


CHILD = """
import sys
from knotwork import gasl
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, sys.argv[1] + "/..")
from support.graphs import persons
from test_gasl_state import COPY, Copying
with gasl.open(persons(), sys.argv[2], Copying(sys.argv[3])) as executor:
    for text in COPY:
        executor.execute_one(text)
        print(len(executor.state.history), executor.state.hash, flush=True)
"""
COPY = [
    "DECLARE said AS LIST",
    "DECLARE last AS DICT",
    "FIND nodes AS x",
    *(text for n in range(8) for text in (
        f'PROCESS x USING "Copy, {n}" AS y RETURNING (name TEXT, n INT)', "UPDATE said WITH y", f"SELECT y WHERE n = {n} AS z",
        "UPDATE said WITH z",
    )),
]  # fmt: skip


class Copying(Own):
    """Answers slowly, and writes down what it was asked."""

    def __init__(self, log: str) -> None:
        self.log = Path(log)

    async def generate(self, prompt: str, **options: Any) -> Any:
        import asyncio
        import re

        from knotwork.adapters.llm import Completion

        await asyncio.sleep(0.01)
        (number,) = re.findall(r"Copy, (\d+)", prompt)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
        return Completion(json.dumps({"rows": [{"ids": ["i1"], "name": f"copy {number}", "n": int(number)}]}))

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.slow
def test_killed_at_any_moment_what_was_acknowledged_is_there(tmp_path: Path) -> None:
    """Ten kills; then the program is run to its end, and the state is that of a run that nobody killed."""
    import random

    moments, state, log = random.Random(3), tmp_path / "state", tmp_path / "asked"
    words = [sys.executable, "-P", "-c", CHILD, str(Path(__file__).parent), str(state), str(log)]
    env = environment(tmp_path)
    acknowledged = 0
    for _ in range(many(50)):
        with subprocess.Popen(words, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline() for _ in range(moments.randrange(1, 12))]
            time.sleep(moments.random() * 0.02)
            os.kill(child.pid, signal.SIGKILL)
            lines += [line for line in child.stdout if line.endswith("\n")]
        number, digest = lines[-1].split()
        with gasl.open(persons(), state) as executor:
            assert len(executor.state.history) in (int(number), int(number) + 1)
            if len(executor.state.history) == int(number):
                assert executor.state.hash == digest
            assert len(executor.state.history) >= acknowledged
            acknowledged = len(executor.state.history)
    subprocess.run(words, env=env, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    subprocess.run(
        [*words[:-2], str(tmp_path / "whole"), str(log)], env=env, cwd=tmp_path, check=True, capture_output=True
    )
    with gasl.open(persons(), state) as killed, gasl.open(persons(), tmp_path / "whole") as whole:
        assert killed.state.as_json()["variables"] == whole.state.as_json()["variables"]
        assert [item["n"] for item in killed.state.get("said")] == list(range(8))
    assert gasl.replay(state, persons()).identical
