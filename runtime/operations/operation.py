"""What an operation is, seen from the run: its signature, and a runner with what it may use."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from attrs import field, frozen

from ...lang.catalogue.operations import Signature
from ...lang.trees.lwt import Call
from ..calls import Caller
from ..results import Outcome
from ..templates import Scope
from .workshop import Workshop

__all__ = ["Context", "Operation", "Runner"]


@frozen
class Context:
    """What a runner may use: the step's id, what references see, the models, and the graph where the run has one.

    ``folder`` is the script's own, where ``file=`` lies; None: the run reads no files. ``spec`` is the run's own model as the user
    wrote it, where that is known.
    """

    step: str
    scope: Scope
    caller: Caller
    workshop: Workshop | None = None
    folder: Path | None = None
    spec: str = ""


Runner = Callable[[Call, Context], Awaitable[Outcome]]


@frozen
class Operation:
    """An operation: how it is written, and how it runs."""

    signature: Signature
    run: Runner = field(repr=False)
