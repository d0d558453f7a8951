"""``ask`` on twelve of the thirty questions of GASL's design: how many are answered, with how many calls.

    python tests/bench/bench_questions.py [--local] [--seeds N] [--quick]

The graphs and the answers in plain Python are those of ``tests/golden/gasl/questions``. Three planners answer each question: *good*
writes the question's program; *bad* writes the program with one to three slips (``support/planted_slips``), N times (default 10), and
repairs them as a program from the JSON of the diagnostics alone (``support/planted_mend``); *local* (with ``--local``) is the local model
of 135M parameters, which is held to its small grammar. A question is solved if the findings in the state are the rows of the answer in
plain Python.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from attrs import define, field
from knotwork.adapters.llm import Completion, Usage
from knotwork.adapters.llm.middleware import Own
from knotwork.runtime.api import states
from knotwork.runtime.api.ask import ask
from knotwork.runtime.events import Events, RepairAsked
from support.planted import Task
from support.planted_mend import mend
from support.planted_slips import corrupted
from support.question_graphs import story, transfers, words
from support.question_oracles import ORACLES

QUESTIONS = Path(__file__).parents[1] / "golden" / "gasl" / "questions"
GRAPHS: dict[str, Callable[[], Any]] = {"D": story, "W": words, "B": transfers}
CHOSEN = ("D1", "D2", "D10", "D11", "D12", "B20", "B21", "B22", "B26", "B28", "W16", "W18")


def question_and_plan(name: str) -> tuple[str, str]:
    """Return a question, and the plan that answers it as a model writes it."""
    first, *commands = (QUESTIONS / f"{name}.gasl").read_text(encoding="utf-8").splitlines()
    last = commands[-1].rpartition(" AS ")[2]
    plan = ["DECLARE found AS LIST", *commands, f"UPDATE found WITH {last}"]
    question = first.removeprefix("# ")
    return question, json.dumps({"plan_id": name, "why": question, "commands": plan}, indent=1)


@define
class Planner(Own):
    """Writes a plan; repairs it from the diagnostics of its last text; ends when the plan has run."""

    plan: str
    repair: RepairAsked | None = None
    calls: int = 0
    _ran: bool = field(default=False, init=False)

    def heard(self, event: Any) -> None:
        """Keep the diagnostics of the last refused answer."""
        if isinstance(event, RepairAsked):
            self.repair = event

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the plan, the repaired plan, or the end."""
        self.calls += 1
        if self.repair is not None:
            self.plan, self.repair = mend(self.repair.written, json.dumps(self.repair.diagnostics)), None
        elif self._ran:
            return Completion(json.dumps({"complete": "found", "evidence": ["found"]}), usage=Usage(1, 1))
        self._ran = True
        return Completion(self.plan, usage=Usage(1, 1))

    async def aclose(self) -> None:
        """Close nothing."""


def solved(name: str, llm: Any, question: str) -> tuple[bool, int, str]:
    """Ask; return whether the findings are the answer of plain Python, the number of calls, and the status."""
    events = Events()
    if isinstance(llm, Planner):
        events.subscribe(llm.heard)
    graph = GRAPHS[name[0]]()
    with tempfile.TemporaryDirectory() as folder:
        asked = asyncio.run(
            ask(graph, question, state=Path(folder) / "s", llm=llm, max_steps=4, max_repairs=4, events=events)
        )
        with states.reading(str(Path(folder) / "s"), print) as state:
            found = state.get("found") if state.snapshot().kind("found") == "LIST" else []
    wanted = ORACLES[name](graph)
    return asked.status == "complete" and _rows(found) == _rows(wanted), asked.calls, asked.status


def _rows(rows: Any) -> list[str]:
    """Return the values of the rows, without the names of columns, which a planner may choose; equal rows count once."""
    return sorted({json.dumps(sorted(map(json.dumps, row.values()))) for row in rows})


def main() -> None:
    """Measure and print."""
    quick = "--quick" in sys.argv
    seeds = int(sys.argv[sys.argv.index("--seeds") + 1]) if "--seeds" in sys.argv else 1 if quick else 10
    chosen = CHOSEN[:3] if quick else CHOSEN
    rows: list[tuple[str, str, list[tuple[bool, int, str]]]] = []
    for name in chosen:
        question, plan = question_and_plan(name)
        rows.append(("good", name, [solved(name, Planner(plan), question)]))
        task = Task(int(name[1:]), "filter", question, None, plan, None)
        texts = [corrupted(task, seed)[0] for seed in range(seeds)]
        rows.append(("bad", name, [solved(name, Planner(text), question) for text in texts]))
        if "--local" in sys.argv:
            rows.append(("local", name, [solved(name, "local", question)]))
    for planner in dict.fromkeys(each for each, _, _ in rows):
        trials = [trial for each, _, made in rows if each == planner for trial in made]
        right = sum(trial[0] for trial in trials)
        calls = sum(trial[1] for trial in trials) / len(trials)
        print(
            f"{planner:6} {right} of {len(trials)} solved ({100 * right / len(trials):.1f} %), {calls:.2f} calls each"
        )
    wrong = [f"{planner} {name}" for planner, name, made in rows for each in made if not each[0] and planner != "local"]
    print("not solved:", ", ".join(wrong) or "none of good and bad")


if __name__ == "__main__":
    began = perf_counter()
    main()
    print(f"{perf_counter() - began:.1f} s")
