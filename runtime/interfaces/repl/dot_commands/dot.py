"""What a dot command is, and what it is given."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from attrs import frozen

from .....lang.diagnostic import nearest
from ..languages import like
from ..outcome import Outcome, misused
from ..reader import Piece
from ..repl_workspace import Desk

__all__ = ["Asked", "Dot", "Takes", "beside"]

Takes = Literal["", "attribute", "value", "key", "hash", "file", "mode", "switch", "command", "topic", "model", "limit"]
"""What the argument is: who completes it asks."""


@frozen
class Asked:
    """A dot command as it was typed: the text behind its name, and what there is to work on."""

    argument: str
    desk: Desk
    piece: Piece
    cancel: asyncio.Event
    dots: "Mapping[str, Dot]"

    @property
    def words(self) -> list[str]:
        """The words of the argument; quotes keep one together."""
        try:
            return shlex.split(self.argument)
        except ValueError:  # a quote that is not closed
            return self.argument.split()

    def missing(self, message: str, name: str, known: Sequence[str]) -> Outcome:
        """Return the outcome of a name that is none of ``known``: what was probably meant is its hint, and its fix."""
        near = nearest(name, known)
        fix = "" if near is None else near.join(self.piece.text.rsplit(name, 1))
        return misused(message, like(name, known), fix)


@frozen
class Dot:
    """``usage`` is how it is typed, ``summary`` a line of help, ``more`` the rest of it."""

    name: str
    usage: str
    summary: str
    run: Callable[[Asked], Awaitable[Outcome]]
    takes: Takes = ""
    more: str = ""


def beside(run: Callable[[Asked], Outcome]) -> Callable[[Asked], Awaitable[Outcome]]:
    """Return what runs ``run`` beside the event loop: it waits for a disk."""

    async def waited(asked: Asked) -> Outcome:
        return await asyncio.to_thread(run, asked)

    return waited
