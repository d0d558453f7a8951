"""Reads single values in the tolerant parser: literals, names, brackets, comprehensions, and the suffixes of a value."""

import re
from decimal import Decimal, InvalidOperation

from attrs import evolve

from ....diagnostic import Edit
from ....source import Span
from ....trees.expr import (
    Arithmetic,
    Call,
    DictDisplay,
    Expr,
    ListDisplay,
    Literal,
    Name,
    Slicing,
    Subscript,
    TupleDisplay,
)
from ...repairs import shortened
from ..builder import CONSTANTS, NO_NUMBERS, RESERVED, unescaped
from ..engine import Failure, read
from .cursor import Cursor, placed
from .foreign_calls import argument_list, call, clauses, method
from .foreign_conditionals import case_when, count_phrase, if_then, is_case, is_count_phrase
from .pieces import Piece

# Formatted strings: ``f"a {x} b"`` is ``"a " + str(x) + " b"``.

_PART = re.compile(r"\{\{|\}\}|\{([^{}:!]+)\}|[{}]")
_HINT = 'join with +, for example "stars: " + str(n)'


def formatted_string(r: Cursor, piece: Piece) -> Expr:
    """Return the expression that is equivalent to ``piece``, an f-string.

    The parts in the f-string's braces must be expressions without a format.
    """
    given = piece.text[: re.match(r"[A-Za-z]+", piece.text).end()]  # type: ignore[union-attr]
    message = f"a string cannot have the prefix {given}"
    quotes = 3 if piece.text[len(given) : len(given) + 3] in ('"""', "'''") else 1
    parts = _parts(piece.text[len(given) + quotes : -quotes])
    span = Span(piece.start, piece.start + len(given))
    if parts is None or given.lower() != "f":
        r.fault("EXPR015", message, span, _HINT)
        return r.hole(piece.start)
    if not parts or not isinstance(parts[0], Literal):
        parts = [Literal(""), *parts] if len(parts) != 1 else parts
    first, *rest = parts
    node: Expr = Arithmetic(first, tuple(("+", part) for part in rest), span=piece.span) if rest else first
    return r.rewrite("EXPR015", message, span, evolve(node, span=piece.span), _HINT)


def _parts(body: str) -> list[Expr] | None:
    """Return the parts of an f-string as literals and calls ``str(...)``; None if a part is not a valid expression."""
    found: list[Expr] = []
    text, done = "", 0
    for match in _PART.finditer(body):
        text += body[done : match.start()]
        done = match.end()
        if match[0] in ("{{", "}}"):
            text += match[0][0]
            continue
        inner = read(match[1].strip()) if match[1] else Failure(None)
        if isinstance(inner, Failure):
            return None
        if text:
            found.append(Literal(text))
            text = ""
        found.append(Call("str", (inner,)))
    text += body[done:]
    if text:
        found.append(Literal(text))
    values = [
        unescaped(part.value) if isinstance(part, Literal) and isinstance(part.value, str) else "" for part in found
    ]
    if any(value is None for value in values):
        return None
    written = [Literal(value) if isinstance(part, Literal) else part for part, value in zip(found, values, strict=True)]
    return written or [Literal("")]


_WORDS_BEFORE = frozenset(
    {"return", "import", "from", "def", "class", "let", "var", "const", "lambda", "await", "yield"}
)


_WORDS = RESERVED | _WORDS_BEFORE | {"case", "when", "unless", "then"}
"""Words that are not function names even if a bracket follows."""


def begins(piece: Piece) -> bool:
    """Return whether a value can begin with ``piece``."""
    return piece.kind in ("word", "number", "string") or (piece.kind == "sign" and piece.text in ("(", "[", "{"))


def operand(r: Cursor) -> Expr:
    """Read one value with its suffixes: indices, slices, fields and methods.

    Nested values are read by direct calls, which need few stack frames, because a text may contain a hundred nested values, and
    Python's stack is limited.
    """
    piece = r.peek()
    if r.sign("("):
        node = _parenthesis(r)
    elif r.sign("["):
        node = _list(r)
    elif r.sign("{"):
        node = _braces(r)
    elif piece.kind == "word" and piece.folded not in _WORDS and r.peek(1).text == "(" and r.peek(1).kind == "sign":
        node = call(r)
    else:
        node = _other(r, piece)
    while True:
        if r.sign("["):
            node = _indexed(r, node)
        elif r.sign(".", "?."):
            if r.peek().text == "?.":
                piece = r.peek()
                r.fault("EXPR007", "?. is written `.` in expressions", piece.span, edits=(Edit(piece.span, "."),))
            node = method(r, node)
        elif r.sign("(") and r.last.end == r.peek().start and not isinstance(node, Literal):
            opening = r.peek()
            argument_list(r)
            r.fault("EXPR031", "only functions can be called", opening.span)
            node = r.hole(node.span.start)
        else:
            return node


def _other(r: Cursor, piece: Piece) -> Expr:
    """Read a literal, a name, a conditional or ``*xs``; report a missing value."""
    if piece.kind == "number":
        return _number(r)
    if piece.kind == "string":
        r.take()
        if piece.value is None and piece.text[0].isalpha():
            return formatted_string(r, piece)
        return Literal(piece.value, span=piece.span) if piece.value is not None else r.hole(piece.start)
    if piece.kind == "word":
        return _word(r)
    if r.sign("*", "**"):
        return _starred(r)
    if piece.kind == "bad":
        r.take()
        return r.hole(piece.start)
    return r.missing("a value")


def _starred(r: Cursor) -> Expr:
    """Read ``*xs``; it becomes ``xs`` if it is the only argument of a function that takes a list."""
    star = r.take()
    behind = r.pieces[max(0, r.at - 3)]
    alone = star.text == "*" and behind.text in ("max", "min", "sum", "any", "all") and r.pieces[r.at - 2].text == "("
    edits = (Edit(star.span, ""),) if alone else ()
    hint = "pass the list itself" if alone else "pass the values one by one"
    r.fault("EXPR017", f"{star.text} is not allowed before a value", star.span, hint, edits=edits)
    value = r.operand()
    return value if alone else r.hole(star.start)


def _number(r: Cursor) -> Expr:
    piece = r.take()
    if piece.value is None:
        return r.hole(piece.start)
    if not r.sign("%"):
        return Literal(piece.value, span=piece.span)
    percent, behind = r.peek(), r.peek(1)
    of = behind.folded == "of"
    ends = behind.kind == "end" or (behind.kind == "sign" and behind.text not in ("(", "[", "{", "-", "!"))
    ends = ends or behind.folded in ("and", "or", "if", "else", "then", "for", "when", "end", "not", "in", "is")
    if not of and not ends:
        return Literal(piece.value, span=piece.span)
    r.take()
    try:
        text = format(
            (Decimal(r.text[piece.start : piece.end].replace("_", "").replace(",", "")) / 100).normalize(), "f"
        )
    except InvalidOperation:
        text = repr(piece.value / 100) if isinstance(piece.value, int | float) else ""
    span = Span(piece.start, percent.end)
    value = Literal(float(text) if "." in text else int(text), span=span)
    message = "% is the remainder of a division; write a percentage as a number"
    if not of:
        edits = (Edit(span, text),) if len(text) < 40 else ()
        r.fault("EXPR020", message, span, f"write {text}", edits=edits)
        return value
    r.take()
    whole = r.operand()
    node = Arithmetic(value, (("*", whole),), span=Span(piece.start, whole.span.end))
    return r.rewrite("EXPR020", message, span, node, f"write `{text} * whole`")


def _is_sort_key(r: Cursor) -> bool:
    """Return whether ``key=lambda x: x["field"]`` or ``key=lambda x: x[0]`` stands here, from the word ``lambda`` on."""
    before = [piece.text for piece in r.pieces[max(0, r.at - 2) : r.at]]
    name = r.peek(1)
    form = [r.peek(at).text for at in (2, 3, 4, 6)]
    return before == ["key", "="] and form == [":", name.text, "[", "]"] and r.peek(5).kind in ("string", "number")


def _sort_key(r: Cursor) -> Expr:
    """Read ``lambda x: x["field"]`` as ``"field"``."""
    start = r.take().start
    for _ in range(4):
        r.take()
    literal = r.operand()
    span = Span(start, r.take().end)
    return r.rewrite(
        "EXPR014",
        "expressions have no `lambda`",
        span,
        evolve(literal, span=span),
        'write the field or the position: `key="field"`',
    )


def _word(r: Cursor) -> Expr:
    piece, behind = r.peek(), r.peek(1)
    word = piece.folded
    if word == "if" and behind.text == "(" and _function_form(r):
        return call(r)
    if word in ("if", "unless"):
        return if_then(r)
    if word in ("case", "when") and is_case(r):
        return case_when(r)
    if is_count_phrase(r):
        return count_phrase(r)
    if word == "lambda" and _is_sort_key(r):
        return _sort_key(r)
    if word == "lambda":
        r.fault(
            "EXPR014",
            "expressions have no `lambda`",
            piece.span,
            "write a comprehension, for example `[f for x in xs]`",
        )
        r.take()
        r.skip(":")  # a comma between its names does not end it
        if r.accept(":"):
            r.skip(",")
        return r.hole(piece.start)
    if word in _WORDS_BEFORE and behind.kind in ("word", "number", "string"):
        r.take()
        r.fault("EXPR014", f"expressions have no {piece.text}", piece.span, "write only the value")
        r.operand()
        return r.hole(piece.start)
    if word in ("and", "or") and behind.text == "(" and _function_form(r):
        return call(r)
    if word in _RESERVED_HERE:
        return r.missing("a value")
    if piece.text in CONSTANTS:
        r.take()
        return Literal(CONSTANTS[piece.text], span=piece.span)
    if behind.text == "(" and behind.kind == "sign":
        return call(r)
    if behind.text == ":=":
        r.take()
        sign = r.take()
        edit = Edit(Span(piece.start, r.peek().start), "")
        r.fault("EXPR014", "an expression cannot assign a name", sign.span, "write only the value", edits=(edit,))
        return r.operand()
    return _name(r)


_RESERVED_HERE = frozenset({"and", "or", "in", "is", "else", "for"})


def _function_form(r: Cursor) -> bool:
    """Return whether the parentheses after the word are those of a function call: they contain a comma, and no ``then`` follows them."""
    opening = r.at + 1
    closer = r.closers.get(opening, len(r.pieces) - 1)
    behind = r.pieces[min(closer + 1, len(r.pieces) - 1)]
    level = r.pieces[opening].level + 1
    commas = any(piece.text == "," and piece.level == level for piece in r.pieces[opening:closer])
    return commas and behind.folded != "then" and behind.text not in (":", "{")


def _name(r: Cursor) -> Expr:
    piece = r.take()
    word = piece.folded
    node: Expr = Name(piece.text, span=piece.span)
    if word in ("true", "false"):
        r.swap("EXPR026", f"{piece.text} is written `{word}` in expressions", piece, word)
        return Literal(word == "true", span=piece.span)
    if piece.text == "none":
        r.fault("EXPR026", "none is not a valid name", piece.span, 'write null, or "none" for the text')
        return r.hole(piece.start)
    if word in ("null", "none", "nil", "undefined"):
        r.swap("EXPR026", f"{piece.text} is written `null` in expressions", piece, "null")
        return Literal(None, span=piece.span)
    if word in NO_NUMBERS:
        r.fault("EXPR027", f"expressions have no {piece.text}", piece.span, "all numbers in expressions are finite")
        return r.hole(piece.start)
    if piece.text.startswith("__"):
        r.fault("EXPR018", f"a name cannot begin with two underscores: {shortened(piece.text)}", piece.span)
        return r.hole(piece.start)
    if not piece.text.isascii():
        return r.hole(piece.start)
    return node


def _parenthesis(r: Cursor) -> Expr:
    opening = r.enter()
    if r.sign(")"):
        return TupleDisplay((), span=Span(opening.start, r.close(opening).end))
    first = r.test()
    if r.word("for"):
        found = clauses(r, "list", first, opening)
        if found is None:
            return r.hole(opening.start)
        message = "a comprehension in ( ) is only allowed as a function's argument"
        closing = r.last
        edits = (Edit(opening.span, "["), Edit(closing.span, "]")) if closing.text == ")" else ()
        r.fault("EXPR029", message, opening.span, "write it in [ ]", edits=edits)
        return found
    if not r.sign(","):
        closing = r.close(opening)
        return placed(first, opening.start, closing.end)
    items = [first, *_rest(r, ")")]
    return TupleDisplay(tuple(items), span=Span(opening.start, r.close(opening).end))


def _rest(r: Cursor, closer: str) -> list[Expr]:
    """Read ``, b, c,`` up to the closing bracket."""
    items: list[Expr] = []
    while r.accept(","):
        if r.sign(closer):
            break
        items.append(r.test())
    return items


def _list(r: Cursor) -> Expr:
    opening = r.enter()
    if r.sign("]"):
        return ListDisplay((), span=Span(opening.start, r.close(opening).end))
    first = r.test()
    if r.word("for"):
        found = clauses(r, "list", first, opening)
        return r.hole(opening.start) if found is None else found
    items = [first, *_rest(r, "]")]
    return ListDisplay(tuple(items), span=Span(opening.start, r.close(opening).end))


def _braces(r: Cursor) -> Expr:
    """Read an object. A set ``{a, b}`` is reported, because sets are written ``set([a, b])``."""
    opening = r.enter()
    if r.sign("}"):
        return DictDisplay((), span=Span(opening.start, r.close(opening).end))
    if r.sign("**", "*"):
        star = r.take()
        r.fault("EXPR017", f"{star.text} is not allowed before a value", star.span, "write the entries one by one")
        r.test()
        r.close(opening)
        return r.hole(opening.start)
    first = r.test()
    if not r.sign(":"):
        return _set(r, opening, first)
    r.take()
    entries = [(first, r.test())]
    if r.word("for"):
        r.fault("EXPR028", "a comprehension cannot build an object", r.peek().span, "write a list")
        clauses(r, "list", first, opening)
        return r.hole(opening.start)
    while r.accept(","):
        if r.sign("}"):
            break
        key = r.test()
        if not r.accept(":"):
            entries.append((key, r.missing("`:` with the value")))
            break
        entries.append((key, r.test()))
    return DictDisplay(tuple(entries), span=Span(opening.start, r.close(opening).end))


def _set(r: Cursor, opening: Piece, first: Expr) -> Expr:
    inner: Expr | None
    if r.word("for"):
        inner = clauses(r, "generator", first, opening)
    else:
        items = [first, *_rest(r, "}")]
        inner = ListDisplay(tuple(items), span=Span(opening.start, r.close(opening).end))
    if inner is None:
        return r.hole(opening.start)
    node = Call("set", (inner,), span=Span(opening.start, r.last.end))
    return r.rewrite("EXPR028", "a set cannot be written in braces", opening.span, node, "write `set([a, b])`")


def _indexed(r: Cursor, value: Expr) -> Expr:
    """Read ``[index]`` or ``[start:stop:step]`` after a value."""
    opening = r.enter()
    start = value.span.start
    if r.sign("]"):
        r.missing("an index")
        r.close(opening)
        return r.hole(start)
    parts: list[Expr | None] = [None]
    while True:
        if not r.sign(":", "]") and r.peek().kind != "end":
            parts[-1] = r.test()
        if len(parts) == 3 or not r.accept(":"):
            break
        parts.append(None)
    if r.sign(","):
        r.fault("EXPR001", "an index must be one value", r.peek().span, "write `xs[0][1]`")
        _rest(r, "]")
        r.close(opening)
        return r.hole(start)
    span = Span(start, r.close(opening).end)
    if len(parts) > 1:
        return Slicing(value, *parts, span=span)
    return Subscript(value, parts[0] if parts[0] is not None else r.hole(), span=span)
