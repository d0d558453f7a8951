"""Builds GASL nodes while Lark reduces its rules, so Lark makes no parse tree.

Each method is the callback for the rule or alias of the same name in ``gasl.lark``. The argument of a callback is the list of the rule's
children: tokens, which contain their offsets, and nodes that were built earlier. ``condition_builder`` contains the callbacks for
conditions and values. ``row_builder`` contains the callbacks for the commands on rows.
"""

from collections.abc import Sequence
from typing import Any

from attrs import frozen
from lark import Token

from ...source import Span
from ...trees import gasl
from ...trees.conditions import Constant, Field, Variable
from ...trees.gasl import Column, Comment, Item, Name, Statement
from ..repairs import Unbuildable
from .condition_builder import ConditionBuilder
from .nodes import (
    Option,
    between,
    given_options,
    identifier,
    integer,
    is_token,
    key_of,
    name_of,
    number_or_variable,
    path_of,
    refuse_reserved,
    span_of,
    string_of,
    text_of,
)
from .row_builder import RowBuilder


class Builder(RowBuilder, ConditionBuilder):
    """The callbacks. A builder has no state, so all parses in all threads can share one builder."""

    # Programs

    def program(self, children: list[Any]) -> tuple[Item, ...]:
        """Return all statements and comments."""
        return _items(children)

    def condition_only(self, children: list[Any]) -> Any:
        """Return a condition that makes up the complete text."""
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
        """Build a statement from its reasons and its command. Comments between these are moved before the statement."""
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
            span=between(children[0], children[-1]),
        )

    # Parameters, declaring and updating keys

    def param(self, children: list[Any]) -> gasl.Param:
        """Build ``PARAM name TYPE [= constant] [WITH_DESCRIPTION "..."]``."""
        word, name, kind, *rest = children
        default = next((part for part in rest if isinstance(part, Constant)), None)
        description = string_of(rest[-1]) if rest and is_token(rest[-1], "STRING") else None
        return gasl.Param(name, kind.upper(), default, description, span=between(word, children[-1]))

    def declare(self, children: list[Any]) -> gasl.Declare:
        """Build ``DECLARE key AS type [WITH_DESCRIPTION "..."]``."""
        word, key, kind, *description = children
        text = string_of(description[0]) if description else None
        return gasl.Declare(
            refuse_reserved(key), kind.upper(), text, span=between(word, description[0] if description else kind)
        )

    def reset(self, children: list[Any]) -> gasl.Reset:
        """Build ``RESET key``."""
        word, key = children
        return gasl.Reset(refuse_reserved(key), span=between(word, key))

    def update(self, children: list[Any]) -> gasl.Update:
        """Build ``UPDATE key WITH var [MERGE|REPLACE]``."""
        word, key, source, *mode = children
        return gasl.Update(
            refuse_reserved(key), source, mode[0].upper() if mode else None, span=between(word, children[-1])
        )

    # Searching

    def find(self, children: list[Any]) -> gasl.Find:
        """Build ``FIND nodes|edges ... AS var``."""
        word, kind, *options, into = children
        given = given_options(options)
        limit, per = given.get("LIMIT", (None, ()))
        return gasl.Find(
            kind.lower(),
            given.get("WHERE"),
            given.get("ORDER BY", ()),
            limit,
            into,
            per,
            span=between(word, into),
        )

    def find_patterns(self, children: list[Any]) -> gasl.FindPatterns:
        """Build ``FIND patterns pattern, ... AS var``."""
        word, *parts, into = children
        patterns = tuple(part for part in parts if isinstance(part, gasl.Pattern))
        given = given_options(part for part in parts if isinstance(part, Option))
        limit, per = given.get("LIMIT", (None, ()))
        order = given.get("ORDER BY", ())
        return gasl.FindPatterns(patterns, given.get("WHERE"), order, limit, into, per, span=between(word, into))

    def pattern(self, children: list[Any]) -> gasl.Pattern:
        """Build ``(a)-[r]->(b)``."""
        return gasl.Pattern(tuple(children[::2]), tuple(children[1::2]), span=children[0].span | children[-1].span)

    def node(self, children: list[Any]) -> gasl.PatternNode:
        """Build ``(name:LABEL {field: constant})``."""
        first, *parts, last = children
        name = next((identifier(part) for part in parts if isinstance(part, Token)), None)
        labels = next((part.labels for part in parts if isinstance(part, _Labels)), ())
        properties = next((part for part in parts if isinstance(part, list)), ())
        return gasl.PatternNode(name, labels, tuple(properties), span=between(first, last))

    def labels_of(self, children: list[Token]) -> "_Labels":
        """Return the labels in ``:LABEL|LABEL``."""
        return _Labels(tuple(dict.fromkeys(identifier(token) for token in children if token.type == "IDENTIFIER")))

    def properties(self, children: list[Any]) -> list[tuple[str, Constant | Variable]]:
        """Return the fields in ``{field: constant}``."""
        inner = [child for child in children if is_token(child, "IDENTIFIER") or not isinstance(child, Token)]
        given: dict[str, Constant | Variable] = {}
        for name, value in zip(inner[::2], inner[1::2], strict=True):
            if identifier(name) in given:
                raise Unbuildable("GASL017", f"duplicate field {identifier(name)}", span_of(name), ("remove one",))
            given[identifier(name)] = value
        return list(given.items())

    def edge_out(self, children: list[Any]) -> gasl.PatternEdge:
        """Build ``-[name:TYPE]->``."""
        return _edge("out", children)

    def edge_in(self, children: list[Any]) -> gasl.PatternEdge:
        """Build ``<-[name:TYPE]-``."""
        return _edge("in", children)

    def edge_either(self, children: list[Any]) -> gasl.PatternEdge:
        """Build ``-[name:TYPE]-``."""
        return _edge("either", children)

    def find_paths(self, children: list[Any]) -> gasl.FindPaths | gasl.FindCycles:
        """Build ``FIND paths ... AS var`` or ``FIND cycles ... AS var``."""
        word, kind, *options, into = children
        given = given_options(options)
        limit, per = given.get("LIMIT", (None, ()))
        if per:
            option = next(part for part in options if part.word == "LIMIT")
            hint = "write RANK name BY length LIMIT n PER source AS name after it"
            raise Unbuildable("GASL008", f"LIMIT in FIND {kind.lower()} does not accept PER", option.span, (hint,))
        if kind.upper() == "CYCLES":
            return self._cycles(word, options, given, limit, into)
        start, end = given.get("FROM", (None, None))
        count, cost = given.get("SHORTEST", (None, None))
        return gasl.FindPaths(
            start,
            end,
            given.get("VIA"),
            given.get("WHERE"),
            given.get("MAXLEN"),
            "SHORTEST" in given,
            limit,
            into,
            count,
            cost,
            given.get("DIRECTION"),
            span=between(word, into),
        )

    @staticmethod
    def _cycles(
        word: Token, options: Sequence[Option], given: dict[str, Any], limit: Any, into: Name
    ) -> gasl.FindCycles:
        for part in options:
            if part.word in ("FROM", "SHORTEST", "DIRECTION"):
                hint = "remove it; a cycle begins and ends at the same node and follows the direction of its edges"
                raise Unbuildable("GASL008", f"FIND cycles does not accept {part.word}", part.span, (hint,))
        return gasl.FindCycles(
            given.get("VIA"), given.get("WHERE"), given.get("MAXLEN"), limit, into, span=between(word, into)
        )

    def where(self, children: list[Any]) -> Option:
        """Build ``WHERE condition``."""
        return Option("WHERE", children[1], between(*children))

    def via(self, children: list[Any]) -> Option:
        """Build ``VIA condition``."""
        return Option("VIA", children[1], between(*children))

    def between(self, children: list[Any]) -> Option:
        """Build ``FROM var|(condition) TO var|(condition)``; the span includes the last parenthesis."""
        word, start, end = children
        return Option("FROM", (start, end), between(word, end))

    def order(self, children: list[Any]) -> Option:
        """Build ``ORDER BY field [DESC], ...``."""
        return Option("ORDER BY", tuple(children[1:]), between(children[0], children[-1]))

    def limit(self, children: list[Any]) -> Option:
        """Build ``LIMIT n [PER value, ...]``."""
        word, number, *per = children
        return Option("LIMIT", (number_or_variable(number), tuple(per)), between(word, children[-1]))

    def max_length(self, children: list[Any]) -> Option:
        """Build ``MAXLEN n``."""
        return Option("MAXLEN", number_or_variable(children[1]), between(*children))

    def shortest(self, children: list[Any]) -> Option:
        """Build ``SHORTEST [k] [BY value]``."""
        word, *rest = children
        cost = rest.pop().value if rest and isinstance(rest[-1], _Weight) else None
        count = number_or_variable(rest[0]) if rest else None
        if count == 0:
            hint = "write a number above 0, or omit it for all shortest paths"
            raise Unbuildable("GASL012", "SHORTEST 0 finds nothing", span_of(rest[0]), (hint,))
        last = cost if cost is not None else children[-1]
        return Option("SHORTEST", (count, cost), between(word, last))

    def depth(self, children: list[Any]) -> Option:
        """Build ``DEPTH n``."""
        return Option("DEPTH", number_or_variable(children[1]), between(*children))

    def trace(self, children: list[Token]) -> Option:
        """Build ``TRACE``."""
        return Option("TRACE", True, span_of(children[0]))

    def direction(self, children: list[Token]) -> Option:
        """Build ``DIRECTION out|in|both``."""
        return Option("DIRECTION", children[1].lower(), between(*children))

    def walk(self, children: list[Any]) -> gasl.Walk:
        """Build ``WALK var ... AS var``."""
        word, source, *options, into = children
        given = given_options(options)
        return gasl.Walk(
            source,
            given.get("VIA"),
            given.get("DEPTH"),
            given.get("DIRECTION"),
            into,
            "TRACE" in given,
            span=between(word, into),
        )

    def subgraph(self, children: list[Any]) -> gasl.Subgraph:
        """Build ``SUBGRAPH var RADIUS n AS var``."""
        word, source, radius, into = children
        return gasl.Subgraph(source, integer(radius), into, span=between(word, into))

    def connect(self, children: list[Any]) -> gasl.Connect:
        """Build ``CONNECT a TO b [VIA condition] AS var``."""
        word, left, right, *options, into = children
        return gasl.Connect(left, right, given_options(options).get("VIA"), into, span=between(word, into))

    def measure(self, children: list[Any]) -> gasl.Measure:
        """Build ``MEASURE var|graph [ON var] USING algorithm[(...)] [BY weight] AS var``."""
        word, source, *parts, into = children
        names = [part for part in parts if isinstance(part, Name)]
        settings = next((part.given for part in parts if isinstance(part, _Settings)), ())
        weight = next((part.value for part in parts if isinstance(part, _Weight)), None)
        whole = None if isinstance(source, Token) else source
        edges = names[0] if len(names) > 1 else None
        return gasl.Measure(whole, names[-1].text, into, edges, settings, weight, span=between(word, into))

    def settings(self, children: list[Any]) -> "_Settings":
        """Return the settings in ``(name = constant, ...)``."""
        inner = [child for child in children if is_token(child, "IDENTIFIER") or not isinstance(child, Token)]
        given: dict[str, Constant] = {}
        for name, value in zip(inner[::2], inner[1::2], strict=True):
            if identifier(name) in given:
                raise Unbuildable("GASL017", f"duplicate setting {identifier(name)}", span_of(name), ("remove one",))
            given[identifier(name)] = value
        return _Settings(tuple(given.items()))

    def by_weight(self, children: list[Any]) -> "_Weight":
        """Return the value in ``BY value``."""
        return _Weight(children[0])

    # Calling a model

    def process(self, children: list[Any]) -> gasl.Process:
        """Build ``PROCESS var USING "..." AS var [RETURNING (...)]``."""
        word, source, instruction, into, *returning = children
        columns, end = returning[0] if returning else ((), into.span.end)
        text = text_of(instruction, "the instruction")
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
        return Column(identifier(name), kind.upper(), span=between(name, kind))  # type: ignore[arg-type]  # a terminal's words

    def classify(self, children: list[Any]) -> gasl.Classify:
        """Build ``CLASSIFY var BY "..." INTO ("a", "b") AS var``."""
        word, source, instruction, labels, into = children
        text = text_of(instruction, "the instruction")
        return gasl.Classify(source, text, labels, into, span=between(word, into))

    def labels(self, children: list[Token]) -> tuple[str, ...]:
        """Build ``("a", "b")``."""
        labels: dict[str, None] = {}
        for token in children[:-1]:
            label = text_of(token, "a label")
            if label in labels:
                raise Unbuildable("GASL017", f'duplicate label "{label}"', span_of(token), ("remove one",))
            labels[label] = None
        return tuple(labels)

    def analyze(self, children: list[Any]) -> gasl.Analyze:
        """Build ``ANALYZE key USING "..." AS var``."""
        word, key, instruction, into = children
        return gasl.Analyze(
            refuse_reserved(key), text_of(instruction, "the instruction"), into, span=between(word, into)
        )

    # Control flow

    def require(self, children: list[Any]) -> gasl.Require:
        """Build ``REQUIRE EXISTS var``."""
        word, source = children
        return gasl.Require(source, span=between(word, source))

    def assertion(self, children: list[Any]) -> gasl.Assert:
        """Build ``ASSERT condition``."""
        word, condition = children
        return gasl.Assert(condition, span=between(word, condition))

    def on(self, children: list[Any]) -> gasl.On:
        """Build ``ON status var THEN command``."""
        word, status, source, then = children
        return gasl.On(status.upper(), source, then, span=between(word, then))

    def branch(self, children: list[Any]) -> gasl.Branch:
        """Build ``BRANCH IF condition THEN command [ELSE command]``."""
        word, condition, then, *otherwise = children
        last = otherwise[0] if otherwise else then
        return gasl.Branch(condition, then, otherwise[0] if otherwise else None, span=between(word, last))

    def explain(self, children: list[Any]) -> gasl.Explain:
        """Build ``EXPLAIN command``."""
        word, command = children
        return gasl.Explain(command, span=between(word, command))

    def set_command(self, children: list[Any]) -> gasl.SetCommand:
        """Build ``SET key = value``."""
        word, key, _, value = children
        return gasl.SetCommand(key, value.value, span=between(word, value))

    def cancel(self, children: list[Token]) -> gasl.Cancel:
        """Build ``CANCEL PLAN "id"``."""
        return gasl.Cancel(text_of(children[1], "the plan's id"), span=between(*children))

    # Names

    def name(self, children: list[Token]) -> Name:
        """Build a variable's name."""
        return name_of(children[0])

    def key(self, children: list[Token]) -> gasl.Key:
        """Build a key of the state."""
        return key_of(children[0])

    def path(self, children: list[Token]) -> Field:
        """Build the path of a field."""
        return path_of(children[0])


def _items(children: Sequence[Any]) -> tuple[Item, ...]:
    if not any(isinstance(child, tuple) for child in children):
        return tuple(children)
    return tuple(item for child in children for item in (child if isinstance(child, tuple) else (child,)))


@frozen
class _Labels:
    labels: tuple[str, ...]


@frozen
class _Settings:
    given: tuple[tuple[str, Constant], ...]


@frozen
class _Weight:
    value: Any


def _edge(direction: Any, children: Sequence[Any]) -> gasl.PatternEdge:
    name = next((identifier(child) for child in children if is_token(child, "IDENTIFIER")), None)
    labels = next((child.labels for child in children if isinstance(child, _Labels)), ())
    return gasl.PatternEdge(direction, name, labels, span=between(children[0], children[-1]))
