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
from .filing import READ, SAVE
from .looking import DIFF, LOG, SCHEMA, STATE, VARS
from .settling import BUDGET, LLM, MODE, OUTPUT, TIMER
from .telling import EXPLAIN, HELP, QUIT
from .undoing import UNDO

__all__ = ["DOTS", "Dot", "run_dot"]

DOTS: Mapping[str, Dot] = MappingProxyType(
    {
        dot.name: dot
        for dot in (
            HELP, SCHEMA, VARS, STATE, LOG, DIFF, UNDO, EXPLAIN, MODE, OUTPUT, TIMER, LLM, BUDGET, READ, SAVE, QUIT,
        )
    }
)  # fmt: skip
"""All of them, in the order of the help."""

_FORM = re.compile(r"\s*\.(?P<name>[A-Za-z?]+)(?P<argument>.*)", re.DOTALL)
_LIKELY = {
    "exit": "quit", "q": "quit", "tables": "schema", "show": "vars", "variables": "vars", "rollback": "undo", "history": "log",
    "format": "mode", "headers": "mode", "once": "output", "import": "read", "load": "read", "run": "read", "write": "save",
    "dump": "save", "export": "save", "model": "llm", "time": "timer", "timing": "timer", "cost": "budget", "h": "help", "?": "help",
    "keys": "state", "plan": "explain", "why": "explain", "open": "read",
}  # fmt: skip
"""What people type who know other prompts."""


async def run_dot(piece: Piece, desk: Desk, cancel: asyncio.Event) -> Outcome:
    """Run a dot command."""
    found = _FORM.match(piece.text)
    if found is None:
        return misused(f"{piece.text.strip()} is no dot command", ".help lists them")
    name, argument = found["name"].lower(), found["argument"]
    dot = DOTS.get(name)
    if dot is None or (argument and not argument[0].isspace()):
        near = _LIKELY.get(name) or nearest(name, DOTS)
        return misused(
            f"there is no command .{found['name']}", f"did you mean .{near}?" if near else ".help lists them"
        )
    return await dot.run(Asked(argument.strip().rstrip(";"), desk, piece, cancel, DOTS))
