"""Label the same reviews with knotwork and with other tools: time, CPU, what a killed run pays twice, what faulty answers do to the values.

    python tests/bench/bench_peers.py [--reviews FILE] [--venvs FOLDER] [--peers docetl,lotus,instructor,promptfoo] [--rounds N]
        [--parts time,kill,faults] [--quick]

FILE has the 979 drug reviews as JSON lines (default: reviews/drug_reviews.jsonl in the tests' data folder; without it, reviews are made
up).
A model server in a process of its own answers each review with its stored label after 100 ms and counts each request. Each tool runs in
a process of its own, with 16 calls at a time and without any cache beforehand, the way that its documentation shows first
(``peers_reviews.py``):

- seconds and CPU seconds of the tool's processes, for all reviews and for one; the tools run in turn
- kill -9 when half of the reviews are answered, then the command again (knotwork: with ``--resume``): how many calls are paid twice
- 5 % of the reviews get a faulty answer, once or each time: values right, rows without a value, values wrong without any notice

A tool has a second row with its option for such a case if the option is off by default (LOTUS and instructor: a cache on disk).

The peers are optional: FOLDER has a virtual environment for each Python peer (``FOLDER/docetl/bin/python``) and ``promptfoo/node_modules``;
without it, this Python and the PATH are looked at. A peer that is not there is left out, with the reason. ``--quick`` takes 60 reviews
and one round, and each fault once. Other work on the machine stretches the seconds: compare CPU seconds, within one run.
"""

import argparse
import csv
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
import peers_reviews  # noqa: E402
from peers_reviews import LABELS, MODEL, Outcome  # noqa: E402
from support.folders import DATA, EXAMPLES  # noqa: E402
from support.label_server import fault_of, mark  # noqa: E402

DELAY, AT_ONCE, FAULTS = 0.1, 16, 0.05


@attrs.frozen
class Tool:
    """A tool: ``command`` starts a run in a folder; ``again`` goes on after a kill (default: the same); ``read`` gives id → outcome."""

    name: str
    command: list[str]
    read: Callable[[Path], Mapping[str, Outcome]]
    again: Callable[[Path], list[str]] | None = None
    variant: str = ""
    """It is the same tool with an option that it does not use by itself: measured in this part only."""


@attrs.frozen
class Ended:
    """How a process ended: its exit code, seconds, and CPU seconds with those of its children; ``said`` is the end of its stderr."""

    code: int
    seconds: float
    cpu: float
    said: str


def knotwork_command(folder: Path) -> list[str]:
    """Return the command after a kill: the stored run of this folder goes on."""
    (run,) = (folder / "home/knotwork/runs").iterdir()
    return [*knotwork().command, "--resume", run.name]


def knotwork() -> Tool:
    """Return ``knotwork seed run`` over a flat CSV file; each row is a context."""
    words = "seed run drugs.seed.json reviews.csv --out results.jsonl --extractions values.csv --max-concurrency"
    command = [sys.executable, "-m", "knotwork", *words.split(), str(AT_ONCE), "--llm", f"{{url}}#{MODEL}"]

    def read(folder: Path) -> dict[str, Outcome]:
        with (folder / "values.csv").open(encoding="utf-8", newline="") as file:
            return {row["id"]: Outcome(row["opinion"] or None, row["error"]) for row in csv.DictReader(file)}

    return Tool("knotwork", command, read, knotwork_command)


def tools(names: list[str], venvs: Path | None) -> list[Tool]:
    """Return knotwork and the peers that are there; print the reason for each that is not."""
    found = [knotwork()]
    for name in names:
        program = peers_reviews.program(name, venvs)
        if isinstance(program, str):
            print(f"{name} is left out: {program}")
            continue
        command = [sys.executable, peers_reviews.__file__, name, "{url}", *program]
        if name != "promptfoo":
            command = [*program, peers_reviews.__file__, name, "{url}"]
        version = peers_reviews.version(name, program)
        found.append(Tool(f"{name} {version}", command, peers_reviews.READERS[name]))
        if name in peers_reviews.VARIANTS:
            part, option = peers_reviews.VARIANTS[name]
            first = command if option == "--resume" else [*command, option]
            found.append(
                attrs.evolve(
                    found[-1], name=f"{found[-1].name} {option}", command=first, variant=part,
                    again=lambda _, words=[*command, option]: words,
                )
            )  # fmt: skip
    return found


@contextmanager
def served(labels: Path, *more: str) -> Iterator[str]:
    """Serve labels from a process of its own; yield its address."""
    words = [sys.executable, "-m", "support.label_server", "--labels", str(labels), "--delay", str(DELAY), *more]
    server = subprocess.Popen(words, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.communicate()


def stats(url: str) -> dict[str, Any]:
    """Return what the server counted."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as reply:
        found: dict[str, Any] = json.load(reply)
        return found


def prepare(folder: Path, reviews: Mapping[str, str]) -> None:
    """Write the inputs of every tool into ``folder``."""
    folder.mkdir()
    shutil.copy(EXAMPLES / "drugs/drugs.seed.json", folder)
    texts = [{"id": key, "text": f"{text} {mark(key)}"} for key, text in reviews.items()]
    with (folder / "reviews.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"])
        writer.writeheader()
        writer.writerows(texts)
    (folder / "reviews.json").write_text(json.dumps(texts), encoding="utf-8")


def start(command: list[str], url: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a tool in ``folder``, in a session and with a home of its own: no cache of an earlier run is there."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {
        "HOME": home,
        "KNOTWORK_HOME": home / "knotwork",
        "OPENAI_API_BASE": url,
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "k",
    }
    with (folder / "stdout").open("ab") as out, (folder / "stderr").open("ab") as err:
        return subprocess.Popen(
            [word.replace("{url}", url) for word in command], cwd=folder, stdout=out, stderr=err, start_new_session=True,
            env={**os.environ, **{name: str(value) for name, value in own.items()}, **peers_reviews.QUIET},
        )  # fmt: skip


def ended(process: subprocess.Popen[bytes], folder: Path, began: float) -> Ended:
    """Wait for a tool."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(process.returncode, time.perf_counter() - began, used.ru_utime + used.ru_stime, _end(folder))


def _end(folder: Path) -> str:
    return (folder / "stderr").read_text(encoding="utf-8", errors="replace")[-2000:]


def run(tool: Tool, url: str, folder: Path) -> Ended:
    """Run a tool from its start to its end."""
    began = time.perf_counter()
    return ended(start(tool.command, url, folder), folder, began)


class Bench:
    """What the measurements share: the reviews, their labels, a folder for each run."""

    def __init__(self, reviews: Mapping[str, str], labels: Mapping[str, str], folder: Path) -> None:
        self.reviews, self.labels, self.folder, self.made = reviews, labels, folder, 0
        self.labels_file = folder / "labels.json"
        self.labels_file.write_text(json.dumps(labels), encoding="utf-8")
        self.shares: list[float] = []

    def fresh(self, reviews: Mapping[str, str]) -> Path:
        """Return a folder for a run, with its inputs."""
        self.made += 1
        folder = self.folder / str(self.made)
        prepare(folder, reviews)
        return folder

    def counted(self, tool: Tool, folder: Path, code: int) -> Counter[str]:
        """Compare what a run wrote with the labels: right, told (no value, with an error), lost (no value, no error), wrong.

        A run that fails (exit code ``code``) and writes nothing has told so for each review.
        """
        try:
            found = tool.read(folder)
        except (OSError, ValueError, KeyError) as error:  # nothing was written
            print(f"  {tool.name}: no output, exit code {code}: {error}")
            found = dict.fromkeys(self.reviews, Outcome(None, "no output")) if code else {}
        counts: Counter[str] = Counter()
        for key in self.reviews:
            value, error = found.get(key, Outcome(None, ""))
            if error or value is None:
                counts["told" if error else "lost"] += 1
            else:
                counts["right" if value == self.labels[key] else "wrong"] += 1
        return counts

    def timed(self, tool: Tool, count: int) -> tuple[Ended, int]:
        """Run over the first ``count`` reviews; return how it ended, and the calls it made."""
        reviews = dict(list(self.reviews.items())[:count])
        folder = self.fresh(reviews)
        with served(self.labels_file) as url:
            end, seen = run(tool, url, folder), stats(url)
        if count == len(self.reviews):
            self.shares.append(seen["share"])
            counts = self.counted(tool, folder, end.code)
            if end.code or counts["right"] != count:
                print(f"  {tool.name}: exit code {end.code}, {dict(counts)}\n{end.said}")
            if seen["most_in_flight"] != AT_ONCE:
                print(f"  {tool.name}: {seen['most_in_flight']} calls at a time")
        return end, seen["requests"]

    def killed(self, tool: Tool) -> dict[str, Any]:
        """Kill a run when half of the reviews have come in, go on, and count the calls."""
        folder = self.fresh(self.reviews)
        with served(self.labels_file) as url:
            process, half = start(tool.command, url, folder), len(self.reviews) // 2
            while stats(url)["reviews"] < half and process.poll() is None:
                time.sleep(0.02)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            else:
                print(f"  {tool.name} ended by itself, exit code {process.returncode}\n{_end(folder)}")
            time.sleep(3 * DELAY)
            before = stats(url)["requests"]
            began = time.perf_counter()
            end = ended(start(tool.again(folder) if tool.again else tool.command, url, folder), folder, began)
            after = stats(url)
        counts = self.counted(tool, folder, end.code)
        if end.code or counts["right"] != len(self.reviews):
            print(f"  {tool.name}, resumed: exit code {end.code}, {dict(counts)}\n{end.said}")
        return {
            "before": before,
            "after": after["requests"] - before,
            "twice": after["again"],
            "right": counts["right"],
        }

    def faulty(self, tool: Tool, *more: str) -> dict[str, Any]:
        """Run with faulty answers."""
        folder = self.fresh(self.reviews)
        with served(self.labels_file, "--faults", str(FAULTS), *more) as url:
            end, seen = run(tool, url, folder), stats(url)
        return {**self.counted(tool, folder, end.code), "requests": seen["requests"], "code": end.code}


def read_reviews(path: Path, most: int | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return texts and labels by id; without the file, made-up reviews."""
    if path.is_file():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()][:most]
    else:
        print(f"{path} is missing: made-up reviews")
        made = "I took it for {} weeks. " * 20
        rows = [
            {"id": f"d{at}", "text": made.format(*[at] * 20), "rating_label": LABELS[at % 3]}
            for at in range(most or 979)
        ]
    return {row["id"]: row["text"] for row in rows}, {row["id"]: row["rating_label"] for row in rows}


def measure_time(bench: Bench, plain: list[Tool], rounds: int, first: bool) -> None:
    """Measure seconds and CPU seconds, the tools in turn, and print a table; ``first``: also those of one review."""
    count, bound = len(bench.reviews), -(-len(bench.reviews) // AT_ONCE) * DELAY
    full: dict[str, list[Ended]] = {tool.name: [] for tool in plain}
    one: dict[str, list[Ended]] = {tool.name: [] for tool in plain}
    calls: dict[str, int] = {}
    for _ in range(rounds):
        for tool in plain:
            if first:
                one[tool.name].append(bench.timed(tool, 1)[0])
            end, calls[tool.name] = bench.timed(tool, count)
            full[tool.name].append(end)

    def middle(ends: list[Ended], what: str) -> float:
        return statistics.median(getattr(end, what) for end in ends) if ends else 0.0

    ours = middle(full["knotwork"], "cpu")
    print(
        f"\n{count} reviews, {AT_ONCE} at a time, model answers after {DELAY * 1e3:.0f} ms: bound {bound:.1f} s; medians of {rounds}"
    )
    print(
        "| tool | calls | seconds | CPU seconds | ratio | seconds, one review | CPU seconds, one | CPU per further review |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for tool in plain:
        cpu, least = middle(full[tool.name], "cpu"), middle(one[tool.name], "cpu")
        print(
            f"| {tool.name} | {calls[tool.name]:,} | {middle(full[tool.name], 'seconds'):.1f} | {cpu:.1f} | {cpu / ours:.2f} "
            + (
                f"| {middle(one[tool.name], 'seconds'):.1f} | {least:.1f} | {(cpu - least) / (count - 1) * 1e3:.1f} ms |"
                if first
                else "| | | |"
            )
        )
    print(f"\nmodel server: at most {max(bench.shares):.1%} of a core while a tool ran", flush=True)


def measure_kills(bench: Bench, sides: list[Tool]) -> None:
    """Kill each tool, go on, and print a table."""
    print(
        "\n| kill -9 at half, then on | calls before | calls after | paid twice | values right |\n|---|---|---|---|---|"
    )
    for tool in sides:
        seen = bench.killed(tool)
        print(f"| {tool.name} | {seen['before']} | {seen['after']} | {seen['twice']} | {seen['right']} |", flush=True)


def measure_faults(bench: Bench, sides: list[Tool], ways: Mapping[str, list[str]]) -> None:
    """Run each tool with faulty answers, and print a table."""
    kinds = Counter(fault_of(key, FAULTS) for key in bench.reviews)
    print(f"\nfaulty answers: {kinds['cut']} cut, {kinds['prose']} in prose, {kinds['unlisted']} not in the list")
    print(
        "| faults | tool | calls | right | no value, with an error | no value, no error | wrong value, no error | exit code |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for how, more in ways.items():
        for tool in sides:
            seen = bench.faulty(tool, *more)
            cells = [str(seen.get(name, 0)) for name in ("requests", "right", "told", "lost", "wrong", "code")]
            print(f"| {how} | {tool.name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reviews", type=Path, default=DATA / "reviews/drug_reviews.jsonl")
    parser.add_argument("--venvs", type=Path, help="folder with a virtual environment for each peer")
    parser.add_argument("--peers", default=",".join(peers_reviews.READERS), help="names, comma between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default="time,kill,faults", help="what to measure, comma between")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=Path, help="keep the folders of the runs here")
    given = parser.parse_args()
    names = [name for name in given.peers.split(",") if name]
    if unknown := set(names) - set(peers_reviews.READERS):
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; known: {', '.join(peers_reviews.READERS)}")
    reviews, labels = read_reviews(given.reviews, 60 if given.quick else None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        venvs = given.venvs and given.venvs.absolute()
        bench, sides = Bench(reviews, labels, folder.absolute()), tools(names, venvs)
        plain = [tool for tool in sides if not tool.variant]
        if "time" in given.parts:
            measure_time(bench, plain, 1 if given.quick else given.rounds, not given.quick)
        if "kill" in given.parts:
            measure_kills(bench, [tool for tool in sides if tool.variant in ("", "kill")])
        if "faults" in given.parts:
            ways: dict[str, list[str]] = {"once": []} if given.quick else {"once": [], "each time": ["--lasting"]}
            measure_faults(bench, [tool for tool in sides if tool.variant in ("", "faults")], ways)


if __name__ == "__main__":
    main()
