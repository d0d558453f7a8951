"""Puts a step's prompt together, within one number of characters, whatever graph, state and models' answers are."""

from collections.abc import Sequence

from attrs import frozen

from ...adapters.graph import Caps
from ...adapters.state import StateStore
from ...lang.catalogue.schema import Schema
from ..commands.excerpts import clipped, fenced
from ..prompting import fill, read_prompt
from ..records import cut
from .results import Step
from .seeing import graph_view, outcome_view, state_view, trail_view

__all__ = ["Refused", "build_prompt"]

_SHARES = {"refused": 0.25, "outcome": 0.3, "trail": 0.15, "state": 0.45, "schema": 1.0}
"""Of the room that is left when their turn comes, in this order."""
_FENCES = 60
"""Characters of the fences and the words around a view."""


@frozen
class Refused:
    """An answer that was not run, and what is wrong with it."""

    answer: str
    faults: str


def build_prompt(
    question: str,
    schema: Schema,
    caps: Caps,
    state: StateStore,
    steps: Sequence[Step],
    refused: Refused | None,
    most: int,
    branches: int = 1,
) -> str:
    """Return the prompt for the step behind ``steps``, of at most ``most`` characters. Data stands between fences.

    ``branches``: how many plans are wanted, to be tried side by side.
    """
    room = most
    while True:
        prompt = _built(question, schema, caps, state, steps, refused, room, branches)
        if len(prompt) <= most:
            return prompt
        room -= max(200, len(prompt) - most)  # a fence that grew with the backticks in what it holds


def _built(
    question: str,
    schema: Schema,
    caps: Caps,
    state: StateStore,
    steps: Sequence[Step],
    refused: Refused | None,
    most: int,
    branches: int,
) -> str:
    package = __package__ or ""
    values = {
        "question": fenced(cut(question, max(500, most // 6))),
        "language": read_prompt(package, "language"),
        "task": _task(package, bool(steps), branches),
        **dict.fromkeys(_SHARES, ""),
    }
    template = read_prompt(package, "step")
    left = max(800, most - len(template) - sum(map(len, values.values())) - _FENCES * len(_SHARES))

    def room(name: str) -> int:
        return int(left * _SHARES[name])

    if refused is not None:
        part = room("refused")
        values["refused"] = fill(
            read_prompt(package, "refused"),
            {"answer": fenced(clipped(refused.answer, part // 3)), "faults": fenced(cut(refused.faults, part // 2))},
        )
        left -= len(values["refused"])
    if steps:
        last, head = steps[-1], f"THE LAST STEP ({steps[-1].status})"
        told = cut(last.faults, room("outcome")) if last.status == "refused" else outcome_view(last, room("outcome"))
        supposed = clipped(last.supposed.hypothesis, 300)
        values["outcome"] = f"{head}\n{fenced(f'supposed: {supposed}' + chr(10) + told)}"
        left -= len(values["outcome"])
        if steps[:-1]:
            values["trail"] = f"EARLIER STEPS\n{fenced(trail_view(steps[:-1], room('trail')))}"
            left -= len(values["trail"])
    values["state"] = fenced(state_view(state, room("state")))
    left -= len(values["state"])
    values["schema"] = fenced(graph_view(schema, caps, room("schema")))
    return fill(template, values)


def _task(package: str, later: bool, branches: int) -> str:
    task = read_prompt(package, "next" if later else "first")
    if branches == 1:
        return task
    return f"{task.rstrip()}\n{fill(read_prompt(package, 'several'), {'branches': str(branches)})}"
