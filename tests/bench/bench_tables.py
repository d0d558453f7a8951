"""Contexts from flat tables: 1,000,000 rows in 50,000 groups, from CSV (in memory, and spilled) and from Parquet (sorted by DuckDB).

Each side is a process of its own, all sides in turn. Rows per second of processor time count, for the machine may be busy with other
things; wall time stands beside it. The peak is the resident memory of the process, imports included.

Run: python tests/bench/bench_tables.py [--quick]
"""

import csv
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

READ = """
import json, sys, time
from knotwork import seed
from knotwork.runtime.seeds.table_contexts import TableContexts
began, wall = time.process_time(), time.perf_counter()
made = seed.contexts(sys.argv[1], group="product_id", text="body", columns={"stars": "rating", "date": "created_at"}).bound({})
if sys.argv[2] != "0":
    made.memory = int(sys.argv[2]) << 20
groups = rows = 0
for context in made:
    groups += 1
    rows += len(context["reviews"])
spent = time.process_time() - began
status = open("/proc/self/status").read()  # ru_maxrss would include the memory of the parent process
peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps([groups, rows, spent, time.perf_counter() - wall, peak]))
"""
TARGETS = {"CSV": 150_000, "Parquet": 300_000}
SIDES = (
    ("CSV", "r.csv", 0),
    ("Parquet", "r.parquet", 0),
    ("CSV, spilled", "r.csv", 16),
)


def write(folder: Path, rows: int, groups: int) -> None:
    """Write the table as CSV and as Parquet."""
    import duckdb

    rng = random.Random(1)
    words = [f"word{number}" for number in range(3000)]
    with open(folder / "r.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["product_id", "body", "rating", "created_at"])
        for _ in range(rows):
            day = f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
            writer.writerow([rng.randrange(groups), " ".join(rng.choices(words, k=15)), rng.randint(1, 5), day])
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM '{folder}/r.csv') TO '{folder}/r.parquet'")


def measured(path: Path, memory: int) -> list[Any]:
    """Return the figures of a process that reads the table."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path), str(memory)], capture_output=True, check=True, text=True
    )
    return list(json.loads(done.stdout))


def main() -> None:
    quick = "--quick" in sys.argv
    rows, groups, rounds = (20_000, 1_000, 1) if quick else (1_000_000, 50_000, 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows, groups)
        sizes = {side: (folder / file).stat().st_size / 2**20 for side, file, _ in SIDES}
        found: dict[str, list[list[Any]]] = {side: [] for side, _, _ in SIDES}
        for _ in range(rounds):
            for side, file, memory in SIDES:
                found[side].append(measured(folder / file, memory))
    print(f"{rows:,} rows, {groups:,} groups; median of {rounds}")
    print("| source | file | rows/s of processor time | target | rows/s of wall time | peak |")
    print("|---|---|---|---|---|---|")
    for side, runs in found.items():
        assert {(run[0], run[1]) for run in runs} == {(groups, rows)}
        spent, wall, peak = (median(run[place] for run in runs) for place in (2, 3, 4))
        target = f"{TARGETS[side]:,}" if side in TARGETS else ""
        print(
            f"| {side} | {sizes[side]:.0f} MB | {rows / spent:,.0f} | {target} | {rows / wall:,.0f} | {peak:.0f} MiB |"
        )


if __name__ == "__main__":
    main()
