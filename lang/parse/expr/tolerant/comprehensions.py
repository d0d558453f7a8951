"""``for x in xs if c`` behind a value, as the tolerant reading takes it."""

from ....expr import Clause, Comprehension, Expr, Name
from ....source import Span
from ...fault import shown
from ..builder import MOST_CLAUSES
from ..words import RESERVED
from .cursor import Cursor
from .pieces import Piece

__all__ = ["clauses"]


def clauses(r: Cursor, kind: str, element: Expr, opening: Piece | None) -> Comprehension | None:
    """Read ``for x in xs if c`` and further ones behind ``element``, and the bracket that closes ``opening``.

    None where it is no comprehension that the language has.
    """
    found: list[Clause] = []
    good = True
    while word := r.accept("for"):
        if word.text != "for":
            r.swap("EXPR007", f"{word.text} is written in small letters here", word, "for")
        if len(found) == MOST_CLAUSES:
            r.fault("EXPR029", f"a comprehension has at most {MOST_CLAUSES} fors", word.span, "split it in two steps")
            good = False
        if r.peek().kind != "word" or r.word("in"):
            r.missing("a name")
            good = False
            if not r.word("in"):  # what would stand behind it is missing for the same reason
                r.skip(",")
                break
        name = r.peek() if r.word("in") else r.take()
        if r.sign(","):
            r.fault("EXPR029", "a for has one name", r.peek().span, "write for x in xs, and x[0], x[1]")
            good = False
            while r.accept(","):
                r.take()
        elif not isinstance(node := _checked(r, name), Name):
            good = good and node is None
        into = r.accept("in")
        if not into:
            r.missing("in")
            good = False
        elif into.text != "in":
            r.swap("EXPR007", f"{into.text} is written in small letters here", into, "in")
        iterable = r.chain(_STOPS)
        conditions: list[Expr] = []
        while condition := r.accept("if", "where", "when", "with"):
            if condition.text != "if":
                r.swap("EXPR007", f"{condition.text} is written if here", condition, "if")
            conditions.append(r.chain(_STOPS))
        end = conditions[-1].span.end if conditions else iterable.span.end
        found.append(Clause(name.text, iterable, tuple(conditions), span=Span(word.start, end)))
    if r.word("else") or not found:
        r.unexpected()
        good = False
    end = r.close(opening).end if opening else r.last.end
    start = opening.start if opening else element.span.start
    if not good:
        return None
    return Comprehension(kind, element, tuple(found), span=Span(start, end))  # type: ignore[arg-type]


_STOPS = frozenset({"if", "for", "where", "when", "with", "else"})


def _checked(r: Cursor, piece: Piece) -> Expr | None:
    """Report a loop's name that is none; the name else."""
    if piece.folded in RESERVED or piece.text.startswith("__"):
        r.fault("EXPR018", f"{shown(piece.text)} is no name", piece.span, "choose another")
        return r.hole(piece.start)
    return Name(piece.text, span=piece.span)
