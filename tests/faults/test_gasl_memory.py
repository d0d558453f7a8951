"""Programs that would fill the memory end with an error or a partial result, and the process grows by little more than 256 MiB."""

import json
import subprocess
import sys

import pytest

ROOM = 300
"""MiB: the limit of 256 MiB is an estimate."""

CHILD = """
import json, os, resource, sys
import networkx as nx
from knotwork import gasl

graph = nx.DiGraph()
for at in range(3_162):
    graph.add_node(at, k=1, w=at * 0.5, name=f"name {at % 500}", text="ab" * 8_000 + str(at), mixed=at if at % 2 else f"x{at}")
before, commands = json.loads(sys.argv[1])
with gasl.open(graph, caps=gasl.Caps(timeout_s=20, max_results=100)) as executor:
    for text in before:
        executor.execute_one(text)
    # A process begins with the peak of the one that started it, so fill up to the peak first.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resident = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    ballast = b"x" * max(0, (peak - resident) * 1024)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = [executor.execute_one(text).status for text in commands]
    print(json.dumps([status, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024]))
"""

JOINED = ["FIND nodes AS n", "JOIN n WITH n ON k AS j"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("before", "command", "statuses"),
    [
        (["FIND nodes AS n"], 'SELECT n FIELDS replace(text, "a", "aaaaaaaaaaaaaaaaaaaaaaaa") AS y AS x', {"error"}),
        (["FIND nodes AS n"], 'UNNEST n BY split(replace(text, "b", "b1 "), " ") AS y AS x', {"error", "partial"}),
        (JOINED, "SELECT j FIELDS w * right.w AS p AS x", {"partial"}),
        (JOINED, "AGGREGATE j BY name COMPUTE sum(w), max(right.w) AS x", {"success", "partial", "error"}),
        (JOINED, "COUNT j BY mixed AS x", {"partial", "error"}),
        (JOINED, "RANK j BY w DESC AS x", {"partial", "error"}),
        (JOINED, "SELECT DISTINCT j AS x", {"error"}),
        (JOINED, "UNION j WITH n AS x", {"error"}),
    ],
)  # fmt: skip
def test_memory_is_bounded(before: list[str], command: str, statuses: set[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps([before, [command]])], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    (status,), grown = json.loads(run.stdout.splitlines()[-1])
    assert status in statuses
    assert grown <= ROOM, f"{grown:.0f} MiB"
