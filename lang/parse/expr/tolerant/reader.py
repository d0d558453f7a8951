"""The tolerant reading: any text to a tree, with a fault for each thing that expressions don't have.

It reads what the grammar has, and beside it what people and models write instead (``signs``, ``conditionals``, ``phrases``,
``calls``). It never looks far ahead and never goes back, so its cost is proportional to the text.
"""

from ....diagnostic import Edit
from ....expr import Conditional, Expr, ListDisplay, Not
from ....source import Span
from ...fault import shown
from ..chains import Sign, climb
from ..engine import MAX_DEPTH
from .around import before, behind
from .conditionals import piecewise, ternary
from .cursor import Cursor, TooDeep
from .operands import begins, operand
from .signs import BOOLEAN, between

__all__ = ["Reader"]

_STOPS = frozenset(
    {"if", "then", "else", "elif", "elseif", "elsif", "elsf", "otherwise", "when", "where", "for", "end", "endif", "do",
     "unless", "with"}
)  # fmt: skip


class Reader(Cursor):
    """Reads the text as one expression: ``whole``."""

    _joined = False
    _tests = _operands = 0

    def whole(self) -> Expr:
        """Read everything, and report what is left over."""
        if not before(self):
            return self.hole(0)
        found = self.test()
        if self.sign(","):
            found = self._bare_tuple(found)
        if not behind(self):
            return self.hole(0)
        left_over = False
        while self.peek().kind != "end":
            piece = self.peek()
            if piece.kind == "sign" and piece.text in (")", "]", "}"):
                self._closers_of_nothing()
                found, left_over = self.hole(found.span.start) if self.peek().kind != "end" else found, True
                continue
            if not left_over:
                self.unexpected()
                found = self.hole(found.span.start)
            left_over = True
            if begins(self.peek()) or self.peek().folded in ("not", "if", "case"):
                begun = self.at
                self.test()
                if self.at == begun:
                    self.take()
            else:
                self.take()
        return found

    def _closers_of_nothing(self) -> None:
        """Take the brackets that close nothing here; what stands behind them is read once they are gone."""
        closers = [self.take()]
        while self.sign(")", "]", "}"):
            closers.append(self.take())
        text = "".join(piece.text for piece in closers)
        edits = tuple(Edit(piece.span, "") for piece in closers)
        span = Span(closers[0].start, closers[-1].end)
        if len(closers) == 1:
            self.fault("EXPR005", f"{text} closes nothing", span, "remove it", edits=edits)
        else:
            self.fault("EXPR005", f"{text} close nothing", span, "remove them", edits=edits)

    def _bare_tuple(self, first: Expr) -> Expr:
        comma = self.peek()
        if self.peek(1).kind == "end":
            self.take()
            self.fault("EXPR001", "a comma stands at the end", comma.span, "remove it", edits=(Edit(comma.span, ""),))
            return first
        items = [first]
        while self.accept(","):
            if self.peek().kind == "end":
                break
            items.append(self.test())
        span = Span(first.span.start, items[-1].span.end)
        node = ListDisplay(tuple(items), span=span)
        return self.anew("EXPR032", "several values stand in brackets", comma.span, node, "write [a, b]")

    def test(self) -> Expr:
        """Read a value, conditionals too."""
        self._tests += 1
        if self._tests > MAX_DEPTH + 1:
            raise TooDeep(self.peek().span)
        value = self.chain()
        node = ternary(self, value) if self.sign("?") else self._choice(value)
        self._tests -= 1
        return node

    def _choice(self, value: Expr) -> Expr:
        """Read ``if c else y`` behind a value, as often as it stands there."""
        branches: list[tuple[Expr, Expr]] = []
        start = value.span.start
        while self.word("if", "when"):
            word = self.take()
            if word.text != "if":
                self.swap("EXPR008", f"{word.text} is written if here", word, "if")
            condition = self.chain()
            branches.append((condition, value))
            if otherwise := self.accept("else", "otherwise"):
                if otherwise.text != "else":
                    self.swap("EXPR008", f"{otherwise.text} is written else here", otherwise, "else")
                value = self.chain()
                continue
            return piecewise(self, branches, word)
        if not branches:
            return value
        return Conditional(tuple(branches), value, span=Span(start, value.span.end))

    def chain(self, stop: frozenset[str] = frozenset()) -> Expr:
        """Read operands and signs up to a word of ``stop``, or to what ends a chain."""
        self.depth += 1
        if self.depth > MAX_DEPTH + 1:
            raise TooDeep(self.peek().span)
        items: list[Expr | Sign] = []
        while True:
            self._prefixes(items)
            negated = self.word("not") or self.sign("!", "~")
            items.append(self._negated(items) if negated else operand(self))
            if not self._between(items, stop):
                break
        self.depth -= 1
        return climb(items)

    def _between(self, items: list[Expr | Sign], stop: frozenset[str]) -> bool:
        """Take what stands between two values; false at the end of the chain."""
        while between(self, items, stop):
            if isinstance(items[-1], Sign) and items[-1].type != "NULL_TEST":
                return True
        piece = self.peek()
        if piece.folded in stop or piece.text in stop or piece.folded in _STOPS or not begins(piece) or not items:
            return False
        left = self.last
        if piece.kind == "string" and left.kind == "string":
            edit = Edit(Span(left.end, left.end), " +")
            self.fault("EXPR033", "two strings stand side by side", piece.span, "write + between them", edits=(edit,))
            items.append(Sign("OPERATOR", "+", piece.start, piece.start))
            return True
        if left.kind == "number" and left.end == piece.start and (piece.text == "(" or piece.folded not in ("", "not")):
            edit = Edit(Span(piece.start, piece.start), " * ")
            message = f"{left.text} and {piece.text} touch"
            self.fault("EXPR022", message, Span(left.start, piece.end), "write * to multiply", edits=(edit,))
            items.append(Sign("OPERATOR", "*", piece.start, piece.start))
            return True
        if not self._joined:
            message = f"a sign is missing between {shown(left.text)} and {shown(piece.text)}"
            hint = ""
            if left.kind == "word" == piece.kind and left.start == 0:
                message = f"{shown(left.text)} and {shown(piece.text)} stand side by side, and an expression has a sign between"
                hint = f'a text stands in quotes, as "{shown(left.text)} {shown(piece.text)}"'
            if left.kind != "bad":  # what is wrong with that has been said
                self.fault("EXPR003", message, piece.span, hint)
        self._joined = True
        items += [
            Sign("BOOL", "and", piece.start, piece.start),
            self.hole(),
            Sign("BOOL", "and", piece.start, piece.start),
        ]
        return True

    def _prefixes(self, items: list[Expr | Sign]) -> None:
        """Take ``not``, ``-`` and what stands for them, where they may stand."""
        while True:
            piece = self.peek()
            if self.word("not") and self._may_negate(items):
                if piece.text != "not":
                    self.swap("EXPR007", f"{piece.text} is written in small letters here", piece, "not")
                self.take()
                items.append(Sign("NOT", "not", piece.start, piece.end))
            elif self.sign("-"):
                self.take()
                items.append(Sign("MINUS", "-", piece.start, piece.end))
            elif self.sign("+"):
                self.take()
                edit = Edit(piece.span, "")
                self.fault("EXPR007", "a number has no + before it", piece.span, "remove it", edits=(edit,))
            else:
                return

    @staticmethod
    def _may_negate(items: list[Expr | Sign]) -> bool:
        return not items or (isinstance(items[-1], Sign) and items[-1].type in ("BOOL", "NOT"))

    def _negated(self, items: list[Expr | Sign]) -> Expr:
        """Read a value behind a ``not`` or ``!`` that stands where none may."""
        negations = []
        while self.word("not") or self.sign("!", "~"):
            negations.append(self.take())
        value = operand(self)
        first = negations[0]
        node: Expr = value
        for piece in reversed(negations):
            node = Not(node, span=Span(piece.start, value.span.end))
        plain = self._may_negate(items) and (
            self.word(*BOOLEAN) or self.sign("&&", "||", "&", "|") or not self._goes_on()
        )
        if plain:
            edits = tuple(Edit(piece.span, "not ") for piece in negations if piece.kind == "sign")
            self.fault("EXPR007", f"{first.text} is written `not` here", first.span, "write not", edits=edits)
            return node
        message = f"{first.text} can't stand here without parentheses"
        return self.anew("EXPR023", message, first.span, node, "write (not x)")

    def _goes_on(self) -> bool:
        piece = self.peek()
        if piece.kind == "word":
            return piece.folded not in _STOPS
        return piece.kind == "sign" and piece.text not in (")", "]", "}", ",", ":", ";", "?")

    def operand(self) -> Expr:
        """Read one value with what stands behind it."""
        self._operands += 1
        if self._operands > MAX_DEPTH:
            raise TooDeep(self.peek().span)
        node = operand(self)
        self._operands -= 1
        return node
