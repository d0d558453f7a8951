"""The prompt's loop: what is typed is run, and after an error Tab offers its fix."""

import asyncio
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from .....lang.diagnostic import printable
from .....lang.schema import Schema
from ....folders import base_directory
from ...repl.desk import Desk
from ...repl.outcome import Outcome
from ...repl.session import Session
from ..shared.exit import Exit, Misused
from ..shared.output import colour, paint, say
from .asked import ReplAsked
from .screen import Screen
from .turn import Turn

__all__ = ["run_prompt"]

RC = "replrc"
HISTORY = "repl_history"


async def run_prompt(asked: ReplAsked, desk: Desk) -> int:
    """Run the prompt until it is left; return the exit code."""
    if find_spec("prompt_toolkit") is None:
        raise Misused(
            "repl: its extra is not installed",
            "pip install 'knotwork[repl]'; without it commands come by -c, -f or stdin",
        )
    from ...repl.terminal.paging import paged
    from ...repl.terminal.prompting import Dropped, make_prompt

    turn = Turn(Session(desk), Screen(desk.settings, paged))
    seen = _Seen(desk)
    fixes = _Fixes(desk, turn)
    folder = base_directory().parent
    prompt = make_prompt(desk, lambda: fixes.text, lambda: seen.schema, folder / HISTORY, colour=colour(sys.stdout))
    looking = asyncio.create_task(seen.look())
    _greet(desk)
    try:
        if asked.rc and await _own_settings(turn, folder / RC):
            return Exit.DONE
        while True:
            try:
                text = await prompt.prompt_async()
            except Dropped:
                continue
            except EOFError:
                return Exit.DONE
            done = await turn.take(text, "<input>", stop=True)
            fixes.tell(done)
            if any(outcome.ends for outcome in done):
                return Exit.DONE
    finally:
        looking.cancel()
        await asyncio.wait([looking])


class _Seen:
    """The graph's schema, once it is there: whoever completes does not wait for it."""

    def __init__(self, desk: Desk) -> None:
        self.schema: Schema | None = None
        self._desk = desk

    async def look(self) -> None:
        """Have it made."""
        self.schema = await self._desk.schema()


class _Fixes:
    """The text that mends the latest error, with what was not run behind it."""

    def __init__(self, desk: Desk, turn: Turn) -> None:
        self._desk = desk
        self._turn = turn

    @property
    def text(self) -> str:
        """What Tab puts on an empty prompt; empty where nothing is known."""
        fault = self._desk.last_fault
        mended = None if fault is None else fault.mended
        if mended is None:
            return ""
        return "\n".join([mended, *(piece.text for piece in self._turn.left)])

    def tell(self, done: list[Outcome]) -> None:
        """Say after an error what Tab does, and what was not run."""
        if not done:
            return
        left = len(self._turn.left)
        if left:
            _hint(f"  {left} more {'was' if left == 1 else 'were'} not run")
        fix = self.text
        if fix:
            first, *more = fix.split("\n")
            _hint(f"  Tab: {first}{' …' if more else ''}")


def _hint(text: str) -> None:
    say(paint(printable(text), "cyan", colour(sys.stderr)))


def _greet(desk: Desk) -> None:
    graph = f" · {desk.graph}" if desk.graph else " · no graph: knotwork repl GRAPH opens one"
    say(printable(f"knotwork{graph} · .help tells more"))


async def _own_settings(turn: Turn, path: Path) -> bool:
    """Run the file of one's own settings, if there is one; say whether it ends the session."""
    try:
        text = await asyncio.to_thread(path.read_text, encoding="utf-8")
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        say(
            printable(f"warning: {path} can't be read: {getattr(error, 'strerror', None) or 'it is not text in UTF-8'}")
        )
        return False
    done = await turn.take(text, os.fspath(path), stop=False)
    return any(outcome.ends for outcome in done)
