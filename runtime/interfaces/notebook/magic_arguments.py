"""The arguments of a magic, as values."""

import argparse
import shlex
from collections.abc import Sequence
from typing import Any, NoReturn

from ....lang.diagnostic import nearest
from ...session.workspace import Ground
from ..options import Limits
from ..repl.repl_workspace import DeskAsked
from ..usage_error import Misused

__all__ = ["CELL_FLAGS", "cell_flags", "file_asked", "open_flags", "opened", "wants_help", "words_of"]

_OPEN = (
    "%kw open [GRAPH] [--state DIR] [--llm SPEC] [--model NAME=SPEC] [--chunks FILE] [--max-calls N] [--max-tokens N]"
    " [--max-cost USD] [--price IN/OUT] [--no-cache] [--force] [--raw]"
)


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong in place of leaving."""

    def error(self, message: str) -> NoReturn:
        raise Misused(message.replace("argument ", "", 1), str(self.usage or ""))


def words_of(line: str) -> list[str]:
    """Return the words of a line; quotes keep one together. Raises ``Misused``."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Misused(f"the line can't be read: {str(error).lower()}", "close the quote") from None


def wants_help(line: str) -> bool:
    """Say whether a line asks for help in place of what it is for."""
    return line.split()[-1:] in (["--help"], ["-h"])


def file_asked(line: str, verb: str) -> tuple[str | None, bool]:
    """Return the file that a line names, None for none, and whether it may be written over. Raises ``Misused``."""
    words = words_of(line)
    names = [word for word in words if not word.startswith("-") or word == "-"]
    if len(names) > 1 or any(word != "--force" for word in words if word not in names) or names == [""]:
        wrong = next((word for word in words if word not in names and word != "--force"), None)
        raise Misused(
            f"%kw {verb} does not know {wrong}" if wrong is not None else f"%kw {verb} takes one file",
            f"%kw {verb} [FILE] [--force]",
        )
    return (names[0] if names else None), "--force" in words


def opened(line: str) -> DeskAsked:
    """Return what ``%kw open`` was asked. Raises ``Misused``."""
    parser, made = _opening()
    found: Any
    found, more = parser.parse_known_args(words_of(line))
    if more:
        flags = [flag for each in made for flag in each.option_strings]
        near = nearest(more[0].partition("=")[0], flags) if more[0].startswith("-") else None
        raise Misused(f"%kw open does not know {more[0]}", f"did you mean {near}?" if near is not None else _OPEN)
    ground = Ground(found.graph, found.state, found.chunks, force=found.force, raw=found.raw)
    limits = Limits(found.max_calls, found.max_tokens, found.max_cost, found.price, cache=not found.no_cache)
    return DeskAsked(ground=ground, llm=found.llm, models=tuple(found.model), limits=limits)


def open_flags() -> dict[str, bool]:
    """Return the options of ``%kw open``, and whether each takes a value."""
    return {flag: each.nargs != 0 for each in _opening()[1] for flag in each.option_strings}


def _opening() -> tuple[_Parser, list[argparse.Action]]:
    """Return what reads the line of ``%kw open``, and its options."""
    parser = _Parser(prog="%kw open", usage=_OPEN, add_help=False, allow_abbrev=False)
    parser.add_argument("graph", nargs="?")
    return parser, [
        *(parser.add_argument(f"--{name}") for name in ("state", "chunks", "llm", "price")),
        parser.add_argument("--model", action="append", default=[]),
        parser.add_argument("--max-calls", type=_count),
        parser.add_argument("--max-tokens", type=_count),
        parser.add_argument("--max-cost", type=_dollars),
        parser.add_argument("--no-cache", action="store_true"),
        parser.add_argument("--force", action="store_true"),
        parser.add_argument("--raw", action="store_true"),
    ]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"takes a number, not {text}")
    return int(text)


def _dollars(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"takes an amount in dollars, not {text}")
    return number


_FLAGS = ("--check", "--plan")
CELL_FLAGS = (*_FLAGS, "--input")
"""The options of a cell's magic; the last one takes a variable."""


def cell_flags(line: str, magic: str) -> tuple[str, str | None]:
    """Return what a cell is for ("run", "check", "plan"), and the Python variable that is its input. Raises ``Misused``."""
    words: Sequence[str] = words_of(line)
    what, given, place = "run", None, 0
    while place < len(words):
        word = words[place]
        if word in _FLAGS:
            what = word.removeprefix("--")
        elif word == "--input":
            if place + 1 == len(words):
                raise Misused("--input takes a variable", f"%%{magic} --input VARIABLE")
            place += 1
            given = words[place]
        else:
            near = nearest(word, CELL_FLAGS)
            usage = f"%%{magic} [--check | --plan] [--input VARIABLE]"
            raise Misused(f"%%{magic} does not know {word}", f"did you mean {near}?" if near is not None else usage)
        place += 1
    return what, given
