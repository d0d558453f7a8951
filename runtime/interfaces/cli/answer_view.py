"""Runs ``answer``: shows the progress on stderr, and writes the answer, its quality and its cost.

The progress is a live display on a terminal, and lines in a pipe.
"""

import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from time import perf_counter
from typing import Any

from attrs import define, evolve, field, frozen
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import printable
from ...api.answers import TOO_SMALL, Answered, AnswerRequest, answer_request, points
from ...api.clients import default_spec
from ...api.figures import Calls, clock, dollars
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import subscribe_debug_log
from ...events import (
    AnswerStarted,
    BudgetReached,
    CallRetried,
    CandidateWritten,
    Event,
    Events,
    IterationFinished,
    IterationStarted,
    Warned,
)
from ...excerpts import clipped
from ...results import estimated_mark
from .display import Foot
from .inputs import reached
from .output import Display, Exit, cancelling, colour, is_terminal, json_text, paint, say, say_prices, write

# Text for an iteration, with the score as a bar. Used both in a pipe and on a terminal.

_CELLS = 20
_LONGEST = 240
"""Maximum number of characters shown of a judge's reasoning and of each suggestion; --format json shows the complete texts."""
_SUGGESTIONS = 5
_AGAIN = {"retry": "sent again", "again": "asked again", "repair": "asked to correct its answer"}


@frozen
class Line:
    """A line of output. ``head`` is coloured in ``style``, ``rest`` is not coloured."""

    head: str
    rest: str = ""
    style: str = ""

    def __str__(self) -> str:
        return f"{self.head}{self.rest}"


def bar(score: float, threshold: float) -> str:
    """Return the score as a bar with a mark at the threshold. The bar reaches the mark only if the score reaches the threshold."""
    mark = max(1, _cells(threshold)) if threshold > 0 else 0
    filled = max(_cells(score), mark) if score >= threshold else min(_cells(score), mark - 1)
    cells = "━" * filled + "─" * (_CELLS - filled)
    return f"{cells[:mark]}│{cells[mark:]}"


def _cells(share: float) -> int:
    return int(share * _CELLS + 1e-9)


def iteration(event: IterationFinished, most: int, threshold: float) -> list[Line]:
    """Return the lines for a finished iteration: its score and the judge's reasoning or, without a score, the error.

    The judge's suggestions follow unless the answer was accepted.
    """
    told = event.result
    place, end = f"[{event.iteration}/{most}] ", _figures(told, event.seconds)
    if event.score is None:
        what = "no answer" if (told.get("error") or {}).get("stage") == "generation" else "no score"
        return [Line(f"{place}{what}", f" · {end}", "red"), Line(f"      {clipped(event.error, _LONGEST)}")]
    mark, style = (
        ("accepted", "green") if event.accepted else ("best so far", "yellow") if event.best else ("no better", "dim")
    )
    head = f"{place}{points(event.score, threshold)} {bar(event.score, threshold)} {mark}"
    lines = [Line(head, f"{_candidates(told)} · {end}", style)]
    evaluation = told.get("evaluation") or {}
    reasoning = clipped(str(evaluation.get("evaluation_reasoning") or ""), _LONGEST)
    lines += [Line(f"      {reasoning}")] if reasoning else []
    if event.accepted:
        return lines
    suggestions = evaluation.get("improvement_suggestions") or ()
    lines += [Line(f"      - {clipped(str(suggestion), _LONGEST)}") for suggestion in suggestions[:_SUGGESTIONS]]
    if len(suggestions) > _SUGGESTIONS:
        lines.append(Line(f"      and {len(suggestions) - _SUGGESTIONS} more"))
    return lines


def _candidates(told: dict[str, Any]) -> str:
    """Return a text that says which candidate was chosen, with the scores of all candidates; "" if there are no candidates."""
    candidates = told.get("candidates") or ()
    if not candidates:
        return ""
    scores = ", ".join(f"{each['evaluation']['score']:.2f}" if each["evaluation"] else "failed" for each in candidates)
    return f" · answer {told['chosen'] + 1} of {len(candidates)} ({scores})"


def _figures(told: dict[str, Any], seconds: float) -> str:
    usage = told.get("usage") or {}
    tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return figures(
        usage.get("calls", 0), 0, tokens, told.get("cost"), f"{seconds:.1f} s", estimated=usage.get("estimated", False)
    )


def figures(
    calls: int, cached: int, tokens: Sequence[int], cost: float | None, time: str = "", *, estimated: bool = False
) -> str:
    """Return calls, tokens, cost and time as short text.

    ``calls`` is the number of calls sent; ``cached`` is the number of answers from the cache. If ``estimated``, a model did not
    report all tokens.
    """
    parts = [f"{calls:,} call{'' if calls == 1 else 's'}"]
    parts += [f"{cached:,} from the cache"] if cached else []
    mark = estimated_mark(estimated)
    parts += [f"{' + '.join(f'{count:,}' for count in tokens)} tokens{mark}"] if any(tokens) else []
    parts += [dollars(cost)] if cost else []
    return " · ".join([*parts, time] if time else parts)


def event_note(event: Event) -> str:
    """Return the line for a noteworthy event outside the iterations; "" for other events."""
    match event:
        case CallRetried():
            return f"{_AGAIN.get(event.kind, event.kind)} ({event.attempt}): {event.reason}"
        case BudgetReached():
            return reached(event)
        case Warned():
            return f"warning: {_TOO_SMALL if event.message == TOO_SMALL else event.message}"
        case _:
            return ""


_TOO_SMALL = "the local model is too small to judge; add requirements with --check, or choose a judge with --judge-llm"
"""The text that is shown for the warning ``TOO_SMALL``; it names the command-line options."""


class Screen(Display):
    """Shows the progress of an answer on a terminal (stderr), starting at the first event.

    The redrawing thread only reads this object's data.
    """

    def __init__(self, calls: Calls, console: Console | None = None) -> None:
        self._calls = calls
        self._most, self._threshold, self._attempts = 0, 0.0, 1
        self._at, self._written = 1, 0
        self._began = perf_counter()
        self._foot = Foot(self._drawn, console)

    def __call__(self, event: Event) -> None:
        """Process one event; print the permanent lines above the display."""
        match event:
            case AnswerStarted():
                self._most, self._threshold, self._attempts = event.iter_max, event.score_threshold, event.attempts
                self._began = perf_counter()
                self._foot.start()
            case IterationStarted():
                self._at, self._written = event.iteration, 0
            case CandidateWritten():
                self._written += 1
            case IterationFinished():
                for line in iteration(event, self._most, self._threshold):
                    self._print(line)
            case _:
                if text := event_note(event):
                    self.note(text)

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._print(Line(text, style="yellow"))

    def stop(self) -> None:
        """Remove the display."""
        self._foot.stop()

    def _print(self, line: Line) -> None:
        self._foot.line(Text.assemble((printable(line.head), line.style), printable(line.rest)))

    def _drawn(self) -> Any:
        drawn = Table.grid(padding=(0, 1))
        doing = "judging" if self._written else "writing"
        if self._attempts > 1:
            doing = f"{self._written} of {self._attempts} answers written"
        sent = self._calls.calls - self._calls.cached
        drawn.add_row(
            self._foot.spinner,
            Text(f"iteration {self._at} of {self._most}", style="bold"),
            Text(doing),
            Text(
                figures(
                    sent, self._calls.cached, (self._calls.tokens,), self._calls.cost, estimated=self._calls.estimated
                )
                if self._calls.calls
                else ""
            ),
            Text(clock(perf_counter() - self._began), style="dim"),
        )
        return drawn


# The output of ``answer`` in a pipe: lines on stderr.


@define
class Lines(Display):
    """Prints a few lines for each iteration when it ends."""

    _most: int = 0
    _threshold: float = 0.0
    _coloured: bool = field(factory=lambda: colour(sys.stderr))

    def __call__(self, event: Event) -> None:
        """Print the lines for noteworthy events."""
        match event:
            case AnswerStarted():
                self._most, self._threshold = event.iter_max, event.score_threshold
            case IterationFinished():
                for line in iteration(event, self._most, self._threshold):
                    self._print(line)
            case _:
                if text := event_note(event):
                    self.note(text)

    def _print(self, line: Line) -> None:
        head = printable(line.head)
        say((paint(head, line.style, self._coloured) if line.style else head) + printable(line.rest))
        sys.stderr.flush()


# The run of ``answer``: shows the progress, then writes the answer to stdout, and its quality and cost to stderr.

_STYLES = {"accepted": "green", "best": "yellow", "failed": "red"}
_CODES = {"accepted": Exit.DONE, "best": Exit.PARTIAL, "failed": Exit.FAILED}


def run(
    request: AnswerRequest, llm: str | None, judges: Sequence[str], form: str, requested: str, settings: Mapping[str, Any]
) -> int:  # fmt: skip
    """Answer a request and return the exit code.

    ``requested`` is the model named in the request; if another model answers, a warning says so. Raises ``NotConfigured`` or
    ``RequestError``.
    """
    calls, events, warned = Calls(), Events(), list[str]()
    view = Display() if subscribe_debug_log(events) else Screen(calls) if is_terminal(sys.stderr) else Lines()
    spec, warning = llm or default_spec(), ""
    if requested and requested != (spec.rpartition("#")[2] if "#" in spec else spec.partition(":")[2]):
        warning = f"the request names the model {requested!r}, but {spec} answered"
    for subscriber in (calls, view, lambda event: warned.append(event.message) if isinstance(event, Warned) else None):
        events.subscribe(subscriber)
    subscribe_traces(events)

    async def answered() -> Answered:
        cancel = asyncio.Event()
        with cancelling(cancel, view.note, view.stop):
            return await answer_request(request, spec, judges, events=events, cancel=cancel, **settings)

    try:
        answer = asyncio.run(answered())
    finally:
        view.stop()
    if warning:
        parts = {**answer.told, "requested_model": requested}
        answer = evolve(answer, told=parts, warnings=(warning, *answer.warnings))
    return finish(answer, request.score_threshold, calls.cached, form, warned)


def finish(answer: Answered, threshold: float, cached: int, form: str, warned: Collection[str] = ()) -> int:
    """Write an answer and its figures; return the exit code.

    ``cached`` is the number of calls answered from the cache; ``warned`` contains the warnings that were already printed.
    """
    if form == "json":
        print(json_text(answer.as_json()))
    elif answer.final_answer is not None:
        write(answer.final_answer)
    sys.stdout.flush()
    if answer.final_answer is not None and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    status = paint(answer.status, _STYLES[answer.status], colour(sys.stderr))
    tokens = answer.usage.prompt_tokens, answer.usage.completion_tokens
    cost = figures(
        answer.calls, cached, tokens, answer.cost, f"{answer.seconds:.2f} s", estimated=answer.usage.estimated
    )
    say(f"{status}: {_quality(answer, threshold)} · {cost}")
    say_prices(answer.prices)
    for warning in answer.warnings:
        if warning not in warned:
            say(printable(f"warning: {warning}"))
    if answer.status == "failed" or answer.stopped:
        say(printable(answer.reason))
    return Exit.INTERRUPTED if answer.stopped == "cancelled" else _CODES[answer.status]


def _quality(answer: Answered, threshold: float) -> str:
    total = answer.total_iterations
    if not total:
        return "no iteration finished"
    if answer.best is None or answer.final_score is None:
        return f"none of {total} iterations has a score" if total != 1 else "the only iteration has no score"
    which = f"iteration {answer.best + 1} of {total}" if total > 1 else "one iteration"
    below = "" if answer.success else f", below {threshold:g}"
    return f"{points(answer.final_score, threshold)} in {which}{below}"
