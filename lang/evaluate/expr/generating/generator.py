"""The code generator: an expression as Python code, equal to the interpreter in every value and every error.

The code is the quick way for values of the common types and sizes. Where a guard fails, or anything is raised, the
interpreter evaluates the expression, and what it gives or raises is the answer.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from ....expr import Arithmetic, Call, Comparison, Expr, Field, Literal, Name, Negative, Power
from ....node import walk
from ..interpreter import evaluate
from .calls import call
from .kinds import ANYTHING, CHECKED, Code, number_test
from .writer import Unsupported, Writer, cost_bound, memory_bound

__all__ = ["compiled", "function_of"]

_MOST_NODES = 2_000
"""Beyond this compiling takes longer than it saves."""


def compiled(expr: Expr) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function of the values by their names that gives what ``evaluate(expr, names)`` gives, and raises what it raises.

    What has no generated form, or is very large, is evaluated by the interpreter.
    """

    def reference(names: Mapping[str, Any]) -> Any:
        return evaluate(expr, names)

    if sum(1 for _ in islice(walk(expr), _MOST_NODES + 1)) > _MOST_NODES:
        return reference
    try:
        return _generated(expr, reference)
    except (Unsupported, RecursionError):  # nested deeper than any text
        return reference


def _generated(expr: Expr, reference: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
    loads: dict[str, str] = {}
    numeric = _numeric_names(expr)
    locals_: dict[str, Code] = {}

    def resolve(node: Name | Field) -> Code:
        if isinstance(node, Field):
            raise Unsupported
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
    # A mapping that makes up what it lacks would hide a name that isn't there.
    guard = ["   names.__class__ is dict or fail()\n"] if loads else []
    lines = [*guard, *loads.values(), *meter, f"   return {answer}\n"]
    text = f"def run(names):\n  try:\n{''.join(lines)}  except Exception:\n   pass\n  return reference(names)\n"
    return function_of(text, "run", {**writer.space, "reference": reference})


def function_of(text: str, name: str, space: dict[str, Any]) -> Callable[..., Any]:
    """Return the function ``name`` that the generated ``text`` defines. Raises ``Unsupported`` where Python can't compile it."""
    try:
        # The text was put together from the generator's own words; names and constants are in `space`.
        exec(compile(text, "<expression>", "exec"), space)  # noqa: S102
    except (SyntaxError, RecursionError, MemoryError):  # too deep for Python's parser
        raise Unsupported from None
    made: Callable[..., Any] = space[name]
    return made


def _numeric_names(expr: Expr) -> set[str]:
    """Return the names that stand only where a number must stand: what is guarded once, before anything is computed."""
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
            (len(node.arguments) > 1 and node.function != "percentile") or node.function in _OF_NUMBERS
        ):
            operands = list(node.arguments)
        numeric.update(id(operand) for operand in operands)
    names = [node for node in walk(expr) if isinstance(node, Name)]
    others = {node.name for node in names if id(node) not in numeric}
    return {node.name for node in names} - others


_OF_NUMBERS = frozenset({"abs", "ceil", "exp", "floor", "ln", "log", "log10", "log2", "round", "sqrt"})


def _ordered(node: Comparison) -> list[Expr]:
    """Return the operands of a comparison that compares numbers: one of them is a number as it is written."""
    operands = [node.first, *(operand for _, operand in node.rest)]
    numbers = any(isinstance(each, Literal) and type(each.value) in (int, float) for each in operands)
    return operands if numbers and all(test in ("<", "<=", ">", ">=", "==", "!=") for test, _ in node.rest) else []
