"""The dot commands: what is said to the session itself, not to the graph or a model. One table; a room by subject."""

import asyncio
import re
from collections.abc import Mapping
from types import MappingProxyType

from .....lang.diagnostic import nearest
from ..desk import Desk
from ..outcome import Outcome, misused
from ..reading import Piece
from .dot import Asked, Dot
from .explaining import EXPLAIN
from .filing import READ, SAVE
from .helping import HELP, QUIT
from .looking import DIFF, LOG, SCHEMA, STATE, VARS
from .settling import BUDGET, LLM, MODE, OUTPUT, TIMER
from .undoing import UNDO

__all__ = ["DOTS", "Dot", "run_dot", "unknown"]

DOTS: Mapping[str, Dot] = MappingProxyType(
    {
        dot.name: dot
        for dot in (
            HELP, SCHEMA, VARS, STATE, LOG, DIFF, UNDO, EXPLAIN, MODE, OUTPUT, TIMER, LLM, BUDGET, READ, SAVE, QUIT,
        )
    }
)  # fmt: skip
"""All of them, in the order of the help."""

_FORM = re.compile(r"\s*[.\\](?P<name>[A-Za-z?]+)(?P<argument>.*)", re.DOTALL)
_LIKELY = {
    "exit": "quit", "q": "quit", "tables": "schema", "show": "vars", "variables": "vars", "rollback": "undo", "history": "log",
    "format": "mode", "headers": "mode", "once": "output", "import": "read", "load": "read", "run": "read", "write": "save",
    "dump": "save", "export": "save", "model": "llm", "time": "timer", "timing": "timer", "cost": "budget", "h": "help", "?": "help",
    "keys": "state", "plan": "explain", "why": "explain", "open": "read",
}  # fmt: skip
"""What people type who know other prompts."""


async def run_dot(piece: Piece, desk: Desk, cancel: asyncio.Event) -> Outcome:
    """Run a dot command."""
    found = _found(piece.text)
    if isinstance(found, Outcome):
        return found
    dot, argument = found
    return await dot.run(Asked(argument.strip(), desk, piece, cancel, DOTS))


def unknown(text: str) -> Outcome | None:
    """Return what is wrong with a text as a dot command before it runs; None where there is such a command."""
    found = _found(text)
    return found if isinstance(found, Outcome) else None


def _found(text: str) -> tuple[Dot, str] | Outcome:
    found = _FORM.match(text.rstrip("; \t\r\n"))
    if found is None:
        return misused(f"{text.strip()} is no dot command", ".help lists them")
    name, argument = found["name"].lower(), found["argument"]
    dot = DOTS.get(name)
    if dot is None or (argument and not argument[0].isspace()):
        near = _LIKELY.get(name) or nearest(name, DOTS)
        message = f"there is no command {text.lstrip()[0]}{found['name']}"
        if near is None:
            return misused(message, ".help lists them")
        return misused(message, f"did you mean .{near}?", f".{near}{argument}")
    return dot, argument
