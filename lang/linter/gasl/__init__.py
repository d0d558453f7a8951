"""Checks a program before it costs anything: what reading found, and what only the whole program, the graph and the state show.

Rooms by subject: ``variables``, ``keys`` (of the state), ``kinds`` (what commands are given), ``limits`` (settings and
numbers), ``conditions``, ``graph`` (against its schema); ``flow`` follows the variables, ``tests_of`` takes conditions apart,
``unnamed`` gives commands the name they lack,
``bare_names`` says what words without quotes are, ``ignores`` silences, ``registry`` is what a rule is given. A new rule is a
function in one of the rooms, its entry in that room's ``LINTS`` and in ``lang.rules``.
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


# Ignore comments in programs: ``# knotwork: ignore[GASL052]`` above a command or behind it. See ``linter.ignoring``.


def _is_trailing(item: Node) -> bool:
    return isinstance(item, Comment) and item.trailing


def _blocks(item: Node) -> Sequence[Sequence[Node]]:
    command = item.command if isinstance(item, Statement) else None
    if not isinstance(command, Try):
        return ()
    return [block for block in (command.body, command.caught, command.always) if block]


_PROGRAMS = linter.Commented("command", "GASL074", lambda item: isinstance(item, Comment), _is_trailing, _blocks)


def silence(context: Context, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return what is ``found`` without what ignore comments silence, and with the comments that silence nothing."""
    program = context.program
    return linter.silence(program.items, program.source.text, found, _PROGRAMS, context.found)


LINTS: tuple[Lint, ...] = (
    *variables.LINTS, *keys.KEY_LINTS, *arguments.LINTS, *arguments.LIMIT_LINTS, *conditions.LINTS, *graph.LINTS,
)  # fmt: skip
"""All rules that look at a tree."""
_DEEPEST = 200
"""Commands in commands that are walked; reading stops well before, but keeps what it could read of a faulty text."""


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
    """Return what is wrong with ``program``, in the order of place: what reading it found and what the rules find.

    ``schema`` is the graph's, ``state`` the declared keys with their types, ``ceiling`` the most that a cap may be (by name,
    with or without ``adapter.caps.``), ``measures`` the engine's algorithms, ``models`` the names that the host offers, None
    where nothing is known of them; ``variables`` are bound before the program runs, ``fields`` has all fields of the items of such
    variables, where they are known. Never raises for what a program says.
    """
    return diagnose(Context(program, schema, state, ceiling, measures, variables, models, fields or {}))


def check_plan(read: "PlanRead", **options: Any) -> list[Diagnostic]:
    """Return what is wrong with a plan, placed in its JSON: what reading it found and what the rules find.

    ``options`` are those of ``check``. Where the plan's ``stop_on_error`` is false, a name that nothing binds and a key that nobody
    declares are warnings: that step ends with ``binding_failure``, and the plan goes on. See ``docs/design/gasl.md#the-plan-object``.
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
"""What ends one step with ``binding_failure`` when it runs."""


def _of_a_step(found: Diagnostic) -> Diagnostic:
    if found.code not in _OF_BINDING or found.severity != "error":
        return found
    hint = "the plan's stop_on_error is false: a step that needs it ends with binding_failure, and the plan goes on"
    return evolve(found, severity="warning", hints=(*found.hints, hint))


def diagnose(context: Context) -> list[Diagnostic]:
    """Do what ``check`` does for a context, which has what was worked out on the way."""
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
