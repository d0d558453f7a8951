"""Check a program before it runs: faults found by the parser, and faults that need the whole program, the graph and the state.

Modules by subject: ``variables`` (and keys of the state), ``arguments`` (kinds, settings and numbers), ``conditions``, ``graph``
(against its schema), ``bare_names`` (unquoted words); ``context`` has the input of the rules. A new rule is a function in one of
the modules, with an entry in that module's ``LINTS`` and in ``lang.catalogue.rules``.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ... import linter
from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, sort_key
from ...trees import Node
from ...trees.gasl import Comment, Program, Statement, StateType, Try
from . import arguments, conditions, graph, variables
from . import variables as keys
from .bare_names import resolved
from .context import Context, Lint, nests_within
from .variables import named

if TYPE_CHECKING:
    from ...documents.plan import PlanRead

__all__ = ["LINTS", "check", "check_plan", "diagnose"]


# Ignore comments in programs: ``# knotwork: ignore[GASL052]`` above a command or after it. See ``linter``.


def _is_trailing(item: Node) -> bool:
    return isinstance(item, Comment) and item.trailing


def _blocks(item: Node) -> Sequence[Sequence[Node]]:
    command = item.command if isinstance(item, Statement) else None
    if not isinstance(command, Try):
        return ()
    return [block for block in (command.body, command.caught, command.always) if block]


_PROGRAMS = linter.Commented("command", "GASL074", lambda item: isinstance(item, Comment), _is_trailing, _blocks)


def silence(context: Context, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return ``found`` without silenced diagnostics, plus a diagnostic for each ignore comment that silences nothing."""
    program = context.program
    return linter.silence(program.items, program.source.text, found, _PROGRAMS, context.found)


LINTS: tuple[Lint, ...] = (
    *variables.LINTS, *keys.KEY_LINTS, *arguments.LINTS, *arguments.LIMIT_LINTS, *conditions.LINTS, *graph.LINTS,
)  # fmt: skip
"""All rules that check a tree."""
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
    hint = "the plan's stop_on_error is false: a step that needs it ends with binding_failure, and the plan goes on"
    return evolve(found, severity="warning", hints=(*found.hints, hint))


def diagnose(context: Context) -> list[Diagnostic]:
    """Run ``check`` on an existing context, whose cached analysis stays available to the caller."""
    program = context.program
    if not nests_within(program.items, _DEEPEST):
        deep = context.found("GASL023", f"commands nest deeper than {_DEEPEST} levels", None)
        return sorted([*program.diagnostics, deep], key=sort_key)
    found = [diagnostic for rule in LINTS for diagnostic in rule.find(context)]
    errors = [diagnostic for diagnostic in program.diagnostics if diagnostic.severity == "error"]
    remarks = [diagnostic for diagnostic in program.diagnostics if diagnostic.severity != "error"]
    errors, found = named(context, errors, found)
    errors = resolved(context, errors)
    return sorted([*errors, *silence(context, [*remarks, *found])], key=sort_key)
