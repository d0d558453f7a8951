"""Checks a prompt script and derives the plan of its run.

A mere check loads neither an event loop nor a model library.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ...lang.catalogue.operations import BUILTIN, Signature
from ...lang.diagnostic import Diagnostic, has_errors, sort_key
from ...lang.trees.lwt import ABSENT, MISSING, Script

if TYPE_CHECKING:
    from ...lang.linter.lwt import Context
    from ...lang.parse.expr import ExprRead


@frozen
class ScriptPlan:
    """The result of checking a script: its diagnostics, in source order, and the data about its steps that a run needs.

    ``graph`` has, for each step, the steps that it refers to. ``final`` is the step whose output is the result, ``rule`` the
    reason for that choice; ``needed`` are the steps that it depends on. ``expressions`` are the script's expressions by their
    text.
    """

    diagnostics: tuple[Diagnostic, ...]
    graph: dict[str, tuple[str, ...]]
    final: str
    rule: str
    needed: set[str]
    expressions: "dict[str, ExprRead]"

    def require(self, script: Script) -> None:
        """Raise ``ScriptError`` if the script has errors, or an apparent key in place of a model's name."""
        from ..models.caller import refuse_keys
        from ..results import ScriptError

        refuse_keys(script)
        if has_errors(self.diagnostics):
            raise ScriptError(self.diagnostics, script.source)


def plan_of(
    script: Script,
    input: Any = MISSING,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    *,
    folder: Path | None = None,
    operations: Mapping[str, Signature] | None = None,
) -> ScriptPlan:
    """Check ``script`` and choose its steps.

    ``input`` is the input of the run (``MISSING``: unknown; ``ABSENT``: the run has none, and a reference to it is an error).
    ``models`` are the names that the host offers (None: any). ``given`` are the earlier results that the script may refer to.
    ``folder`` is the folder for ``file=`` (None: files are not checked). ``operations`` are those that the host offers (None:
    the language's own, and the installed plugins that the script names).

    Scripts are immutable. So a plan without input, earlier results and files is cached with the script, like its other
    derived properties: a server runs one script many times.
    """
    plans: dict[object, ScriptPlan] = vars(script).setdefault("_plans", {})
    names_files = folder is not None and _names_files(script)
    key = (input is ABSENT, None if models is None else tuple(models))
    is_plain = (input is MISSING or input is ABSENT) and not given and not names_files and operations is None
    plan = plans.get(key) if is_plain else None
    if plan is None:
        plan = _planned(script, input, models, given, folder if names_files else None, operations)
        if is_plain:
            plans[key] = plan
    return plan


def _planned(
    script: Script,
    input: Any,
    models: Collection[str] | None,
    given: Collection[str],
    folder: Path | None,
    operations: Mapping[str, Signature] | None,
) -> ScriptPlan:
    from ...lang.linter.lwt import diagnose

    context = context_of(script, input, models, given, operations)
    final, rule = context.final or ("", "last")
    found = diagnose(context)
    if folder is not None:
        from .operations.seed_step import faults_of_files

        found = sorted([*found, *faults_of_files(script, folder)], key=sort_key)
    return ScriptPlan(tuple(found), context.graph, final, rule, context.needed, context.expressions)


def context_of(
    script: Script,
    input: Any = MISSING,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    operations: Mapping[str, Signature] | None = None,
) -> "Context":
    """Return the linter's context of a script; the arguments are those of ``plan_of``."""
    from ...lang.linter.lwt import Context

    if operations is None:
        named = {step.call.operation for step in script.steps}
        operations = BUILTIN if named <= BUILTIN.keys() else _signatures(named)
    return Context(script, input, operations, models, given)


def _signatures(named: set[str]) -> Mapping[str, Signature]:
    from .operations import signatures

    return signatures(named)


def _names_files(script: Script) -> bool:
    return any(step.call.options and step.call.option("file") is not None for step in script.steps)
