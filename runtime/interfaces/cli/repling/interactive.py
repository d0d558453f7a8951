"""The prompt's loop: what is typed is run, and after an error Tab offers its fix."""

import asyncio
import os
import re
import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from .....lang.catalogue.schema import Schema
from .....lang.diagnostic import printable
from ....runs.directories import base_directory
from ...repl.desk import Desk
from ...repl.outcome import Outcome
from ...repl.session import Session
from ..shared.exit import Exit, Misused
from ..shared.output import colour, paint, say
from .asked import ReplAsked
from .greeting import greet
from .living import Life
from .screen import Screen
from .turn import Turn

__all__ = ["run_prompt"]

RC = "replrc"
HISTORY = "repl_history"
_ASIDE = re.compile(r"\s*\.(?:explain|help)\b", re.IGNORECASE)


def need_prompt() -> None:
    """Load what the prompt is made of, which takes a moment. Raises ``Misused`` where it is not there."""
    if find_spec("prompt_toolkit") is None:
        raise Misused(
            "repl: its extra is not installed",
            "pip install 'knotwork[repl]'; without it commands come by -c, -f or stdin",
        )
    import_module("...repl.terminal.prompting", __package__)


async def run_prompt(asked: ReplAsked, desk: Desk, life: Life) -> int:
    """Run the prompt until it is left; return the exit code."""
    from ...repl.terminal.paging import paged
    from ...repl.terminal.prompting import Dropped, make_prompt

    turn = Turn(Session(desk), Screen(desk.settings, paged))
    seen = _Seen(desk)
    fixes = _Fixes(turn)
    folder = base_directory().parent
    prompt = make_prompt(desk, lambda: fixes.text, lambda: seen.schema, folder / HISTORY, colour=colour(sys.stdout))

    def dropped() -> None:
        if prompt.app.is_running and not prompt.app.is_done:
            prompt.app.exit(exception=EOFError if life.is_ended else Dropped)

    life.between = partial(asyncio.get_running_loop().call_soon_threadsafe, dropped)
    looking = asyncio.create_task(seen.look())
    greet(asked.desk.ground, desk)
    try:
        if asked.rc and await _own_settings(turn, folder / RC):
            return Exit.DONE
        while not life.is_ended:
            try:
                # Its own way with Ctrl-C would leave moments before and after it to Python's.
                text = await prompt.prompt_async(handle_sigint=False)
            except Dropped:
                continue
            except EOFError:
                break
            done = await turn.take(text, "<input>", stop=True)
            fixes.tell(text, done)
            if any(outcome.ends for outcome in done):
                return Exit.DONE
        return Exit.INTERRUPTED if life.is_ended else Exit.DONE
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
    """The text that mends what was typed last, with what was not run behind it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.text = ""
        """What Tab puts on an empty prompt; empty where nothing is known."""

    def tell(self, typed: str, done: list[Outcome]) -> None:
        """Say after an error what Tab does, and what was not run. Who asks what an error means wants its fix all the same."""
        if not done or (_ASIDE.match(typed) and done[-1].is_good):
            return
        left, mended = self._turn.left, done[-1].mended
        self.text = "" if mended is None else "\n".join([mended, *(piece.text for piece in left)])
        if left:
            _hint(f"  {len(left)} more {'was' if len(left) == 1 else 'were'} not run")
        if self.text:
            first, *more = self.text.split("\n")
            _hint(f"  Tab: {first}{' …' if more else ''}")


def _hint(text: str) -> None:
    say(paint(printable(text), "cyan", colour(sys.stderr)))


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
