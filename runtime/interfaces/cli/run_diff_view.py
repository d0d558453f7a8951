"""Shows the differences between two stored runs, for ``knotwork runs diff``."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....lang.diagnostic import printable
from ...api import evals
from ...api.figures import counted
from .output import Exit, colour, complain, json_text, paint, say

if TYPE_CHECKING:
    from ...api.evals import RunDiff, StepDiff

_LISTED = 20
"""Maximum number of places that are shown in full; --json has all."""
_LINES = 40
"""Maximum number of lines of one difference."""
_LONGEST = 300
"""Maximum number of characters of a line."""
_STYLES = {"-": "red", "+": "green"}
_WORDS = ("same", "changed", "added", "removed", "unknown")


def print_diff(before: str, after: str, *, as_json: bool, exit_code: bool) -> int:
    """Print the differences between two runs; return the exit code."""
    try:
        found = evals.diff_runs(before, after)
    except evals.RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    for warning in found.warnings:
        say(printable(f"warning: {warning}"))
    if as_json:
        print(json_text(found.as_json()))
    else:
        _print(found)
    return Exit.FAILED if exit_code and not found.is_equal else Exit.DONE


def _print(found: "RunDiff") -> None:
    for sign, run in (("-", found.before), ("+", found.after)):
        model = run["model"] or "no model"
        _line(sign, f"{run['run']}  {run['kind']}  {run['name']}  {model}  {run['status']}")
    if found.is_equal:
        print("the runs are equal")
        return
    if found.before["model"] != found.after["model"]:
        print(printable(f"model: {found.before['model'] or '-'} -> {found.after['model'] or '-'}"))
    for name, (one, other) in found.options.items():
        print(_short(f"{name}: {one} -> {other}"))
    if found.input:
        print("the input changed")
    if found.text:
        print("the text changed:")
        _lines(found.text.splitlines())
    for name in ("prompt", "answer"):
        counts = found.counts[name]
        told = ", ".join(f"{counts[word]:,} {word}" for word in _WORDS if counts.get(word))
        if told:
            print(f"{name}s: {told}")
    _places(found.steps)
    if found.results:
        print(f"{counted(len(found.results), 'result')} changed")
        _places(found.results)


def _places(places: "Sequence[StepDiff]") -> None:
    for each in places[:_LISTED]:
        if each.answer in ("added", "removed"):
            what = f"only in the {'second' if each.answer == 'added' else 'first'} run"
        elif each.prompt == "changed":
            what = f"prompt changed, answer {each.answer}"
        else:
            what = f"answer {each.answer}" + (", same prompt" if each.prompt == "same" else "")
        print(paint(printable(f"{each.place}: {what}"), "bold", colour(sys.stdout)))
        if each.prompts is not None:
            _lines([f"  prompt {line}" for line in evals.unified(*each.prompts)], 9)
        if each.before == each.after:
            continue
        if each.before is not None and each.after is not None and "\n" in each.before:
            _lines([f"  {line}" for line in evals.unified(each.before, each.after)], 2)
            continue
        for sign, text in (("-", each.before), ("+", each.after)):
            if text is not None:
                _lines([f"  {sign} {line}" for line in text.splitlines()], 2)
    if len(places) > _LISTED:
        print(f"and {len(places) - _LISTED:,} more; --json has all")


def _lines(lines: Sequence[str], at: int = 0) -> None:
    """Print lines of a diff; the sign of each is at the position ``at``."""
    for line in lines[:_LINES]:
        print(paint(_short(line), _STYLES.get(line[at : at + 1], "dim"), colour(sys.stdout)))
    if len(lines) > _LINES:
        print(f"  and {len(lines) - _LINES:,} more lines; --json has all")


def _line(sign: str, text: str) -> None:
    print(paint(printable(f"{sign} {text}"), _STYLES[sign], colour(sys.stdout)))


def _short(text: str) -> str:
    return printable(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
