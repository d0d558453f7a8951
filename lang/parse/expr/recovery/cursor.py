"""``Cursor`` is the tolerant parser's position in the text, with the faults found so far and the parts to rewrite.

``Reader`` extends ``Cursor``. The modules for foreign syntax use only a ``Cursor``, so they do not import ``reader``.
"""

import re

from attrs import evolve, frozen
from attrs import field as attribute

from ....diagnostic import Diagnostic, Edit
from ....source import NOWHERE, Span
from ....trees import Node
from ....trees.expr import Expr
from ...repairs import Fault, fault, shortened
from .pieces import CLOSING, OPENING, Piece, cut


@frozen
class Hole(Node):
    """Placeholder in a tree for a missing or invalid part. A tree that contains a placeholder is never returned to callers."""


class TooDeep(Exception):
    """Raised if the nesting is too deep; ``args[0]`` is the span of the place."""


@frozen
class FoundFault:
    """A fault. If its fix rewrites a part of the text, it also holds the span of that part and the new tree of the part."""

    diagnostic: Diagnostic
    part: Span = NOWHERE
    rewritten: Expr | None = attribute(default=None)


def placed(node: Expr, start: int, end: int) -> Expr:
    """Return ``node`` with the span ``[start, end)``."""
    return evolve(node, span=Span(start, end))


class Cursor:
    """Moves over the pieces of ``text`` and collects faults."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.faults: list[FoundFault] = []
        self.pieces = cut(text, self.add)
        self.at = 0
        self.depth = 0
        self.open: list[str] = []
        self.unclosed: list[Piece] = []
        self.parentheses: set[int] = set()
        """The offsets of the opening parentheses of generators that are arguments."""
        self.closers = _closers(self.pieces)
        self.last_then = max((at for at, piece in enumerate(self.pieces) if piece.folded == "then"), default=-1)
        self._last_else = {piece.level: at for at, piece in enumerate(self.pieces) if piece.folded in _ELSE}

    # Reading

    def test(self) -> Expr:
        """Read a value, which may be a conditional."""
        raise NotImplementedError

    def chain(self, stop: frozenset[str] = frozenset()) -> Expr:
        """Read operands and operators, up to a piece in ``stop`` or the end of the chain."""
        raise NotImplementedError

    def operand(self) -> Expr:
        """Read one value with its suffixes: indices, slices, fields and methods."""
        raise NotImplementedError

    # Look-ahead

    def peek(self, ahead: int = 0) -> Piece:
        """Return the piece that is ``ahead`` pieces after the current one. Past the end, return the last piece, whose kind is "end"."""
        return self.pieces[min(self.at + ahead, len(self.pieces) - 1)]

    @property
    def last(self) -> Piece:
        """Return the piece before the current one. At the beginning of the text, return the first piece."""
        return self.pieces[max(0, self.at - 1)]

    def take(self) -> Piece:
        """Return the current piece and advance past it."""
        piece = self.peek()
        self.at = min(self.at + 1, len(self.pieces) - 1)
        return piece

    def word(self, *words: str) -> bool:
        """Return whether the current piece, converted to lower case, is one of ``words``."""
        return self.peek().folded in words

    def sign(self, *signs: str) -> bool:
        """Return whether the current piece is one of ``signs``."""
        piece = self.peek()
        return piece.kind == "sign" and piece.text in signs

    def accept(self, *texts: str) -> Piece | None:
        """If the current piece is one of ``texts`` in any letter case, return it and advance past it; otherwise return None."""
        return self.take() if self.word(*texts) or self.sign(*texts) else None

    def later_else(self) -> bool:
        """Return whether an ``else`` follows later at the same nesting level."""
        return self._last_else.get(self.peek().level, -1) > self.at

    # Faults

    def add(self, found: Fault) -> None:
        """Add a fault."""
        self.faults.append(FoundFault(found.diagnostic))

    def fault(self, code: str, message: str, span: Span, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        """Report a fault at ``span``, with the edits that fix it."""
        self.add(fault(code, message, span.start, span.end, *hints, edits=edits))

    def swap(self, code: str, message: str, piece: Piece, right: str) -> None:
        """Report a fault. Its edit replaces ``piece`` with ``right``, and adds a space wherever ``right`` would touch a word."""
        before, behind = self.text[piece.start - 1 : piece.start], self.text[piece.end : piece.end + 1]
        spaced = right
        if right[:1].isalpha() and (before.isalnum() or before == "_"):
            spaced = f" {spaced}"
        if right[-1:].isalpha() and (behind.isalnum() or behind == "_"):
            spaced = f"{spaced} "
        self.fault(code, message, piece.span, f"write {right}", edits=(Edit(piece.span, spaced),))

    def rewrite(self, code: str, message: str, span: Span, node: Expr, *hints: str) -> Expr:
        """Report a fault at ``span``. Its fix replaces the text at ``node.span`` with the text of ``node``. Return ``node``."""
        found = fault(code, message, span.start, span.end, *hints).diagnostic
        self.faults.append(FoundFault(found, node.span, node))
        return node

    def hole(self, start: int | None = None) -> Expr:
        """Return a placeholder for a missing part."""
        end = self.last.end
        return Hole(span=Span(min(end if start is None else start, end), end))  # type: ignore[return-value]

    def missing(self, what: str) -> Expr:
        """Report that a value is missing before the current piece."""
        before = self.last if self.at else None
        piece = self.peek()
        if piece.kind == "end":
            at = before.end if before else 0
            where = f"after {shortened(before.text)} at the end" if before else ""
            self.fault("EXPR002", f"{what} is missing {where}".rstrip(), Span(max(0, at - 1), at))
        else:
            self.fault("EXPR002", f"{what} is missing before {shortened(piece.text)}", piece.span)
        return self.hole()

    def enter(self) -> Piece:
        """Return an opening bracket and advance past it. The method ``close`` does this for the closing bracket."""
        piece = self.take()
        self.open.append(OPENING[piece.text])
        return piece

    def close(self, opening: Piece) -> Piece:
        """Advance past the bracket that closes ``opening``, and past any text before it. Return the last piece passed."""
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
            self.fault("EXPR005", message, opening.span, f"write {wanted} before {piece.text}", edits=(edit,))
        else:
            message = f"{opening.text} must be closed by {wanted}, not by {piece.text}"
            self.fault("EXPR005", message, piece.span, f"write {wanted}", edits=(Edit(piece.span, wanted),))
            self.take()
        return self.last

    def skip(self, stop: str) -> None:
        """Advance to the piece ``stop`` in the same brackets, or to the bracket that closes them."""
        inside = 0
        while self.peek().kind != "end" and (inside or not self.sign(stop, *CLOSING)):
            piece = self.take()
            if piece.kind == "sign":
                inside += (piece.text in OPENING) - (piece.text in CLOSING)

    def unexpected(self) -> None:
        """Report that the current piece is misplaced."""
        piece = self.peek()
        if any(known.diagnostic.span == piece.span for known in self.faults[-3:]):
            return
        self.fault("EXPR001", f"unexpected {shortened(piece.text)}", piece.span)


_ELSE = frozenset({"else", "otherwise", "default"})


def complete(root: Node) -> bool:
    """Return whether the tree has no placeholder."""
    from ....trees import walk

    return not any(isinstance(node, Hole) for node in walk(root))


def _closers(pieces: list[Piece]) -> dict[int, int]:
    """Map the index of each opening bracket to the index of its closing bracket. The indices refer to ``pieces``."""
    stack: list[int] = []
    found: dict[int, int] = {}
    for at, piece in enumerate(pieces):
        if piece.kind == "sign" and piece.text in OPENING:
            stack.append(at)
        elif piece.kind == "sign" and piece.text in CLOSING and stack:
            found[stack.pop()] = at
    return found


# Text around an expression: code fences, ``return``, an assignment, the equals sign of spreadsheets.

_INFO = re.compile(r"(?:`{3,}|~{3,})[ \t]*(?:[A-Za-z]+[ \t]*(?=\n))?\s*")
_STATEMENTS = frozenset({"import", "from", "def", "class", "while", "for", "del", "raise", "assert", "try", "print"})
_DECLARING = frozenset({"return", "let", "var", "const", "yield", "await", "eval"})


def bounds(text: str) -> Span:
    """Return the span of the expression in ``text``, without the (possibly unclosed) fence or backticks around it."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    opening = _INFO.match(text, start, end)
    fence = text[start : start + 3]
    if opening and text.endswith(fence, opening.end(), end):
        return Span(opening.end(), len(text[opening.end() : end].rstrip(fence[0]).rstrip()) + opening.end())
    if opening:
        return Span(opening.end(), end)
    inner = text[start + 1 : end - 1]
    if text[start : start + 1] == text[end - 1 : end] == "`" and "`" not in inner and not inner.isidentifier():
        return Span(start + 1, end - 1)
    return Span(0, len(text))


def before(r: Cursor) -> bool:
    """Skip invalid text before an expression; return whether an expression follows."""
    first, second = r.peek(), r.peek(1)
    if r.sign("=", "==", ":="):
        while r.sign("=", "==", ":="):
            r.take()
        edit = Edit(Span(first.start, r.peek().start), "")
        message = f"an expression does not begin with {first.text}"
        r.fault("EXPR025", message, first.span, "remove it", edits=(edit,))
        return True
    if first.folded in _STATEMENTS and second.kind in ("word", "string", "number"):
        r.fault("EXPR014", f"{first.text} begins a statement, but only an expression is allowed here", first.span)
        r.at = len(r.pieces) - 1
        return False
    if (
        first.folded in _DECLARING
        and second.kind != "end"
        and (second.kind != "sign" or second.text in ("(", "[", "-", "{"))
    ):
        if second.kind == "sign" and second.text == "(" and second.start == first.end and first.folded != "return":
            return True
        r.take()
        start = first.start
        if r.peek().kind == "word" and r.peek(1).text == "=":
            r.take()
            r.take()
        edit = Edit(Span(start, r.peek().start), "")
        message = f"{first.text} begins a statement, but only an expression is allowed here"
        r.fault("EXPR014", message, first.span, "write only the value", edits=(edit,))
        return True
    if first.kind == "word" and second.kind == "sign" and second.text in ("=", ":=") and _assigns(r):
        r.take()
        r.take()
        edit = Edit(Span(first.start, r.peek().start), "")
        hint = "write only the value; to compare, use =="
        r.fault("EXPR014", "an expression cannot assign a name", Span(first.start, second.end), hint, edits=(edit,))
    elif first.kind == "word" and second.text in ("+=", "-=", "*=", "/="):
        r.fault("EXPR014", "an expression cannot change a value", second.span, "write only the new value")
        r.at = len(r.pieces) - 1
        return False
    return True


def _assigns(r: Cursor) -> bool:
    """Return whether ``name = ...`` is an assignment.

    It is a comparison if a single string follows, or if it is in a chain of ``and`` or ``or``.
    """
    rest = r.pieces[r.at + 2 : -1]
    if r.peek(1).text == ":=":
        return True
    if any(piece.text == "=" and piece.level == 0 for piece in rest):
        return False
    if any(piece.folded in ("and", "or") or piece.text in ("&&", "||", "?") for piece in rest if piece.level == 0):
        return any(piece.folded == "if" for piece in rest)
    return len(rest) != 1 or rest[0].kind in ("number", "word")


def behind(r: Cursor) -> bool:
    """Skip an invalid ``;`` or ``.`` after an expression. Return False if a ``;`` is followed by another expression."""
    piece = r.peek()
    if not r.sign(";", "."):
        return True
    if any(found.kind != "end" and found.text != ";" for found in r.pieces[r.at + 1 :]):
        if piece.text == ";":
            hint = "compute each expression in its own step"
            r.fault("EXPR014", "only one expression is allowed here", piece.span, hint)
            r.at = len(r.pieces) - 1
        return piece.text != ";"
    while r.peek().kind != "end":
        r.take()
    edit = Edit(Span(piece.start, r.last.end), "")
    r.fault("EXPR025", f"unexpected {piece.text} after the expression", piece.span, "remove it", edits=(edit,))
    return True
