"""What ``gasl.parse`` and ``gasl.parse_condition`` give: trees that can print, check and test themselves."""

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

__all__ = ["Condition", "GASLParser", "Program", "condition", "program"]


@frozen
class Program(tree.Program):
    """A program that was read: frozen commands with their spans. ``diagnostics`` are the faults of reading."""

    @property
    def commands(self) -> tuple[tree.Command, ...]:
        """The commands of the outermost level, in source order."""
        return tuple(statement.command for statement in self.statements)

    def __iter__(self) -> Iterator[tree.Statement]:
        return iter(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def format(self) -> str:
        """Return the program in its one formatted spelling, comments kept. Raises ``ParseError`` where it can't be read."""
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
        """Return all that is wrong, by place; the more is known of where it is to run, the more is checked."""
        from .checked import Surroundings, check_program

        known = Surroundings(schema, state, ceiling, measures, variables, models)
        return list(check_program(self, surroundings=known).diagnostics)


def program(source: Source | str) -> Program:
    """Read a program. Never raises for what the text says."""
    read = reading.parse_gasl(source)
    return Program(read.items, read.source, read.diagnostics, span=read.span)


@frozen
class Condition:
    """A condition that was read; ``tree`` is its tree."""

    tree: ConditionTree
    text: str

    def matches(self, item: Mapping[str, Any]) -> bool | None:
        """Return True, False or, where the item does not say, None. Raises ``ConditionError``."""
        from ...lang.evaluate.conditions import matches

        return matches(self.tree, item)

    def bind(self, values: Mapping[str, Any]) -> "Condition":
        """Return the condition with ``values`` in the place of its variables. Raises ``ConditionError`` where one is missing."""
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
    """The parser: one command's text to its tree."""

    def parse(self, command: str) -> tree.Command:
        """Return the command. Raises ``ParseError`` with all faults, also where there is no command or more than one."""
        read = reading.parse_command(command)
        if has_errors(read.diagnostics) or not read.statements:
            raise ParseError(read.diagnostics, read.source)
        return read.statements[0].command
