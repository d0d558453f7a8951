"""Writer of Python code for expressions: operators, comparisons, branches. Names and constants are put into a namespace.

The code contains only text from this module, generated names and numbers, never text from the expression. The code either gives the same
value as the interpreter or raises an exception; a failed guard raises ``Fallback``.
"""

import math
from collections.abc import Callable
from typing import Any

from attrs import define, evolve, field

from ...catalogue.operations import METHODS, Function
from ...trees import walk
from ...trees.expr import (
    Arithmetic,
    BoolChain,
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
from ...trees.expr import Call as FunctionCall
from .arithmetic import OPERATORS
from .comparison import sliced, subscript
from .functions import METHOD_TABLE
from .generator_types import (
    ANYTHING,
    BOOLEAN,
    CHECKED,
    FLOAT_BITS,
    FOREIGN,
    MOST_BITS,
    OTHER,
    RESULT_BITS,
    SPACE,
    Code,
    Kind,
    Unsupported,
    compared,
    constant_kind,
    contained,
    number,
    number_test,
    union,
)

__all__ = ["Unsupported", "Writer", "cost_bound", "memory_bound"]

_DEEPEST = 60
"""Maximum nesting depth of generated code. Python's own parser accepts about 200 nested parentheses."""


@define
class Writer:
    """Writes the code of expressions. ``resolve`` returns the code of a name or a field, or raises ``Unsupported``.

    ``meter`` is true if the code uses the local name ``meter``.
    """

    resolve: Callable[[Name | Field], Code]
    calls: Callable[["Writer", FunctionCall], Code]
    space: dict[str, Any] = field(factory=lambda: dict(SPACE))
    meter: bool = False
    _texts: dict[str, str] = field(factory=dict)
    _variables: dict[str, Code] = field(factory=dict)
    _made: int = 0
    _assigns: bool = True
    _depth: int = 0

    def keep(self, value: Any) -> str:
        """Add ``value`` to the namespace under a new name, and return this name."""
        if isinstance(value, str) and value in self._texts:
            return self._texts[value]
        name = f"c{len(self.space)}"
        self.space[name] = value
        if isinstance(value, str):
            self._texts[value] = name
        return name

    def local(self, letter: str = "t") -> str:
        """Return a new local name."""
        self._made += 1
        return f"{letter}{self._made}"

    def constant(self, value: Any) -> Code:
        """Return the code of a known value."""
        if value is None or value is True or value is False:
            text = repr(value)
        elif (type(value) is int and value.bit_length() <= 64) or (type(value) is float and math.isfinite(value)):
            digits = repr(value)
            text = f"({digits})" if digits.startswith("-") else digits
        else:
            text = self.keep(value)
        return Code(text, constant_kind(value), simple=True, total=True, value=(value,))

    def twice(self, code: Code) -> tuple[str, str]:
        """Return two texts for a value that is used twice: the first evaluates ``code``, and the second refers to its value."""
        if code.simple:
            return code.text, code.text
        if not self._assigns:
            raise Unsupported
        name = self.local()
        return f"({name} := {code.text})", name

    def number(self, code: Code, *, loose: bool = False) -> Code:
        """Return ``code`` with guards that let only numbers suitable for arithmetic pass.

        If ``loose``, a float may also be infinite or NaN. Use ``loose`` only if an infinite operand or NaN makes the computed result
        infinite or NaN too.
        """
        if code.kind.numeric or (loose and code.kind.within("float")):
            return code
        if not code.kind.may("int", "float"):
            return Code("fail()", CHECKED)  # the interpreter reports the error
        first, again = self.twice(code)
        kind = code.kind.without("null")
        if kind.numeric:
            return Code(f"({again} if {first} is not None else fail())", kind)
        if not code.simple:
            return Code(f"({again} if {number_test(first, again)} or is_number({again}) else 0)", CHECKED)
        return Code(f"({again} if {number_test(again)} or is_number({again}) else 0)", CHECKED)

    def ask(self, function: Callable[..., Any], *arguments: Code, kind: Kind = ANYTHING, options: str = "") -> Code:
        """Return code that calls one of the interpreter's functions with ``(meter, value, ...)``."""
        self.meter = True
        texts = ", ".join(["meter", *(argument.text for argument in arguments)])
        return Code(f"{self.keep(function)}({texts}{options})", kind)

    def truth(self, code: Code) -> Code:
        """Return ``code`` with the guards that a truth test needs. A number must be finite; any other value must be JSON."""
        if code.kind.within("int", "float"):
            return self.number(code)
        return evolve(code, text=f"known({code.text})", simple=False) if code.kind.may("foreign") else code

    def result(self, code: Code) -> Code:
        """Return ``code`` as a result of the expression, with the checks that are still needed."""
        kind = code.kind.without("null")
        if kind.within("bool"):
            return code
        if kind.within("str"):
            return Code(f"text_result({code.text})", code.kind)
        if not kind.within("int", "float"):
            self.meter = True
            return Code(f"result(meter, {code.text})", ANYTHING)
        if kind.may("int") and kind.int_bits > MOST_BITS:
            code = self.number(code)
            kind = code.kind
        large = (kind.may("int") and kind.int_bits > RESULT_BITS) or (kind.may("float") and kind.float_bits > MOST_BITS)
        if not large:
            return code
        return Code(f"is_result({code.text})", evolve(code.kind, int_bits=RESULT_BITS, float_bits=FLOAT_BITS))

    def inside(self, resolve: Callable[[Name | Field], Code], expr: Expr) -> Code:
        """Return the code of ``expr``, using ``resolve`` for its names and fields."""
        before, self.resolve = self.resolve, resolve
        code = self.write(expr)
        self.resolve = before
        return code

    def write(self, expr: Expr) -> Code:
        """Return the code of ``expr``, with a guard if it may compute an infinite number. Raises ``Unsupported``."""
        code = self._loose(expr)
        if code.kind.within("int", "float") and not code.kind.numeric:
            return self.number(code)  # otherwise an infinite number or NaN could disappear in a comparison
        return code

    def _loose(self, expr: Expr) -> Code:
        """Return the code of ``expr`` as an operand of arithmetic.

        The operand may be infinite: then the result is infinite too, and is checked later.
        """
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unsupported
        code = self._write(expr)
        self._depth -= 1
        return code

    def _write(self, expr: Expr) -> Code:
        match expr:
            case Literal():
                return self.constant(expr.value)
            case Name() if expr.name in self._variables:
                return self._variables[expr.name]
            case Name() | Field():
                return self.resolve(expr)
            case Arithmetic():
                return self._arithmetic(expr)
            case Comparison():
                return self._comparison(expr)
            case BoolChain():
                return self._chain(expr)
            case Conditional():
                return self._conditional(expr)
            case Not():
                operand = self.truth(self.write(expr.operand))
                return Code(f"(not {operand.text})", BOOLEAN, total=operand.total)
            case Negative():
                operand = self.number(self._loose(expr.operand), loose=True)
                return Code(f"(-{operand.text})", operand.kind, total=operand.total)
            case Power():
                return self._power(expr)
            case Subscript():
                return self._subscript(expr)
            case Slicing():
                return self._slicing(expr)
            case DictDisplay():
                return self._object(expr)
            case ListDisplay() | TupleDisplay():
                items = ", ".join(self.write(item).text for item in expr.items)
                self.meter = True
                return Code(f"(meter.hold({56 + 8 * len(expr.items)}) or [{items}])", OTHER)
            case MethodCall():
                return self._method(expr)
            case FunctionCall():
                return self.calls(self, expr)
            case Comprehension(kind="list"):
                return Code(f"[{self.comprehension(expr, self.write)}]", OTHER)
            case _:
                raise Unsupported

    def _arithmetic(self, expr: Arithmetic) -> Code:
        left = self._loose(expr.first)
        for operator, operand in expr.rest:
            right, loose = self._loose(operand), operator in "+-*"
            if not left.kind.may("int", "float") or not right.kind.may("int", "float"):
                left = self.ask(OPERATORS[operator], left, right)
                continue
            a, b = self.number(left, loose=loose or operator == "/"), self.number(right, loose=loose)
            left = Code(f"({a.text} {operator} {b.text})", _arithmetic_kind(operator, a, b))
            if left.kind.may("int") and left.kind.int_bits > MOST_BITS:
                left = self.number(left)
        return left

    def _comparison(self, expr: Comparison) -> Code:
        left, texts, total = self.write(expr.first), [], True
        for at, (test, operand) in enumerate(expr.rest):
            if test in ("in", "not in") and at + 1 == len(expr.rest):
                pair = contained(self, test, left, operand)
            else:
                right = self.write(operand)
                if at + 1 < len(expr.rest) and not right.simple:
                    text, again = self.twice(right)
                    right, following = evolve(right, text=text), evolve(right, text=again, simple=True)
                else:
                    following = right
                pair, left = compared(self, test, left, right), following
            texts.append(pair.text)
            total = total and pair.total
        return Code(texts[0] if len(texts) == 1 else f"({' and '.join(texts)})", BOOLEAN, total=total)

    def _chain(self, expr: BoolChain) -> Code:
        codes = [self.truth(self.write(operand)) for operand in expr.operands]
        text = f" {expr.operator} ".join(code.text for code in codes)
        return Code(f"({text})", union(*(code.kind for code in codes)), total=all(code.total for code in codes))

    def _conditional(self, expr: Conditional) -> Code:
        branches = [(self.truth(self.write(test)), self.write(value)) for test, value in expr.branches]
        last = self.write(expr.otherwise)
        text = "".join(f"{value.text} if {test.text} else " for test, value in branches) + last.text
        codes = [*(code for branch in branches for code in branch), last]
        kind = union(*(value.kind for _, value in branches), last.kind)
        return Code(f"({text})", kind, total=all(code.total for code in codes))

    def _power(self, expr: Power) -> Code:
        base, exponent = self.number(self.write(expr.base)), self.number(self.write(expr.exponent))
        value = exponent.value[0] if exponent.value else None
        if type(value) is int and 1 <= value <= 64 and base.kind.bits * value <= 900:
            kind = number(base.kind.bits * value, whole=base.kind.may("int"), fraction=base.kind.may("float"))
            return Code(f"({base.text} ** {exponent.text})", kind)
        return Code(f"power({base.text}, {exponent.text})", CHECKED)

    def _subscript(self, expr: Subscript) -> Code:
        return self.ask(subscript, self.write(expr.value), self.write(expr.index), kind=FOREIGN)

    def _method(self, expr: MethodCall) -> Code:
        if expr.method not in METHODS or not METHODS[expr.method].least <= len(expr.arguments) <= _most(
            METHODS[expr.method]
        ):
            raise Unsupported
        value, arguments = self.write(expr.value), [self.write(argument) for argument in expr.arguments]
        kind = BOOLEAN if expr.method in ("startswith", "endswith") else FOREIGN if expr.method == "get" else ANYTHING
        return self.ask(METHOD_TABLE[expr.method], value, *arguments, kind=kind)

    def _slicing(self, expr: Slicing) -> Code:
        parts = [
            self.constant(None) if part is None else self.write(part) for part in (expr.start, expr.stop, expr.step)
        ]
        if any(
            given.kind.may("null")
            for given, part in zip(parts, (expr.start, expr.stop, expr.step), strict=True)
            if part
        ):
            raise Unsupported
        return self.ask(sliced, self.write(expr.value), *parts)

    def _object(self, expr: DictDisplay) -> Code:
        self.meter = True
        entries = [f"({self.write(key).text}, {self.write(value).text})" for key, value in expr.entries]
        return Code(f"object_of({', '.join(['meter', *entries])})", OTHER)

    def comprehension(self, expr: Comprehension, element: Callable[[Expr], Code], before: str = "") -> str:
        """Return the text ``element for ...``.

        The function ``element`` writes the element. If the text ``before`` is given, it is used in place of the element.
        """
        outer, clauses = dict(self._variables), []
        for clause in expr.clauses:
            if clause.variable is None:
                raise Unsupported
            parts = (*clause.conditions, expr.element)
            cost = f"{2 + sum(map(cost_bound, parts))}, {16 + sum(map(memory_bound, parts))}"
            assigns, self._assigns = self._assigns, False
            source = self.write(clause.iterable).text
            self._assigns = assigns
            name = self.local("e")
            self._variables[clause.variable] = Code(name, ANYTHING, simple=True, total=True)
            conditions = "".join(f" if {self.truth(self.write(each)).text}" for each in clause.conditions)
            clauses.append(f" for {name} in iterated(meter, {source}, {cost}){conditions}")
        text = before or element(expr.element).text
        self._variables, self.meter = outer, True
        return text + "".join(clauses)


def cost_bound(expr: Expr) -> int:
    """Return the maximum number of steps for one evaluation of ``expr``, not counting steps of functions that iterate."""
    nodes = list(walk(expr))
    texts = [node.value for node in nodes if isinstance(node, Literal) and isinstance(node.value, str)]
    made = sum(isinstance(node, ListDisplay | TupleDisplay | DictDisplay) for node in nodes)
    return 2 + len(nodes) + made + len(nodes) // 8 + sum(len(text) >> 7 for text in texts)


def memory_bound(expr: Expr) -> int:
    """Return the bytes that the interpreter charges for the literal lists in one evaluation of ``expr``."""
    return sum(56 + 8 * len(node.items) for node in walk(expr) if isinstance(node, ListDisplay | TupleDisplay))


def _most(function: Function) -> int:
    return 255 if function.most is None else function.most


def _arithmetic_kind(operator: str, a: Code, b: Code) -> Kind:
    ints = a.kind.may("int") and b.kind.may("int")
    floats = a.kind.may("float") or b.kind.may("float")
    if operator in "+-":
        return number(max(a.kind.bits, b.kind.bits) + 1, whole=ints, fraction=floats)
    if operator == "*":
        return number(a.kind.bits + b.kind.bits, whole=ints, fraction=floats)
    least = _least_bits(b)
    if operator == "/":
        return number(a.kind.bits + least, fraction=True)
    if operator == "//":
        return Kind(number(0, whole=ints, fraction=floats).types, a.kind.bits + 1, a.kind.bits + 1 + least)
    return number(b.kind.bits, whole=ints, fraction=floats)


def _least_bits(divisor: Code) -> float:
    """Return the maximum number of bits that a division by ``divisor`` can add."""
    if divisor.value and divisor.value[0]:
        return max(0.0, -math.log2(abs(divisor.value[0])) + 1)
    return math.inf if divisor.kind.may("float") else 0.0
