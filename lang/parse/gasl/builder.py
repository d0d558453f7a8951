"""Builds GASL nodes while Lark reduces its rules, so Lark makes no parse tree.

Each method is the callback for the rule or alias of the same name in ``gasl.lark``. Its argument is the list of the rule's
children: tokens, which contain their offsets, and nodes that were built before. The callbacks for conditions are in ``nodes``.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen
from lark import Token

from ...diagnostic import Edit
from ...source import Span
from ...trees import gasl
from ...trees.gasl import Column, Comment, Computation, Item, Name, Order, Path, Statement
from ..repairs import Unbuildable
from .nodes import (
    ConditionBuilder,
    identifier,
    integer,
    key_of,
    name_of,
    path_of,
    refuse_reserved,
    span_of,
    string_of,
)


@frozen
class _Option:
    """A part of a command that may be given at most once, such as ``LIMIT 10``."""

    word: str
    value: Any
    span: Span


def _options(parts: Iterable[_Option]) -> dict[str, Any]:
    given: dict[str, _Option] = {}
    for part in parts:
        if part.word in given:
            raise Unbuildable(
                "GASL017",
                f"duplicate {part.word}",
                part.span,
                ("remove one of them",),
                (Edit(part.span, ""),) if part.value == given[part.word].value else (),
            )
        given[part.word] = part
    return {word: part.value for word, part in given.items()}


def _text(token: Token, what: str) -> str:
    """Return the text of a string token; raise ``Unbuildable`` if the text is blank."""
    text = string_of(token)
    if not text.strip():
        raise Unbuildable("GASL025", f"{what} is empty", span_of(token), ("write it in the quotes",))
    return text


def _between(first: Token, last: Any) -> Span:
    return Span(span_of(first).start, span_of(last).end if isinstance(last, Token) else last.span.end)


class Builder(ConditionBuilder):
    """The callbacks. A builder has no state, so one builder can serve all parses in all threads."""

    # Programs

    def program(self, children: list[Any]) -> tuple[Item, ...]:
        """Return all statements and comments."""
        return _items(children)

    def condition_only(self, children: list[Any]) -> Any:
        """Return a condition that is the whole text."""
        return children[0]

    def comment(self, children: list[Token]) -> Comment:
        """Build a comment on its own line."""
        text = children[0].rstrip()
        return Comment(text, span=Span(span_of(children[0]).start, span_of(children[0]).start + len(text)))

    def trailing(self, children: list[Token]) -> Comment:
        """Build a comment after a command."""
        text = children[0].rstrip()
        start = span_of(children[0]).start
        return Comment(text, True, span=Span(start, start + len(text)))

    def statement(self, children: list[Any]) -> Statement | tuple[Item, ...]:
        """Build a statement from reasons and a command; comments between them are moved before the statement."""
        command = children[-1]
        reasons = [child[2:].strip() for child in children if isinstance(child, Token)]
        start = span_of(children[0]).start if reasons else command.span.start
        why = " ".join(reason for reason in reasons if reason) or None
        made = Statement(command, why, span=Span(start, command.span.end))
        remarks = tuple(child for child in children[:-1] if isinstance(child, Comment))
        return (*remarks, made) if remarks else made

    def try_block(self, children: list[Any]) -> gasl.Try:
        """Build ``TRY ... CATCH ANY ... FINALLY ... END``."""
        parts: dict[str, list[Any]] = {}
        current: list[Any] = []
        for child in children[:-1]:
            if isinstance(child, Token):
                if child.type != "ANY":
                    current = parts[child.type] = []
            else:
                current.append(child)
        caught, always = parts.get("CATCH"), parts.get("FINALLY")
        return gasl.Try(
            _items(parts["TRY"]),
            None if caught is None else _items(caught),
            None if always is None else _items(always),
            span=_between(children[0], children[-1]),
        )

    # Declaring and updating keys

    def declare(self, children: list[Any]) -> gasl.Declare:
        """Build ``DECLARE key AS type [WITH_DESCRIPTION "..."]``."""
        word, key, kind, *description = children
        text = string_of(description[0]) if description else None
        return gasl.Declare(
            refuse_reserved(key), kind.upper(), text, span=_between(word, description[0] if description else kind)
        )

    def reset(self, children: list[Any]) -> gasl.Reset:
        """Build ``RESET key``."""
        word, key = children
        return gasl.Reset(refuse_reserved(key), span=_between(word, key))

    def update(self, children: list[Any]) -> gasl.Update:
        """Build ``UPDATE key WITH var [MERGE|REPLACE]``."""
        word, key, source, *mode = children
        return gasl.Update(
            refuse_reserved(key), source, mode[0].upper() if mode else None, span=_between(word, children[-1])
        )

    # Searching

    def find(self, children: list[Any]) -> gasl.Find:
        """Build ``FIND nodes|edges ... AS var``."""
        word, kind, *options, into = children
        given = _options(options)
        return gasl.Find(
            kind.lower(),
            given.get("WHERE"),
            given.get("ORDER BY", ()),
            given.get("LIMIT"),
            into,
            span=_between(word, into),
        )

    def find_paths(self, children: list[Any]) -> gasl.FindPaths:
        """Build ``FIND paths ... AS var``."""
        word, *options, into = children
        given = _options(options)
        start, end = given.get("FROM", (None, None))
        return gasl.FindPaths(
            start,
            end,
            given.get("VIA"),
            given.get("WHERE"),
            given.get("MAXLEN"),
            "SHORTEST" in given,
            given.get("LIMIT"),
            into,
            span=_between(word, into),
        )

    def where(self, children: list[Any]) -> _Option:
        """Build ``WHERE condition``."""
        return _Option("WHERE", children[1], _between(*children))

    def via(self, children: list[Any]) -> _Option:
        """Build ``VIA condition``."""
        return _Option("VIA", children[1], _between(*children))

    def between(self, children: list[Any]) -> _Option:
        """Build ``FROM var|(condition) TO var|(condition)``; the span includes the last parenthesis."""
        word, start, end = children
        return _Option("FROM", (start, end), _between(word, end))

    def order(self, children: list[Any]) -> _Option:
        """Build ``ORDER BY field [DESC], ...``."""
        return _Option("ORDER BY", tuple(children[1:]), _between(children[0], children[-1]))

    def sorting(self, children: list[Any]) -> Order:
        """Build ``field [DESC|ASC]``."""
        path, *way = children
        return Order(path, _descending(way), span=span_of(way[0]) | path.span if way else path.span)

    def limit(self, children: list[Token]) -> _Option:
        """Build ``LIMIT n``."""
        return _Option("LIMIT", integer(children[1]), _between(*children))

    def max_length(self, children: list[Token]) -> _Option:
        """Build ``MAXLEN n``."""
        return _Option("MAXLEN", integer(children[1]), _between(*children))

    def shortest(self, children: list[Token]) -> _Option:
        """Build ``SHORTEST``."""
        return _Option("SHORTEST", True, span_of(children[0]))

    def depth(self, children: list[Token]) -> _Option:
        """Build ``DEPTH n``."""
        return _Option("DEPTH", integer(children[1]), _between(*children))

    def direction(self, children: list[Token]) -> _Option:
        """Build ``DIRECTION out|in|both``."""
        return _Option("DIRECTION", children[1].lower(), _between(*children))

    def walk(self, children: list[Any]) -> gasl.Walk:
        """Build ``WALK var ... AS var``."""
        word, source, *options, into = children
        given = _options(options)
        return gasl.Walk(
            source, given.get("VIA"), given.get("DEPTH"), given.get("DIRECTION"), into, span=_between(word, into)
        )

    def subgraph(self, children: list[Any]) -> gasl.Subgraph:
        """Build ``SUBGRAPH var RADIUS n AS var``."""
        word, source, radius, into = children
        return gasl.Subgraph(source, integer(radius), into, span=_between(word, into))

    def connect(self, children: list[Any]) -> gasl.Connect:
        """Build ``CONNECT a TO b [VIA condition] AS var``."""
        word, left, right, *options, into = children
        return gasl.Connect(left, right, _options(options).get("VIA"), into, span=_between(word, into))

    def measure(self, children: list[Any]) -> gasl.Measure:
        """Build ``MEASURE var|graph USING algorithm AS var``."""
        word, source, algorithm, into = children
        whole = None if isinstance(source, Token) else source
        return gasl.Measure(whole, algorithm.text, into, span=_between(word, into))

    # Reshaping

    def select_fields(self, children: list[Any]) -> gasl.SelectFields:
        """Build ``SELECT var FIELDS a, b.c AS var``."""
        word, source, *fields, into = children
        return gasl.SelectFields(source, tuple(fields), into, span=_between(word, into))

    def select_where(self, children: list[Any]) -> gasl.SelectWhere:
        """Build ``SELECT var WHERE condition AS var``."""
        word, source, where, into = children
        return gasl.SelectWhere(source, where.value, into, span=_between(word, into))

    def count(self, children: list[Any]) -> gasl.Count:
        """Build ``COUNT var [BY field] AS var``."""
        word, source, *by, into = children
        return gasl.Count(source, by[0] if by else None, into, span=_between(word, into))

    def aggregate(self, children: list[Any]) -> gasl.Aggregate:
        """Build ``AGGREGATE var BY field COMPUTE sum(x), ... AS var``."""
        word, source, by, *computations, into = children
        return gasl.Aggregate(source, by, tuple(computations), into, span=_between(word, into))

    def computation(self, children: list[Any]) -> Computation:
        """Build ``sum(x)``."""
        function, *field, close = children
        kind = function.lower()
        span = _between(function, close)
        if not field and kind != "count":
            raise Unbuildable("GASL010", f"{kind}() needs a field", span, (f"write {kind}(field)",))
        return Computation(kind, field[0] if field else None, span=span)

    def rank(self, children: list[Any]) -> gasl.Rank:
        """Build ``RANK var BY field [DESC] [LIMIT n] AS var``."""
        word, source, by, *rest, into = children
        way = [part for part in rest if isinstance(part, Token)]
        given = _options(part for part in rest if isinstance(part, _Option))
        return gasl.Rank(source, by, _descending(way), given.get("LIMIT"), into, span=_between(word, into))

    def join(self, children: list[Any]) -> gasl.Join:
        """Build ``JOIN a WITH b ON field [= field] AS var``."""
        word, left, right, *on, into = children
        fields = _fields(on)
        return gasl.Join(left, right, fields[0], fields[-1], into, span=_between(word, into))

    def set_operation(self, children: list[Any]) -> gasl.SetOperation:
        """Build ``UNION a WITH b [ON field [= field]] AS var``, or the same with INTERSECT or EXCEPT."""
        word, left, right, *on, into = children
        fields = _fields(on)
        first, second = (fields[0], fields[-1]) if fields else (None, None)
        return gasl.SetOperation(word.upper(), left, right, first, second, into, span=_between(word, into))

    # Calling a model

    def process(self, children: list[Any]) -> gasl.Process:
        """Build ``PROCESS var USING "..." AS var [RETURNING (...)]``."""
        word, source, instruction, into, *returning = children
        columns, end = returning[0] if returning else ((), into.span.end)
        text = _text(instruction, "the instruction")
        return gasl.Process(source, text, into, columns, span=Span(span_of(word).start, end))

    def returning(self, children: list[Any]) -> tuple[tuple[Column, ...], int]:
        """Return the columns of ``RETURNING (name TYPE, ...)``, and the offset where it ends."""
        _, *columns, close = children
        names: set[str] = set()
        for column in columns:
            if column.name in names:
                raise Unbuildable("GASL017", f"duplicate column {column.name}", column.span)
            names.add(column.name)
        return tuple(columns), span_of(close).end

    def column(self, children: list[Token]) -> Column:
        """Build ``name TYPE``."""
        name, kind = children
        return Column(identifier(name), kind.upper(), span=_between(name, kind))  # type: ignore[arg-type]  # a terminal's words

    def classify(self, children: list[Any]) -> gasl.Classify:
        """Build ``CLASSIFY var BY "..." INTO ("a", "b") AS var``."""
        word, source, instruction, labels, into = children
        text = _text(instruction, "the instruction")
        return gasl.Classify(source, text, labels, into, span=_between(word, into))

    def labels(self, children: list[Token]) -> tuple[str, ...]:
        """Build ``("a", "b")``."""
        labels: dict[str, None] = {}
        for token in children[:-1]:
            label = _text(token, "a label")
            if label in labels:
                raise Unbuildable("GASL017", f'duplicate label "{label}"', span_of(token), ("remove one",))
            labels[label] = None
        return tuple(labels)

    def analyze(self, children: list[Any]) -> gasl.Analyze:
        """Build ``ANALYZE key USING "..." AS var``."""
        word, key, instruction, into = children
        return gasl.Analyze(
            refuse_reserved(key), _text(instruction, "the instruction"), into, span=_between(word, into)
        )

    # Control flow

    def require(self, children: list[Any]) -> gasl.Require:
        """Build ``REQUIRE EXISTS var``."""
        word, source = children
        return gasl.Require(source, span=_between(word, source))

    def assertion(self, children: list[Any]) -> gasl.Assert:
        """Build ``ASSERT condition``."""
        word, condition = children
        return gasl.Assert(condition, span=_between(word, condition))

    def on(self, children: list[Any]) -> gasl.On:
        """Build ``ON status var THEN command``."""
        word, status, source, then = children
        return gasl.On(status.upper(), source, then, span=_between(word, then))

    def branch(self, children: list[Any]) -> gasl.Branch:
        """Build ``BRANCH IF condition THEN command [ELSE command]``."""
        word, condition, then, *otherwise = children
        last = otherwise[0] if otherwise else then
        return gasl.Branch(condition, then, otherwise[0] if otherwise else None, span=_between(word, last))

    def explain(self, children: list[Any]) -> gasl.Explain:
        """Build ``EXPLAIN command``."""
        word, command = children
        return gasl.Explain(command, span=_between(word, command))

    def set_command(self, children: list[Any]) -> gasl.SetCommand:
        """Build ``SET key = value``."""
        word, key, _, value = children
        return gasl.SetCommand(key, value.value, span=_between(word, value))

    def cancel(self, children: list[Token]) -> gasl.Cancel:
        """Build ``CANCEL PLAN "id"``."""
        return gasl.Cancel(_text(children[1], "the plan's id"), span=_between(*children))

    # Names

    def name(self, children: list[Token]) -> Name:
        """Build a variable's name."""
        return name_of(children[0])

    def key(self, children: list[Token]) -> gasl.Key:
        """Build a key of the state."""
        return key_of(children[0])

    def path(self, children: list[Token]) -> Path:
        """Build the path of a field."""
        return path_of(children[0])


def _items(children: Sequence[Any]) -> tuple[Item, ...]:
    if not any(isinstance(child, tuple) for child in children):
        return tuple(children)
    return tuple(item for child in children for item in (child if isinstance(child, tuple) else (child,)))


def _fields(on: Sequence[Any]) -> list[Path]:
    return [part for part in on if isinstance(part, Path)]


def _descending(way: Sequence[Token]) -> bool:
    return bool(way) and way[0].upper() == "DESC"
