"""A session's desk and the loop that it lives in, from its opening to its end. However it ends, its folder's lock is let go."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ...gasl.state_graph import same_name
from ...session.workspace import GivenUp, Telling
from ..repl.asked import DeskAsked
from ..repl.desk import Desk
from ..repl.opening import open_desk
from .looping import Cancelled, Loop
from .progress import Working

__all__ = ["Sitting"]

T = TypeVar("T")

_LOOK = 0.05
"""Seconds between two looks at whether another one is over."""


class Sitting:
    """One session. ``open`` it first; ``end`` it whatever came of that."""

    def __init__(self, asked: DeskAsked) -> None:
        self._asked = asked
        self._loop = Loop()
        self._made: asyncio.Future[Desk] | None = None
        self._desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """The session's desk."""
        assert self._desk is not None  # noqa: S101 - it was opened
        return self._desk

    @property
    def is_over(self) -> bool:
        """Whether all of it is closed."""
        return self._loop.is_over

    def has_state_of(self, asked: DeskAsked) -> bool:
        """Say whether it keeps its state where ``asked`` wants to."""
        mine, other = self._asked.ground.state, asked.ground.state
        return isinstance(mine, str) and isinstance(other, str) and same_name(mine, other)

    def open(self, working: Working, after: "list[Sitting]") -> list[str]:
        """Open the desk, once those ``after`` which it comes are over; return what a person should know.

        Raises ``Cancelled``, ``Abandoned``, ``AdapterError``, ``LLMError``, ``StoreError`` and ``Misused``.
        """
        notes: list[str] = []

        async def opening(cancel: asyncio.Event) -> Desk:
            while not all(each.is_over for each in after):
                if cancel.is_set():
                    raise GivenUp
                await asyncio.sleep(_LOOK)
            telling = Telling(notes.append, given_up=cancel.is_set)
            # A future and no task: the thread can't be stopped, and whoever ends this waits for what it makes.
            self._made = asyncio.get_running_loop().run_in_executor(None, open_desk, self._asked, telling)
            made = await asyncio.shield(self._made)
            if cancel.is_set():
                raise GivenUp
            return made

        try:
            self._desk = self.wait(opening, working)
        except GivenUp:
            raise Cancelled from None
        return notes

    def wait(self, begin: Callable[[asyncio.Event], Coroutine[Any, Any, T]], working: Working) -> T:
        """Run what ``begin`` makes, and show how it goes. Raises ``Cancelled`` and ``Abandoned``, as ``Loop.run`` does."""
        events = None if self._desk is None else self._desk.events
        if events is not None:
            events.subscribe(working)
        try:
            return self._loop.run(begin, working.tick, working.note)
        finally:
            if events is not None:
                events.unsubscribe(working)
            working.stop()

    def end(self, *, wait: bool = True) -> None:
        """Cancel what runs and close what was opened; as soon as that is possible, where there is something that hangs.

        Without ``wait`` that goes on beside whoever asks.
        """
        self._loop.leave(self._closed)
        if wait:
            self._loop.join()

    async def _closed(self) -> None:
        if self._made is None:
            return
        with suppress(Exception):  # it was told, or nobody waits for it any more
            desk = await self._made
            await desk.aclose()
