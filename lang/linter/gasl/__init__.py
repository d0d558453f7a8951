"""Check a program before it runs: faults found by the parser, and faults that need the whole program, the graph and the state.

Modules by subject: ``variables`` (and keys of the state), ``arguments`` (kinds, settings and numbers), ``conditions``, ``graph``
(against its schema), ``bare_names`` (unquoted words); ``context`` has the input of the lints. A new lint is a function with the
decorator ``lint`` in one of the modules, and a rule in ``lang.catalogue.rules``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, sort_key
from ...trees import Node
from ...trees.gasl import Comment, Program, Statement, StateType, Try
from ..framework import Commented, sorted_with
from . import arguments, conditions, graph  # noqa: F401  # they register their lints
from .bare_names import resolved
from .context import Context, lint, nests_within
from .variables import named

if TYPE_CHECKING:
    from ...documents.plan import PlanRead

__all__ = ["check", "check_plan", "diagnose"]


# Ignore comments in programs: ``# knotwork: ignore[GASL052]`` above a command or after it.


def _is_trailing(item: Node) -> bool:
    return isinstance(item, Comment) and item.trailing


def _blocks(item: Node) -> Sequence[Sequence[Node]]:
    command = item.command if isinstance(item, Statement) else None
    if not isinstance(command, Try):
        return ()
    return [block for block in (command.body, command.caught, command.always) if block]


_PROGRAMS = Commented("command", "GASL074", lambda item: isinstance(item, Comment), _is_trailing, _blocks)


_DEEPEST = 200
"""Maximum depth of nested commands that is checked; the parser's limit is much lower, except in faulty text."""


def check(
    program: Program,
    *,
    schema: Schema | None = None,
    state: Mapping[str, StateType] | None = None,
    ceiling: Mapping[str, float] | None = None,
    measures: Collection[str] | None = None,
    variables: Collection[str] = (),
    models: Collection[str] | None = None,
    fields: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics of ``program`` in source order: those of the parser and those of the rules.

    ``schema`` is the graph's, ``state`` the declared keys with their types, ``ceiling`` the maximum value of each cap (by name,
    with or without ``adapter.caps.``), ``measures`` the engine's algorithms, ``models`` the names that the host offers; each is
    None if unknown. ``variables`` are bound before the program runs; ``fields`` has all fields of the items of such
    variables, where known. Never raises for faults in a program.
    """
    return diagnose(Context(program, schema, state, ceiling, measures, variables, models, fields or {}))


def check_plan(read: "PlanRead", **options: Any) -> list[Diagnostic]:
    """Return the diagnostics of a plan, placed in its JSON: those of the parser and those of the rules.

    ``options`` are those of ``check``. If the plan's ``stop_on_error`` is false, an unbound name and an undeclared key are
    warnings: that step ends with ``binding_failure``, and the plan goes on. See ``docs/design/gasl.md#the-plan-object``.
    """
    plan = read.plan or read.draft
    if plan is None:
        return list(read.diagnostics)
    located = plan.script.located
    of_commands = set(map(located, plan.program.diagnostics))
    own = [each for each in read.diagnostics if each not in of_commands]
    found = check(plan.program, **options)
    if not plan.config.stop_on_error:
        found = [_of_a_step(each) for each in found]
    return sorted([*own, *map(located, found)], key=sort_key)


_OF_BINDING = frozenset({"GASL050", "GASL051", "GASL055"})
"""Faults that end a step with ``binding_failure`` at run time."""


def _of_a_step(found: Diagnostic) -> Diagnostic:
    if found.code not in _OF_BINDING or found.severity != "error":
        return found
    hint = "stop_on_error is false: a step that needs it ends with binding_failure, and the plan continues"
    return evolve(found, severity="warning", hints=(*found.hints, hint))


def diagnose(context: Context) -> list[Diagnostic]:
    """Run ``check`` on an existing context, whose cached analysis stays available to the caller."""
    program = context.program
    if not nests_within(program.items, _DEEPEST):
        deep = context.found("GASL023", f"commands nest deeper than {_DEEPEST} levels", None)
        return sorted([*program.diagnostics, deep], key=sort_key)
    found = list(lint.run(context))
    parsed, found = named(context, program.diagnostics, found)
    parsed = resolved(context, parsed)
    return sorted_with(parsed, found, program.items, program.source.text, _PROGRAMS, context)
