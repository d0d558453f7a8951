"""An invalid statement, and the means to try fixes: explainers offer only edits that were tried."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from attrs import evolve, frozen

from ....catalogue.commands import COMMANDS, FORMS
from ....diagnostic import Edit, apply_edits
from ....source import Span
from ...repairs import Fault, fault
from ..engine import Failure, Read, read

Edits = Sequence[Edit]

_PIECE = re.compile(
    r"""(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+')"""
    r"|(?P<variable>\$\{[^{}\n]{0,200}\})|(?P<number>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.]))"
    r"|(?P<word>[^\W\d]\w*+(?:\.\w++)*+|`(?:[^`\r\n]|``)++`)"
    r"|(?P<sign>===|!==|==|!=|<>|<=|>=|=>|=<|=~|:=|->|&&|\|\||[^\s])"
)


_AROUND = 5_000
"""Number of characters on each side of a fault that are examined."""


@frozen
class Piece:
    """A word, string, variable, number or sign, split without the grammar."""

    kind: Literal["string", "variable", "number", "word", "sign"]
    text: str
    span: Span

    @property
    def upper(self) -> str:
        """Return the text in capitals."""
        return self.text.upper()


def swap(start: int, end: int, text: str) -> Edit:
    """Return the edit that replaces ``[start, end)`` with ``text``."""
    return Edit(Span(start, end), text)


class Broken:
    """An invalid statement's text, and where parsing stopped. ``mended``: it was repaired before."""

    def __init__(self, text: str, failure: Failure, mended: bool = False) -> None:
        self.text, self.failure, self.mended = text, failure, mended
        self.at = min(failure.offset, len(text.rstrip()))

    @cached_property
    def expected(self) -> frozenset[str]:
        """Return the tokens that the grammar allows at ``at``, by their names in the grammar."""
        return self.failure.expected()

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Return the text in pieces; for a very long text only those around ``at``."""
        first = max(0, self.at - _AROUND)
        return tuple(
            Piece(match.lastgroup, match[0], Span(*match.span()))  # type: ignore[arg-type]  # the groups' names
            for match in _PIECE.finditer(self.text, first, self.at + _AROUND)
        )

    @cached_property
    def here(self) -> int:
        """Return the index of the piece at ``at``; the number of pieces if the text ended too early."""
        return next((i for i, piece in enumerate(self.pieces) if piece.span.end > self.at), len(self.pieces))

    @property
    def ended(self) -> bool:
        """Return whether the text ended too early."""
        return self.here == len(self.pieces)

    def piece(self, offset: int = 0) -> Piece | None:
        """Return the piece at ``at``, or ``offset`` pieces further; None outside of the text."""
        index = self.here + offset
        return self.pieces[index] if 0 <= index < len(self.pieces) else None

    def words(self, offset: int = 0) -> str:
        """Return the piece's text in capitals, "" if there is none."""
        piece = self.piece(offset)
        return piece.upper if piece else ""

    @cached_property
    def command(self) -> str:
        """Return the innermost command's keyword at ``at``, in capitals, or ""."""
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
        """Return whether the statement is valid after ``edits``."""
        return isinstance(self._after(edits)[0], Read)

    def furthered_by(self, edits: Edits) -> bool:
        """Return whether the statement is valid after ``edits``, or has its first fault further on."""
        found, mended = self._after(edits)
        # Counted from the end: the edits change lengths only before both places.
        return isinstance(found, Read) or len(mended) - found.offset < len(self.text) - self.failure.offset

    def best(self, *candidates: Edits) -> tuple[Edit, ...]:
        """Return the first of ``candidates`` that makes the statement valid, else the first that gets further, else nothing."""
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
        """Return an ambiguous fault, without an edit. Parsing goes on with the best of ``supposed``."""
        found = fault(code, message, span.start, max(span.end, span.start + 1), *hints)
        return evolve(found, supposed=self.best(*supposed))

    def readings(self, *candidates: Edits) -> int:
        """Return the number of different statements that the candidates give, at most two."""
        trees: list[Any] = []
        for edits in candidates:
            found = self._after(edits)[0] if edits else None
            if isinstance(found, Read) and found.result not in trees:
                trees.append(found.result)
                if len(trees) == 2:
                    break
        return len(trees)

    def fix(self, code: str, message: str, span: Span, hint: str, *candidates: Edits) -> Fault | None:
        """Return the fault if one of ``candidates`` helps; else None, because the fault is a different one."""
        found = self.fault(code, message, span, hint, *candidates)
        return found if found.diagnostic.edits else None

    @property
    def form(self) -> str:
        """Return the form of the command, as a hint."""
        return f"the form is {FORMS[self.command]}" if self.command in FORMS else ""
