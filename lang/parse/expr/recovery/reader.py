"""The tolerant parser: reads any text as a tree, and reports a fault for each invalid construct.

The parser accepts valid expressions, and also mistakes that people and models often make (``foreign_conditionals``, ``foreign_calls``, and
the operators below). The parser looks only a few pieces ahead and never goes back. Therefore its time is proportional to the length of the
text.
"""

from collections.abc import Mapping

from ....diagnostic import Edit
from ....source import Span
from ....trees.expr import Comparison, Conditional, Expr, ListDisplay, Literal, Not
from ...repairs import shortened
from ..builder import CONSTANTS, Sign, climb
from ..engine import MAX_DEPTH
from .cursor import Cursor, TooDeep, before, behind
from .foreign_conditionals import piecewise, ternary
from .operands import begins, operand
from .pieces import Piece

# Operators between two values: those of expressions and of other languages, and words for them.

BOOLEAN = frozenset({"and", "or"})

_TESTS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_OPERATORS = frozenset({"+", "*", "/", "//", "%", "**"})
_FOREIGN: Mapping[str, str] = {
    "=": "==", "===": "==", "!==": "!=", "<>": "!=", "=<": "<=", "=>": ">=", "^": "**", "&&": "and", "||": "or", "&": "and",
    "|": "or",
}  # fmt: skip
_FOREIGN_WORDS: Mapping[str, str] = {
    "mod": "%", "div": "//", "eq": "==", "equals": "==", "ne": "!=", "lt": "<", "le": "<=", "lte": "<=", "gt": ">",
    "ge": ">=", "gte": ">=",
}  # fmt: skip
_PHRASES: Mapping[tuple[str, ...], str] = {
    ("equal", "to"): "==", ("equal",): "==", ("greater", "than", "or", "equal", "to"): ">=", ("greater", "than"): ">",
    ("less", "than", "or", "equal", "to"): "<=", ("less", "than"): "<", ("at", "least"): ">=", ("at", "most"): "<=",
    ("not", "equal", "to"): "!=", ("more", "than"): ">", ("above",): ">", ("below",): "<", ("one", "of"): "in",
    ("in",): "in", ("not", "in"): "not in",
}  # fmt: skip
_NULLS = frozenset({"null", "none", "nil", "undefined"})


def between(r: Cursor, items: list[Expr | Sign], stop: frozenset[str]) -> bool:
    """Read the operator after the last value of ``items``, and append it.

    Return False if no operator follows. A test that no value follows, such as ``IS NULL``, is appended as one operator.
    """
    piece = r.peek()
    if piece.folded in stop or (piece.kind == "sign" and piece.text in stop):
        return False
    if piece.kind == "sign":
        return _signed(r, piece, items)
    word = piece.folded
    if word in BOOLEAN:
        if piece.text != word:
            r.swap("EXPR007", f"{piece.text} must be in lower case", piece, word)
        _append(r, items, "BOOL", word, 1)
        return True
    if word == "is":
        return _is(r, items)
    if word == "in" or (word == "not" and r.peek(1).folded in ("in", "between", "like", "contains")):
        return _member(r, items)
    if word == "between":
        _between(r, items, negated=False)
        return True
    if word in ("contains", "includes"):
        _contains(r, items)
        return True
    if word in ("like", "ilike", "matches", "rlike", "regexp"):
        r.fault("EXPR009", f"expressions have no `{piece.text}`", piece.span, 'write `"part" in text`')
        r.take()
        items += [Sign("TEST", "in", piece.start, piece.end)]
        return True
    if word in _FOREIGN_WORDS and not _ends(r.peek(1)):
        right = _FOREIGN_WORDS[word]
        r.swap("EXPR007", f"{piece.text} is written `{right}` in expressions", piece, right)
        _append(r, items, "TEST" if right in _TESTS else "OPERATOR", right, 1)
        return True
    return _phrase(r, items, 0)


def _ends(piece: Piece) -> bool:
    return piece.kind == "end" or (piece.kind == "sign" and piece.text not in ("(", "[", "-", "!"))


def _append(r: Cursor, items: list[Expr | Sign], kind: str, value: str, count: int) -> None:
    first = r.peek()
    for _ in range(count):
        r.take()
    items.append(Sign(kind, value, first.start, r.last.end))


def _signed(r: Cursor, piece: Piece, items: list[Expr | Sign]) -> bool:
    sign = piece.text
    right = _FOREIGN.get(sign, sign)
    kind = (
        "TEST"
        if right in _TESTS
        else "OPERATOR"
        if right in _OPERATORS
        else "MINUS"
        if right == "-"
        else "BOOL"
        if right in BOOLEAN
        else ""
    )
    if not kind:
        return False
    if right != sign:
        r.swap("EXPR007", f"{sign} is written `{right}` in expressions", piece, right)
    elif sign == "%" and isinstance(items[-1], Literal) and isinstance(items[-1].value, str):
        hint = 'join with +, for example "stars: " + str(n)'
        r.fault("EXPR016", "% cannot insert values into a string", piece.span, hint)
        items[-1] = r.hole(items[-1].span.start)
    _append(r, items, kind, right, 1)
    return True


def _is(r: Cursor, items: list[Expr | Sign]) -> bool:
    """Read ``is null``, ``IS NOT NULL``, ``is True``, ``is not 3``, ``is greater than``, ``is in``."""
    start = r.peek()
    negated = r.peek(1).folded == "not"
    behind = 2 if negated else 1
    value = r.peek(behind)
    if value.folded in _NULLS:
        if start.text != "is" or (negated and r.peek(1).text != "not") or value.text not in CONSTANTS:
            right = "is not null" if negated else "is null"
            span = Span(start.start, value.end)
            edit = Edit(span, right)
            message = f"a test for null is written `{right}`"
            r.fault("EXPR009", message, span, edits=(edit,))
        _append(r, items, "NULL_TEST", "is not" if negated else "is", behind + 1)
        return True
    if value.folded in ("between", "in", "like", "contains") or _phrase_at(r, behind):
        edit = Edit(Span(start.start, r.peek(1).start), "")
        r.fault("EXPR009", "`is` is only allowed before null", start.span, "remove it", edits=(edit,))
        r.take()
        return between(r, items, frozenset())
    right = "!=" if negated else "=="
    span = Span(start.start, r.peek(behind - 1).end)
    edit = Edit(span, right)
    r.fault("EXPR009", "`is` is only allowed before null", span, f"write {right}", edits=(edit,))
    _append(r, items, "TEST", right, behind)
    return True


def _member(r: Cursor, items: list[Expr | Sign]) -> bool:
    """Read ``in``, ``not in``, ``NOT IN``, ``not between``."""
    piece = r.peek()
    second = r.peek(1)
    if piece.folded == "in":
        if piece.text != "in":
            r.swap("EXPR007", f"{piece.text} must be in lower case", piece, "in")
        _append(r, items, "TEST", "in", 1)
    elif second.folded == "in":
        span = Span(piece.start, second.end)
        if (piece.text, second.text) != ("not", "in"):
            edit = Edit(span, "not in")
            r.fault(
                "EXPR007", f"{r.text[span.start : span.end]} is written `not in` in expressions", span, edits=(edit,)
            )
        _append(r, items, "TEST", "not in", 2)
    else:
        r.take()
        if second.folded == "between":
            _between(r, items, negated=True)
        elif second.folded == "contains":
            _contains(r, items, negated=True)
        else:
            return between(r, items, frozenset())
    return True


def _phrase_at(r: Cursor, ahead: int) -> tuple[tuple[str, ...], str] | None:
    for words, sign in sorted(_PHRASES.items(), key=lambda entry: -len(entry[0])):
        if all(r.peek(ahead + at).folded == word for at, word in enumerate(words)):
            return words, sign
    return None


def _phrase(r: Cursor, items: list[Expr | Sign], ahead: int) -> bool:
    """Read ``greater than``, ``at least`` and similar phrases."""
    found = _phrase_at(r, ahead)
    if not found:
        return False
    words, sign = found
    span = Span(r.peek().start, r.peek(len(words) - 1).end)
    edit = Edit(span, sign)
    given = " ".join(r.text[span.start : span.end].split())
    r.fault("EXPR007", f"{given} is written `{sign}` in expressions", span, f"write {sign}", edits=(edit,))
    _append(r, items, "TEST", sign, len(words))
    return True


def _left(r: Cursor, items: list[Expr | Sign]) -> Expr:
    """Remove the left value of a test from ``items`` and return it.

    The left value consists of all items after the last ``and``, ``or``, ``not`` or test.
    """
    begin = len(items)
    while begin and not (isinstance(items[begin - 1], Sign) and items[begin - 1].type in ("BOOL", "NOT", "TEST")):  # type: ignore[union-attr]
        begin -= 1
    taken = items[begin:]
    del items[begin:]
    return climb(taken) if taken else r.hole()


def _between(r: Cursor, items: list[Expr | Sign], *, negated: bool) -> None:
    """Read ``x between a and b`` after x."""
    value = _left(r, items)
    word = r.take()
    low = r.chain(BOOLEAN)
    high = r.chain(BOOLEAN) if r.accept("and", ",", "to") else r.missing("`and` with the upper bound")
    span = Span(value.span.start, high.span.end)
    inside: Expr = Comparison(low, (("<=", value), ("<=", high)), span=span)
    if negated:
        inside = Not(inside, span=span)
    items.append(r.rewrite("EXPR009", f"expressions have no `{word.text}`", word.span, inside, "write `a <= x <= b`"))


def _contains(r: Cursor, items: list[Expr | Sign], *, negated: bool = False) -> None:
    """Read ``x contains y`` after x."""
    value = _left(r, items)
    word = r.take()
    part = r.chain(BOOLEAN)
    span = Span(value.span.start, part.span.end)
    inside = Comparison(part, (("not in" if negated else "in", value),), span=span)
    items.append(r.rewrite("EXPR009", f"expressions have no `{word.text}`", word.span, inside, "write `part in whole`"))


_STOPS = frozenset(
    {"if", "then", "else", "elif", "elseif", "elsif", "elsf", "otherwise", "when", "where", "for", "end", "endif", "do",
     "unless", "with"}
)  # fmt: skip


class Reader(Cursor):
    """Reads text as one expression with ``read_expression``."""

    _joined = False
    _tests = _operands = 0

    def read_expression(self) -> Expr:
        """Read the complete text, and report text that follows the expression."""
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
        """Skip unmatched closing brackets; reading continues after them."""
        closers = [self.take()]
        while self.sign(")", "]", "}"):
            closers.append(self.take())
        text = "".join(piece.text for piece in closers)
        edits = tuple(Edit(piece.span, "") for piece in closers)
        span = Span(closers[0].start, closers[-1].end)
        hint = "remove it" if len(closers) == 1 else "remove them"
        self.fault("EXPR005", f"surplus {text}", span, hint, edits=edits)

    def _bare_tuple(self, first: Expr) -> Expr:
        comma = self.peek()
        if self.peek(1).kind == "end":
            self.take()
            self.fault("EXPR001", "surplus comma at the end", comma.span, "remove it", edits=(Edit(comma.span, ""),))
            return first
        items = [first]
        while self.accept(","):
            if self.peek().kind == "end":
                break
            items.append(self.test())
        span = Span(first.span.start, items[-1].span.end)
        node = ListDisplay(tuple(items), span=span)
        return self.rewrite("EXPR032", "several values must be in brackets", comma.span, node, "write `[a, b]`")

    def test(self) -> Expr:
        """Read a value, which may be a conditional."""
        self._tests += 1
        if self._tests > MAX_DEPTH + 1:
            raise TooDeep(self.peek().span)
        value = self.chain()
        node = ternary(self, value) if self.sign("?") else self._choice(value)
        self._tests -= 1
        return node

    def _choice(self, value: Expr) -> Expr:
        """Read each ``if c else y`` after a value."""
        branches: list[tuple[Expr, Expr]] = []
        start = value.span.start
        while self.word("if", "when"):
            word = self.take()
            if word.text != "if":
                self.swap("EXPR008", f"{word.text} is written `if` in expressions", word, "if")
            condition = self.chain()
            branches.append((condition, value))
            if otherwise := self.accept("else", "otherwise"):
                if otherwise.text != "else":
                    self.swap("EXPR008", f"{otherwise.text} is written `else` in expressions", otherwise, "else")
                value = self.chain()
                continue
            return piecewise(self, branches, word)
        if not branches:
            return value
        return Conditional(tuple(branches), value, span=Span(start, value.span.end))

    def chain(self, stop: frozenset[str] = frozenset()) -> Expr:
        """Read operands and operators, up to a piece in ``stop`` or the end of the chain."""
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
        """Read the operator between two values; return False at the end of the chain."""
        while between(self, items, stop):
            if isinstance(items[-1], Sign) and items[-1].type != "NULL_TEST":
                return True
        piece = self.peek()
        if piece.folded in stop or piece.text in stop or piece.folded in _STOPS or not begins(piece) or not items:
            return False
        left = self.last
        if piece.kind == "string" and left.kind == "string":
            edit = Edit(Span(left.end, left.end), " +")
            self.fault("EXPR033", "two adjacent strings", piece.span, "write + between them", edits=(edit,))
            items.append(Sign("OPERATOR", "+", piece.start, piece.start))
            return True
        if left.kind == "number" and left.end == piece.start and (piece.text == "(" or piece.folded not in ("", "not")):
            edit = Edit(Span(piece.start, piece.start), " * ")
            message = f"{left.text} and {piece.text} need an operator between them"
            self.fault("EXPR022", message, Span(left.start, piece.end), "write * to multiply", edits=(edit,))
            items.append(Sign("OPERATOR", "*", piece.start, piece.start))
            return True
        if not self._joined:
            message = f"an operator is missing between {shortened(left.text)} and {shortened(piece.text)}"
            hint = ""
            if left.kind == "word" == piece.kind and left.start == 0:
                message = f"{shortened(left.text)} and {shortened(piece.text)} need an operator between them"
                hint = f'put text in quotes: "{shortened(left.text)} {shortened(piece.text)}"'
            if left.kind != "bad":  # its fault is reported already
                self.fault("EXPR003", message, piece.span, hint)
        self._joined = True
        items += [
            Sign("BOOL", "and", piece.start, piece.start),
            self.hole(),
            Sign("BOOL", "and", piece.start, piece.start),
        ]
        return True

    def _prefixes(self, items: list[Expr | Sign]) -> None:
        """Read ``not`` and ``-`` before a value; report ``NOT`` and ``+``."""
        while True:
            piece = self.peek()
            if self.word("not") and self._may_negate(items):
                if piece.text != "not":
                    self.swap("EXPR007", f"{piece.text} must be in lower case", piece, "not")
                self.take()
                items.append(Sign("NOT", "not", piece.start, piece.end))
            elif self.sign("-"):
                self.take()
                items.append(Sign("MINUS", "-", piece.start, piece.end))
            elif self.sign("+"):
                self.take()
                edit = Edit(piece.span, "")
                self.fault("EXPR007", "a number cannot begin with +", piece.span, "remove it", edits=(edit,))
            else:
                return

    @staticmethod
    def _may_negate(items: list[Expr | Sign]) -> bool:
        return not items or (isinstance(items[-1], Sign) and items[-1].type in ("BOOL", "NOT"))

    def _negated(self, items: list[Expr | Sign]) -> Expr:
        """Read a value after a ``not`` or ``!`` in a place where neither is allowed."""
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
            self.fault("EXPR007", f"{first.text} is written `not` in expressions", first.span, "write not", edits=edits)
            return node
        message = f"{first.text} needs parentheses here"
        return self.rewrite("EXPR023", message, first.span, node, "write `(not x)`")

    def _goes_on(self) -> bool:
        piece = self.peek()
        if piece.kind == "word":
            return piece.folded not in _STOPS
        return piece.kind == "sign" and piece.text not in (")", "]", "}", ",", ":", ";", "?")

    def operand(self) -> Expr:
        """Read one value with its suffixes: indices, slices, fields and methods."""
        self._operands += 1
        if self._operands > MAX_DEPTH:
            raise TooDeep(self.peek().span)
        node = operand(self)
        self._operands -= 1
        return node
