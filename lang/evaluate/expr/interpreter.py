"""Interpreter that evaluates an expression by walking its tree.

The interpreter is slow and simple; generated code must give the same results.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

from ...trees.expr import (
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
from .arithmetic import OPERATORS, negative, power
from .comparison import TESTS, known_names_hint, mapping_key, sliced, subscript
from .functions import function, method
from .values import ExprError, Meter, a, checked_result, clause_costs, keys_of, kind, short_json, truth

_EMPTY: Mapping[str, Any] = MappingProxyType({})


def evaluate(
    expr: Expr,
    names: Mapping[str, Any] = _EMPTY,
    *,
    row: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    meter: Meter | None = None,
) -> Any:
    """Return the JSON value of ``expr``. See ``docs/design/seed.md#expressions``.

    ``names`` maps names to values (including ``extractions``). ``row`` contains the mappings ``"extraction"`` and ``"meta"`` of
    the current extraction. ``context`` contains the values of ``context.f``. A ``meter`` adds up the cost of all its
    evaluations; by default, a new meter with the default limits is used. The arguments are not changed and share no parts with
    the result. Raises ``ExprError``.
    """
    return Evaluator(names, context, meter or Meter()).value(expr, row)


class Evaluator:
    """Evaluates many expressions, or many rows, with the same names, context and meter.

    This is twice as fast as calls of ``evaluate``. The caller must keep references to the expressions during the use.
    """

    def __init__(self, names: Mapping[str, Any], context: Mapping[str, Any] | None, meter: Meter) -> None:
        self._evaluation = _Evaluation(names, context, meter)

    def value(self, expr: Expr, row: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON value of ``expr``. Raises ``ExprError``."""
        evaluation = self._evaluation
        evaluation.begin(row)
        try:
            value = evaluation.of(expr, _EMPTY)
            if value is True or value is False or value is None:
                return value
            return checked_result(value, expr.span, evaluation.meter)
        except RecursionError:  # the caller has used most of the stack
            raise ExprError("limit", "the expression is nested too deeply for the stack", span=expr.span) from None


def is_null_literal(node: Expr) -> bool:
    """Return whether ``node`` is the literal null. A comparison with this literal is a test for null."""
    return isinstance(node, Literal) and node.value is None


class _Evaluation:
    """Consecutive evaluations with the same names and the same meter. ``bound`` are the variables of comprehensions.

    Data derived from a node are cached by the node's identity, because a node may be evaluated very often.
    """

    def __init__(
        self,
        names: Mapping[str, Any],
        context: Mapping[str, Any] | None,
        meter: Meter,
    ) -> None:
        self.names = names
        self.context = context
        self.spaces: Mapping[str, Any] = _EMPTY
        self.meter = meter
        self.costs: dict[int, tuple[int, ...]] = {}
        self.called: dict[int, Callable[..., Any]] = {}
        self.depth, self.deepest = 0, meter.limits.nesting

    def begin(self, row: Mapping[str, Any] | None) -> None:
        """Prepare for an evaluation over ``row``, even if the previous evaluation ended in an error."""
        self.depth = 0
        self.spaces = {"context": self.context} if row is None else {**row, "context": self.context}

    def of(self, node: Expr, bound: Mapping[str, Any]) -> Any:
        """Return the value of ``node``. An error ends the evaluation; its span is that of the innermost failed node."""
        found = node.__class__
        if found is Literal:
            return node.value  # type: ignore[union-attr]
        if found is Name and node.name in bound:  # type: ignore[union-attr]
            return bound[node.name]  # type: ignore[union-attr]
        depth = self.depth
        self.depth = depth + 1
        try:
            if depth >= self.deepest:
                raise ExprError("limit", f"the expression is nested more than {self.deepest} levels deep")
            value = _WAYS[found](self, node, bound)
        except ExprError as error:
            if error.span is None:
                error.span = node.span
            raise
        self.depth = depth
        return value

    def name(self, node: Name, bound: Mapping[str, Any]) -> Any:
        if node.name in self.names:
            return self.names[node.name]
        raise ExprError(
            "name", f"unknown value `{node.name:.60}`", hint=known_names_hint(node.name, chain(bound, self.names))
        )

    def field(self, node: Field, bound: Mapping[str, Any]) -> Any:
        space = self.spaces.get(node.namespace)
        if space is None:
            hint = (
                "it is only available where a step iterates over the extractions" if node.namespace != "context" else ""
            )
            raise ExprError("name", f"`{node.namespace}` is not available here", hint=hint)
        if node.name in space or node.namespace != "context":
            return space.get(node.name)  # a value that was not extracted, or is unknown for a review, is null
        raise ExprError("key", f"the context has no `{node.name:.60}`", hint=known_names_hint(node.name, space))

    def list_display(self, node: ListDisplay | TupleDisplay, bound: Mapping[str, Any]) -> Any:
        items, meter = node.items, self.meter
        meter.room -= 56 + 8 * len(items)
        if meter.room < 0:
            meter.hold(0)
        return [self.of(item, bound) for item in items]

    def dict_display(self, node: DictDisplay, bound: Mapping[str, Any]) -> Any:
        self.meter.make_table(len(node.entries), "an object")
        made: dict[Any, Any] = {}
        for key, value in node.entries:
            under = mapping_key(self.meter, self.of(key, bound))
            made[under] = self.of(value, bound)
        return made

    def negative(self, node: Negative, bound: Mapping[str, Any]) -> Any:
        value = self.of(node.operand, bound)
        if value is None:
            raise ExprError(
                "type", f"null in arithmetic: -{_label(node.operand) or 'null'}", hint=_of_null(node.operand)
            )
        return negative(self.meter, value)

    def power(self, node: Power, bound: Mapping[str, Any]) -> Any:
        base, exponent = self.of(node.base, bound), self.of(node.exponent, bound)
        return self.computed("**", power, base, exponent, node.base, node.exponent)

    def arithmetic(self, node: Arithmetic, bound: Mapping[str, Any]) -> Any:
        value, before = self.of(node.first, bound), node.first
        for sign, operand in node.rest:
            right = self.of(operand, bound)
            value = self.computed(sign, OPERATORS[sign], value, right, before, operand)
            before = node
        return value

    def computed(
        self, sign: str, compute: Callable[[Meter, Any, Any], Any], left: Any, right: Any, first: Expr, second: Expr
    ) -> Any:
        """Return the result of an operator. If an error is about null or zero, its message shows short operands as they are written."""
        if left is None or right is None:
            operands = f"{_operand_text(first, left)} {sign} {_operand_text(second, right)}"
            raise ExprError("type", f"null in arithmetic: {operands}", hint=_of_null(first if left is None else second))
        try:
            return compute(self.meter, left, right)
        except ExprError as error:
            divisor = _label(second)
            if error.kind == "division" and sign != "**" and divisor:
                error.hint = f"`{divisor}` is 0: write `... if {divisor} != 0 else 0`"
            raise

    def comparison(self, node: Comparison, bound: Mapping[str, Any]) -> bool:
        left, before = self.of(node.first, bound), node.first
        for test, operand in node.rest:
            right = self.of(operand, bound)
            if test in ("==", "!=", "is", "is not") and (is_null_literal(before) or is_null_literal(operand)):
                # One of the two operands is the literal null; the value of the other decides.
                holds = ((right if is_null_literal(before) else left) is None) is (test in ("==", "is"))
            elif test in ("is", "is not"):
                raise ExprError(
                    "type", f"`{test}` is allowed only before null", hint=f"write {'==' if test == 'is' else '!='}"
                )
            else:
                holds = TESTS[test](self.meter, left, right)
            if not holds:
                return False
            left, before = right, operand
        return True

    def negation(self, node: Not, bound: Mapping[str, Any]) -> bool:
        return not truth(self.of(node.operand, bound))

    def chain(self, node: BoolChain, bound: Mapping[str, Any]) -> Any:
        decisive, value = node.operator == "or", None
        for operand in node.operands:
            value = self.of(operand, bound)
            if truth(value) is decisive:
                break
        return value

    def conditional(self, node: Conditional, bound: Mapping[str, Any]) -> Any:
        for condition, value in node.branches:
            if truth(self.of(condition, bound)):
                return self.of(value, bound)
        return self.of(node.otherwise, bound)

    def comprehension(self, node: Comprehension, bound: Mapping[str, Any]) -> Any:
        costs = self.costs.get(id(node))
        if costs is None:
            costs = self.costs[id(node)] = clause_costs(node)
        first = self.elements(node.clauses[0].iterable, bound)
        elements = self.iterations(node, costs, 0, first, dict(bound))
        if node.kind == "generator":
            return elements
        made, meter = [], self.meter
        for element in elements:
            made.append(element)
            meter.hold(8)
        meter.sized(len(made), "a list")
        meter.hold(56)
        return made

    def iterations(
        self, node: Comprehension, costs: tuple[int, ...], at: int, values: Any, bound: dict[str, Any]
    ) -> Iterator[Any]:
        """Yield the elements of a comprehension.

        Only the clauses from index ``at`` on are run. ``values`` are the values over which the clause at this index iterates.
        """
        clause, cost, meter, of = node.clauses[at], costs[at], self.meter, self.of
        innermost = at == len(node.clauses) - 1
        for value in values:
            meter.step(cost)
            if len(clause.names) == 1:
                bound[clause.names[0]] = value
            else:
                bound.update(zip(clause.names, _unpacked(clause, value), strict=True))
            if not all(truth(of(condition, bound)) for condition in clause.conditions):
                continue
            if innermost:
                yield of(node.element, bound)
            else:
                inner = self.elements(node.clauses[at + 1].iterable, bound)
                yield from self.iterations(node, costs, at + 1, inner, bound)

    def elements(self, node: Expr, bound: Mapping[str, Any]) -> Any:
        """Return the values that a clause iterates over: elements of a list or set, keys of an object, or characters of a string."""
        value = self.of(node, bound)
        found = kind(value)
        if found in ("list", "text", "set"):
            return value
        if found == "object":
            return keys_of(value)
        label = _label(node)
        detail = f": {label} is {a(value)}" if label else "" if value is None else f": {short_json(value)}"
        raise ExprError("type", f"can't iterate over {a(value)} with `for`{detail}", span=node.span)

    def subscript(self, node: Subscript, bound: Mapping[str, Any]) -> Any:
        return subscript(self.meter, self.of(node.value, bound), self.of(node.index, bound))

    def slicing(self, node: Slicing, bound: Mapping[str, Any]) -> Any:
        value = self.of(node.value, bound)
        parts: list[Any] = []
        for part in (node.start, node.stop, node.step):
            given = None if part is None else self.of(part, bound)
            if part is not None and given is None:
                raise ExprError("type", f"null in a slice: {_label(part) or 'null'} is null", span=part.span)
            parts.append(given)
        return sliced(self.meter, value, *parts)

    def call(self, node: Call, bound: Mapping[str, Any]) -> Any:
        called = self.called.get(id(node))
        if called is None:
            called = function(node.function, len(node.arguments), tuple(name for name, _ in node.keywords))
            self.called[id(node)] = called
        arguments = [self.of(argument, bound) for argument in node.arguments]
        named = {name: self.of(value, bound) for name, value in node.keywords} if node.keywords else _EMPTY
        try:
            return called(self.meter, *arguments, **named)
        except ExprError as error:
            if error.kind == "type" and not error.hint and error.span is None:
                error.hint = next(
                    (_of_null(at) for at, value in zip(node.arguments, arguments, strict=True) if value is None), ""
                )
            raise

    def method(self, node: MethodCall, bound: Mapping[str, Any]) -> Any:
        called = self.called.get(id(node))
        if called is None:
            called = self.called[id(node)] = method(node.method, len(node.arguments))
        value = self.of(node.value, bound)
        arguments = [self.of(argument, bound) for argument in node.arguments]
        try:
            return called(self.meter, value, *arguments)
        except ExprError as error:
            if value is None and not error.hint:
                error.hint = _of_null(node.value)
            raise


def _unpacked(clause: Clause, value: Any) -> Sequence[Any]:
    """Return the elements of ``value`` for the names of ``clause``. Raises ``ExprError`` unless there is one for each name."""
    names = ", ".join(clause.names)
    if kind(value) != "list":
        raise ExprError("type", f"can't unpack {a(value)} into {names}: {short_json(value)}", span=clause.span)
    if len(value) != len(clause.names):
        message = f"can't unpack a list of {len(value):,} into {len(clause.names)} names ({names}): {short_json(value)}"
        raise ExprError("value", message, span=clause.span)
    return value  # type: ignore[no-any-return]


_WAYS: Mapping[type, Callable[[_Evaluation, Any, Any], Any]] = {
    Name: _Evaluation.name, Field: _Evaluation.field,
    ListDisplay: _Evaluation.list_display, TupleDisplay: _Evaluation.list_display,
    DictDisplay: _Evaluation.dict_display, Negative: _Evaluation.negative, Power: _Evaluation.power,
    Arithmetic: _Evaluation.arithmetic, Comparison: _Evaluation.comparison, Not: _Evaluation.negation,
    BoolChain: _Evaluation.chain, Conditional: _Evaluation.conditional, Comprehension: _Evaluation.comprehension,
    Subscript: _Evaluation.subscript, Slicing: _Evaluation.slicing, Call: _Evaluation.call,
    MethodCall: _Evaluation.method,
}  # fmt: skip


def _label(node: Expr) -> str:
    """Return the text of a short operand: a name, a field, or ``e["f"]``; "" for any other operand."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Field):
        return f"{node.namespace}.{node.name}"
    if isinstance(node, Subscript) and isinstance(node.value, Name) and isinstance(node.index, Literal):
        return f"{node.value.name}[{short_json(node.index.value)}]"
    return ""


def _operand_text(node: Expr, value: Any) -> str:
    return _label(node) or short_json(value)


def _of_null(node: Expr) -> str:
    label = _label(node)
    return f"{label} is null" if label else ""
