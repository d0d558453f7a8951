"""Prints the size of the source, its most frequent base names, and how many files one operation passes through:
``python tests/bench/bench_structure.py [--quick]``.

A file counts for an operation if one of its functions is called while the operation runs, once everything is imported. A change is a call
from one file into another one.
"""

import argparse
import asyncio
import contextlib
import io
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from knotwork import gasl
from support.agents import GRAPH, connected, told
from support.command import cassette
from support.traversing import Planning, asked, done, plan

ROOT = Path(__file__).parents[2]
FOLDERS = ("lang", "adapters", "runtime")
CEILINGS = {
    "files": 430,
    "lines": 90_000,
    "lines a file": 500,
    "a base name": 3,
    "names in -ing": 0,
    "lines of tests": 64_000,
}
MOST_FILES = {"a step of ask": 60, "MCP's run_plan": 40, "knotwork run": 35, "FIND": 30}


def sources(folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def lines(path):
    return path.read_text(encoding="utf-8").count("\n")


def sizes():
    """Return the figures that have ceilings, and the most frequent base names."""
    found = sources(FOLDERS)
    names = Counter(path.stem for path in found if path.stem != "__init__")
    return {
        "files": len(found),
        "lines": sum(map(lines, found)),
        "lines a file": max(map(lines, found)),
        "a base name": max(names.values()),
        "names in -ing": sum(count for name, count in names.items() if name.endswith("ing")),
        "lines of tests": sum(map(lines, sources(["tests"]))),
    }, names.most_common(8)


class Trace:
    """The files of the package whose functions are called, on every thread, and the changes from one to another."""

    def __init__(self):
        self.files = set()
        self.changes = 0
        self.roots = tuple(f"{ROOT / folder}{os.sep}" for folder in FOLDERS)

    def __call__(self, frame, event, argument):
        if event != "call" or not (name := frame.f_code.co_filename).startswith(self.roots):
            return
        self.files.add(name)
        before = frame.f_back
        while before is not None and not before.f_code.co_filename.startswith(self.roots):
            before = before.f_back
        self.changes += before is not None and before.f_code.co_filename != name

    def __enter__(self):
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)


def traced(work):
    """Do the work once to have everything imported, and once more with its calls traced."""
    work()
    with Trace() as trace:
        work()
    return len(trace.files), trace.changes


def find():
    with gasl.open(GRAPH) as executor:
        executor.execute_one("FIND nodes WHERE degree > 9 AS warm")

        def work():
            executor.execute_one("FIND nodes WHERE degree > 10 AS some")

        return traced(work)


def run(folder):
    from knotwork.runtime.interfaces.cli import main

    script = folder / "x.lwt"
    script.write_text('(a)=LLM("Name a colour")\n(final)=LLM("Say {(a)} twice")\n', encoding="utf-8")
    model = cassette(folder / "model.jsonl", {"Name a colour": "red", "Say": "red red"})

    def work():
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            main(["run", str(script), "--llm", model])

    return traced(work)


def run_plan():
    text = '{"plan_id": "p", "why": "w", "commands": ["FIND nodes WHERE degree > 10 AS some", "COUNT some AS n"]}'

    async def both():
        async with connected() as client:
            await told(client, "run_plan", plan=text)
            with Trace() as trace:
                await told(client, "run_plan", plan=text)
            return len(trace.files), trace.changes

    return asyncio.run(both())


def ask():
    """A step is what an answer with one plan does beyond an answer without one."""

    def work():
        asked(
            Planning(
                plan("FIND nodes AS n", "COUNT n AS c", "DECLARE size AS LIST", "UPDATE size WITH c"),
                done("some", "size"),
            )
        )

    return traced(work)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same: it takes a few seconds")
    parser.parse_args()
    found, names = sizes()
    print(f"{'size':<20}{'now':>9}{'ceiling':>9}")
    for name, count in found.items():
        print(f"{name:<20}{count:>9,}{CEILINGS[name]:>9,}")
    print("base names:", ", ".join(f"{name} {count}" for name, count in names))
    print(f"\n{'operation':<20}{'files':>9}{'ceiling':>9}{'changes':>9}")
    with tempfile.TemporaryDirectory() as name:
        os.environ["KNOTWORK_HOME"] = str(Path(name) / "home")
        for operation, work in (
            ("FIND", find), ("knotwork run", lambda: run(Path(name))), ("MCP's run_plan", run_plan), ("a step of ask", ask),
        ):  # fmt: skip
            files, changes = work()
            print(f"{operation:<20}{files:>9,}{MOST_FILES[operation]:>9,}{changes:>9,}")


if __name__ == "__main__":
    main()
