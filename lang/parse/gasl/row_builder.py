"""Builds the nodes of the commands on rows: SELECT, UNNEST, COUNT, AGGREGATE, RANK, JOIN and set operations."""

from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen
from lark import Token

from ...printer.gasl_printer import format_condition, format_name
from ...source import Span
from ...trees import gasl
from ...trees.conditions import Constant
from ...trees.gasl import Computation, Name, NamedValue, OnPair, Order
from ..repairs import Unbuildable
from .condition_builder import quoted_name
from .nodes import Option, between, given_options, is_token, number_of, number_or_variable, span_of


class RowBuilder:
    """The callbacks for the commands on rows. Stateless."""

    def sorting(self, children: list[Any]) -> Order:
        """Build ``value [DESC|ASC]``."""
        value, *way = children
        return Order(value, _descending(way), span=span_of(way[0]) | value.span if way else value.span)

    def select(self, children: list[Any]) -> gasl.Select:
        """Build ``SELECT [DISTINCT] var [FIELDS value [AS name], ...] [WHERE ...] [SAMPLE n] AS var``."""
        word, *parts, into = children
        distinct = is_token(parts[0], "DISTINCT")
        source, *rest = parts[1:] if distinct else parts
        given = given_options(part for part in rest if isinstance(part, Option))
        columns = _columns([part for part in rest if not isinstance(part, Option)], into.name, fields=True)
        span = between(word, into)
        if not columns and not given and not distinct:
            hint = f"write SELECT {source.text} FIELDS field AS {into.name.text}, or WHERE condition"
            raise Unbuildable("GASL010", "SELECT needs FIELDS, WHERE, SAMPLE or DISTINCT", span, (hint,))
        return gasl.Select(source, columns, given.get("WHERE"), into.name, distinct, given.get("SAMPLE"), span=span)

    def sample(self, children: list[Any]) -> Option:
        """Build ``SAMPLE n``."""
        return Option("SAMPLE", number_or_variable(children[1]), between(*children))

    def alias(self, children: list[Name]) -> "_Alias":
        """Return the name of a column."""
        return _Alias(children[0], children[0].span)

    def into(self, children: list[Name]) -> "_Alias":
        """Return the name of the command's variable."""
        return _Alias(children[0], children[0].span)

    def keys(self, children: list[Any]) -> tuple[NamedValue, ...]:
        """Return the values of BY in AGGREGATE."""
        return _columns(children, None)

    def unnest(self, children: list[Any]) -> gasl.Unnest:
        """Build ``UNNEST var BY value [AS name] AS var``."""
        word, source, *values, into = children
        by = _columns(values, into.name)
        if len(by) > 1:
            hint = "write one UNNEST for each list"
            raise Unbuildable("GASL008", "UNNEST takes one list", by[1].span, (hint,))
        return gasl.Unnest(source, by[0], into.name, span=between(word, into))

    def count(self, children: list[Any]) -> gasl.Count:
        """Build ``COUNT var [BY value [AS name], ...] AS var``."""
        word, source, *values, into = children
        return gasl.Count(source, _columns(values, into.name), into.name, span=between(word, into))

    def aggregate(self, children: list[Any]) -> gasl.Aggregate:
        """Build ``AGGREGATE var [BY value, ...] COMPUTE sum(x) [AS name], ... AS var``."""
        word, source, *rest, into = children
        by: tuple[NamedValue, ...] = ()
        computations: list[Computation] = []
        for part in rest:
            if isinstance(part, tuple):
                by = part
            elif isinstance(part, _Alias):
                last = computations[-1]
                computations[-1] = evolve(last, name=part.name, span=last.span | part.span)
            else:
                computations.append(part)
        return gasl.Aggregate(source, by, tuple(computations), into.name, span=between(word, into))

    def computation(self, children: list[Any]) -> Computation:
        """Build ``sum(x)``, ``count(DISTINCT x)`` or ``percentile(x, 0.95)``."""
        function, *parts, close = children
        kind, span = function.lower(), between(function, close)
        distinct = bool(parts) and is_token(parts[0], "DISTINCT")
        values = parts[1:] if distinct else parts
        if not values and kind != "count":
            raise Unbuildable(
                "GASL010", f"{kind}() needs a value", span, (f"write {_EXAMPLES.get(kind, f'{kind}(field)')}",)
            )
        if distinct and kind not in ("count", "collect"):
            hint = f"write {kind}({'value, 0.5' if kind == 'percentile' else 'value'})"
            raise Unbuildable(
                "GASL008", f"{kind} does not accept DISTINCT; only count and collect do", span_of(parts[0]), (hint,)
            )
        if (len(values) > 1) is not (kind == "percentile") and values:
            if kind == "percentile":
                message, at = "percentile takes a value and a share from 0 to 1", span
            else:
                message, at = f"{kind} takes one value", values[-1].span
            raise Unbuildable("GASL010", message, at, (f"write {_EXAMPLES.get(kind, f'{kind}(field)')}",))
        share = values[1] if len(values) > 1 else None
        return Computation(kind, values[0] if values else None, distinct, share, span=span)

    def rank(self, children: list[Any]) -> gasl.Rank:
        """Build ``RANK var BY value [DESC], ... [LIMIT n [PER value, ...]] AS var``."""
        word, source, *rest, into = children
        order = tuple(part for part in rest if isinstance(part, Order))
        given = given_options(part for part in rest if isinstance(part, Option))
        limit, per = given.get("LIMIT", (None, ()))
        return gasl.Rank(source, order, limit, into, per, span=between(word, into))

    def join(self, children: list[Any]) -> gasl.Join:
        """Build ``[LEFT] JOIN a WITH b [AS name] ON value [= value], ... [SIMILAR number] AS var``."""
        outer = is_token(children[0], "LEFT")
        left, right, rest, into = _join_parts(children)
        name = next((part.name for part in rest if isinstance(part, _Alias)), None)
        on = [part for part in rest if isinstance(part, _On)]
        similar = next((part.similar for part in on if part.similar is not None), None)
        if similar is not None and (len(on) > 1 or outer):
            what = "LEFT JOIN" if outer else "several pairs in ON"
            hint = "write JOIN a WITH b ON name SIMILAR 0.5 AS pairs, and filter its rows with SELECT"
            at = next(part.span for part in on if part.similar is not None)
            raise Unbuildable("GASL008", f"SIMILAR cannot be combined with {what}", at, (hint,))
        return gasl.Join(
            left, right, tuple(part.pair for part in on), into, outer, name, similar, span=between(children[0], into)
        )

    def on_pair(self, children: list[Any]) -> "_On":
        """Build ``value [= value] [SIMILAR number]``."""
        values = [child for child in children if not isinstance(child, Token)]
        span = values[0].span | values[-1].span
        similar: float | None = None
        if is_token(children[-1], "NUMBER"):
            span |= span_of(children[-1])
            similar = float(number_of(children[-1]))
            if not 0 < similar <= 1:
                message = f"SIMILAR takes a number above 0 and at most 1, not {children[-1]}"
                raise Unbuildable("GASL012", message, span_of(children[-1]), ("write SIMILAR 0.5, for example",))
        pair = OnPair(values[0], values[1] if len(values) > 1 else None, span=values[0].span | values[-1].span)
        return _On(pair, similar, span)

    def set_operation(self, children: list[Any]) -> gasl.SetOperation:
        """Build ``UNION a WITH b [ON value [= value], ...] AS var``, or the same with INTERSECT or EXCEPT."""
        word, left, right, *on, into = children
        for part in on:
            if isinstance(part, _On) and part.similar is not None:
                message = f"{word.upper()} does not accept SIMILAR"
                raise Unbuildable("GASL008", message, part.span, ("write JOIN a WITH b ON name SIMILAR 0.5 AS pairs",))
        pairs = tuple(part.pair for part in on if isinstance(part, _On))
        return gasl.SetOperation(word.upper(), left, right, pairs, into, span=between(word, into))


@frozen
class _Alias:
    name: Name
    span: Span


@frozen
class _On:
    """A pair of values after ON. ``similar`` is the minimum similarity of the pair's strings, or None without SIMILAR."""

    pair: OnPair
    similar: float | None
    span: Span


_EXAMPLES = {"percentile": "percentile(field, 0.95)"}


def _join_parts(children: Sequence[Any]) -> tuple[Name, Name, list[Any], Name]:
    """Return the parts of a JOIN: its left variable, its right variable, the clauses after them, and the name of its result."""
    names = [child for child in children if not isinstance(child, Token)]
    left, right, *rest, into = names
    return left, right, rest, into


def _columns(parts: Sequence[Any], into: Name | None, *, fields: bool = False) -> tuple[NamedValue, ...]:
    """Return values with the names of their columns. Raises ``Unbuildable`` for a value that is not a field and has no name.

    ``fields`` is true for the values of FIELDS, where a constant may be a column.
    """
    made: list[NamedValue] = []
    for part in parts:
        if isinstance(part, _Alias):
            made[-1] = NamedValue(made[-1].value, part.name, span=made[-1].span | part.span)
        else:
            made.append(NamedValue(part, span=part.span))
    for each in made:
        if not each.column and isinstance(each.value, Constant):
            if isinstance(each.value.value, str):
                raise quoted_name(each.value.value, each.span)
            if not fields and not isinstance(each.value.value, bool):
                message = f"BY needs a field, but {format_condition(each.value)} is a number"
                hint = "write the name of a field; a name that begins with a digit needs backticks"
                raise Unbuildable("GASL033", message, each.span, (hint,))
        if not each.column:
            after = f" AS {format_name(into.text)}" if into is not None else ""
            last = into is not None and each is made[-1]
            message = "this column has no name" + (f": AS {into.text} names the variable" if last and into else "")
            written = format_condition(each.value)
            hints = [f"write {written} AS {into.text} AS rows" if last and into else f"write {written} AS name{after}"]
            if isinstance(each.value, Constant) and isinstance(each.value.value, bool):
                hints.append(f"write `{written}` for a field of this name")
            raise Unbuildable("GASL077", message, each.span, tuple(hints))
    return tuple(made)


def _descending(order: Sequence[Token]) -> bool:
    return bool(order) and order[0].upper() == "DESC"
