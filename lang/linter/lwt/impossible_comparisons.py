"""Comparisons in expressions that can never be true, because the types of the compared values are known before the run."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from ...diagnostic import nearest
from ...literals import Reading, kind_of, read, short
from ...trees import walk
from ...trees.expr import Comparison, Expr, ListDisplay, Literal, Name, TupleDisplay
from ...trees.lwt import Choice, Reference, Template, Word
from .context import Context

_SCALARS = {"int": "a number", "float": "a number", "bool": "true or false", "text": "a string", "list": "a list"}
_MOST_LABELS = 8


@frozen
class _Known:
    """The known facts about a value: its kind in words, the labels if it is a choice, and whether it is an untyped answer."""

    kind: str = ""
    labels: tuple[str, ...] = ()
    untyped: bool = False


def impossible(context: Context, expr: Expr, values: Mapping[str, Reference]) -> Iterator[tuple[Literal, str, str]]:
    """Yield each literal that never equals the value it is compared with.

    Each literal has a message and a hint. ``values`` maps the names in the expression to the references that they are bound to.
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
    """Yield a name with each literal that it is compared with.

    A name is compared with the literal on the other side, or with each literal in a list after ``in``.
    """
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
        return _Known("a string", labels)
    name = kind.value if isinstance(kind, Word) else kind.constant if isinstance(kind, Template) else None
    return _Known(_SCALARS[name]) if name in _SCALARS else None


def _never(
    name: str, reference: Reference, known: _Known, value: bool | int | float | str | None, ordered: bool
) -> tuple[str, str] | None:
    """Return a message and a hint if the value of ``reference`` never equals the literal ``value``.

    A comparison with null is always allowed.
    """
    if value is None or (ordered and known.kind == "a string" and isinstance(value, str)):
        return None
    shown = (
        short(value) if isinstance(value, str) else "true" if value is True else "false" if value is False else value
    )
    if known.untyped:
        if not isinstance(value, str) or not isinstance(found := read(value), Reading):
            return None
        message = f"{name} is never the string {shown}: an answer that can be read as a JSON value becomes that value"
        written = value.strip() if found.how == "json" else str(found.value)
        return message, f"compare with {written[:40]}, or add the option `type=text` to ({reference.name})"
    if known.labels and isinstance(value, str):
        if value in known.labels:
            return None
        near = nearest(value, known.labels)
        there = ", ".join(short(label) for label in known.labels[:_MOST_LABELS])
        hint = f"did you mean {short(near)}?" if near else f"the labels of ({reference.name}) are {there}"
        return f"{name} is never {shown}", hint
    kind = "true or false" if isinstance(value, bool) else kind_of(value)
    if kind == known.kind:
        return None
    return (
        f"{name} is {known.kind}, never {kind}",
        f"the option `type=` of ({reference.name}) determines its type",
    )
