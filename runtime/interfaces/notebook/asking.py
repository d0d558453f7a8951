"""The arguments of a magic, as values."""

import argparse
import shlex
from collections.abc import Sequence
from typing import Any, NoReturn

from ..cli.execution.asked import Ground, Limits
from ..cli.repling.asked import ReplAsked
from ..cli.shared.exit import Misused

__all__ = ["cell_flags", "opened", "words_of"]

_OPEN = "%kw open [GRAPH] [--state DIR] [--llm SPEC] [--model NAME=SPEC] [--chunks FILE] [--max-calls N]"


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


def opened(line: str) -> ReplAsked:
    """Return what ``%kw open`` was asked. Raises ``Misused``."""
    parser = _Parser(prog="%kw open", usage=_OPEN, add_help=False, allow_abbrev=False)
    parser.add_argument("graph", nargs="?")
    for name in ("state", "chunks", "llm", "price"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--max-calls", type=_count)
    parser.add_argument("--max-tokens", type=_count)
    parser.add_argument("--max-cost", type=_dollars)
    parser.add_argument("--no-cache", action="store_true")
    found: Any = parser.parse_args(words_of(line))
    ground = Ground(found.graph, found.state, found.chunks)
    limits = Limits(found.max_calls, found.max_tokens, found.max_cost, found.price, cache=not found.no_cache)
    return ReplAsked(ground, (), (), False, "auto", found.llm, tuple(found.model), None, limits, False)


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


def cell_flags(line: str, magic: str) -> tuple[str, str | None]:
    """Return what a cell is for ("run", "check", "plan"), and the Python variable that is its input. Raises ``Misused``."""
    words: Sequence[str] = words_of(line)
    what, given, place = "run", None, 0
    while place < len(words):
        word = words[place]
        if word in _FLAGS:
            what = word.removeprefix("--")
        elif word == "--input" and place + 1 < len(words):
            place += 1
            given = words[place]
        else:
            raise Misused(f"%%{magic} does not know {word}", f"%%{magic} [--check | --plan] [--input VARIABLE]")
        place += 1
    return what, given
