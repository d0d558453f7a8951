"""Results of ``gasl.parse`` and ``gasl.parse_condition``: trees with methods to print, check and evaluate them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from attrs import frozen

from ...lang.catalogue.schema import Schema
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.evaluate.conditions import ConditionError
from ...lang.parse import gasl as reading
from ...lang.source import Source
from ...lang.trees import gasl as tree
from ...lang.trees.conditions import Condition as ConditionTree
from ..gasl.errors import ParseError


@frozen
class Program(tree.Program):
    """A program: frozen commands with their spans. ``diagnostics`` has the errors found while reading."""

    @property
    def commands(self) -> tuple[tree.Command, ...]:
        """The commands of the outermost level, in source order."""
        return tuple(statement.command for statement in self.statements)

    def __iter__(self) -> Iterator[tree.Statement]:
        return iter(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def format(self) -> str:
        """Return the program in its canonical format, with its comments. Raises ``ParseError`` for a program that can't be read."""
        from ...lang.printer.gasl_printer import format_gasl

        if has_errors(self.diagnostics):
            raise ParseError(self.diagnostics, self.source)
        return format_gasl(self)

    def check(
        self,
        *,
        schema: Schema | None = None,
        state: Mapping[str, tree.StateType] | None = None,
        ceiling: Mapping[str, float] | None = None,
        measures: Collection[str] | None = None,
        variables: Collection[str] = (),
        models: Collection[str] | None = None,
    ) -> list[Diagnostic]:
        """Return errors and warnings in source order. Each argument that is given adds checks against it."""
        from .checks import Surroundings, check_program

        known = Surroundings(schema, state, ceiling, measures, variables, models)
        return list(check_program(self, surroundings=known).diagnostics)


def program(source: Source | str) -> Program:
    """Read a program. Never raises for an invalid text."""
    read = reading.parse_gasl(source)
    return Program(read.items, read.source, read.diagnostics, span=read.span)


@frozen
class Condition:
    """A condition; ``tree`` is its syntax tree."""

    tree: ConditionTree
    text: str

    def matches(self, item: Mapping[str, Any]) -> bool | None:
        """Return True, False, or None if a value is missing. Raises ``ConditionError``."""
        from ...lang.evaluate.conditions import matches

        return matches(self.tree, item)

    def bind(self, values: Mapping[str, Any]) -> "Condition":
        """Return the condition with its variables replaced by ``values``. Raises ``ConditionError`` for a missing variable."""
        from ...lang.evaluate.conditions import bind

        return Condition(bind(self.tree, values), self.text)

    def __str__(self) -> str:
        return self.text


def condition(source: Source | str) -> Condition:
    """Read a condition. Raises ``ConditionError`` with the first fault and its hints."""
    read, diagnostics = reading.parse_condition(source)
    fault = next((d for d in diagnostics if d.severity == "error"), None)
    if fault is not None or read is None:
        message = fault.message if fault is not None else "there is no condition"
        raise ConditionError(message, hint="; ".join(fault.hints) if fault is not None else "")
    from ...lang.printer.gasl_printer import format_condition

    return Condition(read, format_condition(read))


class GASLParser:
    """The parser of single commands."""

    def parse(self, command: str) -> tree.Command:
        """Return the command. Raises ``ParseError`` with all errors, and for a text with no command or more than one."""
        read = reading.parse_command(command)
        if has_errors(read.diagnostics) or not read.statements:
            raise ParseError(read.diagnostics, read.source)
        return read.statements[0].command
