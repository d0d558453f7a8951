"""The definition of a dot command, and its arguments."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from attrs import frozen

from .....lang.diagnostic import nearest, suggestion
from ....api.pieces import Piece
from ....api.session import Session
from ....api.session_data import Outcome, misused

ArgumentKind = Literal[
    "", "attribute", "value", "key", "hash", "file", "mode", "switch", "command", "topic", "model", "limit"
]
"""The kind of argument, for completion."""


@frozen
class DotRequest:
    """A dot command as typed: the text after its name, and its context."""

    argument: str
    session: Session
    piece: Piece
    cancel: asyncio.Event
    commands: "Mapping[str, DotCommand]"

    @property
    def words(self) -> list[str]:
        """The words of the argument; quotes group words."""
        try:
            return shlex.split(self.argument)
        except ValueError:  # an unclosed quote
            return self.argument.split()

    def missing(self, message: str, name: str, known: Sequence[str]) -> Outcome:
        """Return the outcome for a name missing from ``known``: the probable intended name is its hint and its fix."""
        near = nearest(name, known)
        fix = "" if near is None else near.join(self.piece.text.rsplit(name, 1))
        return misused(message, suggestion(name, known), fix)


@frozen
class DotCommand:
    """A dot command: ``usage`` is its syntax, ``summary`` one line of help, ``more`` the rest of the help."""

    name: str
    usage: str
    summary: str
    run: Callable[[DotRequest], Awaitable[Outcome]]
    takes: ArgumentKind = ""
    more: str = ""


def in_thread(run: Callable[[DotRequest], Outcome]) -> Callable[[DotRequest], Awaitable[Outcome]]:
    """Return a coroutine function that runs ``run`` in a thread, because it waits for a disk."""

    async def run_in_thread(request: DotRequest) -> Outcome:
        return await asyncio.to_thread(run, request)

    return run_in_thread
