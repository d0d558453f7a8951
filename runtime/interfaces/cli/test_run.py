"""Runs ``knotwork test``: progress as dots or names, failures with the expected and the actual values, and a summary line."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from ....lang.diagnostic import printable
from ...api import functions, script_cases
from ...api.clients import default_spec
from ...api.figures import counted, dollars
from ...api.files import replace_file
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import subscribe_debug_log
from ...errors import RequestError
from ...events import Events
from ..options import Limits, named_specs, open_models
from .display import RunFigures
from .inputs import functions_in, show
from .output import Exit, Misused, cancelling, colour, complain, json_text, paint, printable_text, say

if TYPE_CHECKING:
    from ...api.lwt import CaseReport, CaseResult, Host

_WIDTH = 72
_PROMPT = 1_500
"""Maximum number of characters of a prompt in a failure; -v shows all."""
_MARKS = {"passed": (".", "green"), "failed": ("F", "red"), "not run": ("s", "yellow")}


@frozen
class TestOptions:
    """The options of ``knotwork test``."""

    __test__ = False  # not a test of pytest

    paths: tuple[str, ...]
    keyword: str
    verbose: bool
    first_failure: bool
    collect_only: bool
    junit: str | None
    form: Literal["text", "json"]
    llm: str | None
    models: tuple[str, ...]
    max_concurrency: int
    strict_types: bool
    limits: Limits
    functions: str | None = None


def run_tests(options: TestOptions) -> int:
    """Collect, check and run the test cases; return the exit code. Raises ``Misused`` and ``NotConfigured``."""
    named, host = named_specs(options.models), functions.host(functions_in(options.functions))
    try:
        collected = script_cases.collect(options.paths, options.keyword, models=sorted(named), host=host)
    except RequestError as error:
        raise Misused(error.message, error.hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(
            f"{getattr(error, 'filename', None) or 'a file'} can't be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    if collected.faulty:
        show(collected.faulty, sys.stderr)
        say("nothing was run")
        return Exit.ERRORS
    show(collected.warnings, sys.stderr)
    total = sum(len(file.cases) for file in collected.files)
    deselected = f", {collected.deselected:,} deselected" if collected.deselected else ""
    if not total:
        say(f"no test case was found{deselected}")
        if not collected.deselected:
            say(
                "write cases of NAME.lwt in NAME.cases.jsonl: "
                + '{"name": "...", "input": ..., "expect": {"final": ...}}'
            )
        return Exit.UNMET
    if options.collect_only:
        for file in collected.files:
            for case in file.cases:
                print(printable(f"{file.name}::{case.name}"))
        say(f"{counted(total, 'case')}{deselected}")
        return Exit.DONE
    if options.junit is not None and not Path(options.junit).resolve().parent.is_dir():
        raise Misused(f"the folder of {options.junit} does not exist", "choose a file in an existing folder")
    report, figures = _run(options, collected, named, total, host)
    if options.junit is not None:
        try:
            replace_file(Path(options.junit), script_cases.junit(report))
        except OSError as error:
            complain(f"{options.junit} can't be written: {error.strerror or error}")
            return Exit.FAILED
    if options.form == "json":
        document = {
            "passed": report.count("passed"), "failed": report.count("failed"), "not_run": report.count("not run"),
            "deselected": report.deselected, "seconds": round(report.seconds, 3), "calls": report.calls, "cost": report.cost,
            "cases": [each.as_json() for each in report.results],
        }  # fmt: skip
        print(json_text(document))
    else:
        _report(report, figures, options.verbose)
    sys.stdout.flush()
    if report.cancelled:
        return Exit.INTERRUPTED
    return Exit.DONE if report.passed else Exit.FAILED


def _run(
    options: TestOptions, collected: script_cases.Collected, named: dict[str, str], total: int, host: "Host"
) -> "tuple[CaseReport, RunFigures]":
    events, figures = Events(), RunFigures()
    events.subscribe(figures)
    subscribe_debug_log(events)
    subscribe_traces(events)
    spec = options.llm or (default_spec() if collected.needs_model else None)
    models = open_models(
        spec, named, options.limits, options.max_concurrency, lambda text: say(printable(f"warning: {text}"))
    )
    shown = _Progress(options, total)

    async def run() -> "CaseReport":
        cancel = asyncio.Event()
        with cancelling(cancel, lambda text: say(printable(text))):
            return await script_cases.run_collected(
                collected, models, shown.take, events=events, cancel=cancel, max_concurrency=options.max_concurrency,
                first_failure=options.first_failure, strict_types=options.strict_types, host=host,
            )  # fmt: skip

    report = asyncio.run(run())
    shown.end()
    return report, figures


class _Progress:
    """Prints a mark for each case, in a line for each file; with -v a line for each case."""

    def __init__(self, options: TestOptions, total: int) -> None:
        self._verbose, self._silent = options.verbose, options.form == "json"
        self._total, self._done = total, 0
        self._file, self._column = "", 0
        self._on = colour(sys.stdout)

    def take(self, result: "CaseResult") -> None:
        """Print the mark of a result."""
        self._done += 1
        if self._silent:
            return
        mark, style = _MARKS[result.status]
        if self._verbose:
            share = f"[{self._done / self._total:4.0%}]"
            print(f"{printable(result.id)} {paint(result.status.upper(), style, self._on)} {share}", flush=True)
            return
        if result.file != self._file or self._column >= _WIDTH:
            self.end()
            head = printable(f"{result.file} ") if result.file != self._file else " " * 4
            sys.stdout.write(head)
            self._file, self._column = result.file, len(head)
        sys.stdout.write(paint(mark, style, self._on))
        sys.stdout.flush()
        self._column += 1

    def end(self) -> None:
        """End the line of marks."""
        if self._column:
            sys.stdout.write(f"{' ' * max(1, _WIDTH - self._column)} [{self._done / self._total:4.0%}]\n")
        self._column = 0


def _report(report: "CaseReport", figures: RunFigures, verbose: bool) -> None:
    on = colour(sys.stdout)
    failed = [each for each in report.results if each.status == "failed"]
    if failed:
        print(paint(f"\n{' FAILURES ':=^{_WIDTH}}", "bold", on))
    for result in failed:
        print(paint(f"{printable(f' {result.id} (line {result.line}) '):_^{_WIDTH}}", "red", on))
        prompts: dict[str, str] = {}
        for each in result.mismatches:
            print(f"({printable(each.place)})")
            print(f"  expected: {printable_text(each.expected)}")
            print(f"  actual:   {printable_text(each.actual)}")
            if each.prompt:
                prompts[each.step] = each.prompt
        for step, prompt in prompts.items():
            print(paint(f"prompt of ({step}):", "dim", on))
            text = (
                prompt
                if verbose or len(prompt) <= _PROMPT
                else f"{prompt[:_PROMPT]}… ({len(prompt):,} characters; -v shows all)"
            )
            print("\n".join(f"    | {line}" for line in printable_text(text).split("\n")))
    parts = [
        paint(f"{count:,} {word}", style, on)
        for word, count, style in (
            ("failed", len(failed), "red"), ("passed", report.count("passed"), "green"), ("not run", report.count("not run"), "yellow"),
            ("deselected", report.deselected, "yellow"),
        )
        if count
    ]  # fmt: skip
    calls = counted(report.calls, "call") + (f" ({figures.cached:,} cached)" if figures.cached else "")
    cost = f", {dollars(report.cost)}" if report.cost else ""
    print(f"{', '.join(parts)} in {report.seconds:.2f} s · {calls}{cost}")
