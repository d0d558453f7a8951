"""What a command that holds others (a block, a branch) may ask of the plan it is in."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from attrs import frozen

from ...lang.trees.gasl import Command, Item
from ..records import ExecutionRecord, Status
from ..session import Session
from .recording import Place

__all__ = ["Parts", "Ran"]


@frozen
class Ran:
    """What came of some commands: their records, and the one that ended them before their end."""

    records: tuple[ExecutionRecord, ...]
    stopped: ExecutionRecord | None = None


class Parts(Protocol):
    """A plan under way, as its commands see it. ``statuses`` are the last ones of each variable's producer."""

    session: Session
    statuses: dict[str, Status]

    async def sequence(self, items: Sequence[Item], place: Place, first: int) -> Ran:
        """Run what a block holds, as parts of ``place`` from number ``first`` on. In a block every failure stops."""
        ...

    async def part(self, command: Command, place: Place, number: int) -> ExecutionRecord:
        """Run a command that another one holds, and note it."""
        ...

    def shielded(self) -> AbstractContextManager[None]:
        """Let commands run although the plan is cancelled."""
        ...
