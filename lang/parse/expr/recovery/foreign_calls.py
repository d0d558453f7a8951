"""Reads calls and methods in the tolerant parser, and replaces functions of other languages by equivalent expressions."""

import math
import re

from attrs import evolve, frozen

from ....catalogue.operations import FUNCTIONS, METHODS
from ....diagnostic import Edit
from ....source import Span
from ....trees.expr import (
    BoolChain,
    Call,
    Clause,
    Comparison,
    Comprehension,
    Expr,
    Field,
    Literal,
    MethodCall,
    Name,
    Power,
    Subscript,
)
from ...repairs import shortened
from ..builder import (
    CHANGING,
    LIBRARIES,
    MEASURING,
    MOST_CLAUSES,
    NAMESPACES,
    REBUILT,
    RENAMED_FUNCTIONS,
    RENAMED_METHODS,
    RESERVED,
    foreign_function,
)
from .cursor import Cursor
from .foreign_conditionals import conditional, where_in_call
from .pieces import Piece

# ``for x in xs if c`` after a value, as the tolerant parser reads it.


def clauses(r: Cursor, kind: str, element: Expr, opening: Piece | None) -> Comprehension | None:
    """Read the clauses after ``element``, such as ``for x in xs if c``, and the bracket that closes ``opening``.

    Return None if the comprehension is not valid.
    """
    found: list[Clause] = []
    good = True
    while word := r.accept("for"):
        if word.text != "for":
            r.swap("EXPR007", f"{word.text} must be in lower case", word, "for")
        if len(found) == MOST_CLAUSES:
            r.fault(
                "EXPR029",
                f"a comprehension can have at most {MOST_CLAUSES} `for` clauses",
                word.span,
                "split it into two steps",
            )
            good = False
        bracket = r.accept("(")
        if r.peek().kind != "word" or r.word("in"):
            r.missing("a name")
            good = False
            if not r.word("in"):  # the other parts of the clause are missing too
                r.skip(",")
                break
        names = [r.peek() if r.word("in") else r.take()]
        while r.accept(","):
            if r.sign("("):
                r.fault(
                    "EXPR029", "`for` unpacks only one level", r.peek().span,
                    "write `for a, b in xs`, and use b[0] and b[1]",
                )  # fmt: skip
                good = False
                r.take()
                r.skip(")")
                r.accept(")")
                break
            if r.peek().kind != "word" or r.word("in"):
                r.missing("a name")
                good = False
                break
            names.append(r.take())
        if bracket and (closing := r.accept(")")):
            edits = (Edit(bracket.span, ""), Edit(closing.span, ""))
            r.fault(
                "EXPR029", "the names after `for` must not be in parentheses", bracket.span, "remove them", edits=edits
            )
        for name in names:
            if not isinstance(node := _loop_name(r, name), Name):
                good = good and node is None
        into = r.accept("in")
        if not into:
            r.missing("in")
            good = False
        elif into.text != "in":
            r.swap("EXPR007", f"{into.text} must be in lower case", into, "in")
        iterable = r.chain(_STOPS)
        conditions: list[Expr] = []
        while condition := r.accept("if", "where", "when", "with"):
            if condition.text != "if":
                r.swap("EXPR007", f"{condition.text} is written `if` in expressions", condition, "if")
            conditions.append(r.chain(_STOPS))
        end = conditions[-1].span.end if conditions else iterable.span.end
        found.append(
            Clause(tuple(name.text for name in names), iterable, tuple(conditions), span=Span(word.start, end))
        )
    if r.word("else") or not found:
        r.unexpected()
        good = False
    end = r.close(opening).end if opening else r.last.end
    start = opening.start if opening else element.span.start
    if not good:
        return None
    return Comprehension(kind, element, tuple(found), span=Span(start, end))  # type: ignore[arg-type]


_STOPS = frozenset({"if", "for", "where", "when", "with", "else"})


def _loop_name(r: Cursor, piece: Piece) -> Expr | None:
    """Return the variable of a ``for`` clause; report an invalid name."""
    if piece.folded in RESERVED or piece.text.startswith("__"):
        r.fault("EXPR018", f"{shortened(piece.text)} is not a valid name", piece.span, "choose another name")
        return r.hole(piece.start)
    return Name(piece.text, span=piece.span)


_CONDITIONAL = frozenset({"if", "iif", "where", "and", "or"})


@frozen
class Arguments:
    """The arguments in the parentheses of a call. ``good`` is true if all of them are valid.

    ``where`` is true if the only argument is a comprehension, and it was written as ``xs where c``.
    """

    positional: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...]
    names: tuple[Span, ...]
    end: int
    good: bool
    where: bool


def argument_list(r: Cursor, *, comparing: bool = False, counting: bool = False) -> Arguments:
    """Read ``(a, b, name=c)``. If ``comparing``, an ``=`` is a comparison, as in ``IF(x = 1, ...)``."""
    opening = r.enter()
    positional: list[Expr] = []
    keywords: dict[str, Expr] = {}
    names: list[Span] = []
    good = True
    while r.peek().kind != "end" and not r.sign(")"):
        if not comparing and r.peek().kind == "word" and r.peek(1).text == "=" and r.peek(1).kind == "sign":
            name = r.take()
            r.take()
            if name.text in keywords:
                r.fault("EXPR031", f"duplicate argument {name.text}", name.span)
                good = False
            if name.folded in RESERVED or name.text.startswith("__"):
                r.fault("EXPR018", f"{shortened(name.text)} is not a valid name", name.span)
                good = False
            names.append(Span(name.start, r.peek().start))
            keywords[name.text] = r.test()
        else:
            first = r.peek()
            good = _positional(r, positional, counting=counting) and good
            if keywords:
                message = "an argument without a name must come before the named arguments"
                r.fault("EXPR031", message, first.span, "move it before them")
                good = False
        if not r.accept(","):
            break
    where = len(positional) == 1 and bool(r.faults) and r.faults[-1].part == positional[0].span
    closing = r.close(opening)
    return Arguments(tuple(positional), tuple(keywords.items()), tuple(names), closing.end, good, where)


def _positional(r: Cursor, positional: list[Expr], *, counting: bool) -> bool:
    """Read one argument and append it to ``positional``. Return whether it is valid. The argument may be a comprehension."""
    inner = r.peek(1) if r.sign("(") else None
    if inner is not None and _generator_ahead(r):
        opening = r.enter()
        r.parentheses.add(opening.start)
        found = clauses(r, "generator", r.test(), opening)
        positional.append(found if found is not None else r.hole(opening.start))
        return found is not None
    start = r.peek().start
    value = r.test()
    if r.word("where"):
        positional.append(where_in_call(r, value, counting=counting))
        return True
    if not r.word("for"):
        positional.append(value)
        return True
    found = clauses(r, "generator", value, None)
    if found is None:
        positional.append(r.hole(start))
        return False
    if (r.sign(",") and r.peek(1).text != ")") or positional:
        edits = (Edit(Span(start, start), "("), Edit(Span(found.span.end, found.span.end), ")"))
        message = "a comprehension needs parentheses next to other arguments"
        r.fault("EXPR029", message, Span(start, found.span.end), edits=edits)
    elif r.sign(","):
        comma = r.take()
        r.fault("EXPR001", "surplus comma after the comprehension", comma.span, edits=(Edit(comma.span, ""),))
    positional.append(found)
    return True


def _generator_ahead(r: Cursor) -> bool:
    """Return whether the parentheses that open here enclose a complete argument, which contains a comprehension."""
    closer = r.closers.get(r.at)
    if closer is None or r.pieces[closer + 1].text not in (",", ")"):
        return False
    level = r.peek().level + 1
    return any(piece.level == level and piece.folded == "for" for piece in r.pieces[r.at + 1 : closer])


def call(r: Cursor) -> Expr:
    """Read ``name(...)``, which may be a function of another language."""
    name = r.take()
    comparing = name.folded in _CONDITIONAL
    arguments = argument_list(r, comparing=comparing, counting=name.folded in ("count", "countif"))
    return _call_of(r, name, name.start, arguments)


def _call_of(r: Cursor, name: Piece, start: int, arguments: Arguments) -> Expr:
    """Return the call of ``name`` at ``start``, or the expression that replaces it."""
    span = Span(start, arguments.end)
    if name.text.startswith("__"):
        r.fault("EXPR018", f"a name cannot begin with two underscores: {shortened(name.text)}", name.span)
        return r.hole(start)
    if not arguments.good:
        return r.hole(start)
    prefixed = start != name.start
    folded = name.folded
    if folded in ("count", "countif") and arguments.where:
        counted = Call("sum", arguments.positional, span=span)
        return r.rewrite("EXPR010", f"expressions have no function {name.text}", name.span, counted)
    whole = Span(start, name.end)
    given = r.text[start : name.end]
    message = f"expressions have no function {shortened(given)}"
    if folded in REBUILT or folded in ("and", "or"):
        node = _replacement(folded, arguments, span)
        if node is None:
            r.fault("EXPR011", message, whole, _REBUILT_HINTS[folded])
            return r.hole(start)
        return r.rewrite("EXPR011", message, whole, node, _REBUILT_HINTS[folded])
    if prefixed and folded in _LIBRARY_HINTS:
        r.fault("EXPR011", message, whole, _LIBRARY_HINTS[folded])
        return r.hole(start)
    right = name.text
    if prefixed or foreign_function(name.text):
        right = folded if folded in FUNCTIONS else RENAMED_FUNCTIONS.get(folded, "")
        if not right:
            r.fault("EXPR011", message, whole)
            return r.hole(start)
        edit = Edit(whole, right)
        r.fault(
            "EXPR011", f"{shortened(given)} is written `{right}` in expressions", whole, f"write {right}", edits=(edit,)
        )
    elif folded in RESERVED:
        r.fault("EXPR018", f"{name.text} is not a function", name.span)
        return r.hole(start)
    return Call(right, arguments.positional, arguments.keywords, span=span)


_STDEV, _VARIANCE = "stdev(xs) is the sample standard deviation", "variance(xs) is the sample variance"
_MEAN, _CHOICE = "write `sum(xs) / len(xs)`", "write `x if condition else y`"
_PERCENTILE, _OR_ELSE, _IS_NULL = "write `percentile(xs, 0.95)`", "write `coalesce(a, b)`", "write `a is null`"

_LIBRARY_HINTS = {
    "percentile": "p must be from 0 to 1: write `percentile(xs, 0.95)` for the 95th percentile",
    "quantile": _PERCENTILE, "quantiles": _PERCENTILE, "std": f"numpy's std is for a population; {_STDEV}", "pstdev": _STDEV,
    "var": f"numpy's var is for a population; {_VARIANCE}", "pvariance": _VARIANCE, "mean": _MEAN, "fmean": _MEAN,
    "average": _MEAN, "multimode": "write `mode(xs)`",
}  # fmt: skip
"""Maps each library function that has another meaning or form in expressions to a hint."""

_REBUILT_HINTS = {
    "pow": "write `a ** b`", "power": "write `a ** b`", "if": _CHOICE, "iif": _CHOICE, "where": _CHOICE,
    "ifnull": _OR_ELSE, "nvl": _OR_ELSE, "isnull": _IS_NULL, "isnone": _IS_NULL, "is_null": _IS_NULL,
    "and": "write `a and b`", "or": "write `a or b`",
}  # fmt: skip


def _replacement(name: str, arguments: Arguments, span: Span) -> Expr | None:
    """Return the replacement of ``name(...)``; None if the arguments do not fit."""
    given = arguments.positional
    if arguments.keywords or not given or any(_is_generator(argument) for argument in given):
        return None
    if name in ("pow", "power"):
        return Power(*given, span=span) if len(given) == 2 else None
    if name in ("and", "or"):
        return BoolChain(name, given, span=span) if len(given) > 1 else None  # type: ignore[arg-type]
    if name in ("if", "iif", "where"):
        if len(given) not in (2, 3) or (len(given) == 2 and name == "where"):
            return None
        otherwise = given[2] if len(given) == 3 else Literal(None, span=Span(span.end, span.end))
        return conditional([(given[0], given[1])], otherwise, span.start, span.end)
    if name in ("isnull", "isnone", "is_null") and len(given) == 1:
        return Comparison(given[0], (("is", Literal(None)),), span=span)
    if len(given) < 2 or name in ("isnone", "is_null"):
        return None
    return Call("coalesce", given, span=span)


def _is_generator(node: Expr) -> bool:
    return isinstance(node, Comprehension) and node.kind == "generator"


def method(r: Cursor, value: Expr) -> Expr:
    """Read ``.name`` or ``.name(...)`` after ``value``. The cursor is at the dot."""
    dot = r.take()
    start = value.span.start
    if r.peek().kind != "word":
        r.missing("a name")
        return r.hole(start)
    name = r.take()
    called = (r.sign("(") and r.peek().start == name.end) or (r.sign("(") and name.text in METHODS)
    library = isinstance(value, Name) and value.name in LIBRARIES and value.span.end - start == len(value.name)
    if name.text.startswith("__"):
        if called:
            argument_list(r)
        r.fault("EXPR018", f"a name cannot begin with two underscores: {shortened(name.text)}", name.span)
        return r.hole(start)
    if library:
        return _of_library(r, name, start, called=called)
    if not called:
        return _attribute(r, value, dot, name)
    arguments = argument_list(r)
    span = Span(start, arguments.end)
    if name.text in CHANGING:
        hint = "an expression cannot change values; to append to a list, write `xs + [x]`"
        r.fault("EXPR013", f"{name.text} would change a value", name.span, hint)
        return r.hole(start)
    if not arguments.good:
        return r.hole(start)
    arguments = evolve(arguments, positional=tuple(_as_list(r, argument) for argument in arguments.positional))
    if name.text in MEASURING:
        return _length_or_membership(r, value, name, arguments, span)
    given = arguments.positional
    if arguments.keywords:
        r.fault("EXPR031", "arguments of a method cannot have names", arguments.names[0], "remove the names",
                edits=tuple(Edit(found, "") for found in arguments.names))  # fmt: skip
        given += tuple(found for _, found in arguments.keywords)
    right = RENAMED_METHODS.get(name.text, name.text)
    if right != name.text:
        r.swap("EXPR011", f"{name.text} is written `{right}` in expressions", name, right)
    return MethodCall(value, right, given, span=span)


def _as_list(r: Cursor, argument: Expr) -> Expr:
    """Return the argument of a method. A generator is not allowed there, so it is reported, and returned as a list."""
    if not isinstance(argument, Comprehension) or argument.kind != "generator":
        return argument
    start, end = argument.span.start, argument.span.end
    inside = 1 if r.text[start] == "(" and r.text[end - 1] == ")" and start in r.parentheses else 0
    edits = (Edit(Span(start, start + inside), "["), Edit(Span(end - inside, end), "]"))
    message = "a comprehension in ( ) is only allowed as a function's argument"
    r.fault("EXPR029", message, argument.span, "write it in [ ]", edits=edits)
    return evolve(argument, kind="list")


def _of_library(r: Cursor, name: Piece, start: int, *, called: bool) -> Expr:
    """Read ``math.log(x)``, ``np.clip(x, 0, 1)``, ``math.pi``."""
    if called:
        return _call_of(r, name, start, argument_list(r, comparing=name.folded in _CONDITIONAL))
    span = Span(start, name.end)
    value = {"pi": math.pi, "e": math.e, "tau": math.tau}.get(name.folded)
    if value is None:
        code = "EXPR027" if name.folded in ("inf", "nan", "infinity") else "EXPR011"
        r.fault(code, f"expressions have no {shortened(r.text[start : name.end])}", span)
        return r.hole(start)
    edit = Edit(span, repr(value))
    r.fault("EXPR011", f"expressions have no {r.text[start : name.end]}", span, f"write {value!r}", edits=(edit,))
    return Literal(value, span=span)


_REST_OF_KEY = re.compile(
    r"(?:[:-][^\W\d]\w*|[ \t]+(?!(?:and|or|not|in|is|if|else|for|then|when|while|between|like|contains|starts|ends|matches|mod|div|xor"
    r"|eq|ne|lt|gt|le|ge|asc|desc|by|as|where)\b)[^\W\d]\w*)+(?![\w.(\[])",
    re.IGNORECASE,
)
"""The rest of a key of several words after its first word, as in ``x.birth year``, ``x.birth-year`` and ``x.rdf:type``."""


def _attribute(r: Cursor, value: Expr, dot: Piece, name: Piece) -> Expr:
    start = value.span.start
    span = Span(start, name.end)
    if isinstance(value, Name) and value.name in NAMESPACES and value.span.end - start == len(value.name):
        if name.folded in RESERVED:
            r.fault("EXPR018", f"{name.text} is not a valid name", name.span)
            return r.hole(start)
        return Field(value.name, name.text, span=span)  # type: ignore[arg-type]
    if name.text in ("length", "size"):
        node = Call("len", (value,), span=span)
        return r.rewrite("EXPR012", f"values have no .{name.text}", name.span, node, "write `len(xs)`")
    found = METHODS.get(RENAMED_METHODS.get(name.text, name.text))
    if found and found.least == 0:
        edit = Edit(Span(name.end, name.end), "()")
        r.fault("EXPR012", f"{name.text} needs parentheses", name.span, f"write .{name.text}()", edits=(edit,))
        return MethodCall(value, name.text, span=span)
    quote = "'" if '"' not in r.text else '"'
    right = f"[{quote}{name.text}{quote}]"
    edits: tuple[Edit, ...] = (Edit(Span(dot.start, name.end), right),)
    hint = f"write {right}; only extraction, meta and context have names after a dot"
    if more := _REST_OF_KEY.match(r.text, name.end):  # an edit that takes only the first word would hide the fault
        whole = f"[{quote}{r.text[name.start : more.end()]}{quote}]"
        hint, edits = f"write {f'{right}, or ' if '-' in whole else ''}{whole} for a key of this name", ()
    r.fault(
        "EXPR012", f"values have no attributes: .{shortened(name.text)}", Span(dot.start, name.end), hint, edits=edits
    )
    return Subscript(value, Literal(name.text, span=name.span), span=span)


def _length_or_membership(r: Cursor, value: Expr, name: Piece, arguments: Arguments, span: Span) -> Expr:
    given = arguments.positional
    if name.text in ("length", "size", "len"):
        node: Expr | None = Call("len", (value,), span=span) if not given else None
        hint = "write `len(xs)`"
    else:
        node = Comparison(given[0], (("in", value),), span=span) if len(given) == 1 else None
        hint = "write `part in whole`"
    if node is None or arguments.keywords:
        r.fault("EXPR011", f"values have no method {name.text}", name.span, hint)
        return r.hole(span.start)
    return r.rewrite("EXPR011", f"values have no method {name.text}", name.span, node, hint)
