"""Occurrences of column names in a GASL program: after an ``AS`` that names a column, and in patterns.

A column is tracked through the variables that hold its rows. Only columns that the program itself names are included.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from attrs import define, field

from ..linter.gasl.context import Step, Use, nests_within, trace
from ..parse.gasl.nodes import identifier
from ..printer.gasl_printer import format_condition, format_name
from ..row_columns import group_names, joined_names, joined_on
from ..source import Span
from ..trees import Node, gasl, walk
from ..trees.conditions import Field, Variable
from ..trees.gasl import Command, Item, Name, NamedValue

Written: TypeAlias = Callable[[str], str | None]
"""Returns a name in the notation that a place requires, or None if the name can't be written there."""


class ColumnPlace(NamedTuple):
    """An occurrence of a column's name.

    ``column`` is the offset of the column's first definition. If the column can't be renamed, ``fixed`` is the reason; otherwise it is "".
    """

    name: str
    span: Span
    column: int
    defines: bool
    written: Written
    fixed: str = ""


_Column: TypeAlias = tuple[int, int]
"""The offset of a column's definition, and the index of its name in the path of the field: 1 for ``total`` in ``right.total``."""
_Columns: TypeAlias = Mapping[tuple[str, ...], _Column]
"""Maps each path that reads a named column of a variable's rows to that column."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*+|`(?:[^`\r\n]|``)++`"
_NAMES = re.compile(_NAME)
_PART = re.compile(rf"\s*(?:\[-?[0-9]+\]|\.[0-9]+|\.(?P<name>{_NAME}))")
_VARIABLE = re.compile(rf"\$\{{[ \t]*(?:{_NAME})")
_IN_PATTERN = re.compile(rf"\s*(?:\(|(?:<-|-)\s*\[)\s*(?P<name>{_NAME})")
_DEEPEST = 100
_OUTER = (gasl.Try, gasl.Branch, gasl.On, gasl.Explain)
_PASSED_ON = (gasl.Rank, gasl.Classify, gasl.Process)

_OF_OTHERS = "a field of another variable also has this name"
_UNCLEAR = "the program uses this name in a way that a rename can't change"


def column_places(text: str, items: tuple[Item, ...]) -> Iterator[ColumnPlace]:
    """Yield the occurrences of column names in the items of a program. Yield nothing if its commands are nested too deeply."""
    if not nests_within(items, _DEEPEST):
        return iter(())
    walker = _Walker(text)
    for step in trace(items).steps:
        walker.step(step)
    return walker.found()


def written_name(name: str) -> str | None:
    """Return the text of a name, in backticks if necessary; None if it cannot be written."""
    try:
        return format_name(name)
    except ValueError:
        return None


@define
class _Walker:
    text: str
    held: dict[int, _Columns] = field(factory=dict)
    """Maps the identity of each command to the columns of the command's result."""
    places: list[ColumnPlace] = field(factory=list)
    same: dict[int, int] = field(factory=dict)
    """Maps a column to another one that must have the same name."""
    fixed: dict[int, str] = field(factory=dict)

    def found(self) -> Iterator[ColumnPlace]:
        reasons = {self.first(column): reason for column, reason in self.fixed.items()}
        for place in self.places:
            column = self.first(place.column)
            yield place._replace(column=column, fixed=reasons.get(column, ""))

    def first(self, column: int) -> int:
        while column in self.same:
            column = self.same[column]
        return column

    def unite(self, column: int, other: int) -> None:
        first, second = sorted((self.first(column), self.first(other)))
        if first != second:
            self.same[second] = first

    def step(self, step: Step) -> None:
        """Record where the command mentions columns, and store the columns of its result."""
        command = step.command
        roots: list[Node] = [command]
        if isinstance(command, _OUTER):
            roots = [command.condition] if isinstance(command, gasl.Branch) else []
        else:
            self.held[id(command)] = self.result(command, step)
        nodes = [node for root in roots for node in walk(root)]
        for variable in (node for node in nodes if isinstance(node, Variable)):
            use = next((use for use in step.uses if use.span is variable.span), None)
            self.of_variable(variable, self.of_use(use))
        if isinstance(command, gasl.Join | gasl.SetOperation):
            self.pairs(command, step)
        else:
            name = command.edges if isinstance(command, gasl.Measure) else getattr(command, "source", None)
            columns = self.held[id(command)] if isinstance(command, gasl.FindPatterns) else self.of_name(name, step)
            for each in nodes:
                if isinstance(each, Field) and each.quantifier is None:
                    self.of_field(each, columns)

    def of_use(self, use: Use | None) -> _Columns:
        """Return the columns of a variable. If several commands may bind the variable, columns with the same path are merged."""
        found: dict[tuple[str, ...], _Column] = {}
        for binding in use.bindings if use is not None else ():
            for path, column in self.held.get(id(binding.command), {}).items():
                if path in found:
                    self.unite(found[path][0], column[0])
                found.setdefault(path, column)
        return found

    def of_name(self, name: object, step: Step) -> _Columns:
        return self.of_use(step.use_of(name)) if isinstance(name, Name) else {}

    # Places

    def named(self, name: Name) -> _Column:
        """Record the place where a column gets its name, and return the column."""
        column = name.span.start
        self.places.append(ColumnPlace(name.text, name.span, column, True, written_name))
        return column, 0

    def of_field(self, field: Field, columns: _Columns) -> None:
        column = _resolved(field.path, columns)
        if column is None:
            return
        found = list(_NAMES.finditer(self.text, field.span.start, field.span.end))
        if tuple(identifier(match[0]) for match in found) != field.path:
            self.fixed[column[0]] = _UNCLEAR
            return
        written = _first_in(field.path[1:]) if column[1] == 0 else written_name
        place = Span(*found[column[1]].span())
        self.places.append(ColumnPlace(field.path[column[1]], place, column[0], False, written))

    def of_variable(self, variable: Variable, columns: _Columns) -> None:
        names = [part for part in variable.path if isinstance(part, str)]
        column = _resolved(tuple(names), columns)
        head = _VARIABLE.match(self.text, variable.span.start)
        if column is None or head is None:
            return
        spans: list[Span] = []
        at = head.end()
        while match := _PART.match(self.text, at, variable.span.end):
            at = match.end()
            if match["name"]:
                spans.append(Span(*match.span("name")))
        if len(spans) == len(names):
            self.places.append(ColumnPlace(names[column[1]], spans[column[1]], column[0], False, written_name))
        else:
            self.fixed[column[0]] = _UNCLEAR

    def pairs(self, command: gasl.Join | gasl.SetOperation, step: Step) -> None:
        """Record where ``ON`` mentions columns. If a pair has only one value, this value is read from both variables."""
        left, right = self.of_name(command.left, step), self.of_name(command.right, step)
        for pair in command.on:
            for each in walk(pair.left):
                if isinstance(each, Field):
                    self.of_field(each, left)
            for each in walk(pair.other):
                if not isinstance(each, Field):
                    continue
                if pair.right is not None:
                    self.of_field(each, right)
                    continue
                first, second = _resolved(each.path, left), _resolved(each.path, right)
                if first is not None and second is not None:
                    self.unite(first[0], second[0])
                elif (only := first or second) is not None:
                    self.fixed[only[0]] = _OF_OTHERS

    # Results

    def result(self, command: Command, step: Step) -> _Columns:
        """Return the columns of the result of a command."""
        if isinstance(command, gasl.FindPatterns):
            return self.of_patterns(command)
        if isinstance(command, gasl.Join):
            return self.joined(command, step)
        if isinstance(command, gasl.SetOperation):
            return self.combined(command, step)
        given = self.of_name(getattr(command, "source", None), step)
        if isinstance(command, _PASSED_ON) or (isinstance(command, gasl.Select) and not command.columns):
            return given
        if isinstance(command, gasl.Select):
            return self.listed(command.columns, [each.column for each in command.columns], given)
        if isinstance(command, gasl.Unnest):
            return {**given, **self.listed((command.by,), (command.by.column,), given)}
        if isinstance(command, gasl.Count):
            return self.listed(command.by, group_names(command.by, ("count",)), given)
        if isinstance(command, gasl.Aggregate):
            made = [each.name for each in command.computations if each.name is not None]
            by = self.listed(command.by, group_names(command.by, [name.text for name in made]), given)
            return {**by, **{(name.text,): self.named(name) for name in made}}
        return {}

    def listed(self, values: Sequence[NamedValue], names: Sequence[str], given: _Columns) -> _Columns:
        """Return the columns of listed values. If a name is already in use, the column gets prefixes, as in ``by.count``."""
        found: dict[tuple[str, ...], _Column] = {}
        for value, name in zip(values, names, strict=True):
            prefixes = (len(name) - len(value.column)) // len("by.")
            before = ("by",) * prefixes
            if value.name is not None:
                column, place = self.named(value.name)
                path = (*before, value.name.text)
                if (taken := found.get((value.name.text,))) is not None:  # two columns have the same name
                    self.unite(taken[0], column)
                found.setdefault(path, (column, place + prefixes))
            elif isinstance(value.value, Field) and (known := _resolved(value.value.path, given)) is not None:
                found[(*before, *value.value.path)] = known[0], known[1] + prefixes
        return found

    def of_patterns(self, command: gasl.FindPatterns) -> _Columns:
        found: dict[tuple[str, ...], _Column] = {}
        parts: list[gasl.PatternNode | gasl.PatternEdge] = []
        for pattern in command.patterns:
            parts += [*pattern.nodes, *pattern.edges]
        for part in sorted(parts, key=lambda part: part.span.start):
            match = _IN_PATTERN.match(self.text, part.span.start) if part.name is not None else None
            if part.name is None or match is None:
                continue
            place = Span(*match.span("name"))
            column = found.setdefault((part.name,), (place.start, 0))
            self.places.append(ColumnPlace(part.name, place, column[0], column[0] == place.start, written_name))
        return found

    def joined(self, command: gasl.Join, step: Step) -> _Columns:
        left, right = self.of_name(command.left, step), self.of_name(command.right, step)
        if command.name is not None:
            under = command.name.text
            inner = {(under, *path): (column, place + 1) for path, (column, place) in right.items()}
            return {**left, **inner, (under,): self.named(command.name)}
        own, others = (
            use.columns if (use := step.use_of(each)) is not None else None for each in (command.left, command.right)
        )
        names = joined_names(own, others, joined_on(command)) if own is not None and others is not None else None
        found = dict(left)
        for path, (column, place) in right.items():
            # A nested field, such as payer.total, is renamed together with the field that holds it.
            holders = [".".join(path[:count]) for count in range(1, len(path) + 1)]
            if names is None:
                prefixes = int(path in left)
            else:
                renamed = next(((names[each], each) for each in reversed(holders) if each in names), ("", ""))
                prefixes = (len(renamed[0]) - len(renamed[1])) // len("right.")
            found.setdefault((*("right",) * prefixes, *path), (column, place + prefixes))
        return found

    def combined(self, command: gasl.SetOperation, step: Step) -> _Columns:
        """Return the columns of a set operation.

        Without ``ON`` it compares complete items, which are equal only if their fields have the same names.
        """
        left, right = self.of_name(command.left, step), self.of_name(command.right, step)
        if command.kind != "UNION" and command.on:
            return left
        for path in {*left, *right}:
            if path in left and path in right:
                self.unite(left[path][0], right[path][0])
                continue
            other = step.use_of(command.right if path in left else command.left)
            if other is None or other.columns is None or ".".join(path) in other.columns:
                self.fixed[(left.get(path) or right[path])[0]] = _OF_OTHERS
        return {**right, **left} if command.kind == "UNION" else left


def _resolved(path: tuple[str, ...], columns: _Columns) -> _Column | None:
    """Return the column that a path reads: the column whose path is the longest prefix of ``path``."""
    found = (columns.get(path[:count]) for count in range(len(path), 0, -1))
    return next((column for column in found if column is not None), None)


def _first_in(rest: tuple[str, ...]) -> Written:
    """Return the function that writes a name as the first part of a path. In this place, some keywords need backticks."""

    def written(name: str) -> str | None:
        if written_name(name) is None:
            return None
        whole = format_condition(Field((name, *rest)))
        return whole.removesuffix("".join(f".{format_name(each)}" for each in rest))

    return written
