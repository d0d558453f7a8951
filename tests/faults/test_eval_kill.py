"""kill -9 of an evaluation, again and again: no answer is asked, or paid, twice, beyond the calls in flight."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment
from support.evaluations import LABELS, SEED, label_of, write_csv
from support.served import TESTS, Served, served, until

IN_FLIGHT = 8


def evaluation(folder: Path, count: int, reviews: int) -> None:
    """Write a seed, contexts with marks for ``support.review_server``, and a gold table in which every seventh label is wrong."""
    lines, rows = [], []
    for place in range(count):
        texts = [f"Review {place}.{number} <rating={label_of(place, number)}>" for number in range(reviews)]
        lines.append(
            {
                "name": f"drug {place}",
                "reviews": [{"id": f"{place}-{number}", "text": text} for number, text in enumerate(texts)],
            }
        )
        for number in range(reviews):
            label = label_of(place, number)
            other = LABELS[(LABELS.index(label) + 1) % 3]
            rows.append(
                {
                    "context": f"drug {place}",
                    "id": f"{place}-{number}",
                    "rating": other if (place + number) % 7 == 0 else label,
                }
            )
    (folder / "rating.seed.json").write_text(json.dumps(SEED))
    (folder / "contexts.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    write_csv(folder / "gold.csv", rows)


def child(server: Served, folder: Path, *resume: str) -> "subprocess.Popen[str]":
    words = [
        "eval",
        "rating.seed.json",
        "gold.csv",
        "--contexts",
        "contexts.jsonl",
        "--no-cache",
        "--max-concurrency",
        str(IN_FLIGHT),
    ]
    words += ["--llm", server.spec, "--repeat", "2", "--require", "rating.accuracy > 0.5"]
    if resume:
        words = ["eval", "--resume", *resume, "--no-cache", "--max-concurrency", str(IN_FLIGHT)]
    return subprocess.Popen(
        [sys.executable, "-m", "knotwork", *words],
        cwd=folder, env={**environment(folder), "PYTHONPATH": str(TESTS)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("count", "reviews", "kills"), [(12, 5, 1), (20, 6, 5)])
def test_a_killed_evaluation_pays_nothing_twice_beyond_what_was_in_flight(
    tmp_path: Path, count: int, reviews: int, kills: int
) -> None:
    evaluation(tmp_path, count, reviews)
    chance, calls, resume = random.Random(kills), 2 * count * reviews, tuple[str, ...]()
    with served(tmp_path, "--delay", "0.02", module="support.review_server") as server:
        for kill in range(kills):
            before = sum(server.asked.values())
            running = child(server, tmp_path, *resume)
            try:
                left = max(2, calls - before)
                until(server.reached(before + 1 + chance.randrange(max(1, left // (kills - kill + 1)))), 60)
            finally:
                running.kill()
                running.communicate()
            resume = (next(path.name for path in (tmp_path / "knotwork" / "runs").iterdir()),)
        last = child(server, tmp_path, *resume)
        out, said = last.communicate(timeout=120)
        assert last.returncode == 0, said
        asked = sum(server.asked.values())
    assert calls <= asked <= calls + kills * IN_FLIGHT
    report = json.loads(out)
    scores = report["candidates"][server.spec]["fields"]["rating"]
    wrong = sum((place + number) % 7 == 0 for place in range(count) for number in range(reviews))
    assert (
        scores["accuracy"]["value"] == pytest.approx(1 - wrong / (count * reviews)) and scores["repeats"]["same"] == 1.0
    )
    assert report["candidates"][server.spec]["run"]["calls"] == calls
    again = child(server, tmp_path, *resume)  # the server is gone: all answers are in the run
    out, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    assert json.loads(out)["candidates"][server.spec]["fields"] == report["candidates"][server.spec]["fields"]
