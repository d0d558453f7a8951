"""CLASSIFY of a program with workers: calls per second, and the processor time of driver and workers.

    python tests/bench/bench_program_workers.py [--quick] [--items N]

Each item is one call. The model server is a process of its own that answers at once, so that the processor is the limit. Each run is a
process of its own, all in turn: without workers, with one worker, with two. Their values must be equal. The times on the clock
include the start of the workers.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from knotwork import gasl

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
from bench.bench_scale import Watch  # noqa: E402
from support.program_server import PROGRAM, graph_of  # noqa: E402

CLASSIFY = PROGRAM.rpartition("PROCESS")[0]


def run(spec: str, graph: str, workers: int) -> dict[str, Any]:
    """Run the program and return what it took."""
    watch = Watch()
    watch.start()
    with gasl.open(graph, llm=spec, max_concurrency=32, workers=workers or None) as executor:
        began, busy = perf_counter(), process_time()
        rated = executor.run_plan(CLASSIFY)[-1]
        seconds, driver = perf_counter() - began, process_time() - busy
        watch.look()
    watch.is_over.set()
    assert rated.status == "success", rated
    value = sha256(json.dumps(rated.value).encode()).hexdigest()
    return {"seconds": seconds, "driver": driver, "workers": sum(watch.seconds.values()), "value": value}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--items", type=int, help="default: 4,000, or 200 with --quick")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        spec, graph, workers = given.child
        print(json.dumps(run(spec, graph, int(workers))))
        return
    began, items = time.strftime("%H:%M"), given.items or (200 if given.quick else 4_000)
    words = [sys.executable, "-m", "support.program_server"]
    server = subprocess.Popen(words, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    values = set()
    try:
        assert server.stdout is not None
        spec = f"{server.stdout.readline().strip()}#m"
        with tempfile.TemporaryDirectory() as folder:
            graph = Path(folder, "dishes.json")
            graph.write_text(graph_of(items))
            print(
                f"{items:,} calls\n{'':12} {'seconds':>8} {'calls/s':>8} {'CPU ms a call: driver':>22} {'workers':>8}"
            )
            for workers in (0, 1, 2):
                command = [sys.executable, __file__, "--child", spec, str(graph), str(workers)]
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                values.add(found["value"])
                print(
                    f"{f'{workers} workers' if workers else 'one process':12} {found['seconds']:8.2f} "
                    f"{items / found['seconds']:8.0f} {found['driver'] / items * 1e3:22.2f} {found['workers'] / items * 1e3:8.2f}"
                )
    finally:
        server.kill()
    assert len(values) == 1, "the values differ"
    print(f"begun at {began}")


if __name__ == "__main__":
    main()
