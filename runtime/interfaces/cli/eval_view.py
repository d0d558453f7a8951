"""The output of ``eval``: the progress on stderr, then a table of scores, the comparisons and the requirements on stdout."""

import asyncio
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ....lang.diagnostic import printable
from ...api import evals
from ...api.evals import Progress, unanswered_message
from ...api.figures import Calls, clock, counted, dollars
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import DebugLog, level
from ...events import Events
from .output import (
    CallNotes,
    Exit,
    cancelling,
    colour,
    is_terminal,
    json_text,
    paint,
    render,
    say,
    say_prices,
    shell_command,
)

if TYPE_CHECKING:
    from ...api.evals import EvaluationEstimate, EvaluationReport, EvaluationRun


def show_estimate(found: "EvaluationEstimate", form: str, notes: Sequence[str]) -> int:
    """Write the estimate of an evaluation to stdout, as text or as JSON; return the exit code."""
    from .seed_dry_run import model_line, price_line, stage_lines

    if form == "json" or (form == "auto" and not is_terminal(sys.stdout)):
        print(json_text(found.as_json()))
    else:
        samples = f", {found.repeat} samples of each item" if found.repeat > 1 else ""
        lines = [f"{counted(found.items, 'item')} with {counted(found.labels, 'label')}{samples}"]
        for each in found.candidates.values():
            lines.append(f"{each.name} ({each.target}):")
            about = [model_line(model) for model in each.models]
            if not about and each.model:
                about = [f"model {price_line(each.model, dict(each.prices).get(each.model))}"]
                about += [f"model {price_line(model, price)}" for model, price in each.prices if model != each.model]
            if not each.models and each.calls_at_most != 0:
                about.append(
                    _range_line(each.calls, each.calls_at_most, each.prompt_tokens, each.completion_tokens, each.cost)
                )
            if each.loop_calls_at_most is not None and each.loop_calls_at_most != each.calls_at_most:
                about.append(f"at most {counted(each.loop_calls_at_most, 'call')} to write plans, scripts and answers")
            lines += [f"  {line}" for line in (*about, *stage_lines(each.stages), *([each.note] if each.note else []))]
        limits = [f"{found.max_calls:,} calls"] if found.max_calls is not None else []
        limits += [dollars(found.max_cost)] if found.max_cost is not None else []
        within = f" (limited to {' and '.join(limits)})" if limits else ""
        lines.append(f"in all: {_range_line(found.calls, found.calls_at_most, None, None, found.cost)}{within}")
        lines.append(
            "token counts are estimated from the size of the texts, without hidden reasoning; no model was called"
        )
        print("\n".join(map(printable, lines)))
    for note in (*notes, *found.warnings):
        say(printable(f"warning: {note}"))
    return Exit.DONE


def _range_line(
    calls: int, most: int | None, prompt: Any, completion: Any, cost: tuple[float, float | None] | None
) -> str:
    """Return a line about calls, tokens and cost. An upper bound is shown as "at most", a lower bound alone as "or more"."""
    text = counted(calls, "call") + (" or more" if most is None else f", at most {most:,}" if most > calls else "")
    for name, bounds in (("prompt", prompt), ("completion", completion)):
        if bounds is not None:
            low, high = bounds
            text += f", about {low:,} {f'or more {name}' if high is None else f'to {high:,} {name}'} tokens"
    if cost is None:
        return text
    low, high = cost
    return text + (
        f", {dollars(low)} or more"
        if high is None
        else f", {dollars(low)} to at most {dollars(high)}"
        if high
        else ", no cost"
    )


_SECONDS = 10.0
"""Minimum number of seconds between two lines of progress in a pipe."""


class EvaluationView(CallNotes):
    """Shows the progress of an evaluation on stderr: a bar on a terminal, otherwise a line every ten seconds."""

    def __init__(self, name: str) -> None:
        self.progress = Progress()
        self.progress.changed = self._moved
        self._name, self._calls, self._began = name, Calls(), perf_counter()
        self._told = perf_counter()
        self._foot: Any = None
        if not level() and is_terminal(sys.stderr):
            from .display import Foot

            self._foot = Foot(self._drawn)

    async def run(self, run: "EvaluationRun") -> "EvaluationReport":
        """Run the evaluation. The first Ctrl-C stops the calls."""
        events, cancel = Events(), asyncio.Event()
        for subscriber in (self._calls, DebugLog(level()) if level() else self):
            events.subscribe(subscriber)
        subscribe_traces(events)
        with cancelling(cancel, self.note, self.stop):
            if self._foot is not None:
                self._foot.start()
            try:
                return await run.run(events, cancel, self.progress, self.note)
            finally:
                self.stop()

    def note(self, text: str) -> None:
        """Print a permanent line."""
        if self._foot is not None:
            self._foot.note(text)
        else:
            super().note(text)

    def stop(self) -> None:
        """Remove the display."""
        if self._foot is not None:
            self._foot.stop()

    def _moved(self) -> None:
        if self._foot is None and not level() and perf_counter() - self._told >= _SECONDS:
            self._told = perf_counter()
            self.note(self._line())

    def _line(self) -> str:
        progress = self.progress
        parts = [f"{progress.done:,} of {counted(progress.items, 'answer')}"]
        parts += [progress.candidate] if progress.candidates > 1 else []
        return " · ".join([*parts, *([self._calls.line()] if self._calls.calls else [])])

    def _drawn(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from .display import one_line

        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(1, self.progress.items), completed=self.progress.done, width=20)
        time = Text(clock(perf_counter() - self._began), style="dim")
        head.add_row(self._foot.spinner, one_line(self._name, "bold"), bar, one_line(self._line()), time)
        return head


def finish(report: "EvaluationReport", form: str, resume: Sequence[str]) -> int:
    """Write the report to stdout, and a summary to stderr; return the exit code.

    ``resume`` contains the first words of the command that resumes the run.
    """
    if form == "json" or (form == "auto" and not is_terminal(sys.stdout)):
        print(json_text(report.as_json()))
    else:
        for line in text_lines(report):
            print(line)
    sys.stdout.flush()
    on = colour(sys.stderr)
    for warning in report.warnings:
        say(printable(f"warning: {warning}"))
    say_prices(report.prices)
    code = exit_code(report)
    told = {
        Exit.DONE: ("done", "green"),
        Exit.UNMET: ("requirement not met", "red"),
        Exit.FAILED: ("not evaluated", "red"),
    }
    word, style = told.get(code, ("cancelled", "yellow"))
    say(f"{paint(word, style, on)}: {printable(_outcome(report, code))}")
    if report.path is not None:
        say(printable(f"saved in {report.path}"))
        if report.status != "complete":
            say(printable(f"resume with: {shell_command(*resume, '--resume', report.run_id)}"))
    return code


def exit_code(report: "EvaluationReport") -> Exit:
    """Return the exit code. If too many items have no answer, the code is FAILED and not UNMET."""
    if report.status == "cancelled":
        return Exit.INTERRUPTED
    if not report.evaluated:
        return Exit.FAILED
    return Exit.DONE if report.passed else Exit.UNMET


def _outcome(report: "EvaluationReport", code: Exit) -> str:
    if code == Exit.FAILED:
        reason = f" ({report.reason})" if report.reason else ""
        return unanswered_message(report).removeprefix("not evaluated: ") + reason
    unmet = [each for each in report.requirements if not each.holds]
    if code == Exit.UNMET:
        return "; ".join(f"{each.text}, but {each.message}" for each in unmet)
    seconds = f"{report.seconds:.1f} s"
    if code == Exit.INTERRUPTED:
        return f"{report.first.share('unanswered'):.0%} of the labels have no answer · {seconds}"
    held = f"{counted(len(report.requirements), 'requirement')} met · " if report.requirements else ""
    return (
        f"{held}{counted(len(report.gold.items), 'item')}, {counted(len(report.candidates), 'candidate')} · {seconds}"
    )


def text_lines(report: "EvaluationReport") -> list[str]:
    """Return the report as lines of text: one sentence for each field, the table, comparisons, requirements and notes."""
    document = report.as_json()
    lines = [printable(evals.sentence(document, name)) for name in report.first.fields]
    rows = [*evals.score_rows(document), *evals.run_rows(document)]
    has_majority = any(row.majority for row in rows)
    names = [evals.shown_name(name, each) for name, each in document["candidates"].items()]
    cells = [[row.title, *row.cells, *([row.majority] if has_majority else [])] for row in rows]
    lines += ["", render(["", *names, *(["majority"] if has_majority else [])], cells).rstrip("\n")]
    if found := evals.verdicts(document):
        lines += ["", *map(printable, found)]
    if report.thresholds:
        lines += ["", *map(printable, evals.escalation_lines(report.thresholds))]
    if report.requirements:
        lines.append("")
    for each in report.requirements:
        word, style = (
            ("met", "green") if each.holds else ("NOT MET", "red") if each.holds is False else ("NOT DECIDED", "yellow")
        )
        lines.append(f"{paint(word, style, colour(sys.stdout))}  {printable(each.text)}  ({printable(each.message)})")
    return lines + [f"note: {printable(note)}" for note in evals.notes(document)]
