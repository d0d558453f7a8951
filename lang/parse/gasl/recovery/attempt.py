"""A statement that can't be read, and the means to try a mend: who explains it offers no edit that was not tried."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from attrs import evolve, frozen

from ....diagnostic import Edit, apply_edits
from ....source import Span
from ...repairs import Fault, fault
from ..engine import Failure, Read, read
from ..lines import COMMANDS, FORMS

__all__ = ["Broken", "Edits", "Piece", "swap"]

Edits = Sequence[Edit]

_PIECE = re.compile(
    r"""(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+')"""
    r"|(?P<variable>\$\{[^{}\n]{0,200}\})|(?P<number>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.]))"
    r"|(?P<word>[^\W\d]\w*+(?:\.\w++)*+|`(?:[^`\r\n]|``)++`)"
    r"|(?P<sign>===|!==|==|!=|<>|<=|>=|=>|=<|=~|:=|->|&&|\|\||[^\s])"
)


_AROUND = 5_000
"""How far around a fault its statement is looked at."""


@frozen
class Piece:
    """A word, string, variable, number or sign, as anyone would part a text; the grammar has no say in it."""

    kind: Literal["string", "variable", "number", "word", "sign"]
    text: str
    span: Span

    @property
    def upper(self) -> str:
        """The text in capitals."""
        return self.text.upper()


def swap(start: int, end: int, text: str) -> Edit:
    """Return the edit that puts ``text`` for what stands in ``[start, end)``."""
    return Edit(Span(start, end), text)


class Broken:
    """A statement's text that can't be read, and where reading it stopped. ``mended``: it has been mended before."""

    def __init__(self, text: str, failure: Failure, mended: bool = False) -> None:
        self.text, self.failure, self.mended = text, failure, mended
        self.at = min(failure.offset, len(text.rstrip()))

    @cached_property
    def expected(self) -> frozenset[str]:
        """What the grammar would take at ``at``, by its own names."""
        return self.failure.expected()

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The text in pieces; of a very long one those around ``at``."""
        first = max(0, self.at - _AROUND)
        return tuple(
            Piece(match.lastgroup, match[0], Span(*match.span()))  # type: ignore[arg-type]  # the groups' names
            for match in _PIECE.finditer(self.text, first, self.at + _AROUND)
        )

    @cached_property
    def here(self) -> int:
        """The index of the piece at ``at``; the number of pieces where the text ended too early."""
        return next((i for i, piece in enumerate(self.pieces) if piece.span.end > self.at), len(self.pieces))

    @property
    def ended(self) -> bool:
        """Whether the text ended too early."""
        return self.here == len(self.pieces)

    def piece(self, offset: int = 0) -> Piece | None:
        """Return the piece at ``at``, or one ``offset`` further on; None beyond the ends."""
        index = self.here + offset
        return self.pieces[index] if 0 <= index < len(self.pieces) else None

    def words(self, offset: int = 0) -> str:
        """Return the piece's text in capitals, "" where there is none."""
        piece = self.piece(offset)
        return piece.upper if piece else ""

    @cached_property
    def command(self) -> str:
        """The innermost command's word at ``at``, in capitals, or ""."""
        heads = [piece.upper for piece in self.pieces[: self.here] if piece.upper in COMMANDS]
        if self.pieces and self.pieces[0].upper not in COMMANDS:
            return ""
        nesting = ("BRANCH", "ON", "EXPLAIN")
        found = ""
        for before, piece in zip((None, *self.pieces), self.pieces[: self.here], strict=False):
            if piece.upper in COMMANDS and (before is None or before.upper in ("THEN", "ELSE", "EXPLAIN")):
                found = piece.upper
        return found or (heads[0] if heads and heads[0] not in nesting else "")

    def _after(self, edits: Edits) -> tuple[Read | Failure, str]:
        mended = apply_edits(self.text, edits)
        return read(mended), mended

    def mended_by(self, edits: Edits) -> bool:
        """Say whether the statement reads once ``edits`` are made."""
        return isinstance(self._after(edits)[0], Read)

    def furthered_by(self, edits: Edits) -> bool:
        """Say whether the statement reads once ``edits`` are made, or at least to a fault further on."""
        found, mended = self._after(edits)
        # Counted from the end: what the edits made longer or shorter lies before both places.
        return isinstance(found, Read) or len(mended) - found.offset < len(self.text) - self.failure.offset

    def best(self, *candidates: Edits) -> tuple[Edit, ...]:
        """Return the first of ``candidates`` that mends the statement, else the first that furthers it, else nothing."""
        for edits in candidates:
            if edits and self.mended_by(edits):
                return tuple(edits)
        for edits in candidates:
            if edits and self.furthered_by(edits):
                return tuple(edits)
        return ()

    def fault(self, code: str, message: str, span: Span, hint: str, *candidates: Edits) -> Fault:
        """Return the fault with the best of ``candidates`` as its fix."""
        return fault(code, message, span.start, max(span.end, span.start + 1), hint, edits=self.best(*candidates))

    def doubt(self, code: str, message: str, span: Span, *hints: str, supposed: Sequence[Edits] = ()) -> Fault:
        """Return a fault without an edit: two readers would mend it differently. Reading goes on with the best of ``supposed``."""
        found = fault(code, message, span.start, max(span.end, span.start + 1), *hints)
        return evolve(found, supposed=self.best(*supposed))

    def readings(self, *candidates: Edits) -> int:
        """Return how many different statements the candidates lead to, up to two."""
        trees: list[Any] = []
        for edits in candidates:
            found = self._after(edits)[0] if edits else None
            if isinstance(found, Read) and found.result not in trees:
                trees.append(found.result)
                if len(trees) == 2:
                    break
        return len(trees)

    def fix(self, code: str, message: str, span: Span, hint: str, *candidates: Edits) -> Fault | None:
        """Return the fault if one of ``candidates`` helps; else something else is wrong here."""
        found = self.fault(code, message, span, hint, *candidates)
        return found if found.diagnostic.edits else None

    @property
    def form(self) -> str:
        """How the command is written, as a hint."""
        return f"the form is {FORMS[self.command]}" if self.command in FORMS else ""
