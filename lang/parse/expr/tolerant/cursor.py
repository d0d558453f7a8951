"""The tolerant reading's place in the text: the pieces, what was found wrong so far, and what is to be written anew.

What reads (``reader``) extends it; the rooms of other languages' forms take it, so that none of them needs the reader.
"""

from attrs import evolve, frozen
from attrs import field as attribute

from ....diagnostic import Diagnostic, Edit
from ....expr import Expr
from ....node import Node
from ....source import NOWHERE, Span
from ...fault import Fault, fault, shown
from .pieces import CLOSING, OPENING, Piece, cut

__all__ = ["Cursor", "Found", "Hole", "TooDeep", "complete", "placed"]


@frozen
class Hole(Node):
    """Stands in a tree where something is missing or says nothing; a tree with one is never handed out."""


class TooDeep(Exception):
    """Something is nested deeper than is read; ``args`` are where."""


@frozen
class Found:
    """A fault, and where its mending is to write a part anew: what part, and the tree to write there."""

    diagnostic: Diagnostic
    part: Span = NOWHERE
    anew: Expr | None = attribute(default=None)


def placed(node: Expr, start: int, end: int) -> Expr:
    """Return ``node`` as what stands at ``[start, end)``."""
    return evolve(node, span=Span(start, end))


class Cursor:
    """Walks over the pieces of ``text`` and gathers faults."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Found] = []
        self.pieces = cut(text, self.add)
        self.at = 0
        self.depth = 0
        self.open: list[str] = []
        self.unclosed: list[Piece] = []
        self.parentheses: set[int] = set()
        """Where parentheses begin that a generator among arguments has of its own."""
        self.closers = _closers(self.pieces)
        self.last_then = max((at for at, piece in enumerate(self.pieces) if piece.folded == "then"), default=-1)
        self._last_else = {piece.level: at for at, piece in enumerate(self.pieces) if piece.folded in _ELSE}

    # Reading

    def test(self) -> Expr:
        """Read a value, conditionals too."""
        raise NotImplementedError

    def chain(self, stop: frozenset[str] = frozenset()) -> Expr:
        """Read operands and signs up to a word of ``stop``, or to what ends a chain."""
        raise NotImplementedError

    def operand(self) -> Expr:
        """Read one value with what stands behind it."""
        raise NotImplementedError

    # Looking

    def peek(self, ahead: int = 0) -> Piece:
        """Return the piece ``ahead`` of the current one; the end's piece behind the end."""
        return self.pieces[min(self.at + ahead, len(self.pieces) - 1)]

    @property
    def last(self) -> Piece:
        """The piece before the current one; the first at the beginning."""
        return self.pieces[max(0, self.at - 1)]

    def take(self) -> Piece:
        """Return the current piece and go on behind it."""
        piece = self.peek()
        self.at = min(self.at + 1, len(self.pieces) - 1)
        return piece

    def word(self, *words: str) -> bool:
        """Say whether one of ``words`` (in lower case) stands here, in any case."""
        return self.peek().folded in words

    def sign(self, *signs: str) -> bool:
        """Say whether one of ``signs`` stands here."""
        piece = self.peek()
        return piece.kind == "sign" and piece.text in signs

    def accept(self, *texts: str) -> Piece | None:
        """Take the piece here if it is one of these words, in any case, or signs; else None."""
        return self.take() if self.word(*texts) or self.sign(*texts) else None

    def later_else(self) -> bool:
        """Say whether an ``else`` stands later among the same open brackets, as far as can be seen."""
        return self._last_else.get(self.peek().level, -1) > self.at

    # Faults

    def add(self, found: Fault) -> None:
        """Take a fault as found."""
        self.found.append(Found(found.diagnostic))

    def fault(self, code: str, message: str, span: Span, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        """Report a fault over ``span``, with the edits that put it right."""
        self.add(fault(code, message, span.start, span.end, *hints, edits=edits))

    def swap(self, code: str, message: str, piece: Piece, right: str) -> None:
        """Report that ``right`` is written for ``piece``, with blanks where it would touch a word."""
        before, behind = self.text[piece.start - 1 : piece.start], self.text[piece.end : piece.end + 1]
        spaced = right
        if right[:1].isalpha() and (before.isalnum() or before == "_"):
            spaced = f" {spaced}"
        if right[-1:].isalpha() and (behind.isalnum() or behind == "_"):
            spaced = f"{spaced} "
        self.fault(code, message, piece.span, f"write {right}", edits=(Edit(piece.span, spaced),))

    def anew(self, code: str, message: str, span: Span, node: Expr, *hints: str) -> Expr:
        """Report a fault over ``span`` whose mending writes ``node`` anew where it stands; return ``node``."""
        found = fault(code, message, span.start, span.end, *hints).diagnostic
        self.found.append(Found(found, node.span, node))
        return node

    def hole(self, start: int | None = None) -> Expr:
        """Return what stands where nothing can."""
        end = self.last.end
        return Hole(span=Span(min(end if start is None else start, end), end))  # type: ignore[return-value]

    def missing(self, what: str) -> Expr:
        """Report that a value is missing before the current piece."""
        before = self.last if self.at else None
        piece = self.peek()
        if piece.kind == "end":
            at = before.end if before else 0
            where = f"behind {shown(before.text)} at the end" if before else ""
            self.fault("EXPR002", f"{what} is missing {where}".rstrip(), Span(max(0, at - 1), at))
        else:
            self.fault("EXPR002", f"{what} is missing before {shown(piece.text)}", piece.span)
        return self.hole()

    def enter(self) -> Piece:
        """Take an opening bracket; ``close`` takes the one that closes it."""
        piece = self.take()
        self.open.append(OPENING[piece.text])
        return piece

    def close(self, opening: Piece) -> Piece:
        """Take the bracket that closes ``opening``, whatever stands before it; return the last piece taken."""
        self.open.pop()
        wanted = OPENING[opening.text]
        if self.sign(wanted):
            return self.take()
        if self.peek().kind != "end" and not self.sign(*CLOSING):
            self.unexpected()
            level = opening.level + 1
            while self.peek().kind != "end" and not (self.sign(*CLOSING) and self.peek().level <= level):
                self.take()
            if self.sign(wanted):
                return self.take()
        piece = self.peek()
        if piece.kind == "end":
            self.unclosed.append(opening)
        elif piece.text in self.open:
            edit = Edit(Span(self.last.end, self.last.end), wanted)
            message = f"{opening.text} is not closed before {piece.text}"
            self.fault("EXPR005", message, opening.span, f"write {wanted} there", edits=(edit,))
        else:
            message = f"{opening.text} is closed by {wanted}, not {piece.text}"
            self.fault("EXPR005", message, piece.span, f"write {wanted}", edits=(Edit(piece.span, wanted),))
            self.take()
        return self.last

    def skip(self, stop: str) -> None:
        """Go on to the sign ``stop`` among the same open brackets, or to what closes them."""
        inside = 0
        while self.peek().kind != "end" and (inside or not self.sign(stop, *CLOSING)):
            piece = self.take()
            if piece.kind == "sign":
                inside += (piece.text in OPENING) - (piece.text in CLOSING)

    def unexpected(self) -> None:
        """Report that the current piece can't stand where it does."""
        piece = self.peek()
        if any(known.diagnostic.span == piece.span for known in self.found[-3:]):
            return
        self.fault("EXPR001", f"{shown(piece.text)} can't stand here", piece.span)


_ELSE = frozenset({"else", "otherwise", "default"})


def complete(root: Node) -> bool:
    """Say whether the tree has no hole."""
    from ....node import walk

    return not any(isinstance(node, Hole) for node in walk(root))


def _closers(pieces: list[Piece]) -> dict[int, int]:
    """Return for each opening bracket, by its place among the pieces, the place of the one that closes it."""
    stack: list[int] = []
    found: dict[int, int] = {}
    for at, piece in enumerate(pieces):
        if piece.kind == "sign" and piece.text in OPENING:
            stack.append(at)
        elif piece.kind == "sign" and piece.text in CLOSING and stack:
            found[stack.pop()] = at
    return found
