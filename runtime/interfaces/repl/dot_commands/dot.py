"""The definition of a dot command, and the request to run one."""

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
"""The kind of argument of a dot command, for completion. "" means that the argument can't be completed."""


@frozen
class DotRequest:
    """A dot command to run: the text after the command's name (``argument``), and the context in which the command runs."""

    argument: str
    session: Session
    piece: Piece
    cancel: asyncio.Event
    commands: "Mapping[str, DotCommand]"

    @property
    def words(self) -> list[str]:
        """The words of the argument. Words in quotes count as one word."""
        try:
            return shlex.split(self.argument)
        except ValueError:  # an unclosed quote
            return self.argument.split()

    def missing(self, message: str, name: str, known: Sequence[str]) -> Outcome:
        """Return the outcome for a name that is missing from ``known``. The hint and the fix suggest a similar name, if any."""
        near = nearest(name, known)
        fix = "" if near is None else near.join(self.piece.text.rsplit(name, 1))
        return misused(message, suggestion(name, known), fix)


@frozen
class DotCommand:
    """A dot command. ``usage`` is its syntax, ``summary`` is one line of help, ``more`` is the rest of the help."""

    name: str
    usage: str
    summary: str
    run: Callable[[DotRequest], Awaitable[Outcome]]
    takes: ArgumentKind = ""
    more: str = ""


def in_thread(run: Callable[[DotRequest], Outcome]) -> Callable[[DotRequest], Awaitable[Outcome]]:
    """Return a coroutine function that runs ``run`` in a thread, because ``run`` accesses the disk."""

    async def run_in_thread(request: DotRequest) -> Outcome:
        return await asyncio.to_thread(run, request)

    return run_in_thread
