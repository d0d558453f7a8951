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
from unicodedata import category

from ..source import NOWHERE, Source
from ..trees import Node, gasl
from ..trees.conditions import And, Comparison, Condition, Constant, Field, Items, Length, Not, NullTest, Or, Variable
from ..trees.gasl import Branch, Command, Comment, Explain, Item, Key, Name, On, Path, Program, Statement, Try

_LINE: Final = object()
"""Starts a new line at the current indentation."""
_IN: Final = object()
_OUT: Final = object()

_Piece: TypeAlias = Any
"""A string to write, a node to expand, or one of the three marks above."""

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


def format_gasl(program: Program) -> str:
    """Return the canonical text of ``program``: one command per line; comments, whys and single blank lines are kept.

    Raises ``ValueError`` for a tree that cannot be written (an ELSE that would belong to another BRANCH, a TRY inside a
    command, a name with a line break, a number that is not finite); the parser never creates such a tree.
    """
    text = _render(_items(program.items, program.source))
    return text + "\n" if text else ""


def format_command(command: Command) -> str:
    """Return the canonical text of a command: one line, or several lines for TRY. Raises ``ValueError`` as ``format_gasl`` does."""
    return _render([command])


def format_condition(condition: Condition) -> str:
    """Return the canonical text of a condition.

    A list or an object that is the value of a bound variable is written as JSON, for people; such a text cannot be parsed. Raises
    ``ValueError`` for a number that is not finite and for an AND or OR without operands.
    """
    return _render([condition])


def format_name(name: str) -> str:
    """Return the text of a name, in backticks unless it is an ASCII identifier. Raises ``ValueError`` if it cannot be written."""
    return name if _PLAIN.fullmatch(name) else _backticked(name)


def _backticked(name: str) -> str:
    if not name or "\n" in name or "\r" in name:
        raise ValueError(f"an empty name, or one with a line break, cannot be written: {name!r}")
    return "`" + name.replace("`", "``") + "`"


def format_key(key: Key | Path) -> str:
    """Return the text of a state key or a field, with dots."""
    return ".".join(map(format_name, key.parts))


def format_text(text: str) -> str:
    """Return ``text`` as a string literal with JSON's escapes. Letters of all scripts are kept, invisible characters escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(_escaped(c) if category(c) in _UNSEEN and c not in _JOINERS else c for c in quoted)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")
"""Invisible characters that some scripts and emoji need; they are not escaped."""
_FIRST_IN_CONDITION = frozenset({"NOT", "ANY", "ALL", "NONE", "LEN"})
"""Keywords that may begin a condition: a field with this name needs backticks."""


def _escaped(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"


def _render(pieces: Iterable[_Piece]) -> str:
    """Return the text of the pieces. Nodes are replaced by their pieces until only strings and marks are left."""
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
    """Return ``command``, which is inside another command. Raises ``ValueError`` for TRY, which is a block of lines."""
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
    elif field.path[0].upper() in _FIRST_IN_CONDITION:
        yield ".".join((_backticked(field.path[0]), *map(format_name, field.path[1:])))
    else:
        yield names


def _where(word: str, condition: Condition | None) -> tuple[_Piece, ...]:
    return () if condition is None else (f" {word} ", condition)


def _option(word: str, value: int | str | None) -> str:
    return "" if value is None else f" {word} {value}"


def _text(word: str, text: str | None) -> str:
    return "" if text is None else f" {word} {format_text(text)}"


def _order(field: Path, descending: bool) -> str:
    return f"{format_key(field)}{' DESC' if descending else ''}"


def _step(part: str | int) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{format_name(part)}"


_list = ", ".join


def _name(name: Name) -> str:
    return format_name(name.text)


def _as(name: Name) -> str:
    return f" AS {_name(name)}"


def _find(command: gasl.Find) -> Iterator[_Piece]:
    yield from (f"FIND {command.kind}", *_where("WHERE", command.where))
    if command.order:
        yield f" ORDER BY {_list(_order(order.field, order.descending) for order in command.order)}"
    yield _option("LIMIT", command.limit) + _as(command.into)


def _find_paths(command: gasl.FindPaths) -> Iterator[_Piece]:
    yield "FIND paths"
    for word, end in (("FROM", command.start), ("TO", command.end)):
        if isinstance(end, Name):
            yield f" {word} {_name(end)}"
        elif end is not None:
            yield from (f" {word} (", end, ")")
    yield from (*_where("VIA", command.via), *_where("WHERE", command.where))
    yield _option("MAXLEN", command.max_length) + (" SHORTEST" if command.shortest else "")
    yield _option("LIMIT", command.limit) + _as(command.into)


def _measure(command: gasl.Measure) -> Iterator[str]:
    source = "graph"
    if command.source is not None:
        name = command.source.text
        source = _backticked(name) if name.upper() == "GRAPH" else format_name(name)
    yield f"MEASURE {source} USING {format_name(command.algorithm)}{_as(command.into)}"


def _aggregate(command: gasl.Aggregate) -> Iterator[str]:
    computations = (f"{c.function}({format_key(c.field) if c.field else ''})" for c in command.computations)
    yield f"AGGREGATE {_name(command.source)} BY {format_key(command.by)} "
    yield f"COMPUTE {', '.join(computations)}{_as(command.into)}"


def _pair(left: Path | None, right: Path | None) -> str:
    if left is None or right is None:
        return ""
    return f" ON {format_key(left)}" + ("" if left.parts == right.parts else f" = {format_key(right)}")


def _join(command: gasl.Join | gasl.SetOperation) -> Iterator[str]:
    word = command.kind if isinstance(command, gasl.SetOperation) else "JOIN"
    yield f"{word} {_name(command.left)} WITH {_name(command.right)}"
    yield _pair(command.left_field, command.right_field) + _as(command.into)


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
    Length: lambda c: ("LEN ", c.variable),
    gasl.Declare: lambda c: (f"DECLARE {format_key(c.key)} AS {c.type}", _text("WITH_DESCRIPTION", c.description)),
    gasl.Reset: lambda c: (f"RESET {format_key(c.key)}",),
    gasl.Update: lambda c: (f"UPDATE {format_key(c.key)} WITH {_name(c.source)}{f' {c.mode}' if c.mode else ''}",),
    gasl.Find: _find,
    gasl.FindPaths: _find_paths,
    gasl.Walk: lambda c: (
        f"WALK {_name(c.source)}",
        *_where("VIA", c.via),
        _option("DEPTH", c.depth) + _option("DIRECTION", c.direction) + _as(c.into),
    ),
    gasl.Subgraph: lambda c: (f"SUBGRAPH {_name(c.source)} RADIUS {c.radius}{_as(c.into)}",),
    gasl.Connect: lambda c: (f"CONNECT {_name(c.left)} TO {_name(c.right)}", *_where("VIA", c.via), _as(c.into)),
    gasl.Measure: _measure,
    gasl.SelectFields: lambda c: (f"SELECT {_name(c.source)} FIELDS {_list(map(format_key, c.fields))}{_as(c.into)}",),
    gasl.SelectWhere: lambda c: (f"SELECT {_name(c.source)}", *_where("WHERE", c.where), _as(c.into)),
    gasl.Count: lambda c: (f"COUNT {_name(c.source)}", f" BY {format_key(c.by)}" if c.by else "", _as(c.into)),
    gasl.Aggregate: _aggregate,
    gasl.Rank: lambda c: (
        f"RANK {_name(c.source)} BY {_order(c.by, c.descending)}{_option('LIMIT', c.limit)}{_as(c.into)}",
    ),
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
