"""What is known of the values in an expression before anything runs: comparisons that no answer can make true."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from ...diagnostic import nearest
from ...expr import Comparison, Expr, ListDisplay, Literal, Name, TupleDisplay
from ...literals import Reading, kind_of, read, short
from ...lwt import Choice, Reference, Template, Word
from ...node import walk
from .registry import Context

__all__ = ["impossible"]

_SCALARS = {"int": "a number", "float": "a number", "bool": "true or false", "text": "a text", "list": "a list"}
_MOST_LABELS = 8


@frozen
class _Known:
    """What a value is: the kind in words, a choice's labels, and whether it is an answer whose type nobody asked for."""

    kind: str = ""
    labels: tuple[str, ...] = ()
    untyped: bool = False


def impossible(context: Context, expr: Expr, values: Mapping[str, Reference]) -> Iterator[tuple[Literal, str, str]]:
    """Yield each literal that a value is compared with and can never be, a message, and a hint.

    ``values`` are the references that the expression's names stand for.
    """
    known = {name: found for name, reference in values.items() if (found := _known(context, reference)) is not None}
    if not known:
        return
    for node in walk(expr):
        if isinstance(node, Comparison):
            left = node.first
            for test, right in node.rest:
                ordered = test in ("<", "<=", ">", ">=")
                for name, literal in _pairs(left, test, right):
                    if name in known and (told := _never(name, values[name], known[name], literal.value, ordered)):
                        yield literal, *told
                left = right


def _pairs(left: Expr, test: str, right: Expr) -> Iterator[tuple[str, Literal]]:
    """Yield the names that are compared with literals: one on each side, or a list of literals on the right of ``in``."""
    if isinstance(left, Name) and test in ("in", "not in") and isinstance(right, ListDisplay | TupleDisplay):
        yield from ((left.name, item) for item in right.items if isinstance(item, Literal))
    elif isinstance(left, Name) and isinstance(right, Literal) and test not in ("in", "not in"):
        yield left.name, right
    elif isinstance(left, Literal) and isinstance(right, Name) and test not in ("in", "not in"):
        yield right.name, left


def _known(context: Context, reference: Reference) -> _Known | None:
    step = context.steps.get(reference.name)
    if reference.accessors or step is None or step.call.operation != "LLM":
        return None
    kind = step.call.option("type")
    if kind is None:
        return _Known(untyped=True)
    if isinstance(kind, Choice):
        labels = tuple(label.constant.strip() for label in kind.labels if label.constant)
        return _Known("a text", labels)
    name = kind.value if isinstance(kind, Word) else kind.constant if isinstance(kind, Template) else None
    return _Known(_SCALARS[name]) if name in _SCALARS else None


def _never(
    name: str, reference: Reference, known: _Known, value: bool | int | float | str | None, ordered: bool
) -> tuple[str, str] | None:
    """Return message and hint where the value can't be the literal; a comparison with null is always meant."""
    if value is None or (ordered and known.kind == "a text" and isinstance(value, str)):
        return None
    shown = (
        short(value) if isinstance(value, str) else "true" if value is True else "false" if value is False else value
    )
    if known.untyped:
        if not isinstance(value, str) or not isinstance(found := read(value), Reading):
            return None
        message = f"{name} is never the text {shown}: an answer that reads as a value is that value"
        written = value.strip() if found.how == "json" else str(found.value)
        return message, f"compare it with {written[:40]}, or give ({reference.name}) the option `type=text`"
    if known.labels and isinstance(value, str):
        if value in known.labels:
            return None
        near = nearest(value, known.labels)
        there = ", ".join(short(label) for label in known.labels[:_MOST_LABELS])
        hint = f"did you mean {short(near)}?" if near else f"({reference.name}) is one of {there}"
        return f"{name} is never {shown}", hint
    kind = "true or false" if isinstance(value, bool) else kind_of(value)
    if kind == known.kind:
        return None
    return (
        f"{name} is {known.kind}, never {kind}",
        f"({reference.name}) has the option `type=`; compare with what it can be",
    )
