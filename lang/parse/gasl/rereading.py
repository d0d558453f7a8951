"""Reads another text of a program, and of it only what is new: for editors, which ask after every key.

A statement, block or comment that is written as it was is kept, moved to where it stands now; everything faulty is read again. What
comes out is what ``parse_gasl`` gives, which a property test holds.
"""

import re
from collections.abc import Sequence
from functools import cached_property

from attrs import field, frozen

from ...diagnostic import Diagnostic
from ...source import Source
from ...trees.gasl import Comment, Item, Program
from ..moving import Kept, Pieces
from . import parse_gasl, read_faulty
from .engine import MAX_TOKENS, Failure, read
from .lines import end_of_line
from .recovery.diagnosis import Recovery

__all__ = ["ProgramPieces", "ProgramRead", "reread_gasl"]

ProgramPieces = Pieces[Item]
_WORD = re.compile(r"\w+|[^\w\s]")


@frozen(eq=False, slots=False)
class ProgramRead:
    """A program that was read: its pieces, and the whole of it once that is asked for."""

    source: Source
    pieces: ProgramPieces
    diagnostics: tuple[Diagnostic, ...]
    _whole: Program | None = field(default=None, repr=False)

    @cached_property
    def program(self) -> Program:
        """The program, as ``parse_gasl`` gives it."""
        return Program(self.pieces.items, self.source, self.diagnostics) if self._whole is None else self._whole


def reread_gasl(source: Source, before: ProgramPieces | None = None) -> ProgramRead:
    """Read a text, as ``parse_gasl`` does, with the pieces of one like it."""
    text = source.text
    if text.startswith("\ufeff") or _may_have_too_many_words(text):
        return _as_a_whole(parse_gasl(source))
    if before is None:
        program = parse_gasl(source)
        if not program.diagnostics:
            return _as_a_whole(program)
        before = Pieces()
    return _again(source, before) or _as_a_whole(parse_gasl(source))


def _as_a_whole(program: Program) -> ProgramRead:
    """Return what was read as a whole. Of a faulty text the items are one piece, which is not found again."""
    text, items, found = program.source.text, program.items, program.diagnostics
    one = Kept.of(text, 0, len(text), len(text), items, is_faulty=True)
    return ProgramRead(program.source, Pieces((one,) if found else tuple(_pieces(text, items))), found, program)


def _again(source: Source, before: ProgramPieces) -> ProgramRead | None:
    """Read what is new; None where only a reading of the whole can tell how it is to be read."""
    text = source.text
    recovery = Recovery(text, None)
    made: list[Kept[Item]] = []
    begun = at = items = faults = 0
    first_fault: int | None = None

    def finish_piece(end: int) -> None:
        nonlocal first_fault
        is_faulty = len(recovery.faults) > faults
        if is_faulty:
            first_fault = begun if first_fault is None else first_fault
        if len(recovery.root) > items:
            made.append(_piece(text, begun, end, recovery.root[items:], is_faulty=is_faulty))

    reading = False
    while (place := recovery.next_place(at)) < len(text):
        if recovery.is_between:
            if reading:
                finish_piece(at)
            reading = False
            if (piece := before.find(text, place)) is not None:
                made.append(piece)
                at = piece.end
                continue
            reading, begun, items, faults = True, place, len(recovery.root), len(recovery.faults)
        at = recovery.advance(place)
    _, all_faults = recovery.finish()
    if reading:
        finish_piece(at)
    if first_fault is not None and (recovery.has_longest or not isinstance(read(text, first_fault), Failure)):
        # Statement by statement a fault may be found where the grammar, which reads the whole, has none.
        return None
    found = read_faulty(source, (), all_faults).diagnostics if all_faults else ()
    return ProgramRead(source, Pieces(tuple(made)), found)


def _may_have_too_many_words(text: str) -> bool:
    """Say whether a text may have more words and signs than are read: how many it has can only be told by reading it whole."""
    return len(text) > 2 * MAX_TOKENS and text.count("\n") + sum(1 for _ in _WORD.finditer(text)) > MAX_TOKENS


def _pieces(text: str, items: Sequence[Item]) -> list[Kept[Item]]:
    """Take the items of a faultless text apart. Comments that stood inside a command come before it, and belong to it."""
    made: list[Kept[Item]] = []
    held: list[Item] = []
    for index, item in enumerate(items):
        held.append(item)
        behind = items[index + 1] if index + 1 < len(items) else None
        if isinstance(item, Comment) and behind is not None and behind.span.start < item.span.start:
            continue
        start, end = min(each.span.start for each in held), max(each.span.end for each in held)
        made.append(_piece(text, start, end, held))
        held = []
    return made


def _piece(text: str, start: int, end: int, items: Sequence[Item], *, is_faulty: bool = False) -> Kept[Item]:
    line = end_of_line(text, end)
    return Kept.of(text, start, end, end_of_line(text, min(len(text), line + 1)), items, is_faulty=is_faulty)
