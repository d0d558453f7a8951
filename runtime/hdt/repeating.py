"""A plan that was run before, and nothing has changed since: it goes back to the model once, for it would come to the same."""

from collections.abc import Sequence

from .checking import Action
from .results import Step
from .seeing import trail_view

__all__ = ["repeated"]

_SHOWN = 800


def repeated(action: Action, state: str, steps: Sequence[Step]) -> str:
    """Say of a plan that would be run in the state with the hash ``state`` that it was run already; "" where it was not.

    The latest step with these commands counts, where it left the state as it is now.
    """
    for step in reversed(steps):
        if (
            step.state == state
            and step.commands == action.commands
            and step.plan.get("config") == action.plan.get("config")
        ):
            return (
                f"this plan was run in step {step.number}, and the state has not changed since:\n{trail_view([step], _SHOWN)}\n"
                "plan something else, or answer the question; the same plan once more is run as it is"
            )
    return ""
