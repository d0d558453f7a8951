"""Random Formula Seeds and rows, for the property tests of what a seed computes.

``seeds()`` draws steps of every kind over the fields and metadata of ``support.expressions``: conditions as both JSON forms write
them, conditions and elements of any shape, formulas over ``extractions``, steps that need earlier ones. ``any_rows()`` are rows
as models and files give them: mostly in order, some with nulls, missing fields, or values of another type.
"""

from typing import Any

from hypothesis import strategies as st
from knotwork.lang.trees.expr import (
    Arithmetic,
    BoolChain,
    Call,
    Clause,
    Comparison,
    Comprehension,
    Conditional,
    Expr,
    Field,
    ListDisplay,
    Literal,
    MethodCall,
    Name,
    Not,
    Subscript,
)
from knotwork.lang.trees.seed import (
    Aggregate,
    Case,
    CaseRule,
    Const,
    DefineFilter,
    Extracted,
    FilterUse,
    Formula,
    FormulaSeed,
    Lookup,
    SeedStep,
    Tally,
)

from .expressions import CONTEXT, expressions, json_values
from .expressions import rows as odd_rows

__all__ = ["any_rows", "contexts", "seeds"]

VALUES = {"severity": ("none", "mild", "severe"), "kind": ("none", "first", "second")}
DECLARED = (
    *(Extracted(name, "enum", dict.fromkeys(values, "")) for name, values in VALUES.items()),
    Extracted("score", "float"),
    Extracted("known", "bool"),
    Extracted("tags", "list"),
)
_NUMBERS = (Field("extraction", "score"), Field("meta", "stars"), Field("meta", "useful"), Field("meta", "year"))

small = st.one_of(st.integers(-3, 12), st.sampled_from([0.5, 2.5, 0.0, -0.0, 1.0]))


@st.composite
def _plain_row(draw: st.DrawFn) -> dict[str, Any]:
    """A row that is in order, but for a null or a missing field now and then."""
    extraction: dict[str, Any] = {name: draw(st.sampled_from(values)) for name, values in VALUES.items()}
    extraction |= {
        "score": draw(small),
        "known": draw(st.booleans()),
        "tags": draw(st.lists(st.sampled_from("ab"), max_size=2)),
    }
    meta: dict[str, Any] = {"stars": draw(st.integers(1, 5)), "useful": draw(st.integers(0, 9)), "year": draw(st.integers(2018, 2025)),
                            "date": draw(st.sampled_from(["2020-01-02", "2024-05-06"]))}  # fmt: skip
    for record in (extraction, meta):
        for key in draw(st.lists(st.sampled_from(sorted(record)), max_size=1)) if draw(st.integers(0, 3)) == 0 else ():
            record.update({key: None}) if draw(st.booleans()) else record.pop(key)
    return {"extraction": extraction, "meta": meta} if draw(st.integers(0, 9)) else {"extraction": extraction}


@st.composite
def any_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to twelve rows, mostly in order; now and then with a value of any kind somewhere, or all of any kind, or with values that are
    invalid: a field in some rows or in all.
    """
    found = draw(st.lists(_plain_row(), max_size=12))
    way = draw(st.integers(0, 9))
    if way >= 7:
        names = draw(st.lists(st.sampled_from((*VALUES, "score", "known", "tags")), max_size=2))
        keys = draw(st.lists(st.sampled_from(("stars", "year")), max_size=1))
        some = found if way == 9 else found[: draw(st.integers(0, len(found)))]
        for row in some:
            row |= {"invalid": dict.fromkeys(names, "odd"), "invalid_meta": dict.fromkeys(keys, "odd")}
            row["extraction"] |= dict.fromkeys(names)
            row.setdefault("meta", {}).update(dict.fromkeys(keys))
    if way == 0:
        return found + draw(odd_rows())
    if way <= 2 and found:
        record = draw(st.sampled_from([record for row in found for record in row.values()]))
        record[draw(st.sampled_from((*VALUES, "score", "known", "tags", "stars", "useful", "year", "date")))] = draw(
            json_values
        )
    return found


contexts = st.one_of(
    st.fixed_dictionaries({"name": st.just("x"), "categories": st.sampled_from(["Thai, Pizza", ["Thai", "Pizza", None], "", None]),
                           "city": st.just("é")}),
    st.fixed_dictionaries({}, optional={name: json_values for name in CONTEXT}),
)  # fmt: skip


@st.composite
def _condition(draw: st.DrawFn) -> Expr:
    """A condition on one extraction, as a ``where`` of seed 002 has it."""
    way = draw(st.sampled_from(("enum", "enum", "enum", "in", "number", "number", "null", "bool", "any")))
    if way == "any":
        return draw(expressions(deep=2, names={"S0": "object"}))
    if way == "number":
        return Comparison(draw(st.sampled_from(_NUMBERS)), ((draw(_TESTS), Literal(draw(small))),))
    if way == "bool":
        return Comparison(
            Field("extraction", "known"), ((draw(st.sampled_from(("==", "!="))), Literal(draw(st.booleans()))),)
        )
    name = draw(st.sampled_from(sorted(VALUES)))
    left = Field("extraction", name)
    if way == "null":
        return Comparison(left, ((draw(st.sampled_from(("==", "!="))), Literal(None)),))
    values = st.sampled_from((*VALUES[name], "absent"))
    if way == "in":
        items = tuple(Literal(value) for value in draw(st.lists(values, max_size=3)))
        return Comparison(left, ((draw(st.sampled_from(("in", "not in"))), ListDisplay(items)),))
    return Comparison(left, ((draw(st.sampled_from(("==", "!="))), Literal(draw(values))),))


_TESTS = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))


@st.composite
def _joined(draw: st.DrawFn) -> Expr:
    parts = draw(st.lists(_condition(), min_size=1, max_size=3))
    if len(parts) == 1:
        return Not(parts[0]) if draw(st.integers(0, 4)) == 0 else parts[0]
    return BoolChain(draw(st.sampled_from(("and", "and", "or"))), tuple(parts))


@st.composite
def _element(draw: st.DrawFn) -> Expr:
    way = draw(st.sampled_from(("field", "field", "sum", "log", "choice", "any")))
    field = draw(st.sampled_from(_NUMBERS))
    if way == "field":
        return draw(st.sampled_from((*_NUMBERS, Field("meta", "date"), Field("extraction", "severity"))))
    if way == "sum":
        return Arithmetic(Literal(5), ((draw(st.sampled_from("+-")), field),))
    if way == "log":
        return Arithmetic(field, (("+", Call("log", (Arithmetic(Field("meta", "useful"), (("+", Literal(1)),)),))),))
    if way == "choice":
        return Conditional(((draw(_condition()), field),), Literal(draw(st.one_of(st.none(), small))))
    return draw(expressions(deep=2, names={"S0": "object"}))


def _over(expr: Any, variable: str) -> Any:
    """Return a condition or an element on one extraction as seed 000 writes it: ``e["severity"]``, ``e["meta"]["year"]``."""
    if isinstance(expr, Field) and expr.namespace == "extraction":
        return Subscript(Name(variable), Literal(expr.name))
    if isinstance(expr, Field) and expr.namespace == "meta":
        return MethodCall(Subscript(Name(variable), Literal("meta")), "get", (Literal(expr.name),))
    if isinstance(expr, tuple):
        return tuple(_over(each, variable) for each in expr)
    if not hasattr(expr, "__attrs_attrs__"):
        return expr
    fields = [each.name for each in expr.__attrs_attrs__ if each.name != "span"]
    return type(expr)(**{name: _over(getattr(expr, name), variable) for name in fields})


@st.composite
def _formula_over_rows(draw: st.DrawFn) -> Expr:
    conditions = tuple(_over(each, "e") for each in draw(st.lists(_joined(), max_size=2)))
    function = draw(st.sampled_from(("count", "count", "sum", "len", "max", "min", "any", "all", "sorted")))
    kind = "list" if function == "len" else "generator"
    element: Expr = Literal(1)
    if function == "len":
        element = draw(st.sampled_from((Name("e"), Literal(1), Subscript(Name("e"), Literal("severity")))))
    elif function in ("any", "all"):
        element = _over(draw(_joined()), "e")
    elif function != "count":
        element = _over(draw(_element()), "e")
    inner = Comprehension(kind, element, (Clause("e", Name("extractions"), conditions),))
    keywords = (("default", Literal(draw(small))),) if function in ("max", "min") and draw(st.integers(0, 3)) else ()
    return Call("sum" if function == "count" else function, (inner,), keywords)


@st.composite
def _formula(draw: st.DrawFn, names: dict[str, str]) -> Expr:
    way = draw(st.sampled_from(("rows", "rows", "numbers", "numbers", "mixed", "any")))
    if way == "rows":
        return draw(_formula_over_rows())
    known = [Name(name) for name in names] or [Literal(2)]
    if way == "numbers":
        parts = [draw(st.sampled_from(known)) for _ in range(2)]
        signs = draw(st.sampled_from((("+", "-"), ("*", "/", "//", "%"))))
        expr: Expr = Arithmetic(parts[0], ((draw(st.sampled_from(signs)), parts[1]), (signs[0], Literal(draw(small)))))
        if draw(st.booleans()):
            expr = Call("max", (Literal(0.1), Call("min", (Literal(1.0), expr))))
        return Conditional(((Comparison(parts[1], ((draw(_TESTS), Literal(0)),)), expr),), Literal(0))
    if way == "mixed":
        found = draw(_formula_over_rows())
        test = Comparison(draw(st.sampled_from(known)), ((">", Literal(0)),))
        return Conditional(((test, Arithmetic(found, (("/", draw(st.sampled_from(known))),))),), found)
    return draw(expressions(deep=3, row=False, names={**names, "S0": "object", "extractions": "rows"}))


@st.composite
def seeds(draw: st.DrawFn, *, most: int = 7) -> FormulaSeed:
    """Seeds of up to ``most`` steps, each of which may use those before it."""
    steps: list[SeedStep] = []
    filters: list[str] = []
    values: dict[str, str] = {}
    for at in range(draw(st.integers(1, most))):
        name = f"S{at}"
        step = draw(_step(name, filters, values))
        steps.append(step)
        if isinstance(step, DefineFilter):
            filters.append(name)
        else:
            values[name] = "number"
    return FormulaSeed(fields=DECLARED, steps=tuple(steps), outputs=tuple(values))


@st.composite
def _step(draw: st.DrawFn, name: str, filters: list[str], values: dict[str, str]) -> SeedStep:
    kind = draw(
        st.sampled_from(
            ("filter", "aggregate", "aggregate", "aggregate", "formula", "formula", "case", "lookup", "const", "tally")
        )
    )
    if kind == "filter":
        return DefineFilter(name, draw(_where(filters, values)))
    if kind == "aggregate":
        operation = draw(st.sampled_from(("count", "count", "sum", "max", "min")))
        where = draw(st.one_of(st.none(), _where(filters, values)))
        default = draw(st.one_of(st.none(), small, json_values))
        return Aggregate(name, operation, None if operation == "count" else draw(_element()), where, default)
    if kind == "tally":
        element = draw(
            st.sampled_from([Field("extraction", each.name) for each in DECLARED] + [Field("meta", "stars")])
        )
        where = draw(st.one_of(st.none(), _where(filters, values)))
        return Tally(name, element, draw(st.one_of(st.none(), st.integers(1, 3))), where)
    if kind == "const":
        return Const(name, draw(st.one_of(small, json_values)))
    if kind == "lookup":
        table = tuple(
            (key, draw(st.one_of(small, small, json_values)))
            for key in draw(st.lists(st.sampled_from(_KEYS), unique=True))
        )
        match = draw(st.sampled_from(("exact", "substring_first", "substring_max", "word_first", "word_max")))
        sources: list[Any] = [
            Field("context", "categories"),
            Field("context", "name"),
            *(Name(known) for known in values),
        ]
        return Lookup(name, draw(st.sampled_from(sources)), table, match, draw(small))
    if kind == "case":
        known = [Name(each) for each in values] or [Literal(3)]
        tests = [Comparison(draw(st.sampled_from(known)), ((draw(_TESTS), Literal(draw(small))),)) for _ in range(2)]
        results = st.one_of(st.sampled_from(["low", "high"]), small, json_values)
        return Case(name, tuple(CaseRule(test, draw(results)) for test in tests), draw(results))
    return Formula(name, draw(_formula(values)))


_KEYS = ("Thai", "Pizza", "thai", "a", "", "é")


@st.composite
def _where(draw: st.DrawFn, filters: list[str], values: dict[str, str]) -> Any:
    parts: list[Any] = draw(st.lists(_joined(), max_size=3))
    if filters and draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), FilterUse(draw(st.sampled_from(filters)), draw(st.booleans())))
    if values and draw(st.integers(0, 3)) == 0:
        test = Comparison(
            draw(st.sampled_from(_NUMBERS)), ((draw(_TESTS), Name(draw(st.sampled_from(sorted(values))))),)
        )
        parts.insert(draw(st.integers(0, len(parts))), test)
    return tuple(parts)
