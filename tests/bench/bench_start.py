"""Start-up: importing the package, ``--help`` against a bare typer app of two commands, ``check`` of a file.

A bare app's command that does nothing stands beside ``check``: what typer itself takes to read a command line.

Whole processes, interleaved. Run: python tests/bench/bench_start.py [--quick]
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

BARE = """
import typer
app = typer.Typer()
@app.command()
def one(name: str) -> None: "The first."
@app.command()
def two(name: str, often: int = 1) -> None: "The second."
app()
"""


def seconds(command: list[str]) -> float:
    """Run a command and return the wall seconds of the whole process."""
    begun = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begun


def main() -> None:
    """Print medians in milliseconds and the ratios that count."""
    rounds = 1 if "--quick" in sys.argv[1:] else 25
    with tempfile.TemporaryDirectory() as folder:
        script, bare = Path(folder, "a.lwt"), Path(folder, "bare.py")
        script.write_text('(a)=LLM("x {(input)}")\n(final)=LLM("{(a)}")\n')
        bare.write_text(BARE)
        python, kw = sys.executable, [sys.executable, "-m", "knotwork"]
        work = {
            "python": [python, "-c", "pass"],
            "import knotwork": [python, "-c", "import knotwork"],
            "bare typer --help": [python, str(bare), "--help"],
            "knotwork --help": [*kw, "--help"],
            "bare typer, a command": [python, str(bare), "one", "x"],
            "knotwork check FILE": [*kw, "check", str(script)],
            "import openai": [python, "-c", "import openai"],
        }
        times: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(rounds + 1):
            for name, command in work.items():
                times[name].append(seconds(command))
    print(f"whole processes in turn, {rounds} rounds after one that warms the caches")
    print(f"{'':<24} {'median':>10} {'best':>10}")
    for name, taken in times.items():
        print(f"{name:<24} {median(taken[1:]) * 1000:>7.1f} ms {min(taken[1:]) * 1000:>7.1f} ms")
    middle, best = ({name: of(taken[1:]) * 1000 for name, taken in times.items()} for of in (median, min))
    for label, target, ours in (
        ("import knotwork", "≤ 15 ms over bare python", lambda t: f"{t['import knotwork'] - t['python']:.1f} ms"),
        ("--help", "≤ 1.3 x bare typer", lambda t: f"{t['knotwork --help'] / t['bare typer --help']:.2f} x"),
        ("check", "≤ 400 ms", lambda t: f"{t['knotwork check FILE']:.0f} ms"),
    ):
        print(f"{label:<24} {ours(middle):>10} {ours(best):>10}   target {target}")


if __name__ == "__main__":
    main()
