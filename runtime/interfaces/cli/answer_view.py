"""The live display of ``answer``: the present iteration and the figures. Finished iterations stay above it."""

import sys
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Literal

from attrs import define, field, frozen
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import printable
from ...answers.answer_results import Answered, points
from ...answers.service import TOO_SMALL
from ...errors import RequestError
from ...events import (
    AnswerStarted,
    BudgetReached,
    CallRetried,
    CandidateWritten,
    Event,
    IterationFinished,
    IterationStarted,
    Warned,
)
from ...excerpts import clipped
from ..figures import Calls, clock, dollars
from ..options import Limits
from .display import Foot
from .inputs import reached
from .output import Exit, Misused, colour, is_terminal, json_text, paint, say, write

# The arguments of ``answer`` as values.

Form = Literal["auto", "plain", "json"]

_OPTIONS = {
    "instruct": "INSTRUCTION", "resp_format": "--resp-format", "eval_crit": "--criteria", "iter_max": "--iter-max",
    "score_threshold": "--threshold", "attempts": "--attempts", "judges": "--judges", "checks": "--check",
    "template": "--template", "templates": "--templates", "judges_models": "--judge-llm", "examples": "--examples",
    "time_limit": "--time-limit",
    "temperature": "--temperature", "max_tokens": "--answer-tokens",
}  # fmt: skip
"""Command line names of request parameters that differ from the request's own."""


@frozen
class AnswerAsked:
    """The arguments of ``knotwork answer``. ``typed`` has those that belong to the request, under the request's own names."""

    typed: Mapping[str, Any]
    request: str | None
    templates: str | None
    examples: str | None
    llm: str | None
    judges: tuple[str, ...]
    """Specs of the models that judge; none: the writing model."""
    form: Form
    time_limit: float | None
    max_concurrency: int
    limits: Limits
    options: Mapping[str, Any]
    """Further options of the writer's calls."""


@frozen
class Typed:
    """The source of each part of a request: parts not in ``typed`` come from ``file`` (as shown; "" for none).

    ``model`` is the one that the file names, replaced by the command's own.
    """

    typed: frozenset[str]
    file: str = ""
    model: str = ""

    def place(self, parameter: str) -> str:
        """Return the name of a parameter as the user wrote it, such as ``checks[1]``."""
        name = parameter.partition("[")[0]
        if self.file and name not in self.typed:
            return f"{self.file}: {parameter}"
        return _OPTIONS.get(name, parameter)


def misused(error: RequestError, where: Typed) -> Misused:
    """Return the error of a request as a usage error that names the option or the place in the file."""
    return Misused(f"{where.place(error.parameter)}: {error.message}", error.hint)


# Describes an iteration in words and as a small bar: for the lines in a pipe and for the screen.

_CELLS = 20
_LONGEST = 240
"""Maximum characters shown of a reasoning or a suggestion; --format json has all."""
_SUGGESTIONS = 5
_AGAIN = {"retry": "sent again", "again": "asked again", "repair": "asked to mend its answer"}


@frozen
class Line:
    """A line of output: a head that may be coloured in ``style``, and the rest."""

    head: str
    rest: str = ""
    style: str = ""

    def __str__(self) -> str:
        return f"{self.head}{self.rest}"


def bar(score: float, threshold: float) -> str:
    """Return the score as a bar with a mark at the threshold; the bar reaches the mark exactly if the score does."""
    mark = max(1, _cells(threshold)) if threshold > 0 else 0
    filled = max(_cells(score), mark) if score >= threshold else min(_cells(score), mark - 1)
    cells = "━" * filled + "─" * (_CELLS - filled)
    return f"{cells[:mark]}│{cells[mark:]}"


def _cells(share: float) -> int:
    return int(share * _CELLS + 1e-9)


def iteration(event: IterationFinished, most: int, threshold: float) -> list[Line]:
    """Return the lines for a finished iteration: its score, the judge's reasoning, suggestions."""
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
    """Return which of several answers counts, and the results of the others."""
    candidates = told.get("candidates") or ()
    if not candidates:
        return ""
    scores = ", ".join(f"{each['evaluation']['score']:.2f}" if each["evaluation"] else "failed" for each in candidates)
    return f" · answer {told['chosen'] + 1} of {len(candidates)} ({scores})"


def _figures(told: dict[str, Any], seconds: float) -> str:
    usage = told.get("usage") or {}
    tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return figures(usage.get("calls", 0), 0, tokens, told.get("cost"), f"{seconds:.1f} s")


def figures(calls: int, cached: int, tokens: Sequence[int], cost: float | None, time: str = "") -> str:
    """Return the cost in a few words. ``calls`` were sent; ``cached`` is the number of answers from the cache."""
    parts = [f"{calls:,} call{'' if calls == 1 else 's'}"]
    parts += [f"{cached:,} from the cache"] if cached else []
    parts += [f"{' + '.join(f'{count:,}' for count in tokens)} tokens"] if any(tokens) else []
    parts += [dollars(cost)] if cost else []
    return " · ".join([*parts, time] if time else parts)


def event_note(event: Event) -> str:
    """Return the line for a noteworthy event outside the iterations, else ""."""
    match event:
        case CallRetried():
            return f"{_AGAIN.get(event.kind, event.kind)} ({event.attempt}): {event.reason}"
        case BudgetReached():
            return reached(event)
        case Warned():
            return f"warning: {event.message}"
        case _:
            return ""


class Screen:
    """Shows an answer on a terminal (stderr), from its first event on. The refreshing thread only reads."""

    def __init__(self, calls: Calls, console: Console | None = None) -> None:
        self._calls = calls
        self._most, self._threshold, self._attempts = 0, 0.0, 1
        self._at, self._written = 1, 0
        self._began = perf_counter()
        self._foot = Foot(self._drawn, console)

    def __call__(self, event: Event) -> None:
        """Process one event; print lines that stay."""
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
        drawn.add_row(
            self._foot.spinner,
            Text(f"iteration {self._at} of {self._most}", style="bold"),
            Text(self._doing()),
            Text(self._spent()),
            Text(clock(perf_counter() - self._began), style="dim"),
        )
        return drawn

    def _spent(self) -> str:
        told = self._calls
        return figures(told.calls - told.cached, told.cached, (told.tokens,), told.cost) if told.calls else ""

    def _doing(self) -> str:
        if self._attempts == 1:
            return "judging" if self._written else "writing"
        return f"{self._written} of {self._attempts} answers written"


# The output of ``answer`` in a pipe: lines on stderr.


@define
class Lines:
    """A few lines for each iteration when it ends."""

    _most: int = 0
    _threshold: float = 0.0
    _coloured: bool = field(factory=lambda: colour(sys.stderr))

    def __call__(self, event: Event) -> None:
        """Print the events that matter in a log."""
        match event:
            case AnswerStarted():
                self._most, self._threshold = event.iter_max, event.score_threshold
            case IterationFinished():
                for line in iteration(event, self._most, self._threshold):
                    self._print(line)
            case _:
                if text := event_note(event):
                    self.note(text)

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def stop(self) -> None:
        """Do nothing."""

    def _print(self, line: Line) -> None:
        head = printable(line.head)
        say((paint(head, line.style, self._coloured) if line.style else head) + printable(line.rest))
        sys.stderr.flush()


# The end of ``answer``: the answer on stdout, its quality and cost on stderr; and the exit code.

_STYLES = {"accepted": "green", "best": "yellow", "failed": "red"}
_CODES = {"accepted": Exit.DONE, "best": Exit.PARTIAL, "failed": Exit.FAILED}


def finish(answered: Answered, threshold: float, cached: int, form: Form) -> int:
    """Write answer and report; return the exit code. ``cached``: the number of calls answered by the cache."""
    if form == "json":
        print(json_text(answered.as_json()))
    elif answered.final_answer is not None:
        write(answered.final_answer)
    sys.stdout.flush()
    if answered.final_answer is not None and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _report(answered, threshold, cached)
    return Exit.INTERRUPTED if answered.stopped == "cancelled" else _CODES[answered.status]


def _report(answered: Answered, threshold: float, cached: int) -> None:
    status = paint(answered.status, _STYLES[answered.status], colour(sys.stderr))
    tokens = answered.usage.prompt_tokens, answered.usage.completion_tokens
    cost = figures(answered.calls, cached, tokens, answered.cost, f"{answered.seconds:.2f} s")
    say(f"{status}: {_how(answered, threshold)} · {cost}")
    for warning in answered.warnings:
        if warning != TOO_SMALL:  # reported before the first call
            say(printable(f"warning: {warning}"))
    if answered.status == "failed" or answered.stopped:
        say(printable(answered.reason))


def _how(answered: Answered, threshold: float) -> str:
    total = answered.total_iterations
    if not total:
        return "no iteration was finished"
    if answered.best is None or answered.final_score is None:
        return f"none of {total} iterations has a score" if total != 1 else "the one iteration has no score"
    which = f"iteration {answered.best + 1} of {total}" if total > 1 else "one iteration"
    below = "" if answered.success else f", below {threshold:g}"
    return f"{points(answered.final_score, threshold)} in {which}{below}"
