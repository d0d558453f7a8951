"""kill -9 of a real ``knotwork run`` at random moments, again and again: what is done is never asked, or paid, twice."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment, process
from support.examples import many
from support.served import Served, served, until

pytestmark = pytest.mark.slow

ITEMS, CHAINS, LENGTH = 120, 6, 6
IN_FLIGHT = 12


def script() -> str:
    """Return a map, chains beside it, branches from one step, and a step that joins all."""
    lines = ['(m)=EACH({(input)}, LLM("item {(item)}"), max_concurrency=8)']
    for chain in range(CHAINS):
        lines.append(f'(c{chain}.0)=LLM("chain {chain}")')
        lines += [f'(c{chain}.{n})=LLM("{chain} {n} after {{(c{chain}.{n - 1})}}")' for n in range(1, LENGTH)]
    lines += [f'(b{n})=LLM("branch {n} of {{(c0.0)}} and {{(m)}}[{n}]")' for n in range(CHAINS)]
    joined = "".join(f"{{(b{n})}}{{(c{n}.{LENGTH - 1})}}" for n in range(CHAINS))
    return "\n".join([*lines, f'(final)=LLM("end {{(m)}} {joined}")', ""])


CALLS = ITEMS + CHAINS * LENGTH + CHAINS + 1


def command(server: Served, folder: Path, *more: str) -> list[str]:
    return ["run", "--llm", server.spec, "--max-concurrency", str(IN_FLIGHT), *more]


def begun(folder: Path, words: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "knotwork", *words], cwd=folder, env=environment(folder),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def killed_and_resumed(
    folder: Path, kills: int, seed: int, *options: str, text: str = "", calls: int = CALLS, items: int = ITEMS
) -> None:
    chance = random.Random(seed)
    (folder / "s.lwt").write_text(text or script())
    (folder / "in.json").write_text(str(list(range(items))))
    fresh = ["s.lwt", "--input", "in.json"]
    with served(folder, "--delay", "0.01") as server:
        words, run_id = command(server, folder, *options, *fresh), ""
        for kill in range(kills):
            before = sum(server.asked.values())
            left = calls - len(server.asked)
            running = begun(folder, words)
            try:
                until(server.reached(before + 1 + chance.randrange(max(1, left * 2 // (kills - kill + 1)))))
            finally:
                running.kill()
                running.wait()
            (run_id,) = [path.name for path in (folder / "knotwork" / "runs").iterdir()]
            words = command(server, folder, *options, "--resume", run_id)
        done = process(*words, home=folder)
        asked = server.asked
    assert done.code == 0, done.err
    assert len(asked) == calls
    assert sum(asked.values()) <= calls + kills * IN_FLIGHT
    assert max(asked.values()) <= 1 + kills
    again = process(*words, home=folder)  # the server is gone: all of it is there
    assert (again.code, again.out) == (0, done.out), again.err
    undisturbed = folder / "undisturbed"
    undisturbed.mkdir()
    with served(undisturbed) as server:
        whole = process(
            *command(server, folder, "--no-cache", *(each for each in options if each != "--no-cache"), *fresh),
            home=folder,
        )
    assert done.out == whole.out


def test_a_run_that_is_killed_repeats_at_most_what_was_in_flight(tmp_path: Path) -> None:
    killed_and_resumed(tmp_path, 2, 7, "--no-cache")  # without it the call cache could hide what the run forgot


def test_a_script_for_each_item_and_a_function_survive_kills(tmp_path: Path) -> None:
    (tmp_path / "inner.lwt").write_text('(a)=LLM("first {(input)}")\n(final)=LLM("then {(a)} of {(input)}")')
    (tmp_path / "mine.py").write_text(
        'def count(text):\n    with open("called.txt", "a") as file:\n        file.write("x")\n    return len(text)\n'
    )
    text = """(m)=EACH({(input)}, RUN(file="inner.lwt", input={(item)}), max_concurrency=8)
(n)=EACH({(m)}, CALL("count", text={(item)}))
(rows)=JOIN(m={(m)}, n={(n)})
(final)=LLM("end {(rows)}")
"""
    options = ("--no-cache", "--functions", "mine.py")
    killed_and_resumed(tmp_path, 2, 3, *options, text=text, calls=2 * 40 + 1, items=40)
    called = (tmp_path / "called.txt").stat().st_size
    assert called <= 2 * (40 + 8)  # the run that was killed, with the calls in flight, and the undisturbed one


@pytest.mark.parametrize("seed", range(many(5)))
@pytest.mark.parametrize("options", [("--no-cache",), ()], ids=["no cache", "cache"])
def test_many_kills(tmp_path: Path, seed: int, options: tuple[str, ...]) -> None:
    killed_and_resumed(tmp_path, many(30), seed, *options)
