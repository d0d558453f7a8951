"""Checks a script before it costs anything: what reading found, and what only the whole script shows.

Rooms by subject: ``structure`` (steps and their graph), ``references``, ``calls``, ``options``, ``strings``, ``programs``,
``expressions``, ``answers``; ``ignores`` silences; ``registry`` is what a rule is given. A new rule is a function in one of the rooms, its
entry in that room's ``LINTS`` and in ``lang.rules``.
"""

from collections.abc import Collection, Mapping
from typing import Any

from ...diagnostic import Diagnostic, sort_key
from ...lwt import MISSING, Script
from ...operations import BUILTIN, Signature
from . import answers, calls, expressions, options, programs, references, strings, structure
from .ignores import silence
from .references import input_path
from .registry import Context, Lint

__all__ = ["LINTS", "Context", "check", "diagnose", "input_faults"]

LINTS: tuple[Lint, ...] = (
    *structure.LINTS,
    *references.LINTS,
    *calls.LINTS,
    *options.LINTS,
    *strings.LINTS,
    *programs.LINTS,
    *expressions.LINTS,
    *answers.LINTS,
)
"""All rules that look at a tree."""


def check(
    script: Script,
    *,
    input: Any = MISSING,
    operations: Mapping[str, Signature] = BUILTIN,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
) -> list[Diagnostic]:
    """Return what is wrong with ``script``, in the order of place: what reading it found and what the rules find.

    ``input`` is the JSON value that the run will get (without it paths into the input aren't checked; ``ABSENT``: the run
    has none, and a reference to it is an error), ``models`` the
    names that the host offers (None: any), ``given`` the steps that ran before, in a session, and may be referred to. Never
    raises for what a script says. See ``docs/design/lwt.md#meaning``.
    """
    return diagnose(Context(script, input, operations, models, given))


def input_faults(context: Context) -> list[Diagnostic]:
    """Return what the script wants of the run's input that is not there: for a part of a script that is still arriving."""
    return list(input_path.find(context))


def diagnose(context: Context) -> list[Diagnostic]:
    """Do what ``check`` does for a context, which has what was worked out on the way (the graph, the final step)."""
    script = context.script
    reported = {diagnostic.code for diagnostic in script.diagnostics}
    found = [
        diagnostic
        for rule in LINTS
        # Reading reports some of these itself (a step dropped for its id's sake); it knows more.
        if not (rule.code == "LWT014" and rule.code in reported) and (context.is_whole or not rule.needs_all_steps)
        for diagnostic in rule.find(context)
    ]
    errors = [diagnostic for diagnostic in script.diagnostics if diagnostic.severity == "error"]
    remarks = [diagnostic for diagnostic in script.diagnostics if diagnostic.severity != "error"]
    return sorted([*errors, *silence(context, [*remarks, *found])], key=sort_key)
