"""An invalid statement, and methods that try fixes on it. Explainers and corrections offer only edits that were tried."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from ....catalogue.commands import COMMANDS, FORMS
from ....diagnostic import Edit, apply_edits
from ....source import Span
from ....trees.conditions import Condition, NullTest
from ...lookahead import Follower
from ...repairs import Fault, fault
from ..engine import Failure, Read, follow, read

Edits: TypeAlias = Sequence[Edit]

_PIECE = re.compile(
    r"""(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+')"""
    r"|(?P<variable>\$\{[^{}\n]{0,200}\})|(?P<number>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.]))"
    r"|(?P<word>[^\W\d]\w*+(?:\.\w++)*+|`(?:[^`\r\n]|``)++`)"
    r"|(?P<sign>===|!==|==|!=|<>|<=|>=|=>|=<|=~|:=|->|&&|\|\||[^\s])"
)

_TARGETS = ("NODES", "EDGES", "PATTERNS", "PATHS", "CYCLES")
_OPERATORS = frozenset({"EQUALS", "COMPARISON", "TEXTUAL"})
_COMPUTED = frozenset({"PATH", "LEN", "LPAR", "MINUS"})
_STRING = re.compile(r""""(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+'""")
_DATE = re.compile(r"(?<![\w.])\d{4}-\d{1,2}-\d{1,2}")
_NEVER_VALUES = frozenset({
    "AND", "AS", "BY", "ELSE", "FIELDS", "FROM", "IF", "IN", "IS", "LIMIT", "NOT", "ON", "OR", "ORDER", "THEN", "TO", "VIA", "WHERE",
    "WITH",
})  # fmt: skip
"""Words that the parser would read as fields where it expects a value."""
_MOST_PIECES = 40
"""Maximum number of pieces of a value that is searched for."""
_AROUND = 5_000
"""Number of characters that are examined on each side of a fault."""

VALUES = ("number", "string", "variable")
"""The kinds of pieces that are values."""


@frozen
class Piece:
    """A word, string, variable, number or symbol, found without the grammar. A piece outside the text has the kind "end"."""

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
        """Return the names, in the grammar, of the tokens that are allowed at ``at``.

        After a comparison operator, only the tokens of constants and variables are returned. A faulty word there is probably an unquoted
        string, and not the beginning of a field or a computed value.
        """
        before = follow(self.text[: self.at]) if self.failure.unbuildable is None else None
        found = frozenset(before.automaton.accepts(tuple(before.states))) if before else self.failure.expected()
        return found - _COMPUTED if self.failure.after in _OPERATORS else found

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
        """Return the piece at ``at``, or ``offset`` pieces further on. Outside the text, this is an empty piece."""
        index = self.here + offset
        if 0 <= index < len(self.pieces):
            return self.pieces[index]
        return Piece("end", "", Span(len(self.text), len(self.text)))

    def value_before(self, end: int) -> Span | None:
        """Return the span of the longest value that ends at ``end``, with its quantifier.

        Return None if the text before it can't be read. The grammar defines what a value is, such as ``2 * age``,
        ``lower(name)`` or ``LEN ${x}``.
        """
        pieces = [piece for piece in self.pieces if piece.span.end <= end][-_MOST_PIECES:]
        if not pieces:
            return None
        end = pieces[-1].span.end
        starts = [piece.span.start for piece in pieces if self._is_value(piece.span.start, end)]
        found = (start for start in starts if _may_begin_value(follow(self.text[:start])))
        return next((Span(start, end) for start in found), None)

    def value_after(self, start: int) -> Span | None:
        """Return the span of the longest value that begins at ``start``, or None. An unquoted date is not a value."""
        pieces = [piece for piece in self.pieces if piece.span.start >= start][:_MOST_PIECES]
        if not pieces:
            return None
        start = pieces[0].span.start
        ends = (piece.span.end for piece in reversed(pieces))
        return next((Span(start, end) for end in ends if self._is_value(start, end)), None)

    def _is_value(self, start: int, end: int) -> bool:
        return is_value(self.text[start:end])

    def before(self, offset: int) -> Piece:
        """Return the last piece that ends at or before ``offset``. If there is none, return an empty piece."""
        found = next((piece for piece in reversed(self.pieces) if piece.span.end <= offset), None)
        return found or Piece("end", "", Span(0, 0))

    def after(self, offset: int) -> Piece:
        """Return the first piece that begins at or after ``offset``. If there is none, return an empty piece."""
        found = next((piece for piece in self.pieces if piece.span.start >= offset), None)
        return found or Piece("end", "", Span(len(self.text), len(self.text)))

    def slice(self, span: Span) -> str:
        """Return the text at ``span``."""
        return self.text[span.start : span.end]

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
        """Return the edit that removes the piece at ``offset`` together with the spaces after it."""
        piece, following = self.piece(offset), self.piece(offset + 1)
        end = piece.span.end if following.kind == "end" else following.span.start
        return swap(piece.span.start, end, "")

    @property
    def form(self) -> str:
        """Return a hint with the form of the command; "" if the command is unknown. FIND has a different form for each target."""
        if self.command not in FORMS:
            return ""
        forms = FORMS[self.command].split(", or ")
        if self.command == "FIND":
            targets = [piece.upper for piece in self.pieces if piece.upper in _TARGETS]
            forms = [form for form in forms if targets and targets[0] in form.split()[1].upper().split("|")] or forms
        return f"the form is {', or '.join(forms)}"

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
        """Return whether ``at`` is in a condition on items. Items have fields; a condition on variables has none."""
        words = [piece.upper for piece in self.pieces[: self.here] if piece.upper in _CONDITIONAL]
        return not words or words[-1] in ("WHERE", "VIA")

    def _after(self, edits: Edits) -> tuple[Read | Failure, str]:
        mended = apply_edits(self.text, edits)
        return read(mended), mended

    def mended_by(self, edits: Edits) -> bool:
        """Return whether the statement is valid after ``edits``."""
        return isinstance(self._after(edits)[0], Read)

    def furthered_by(self, edits: Edits) -> bool:
        """Return whether ``edits`` make the statement valid, or at least move its first fault further on."""
        result, mended = self._after(edits)
        # Both offsets are counted from the end of the text, because the edits change lengths only before them.
        if isinstance(result, Read) or len(mended) - result.offset < len(self.text) - self.failure.offset:
            return True
        # The edits make the statement readable up to a fault that has its own edits.
        return self.failure.unbuildable is None and bool(result.unbuildable and result.unbuildable.edits)

    def best(self, *candidates: Edits) -> tuple[Edit, ...]:
        """Return the first candidate that makes the statement valid.

        If there is none, return the first candidate that moves the fault further on, or else ().
        """
        for helps in (self.mended_by, self.furthered_by):
            for edits in candidates:
                if edits and helps(edits):
                    return tuple(edits)
        return ()

    def readings(self, *candidates: Edits) -> int:
        """Return how many different valid statements the candidates produce. Counting stops at two."""
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
        """Return the fault if one of ``candidates`` helps. Otherwise the statement has a different fault, so return None."""
        found = self.fault(code, message, span, hint, *candidates)
        return found if found.diagnostic.edits else None

    def ambiguity(self, code: str, message: str, span: Span, *hints: str, supposed: Sequence[Edits] = ()) -> Fault:
        """Return a fault that offers no edit. Parsing continues as if the best of the edits ``supposed`` had been applied."""
        found = fault(code, message, span.start, max(span.end, span.start + 1), *hints)
        return evolve(found, supposed=self.best(*supposed))


def is_value(text: str) -> bool:
    """Return whether ``text`` is a single value, or a quantified field. An unquoted date such as 2024-03-05 is not a value."""
    words = re.findall(r"\w+", text) or [""]
    if _DATE.search(_STRING.sub("''", text)) or not _NEVER_VALUES.isdisjoint((words[0].upper(), words[-1].upper())):
        return False
    found = read(f"{text} IS NULL", what="condition_only")
    return isinstance(found, Read) and isinstance(found.result, NullTest) and not found.result.negated


def is_readable(text: str) -> bool:
    """Return whether ``text`` is a valid statement."""
    return isinstance(read(text), Read)


def condition_of(text: str) -> Condition | None:
    """Return the condition that is written in ``text``, or None."""
    found = read(text, what="condition_only")
    return found.result if isinstance(found, Read) else None


def _may_begin_value(before: Follower | None) -> bool:
    return before is not None and "LEN" in before.automaton.accepts(tuple(before.states))


_CONDITIONAL = ("WHERE", "VIA", "IF", "ASSERT", "WHEN")

Explainer: TypeAlias = Callable[[InvalidStatement], Fault | None]


@frozen
class Correction:
    """An ``Explainer`` that recognises a fault by the pieces around the place where parsing stopped. Its edit may replace some of them.

    ``where`` describes these pieces in order. ``|`` is before the piece where parsing stopped. ``A/B`` matches a piece whose text in
    capitals is A or B. ``word``, ``string``, ``variable``, ``number`` and ``sign`` match a piece of that kind. ``value`` matches a string,
    a variable or a number, and ``any`` matches any piece. In ``message``, ``hint`` and ``rewrite``, ``{0}`` is the text of the first
    piece, and ``{0.upper}`` is the same text in capitals.
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
    """Indices of the first and the last piece that the diagnostic marks (default: the piece where parsing stopped)."""
    allowed: str = ""
    """Names of the tokens that the grammar must allow where parsing stopped, separated by spaces."""
    after: tuple[str, ...] = ()
    """The kinds that the token before the place where parsing stopped may have (default: any kind)."""
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
