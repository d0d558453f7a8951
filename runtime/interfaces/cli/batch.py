"""A session without a prompt: from ``-c``, ``-f`` or stdin, to its end or to the first that fails."""

import sys
from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from ..repl.outcome import Outcome, Status
from ..repl.reader import Growing
from ..repl.repl_workspace import Desk, DeskAsked
from ..repl.session import Session
from .outcome_screen import Screen
from .shared.files import Unreadable, read_source
from .shared.output import Exit, Misused
from .turn import Turn

__all__ = ["ReplAsked", "run_batch"]


# From outcomes to the exit code.


_CODES: Mapping[Status, Exit] = {
    "done": Exit.DONE, "empty": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "refused": Exit.ERRORS,
    "misused": Exit.USAGE, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip


def code_of(outcomes: Iterable[Outcome]) -> Exit:
    """Return the code of the first that was not done; of one that was cancelled in any case."""
    found = [_CODES[outcome.status] for outcome in outcomes]
    if Exit.INTERRUPTED in found:
        return Exit.INTERRUPTED
    return next((code for code in found if code is not Exit.DONE), Exit.DONE)


# What a person asked of ``repl``, as values.


@frozen(kw_only=True)
class ReplAsked:
    """What the session works on, and what it runs. ``rc``: one's own settings are wanted."""

    desk: DeskAsked
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    fail_fast: bool = False
    input_file: str | None = None
    rc: bool = True


@frozen
class _Part:
    """A text to be run, and where it begins."""

    text: str
    name: str
    first_line: int = 1


async def run_batch(asked: ReplAsked, desk: Desk) -> int:
    """Run all that was given and return the exit code. Raises ``Misused`` for a file that can't be read."""
    turn = Turn(Session(desk), Screen(desk.settings))
    outcomes: list[Outcome] = []
    for part in _texts(asked):
        done = await turn.take(part.text, part.name, stop=asked.fail_fast, first_line=part.first_line)
        outcomes += done
        if _is_over(done, asked.fail_fast):
            break
    return code_of(outcomes)


def _texts(asked: ReplAsked) -> Iterator[_Part]:
    if asked.files or asked.commands:
        for name in asked.files:
            try:
                source = read_source(name)
            except Unreadable as error:
                raise Misused(error.diagnostic.message, "; ".join(error.diagnostic.hints)) from None
            yield _Part(source.text, source.name)
        for command in asked.commands:
            yield _Part(command, "<command>")
    else:
        yield from _from_stdin()


def _from_stdin() -> Iterator[_Part]:
    """Yield each piece as soon as it is whole: who drives this through a pipe waits for its outcome. Raises ``Misused``."""
    held: list[str] = []
    growing, first = Growing(), 1
    for number, line in enumerate(_lines(), 1):
        if not held and not line.strip():
            continue
        if held and not growing.takes(line):
            yield _Part("\n".join(held), "<stdin>", first)
            held, growing = [], Growing()
        first = number if not held else first
        held.append(line)
        growing.add(line)
        if growing.is_closed:
            yield _Part("\n".join(held), "<stdin>", first)
            held, growing = [], Growing()
    if held:
        yield _Part("\n".join(held), "<stdin>", first)


def _lines() -> Iterator[str]:
    try:
        for line in sys.stdin or ():
            yield line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise Misused("stdin is not text in UTF-8") from None


def _is_over(done: list[Outcome], fail_fast: bool) -> bool:
    last = done[-1] if done else None
    return last is not None and (last.ends or last.status == "cancelled" or (fail_fast and not last.is_good))
