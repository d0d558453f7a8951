"""What a lint rule of GASL is and what it is given: the program, its variables and keys, and what it is checked against."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

import attrs

from ...catalogue.rules import RULES
from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, Edit, Severity
from ...source import NOWHERE, Span
from ...trees.gasl import Command, Declare, Program, StateType
from ..framework import Lint as AnyLint
from ..framework import Suggestions, lint
from .flow import Binding, Flow, Step, trace

__all__ = ["Context", "Lint", "lint"]


@attrs.frozen(slots=False)
class Context:
    """A program under check. Everything the rules share is found once.

    ``schema``, ``state``, ``ceiling``, ``measures`` and ``models`` are None where nothing is known of them; ``variables``
    are bound before the program runs, ``fields`` has all fields of their items where they are known.
    """

    program: Program
    schema: Schema | None = None
    state: Mapping[str, StateType] | None = None
    ceiling: Mapping[str, float] | None = None
    measures: Collection[str] | None = None
    variables: Collection[str] = ()
    models: Collection[str] | None = None
    fields: Mapping[str, tuple[str, ...]] = {}
    _suggestions: Suggestions = attrs.field(factory=Suggestions, init=False, eq=False, repr=False)

    def found(
        self,
        code: str,
        message: str,
        span: Span | None,
        *hints: str,
        edits: Iterable[Edit] = (),
        severity: Severity | None = None,
    ) -> Diagnostic:
        """Make a diagnostic, with the catalogue's severity where no other is given."""
        edits = tuple(edits) if span is not None and span != NOWHERE else ()
        return Diagnostic(
            code, severity or RULES[code].severity, message, span, tuple(hint for hint in hints if hint), edits
        )

    def suggestion(self, name: str, known: Collection[str]) -> str | None:
        """Return the known name that was most likely meant; None once many different ones have been looked for."""
        return self._suggestions.find(name, known)

    @property
    def has_enough(self) -> bool:
        """Say whether no more did-you-means are looked for."""
        return self._suggestions.has_enough

    def text(self, span: Span) -> str:
        """Return what stands under ``span``; nothing for what was not read from a text."""
        return self.program.source.text[span.start : span.end]

    def spelled(self, word: str, within: Span, after: int = 0) -> Span | None:
        """Return where ``word`` first stands in ``within``, at ``after`` or later; None where it does not."""
        at = self.program.source.text.find(word, max(within.start, after), within.end)
        return Span(at, at + len(word)) if at >= 0 else None

    def line(self, span: Span) -> int:
        """Return the line in which ``span`` begins."""
        return self.program.source.position(span.start)[0]

    @cached_property
    def is_whole(self) -> bool:
        """Say whether all commands could be read."""
        return not any(diagnostic.severity == "error" for diagnostic in self.program.diagnostics)

    @cached_property
    def flow(self) -> Flow:
        """The variables of the program as it runs."""
        perhaps = () if self.is_whole else _names_behind_as(self.program.source.text)
        return trace(self.program.items, self.variables, perhaps, schema=self.schema, fields=self.fields)

    @property
    def steps(self) -> list[Step]:
        """Every command with its statement and what it reads, outer ones first."""
        return self.flow.steps

    @cached_property
    def bound_names(self) -> tuple[str, ...]:
        """All names that the program binds or was given."""
        return tuple(dict.fromkeys((*self.variables, *(binding.name for binding in self.flow.bindings))))

    @cached_property
    def first_bindings(self) -> dict[str, Binding]:
        """Where each name is bound first."""
        found: dict[str, Binding] = {}
        for binding in self.flow.bindings:
            found.setdefault(binding.name, binding)
        return found

    @cached_property
    def keys(self) -> frozenset[str]:
        """All keys of the state that there are or that the program declares."""
        declared = (step.command.key.text for step in self.steps if isinstance(step.command, Declare))
        return frozenset((*declared, *(self.state or ())))

    def commands(self, *kinds: type) -> Iterator[tuple[Step, Command]]:
        """Yield the commands of these classes."""
        return ((step, step.command) for step in self.steps if isinstance(step.command, kinds))


Lint: TypeAlias = AnyLint[Context]
"""A rule of this language."""


def _names_behind_as(text: str) -> set[str]:
    """Return what may be a variable's name in a text of which not all could be read."""
    import re

    return {match[1] or match[2] for match in re.finditer(r"\bAS\s+(?:`([^`\n]+)`|(\w+))", text, re.IGNORECASE)}
