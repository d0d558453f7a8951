"""Reads another text of a script, and of it only what is new: for editors, which ask after every key.

A step that is written as it was is kept, moved to where it stands now; everything faulty is read again. What comes out is what
``parse_lwt`` gives, which a property test holds.
"""

from functools import cached_property

from attrs import field, frozen

from ...diagnostic import Diagnostic
from ...source import Source
from ...trees.lwt import Comment, Script, Step
from ..moving import Kept, Pieces
from ..repairs import Fault
from .script import MAX_FAULTS, excess, next_place, parse_lwt, read_piece, read_strictly, too_many_faults
from .shapes import end_of_line

__all__ = ["ScriptPieces", "ScriptRead", "reread_lwt"]

ScriptPieces = Pieces[Step | Comment]


@frozen(eq=False, slots=False)
class ScriptRead:
    """A script that was read: its pieces, and the whole of it once that is asked for."""

    source: Source
    pieces: ScriptPieces
    diagnostics: tuple[Diagnostic, ...]
    _whole: Script | None = field(default=None, repr=False)

    @cached_property
    def script(self) -> Script:
        """The script, as ``parse_lwt`` gives it."""
        whole = self._whole
        return Script(self.pieces.items, self.source, "strict", self.diagnostics) if whole is None else whole


def reread_lwt(source: Source, before: ScriptPieces | None = None) -> ScriptRead:
    """Read a text, as ``parse_lwt`` does, with the pieces of one like it."""
    text = source.text
    if text.startswith("\ufeff") or excess(text):
        return _as_a_whole(parse_lwt(source), is_faulty=True)
    if before is None:
        script = parse_lwt(source)
        if not script.diagnostics:
            return _as_a_whole(script)
        before = Pieces()
    made: list[Kept[Step | Comment]] = []
    faults: list[Fault] = []
    at = 0
    while (at := next_place(text, at)) < len(text):
        if len(faults) >= MAX_FAULTS:
            faults.append(too_many_faults(text, at, len(faults)))
            break
        piece = before.find(text, at)
        if piece is None:
            read = read_piece(text, at)
            faults += read.faults
            at = read.end
            if read.item is not None:
                made.append(_piece(text, read.item, is_faulty=bool(read.faults)))
            continue
        made.append(piece)
        at = piece.end
    return ScriptRead(source, Pieces(tuple(made)), read_strictly(source, (), faults).diagnostics)


def _as_a_whole(script: Script, *, is_faulty: bool = False) -> ScriptRead:
    text = script.source.text
    pieces = Pieces(tuple(_piece(text, item, is_faulty=is_faulty) for item in script.items))
    return ScriptRead(script.source, pieces, script.diagnostics, script)


def _piece(text: str, item: Step | Comment, *, is_faulty: bool = False) -> Kept[Step | Comment]:
    start = item.span.start
    end = item.span.end if isinstance(item, Step) else end_of_line(text, start)
    return Kept.of(text, start, end, end_of_line(text, end), (item,), is_faulty=is_faulty)
