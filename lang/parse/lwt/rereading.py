"""Reads the successive texts of one script, and of each only what changed: for editors, which ask after every key.

A step that stands as it stood is kept, moved to where it stands now; everything faulty is read again. What comes out is what
``parse_lwt`` gives, which a property test holds.
"""

from attrs import define, field

from ...lwt import Comment, Script, Step
from ...source import Source
from ..fault import Fault
from ..moving import Kept, difference
from .script import MAX_LENGTH, MAX_OPENINGS, next_place, parse_lwt, read_piece, read_strictly
from .shapes import end_of_line, start_of_line

__all__ = ["LwtReader"]

_Kept = Kept[Step | Comment]


@define(eq=False)
class LwtReader:
    """Reads texts strictly, one after the other. A script that it returned is good until it reads the next: its trees are used again."""

    _text: str = field(default="", init=False)
    _kept: tuple[_Kept, ...] | None = field(default=None, init=False)

    def read(self, source: Source) -> Script:
        """Read a text, as ``parse_lwt`` does."""
        text = source.text
        kept, self._kept = self._kept, None  # an exception leaves nothing half moved behind
        if len(text) > MAX_LENGTH or text.startswith("\ufeff") or text.count("{(") > MAX_OPENINGS:
            return parse_lwt(source)
        if kept is None:
            script = parse_lwt(source)
            items_kept = () if script.diagnostics else tuple(_piece(text, item) for item in script.items)
            self._text, self._kept = text, items_kept
            return script
        reusable = self._reusable(kept, text)
        made: list[_Kept] = []
        items: list[Step | Comment] = []
        faults: list[Fault] = []
        at = 0
        while (at := next_place(text, at)) < len(text):
            piece = reusable.get(at)
            if piece is None:
                read = read_piece(text, at)
                faults += read.faults
                at = read.end
                if read.item is None:
                    continue
                items.append(read.item)
                if not read.faults:
                    made.append(_piece(text, read.item))
                continue
            if by := at - piece.start:
                piece.shift(by)
            made.append(piece)
            items += piece.items
            at = piece.end
        self._text, self._kept = text, tuple(made)
        return read_strictly(source, items, faults)

    def _reusable(self, kept: tuple[_Kept, ...], text: str) -> dict[int, _Kept]:
        """Return what can be kept of the text before, by where it begins in the new one."""
        before = self._text
        change = difference(before, text)
        found = {}
        for piece in kept:
            if piece.stays(change):
                found[piece.start] = piece
            elif piece.moves(change, start_of_line(before, piece.start)):
                found[piece.start + change.by] = piece
        return found


def _piece(text: str, item: Step | Comment) -> _Kept:
    start = item.span.start
    end = item.span.end if isinstance(item, Step) else end_of_line(text, start)
    return Kept(start, end, end_of_line(text, end), (item,))
