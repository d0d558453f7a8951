"""``knotwork.expr``: expressions in Python. Read, check, format, evaluate and compile them.

Everything is loaded on first use. An expression never reaches Python's ``eval``; its time and memory are bounded.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ...lang.errors import KnotworkError
from . import load_on_first_use

if TYPE_CHECKING:
    from ...lang.diagnostic import Diagnostic
    from ...lang.evaluate.expr import ExprError as EvaluationError
    from ...lang.evaluate.expr import Limits
    from ...lang.parse.expr import ExprRead
    from ...lang.source import Source
    from ...lang.trees.expr import Expr
    from ...lang.trees.seed import Extracted

__all__ = ["ExprError", "ExprRead", "Limits", "check", "compile", "evaluate", "format", "parse"]

_NAMES = {"ExprRead": "lang.parse.expr", "Limits": "lang.evaluate.expr"}


if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)


class ExprError(KnotworkError):
    """Raised if an expression can't be read, or can't be evaluated with the given values.

    ``kind`` is "text" for a text that is not an expression; otherwise it names the cause: "division", "type", "name", "key", "index",
    "value", "limit", "overflow" or "result". ``message`` is one sentence. ``hint`` says what to do, or is empty. ``diagnostics`` has
    at least one error. ``str`` returns ``picture()``.
    """

    def __init__(self, kind: str, diagnostics: "Sequence[Diagnostic]", source: "Source") -> None:
        first = next(each for each in diagnostics if each.severity == "error")
        super().__init__(first.message)
        self.kind = kind
        self.message = first.message
        self.hint = first.hints[0] if first.hints else ""
        from ...lang.diagnostic import compatible

        self.diagnostics = compatible(diagnostics)
        self.source = source

    def picture(self) -> str:
        """Return the errors as text: each message, the source line with a caret, and the hints."""
        from ...lang.diagnostic import has_errors, picture

        return "\n".join(picture(each, self.source) for each in self.diagnostics if has_errors([each]))

    def __str__(self) -> str:
        return self.picture()


def parse(source: "Source | str") -> "ExprRead":
    """Read an expression. Never raises for an invalid text: ``expr`` of the result is then None, and ``diagnostics`` has the errors."""
    from ...lang.parse.expr import parse_expr

    return parse_expr(source)


def check(
    source: "Source | str",
    names: Collection[str] | None = None,
    *,
    row: bool = False,
    fields: "Mapping[str, Extracted] | None" = None,
    context_keys: Collection[str] | None = None,
) -> "list[Diagnostic]":
    """Return errors and warnings in source order.

    ``names`` are the names of the values that the expression may use (None: unknown). If ``row`` is true, the expression is
    evaluated for each extraction of a seed, and may use ``extraction.`` and ``meta.``. ``fields`` are the fields of the seed,
    ``context_keys`` are the keys of the context. Never raises for an invalid expression.
    """
    from ...lang.diagnostic import compatible, sort_key
    from ...lang.linter.expr import check_expr

    read = parse(source)
    if read.expr is None:
        return list(compatible(read.diagnostics))
    found = check_expr(read.expr, names=names, row=row, fields=fields, context_keys=context_keys)
    return list(compatible(sorted([*read.diagnostics, *found], key=sort_key)))


def format(source: "Source | str | Expr") -> str:
    """Return the expression in its canonical format. Raises ``ExprError`` for an expression that can't be read."""
    from ...lang.printer.expr_printer import format_expr

    return format_expr(_read(source)[0])


def evaluate(
    source: "Source | str | Expr",
    values: Mapping[str, Any] | None = None,
    *,
    row: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    limits: "Limits | None" = None,
) -> Any:
    """Return the JSON value of an expression. ``values`` maps names to values. Raises ``ExprError``.

    ``row`` is an extraction of a seed, ``{"extraction": {...}, "meta": {...}}``; ``context`` is the value of ``context``.
    The values are not changed, and the result shares no list or object with them.
    """
    from ...lang.evaluate.expr import ExprError as EvaluationError
    from ...lang.evaluate.expr import Limits, Meter
    from ...lang.evaluate.expr import evaluate as interpret

    limits = limits or Limits()
    expr, text = _read(source, limits.source)
    try:
        return interpret(expr, values or {}, row=row, context=context, meter=Meter(limits))
    except EvaluationError as error:
        _fail(error, text)


def compile(source: "Source | str | Expr") -> Callable[..., Any]:
    """Return a function that evaluates the expression, several times faster than ``evaluate``.

    The function takes a mapping from names to values (default: empty). It returns the same result as ``evaluate`` and raises the same
    errors; the default limits apply. Raises ``ExprError`` for a text that can't be read.
    """
    from ...lang.evaluate.expr import ExprError as EvaluationError
    from ...lang.evaluate.expr.generator import compiled

    expr, text = _read(source)
    run = compiled(expr)

    def value(values: Mapping[str, Any] | None = None) -> Any:
        try:
            return run(values or {})
        except EvaluationError as error:
            _fail(error, text)

    return value


def _read(source: "Source | str | Expr", most: int | None = None) -> "tuple[Expr, Source]":
    from ...lang.diagnostic import Diagnostic, has_errors
    from ...lang.source import Source
    from ...lang.trees import Node

    if isinstance(source, Node):
        return source, Source("")
    if not isinstance(source, Source | str):
        raise TypeError(f"expected the text of an expression, not {type(source).__name__}")
    text = Source(source) if isinstance(source, str) else source
    if most is not None and len(text.text) > most:
        message = f"the expression has {len(text.text):,} characters; the maximum is {most:,}"
        raise ExprError("limit", (Diagnostic("EXPR090", "error", message),), text)
    read = parse(text)
    if read.expr is None or has_errors(read.diagnostics):
        raise ExprError("text", read.diagnostics, read.source)
    return read.expr, read.source


def _fail(error: "EvaluationError", source: "Source") -> NoReturn:
    raise ExprError(error.kind, (error.diagnostic(),), source) from None
