"""What ``plan`` shows of a GASL program or a plan: its commands in order, what each takes from which, and which ask a model."""

import sys
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from .....lang.diagnostic import printable
from .....lang.diagrams import dot, mermaid
from .....lang.service.symbols import occurrences_in
from .....lang.trees.gasl import Analyze, Classify, Process, Program
from .....lang.trees.node import walk
from ..shared.output import colour, json_text, paint

__all__ = ["program_dot", "program_json", "program_mermaid", "program_text"]

_WIDEST = 100
_ASKING = (Process, Classify, Analyze)


@frozen
class _Command:
    """A command of the outermost level. ``takes`` are the numbers of those whose variables or keys it uses."""

    number: int
    text: str
    binds: tuple[str, ...]
    keys: tuple[str, ...]
    takes: tuple[int, ...]
    given: tuple[str, ...]
    asks: bool

    @property
    def one_line(self) -> str:
        """The command in a line, harmless to a terminal."""
        text = printable(" ".join(self.text.split()))
        return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"


def _commands(program: Program) -> list[_Command]:
    found: list[_Command] = []
    maker: dict[tuple[str, str], int] = {}
    for number, statement in enumerate(program.statements, 1):
        text = program.source.slice(statement.command.span)
        named = [
            each
            for each in occurrences_in("gasl", text)
            if each.kind in ("variable", "key") and each.name != "error" and not each.scope
        ]
        used = dict.fromkeys((each.kind, each.name) for each in named if not each.defines)
        bound = dict.fromkeys((each.kind, each.name) for each in named if each.defines)
        asks = any(isinstance(node, _ASKING) for node in walk(statement.command))
        takes = dict.fromkeys(maker[thing] for thing in used if thing in maker)
        given = tuple(name for kind, name in used if (kind, name) not in maker and (kind, name) not in bound)
        found.append(
            _Command(
                number, text, tuple(name for kind, name in bound if kind == "variable"),
                tuple(dict.fromkeys(name for kind, name in (*bound, *used) if kind == "key")), tuple(takes), given, asks,
            )
        )  # fmt: skip
        maker |= dict.fromkeys(bound, number)
    return found


def program_text(program: Program, name: str) -> str:
    """Return the plan for people."""
    commands, on = _commands(program), colour(sys.stdout)
    asking = sum(each.asks for each in commands)
    lines = [
        f"{printable(name)}: {_many(len(commands), 'command')}, {f'{asking:,} of them' if asking else 'none'} asking a model",
        "",
    ]
    for each in commands:
        sources = f"  ← {', '.join(map(str, each.takes))}" if each.takes else ""
        model = paint("  asks a model", "bold", on) if each.asks else ""
        lines.append(f"{each.number:>4}  {each.one_line}{sources}{model}")
    given = list(dict.fromkeys(name for each in commands for name in each.given))
    if given:
        lines += ["", printable(f"from elsewhere: {', '.join(given)}")]
    lines += ["", "EXPLAIN before a command says how the graph would be searched for it"]
    return "\n".join(lines)


def program_json(program: Program, name: str) -> str:
    """Return the plan as JSON."""
    commands = _commands(program)
    rows: list[dict[str, Any]] = [
        {
            "number": each.number, "command": each.text, "binds": each.binds, "keys": each.keys, "takes_from": each.takes,
            "from_elsewhere": each.given, "asks_a_model": each.asks,
        }
        for each in commands
    ]  # fmt: skip
    return json_text({"file": name, "asking_a_model": sum(each.asks for each in commands), "commands": rows})


def program_mermaid(program: Program) -> str:
    """Return the plan as a Mermaid flowchart."""
    graph, words = _drawn(program)
    return mermaid(graph, words, (), graph)


def program_dot(program: Program) -> str:
    """Return the plan as a Graphviz digraph."""
    graph, words = _drawn(program)
    return dot(graph, words, (), graph, "program")


def _drawn(program: Program) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
    commands = _commands(program)
    graph = {str(each.number): tuple(map(str, each.takes)) for each in commands}
    return graph, {str(each.number): each.one_line[:60] for each in commands}


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
