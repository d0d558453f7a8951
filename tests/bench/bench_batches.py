"""Batches: the CPU time to collect and to place a request, and kills around each step of a submission.

For the first figure, a run with many reviews fills its cache by batches of a server in the same process (its time is included).
For the second, a run in a process of its own kills itself with SIGKILL before or after a record of its journal, in turn, and is
resumed by another process. Each run must end with all results, and the server must have one batch. With Anthropic's API, batches
have no marks.

Run: python tests/bench/bench_batches.py [--kills N] [--reviews N] [--quick]. Nothing is asserted on time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from knotwork import seed
from support.batch_server import BatchServer, in_thread
from support.command import environment, process
from support.folders import TESTS
from support.message_batch_server import MessageBatchServer
from support.review_server import answer_review, contexts
from support.seeds import SEED as FOOD

KEY = "sk-ant-test-0123456789abcdef"
STEPS = [(step, when) for step in range(5) for when in ("before", "after")]
"""The records planned, intent, file, submitted, answered; Anthropic's API has no file, so the last ones are none."""


def filled(reviews: int) -> float:
    """Return the milliseconds of CPU time per request of a run by batches."""
    with tempfile.TemporaryDirectory() as name, in_thread(BatchServer(answer=answer_review)) as server:
        os.environ["KNOTWORK_HOME"], os.environ["KNOTWORK_BATCH_POLL"] = name, "0.05"
        began = time.process_time()
        found = seed.collect_sync(
            seed.load(FOOD), contexts(reviews // 50, 50), llm=f"{server.url}#m", batch=True, record=True
        )
        spent = time.process_time() - began
        assert all(each.status == "complete" for each in found)
        return 1e3 * spent / reviews


def kill(server: BatchServer | MessageBatchServer, folder: Path, step: int, when: str) -> str:
    """Kill a run, resume it, and return what became of it."""
    server.batches.clear()
    args = ["seed", "run", str(folder / "food.seed.json"), str(folder / "food.jsonl")]
    more = {"KNOTWORK_BATCH_POLL": "0.01"}
    if isinstance(server, MessageBatchServer):
        spec = "anthropic:m"
        more |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
    else:
        spec = f"{server.url}#m"
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        child = subprocess.run(
            [sys.executable, "-m", "support.batch_child", str(step), when, *args, "--llm", spec, "--batch"],
            env=environment(home, PYTHONPATH=str(TESTS), **more), cwd=home, capture_output=True, check=False,
        )  # fmt: skip
        if child.returncode != -9:
            return f"not killed (exit code {child.returncode})"
        (run,) = (each.name for each in (home / "knotwork" / "runs").iterdir())
        before = len(server.batches)
        done = process(*args, "--resume", run, "--batch", home=home, env=more)
        if len(server.batches) != 1:
            return f"{len(server.batches)} batches"
        if done.code:
            return f"exit code {done.code}: {done.err[-200:]}"
        whole = [json.loads(line)["status"] for line in done.out.splitlines()] == ["complete"] * 3
        return f"resumed, one batch ({'made before' if before else 'made after'} the kill)" if whole else "incomplete"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--reviews", type=int, default=5_000)
    parser.add_argument("--quick", action="store_true", help="few reviews and kills, to see that the script runs")
    given = parser.parse_args()
    if given.quick:
        given.kills, given.reviews = 2, 100
    print(f"{given.reviews:,} requests: {filled(given.reviews):.2f} ms of CPU time each, with the server")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "food.seed.json").write_text(json.dumps(FOOD))
        (folder / "food.jsonl").write_text("".join(json.dumps(each) + "\n" for each in contexts(3, 4)))
        for made, steps in ((BatchServer, STEPS), (MessageBatchServer, STEPS[:8])):
            found: Counter[str] = Counter()
            with in_thread(made(answer=answer_review)) as server:
                for number in range(given.kills // 2):
                    found[kill(server, folder, *steps[number % len(steps)])] += 1
            twice = sum(count for what, count in found.items() if what == "2 batches")
            print(f"{made.__name__}, {given.kills // 2} kills, {twice} batches submitted twice:")
            for what, count in found.most_common():
                print(f"  {count:3} {what}")


if __name__ == "__main__":
    main()
