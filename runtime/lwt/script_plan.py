"""Checks a prompt script, and derives the plan of its run.

A check alone loads neither an event loop nor a model library.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from ...lang.catalogue.operations import BUILTIN, Signature
from ...lang.diagnostic import Diagnostic, has_errors, sort_key
from ...lang.trees.lwt import ABSENT, MISSING, Script, Word
from .script_files import ScriptWithFiles, names_files, with_files

if TYPE_CHECKING:
    from ...lang.linter.lwt import Context
    from ...lang.parse.expr import ExprRead


@frozen
class ScriptPlan:
    """The result of checking a script: its diagnostics, in source order, and the data about its steps that a run needs.

    ``graph`` maps each step to the steps that it refers to. ``final`` is the step whose output is the result; ``rule`` is the
    reason for choosing this step; ``needed`` are the steps that the final step depends on. ``expressions`` maps the text of
    each expression in the script to the parsed expression. ``script`` is the script to run, in which the contents of files replace
    the options that name them. ``nested`` maps the path of each script that ``RUN`` names, here or in another nested script, to the
    script; it is empty if the run reads no files.
    """

    diagnostics: tuple[Diagnostic, ...]
    graph: dict[str, tuple[str, ...]]
    final: str
    rule: str
    needed: set[str]
    expressions: "dict[str, ExprRead]"
    script: Script
    nested: Mapping[Path, Script] = field(factory=dict)

    def diagnostics_of(self, ran: Collection[str]) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of a run of the steps ``ran``."""
        return without_dead_steps(self.diagnostics, self.script, ran)

    def require(self, script: Script) -> None:
        """Raise ``ScriptError`` if the script has errors, ``NotConfigured`` if a model name looks like an API key."""
        from ..models.caller import refuse_keys
        from ..results import ScriptError

        for each in (script, *self.nested.values()):
            refuse_keys(each)
        if has_errors(self.diagnostics):
            raise ScriptError(self.diagnostics, script.source)


def without_dead_steps(
    diagnostics: tuple[Diagnostic, ...], script: Script, ran: Collection[str]
) -> tuple[Diagnostic, ...]:
    """Return ``diagnostics`` without those of LWT017, which says that a step is skipped, about the steps ``ran``."""
    return tuple(
        each
        for each in diagnostics
        if each.code != "LWT017" or not each.span or script.source.slice(each.span) not in ran
    )


def plan_of(
    script: Script,
    input: Any = MISSING,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    *,
    folder: Path | None = None,
    operations: Mapping[str, Signature] | None = None,
    functions: Collection[str] | None = None,
    scripts: tuple[Path, ...] = (),
) -> ScriptPlan:
    """Check ``script`` and choose its steps.

    ``input`` is the input of the run (``MISSING``: unknown; ``ABSENT``: no input, so a reference to the input is an error).
    ``models`` are the names that the host offers (None: any name). ``given`` are the earlier results that the script may refer to.
    ``folder`` is the folder for ``file=`` (None: the run reads no files). ``operations`` are the operations that the host offers
    (None: the built-in operations, and the installed plugins that the script names). ``functions`` are the names of the functions
    for ``CALL`` (None: any name). ``scripts`` are the files of the scripts that run this one, and its own file, which is the last.

    Scripts are immutable. Therefore a plan without input, earlier results and files is cached with the script; this helps a server that
    runs a script many times.
    """
    plans: dict[object, ScriptPlan] = vars(script).setdefault("_plans", {})
    has_files = names_files(script)
    has_images = _names_images(script)
    key = (input is ABSENT, None if models is None else tuple(models), None if functions is None else tuple(functions))
    is_plain = (
        (input is MISSING or input is ABSENT) and not given and not (has_files or has_images) and operations is None
    )
    plan = plans.get(key) if is_plain else None
    if plan is None:
        files = with_files(script, folder)
        context = context_of(files.combined, input, models, given, operations, functions)
        plan = _planned(files, context, folder if has_files else None, operations, scripts)
        if has_images:
            from .operations.named_files import image_faults

            found = sorted([*plan.diagnostics, *image_faults(context, folder)], key=sort_key)
            plan = evolve(plan, diagnostics=tuple(found))
        if is_plain:
            plans[key] = plan
    return plan


def _planned(
    files: ScriptWithFiles,
    context: "Context",
    folder: Path | None,
    operations: Mapping[str, Signature] | None,
    scripts: tuple[Path, ...],
) -> ScriptPlan:
    from ...lang.linter.lwt import diagnose

    script, (final, rule), nested = files.script, context.final or ("", "last"), {}
    found = sorted([*files.located(diagnose(context)), *files.faults], key=sort_key)
    if folder is not None:
        from .operations.named_files import FileChecks, image_faults

        def check(nested: ScriptWithFiles, input: Any) -> list[Diagnostic]:
            own = context_of(nested.combined, input, context.models, operations=operations, functions=context.functions)
            images = image_faults(own, Path(nested.script.source.name).parent)
            return [*nested.located(diagnose(own)), *nested.faults, *images]

        checks = FileChecks(check)
        faults = [
            *checks.faults(script, folder, scripts or own_file(script)),
            *checks.faults_of_inputs(context, folder),
        ]
        found = sorted([*found, *faults], key=sort_key)
        nested = {path: each.files.script for path, each in checks.scripts.items()}
    return ScriptPlan(tuple(found), context.graph, final, rule, context.needed, context.expressions, script, nested)


def _names_images(script: Script) -> bool:
    return any(call.options and call.option("images") is not None for _, call in script.calls)


def own_file(script: Script) -> tuple[Path, ...]:
    """Return the path of the script's file; empty if the script does not come from a file."""
    file = Path(script.source.name)
    try:
        return (file.resolve(),) if file.is_file() else ()
    except (OSError, ValueError, RuntimeError):  # a name that no file can have
        return ()


def context_of(
    script: Script,
    input: Any = MISSING,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    operations: Mapping[str, Signature] | None = None,
    functions: Collection[str] | None = None,
) -> "Context":
    """Return the linter's context of a script; the arguments are the same as for ``plan_of``."""
    from ...lang.linter.lwt import Context

    if operations is None:
        named = {call.operation for _, call in script.calls}
        operations = BUILTIN
        if not named <= BUILTIN.keys():
            from .operations import signatures  # loads the plugins' packages

            operations = signatures(named)
    return Context(script, input, operations, models, given, functions)


def is_streamed(script: Script, step: str) -> bool:
    """Return whether the output of ``step`` can be shown while it arrives: the plain text of one ``LLM`` call."""
    call = next((each.call for each in reversed(script.steps) if each.id == step), None)
    if call is None or call.operation != "LLM" or call.option("schema") is not None or call.option("n") is not None:
        return False
    kind = call.option("type")
    return kind is None or (kind.value if isinstance(kind, Word) else None) == "text"
