"""Start-up: importing the package, ``--help`` against a bare typer app of two commands, ``check`` of a file.

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
    rounds = 3 if "--quick" in sys.argv[1:] else 25
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
            "knotwork check FILE": [*kw, "check", str(script)],
            "import openai": [python, "-c", "import openai"],
        }
        times: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(rounds + 1):
            for name, command in work.items():
                times[name].append(seconds(command))
    middle = {name: median(taken[1:]) * 1000 for name, taken in times.items()}  # the first round warms the caches
    print(f"whole processes, {rounds} rounds, medians")
    for name, taken in middle.items():
        print(f"{name:22} {taken:7.1f} ms")
    print(f"import knotwork over python:    {middle['import knotwork'] - middle['python']:6.1f} ms")
    print(f"--help over a bare typer app:   {middle['knotwork --help'] / middle['bare typer --help']:6.2f} x")


if __name__ == "__main__":
    main()
