"""What a run reports while it goes: one list of typed events, and the stream that carries them.

The runtime emits events and knows no screen. Progress displays, the debug log, run directories and reports subscribe.
``EVENTS`` names every event; docs/reference/events.md is generated from it.

Rooms by who tells: ``running`` (every run), ``plans``, ``answers``, ``loops``; ``stream`` carries them.
"""

from .loop_events import (
    AnswerFinished,
    AnswerStarted,
    BranchClosed,
    BranchOpened,
    CandidateWritten,
    DecisionMade,
    DraftMended,
    HypothesisFormed,
    IterationFinished,
    IterationStarted,
    PhaseFinished,
    PhaseStarted,
    RepairAsked,
    ToolCalled,
)
from .run_events import (
    AnswerRead,
    BudgetReached,
    CallFinished,
    CallRetried,
    CallStarted,
    CommandFinished,
    CommandStarted,
    Event,
    Events,
    PlanFinished,
    PlanStarted,
    RunFinished,
    RunStarted,
    StateChanged,
    StepFinished,
    StepSkipped,
    StepStarted,
    Warned,
    as_json,
)

__all__ = [
    "EVENTS",
    "AnswerFinished",
    "AnswerRead",
    "AnswerStarted",
    "BranchClosed",
    "BranchOpened",
    "BudgetReached",
    "CallFinished",
    "CallRetried",
    "CallStarted",
    "CandidateWritten",
    "CommandFinished",
    "CommandStarted",
    "DecisionMade",
    "DraftMended",
    "Event",
    "Events",
    "HypothesisFormed",
    "IterationFinished",
    "IterationStarted",
    "PhaseFinished",
    "PhaseStarted",
    "PlanFinished",
    "PlanStarted",
    "RepairAsked",
    "RunFinished",
    "RunStarted",
    "StateChanged",
    "StepFinished",
    "StepSkipped",
    "StepStarted",
    "ToolCalled",
    "Warned",
    "as_json",
]

EVENTS: tuple[type[Event], ...] = (
    RunStarted, RunFinished, StepStarted, StepFinished, StepSkipped, CallStarted, CallRetried, CallFinished, AnswerRead,
    PlanStarted, PlanFinished, CommandStarted, CommandFinished, StateChanged,
    AnswerStarted, IterationStarted, CandidateWritten, IterationFinished, AnswerFinished,
    PhaseStarted, PhaseFinished, DraftMended, RepairAsked, ToolCalled, HypothesisFormed, DecisionMade, BranchOpened,
    BranchClosed, BudgetReached, Warned,
)  # fmt: skip
"""Every event there is, in the order of the reference."""
