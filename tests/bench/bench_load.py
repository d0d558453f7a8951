"""Opening a graph file: the first time, and again from the prepared copy, against NetworkX's own reader.

A GraphML file of 100,000 nodes and 500,000 edges with three attributes each. Each side is a process of its own, all sides in turn;
what a command takes on the smallest graph stands beside, for start and imports are in every figure. Processor time counts, for the
machine may be busy with other things; wall time stands beside it.

Run: python tests/bench/bench_load.py [--quick]
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from peers_find import tables

COMMAND = (
    "gasl",
    "-c",
    'FIND nodes WHERE kind = "RARE" AND age > 49 AS found',
    "-c",
    "COUNT found AS many",
    "--format",
    "json",
)
NETWORKX = "import networkx, sys; print(networkx.read_graphml(sys.argv[1]).size())"
LOAD = """
import sys
from knotwork.adapters.graph_networkx import load
found = load(sys.argv[1])
found.adapter.schema
"""


def written(path: Path, nodes: int) -> None:
    """Write the graph file."""
    data, rng = tables(nodes), random.Random(1)
    words = [f"word{at}" for at in range(3000)]
    keys = [
        ("node", "kind", "string"), ("node", "age", "int"), ("node", "name", "string"), ("edge", "relation", "string"),
        ("edge", "weight", "double"), ("edge", "description", "string"),
    ]  # fmt: skip
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for at, (domain, name, type) in enumerate(keys):
            file.write(f'<key id="d{at}" for="{domain}" attr.name="{name}" attr.type="{type}"/>\n')
        file.write('<graph edgedefault="directed">\n')
        for at, values in enumerate(zip(data.kinds, data.ages, data.names, strict=True)):
            file.write(f'<node id="n{at}">{attributes(0, values)}</node>\n')
        for source, target, *values in zip(data.sources, data.targets, data.relations, data.weights, strict=True):
            told = attributes(3, (*values, " ".join(rng.choices(words, k=6))))
            file.write(f'<edge source="n{source}" target="n{target}">{told}</edge>\n')
        file.write("</graph></graphml>\n")


def attributes(first: int, values: Any) -> str:
    """Return the data elements of a node or an edge."""
    return "".join(f'<data key="d{at}">{value}</data>' for at, value in enumerate(values, first))


def measured(command: list[str], home: Path) -> tuple[float, float, float]:
    """Run a process; return its processor seconds, wall seconds and largest memory in MiB."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "KNOTWORK_HOME": str(home)})
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss / 1024


def main() -> None:
    """Print medians and the ratios that count."""
    quick = "--quick" in sys.argv[1:]
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as folder:
        graph, home = Path(folder, "g.graphml"), Path(folder, "home")
        written(graph, 2_000 if quick else 100_000)
        old = time.time() - 3600
        os.utime(graph, (old, old))
        time.sleep(2.5)  # a file that was just written is read again
        python, kw = sys.executable, [sys.executable, "-m", "knotwork"]
        work = {
            "networkx.read_graphml": [python, "-c", NETWORKX, str(graph)],
            "load and schema, no copy": [python, "-c", LOAD, str(graph)],
            "gasl, no copy": [*kw, *COMMAND, "--graph", str(graph), "--no-cache"],
            "gasl, first time": [*kw, *COMMAND, "--graph", str(graph)],
            "gasl, again": [*kw, *COMMAND, "--graph", str(graph)],
            "gasl, nx:karate_club": [*kw, "gasl", "-c", 'FIND nodes WHERE club = "Officer" AS found', "-c", "COUNT found AS many",
                                     "--format", "json", "--graph", "nx:karate_club"],
        }  # fmt: skip
        taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in work}
        for _ in range(rounds):
            for name, command in work.items():
                if name == "gasl, first time":
                    subprocess.run(
                        [*kw, "graph", "cache", "--clear"], check=True, capture_output=True,
                        env={**os.environ, "KNOTWORK_HOME": str(home)},
                    )  # fmt: skip
                taken[name].append(measured(command, home))
        size = graph.stat().st_size
        entries = json.loads(
            subprocess.run(
                [*kw, "graph", "cache", "--format", "json"], check=True, capture_output=True,
                env={**os.environ, "KNOTWORK_HOME": str(home)},
            ).stdout
        )  # fmt: skip
    print(
        f"{size / 1e6:,.0f} MB of GraphML, copy {entries[0]['bytes'] / 1e6 if entries else 0:,.0f} MB, {rounds} rounds, medians"
    )
    print(f"{'':<26} {'processor':>10} {'wall':>10} {'memory':>10}")
    middle = {name: [median(column) for column in zip(*each, strict=True)] for name, each in taken.items()}
    for name, (processor, wall, memory) in middle.items():
        print(f"{name:<26} {processor:>8.2f} s {wall:>8.2f} s {memory:>6.0f} MiB")
    ratio = {
        "first time, time": middle["gasl, first time"][0] / middle["gasl, no copy"][0],
        "first time, memory": middle["gasl, first time"][2] / middle["gasl, no copy"][2],
        "again, time": middle["gasl, again"][0] / middle["gasl, no copy"][0],
    }
    for name, value in ratio.items():
        print(f"{name:<26} {value:>8.2f} x of without a copy")
    print(f"{'again':<26} {middle['gasl, again'][1]:>8.2f} s for the whole command, target 1 s")


if __name__ == "__main__":
    main()
