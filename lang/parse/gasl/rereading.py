"""Reads the successive texts of one program, and of each only what changed: for editors, which ask after every key.

A statement, block or comment that stands as it stood is kept, moved to where it stands now; everything faulty is read again. What
comes out is what ``parse_gasl`` gives, which a property test holds.
"""

import re
from collections.abc import Sequence

from attrs import define, field

from ...gasl import Comment, Item, Program
from ...source import Source
from ..moving import Kept, difference
from .engine import MAX_TOKENS, Failure, read
from .lines import end_of_line
from .recover import Recovery
from .script import parse_gasl, read_faulty

__all__ = ["GaslReader"]

_Kept = Kept[Item]
_WORD = re.compile(r"\w+|[^\w\s]")


@define(eq=False)
class GaslReader:
    """Reads texts, one after the other. A program that it returned is good until it reads the next: its trees are used again."""

    _text: str = field(default="", init=False)
    _kept: tuple[_Kept, ...] | None = field(default=None, init=False)

    def read(self, source: Source) -> Program:
        """Read a text, as ``parse_gasl`` does."""
        text = source.text
        kept, self._kept = self._kept, None  # an exception leaves nothing half moved behind
        if text.startswith("\ufeff") or _may_have_too_many_words(text):
            return parse_gasl(source)
        if kept is None:
            program = parse_gasl(source)
            self._text, self._kept = text, () if program.diagnostics else tuple(_pieces(text, program.items))
            return program
        return self._again(source, kept) or parse_gasl(source)

    def _again(self, source: Source, kept: tuple[_Kept, ...]) -> Program | None:
        """Read what changed; None where only a reading of the whole can tell how it is to be read."""
        text = source.text
        reusable = self._reusable(kept, text)
        recovery = Recovery(text, None)
        made: list[_Kept] = []
        begun = at = items = faults = 0
        first_fault: int | None = None

        def finish_piece(end: int) -> None:
            nonlocal first_fault
            if len(recovery.faults) > faults:
                first_fault = begun if first_fault is None else first_fault
            elif len(recovery.root) > items:
                made.append(_piece(text, begun, end, recovery.root[items:]))

        reading = False
        while (place := recovery.next_place(at)) < len(text):
            if recovery.is_between:
                if reading:
                    finish_piece(at)
                reading = False
                if (piece := reusable.get(place)) is not None:
                    if by := place - piece.start:
                        piece.shift(by)
                    made.append(piece)
                    recovery.root += piece.items
                    at = piece.end
                    continue
                reading, begun, items, faults = True, place, len(recovery.root), len(recovery.faults)
            at = recovery.advance(place)
        found, all_faults = recovery.finish()
        if reading:
            finish_piece(at)
        if first_fault is not None and (recovery.has_longest or not isinstance(read(text, first_fault), Failure)):
            # Statement by statement a fault may be found where the grammar, which reads the whole, has none.
            return None
        self._text, self._kept = text, tuple(made)
        return read_faulty(source, found, all_faults) if all_faults else Program(found, source)

    def _reusable(self, kept: tuple[_Kept, ...], text: str) -> dict[int, _Kept]:
        """Return what can be kept of the text before, by where it begins in the new one."""
        before = self._text
        change = difference(before, text)
        found = {}
        for piece in kept:
            if piece.stays(change):
                found[piece.start] = piece
            elif piece.moves(change, before.rfind("\n", 0, piece.start) + 1):
                found[piece.start + change.by] = piece
        return found


def _may_have_too_many_words(text: str) -> bool:
    """Say whether a text may have more words and signs than are read: how many it has can only be told by reading it whole."""
    return len(text) > 2 * MAX_TOKENS and text.count("\n") + sum(1 for _ in _WORD.finditer(text)) > MAX_TOKENS


def _pieces(text: str, items: Sequence[Item]) -> list[_Kept]:
    """Take the items of a faultless text apart. Comments that stood inside a command come before it, and belong to it."""
    made: list[_Kept] = []
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


def _piece(text: str, start: int, end: int, items: Sequence[Item]) -> _Kept:
    line = end_of_line(text, end)
    return Kept(start, end, end_of_line(text, min(len(text), line + 1)), tuple(items))
