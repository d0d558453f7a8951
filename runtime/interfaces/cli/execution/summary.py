"""What stands at the end of a run: the output on stdout, and on stderr what became of everything else."""

import sys
from typing import Any

from .....lang.diagnostic import all_as_json, printable
from ....api.checked import Checked
from ....lwt.run_store import Recorder
from ....results import Run, StepResult, coercions, run_json
from ...counting import dollars
from ..shared.exit import Exit
from ..shared.output import colour, is_terminal, json_text, paint, say, write
from ..shared.telling import raising
from ..tasks.planning import FINAL_RULES
from .asked import Asked, OutputFormat
from .progress import Tally

__all__ = ["document", "finish", "refusal"]

_CODES = {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}
_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_LISTED = 20
"""Steps that are listed one by one; what is kept has them all."""


def finish(run: Run, checked: Checked, tally: Tally, asked: Asked, recorder: Recorder, resume: str) -> int:
    """Write output and report; return the exit code."""
    if asked.form == "json":
        print(json_text(document(run, checked, tally)))
    elif run.output is not None:
        _write_output(run, asked.form)
    sys.stdout.flush()
    if run.output is not None and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _report(run, tally, asked, recorder, resume)
    return _CODES[run.status]


def _write_output(run: Run, form: OutputFormat) -> None:
    assert run.output is not None  # noqa: S101 - finish() asks first
    if form == "table" or (form == "auto" and is_terminal(sys.stdout)):
        from ..shared.tables import drawn

        table = drawn(run.value, any_value=form == "table" or isinstance(run.value, list))
        if table is not None:
            print(table, end="")
            return
        if form == "table":
            say("the output is no table; it stands as it is")
    write(run.output)


def _report(run: Run, tally: Tally, asked: Asked, recorder: Recorder, resume: str) -> None:
    on = colour(sys.stderr)
    wanted = _wanted(run)
    for status, style in (("failed", "red"), ("skipped", "yellow")):
        found = [result for result in wanted if result.status == status]
        for result in found[:_LISTED]:
            say(f"{paint(status, style, on)} ({result.id}): {printable(result.reason)}")
        if len(found) > _LISTED:
            say(f"{paint(status, style, on)} and {len(found) - _LISTED} more")
    items = [(step, failed) for step, result in run.steps.items() for failed in result.failed_items]
    for step, failed in items[:_LISTED]:
        if failed.item is None:  # the step has its output, which is not all that it should be
            say(f"{paint('partial', 'yellow', on)} ({step}): {printable(failed.message)}")
        else:
            say(f"{paint('failed', 'red', on)} ({step}) item {failed.item}: {printable(failed.message)}")
    if len(items) > _LISTED:
        say(f"{paint('failed', 'red', on)} and {len(items) - _LISTED} more items")
    read = coercions(run)
    for line in [*read, "refuse such answers with --strict-types"] if read else []:
        say(line)
    if tally.reached:
        say(f"the budget was reached: {raising(tally.reached)}")
    if run.rule != "final" and run.output is not None:
        say(f"the output is that of ({run.final}): {FINAL_RULES[run.rule]}")
    say(f"{paint(run.status, _STYLES[run.status], on)}: {_figures(run, tally)}")
    if recorder.damage:
        say(f"not kept: {printable(recorder.damage)}")
        return
    say(f"kept in {printable(str(recorder.path))}")
    if run.status != "complete":
        say(f"go on with: {resume}")


def _wanted(run: Run) -> list[StepResult]:
    """Return the results of the steps that were to run; what the final step does not need, the check has told."""
    unneeded = f"({run.final}) does not need it"
    return [result for result in run.steps.values() if result.reason != unneeded]


def _figures(run: Run, tally: Tally) -> str:
    wanted = _wanted(run)
    done = sum(result.status == "done" for result in wanted)
    parts = [
        f"{done:,} of {len(wanted):,} step{'' if len(wanted) == 1 else 's'}{' done' if done < len(wanted) else ''}"
    ]
    if tally.reused:
        parts.append(f"{tally.reused:,} kept from before")
    cached = f" ({tally.cached:,} cached)" if tally.cached else ""
    parts.append(f"{run.calls:,} call{'' if run.calls == 1 else 's'}{cached}")
    if run.usage.total:
        parts.append(f"{run.usage.prompt_tokens:,} + {run.usage.completion_tokens:,} tokens")
    if run.cost:
        parts.append(dollars(run.cost))
    parts.append(f"{run.seconds:.2f} s (critical path {run.critical_path_seconds:.2f} s)")
    return " · ".join(parts)


def document(run: Run, checked: Checked, tally: Tally) -> dict[str, Any]:
    """Return the run as the JSON document of ``--format json``."""
    return run_json(run, tally.cached, checked.source, checked.diagnostics)


def refusal(checked: Checked) -> str:
    """Return the JSON document of a run that never began: the same keys, status "refused", and the diagnostics."""
    usage = {
        "calls": 0, "cached": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None, "seconds": 0.0,
        "critical_path_seconds": 0.0,
    }  # fmt: skip
    found = all_as_json(checked.diagnostics, checked.source)
    return json_text(
        {
            "status": "refused", "output": None, "value": None, "final": None, "steps": {}, "usage": usage,
            "coerced": [], "diagnostics": found, "warnings": [], "run": "",
        }
    )  # fmt: skip
