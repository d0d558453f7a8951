"""What GASL's plans tell: plans, their commands, the state."""

from attrs import field, frozen

from .stream import Event

__all__ = [
    "CommandFinished",
    "CommandStarted",
    "PlanFinished",
    "PlanStarted",
    "StateChanged",
]


@frozen
class PlanStarted(Event):
    """``plan.started``: a GASL plan was checked and begins; ``commands`` counts those of the outermost level."""

    name = "plan.started"
    plan: str
    commands: int
    why: str = ""


@frozen
class PlanFinished(Event):
    """``plan.finished``: nothing of the plan is under way any more; ``status`` is the plan's as a whole."""

    name = "plan.finished"
    plan: str
    status: str
    seconds: float


@frozen
class CommandStarted(Event):
    """``command.started``: a GASL command begins. ``step`` is its number, with a point those that it runs ("3.1")."""

    name = "command.started"
    plan: str
    step: str
    command: str


@frozen
class CommandFinished(Event):
    """``command.finished``: a GASL command ended, with its status; ``message`` says what was not as wanted."""

    name = "command.finished"
    plan: str
    step: str
    status: str
    seconds: float
    count: int | None = None
    message: str = ""


@frozen
class StateChanged(Event):
    """``state.changed``: a command's change of the state is committed; ``hash`` is the state's hash from now on.

    ``sizes``: what the declared keys hold now (items, fields), the first fifty of them.
    """

    name = "state.changed"
    plan: str
    step: str
    hash: str
    sizes: dict[str, int] = field(factory=dict)
