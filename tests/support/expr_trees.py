"""Random trees of expressions that a text can have, for the property tests of reading and printing."""

from collections.abc import Callable
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

__all__ = ["trees"]

_NAMES = st.sampled_from(["a", "b1", "N_MILD", "order", "index", "notes", "is_new", "then", "count", "case"])
_LEAVES = st.one_of(
    st.builds(Name, _NAMES),
    st.builds(Literal, st.none() | st.booleans() | st.integers(0, 2**63 - 1)),
    st.builds(Literal, st.text(st.characters(exclude_categories=["Cs"]), max_size=6)),
    st.builds(Literal, st.floats(0, allow_infinity=False).map(abs)),
    st.builds(Field, st.sampled_from(["extraction", "meta", "context"]), _NAMES),
)
_TESTS = ("==", "!=", "<", "<=", ">", ">=", "in", "not in")


@st.composite
def trees(draw: st.DrawFn, levels: int = 4) -> Expr:
    """Draw a tree of at most ``levels`` and one levels, with comprehensions in at most two of them."""
    return _Drawing(draw).tree(levels, 2)


class _Drawing:
    """Draws nodes; ``left`` says how many levels may follow, ``loops`` how many of comprehensions."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def tree(self, left: int, loops: int) -> Expr:
        kinds: list[Callable[[Callable[[], Expr]], Expr]] = [
            self._display, self._signs, self._choice, self._behind, self._tests, self._behind,
        ]  # fmt: skip
        kind = self._draw(st.integers(0, len(kinds) + 2)) if left else 0
        if kind == 0:
            return self._draw(_LEAVES)
        if kind == len(kinds) + 1:
            return self._call(left - 1, loops)
        if kind == len(kinds) + 2:
            return self._loop("list", left - 1, loops) if loops else self._draw(_LEAVES)
        return kinds[kind - 1](lambda: self.tree(left - 1, loops))

    def _some(self, inner: Callable[[], Any], least: int = 0, most: int = 3) -> tuple[Any, ...]:
        return tuple(inner() for _ in range(self._draw(st.integers(least, most))))

    def _pick(self, *options: Any) -> Any:
        return self._draw(st.sampled_from(options))

    def _display(self, inner: Callable[[], Expr]) -> Expr:
        if self._pick(True, False, False):
            return DictDisplay(self._some(lambda: (inner(), inner()), 0, 2))
        return self._pick(ListDisplay, TupleDisplay)(self._some(inner))

    def _signs(self, inner: Callable[[], Expr]) -> Expr:
        kind = self._pick("-", "**", "+", "*")
        if kind == "-":
            return Negative(inner())
        if kind == "**":
            return Power(inner(), inner())
        operators = ("+", "-") if kind == "+" else ("*", "/", "//")
        return Arithmetic(inner(), self._some(lambda: (self._pick(*operators), inner()), 1))

    def _choice(self, inner: Callable[[], Expr]) -> Expr:
        return Conditional(self._some(lambda: (inner(), inner()), 1, 2), inner())

    def _tests(self, inner: Callable[[], Expr]) -> Expr:
        kind = self._pick("not", "chain", "test", "null")
        if kind == "not":
            return Not(inner())
        if kind == "chain":
            return BoolChain(self._pick("and", "or"), self._some(inner, 2))
        if kind == "null":
            return Comparison(inner(), ((self._pick("is", "is not"), Literal(None)),))
        return Comparison(inner(), self._some(lambda: (self._pick(*_TESTS), inner()), 1))

    def _behind(self, inner: Callable[[], Expr]) -> Expr:
        kind = self._pick("index", "slice", "method")
        if kind == "index":
            return Subscript(inner(), inner())
        if kind == "slice":
            return Slicing(inner(), *(inner() if self._pick(True, False) else None for _ in range(3)))
        return MethodCall(inner(), self._pick("get", "lower", "unknown"), self._some(inner, 0, 2))

    def _call(self, left: int, loops: int) -> Expr:
        def argument() -> Expr:
            if loops and left and self._pick(True, False):
                return self._loop("generator", left - 1, loops)
            return self.tree(left, loops)

        names = self._draw(st.lists(_NAMES, max_size=2, unique=True))
        keywords = tuple((name, self.tree(left, loops)) for name in names)
        return Call(self._pick("max", "sum", "len", "unknown"), self._some(argument, 0, 2), keywords)

    def _loop(self, kind: Any, left: int, loops: int) -> Expr:
        def inner() -> Expr:
            return self.tree(max(0, left), loops - 1)

        clauses = self._some(lambda: Clause(self._draw(_NAMES), inner(), self._some(inner, 0, 2)), 1, 2)
        return Comprehension(kind, inner(), clauses)
