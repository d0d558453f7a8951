"""An invalid statement, and methods that try fixes on it. Explainers and corrections offer only edits that were tried."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from ....catalogue.commands import COMMANDS, FORMS
from ....diagnostic import Edit, apply_edits
from ....source import Span
from ...repairs import Fault, fault
from ..engine import Failure, Read, read

Edits: TypeAlias = Sequence[Edit]

_PIECE = re.compile(
    r"""(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+')"""
    r"|(?P<variable>\$\{[^{}\n]{0,200}\})|(?P<number>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.]))"
    r"|(?P<word>[^\W\d]\w*+(?:\.\w++)*+|`(?:[^`\r\n]|``)++`)"
    r"|(?P<sign>===|!==|==|!=|<>|<=|>=|=>|=<|=~|:=|->|&&|\|\||[^\s])"
)

_AROUND = 5_000
"""Number of characters on each side of a fault that are examined."""

VALUES = ("number", "string", "variable")
"""The kinds of pieces that are values."""


@frozen
class Piece:
    """A word, string, variable, number or sign, found without the grammar. A piece outside of the text has the kind "end"."""

    kind: Literal["string", "variable", "number", "word", "sign", "end"]
    text: str
    span: Span

    def __str__(self) -> str:
        return self.text

    @property
    def upper(self) -> str:
        """Return the text in capitals."""
        return self.text.upper()


def swap(start: int, end: int, text: str) -> Edit:
    """Return the edit that replaces ``[start, end)`` with ``text``."""
    return Edit(Span(start, end), text)


def insert(at: int, text: str) -> Edit:
    """Return the edit that inserts ``text`` at ``at``."""
    return Edit(Span(at, at), text)


class InvalidStatement:
    """The text of an invalid statement, and the place ``at`` where parsing stopped."""

    def __init__(self, text: str, failure: Failure) -> None:
        self.text, self.failure = text, failure
        self.at = min(failure.offset, len(text.rstrip()))

    @cached_property
    def expected(self) -> frozenset[str]:
        """Return the names, in the grammar, of the tokens that are allowed at ``at``."""
        return self.failure.expected()

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of the text; for a very long text, only the pieces around ``at``."""
        first = max(0, self.at - _AROUND)
        return tuple(
            Piece(match.lastgroup, match[0], Span(*match.span()))  # type: ignore[arg-type]  # the groups' names
            for match in _PIECE.finditer(self.text, first, self.at + _AROUND)
        )

    @cached_property
    def here(self) -> int:
        """Return the index of the piece at ``at``; the number of pieces if the text ended too early."""
        return next((i for i, piece in enumerate(self.pieces) if piece.span.end > self.at), len(self.pieces))

    def piece(self, offset: int = 0) -> Piece:
        """Return the piece at ``at``, or ``offset`` pieces further on; outside of the text, an empty piece."""
        index = self.here + offset
        if 0 <= index < len(self.pieces):
            return self.pieces[index]
        return Piece("end", "", Span(len(self.text), len(self.text)))

    @cached_property
    def command(self) -> str:
        """Return the keyword of the innermost command at ``at``, in capitals; "" if no command is known there."""
        heads = [piece.upper for piece in self.pieces[: self.here] if piece.upper in COMMANDS]
        if self.pieces and self.pieces[0].upper not in COMMANDS:
            return ""
        innermost = ""
        for before, piece in zip((None, *self.pieces), self.pieces[: self.here], strict=False):
            if piece.upper in COMMANDS and (before is None or before.upper in ("THEN", "ELSE", "EXPLAIN")):
                innermost = piece.upper
        return innermost or (heads[0] if heads and heads[0] not in ("BRANCH", "ON", "EXPLAIN") else "")

    def removal(self, offset: int) -> Edit:
        """Return the edit that removes the piece at ``offset``, and the blanks before the next piece."""
        piece, following = self.piece(offset), self.piece(offset + 1)
        end = piece.span.end if following.kind == "end" else following.span.start
        return swap(piece.span.start, end, "")

    @property
    def form(self) -> str:
        """Return a hint with the form of the command; "" if the command is unknown."""
        return f"the form is {FORMS[self.command]}" if self.command in FORMS else ""

    @cached_property
    def list_head(self) -> str:
        """Return the word before the innermost open bracket, in capitals; "" if no bracket is open."""
        if not self.failure.brackets:
            return ""
        at = self.failure.brackets[-1][1]
        return next((piece.upper for piece in reversed(self.pieces) if piece.span.end <= at), "")

    @property
    def is_in_list(self) -> bool:
        """Return whether ``at`` is in a list of values, after IN or INTO."""
        return self.list_head in ("IN", "INTO")

    @property
    def is_about_items(self) -> bool:
        """Return whether ``at`` is in a condition on items, which have fields, and not in a condition on variables."""
        words = [piece.upper for piece in self.pieces[: self.here] if piece.upper in _CONDITIONAL]
        return not words or words[-1] in ("WHERE", "VIA")

    def _after(self, edits: Edits) -> tuple[Read | Failure, str]:
        mended = apply_edits(self.text, edits)
        return read(mended), mended

    def mended_by(self, edits: Edits) -> bool:
        """Return whether the statement is valid after ``edits``."""
        return isinstance(self._after(edits)[0], Read)

    def furthered_by(self, edits: Edits) -> bool:
        """Return whether the statement is valid after ``edits``, or its first fault comes later in the text."""
        result, mended = self._after(edits)
        # Both offsets are counted from the end of the text: the edits change lengths only before them.
        return isinstance(result, Read) or len(mended) - result.offset < len(self.text) - self.failure.offset

    def best(self, *candidates: Edits) -> tuple[Edit, ...]:
        """Return the first candidate that makes the statement valid, else the first that moves its fault further on, else ()."""
        for helps in (self.mended_by, self.furthered_by):
            for edits in candidates:
                if edits and helps(edits):
                    return tuple(edits)
        return ()

    def readings(self, *candidates: Edits) -> int:
        """Return the number of different valid statements that the candidates produce; counting stops at two."""
        trees: list[Any] = []
        for edits in candidates:
            result = self._after(edits)[0] if edits else None
            if isinstance(result, Read) and result.result not in trees:
                trees.append(result.result)
                if len(trees) == 2:
                    break
        return len(trees)

    def fault(self, code: str, message: str, span: Span, hint: str = "", *candidates: Edits) -> Fault:
        """Return the fault with the best of ``candidates`` as its fix."""
        return fault(code, message, span.start, max(span.end, span.start + 1), hint, edits=self.best(*candidates))

    def fix(self, code: str, message: str, span: Span, hint: str, *candidates: Edits) -> Fault | None:
        """Return the fault if one of ``candidates`` helps. Otherwise return None: the statement has a different fault."""
        found = self.fault(code, message, span, hint, *candidates)
        return found if found.diagnostic.edits else None

    def ambiguity(self, code: str, message: str, span: Span, *hints: str, supposed: Sequence[Edits] = ()) -> Fault:
        """Return a fault that offers no edit. Parsing continues with the best of ``supposed``."""
        found = fault(code, message, span.start, max(span.end, span.start + 1), *hints)
        return evolve(found, supposed=self.best(*supposed))


_CONDITIONAL = ("WHERE", "VIA", "IF", "ASSERT", "WHEN")

Explainer: TypeAlias = Callable[[InvalidStatement], Fault | None]


@frozen
class Correction:
    """Recognises a fault by the pieces around the place where parsing stopped, and may replace some of them. An ``Explainer``.

    ``where`` describes these pieces in order, with ``|`` before the piece at the place. ``A/B`` matches a piece whose text in
    capitals is A or B. ``word``, ``string``, ``variable``, ``number`` and ``sign`` match a piece of that kind. ``value`` matches
    a string, a variable or a number, and ``any`` matches any piece. In ``message``, ``hint`` and ``rewrite``, ``{0}`` is the
    text of the first piece, and ``{0.upper}`` is the same text in capitals.
    """

    code: str
    where: str
    message: str
    hint: str
    rewrite: str | None = None
    """The text that replaces the pieces ``edited`` (default None: no edit is offered)."""
    edited: tuple[int, int] | None = None
    """Indices of the first and the last piece that ``rewrite`` replaces (default: all pieces)."""
    blamed: tuple[int, int] | None = None
    """Indices of the first and the last piece that the diagnostic marks (default: the piece at the place)."""
    allowed: str = ""
    """Names of the tokens that the grammar must allow at the place, separated by spaces."""
    after: tuple[str, ...] = ()
    """The token before the place must have one of these kinds (default: any kind)."""
    commands: tuple[str, ...] = ()
    """The commands in which the correction applies (default: all)."""
    must_help: bool = True
    """Whether the fault is reported only if ``rewrite`` helps."""
    when: Callable[[InvalidStatement], bool] = lambda statement: True
    """A further condition that the statement must meet."""
    _cells: tuple[frozenset[str], ...] = field(init=False)
    _first: int = field(init=False)

    @_cells.default
    def _split(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(cell.split("/")) for cell in self.where.replace("|", "").split())

    @_first.default
    def _offset(self) -> int:
        return -len(self.where.partition("|")[0].split())

    def __call__(self, s: InvalidStatement) -> Fault | None:
        """Return the fault if the statement has this fault, else None."""
        pieces = [s.piece(self._first + at) for at in range(len(self._cells))]
        if not all(map(_fits, pieces, self._cells)) or not s.expected.issuperset(self.allowed.split()):
            return None
        if (self.after and s.failure.after not in self.after) or (self.commands and s.command not in self.commands):
            return None
        if not self.when(s):
            return None
        message, hint = self.message.format(*pieces), self.hint.format(*pieces, form=s.form)
        first, last = self.blamed or (min(-self._first, len(pieces) - 1),) * 2
        span = pieces[first].span | pieces[last].span
        if self.rewrite is None:
            return s.fault(self.code, message, span, hint)
        first, last = self.edited or (0, len(pieces) - 1)
        edit = Edit(pieces[first].span | pieces[last].span, self.rewrite.format(*pieces))
        return (s.fix if self.must_help else s.fault)(self.code, message, span, hint, [edit])


def _fits(piece: Piece, cell: frozenset[str]) -> bool:
    """Return whether ``piece`` matches ``cell``, the description of one piece in ``where``."""
    if piece.kind == "end":
        return False
    return piece.upper in cell or piece.kind in cell or "any" in cell or ("value" in cell and piece.kind in VALUES)
