"""Checking: one function a language, under every interface. What was checked is a value, which is passed on to what runs it.

The same text with the same input, graph and state has the same diagnostics everywhere. An interface may add its own restrictions
(``restrict``): a server reads no files for its clients.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, field, frozen

from ...lang.diagnostic import Diagnostic, compatible, has_errors, sort_key
from ...lang.source import Source
from ...lang.trees.lwt import MAX_STEPS, MISSING, Mode, Script
from ..gasl.surroundings import TOO_DEEP, Surroundings

if TYPE_CHECKING:
    from ...lang.catalogue.operations import Signature
    from ...lang.documents.plan import Plan, PlanRead
    from ...lang.documents.seed import SeedRead
    from ...lang.trees.gasl import Program
    from ...lang.trees.seed import FormulaSeed
    from ..lwt.script_plan import ScriptPlan

__all__ = [
    "Checked", "CheckedProgram", "CheckedScript", "CheckedSeed", "Surroundings", "check_program", "check_script", "check_seed",
    "folder_of", "read_program",
]  # fmt: skip


@frozen
class Checked:
    """A text and its diagnostics, in source order. ``size`` counts the steps of a script or seed, the commands of a program."""

    found: tuple[Diagnostic, ...]
    source: Source
    size: int = field(default=0, kw_only=True)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics as they leave: the edits of all of them can be made together. Those of ``found`` are each for itself."""
        return compatible(self.found)

    @property
    def failed(self) -> bool:
        """Whether the text has an error."""
        return has_errors(self.found)

    @property
    def without_remarks(self) -> "Checked":
        """The same without remarks (severity info): ``check`` shows them, other commands report them in their own way."""
        return evolve(self, found=tuple(d for d in self.found if d.severity != "info"))


@frozen
class CheckedScript(Checked):
    """A prompt script that was checked, and the plan of its run."""

    script: Script
    plan: "ScriptPlan"


@frozen
class CheckedProgram(Checked):
    """A GASL program that was checked. ``plan`` is the plan that it comes from, where it is a sound one.

    The program of a plan that can't be read has the commands that can be read, or none.
    """

    program: "Program"
    plan: "Plan | None" = None

    @property
    def runnable(self) -> "Plan | Program":
        """The plan, else the program: what an executor is given."""
        return self.plan or self.program


@frozen
class CheckedSeed(Checked):
    """A Formula Seed that was checked. ``seed`` is what can be read of it, with faults too; None: nothing can."""

    seed: "FormulaSeed | None"
    read: "SeedRead | None" = None


def folder_of(script: Script) -> Path | None:
    """Return the folder in which ``file=`` is looked up: the script's own, if the script is a file. Other scripts read no files."""
    file = Path(script.source.name)
    try:
        return file.parent if file.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def check_script(
    script: Script | Source | str,
    mode: Mode = "strict",
    *,
    max_steps: int | None = MAX_STEPS,
    input: Any = MISSING,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    operations: "Mapping[str, Signature] | None" = None,
    reads_files: bool = True,
    restrict: Callable[[Script], Iterable[Diagnostic]] | None = None,
) -> CheckedScript:
    """Check a prompt script, and the files that it names. Never raises for what it says.

    ``mode`` and ``max_steps`` are for a text; a ``Script`` was read already. ``input`` is the input of the run (``MISSING``: unknown,
    ``ABSENT``: none). ``models`` are the names that the host offers (None: any), ``given`` earlier results that the script may refer
    to, ``operations`` those that the host offers (None: all). ``reads_files`` is false for a script that came from a client: nothing that
    it names is looked at. ``restrict`` yields what the host refuses; at a place that has an error already it is left out.
    """
    from ..lwt.script_plan import plan_of

    if not isinstance(script, Script):
        from ...lang.parse.lwt import parse_lwt

        script = parse_lwt(script, mode, max_steps)
    folder = folder_of(script) if reads_files else None
    plan = plan_of(script, input, models, given, folder=folder, operations=operations)
    found = plan.diagnostics
    if restrict is not None:
        told = {each.span.start for each in found if each.severity == "error" and each.span is not None}
        more = [each for each in restrict(script) if each.span is None or each.span.start not in told]
        found = tuple(sorted((*found, *more), key=sort_key)) if more else found
    return CheckedScript(found, script.source, script, plan, size=len(script.steps))


def check_program(
    program: "Program | PlanRead | Source | str",
    language: Literal["gasl", "plan"] = "gasl",
    surroundings: Surroundings | None = None,
    *,
    restrict: "Callable[[Program], Iterable[Diagnostic]] | None" = None,
) -> CheckedProgram:
    """Check a GASL program, or a plan in JSON (``language="plan"``). Never raises for what it says.

    ``restrict`` yields what the host refuses of the program, with places in its own text.
    """
    from ...lang.trees.gasl import Program

    known = (surroundings or Surroundings()).known
    source = program if isinstance(program, Source) else Source(program) if isinstance(program, str) else program.source
    try:
        if isinstance(program, Program):
            return _program(program, known, restrict)
        if isinstance(program, Source | str) and language == "gasl":
            from ...lang.parse.gasl import parse_gasl

            return _program(parse_gasl(source), known, restrict)
        return _plan(program, known, restrict)
    except RecursionError:
        return CheckedProgram((TOO_DEEP,), source, Program((), source))


def read_program(source: Source, language: Literal["gasl", "plan"] = "gasl") -> CheckedProgram:
    """Read a GASL program, or a plan in JSON. Only what reading finds is reported: whoever runs the program checks it where it runs."""
    if language == "plan":
        from ...lang.documents.plan import read_plan
        from ...lang.trees.gasl import Program

        read = read_plan(source)
        program = read.plan.program if read.plan is not None else Program((), source)
        return CheckedProgram(read.diagnostics, source, program, read.plan, size=len(program.statements))
    from ...lang.parse.gasl import parse_gasl

    program = parse_gasl(source)
    return CheckedProgram(program.diagnostics, source, program, size=len(program.statements))


def _program(
    program: "Program", known: dict[str, Any], restrict: "Callable[[Program], Iterable[Diagnostic]] | None"
) -> CheckedProgram:
    from ...lang.linter.gasl import check

    found: Sequence[Diagnostic] = check(program, **known)
    if restrict is not None:
        found = sorted((*found, *restrict(program)), key=sort_key)
    return CheckedProgram(tuple(found), program.source, program, size=len(program.statements))


def _plan(
    plan: "PlanRead | Source | str", known: dict[str, Any], restrict: "Callable[[Program], Iterable[Diagnostic]] | None"
) -> CheckedProgram:
    from ...lang.documents.plan import PlanRead, read_plan
    from ...lang.linter.gasl import check_plan
    from ...lang.trees.gasl import Program

    read = plan if isinstance(plan, PlanRead) else read_plan(plan)
    readable = read.plan or read.draft
    found: Sequence[Diagnostic] = check_plan(read, **known)
    if restrict is not None and readable is not None:
        found = sorted((*found, *map(readable.script.located, restrict(readable.program))), key=sort_key)
    program = readable.program if readable is not None else Program((), read.source)
    return CheckedProgram(tuple(found), read.source, program, read.plan, size=len(program.statements))


def check_seed(seed: "SeedRead | FormulaSeed | Source | str | Mapping[str, Any]", data: Any = None) -> CheckedSeed:
    """Check a Formula Seed, of either form. Never raises for what it says.

    ``data`` is a context or a list of them: what only they show is checked too. Raises ``ContextError`` if it is neither.
    """
    from ...lang.documents.seed import SeedRead, read_seed
    from ...lang.trees.seed import FormulaSeed
    from ..seeds.loaded_seed import check

    if isinstance(seed, FormulaSeed):
        found = tuple(check(seed, data))
        return CheckedSeed(found, seed.source, seed, size=len(seed.steps))
    read = seed if isinstance(seed, SeedRead) else read_seed(seed)
    readable = read.seed or read.draft
    if readable is None:
        return CheckedSeed(read.diagnostics, read.source, None, read)
    merged = dict.fromkeys((*check(readable, data), *read.diagnostics))
    found = tuple(sorted(merged, key=sort_key))
    return CheckedSeed(found, read.source, readable, read, size=len(readable.steps))
