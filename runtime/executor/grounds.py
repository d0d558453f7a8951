"""What a state's findings are of: a state that was made with one graph is not gone on with another by mistake."""

import os

from ...adapters.state import StateStore

__all__ = ["is_of_another", "same_name", "told_of_another"]


def is_of_another(state: StateStore, graph: str) -> bool:
    """Say whether a state holds findings, and the plan that ran last in it ran on another graph than the one with this hash."""
    if not state.snapshot().declared():
        return False
    plans = (entry.get("plan") for entry in reversed(state.history))
    last = next((plan["graph"] for plan in plans if plan and plan.get("graph")), graph)
    return bool(last != graph)


def same_name(one: str | None, other: str | None) -> bool:
    """Say whether two sources of graphs, as a user writes them, are one: nothing is read for it. A graph without a name is none."""
    return bool(one and other) and (one == other or os.path.realpath(str(one)) == os.path.realpath(str(other)))


def told_of_another(folder: object, before: str | None, now: str | None) -> str:
    """Say of which graph the findings in ``folder`` are, and of which they are not."""
    if before and now and same_name(before, now):
        return f"{now} has changed since the findings in {folder} were made"
    return f"the findings in {folder} are of {before or 'another graph'}, not of {now or 'this graph'}"
