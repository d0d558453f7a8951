"""The dot commands: commands that concern the session itself, not the graph or a model. ``DOT_COMMANDS`` lists all of them."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from .....lang.diagnostic import nearest
from ....api.explain import help_topics
from ....api.pieces import Piece
from ....api.session import MODES, SPECS, Session
from ....api.session_data import Outcome, misused
from ....api.workspace import Schema
from .dot import DotCommand, DotRequest
from .eval_command import EVAL
from .inspection import DIFF, EXPLAIN, LOG, SCHEMA, STATE, VARS
from .session_commands import BUDGET, HELP, LLM, MODE, OUTPUT, QUIT, READ, SAVE, TIMER, UNDO

__all__ = ["DOT_COMMANDS", "DotCommand", "argument_values", "dot_fault", "run_dot"]

DOT_COMMANDS: Mapping[str, DotCommand] = MappingProxyType(
    {
        each.name: each
        for each in (
            HELP, SCHEMA, VARS, STATE, LOG, DIFF, UNDO, EXPLAIN, MODE, OUTPUT, TIMER, LLM, BUDGET, EVAL, READ, SAVE, QUIT,
        )
    }
)  # fmt: skip
"""Maps names to dot commands, in the order in which ``.help`` lists the commands."""

_FORM = re.compile(r"\s*[.\\](?P<name>[A-Za-z?]+)(?P<argument>.*)", re.DOTALL)
_SIMILAR = {
    "exit": "quit", "q": "quit", "tables": "schema", "show": "vars", "variables": "vars", "rollback": "undo", "history": "log",
    "format": "mode", "headers": "mode", "once": "output", "import": "read", "load": "read", "run": "read", "write": "save",
    "dump": "save", "export": "save", "model": "llm", "time": "timer", "timing": "timer", "cost": "budget", "h": "help", "?": "help",
    "keys": "state", "plan": "explain", "why": "explain", "open": "read", "evaluate": "eval", "score": "eval",
}  # fmt: skip
"""Maps command names from other programs, which users may type, to the dot commands with the same purpose."""


async def run_dot(piece: Piece, session: Session, cancel: asyncio.Event) -> Outcome:
    """Run a dot command."""
    found = _parse(piece.text)
    if isinstance(found, Outcome):
        return found
    command, argument = found
    return await command.run(DotRequest(argument.strip(), session, piece, cancel, DOT_COMMANDS))


def dot_fault(text: str) -> Outcome | None:
    """Return the error for a dot command ``text`` that does not exist; None if it exists. Nothing is run."""
    found = _parse(text)
    return found if isinstance(found, Outcome) else None


def _parse(text: str) -> tuple[DotCommand, str] | Outcome:
    found = _FORM.match(text.rstrip("; \t\r\n"))
    if found is None:
        return misused(f"{text.strip()} is not a dot command", ".help lists all commands")
    name, argument = found["name"].lower(), found["argument"]
    command = DOT_COMMANDS.get(name)
    if command is None or (argument and not argument[0].isspace()):
        near = _SIMILAR.get(name) or nearest(name, DOT_COMMANDS)
        message = f"unknown command {text.lstrip()[0]}{found['name']}"
        if near is None:
            return misused(message, ".help lists all commands")
        return misused(message, f"did you mean .{near}?", f".{near}{argument}")
    return command, argument


# Lists the possible arguments of a dot command, for completion.

_DETAIL = 60
_LOGGED = 30


def argument_values(
    command: DotCommand, session: Session, schema: Callable[[], Schema | None]
) -> Iterator[tuple[str, str]]:
    """Yield the possible arguments of a dot command, each with a description.

    Yields nothing if the argument is a file or text in one of the languages. ``schema`` returns the graph's schema, or None until
    the schema is available.
    """
    match command.takes:
        case "attribute":
            known = schema()
            for name in dict.fromkeys([*known.node_attributes, *known.edge_attributes] if known is not None else ()):
                yield name, "attribute"
        case "value":
            for name in session.values.names():
                yield name, "value"
        case "key":
            for declared in session.state.snapshot().declared():
                yield declared.key, declared.type
        case "hash":
            history = session.state.history
            for entry in reversed(list(history[max(0, len(history) - _LOGGED) :])):
                if entry.get("state"):
                    yield str(entry["state"])[:12], " ".join(str(entry.get("command", "")).split())[:_DETAIL]
        case "mode":
            yield from ((mode, "") for mode in MODES)
        case "switch":
            yield from (("on", ""), ("off", ""))
        case "model":
            yield from ((spec, "") for spec in SPECS)
        case "limit":
            yield from (("calls=", ""), ("tokens=", ""), ("cost=", "US dollars"))
        case "topic":
            yield from ((name, each.summary) for name, each in DOT_COMMANDS.items())
            yield from help_topics().items()
        case _:
            return
