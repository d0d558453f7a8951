"""Random expressions and values, for the property tests of what an expression means.

``expressions()`` draws trees that mostly fit together (a number where a number is wanted), now and then ones that don't, over
the names, fields and context keys that ``data()`` gives values to. The trees are those that a text can have: they can be
printed and read again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen
from hypothesis import strategies as st
from knotwork.lang.catalogue.operations import DATE_UNITS
from knotwork.lang.trees.expr import (
    Arithmetic,
    BoolChain,
    Call,
    Clause,
    Comparison,
    Comprehension,
    Conditional,
    DictDisplay,
    Expr,
    Field,
    ListDisplay,
    Literal,
    MethodCall,
    Name,
    Negative,
    Not,
    Power,
    Slicing,
    Subscript,
    TupleDisplay,
)

__all__ = ["CONTEXT", "FIELDS", "META", "NAMES", "Data", "data", "expressions", "json_values", "rows"]

NAMES = {"i": "number", "x": "number", "flag": "boolean", "word": "text", "numbers": "list", "words": "list",
         "mixed": "list", "table": "object", "extractions": "rows", "anything": "any"}  # fmt: skip
"""The names that have a value, and what it mostly is."""
FIELDS = {"severity": "text", "kind": "text", "score": "number", "known": "boolean", "tags": "list"}
META = {"stars": "number", "useful": "number", "year": "number", "date": "text"}
CONTEXT = {"name": "text", "categories": "list", "city": "text"}

_TEXTS = ("", "a", "ab", "B", "mild", "severe", "none", " x ", "12", "1.5", "é", "😀", "Thai, Pizza", "2024-02-29",
          "2024-03-05 10:30-05:00")  # fmt: skip
_VARIABLES = ("e", "f", "each", "k")

texts = st.sampled_from(_TEXTS)
integers = st.one_of(st.integers(-3, 12), st.sampled_from([0, 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]))
floats = st.one_of(st.sampled_from([0.0, 1.0, 0.5, -0.5, 2.5, 1e300, 1e-300, -0.0]), st.floats(-100, 100))
scalars = st.one_of(st.none(), st.booleans(), integers, floats, texts)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
"""Values of JSON of every kind."""

_OF: Mapping[str, st.SearchStrategy[Any]] = {
    "number": st.one_of(integers, floats),
    "boolean": st.booleans(),
    "text": texts,
    "list": st.one_of(st.lists(integers, max_size=6), st.lists(floats, max_size=6), st.lists(texts, max_size=5)),
    "object": st.dictionaries(texts, scalars, max_size=4),
    "any": json_values,
}


def _mostly(found: str) -> st.SearchStrategy[Any]:
    """A value of the kind; one time in ten null, one time in twenty anything."""
    return st.integers(0, 19).flatmap(lambda at: st.none() if at < 2 else json_values if at == 2 else _OF[found])


def _record(kinds: Mapping[str, str], *, all_there: bool) -> st.SearchStrategy[dict[str, Any]]:
    mostly = {name: _mostly(found) for name, found in kinds.items()}
    return st.fixed_dictionaries(mostly) if all_there else st.fixed_dictionaries({}, optional=mostly)


def rows(most: int = 6) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a seed's compute: ``{"extraction": {...}, "meta": {...}}``; fields and metadata may be missing or null."""
    row = st.fixed_dictionaries(
        {"extraction": _record(FIELDS, all_there=False), "meta": _record(META, all_there=False)}
    )
    return st.lists(row, max_size=most)


@frozen
class Data:
    """What an expression is evaluated with: the keyword arguments of ``evaluate``."""

    names: dict[str, Any]
    row: dict[str, Any]
    context: dict[str, Any]


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Values for ``NAMES`` (``extractions`` with every field and ``meta``), one row, and a context."""
    names = {name: draw(_mostly(found)) for name, found in NAMES.items() if found != "rows"}
    extractions = draw(st.lists(_record(FIELDS, all_there=True), max_size=5))
    names["extractions"] = [{**each, "meta": draw(_record(META, all_there=True))} for each in extractions]
    row = {"extraction": draw(_record(FIELDS, all_there=False)), "meta": draw(_record(META, all_there=False))}
    return Data(names, row, draw(_record(CONTEXT, all_there=True)))


@frozen
class _Scope:
    """What may be named where an expression is drawn, how deep it may still go, how many comprehensions it stands in."""

    deep: int
    row: bool = True
    context: bool = True
    names: Mapping[str, str] = NAMES
    loops: int = 0

    def below(self, **more: str) -> "_Scope":
        return _Scope(self.deep - 1, self.row, self.context, {**self.names, **more}, self.loops + bool(more))


def expressions(
    *, deep: int = 4, row: bool = True, context: bool = True, names: Mapping[str, str] = NAMES
) -> st.SearchStrategy[Expr]:
    """Trees of at most some ``deep`` levels. ``row`` and ``context`` say whether their namespaces may be used."""
    return _any(_Scope(deep, row, context, names))


@st.composite
def _any(draw: st.DrawFn, scope: _Scope) -> Expr:
    return draw(draw(st.sampled_from([_number, _number, _test, _test, _text, _list, _object]))(scope))


def _slip(draw: st.DrawFn, scope: _Scope) -> bool:
    """Say whether what is drawn here shall be of any kind."""
    return scope.deep > 0 and draw(st.integers(0, 24)) == 0


def _choice(draw: st.DrawFn, scope: _Scope, wanted: str, inner: Callable[[_Scope], Any]) -> Expr:
    """Draw ``x if c else y`` of values of one kind."""
    below = scope.below()
    branches = tuple((draw(_test(below)), draw(inner(below))) for _ in range(draw(st.integers(1, 2))))
    return Conditional(branches, draw(inner(below)))


def _leaf(draw: st.DrawFn, scope: _Scope, *wanted: str) -> Expr:
    """Draw a name, a field or a literal of one of the kinds."""
    known: list[Expr] = [Name(name) for name, found in scope.names.items() if found in wanted]
    for variable, found in scope.names.items():
        if found == "row":
            known += [Subscript(Name(variable), Literal(name)) for name, each in FIELDS.items() if each in wanted]
            meta = Subscript(Name(variable), Literal("meta"))
            known += [Subscript(meta, Literal(name)) for name, each in META.items() if each in wanted]
    if scope.row:
        known += [Field("extraction", name) for name, found in FIELDS.items() if found in wanted]
        known += [Field("meta", name) for name, found in META.items() if found in wanted]
    if scope.context:
        known += [Field("context", name) for name, found in CONTEXT.items() if found in wanted]
    if known and draw(st.booleans()):
        return draw(st.sampled_from(known))
    if draw(st.integers(0, 30)) == 0:
        return Literal(None)
    kind = draw(st.sampled_from(wanted))
    return Literal(draw(_LITERALS[kind])) if kind in _LITERALS else ListDisplay(())


_LITERALS = {
    "number": st.one_of(st.integers(0, 12), st.integers(0, 2**63 - 1), st.sampled_from([0.0, 0.5, 1.0, 2.5, 1e300])),
    "boolean": st.booleans(),
    "text": texts,
}


@st.composite
def _number(draw: st.DrawFn, scope: _Scope) -> Expr:
    if _slip(draw, scope):
        return draw(_any(scope.below()))
    if scope.deep <= 0:
        return _leaf(draw, scope, "number")
    below = scope.below()
    way = draw(st.sampled_from(("leaf", "leaf", "arithmetic", "arithmetic", "negative", "power", "function", "extreme",
                                "count", "sum", "choice", "element", "get", "len", "sample", "reading", "coalesce")))  # fmt: skip
    if way == "arithmetic":
        signs = draw(st.sampled_from((("+", "-"), ("*", "/", "//", "%"))))
        count = draw(st.integers(1, 3))
        rest = tuple((draw(st.sampled_from(signs)), draw(_number(below))) for _ in range(count))
        return Arithmetic(draw(_number(below)), rest)
    if way == "negative":
        return Negative(draw(_number(below)))
    if way == "power":
        return Power(draw(_number(below)), draw(st.one_of(st.sampled_from([Literal(2), Literal(0.5)]), _number(below))))
    if way == "function":
        name = draw(st.sampled_from(("abs", "ceil", "exp", "float", "floor", "int", "ln", "log", "log10", "log2", "round",
                                     "sqrt", "clamp")))  # fmt: skip
        arguments = [draw(_number(below))]
        if name == "clamp":
            arguments += [Literal(0), draw(_number(below))]
        elif name in ("round", "log") and draw(st.booleans()):
            arguments.append(Literal(draw(st.integers(0, 3))) if name == "round" else Literal(2))
        return Call(name, tuple(arguments))
    if way == "extreme":
        name = draw(st.sampled_from(("max", "min")))
        if draw(st.booleans()):
            return Call(name, tuple(draw(_number(below)) for _ in range(draw(st.integers(2, 3)))))
        return Call(name, (draw(_over(below, "number")),), (("default", draw(_number(below))),))
    if way == "sample":
        name = draw(st.sampled_from(("median", "mode", "percentile", "stdev", "variance")))
        if name == "percentile":
            share = draw(
                st.one_of(st.sampled_from([Literal(0), Literal(0.25), Literal(0.95), Literal(1)]), _number(below))
            )
            return Call(name, (draw(_list(below)), share))
        return Call(name, (draw(_over(below, "number")),))
    if way == "sum":
        start = (draw(_number(below)),) if draw(st.integers(0, 3)) == 0 else ()
        values = draw(_over(below, "number"))
        bare = isinstance(values, Comprehension) and values.kind == "generator"
        return Call("sum", (values, *(() if bare else start)))
    if way == "count":
        return Call("sum", (draw(_comprehension(below, "generator", lambda _: st.just(Literal(1)))),))
    if way == "choice":
        return _choice(draw, scope, "number", _number)
    if way == "reading":
        name = draw(st.sampled_from(("number", "year", "similarity", "days_between")))
        return Call(name, tuple(draw(_text(below)) for _ in range(1 if name in ("number", "year") else 2)))
    if way == "coalesce":
        return Call("coalesce", (draw(_number(below)), draw(_number(below))))
    if way == "element":
        index = draw(st.one_of(st.sampled_from([Literal(0), Negative(Literal(1))]), _number(below)))
        return Subscript(draw(_list(below)), index)
    if way == "get":
        default = (draw(_number(below)),) if draw(st.booleans()) else ()
        return MethodCall(draw(_object(below)), "get", (draw(_text(below)), *default))
    if way == "len":
        inner = draw(st.sampled_from([_list, _text, _object]))(below)
        value = draw(inner)
        return Call("len", (Call("set", (value,)) if draw(st.integers(0, 3)) == 0 else value,))
    return _leaf(draw, scope, "number")


@st.composite
def _text(draw: st.DrawFn, scope: _Scope) -> Expr:
    if _slip(draw, scope):
        return draw(_any(scope.below()))
    if scope.deep <= 0:
        return _leaf(draw, scope, "text")
    below = scope.below()
    way = draw(st.sampled_from(("leaf", "leaf", "leaf", "method", "str", "join", "times", "slice", "choice",
                                "function", "part", "trunc", "coalesce")))  # fmt: skip
    if way == "method":
        method = draw(st.sampled_from(("lower", "upper", "strip")))
        return MethodCall(draw(_text(below)), method)
    if way == "str":
        return Call("str", (draw(_number(below)),))
    if way == "join":
        return Arithmetic(draw(_text(below)), (("+", draw(_text(below))),))
    if way == "times":
        return Arithmetic(draw(_text(below)), (("*", Literal(draw(st.integers(0, 3)))),))
    if way == "slice":
        return _slice(draw, draw(_text(below)))
    if way == "choice":
        return _choice(draw, scope, "text", _text)
    if way == "function":
        name = draw(st.sampled_from(("fold", "date", "replace")))
        return Call(name, tuple(draw(_text(below)) for _ in range(3 if name == "replace" else 1)))
    if way == "part":
        return Call("substring", (draw(_text(below)), Literal(draw(st.integers(0, 3))), draw(_number(below))))
    if way == "trunc":
        return Call("date_trunc", (Literal(draw(st.sampled_from(DATE_UNITS))), draw(_text(below))))
    if way == "coalesce":
        return Call("coalesce", (draw(_text(below)), draw(_text(below))))
    return _leaf(draw, scope, "text")


def _slice(draw: st.DrawFn, value: Expr) -> Expr:
    bounds = st.one_of(
        st.none(), st.integers(0, 4).map(Literal), st.integers(1, 3).map(lambda at: Negative(Literal(at)))
    )
    return Slicing(value, draw(bounds), draw(bounds), draw(st.one_of(st.none(), st.just(Literal(2)))))


@st.composite
def _test(draw: st.DrawFn, scope: _Scope) -> Expr:
    if _slip(draw, scope):
        return draw(_any(scope.below()))
    if scope.deep <= 0:
        return _leaf(draw, scope, "boolean")
    below = scope.below()
    way = draw(st.sampled_from(("order", "order", "equal", "equal", "null", "in", "in", "chain", "not", "any", "bool",
                                "starts", "leaf")))  # fmt: skip
    if way == "order":
        inner = draw(st.sampled_from((_number, _number, _text)))
        count = draw(st.integers(1, 2))
        rest = tuple((draw(st.sampled_from(("<", "<=", ">", ">="))), draw(inner(below))) for _ in range(count))
        return Comparison(draw(inner(below)), rest)
    if way == "equal":
        inner = draw(st.sampled_from((_number, _text, _test, _list, _any)))
        return Comparison(draw(inner(below)), ((draw(st.sampled_from(("==", "!="))), draw(inner(below))),))
    if way == "null":
        test = draw(st.sampled_from(("==", "!=", "is", "is not")))
        return Comparison(draw(_any(below)), ((test, Literal(None)),))
    if way == "in":
        test, inner = draw(st.sampled_from(("in", "not in"))), draw(st.sampled_from((_text, _number)))
        right = draw(st.one_of(_list(below), _display(below, inner), _text(below) if inner is _text else _list(below)))
        return Comparison(draw(inner(below)), ((test, right),))
    if way == "chain":
        operands = tuple(draw(_test(below)) for _ in range(draw(st.integers(2, 3))))
        return BoolChain(draw(st.sampled_from(("and", "or"))), operands)
    if way == "not":
        return Not(draw(_test(below)))
    if way == "any":
        return Call(draw(st.sampled_from(("any", "all"))), (draw(_over(below, "boolean")),))
    if way == "bool":
        return Call("bool", (draw(_any(below)),))
    if way == "starts":
        method = draw(st.sampled_from(("startswith", "endswith")))
        return MethodCall(draw(_text(below)), method, (draw(_text(below)),))
    return _leaf(draw, scope, "boolean")


@st.composite
def _display(draw: st.DrawFn, scope: _Scope, inner: Callable[[_Scope], Any]) -> Expr:
    items = tuple(draw(st.lists(inner(scope.below()), max_size=4)))
    return draw(st.sampled_from((ListDisplay, ListDisplay, TupleDisplay)))(items)


@st.composite
def _list(draw: st.DrawFn, scope: _Scope) -> Expr:
    if _slip(draw, scope):
        return draw(_any(scope.below()))
    if scope.deep <= 0:
        return _leaf(draw, scope, "list")
    below = scope.below()
    ways = (
        "leaf",
        "leaf",
        "display",
        "display",
        "sorted",
        "comprehension",
        "join",
        "slice",
        "split",
        "numbered",
        "range",
    )
    way = draw(st.sampled_from(ways))
    if way == "display":
        return draw(_display(below, draw(st.sampled_from((_number, _text, _any)))))
    if way == "sorted":
        keywords = (("reverse", draw(_test(below))),) if draw(st.booleans()) else ()
        values = draw(_over(below, draw(st.sampled_from(("number", "text")))))
        return Call("sorted", (Call("set", (values,)) if draw(st.booleans()) else values,), keywords)
    if way == "numbered":
        values = draw(_over(below, draw(st.sampled_from(("number", "text")))))
        pairs = Call("enumerate", (values,), (("start", Literal(1)),) if draw(st.booleans()) else ())
        pairs = draw(
            st.sampled_from((pairs, Call("zip", (pairs, pairs)), Call("sorted", (pairs,), (("key", Literal(0)),))))
        )
        clause = Clause(("first", "second"), pairs)
        return Comprehension("list", Name(draw(st.sampled_from(clause.names))), (clause,))
    if way == "range":
        return Call(
            "range", tuple(Literal(number) for number in draw(st.lists(st.integers(-3, 9), min_size=1, max_size=2)))
        )
    if way == "comprehension":
        return draw(_comprehension(below, "list", draw(st.sampled_from((_number, _text, _any)))))
    if way == "join":
        return Arithmetic(draw(_list(below)), (("+", draw(_list(below))),))
    if way == "slice":
        return _slice(draw, draw(_list(below)))
    if way == "split":
        return MethodCall(draw(_text(below)), "split", (Literal(","),) if draw(st.booleans()) else ())
    return _leaf(draw, scope, "list")


@st.composite
def _object(draw: st.DrawFn, scope: _Scope) -> Expr:
    if scope.deep <= 0 or draw(st.booleans()):
        return draw(st.sampled_from([Name(name) for name, found in scope.names.items() if found in ("object", "row")]))
    below = scope.below()
    entries = st.lists(st.tuples(_text(below), _any(below)), max_size=3)
    return DictDisplay(tuple(draw(entries)))


@st.composite
def _over(draw: st.DrawFn, scope: _Scope, wanted: str) -> Expr:
    """Draw what a function goes through: a generator, a list or a list comprehension."""
    inner = {"number": _number, "text": _text, "boolean": _test}[wanted]
    way = draw(st.sampled_from(("generator", "generator", "list", "display")))
    if way == "generator" and scope.deep > 0:
        return draw(_comprehension(scope, "generator", inner))
    return draw(_display(scope, inner) if way == "display" else _list(scope))


@st.composite
def _comprehension(draw: st.DrawFn, scope: _Scope, kind: Any, inner: Callable[[_Scope], Any]) -> Expr:
    """Draw ``[... for ...]`` or, for a function, ``... for ...``; at two levels a plain display instead."""
    if scope.loops >= 2:
        return draw(_display(scope, inner))
    clauses = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        variable = next((name for name in _VARIABLES if name not in scope.names), "")
        if not variable:
            break
        over_rows = draw(st.booleans()) and "extractions" in scope.names
        iterable: Expr = Name("extractions") if over_rows else draw(_list(scope.below()))
        found = "row" if over_rows else draw(st.sampled_from(("number", "text")))
        scope = scope.below(**{variable: found})
        clauses.append(Clause(variable, iterable, tuple(draw(st.lists(_test(scope.below()), max_size=2)))))
    return Comprehension(kind, draw(inner(scope.below())), tuple(clauses))
