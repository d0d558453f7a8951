"""Runs the test cases of a script, and compares the values of its steps with what the cases expect."""

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, frozen

from ...adapters.llm import LLM
from ...lang.coercion import Fit, as_type
from ...lang.documents.cases import FINAL, Case
from ...lang.trees.lwt import MISSING, Script
from ..answers.evaluation import read_check
from ..event_stream import Events
from ..results import NO_USAGE, Run, StepResult, add_costs, plain
from . import runner
from .operations import Host
from .script_plan import ScriptPlan

Status = Literal["passed", "failed", "not run"]
_CLOSE = 1e-9
"""Maximum relative difference of numbers that count as equal."""


@frozen
class Mismatch:
    """An expectation that is not met. ``expected`` and ``actual`` are texts; ``prompt`` is the prompt of the step ("" without a call).

    ``place`` is the step or the part of it, as the case names it.
    """

    step: str
    place: str
    expected: str
    actual: str
    prompt: str = ""


@frozen
class CaseResult:
    """The result of a case. ``file`` is the name of its file, ``line`` its line. ``cost`` is in US dollars (None: unknown).

    A case was "not run" if an earlier case failed and the run ended there, or if the run was cancelled.
    """

    file: str
    name: str
    line: int
    status: Status
    mismatches: tuple[Mismatch, ...] = ()
    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    @property
    def id(self) -> str:
        """The file and the name, as ``-k`` and the report use them."""
        return f"{self.file}::{self.name}"

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "file": self.file, "name": self.name, "line": self.line, "status": self.status, "seconds": round(self.seconds, 3),
            "calls": self.calls, "prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "mismatches": [
                {"step": each.step, "place": each.place, "expected": each.expected, "actual": each.actual, "prompt": each.prompt}
                for each in self.mismatches
            ],
        }  # fmt: skip


@frozen
class CaseFile:
    """The cases of one file and their checked script. ``folder`` is the folder for ``file=``."""

    name: str
    script: Script
    plan: ScriptPlan
    cases: tuple[Case, ...]
    folder: Path | None = None

    def runs_all_steps(self, case: Case) -> bool:
        """Return whether ``case`` expects or checks a step that the final step does not need, so that all steps run."""
        return not {_step_of(place, self)[0] for place in (*case.expect, *case.checks)} <= self.plan.needed


@define
class CaseReport:
    """The results of test cases, in the order of their files. ``deselected`` counts the cases that were not selected."""

    results: list[CaseResult] = field(factory=list)
    deselected: int = 0
    seconds: float = 0.0
    cancelled: bool = False

    def count(self, status: Status) -> int:
        """Return the number of results with this status."""
        return sum(each.status == status for each in self.results)

    @property
    def passed(self) -> bool:
        """Whether there are results, and all cases passed."""
        return bool(self.results) and all(each.status == "passed" for each in self.results)

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(each.calls for each in self.results)

    @property
    def cost(self) -> float | None:
        """The cost in US dollars (None: unknown)."""
        total = None
        for each in self.results:
            total = add_costs(total, each.cost)
        return total


async def run_cases(
    files: Sequence[CaseFile],
    *,
    llm: LLM | None,
    models: Mapping[str, LLM],
    on_result: Callable[[CaseResult], None],
    spec: str = "",
    max_concurrency: int = 8,
    first_failure: bool = False,
    strict_types: bool = False,
    events: Events | None = None,
    cancel: asyncio.Event | None = None,
    host: Host | None = None,
) -> bool:
    """Run all cases, and pass each result to ``on_result`` in the order of the cases. Return whether the run was cancelled.

    At most ``max_concurrency`` cases run at once. With ``first_failure``, the cases after the first failed one are "not run".
    ``host`` has the functions for ``CALL`` and further operations; the plans of ``files`` were made with it.
    """
    cases = [(file, case) for file in files for case in file.cases]
    ready: dict[int, CaseResult] = {}
    told = 0
    stop = asyncio.Event()
    waiting = iter(enumerate(cases))

    def deliver() -> None:
        nonlocal told
        while told in ready and not stop.is_set():
            result = ready.pop(told)
            told += 1
            on_result(result)
            if first_failure and result.status == "failed":
                stop.set()

    async def worker() -> None:
        for place, (file, case) in waiting:
            settings: dict[str, Any] = {
                "llm": llm, "models": models, "spec": spec, "events": events, "strict_types": strict_types,
                "max_concurrency": max_concurrency, "host": host,
            }  # fmt: skip
            ready[place] = await run_case(file, case, settings)
            deliver()
            if stop.is_set():
                return

    workers = [asyncio.ensure_future(worker()) for _ in range(min(max_concurrency, len(cases)))]
    ends = [asyncio.ensure_future(event.wait()) for event in (stop, cancel) if event is not None]
    is_cancelled = False
    try:
        left: set[asyncio.Future[Any]] = set(workers)
        while left:
            done, _ = await asyncio.wait({*left, *ends}, return_when=asyncio.FIRST_COMPLETED)
            for task in done & left:
                task.result()
            left -= done
            if any(end in done for end in ends):
                is_cancelled = cancel is not None and cancel.is_set()
                break
    finally:
        for task in (*workers, *ends):
            task.cancel()
        await asyncio.gather(*workers, *ends, return_exceptions=True)
    for place in range(told, len(cases)):
        file, case = cases[place]
        found = ready.get(place) if is_cancelled else None
        on_result(found or CaseResult(file.name, case.name, case.line, "not run"))
    return is_cancelled


async def run_case(file: CaseFile, case: Case, settings: Mapping[str, Any]) -> CaseResult:
    """Run one case. ``settings`` are options of ``runner.run``."""
    value = None if case.input is MISSING else case.input
    run = await runner.run(
        file.script, input=value, plan=file.plan, folder=file.folder, prompts=True, all_steps=file.runs_all_steps(case),
        **settings,
    )  # fmt: skip
    found = tuple(_mismatches(file, case, run))
    usage = run.usage or NO_USAGE
    return CaseResult(
        file.name, case.name, case.line, "failed" if found else "passed", found, run.seconds, run.calls,
        usage.prompt_tokens, usage.completion_tokens, run.cost,
    )  # fmt: skip


def _mismatches(file: CaseFile, case: Case, run: Run) -> Iterable[Mismatch]:
    failed = {step: result for step, result in run.steps.items() if result.status == "failed"}
    for step, result in failed.items():
        yield Mismatch(step, step, "an answer", f"the step failed: {result.reason}", _prompt(run, step))
    for place, expected in case.expect.items():
        step, path = _step_of(place, file)
        result = run.steps[step]
        if step in failed:
            continue
        shown, prompt = _shown(expected), _prompt(run, step)
        if result.status == "skipped" and not result.unmet:
            yield Mismatch(step, place, shown, f"skipped: {result.reason}", prompt)
            continue
        try:
            actual = part_of(result, path)
        except LookupError as error:
            yield Mismatch(step, place, shown, f"{error.args[0]}: {_shown(plain(result.value))}", prompt)
            continue
        if not is_equal(expected, actual, result.output if not path else None):
            yield Mismatch(step, place, shown, _shown(actual), prompt)
    for place, checks in case.checks.items():
        step, _ = _step_of(place, file)
        if step in failed:
            continue
        for check in checks:
            verdict = read_check(check)(run.steps[step].output)
            if not verdict.passed:
                actual = f"{_shown(run.steps[step].output)} ({verdict.reason})"
                yield Mismatch(step, place, check, actual, _prompt(run, step))


def split_place(place: str, steps: Iterable[str], final: str) -> tuple[str, tuple[str, ...]]:
    """Return the step that a key of ``expect`` names, and the path into its value. Raises ``KeyError`` for an unknown step."""
    known = set(steps)
    name, *path = place.split(".")
    if place in known:
        return place, ()
    if name in known:
        return name, tuple(path)
    if name == FINAL:
        return final, tuple(path)
    raise KeyError(name)


def _step_of(place: str, file: CaseFile) -> tuple[str, tuple[str, ...]]:
    return split_place(place, file.plan.graph, file.plan.final)


def part_of(result: StepResult, path: Sequence[str]) -> Any:
    """Return the part of a step's value at ``path``. Raises ``LookupError`` with the reason if there is none."""
    value = plain(result.value)
    if path and isinstance(value, str):
        value = _parsed(value)
    for key in path:
        if isinstance(value, list) and key.lstrip("-").isdecimal():
            if not -len(value) <= int(key) < len(value):
                raise LookupError(f"the list has no element {key}")
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            raise LookupError(f"the value has no {key!r}")
    return value


def _parsed(text: str) -> Any:
    read = as_type(text, "json")
    return read.value if isinstance(read, Fit) else text


def is_equal(expected: Any, actual: Any, output: str | None = None) -> bool:
    """Return whether a value is as expected. White space around texts is ignored; numbers are equal up to rounding errors.

    ``output`` is the text of the value, with which an expected text is compared. If another value is expected, a text is first
    parsed as JSON.
    """
    if isinstance(expected, str):
        text = actual if isinstance(actual, str) else output
        return text is not None and text.strip() == expected.strip()
    return _same(expected, _parsed(actual) if isinstance(actual, str) else actual)


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool) or expected is None or actual is None:
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return expected == actual or math.isclose(expected, actual, rel_tol=_CLOSE)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_same, expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(_same(expected[key], actual[key]) for key in expected)
    return type(expected) is type(actual) and bool(expected == actual)


def _prompt(run: Run, step: str) -> str:
    prompts = run.trace.prompts or {}
    if step in prompts:
        return prompts[step]
    return "\n\n".join(text for name, text in prompts.items() if name.startswith(f"{step}["))


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
