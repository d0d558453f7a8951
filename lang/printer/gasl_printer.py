"""The canonical text of a GASL program. Parsing this text gives the same tree, and printing that tree gives the same text.

Keywords are in capitals and strings in double quotes. Names are in backticks only if necessary, and parentheses are written
only where precedence (comparison, NOT, AND, OR) requires them. No function here is recursive, so only memory limits the depth
of a tree.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from ..source import NOWHERE, Source
from ..trees import Node, gasl
from ..trees.conditions import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    Constant,
    Field,
    Increasing,
    Items,
    Length,
    Negative,
    Not,
    NullTest,
    Or,
    Value,
    Variable,
)
from ..trees.gasl import Branch, Command, Comment, Explain, Item, Name, On, Program, Statement, Try
from .gasl_names import PLAIN, backticked
from .gasl_names import format_field as format_field
from .gasl_names import format_key as format_key
from .gasl_names import format_name as format_name
from .gasl_names import format_text as format_text

_NULLS = frozenset({"NULL", "NONE", "NIL", "UNDEFINED", "MISSING"})
"""Words that mean null in this or another language: the parser refuses them as fields unless they are in backticks."""
_FIRST_IN_VALUE = frozenset({"NOT", "ANY", "ALL", "NONE", "LEN", "INCREASING", "TRUE", "FALSE", "DISTINCT"})
"""Keywords that may begin a condition or a value. A field with the name of such a keyword needs backticks."""

_LINE: Final = object()
"""Starts a new line at the current indentation."""
_IN: Final = object()
_OUT: Final = object()

_Piece: TypeAlias = Any
"""A string to write, a node to expand, or one of the three marks above."""

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


def format_gasl(program: Program) -> str:
    """Return the canonical text of ``program``: one command per line; comments, reasons and single blank lines are kept.

    Raises ``ValueError`` for a tree that cannot be written, which the parser never creates. Such a tree has an ELSE that would belong to
    another BRANCH, a TRY inside a command, a name with a line break, or a number that is not finite.
    """
    text = _render(_items(program.items, program.source))
    return text + "\n" if text else ""


def format_command(command: Command) -> str:
    """Return the canonical text of a command: one line, or several lines for TRY. Raises ``ValueError`` as ``format_gasl`` does."""
    return _render([command])


def format_condition(condition: Condition | Value) -> str:
    """Return the canonical text of a condition or a value.

    If the value of a bound variable is a list or an object, it is written as JSON. Such a text is only for display; it can't be parsed.
    Raises ``ValueError`` for a number that is not finite and for an AND or OR without operands.
    """
    return _render([condition])


def format_pattern(pattern: gasl.Pattern) -> str:
    """Return the canonical text of a pattern of ``FIND patterns``."""
    return _render([pattern])


def format_computation(made: gasl.Computation) -> str:
    """Return the canonical text of a computation of ``AGGREGATE``, with the name of its column if it has one."""
    return _render([made])


def _render(pieces: Iterable[_Piece]) -> str:
    """Return the text of the pieces. Nodes are replaced by their pieces until only strings and layout marks are left."""
    done: list[str] = []
    stack = list(pieces)[::-1]
    depth = 0
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            done.append(piece)
        elif piece is _LINE:
            done.append("\n" + "  " * depth)
        elif piece is _IN:
            depth += 1
        elif piece is _OUT:
            depth -= 1
        else:
            stack.extend(reversed(list(_PIECES[type(piece)](piece))))
    return "".join(done)


def _items(items: Sequence[Item], source: Source | None) -> Iterator[_Piece]:
    """Yield the pieces of items, one item per line. A comment after a command stays on the command's line."""
    before: Item | None = None
    for item in items:
        if before is not None and not _is_trailing(item, before):
            if source is not None and _blank_between(before, item, source):
                yield "\n"
            yield _LINE
        if isinstance(item, Comment):
            yield ("  " if _is_trailing(item, before) else "") + item.text.rstrip()
        else:
            for line in (item.why or "").split("\n"):
                if line.strip():
                    yield f"#: {line.strip()}"
                    yield _LINE
            yield item.command
        before = item


def _is_trailing(item: Item, before: Item | None) -> bool:
    return isinstance(item, Comment) and item.trailing and isinstance(before, Statement)


def _blank_between(before: Item, after: Item, source: Source) -> bool:
    if NOWHERE in (before.span, after.span):
        return False
    return _BLANK_LINE.search(source.text, before.span.end, max(before.span.end, after.span.start)) is not None


def _block(items: Sequence[Item]) -> Iterator[_Piece]:
    """Yield the pieces of a block's items, indented, with a line break before and after them."""
    if items and isinstance(first := items[0], Comment) and first.trailing:
        yield f"  {first.text.rstrip()}"  # on the line of TRY, CATCH ANY or FINALLY
        items = items[1:]
    if items:
        yield from (_IN, _LINE, *_items(items, None), _OUT)
    yield _LINE


def _try(command: Try) -> Iterator[_Piece]:
    yield "TRY"
    yield from _block(command.body)
    if command.caught is not None:
        yield "CATCH ANY"
        yield from _block(command.caught)
    if command.always is not None:
        yield "FINALLY"
        yield from _block(command.always)
    yield "END"


def _branch(command: Branch) -> Iterator[_Piece]:
    yield from ("BRANCH IF ", command.condition, " THEN ", _inside(command.then))
    if command.otherwise is not None:
        if _is_open(command.then):
            raise ValueError(
                "an ELSE after an inner BRANCH without ELSE cannot be written: it would belong to the inner BRANCH"
            )
        yield from (" ELSE ", _inside(command.otherwise))


def _inside(command: Command) -> Command:
    """Return ``command``, a command inside another command. Raises ``ValueError`` for TRY, because a block of lines can't be there."""
    if isinstance(command, Try):
        raise ValueError("a TRY block cannot be inside another command")
    return command


def _is_open(command: Command) -> bool:
    """Return whether an ELSE after ``command`` would belong to a BRANCH inside ``command``."""
    while True:
        if isinstance(command, On):
            command = command.then
        elif isinstance(command, Explain):
            command = command.command
        elif isinstance(command, Branch):
            if command.otherwise is None:
                return True
            command = command.otherwise
        else:
            return False


def _operand(condition: Condition, within: type) -> Iterator[_Piece]:
    """Yield the pieces of a condition inside another condition, in parentheses if precedence requires them."""
    loose = isinstance(condition, And | Or) and len(condition.operands) > 1
    if loose and not (within is Or and isinstance(condition, And)):
        yield from ("(", condition, ")")
    else:
        yield condition


def _chain(word: str) -> Callable[[And | Or], Iterator[_Piece]]:
    def pieces(condition: And | Or) -> Iterator[_Piece]:
        if not condition.operands:
            raise ValueError(f"{word} without operands cannot be written")
        for place, operand in enumerate(condition.operands):
            if place:
                yield f" {word} "
            yield from _operand(operand, type(condition) if len(condition.operands) > 1 else Or)

    return pieces


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return format_text(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be written in a program")
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _field(field: Field) -> Iterator[str]:
    names = ".".join(map(format_name, field.path))
    if field.quantifier is not None:
        yield f"{field.quantifier.upper()} {names}"
    elif field.path[0].upper() in _FIRST_IN_VALUE or (len(field.path) == 1 and field.path[0].upper() in _NULLS):
        yield ".".join((backticked(field.path[0]), *map(format_name, field.path[1:])))
    else:
        yield names


def _where(word: str, condition: Condition | None) -> tuple[_Piece, ...]:
    return () if condition is None else (f" {word} ", condition)


def _option(word: str, value: int | str | None) -> str:
    return "" if value is None else f" {word} {value}"


def _text(word: str, text: str | None) -> str:
    return "" if text is None else f" {word} {format_text(text)}"


_LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def _level(value: Value) -> int:
    """Return the precedence of a value: 1 for sums, 2 for products, 3 for a negative value, 4 for all others."""
    if isinstance(value, Binary):
        return _LEVELS[value.sign]
    return 3 if isinstance(value, Negative) else 4


def _within(value: Value, level: int) -> Iterator[_Piece]:
    """Yield the pieces of a value, in parentheses if its precedence is below ``level``."""
    if _level(value) < level:
        yield from ("(", value, ")")
    else:
        yield value


def _binary(value: Binary) -> Iterator[_Piece]:
    level = _LEVELS[value.sign]
    yield from (*_within(value.left, level), f" {value.sign} ", *_within(value.right, level + 1))


def _call(call: Call) -> Iterator[_Piece]:
    plain = all(PLAIN.fullmatch(part) for part in call.function.split("."))
    plain = plain and call.function.upper() not in _FIRST_IN_VALUE
    yield f"{call.function if plain else backticked(call.function)}("
    yield from (*_joined(call.arguments), ")")


def _joined(nodes: Iterable[Node]) -> Iterator[_Piece]:
    for place, node in enumerate(nodes):
        if place:
            yield ", "
        yield node


def _named(value: gasl.NamedValue) -> Iterator[_Piece]:
    yield value.value
    if value.name is not None:
        yield _as(value.name)


def _by(values: Sequence[Node], word: str = "BY") -> Iterator[_Piece]:
    if values:
        yield from (f" {word} ", *_joined(values))


def _limit(limit: int | Variable | None, per: Sequence[Value] = ()) -> Iterator[_Piece]:
    yield from (*_count("LIMIT", limit), *_by(per, "PER"))


def _count(word: str, number: int | Variable | None) -> tuple[_Piece, ...]:
    return () if number is None else (f" {word} ", str(number) if isinstance(number, int) else number)


def _step(part: str | int) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{format_name(part)}"


_list = ", ".join


def _name(name: Name) -> str:
    return format_name(name.text)


def _as(name: Name) -> str:
    return f" AS {_name(name)}"


def _find(command: gasl.Find | gasl.FindPatterns) -> Iterator[_Piece]:
    if isinstance(command, gasl.FindPatterns):
        yield from ("FIND patterns ", *_joined(command.patterns))
    else:
        yield f"FIND {command.kind}"
    yield from (*_where("WHERE", command.where), *_by(command.order, "ORDER BY"))
    yield from (*_limit(command.limit, command.per), _as(command.into))


def _pattern(pattern: gasl.Pattern) -> Iterator[_Piece]:
    yield pattern.nodes[0]
    for edge, node in zip(pattern.edges, pattern.nodes[1:], strict=True):
        yield from (edge, node)


def _pattern_node(node: gasl.PatternNode) -> Iterator[_Piece]:
    yield "(" + _name_and_labels(node)
    if node.properties:
        yield " {" if node.name or node.labels else "{"
        for place, (name, value) in enumerate(node.properties):
            yield from (f"{', ' if place else ''}{format_name(name)}: ", value)
        yield "}"
    yield ")"


def _pattern_edge(edge: gasl.PatternEdge) -> Iterator[str]:
    detail = _name_and_labels(edge)
    inner = f"[{detail}]" if detail else ""
    yield f"{'<-' if edge.direction == 'in' else '-'}{inner}{'->' if edge.direction == 'out' else '-'}"


def _name_and_labels(part: gasl.PatternNode | gasl.PatternEdge) -> str:
    labels = "|".join(map(format_name, part.labels))
    return (format_name(part.name) if part.name else "") + (f":{labels}" if labels else "")


def _find_paths(command: gasl.FindPaths) -> Iterator[_Piece]:
    yield "FIND paths"
    for word, end in (("FROM", command.start), ("TO", command.end)):
        if isinstance(end, Name):
            yield f" {word} {_name(end)}"
        elif end is not None:
            yield from (f" {word} (", end, ")")
    yield from (*_where("VIA", command.via), *_where("WHERE", command.where), *_count("MAXLEN", command.max_length))
    if command.shortest:
        yield from (" SHORTEST",) if command.count is None else _count("SHORTEST", command.count)
        if command.cost is not None:
            yield from (" BY ", command.cost)
    yield from (_option("DIRECTION", command.direction), *_limit(command.limit), _as(command.into))


def _find_cycles(command: gasl.FindCycles) -> Iterator[_Piece]:
    yield from ("FIND cycles", *_where("VIA", command.via), *_where("WHERE", command.where))
    yield from (*_count("MAXLEN", command.max_length), *_limit(command.limit), _as(command.into))


def _walk(command: gasl.Walk) -> Iterator[_Piece]:
    yield from (f"WALK {_name(command.source)}", *_where("VIA", command.via), *_count("DEPTH", command.depth))
    yield _option("DIRECTION", command.direction) + (" TRACE" if command.trace else "") + _as(command.into)


def _measure(command: gasl.Measure) -> Iterator[_Piece]:
    source = "graph"
    if command.source is not None:
        name = command.source.text
        source = backticked(name) if name.upper() == "GRAPH" else format_name(name)
    on = f" ON {_name(command.edges)}" if command.edges is not None else ""
    yield f"MEASURE {source}{on} USING {format_name(command.algorithm)}"
    if command.settings:
        yield "("
        for place, (name, value) in enumerate(command.settings):
            yield from (f"{', ' if place else ''}{format_name(name)} = ", value)
        yield ")"
    yield from (*_by(() if command.weight is None else (command.weight,)), _as(command.into))


def _select(command: gasl.Select) -> Iterator[_Piece]:
    name = command.source.text
    source = backticked(name) if name.upper() == "DISTINCT" else format_name(name)
    yield f"SELECT {'DISTINCT ' if command.distinct else ''}{source}"
    yield from (*_by(command.columns, "FIELDS"), *_where("WHERE", command.where))
    yield from (*_count("SAMPLE", command.sample), _as(command.into))


def _computation(made: gasl.Computation) -> Iterator[_Piece]:
    yield f"{made.function}({'DISTINCT ' if made.distinct else ''}"
    yield from _joined([value for value in (made.value, made.share) if value is not None])
    yield ")"
    if made.name is not None:
        yield _as(made.name)


def _aggregate(command: gasl.Aggregate) -> Iterator[_Piece]:
    yield from (f"AGGREGATE {_name(command.source)}", *_by(command.by))
    yield from (" COMPUTE ", *_joined(command.computations), _as(command.into))


def _pair(pair: gasl.OnPair) -> Iterator[_Piece]:
    yield pair.left
    if pair.right is not None and pair.right != pair.left:
        yield from (" = ", pair.right)


def _join(command: gasl.Join | gasl.SetOperation) -> Iterator[_Piece]:
    word = command.kind if isinstance(command, gasl.SetOperation) else "LEFT JOIN" if command.outer else "JOIN"
    yield f"{word} {_name(command.left)} WITH {_name(command.right)}"
    if isinstance(command, gasl.Join) and command.name is not None:
        yield _as(command.name)
    yield from _by(command.on, "ON")
    if isinstance(command, gasl.Join) and command.similar is not None:
        yield f" SIMILAR {_literal(command.similar)}"
    yield _as(command.into)


_PIECES: dict[type[Node], Callable[..., Iterable[_Piece]]] = {
    Comparison: lambda c: (c.left, f" {c.operator} ", c.right),
    NullTest: lambda c: (c.left, " IS NOT NULL" if c.negated else " IS NULL"),
    Not: lambda c: ("NOT ", *_operand(c.operand, Not)),
    And: _chain("AND"),
    Or: _chain("OR"),
    Constant: lambda c: (_literal(c.value),),
    Items: lambda c: (f"({', '.join(_literal(item.value) for item in c.items)})",),
    Field: _field,
    Variable: lambda c: (f"${{{format_name(c.name)}{''.join(map(_step, c.path))}}}",),
    Length: lambda c: ("LEN ", *_within(c.operand, 4)),
    Binary: _binary,
    Negative: lambda c: ("-", *_within(c.operand, 3)),
    Call: _call,
    Increasing: lambda c: ("INCREASING ", c.field),
    gasl.NamedValue: _named,
    gasl.Order: lambda c: (c.value, " DESC" if c.descending else ""),
    gasl.OnPair: _pair,
    gasl.Computation: _computation,
    gasl.Pattern: _pattern,
    gasl.PatternNode: _pattern_node,
    gasl.PatternEdge: _pattern_edge,
    gasl.Param: lambda c: (
        f"PARAM {_name(c.name)} {c.type}",
        *(() if c.default is None else (" = ", c.default)),
        _text("WITH_DESCRIPTION", c.description),
    ),
    gasl.Declare: lambda c: (f"DECLARE {format_key(c.key)} AS {c.type}", _text("WITH_DESCRIPTION", c.description)),
    gasl.Reset: lambda c: (f"RESET {format_key(c.key)}",),
    gasl.Update: lambda c: (f"UPDATE {format_key(c.key)} WITH {_name(c.source)}{f' {c.mode}' if c.mode else ''}",),
    gasl.Find: _find,
    gasl.FindPatterns: _find,
    gasl.FindPaths: _find_paths,
    gasl.FindCycles: _find_cycles,
    gasl.Walk: _walk,
    gasl.Subgraph: lambda c: (f"SUBGRAPH {_name(c.source)} RADIUS {c.radius}{_as(c.into)}",),
    gasl.Connect: lambda c: (f"CONNECT {_name(c.left)} TO {_name(c.right)}", *_where("VIA", c.via), _as(c.into)),
    gasl.Measure: _measure,
    gasl.Select: _select,
    gasl.Unnest: lambda c: (f"UNNEST {_name(c.source)} BY ", c.by, _as(c.into)),
    gasl.Count: lambda c: (f"COUNT {_name(c.source)}", *_by(c.by), _as(c.into)),
    gasl.Aggregate: _aggregate,
    gasl.Rank: lambda c: (f"RANK {_name(c.source)}", *_by(c.by), *_limit(c.limit, c.per), _as(c.into)),
    gasl.Join: _join,
    gasl.SetOperation: _join,
    gasl.Process: lambda c: (
        f"PROCESS {_name(c.source)}{_text('USING', c.instruction)}{_as(c.into)}",
        f" RETURNING ({_list(f'{format_name(column.name)} {column.type}' for column in c.returning)})"
        if c.returning
        else "",
    ),
    gasl.Classify: lambda c: (
        f"CLASSIFY {_name(c.source)}{_text('BY', c.instruction)} INTO ({_list(map(format_text, c.labels))}){_as(c.into)}",
    ),
    gasl.Analyze: lambda c: (f"ANALYZE {format_key(c.key)} USING {format_text(c.instruction)}{_as(c.into)}",),
    gasl.Require: lambda c: (f"REQUIRE EXISTS {_name(c.source)}",),
    gasl.Assert: lambda c: ("ASSERT ", c.condition),
    On: lambda c: (f"ON {c.status} {_name(c.source)} THEN ", _inside(c.then)),
    Branch: _branch,
    Explain: lambda c: ("EXPLAIN ", _inside(c.command)),
    gasl.SetCommand: lambda c: (f"SET {format_key(c.key)} = {_literal(c.value)}",),
    gasl.Cancel: lambda c: (f"CANCEL PLAN {format_text(c.plan)}",),
    Try: _try,
}
