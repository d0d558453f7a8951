"""Checks of a program before it runs: the parser's faults, and faults that need the complete program, the graph and the state.

The lints are in the modules ``variables`` (also keys of the state), ``parameters``, ``arguments`` (kinds, settings and numbers),
``conditions``, ``constants``, ``calls`` (functions in values), ``value_types``, ``patterns``, ``graph`` (checks against the graph's
schema), ``mixed_types`` (attributes of several types), ``bare_names`` (unquoted words) and ``unquoted_names`` (names without
backticks). ``context`` provides the input of the lints, ``contents`` finds what variables hold, ``shapes`` finds the types of values,
and ``fields`` finds the fields in a command. To add a lint, write a function with the decorator ``lint`` in one of the modules, and a
rule in ``lang.catalogue.rules``.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, sort_key
from ...trees import Node
from ...trees.gasl import Comment, Program, Statement, StateType, Try
from ..framework import Commented, sorted_with
from . import (  # noqa: F401  # they register their lints
    arguments,
    calls,
    conditions,
    constants,
    graph,
    mixed_types,
    parameters,
    patterns,
    value_types,
)
from .bare_names import resolved
from .contents import Contents
from .context import Context, lint, nests_within
from .unquoted_names import with_backticks
from .variables import complete_missing_names
from .written_names import with_written_names

if TYPE_CHECKING:
    from ...documents.plan import PlanRead

__all__ = ["check", "check_plan", "diagnose"]


# Ignore comments in programs, such as ``# knotwork: ignore[GASL052]``, are above a command or after it on the same line.


def _is_trailing(item: Node) -> bool:
    return isinstance(item, Comment) and item.trailing


def _blocks(item: Node) -> Sequence[Sequence[Node]]:
    command = item.command if isinstance(item, Statement) else None
    if not isinstance(command, Try):
        return ()
    return [block for block in (command.body, command.caught, command.always) if block]


_PROGRAMS = Commented("command", "GASL074", lambda item: isinstance(item, Comment), _is_trailing, _blocks)


_DEEPEST = 200
"""Maximum nesting depth of commands; deeper programs are not checked. The parser's limit is lower, except in faulty text."""


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
    contents: Mapping[str, Contents] | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics of ``program`` from the parser and from the rules, in source order.

    ``schema`` is the schema of the graph. ``state`` maps the declared keys to their types. ``ceiling`` maps the name of each cap, with or
    without ``adapter.caps.``, to its maximum value. ``measures`` are the engine's algorithms, and ``models`` are the names of the models
    that the host offers. Each of these parameters is None if unknown. ``variables`` are the names bound before the program runs.
    ``fields`` maps these names to all fields of their items, if known. ``contents`` has entries for those names that
    an earlier command bound: the result of ``contents_of`` for that command. Faults in a program never raise an exception.
    """
    program = with_written_names(program, lambda: schema)
    return diagnose(Context(program, schema, state, ceiling, measures, variables, models, fields or {}, contents or {}))


def check_plan(read: "PlanRead", **options: Any) -> list[Diagnostic]:
    """Return the diagnostics of a plan from the parser and from the rules, with places in the plan's JSON.

    ``options`` are the options of ``check``. If the plan's ``stop_on_error`` is false, an unbound name or an undeclared key is only a
    warning. In this case, a step with such a fault ends with ``binding_failure``, and the plan continues. See
    ``docs/design/gasl.md#the-plan-object``.
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
"""The codes of faults that end a step with ``binding_failure`` at run time."""


def _of_a_step(found: Diagnostic) -> Diagnostic:
    if found.code not in _OF_BINDING or found.severity != "error":
        return found
    hint = "stop_on_error is false: a step that reads a missing name ends with binding_failure, and the plan continues"
    return evolve(found, severity="warning", hints=(*found.hints, hint))


def diagnose(context: Context) -> list[Diagnostic]:
    """Run ``check`` on an existing context. Afterwards, the caller can use the analysis that the context has cached."""
    program = context.program
    if not nests_within(program.items, _DEEPEST):
        deep = context.diagnostic("GASL023", f"commands are nested more than {_DEEPEST} levels deep", None)
        return sorted([*program.diagnostics, deep], key=sort_key)
    return sorted(with_backticks(context, _diagnose(context), _diagnose), key=sort_key)


def _diagnose(context: Context) -> list[Diagnostic]:
    program, found = context.program, list(lint.run(context))
    parsed, found = complete_missing_names(context, program.diagnostics, found)
    parsed = resolved(context, parsed)
    return sorted_with(parsed, found, program.items, program.source.text, _PROGRAMS, context)
