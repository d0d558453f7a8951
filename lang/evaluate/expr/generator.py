"""Code generator: compiles an expression into Python code with the same values and errors as the interpreter.

The code is the fast path for values of common types and sizes. If a guard fails, or the code raises any exception, the
interpreter evaluates the expression, and the interpreter's value or error is the result.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from attrs import evolve

from ...catalogue.operations import FUNCTIONS
from ...trees import walk
from ...trees.expr import Arithmetic, Call, Comparison, Comprehension, Expr, Field, Literal, Name, Negative, Power
from .functions import FUNCTION_TABLE
from .generator_types import (
    ANYTHING,
    BOOLEAN,
    CHECKED,
    OTHER,
    Code,
    Kind,
    Unsupported,
    integer,
    number,
    number_test,
    union,
)
from .generator_writer import Unsupported as ExprUnsupported
from .generator_writer import Writer, cost_bound, memory_bound
from .interpreter import evaluate

# Code for calls of common functions. Calls of other functions, or with unusual arguments, call the interpreter's functions.

_MOST_ELEMENTS_BITS = 40
"""A number of bits that is sufficient to count the elements of any list."""
_KEYWORDS = {name: name for name in ("default", "key", "reverse", "start")}
_COUNT = integer(_MOST_ELEMENTS_BITS)


def call(writer: Writer, expr: Call) -> Code:
    """Return the code of a call. Raises ``Unsupported`` if the call has no generated form."""
    write = None if expr.keywords else _CALLS.get(expr.function)
    code = None if write is None else write(writer, expr)
    return _general(writer, expr) if code is None else code


def _general(writer: Writer, expr: Call) -> Code:
    """Return code that calls the interpreter's own function."""
    signature = FUNCTIONS.get(expr.function)
    names = [name for name, _ in expr.keywords]
    if signature is None or not signature.least <= len(expr.arguments) <= (signature.most or 255):
        raise Unsupported
    if len(set(names)) < len(names) or not set(names) <= set(signature.keywords):
        raise Unsupported
    arguments = []
    for argument in expr.arguments:
        if not isinstance(argument, Comprehension) or argument.kind == "list":
            arguments.append(writer.write(argument))
        elif not signature.comprehension:  # the function may return its argument, and a list is not a generator
            raise Unsupported
        else:  # a list is charged at least as much as a generator
            arguments.append(Code(f"[{writer.comprehension(argument, writer.write)}]", OTHER))
    # The generated code contains only text from this module, so keywords are looked up here too.
    options = "".join(f", {_KEYWORDS[name]}={writer.write(value).text}" for name, value in expr.keywords)
    return writer.ask(FUNCTION_TABLE[expr.function], *arguments, options=options)


def _numbers(writer: Writer, expr: Call, count: int) -> list[Code] | None:
    """Return the code of a call's arguments as numbers. Return None if there are not ``count`` arguments, or if one can't be a number."""
    if len(expr.arguments) != count or any(isinstance(argument, Comprehension) for argument in expr.arguments):
        return None
    codes = [writer.write(argument) for argument in expr.arguments]
    if not all(code.kind.may("int", "float") for code in codes):
        return None
    return [writer.number(code) for code in codes]


def _abs(writer: Writer, expr: Call) -> Code | None:
    codes = _numbers(writer, expr, 1)
    return Code(f"abs({codes[0].text})", codes[0].kind) if codes else None


def _rounded(writer: Writer, expr: Call) -> Code | None:
    """Return the code of ``floor``, ``ceil`` or ``round`` for one number, or of ``round(x, digits)``; None for other arguments."""
    if expr.function == "round" and len(expr.arguments) == 2 and isinstance(expr.arguments[1], Literal):
        codes, digits = _numbers(writer, evolve(expr, arguments=expr.arguments[:1]), 1), expr.arguments[1].value
        if not codes or type(digits) is not int or not 0 <= digits <= 15:
            return None
        return Code(f"round({codes[0].text}, {digits})", codes[0].kind)
    codes = _numbers(writer, expr, 1)
    return Code(f"{_ROUNDING[expr.function]}({codes[0].text})", integer(codes[0].kind.bits + 1)) if codes else None


_ROUNDING = {"floor": "floor", "ceil": "ceil", "round": "round"}


def _logarithm(writer: Writer, expr: Call) -> Code | None:
    codes = _numbers(writer, expr, 1)
    function = {"ln": "log", "log": "log", "log2": "log2", "log10": "log10", "sqrt": "sqrt"}[expr.function]
    return Code(f"{function}({codes[0].text})", number(max(11, codes[0].kind.bits), fraction=True)) if codes else None


def _bool(writer: Writer, expr: Call) -> Code | None:
    if len(expr.arguments) != 1 or isinstance(expr.arguments[0], Comprehension):
        return None
    return Code(f"bool({writer.truth(writer.write(expr.arguments[0])).text})", BOOLEAN)


def _len(writer: Writer, expr: Call) -> Code | None:
    if len(expr.arguments) == 1 and isinstance(expr.arguments[0], Comprehension) and expr.arguments[0].kind == "list":
        return Code(f"len({writer.write(expr.arguments[0]).text})", _COUNT)
    return None


def _any(writer: Writer, expr: Call) -> Code | None:
    argument = expr.arguments[0] if len(expr.arguments) == 1 else None
    if not isinstance(argument, Comprehension):
        return None
    inner = writer.comprehension(argument, lambda element: writer.truth(writer.write(element)))
    return Code(f"{'any' if expr.function == 'any' else 'all'}({inner})", BOOLEAN)


def _sum(writer: Writer, expr: Call) -> Code | None:
    argument = expr.arguments[0] if len(expr.arguments) == 1 else None
    if not isinstance(argument, Comprehension):
        return None
    if argument.element == Literal(1):
        return Code(f"len([{writer.comprehension(argument, writer.write)}])", _COUNT)
    kinds: list[Kind] = []

    def element(expr: Expr) -> Code:
        code = writer.number(writer.write(expr))
        kinds.append(code.kind)
        return code

    text = writer.comprehension(argument, element)
    # The sum of no elements is the integer 0, whatever the element type.
    kind = number(kinds[0].bits + _MOST_ELEMENTS_BITS, whole=True, fraction=kinds[0].may("float"))
    return Code(f"total([{text}])", kind)


def _extreme(writer: Writer, expr: Call) -> Code | None:
    codes = _numbers(writer, expr, max(2, len(expr.arguments)))
    if not codes or len(codes) > 255:
        return None
    kind = union(*(code.kind for code in codes))
    name, sign, flipped = ("max", ">", "<") if expr.function == "max" else ("min", "<", ">")
    if len(codes) > 2:
        return Code(f"{name}({', '.join(code.text for code in codes)})", kind)
    # A comparison takes half the time of a call. If the values are equal, the first is returned, as in Python.
    (first, again), (second, then) = writer.twice(codes[0]), writer.twice(codes[1])
    if codes[0].simple:
        return Code(f"({then} if {second} {sign} {again} else {again})", kind)
    return Code(f"({then} if {first} {flipped} {second} else {again})", kind)


_CALLS: Mapping[str, Callable[[Writer, Call], Code | None]] = {
    "abs": _abs, "all": _any, "any": _any, "bool": _bool, "ceil": _rounded, "floor": _rounded, "len": _len,
    "ln": _logarithm, "log": _logarithm, "log10": _logarithm, "log2": _logarithm, "max": _extreme, "min": _extreme,
    "round": _rounded, "sqrt": _logarithm, "sum": _sum,
}  # fmt: skip
"""Maps each function that has inline code to the writer of this code; the writer returns None for unsuitable arguments."""

_MOST_NODES = 2_000
"""Maximum number of nodes in an expression. Compiling a larger expression takes longer than it saves."""


def compiled(expr: Expr) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function ``names -> value`` that returns the same values and raises the same errors as ``evaluate(expr, names)``.

    A very large expression, or an expression that has no generated form, is evaluated by the interpreter.
    """

    def reference(names: Mapping[str, Any]) -> Any:
        return evaluate(expr, names)

    if sum(1 for _ in islice(walk(expr), _MOST_NODES + 1)) > _MOST_NODES:
        return reference
    try:
        return _generated(expr, reference)
    except (ExprUnsupported, RecursionError):  # a tree that was built in code can be too deep
        return reference


def _generated(expr: Expr, reference: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
    loads: dict[str, str] = {}
    numeric = _numeric_names(expr)
    locals_: dict[str, Code] = {}

    def resolve(node: Name | Field) -> Code:
        if isinstance(node, Field):
            raise ExprUnsupported
        if node.name not in locals_:
            text = writer.local("n")
            kind = CHECKED if node.name in numeric else ANYTHING
            locals_[node.name] = Code(text, kind, simple=True)
            guard = f"{number_test(text)} or is_number({text})" if kind is CHECKED else f"known({text})"
            loads[node.name] = f"   {text} = names[{writer.keep(node.name)}]\n   {guard}\n"
        return locals_[node.name]

    writer = Writer(resolve, call)
    answer = writer.result(writer.write(expr)).text
    bounds = f"{cost_bound(expr)}, {memory_bound(expr)}"
    meter = [f"   meter = metered({bounds})\n"] if writer.meter else []
    # A mapping that generates defaults (such as defaultdict) would hide a missing name.
    guard = ["   names.__class__ is dict or fail()\n"] if loads else []
    lines = [*guard, *loads.values(), *meter, f"   return {answer}\n"]
    text = f"def run(names):\n  try:\n{''.join(lines)}  except Exception:\n   pass\n  return reference(names)\n"
    return function_of(text, "run", {**writer.space, "reference": reference})


def function_of(text: str, name: str, space: dict[str, Any]) -> Callable[..., Any]:
    """Return the function ``name`` defined by the generated ``text``. Raises ``Unsupported`` if Python can't compile it."""
    try:
        # The code contains only text from the generator; names and constants are in `space`.
        exec(compile(text, "<expression>", "exec"), space)  # noqa: S102
    except (SyntaxError, RecursionError, MemoryError):  # the text is nested too deeply for Python's parser
        raise ExprUnsupported from None
    made: Callable[..., Any] = space[name]
    return made


def _numeric_names(expr: Expr) -> set[str]:
    """Return the names that occur only as operands that must be numbers. Their values are checked once, before anything is computed."""
    numeric: set[int] = set()
    for node in walk(expr):
        operands: list[Expr] = []
        if isinstance(node, Arithmetic):
            operands = [node.first, *(operand for _, operand in node.rest)]
        elif isinstance(node, Negative):
            operands = [node.operand]
        elif isinstance(node, Power):
            operands = [node.base, node.exponent]
        elif isinstance(node, Comparison):
            operands = _ordered(node)
        elif isinstance(node, Call) and (
            node.function in _OF_NUMBERS or (node.function in ("max", "min") and len(node.arguments) > 1)
        ):
            operands = list(node.arguments)
        numeric.update(id(operand) for operand in operands)
    names = [node for node in walk(expr) if isinstance(node, Name)]
    others = {node.name for node in names if id(node) not in numeric}
    return {node.name for node in names} - others


_OF_NUMBERS = frozenset({"abs", "ceil", "clamp", "exp", "floor", "ln", "log", "log10", "log2", "round", "sqrt"})


def _ordered(node: Comparison) -> list[Expr]:
    """Return the operands of a comparison that tests order or equality. Return [] for other tests, or if no operand is a number literal."""
    operands = [node.first, *(operand for _, operand in node.rest)]
    numbers = any(isinstance(each, Literal) and type(each.value) in (int, float) for each in operands)
    return operands if numbers and all(test in ("<", "<=", ">", ">=", "==", "!=") for test, _ in node.rest) else []
