"""Ignore comments in programs: ``# knotwork: ignore[GASL052]`` above a command or behind it. See ``linter.ignoring``."""

from collections.abc import Iterable, Sequence

from ...diagnostic import Diagnostic
from ...gasl import Comment, Statement, Try
from ...node import Node
from .. import ignoring
from .registry import Context

__all__ = ["silence"]


def _is_trailing(item: Node) -> bool:
    return isinstance(item, Comment) and item.trailing


def _blocks(item: Node) -> Sequence[Sequence[Node]]:
    command = item.command if isinstance(item, Statement) else None
    if not isinstance(command, Try):
        return ()
    return [block for block in (command.body, command.caught, command.always) if block]


_PROGRAMS = ignoring.Commented("command", "GASL074", lambda item: isinstance(item, Comment), _is_trailing, _blocks)


def silence(context: Context, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return what is ``found`` without what ignore comments silence, and with the comments that silence nothing."""
    program = context.program
    return ignoring.silence(program.items, program.source.text, found, _PROGRAMS, context.found)
