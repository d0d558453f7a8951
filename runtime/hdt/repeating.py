"""A plan that was run before, and nothing has changed since: it goes back to the model once, for it would come to the same.

A plan that is run again all the same, and comes to the same, is a repetition; the next one in a row ends the loop.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...lang.diagnostic import has_errors
from ...lang.parse.gasl import parse_gasl
from ...lang.printer.gasl import format_gasl
from ...lang.source import Source
from .checking import Action
from .results import Step
from .seeing import trail_view

__all__ = ["repeated", "repetitions"]

_SHOWN = 800
_LONGEST = 20_000


def repeated(action: Action, state: str, steps: Sequence[Step]) -> str:
    """Say of a plan that would be run in the state with the hash ``state`` that it was run already; "" where it was not.

    The latest step with these commands counts, where it left the state as it is now.
    """
    for step in reversed(steps):
        if step.state == state and _same(step, action):
            return (
                f"this plan was run in step {step.number}, and the state has not changed since:\n{trail_view([step], _SHOWN)}\n"
                "plan something else, or answer the question; the same plan once more is run as it is, and then ends the loop"
            )
    return ""


def repetitions(steps: Sequence[Step]) -> int:
    """Return how many of the last steps in a row ran a plan that was run before, and came to the same."""
    count = 0
    for at in range(len(steps) - 1, -1, -1):
        step = steps[at]
        if not any(_same(each, step) and _came_to(each) == _came_to(step) for each in steps[:at]):
            break
        count += 1
    return count


def _same(step: Step, other: Step | Action) -> bool:
    return (
        bool(step.commands)
        and step.plan.get("config") == other.plan.get("config")
        and _written(step.commands) == _written(other.commands)
    )


@cache
def _written(commands: tuple[str, ...]) -> str:
    """Return commands as the printer writes them: case and blanks do not matter."""
    text = "\n".join(commands)
    program = parse_gasl(Source(text, "<plan>")) if len(text) <= _LONGEST else None
    return text if program is None or has_errors(program.diagnostics) else format_gasl(program)


def _came_to(step: Step) -> list[Any]:
    """Return what the commands gave; how it changed the state is left out: a counter that counts the same again is no progress."""
    return [_result(entry) for entry in step.entries]


def _result(entry: Mapping[str, Any]) -> Any:
    count = (entry.get("summary") or {}).get("count") if entry.get("variable") else None
    return entry.get("status"), entry.get("variable"), count, entry.get("output")
