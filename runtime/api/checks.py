"""Checks texts in every language for all interfaces. Runs use the result of the check; ``plans`` draws the plan of a checked text.

The same text with the same input, graph and state has the same diagnostics in every interface. An interface may add restrictions
(``restrict``): for example, a server does not read files for its clients.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, field, frozen

from ...lang.diagnostic import Diagnostic, compatible, has_errors, sort_key
from ...lang.source import Source
from ...lang.trees.lwt import MAX_STEPS as MAX_STEPS
from ...lang.trees.lwt import MISSING as MISSING
from ...lang.trees.lwt import Mode as Mode
from ...lang.trees.lwt import Script
from . import load_on_first_use

if TYPE_CHECKING:
    from ...lang.catalogue.operations import Signature
    from ...lang.catalogue.rules import RULES as RULES
    from ...lang.catalogue.rules import Rule as Rule
    from ...lang.catalogue.rules import find_rule as find_rule
    from ...lang.catalogue.rules import nearest_rule as nearest_rule
    from ...lang.documents.plan import Plan as PlanDocument
    from ...lang.documents.plan import PlanRead
    from ...lang.documents.seed import SeedRead
    from ...lang.service import Known, Reading
    from ...lang.trees.gasl import Program
    from ...lang.trees.lwt import Call
    from ...lang.trees.seed import FormulaSeed
    from ..gasl.surroundings import Surroundings as Surroundings
    from ..lwt.case_run import CaseFile
    from ..lwt.operations import Host
    from ..lwt.script_plan import ScriptPlan
    from ..seeds.reviews import ContextError as ContextError

__all__ = [
    "Checked",
    "CheckedProgram",
    "CheckedScript",
    "CheckedSeed",
    "Surroundings",
    "check_program",
    "check_reading",
    "check_script",
    "check_seed",
    "folder_of",
    "format_text",
    "read_program",
]

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(
        __name__,
        {
            "Surroundings": "runtime.gasl.surroundings", "ContextError": "runtime.seeds.reviews",
            **dict.fromkeys(("RULES", "Rule", "find_rule", "nearest_rule"), "lang.catalogue.rules"),
        },
    )  # fmt: skip


@frozen
class Checked:
    """A text and its diagnostics in source order. ``size`` is the number of steps (scripts, seeds) or commands (programs)."""

    found: tuple[Diagnostic, ...]
    source: Source
    size: int = field(default=0, kw_only=True)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics for output.

        The edits of these diagnostics can all be applied together, while the edits in ``found`` may overlap.
        """
        return compatible(self.found)

    @property
    def failed(self) -> bool:
        """Whether the text has an error."""
        return has_errors(self.found)

    @property
    def without_remarks(self) -> "Checked":
        """A copy without the diagnostics of severity info, which only ``knotwork check`` shows."""
        return evolve(self, found=tuple(d for d in self.found if d.severity != "info"))


@frozen
class CheckedCases(Checked):
    """The checked test cases of a file. ``file`` is None if there are errors."""

    file: "CaseFile | None" = None


@frozen
class CheckedScript(Checked):
    """A checked prompt script and the plan of its run."""

    script: Script
    plan: "ScriptPlan"

    @property
    def with_all_steps(self) -> "CheckedScript":
        """A copy for a run of all steps: without the diagnostics that say that a step is skipped (LWT017)."""
        from ..lwt.script_plan import without_dead_steps

        return evolve(self, found=without_dead_steps(self.found, self.script, self.plan.graph))

    @property
    def calls(self) -> "list[Call]":
        """All calls of operations in the script, and in the scripts that it runs."""

        scripts = (self.plan.script, *self.plan.nested.values())
        return [call for each in scripts for _, call in each.calls]

    @property
    def file_hashes(self) -> dict[str, str]:
        """Map the names of the files that the script names to the hashes of their contents."""
        from ..lwt.script_files import file_hashes

        return file_hashes(self.script, folder_of(self.script))

    @property
    def needs_default_model(self) -> bool:
        """Whether a step calls the run's default model. A script that has only constants or graph commands needs no model."""
        from ...lang.catalogue.operations import BUILTIN

        return any(
            call.operation not in BUILTIN
            or (call.operation in ("ANSWER", "LLM", "SEED") and call.option("model") is None)
            or (call.operation == "GASL" and _gasl_calls_model(call))
            for call in self.calls
        )

    @property
    def has_gasl_steps(self) -> bool:
        """Whether the script has steps that work on a graph."""
        return any(call.operation == "GASL" for call in self.calls)

    @property
    def reads_input(self) -> bool:
        """Whether a step refers to the input."""
        from ...lang.dependencies import step_references

        return any(reference.name == "input" for step in self.plan.script.steps for reference in step_references(step))


_MODEL_COMMAND = re.compile(r"\b(?:PROCESS|CLASSIFY|ANALYZE)\b", re.IGNORECASE)


def _gasl_calls_model(call: "Call") -> bool:
    """Return whether the program of a GASL call may call a model. A program in a file is not read: the result is then True."""
    from ...lang.trees import walk
    from ...lang.trees.lwt import Text

    texts = [part.value for part in walk(call) if isinstance(part, Text)]
    return call.option("file") is not None or any(_MODEL_COMMAND.search(text) for text in texts)


@frozen
class CheckedProgram(Checked):
    """A checked GASL program. ``plan`` is the plan that the program comes from; None if there is no plan or the plan can't be read.

    If the plan can't be read, the program contains only the readable commands.
    """

    program: "Program"
    plan: "PlanDocument | None" = None

    @property
    def runnable(self) -> "PlanDocument | Program":
        """The plan if it exists, otherwise the program. An executor accepts either as an argument."""
        return self.plan or self.program

    @property
    def calls_model(self) -> bool:
        """Whether a command of the program may call a model."""
        return any(map(calls_model, self.program.items))


def calls_model(tree: Any) -> bool:
    """Return whether ``tree`` has a command that calls a model."""
    from ...lang.trees import gasl, walk

    return any(isinstance(node, gasl.Process | gasl.Classify | gasl.Analyze) for node in walk(tree))


@frozen
class CheckedSeed(Checked):
    """A checked Formula Seed. ``seed`` is the readable part of the seed; None if no part is readable."""

    seed: "FormulaSeed | None"
    read: "SeedRead | None" = None


def folder_of(script: Script) -> Path | None:
    """Return the folder of the script's file, from which ``file=`` reads; None if the script does not come from a file."""
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
    functions: Collection[str] | None = None,
    host: "Host | None" = None,
    reads_files: bool = True,
    restrict: Callable[[Script], Iterable[Diagnostic]] | None = None,
) -> CheckedScript:
    """Check a prompt script and the files that it names. Never raises for an invalid script.

    ``mode`` and ``max_steps`` are used for a text, not for a parsed ``Script``. ``input`` is the input of the run (``MISSING``:
    unknown, ``ABSENT``: the run has no input). ``models`` are the available model names (None: any name). ``given`` are the
    names of earlier results that the script may refer to, ``operations`` are the available operations (None: all), ``functions``
    the names of the functions for ``CALL`` (None: any name). With ``host``, both are what this host offers. Set
    ``reads_files`` to false for a script from a client, so that its files are not opened. ``restrict`` yields further
    diagnostics; a diagnostic is dropped if its position already has an error.
    """
    from ..lwt.script_plan import plan_of

    if not isinstance(script, Script):
        from ...lang.parse.lwt import parse_lwt

        script = parse_lwt(script, mode, max_steps)
    folder = folder_of(script) if reads_files else None
    if host is not None:
        operations, functions = host.signatures(script), tuple(host.functions)
    plan = plan_of(script, input, models, given, folder=folder, operations=operations, functions=functions)
    found = plan.diagnostics
    if restrict is not None:
        if not reads_files:  # ``restrict`` says why a client can't name files
            found = tuple(each for each in found if each.code != "LWT049")
        told = {each.span.start for each in found if each.severity == "error" and each.span is not None}
        more = [each for each in restrict(script) if each.span is None or each.span.start not in told]
        found = tuple(sorted((*found, *more), key=sort_key)) if more else found
    return CheckedScript(found, script.source, script, plan, size=len(script.steps))


def check_program(
    program: "Program | PlanRead | Source | str",
    language: Literal["gasl", "plan"] = "gasl",
    surroundings: "Surroundings | None" = None,
    *,
    restrict: "Callable[[Program], Iterable[Diagnostic]] | None" = None,
) -> CheckedProgram:
    """Check a GASL program, or a plan in JSON (``language="plan"``). Never raises for an invalid text.

    ``restrict`` yields further diagnostics, with positions in the program's text.
    """
    from ...lang.trees.gasl import Program
    from ..gasl.surroundings import TOO_DEEP

    known = surroundings.known if surroundings is not None else {}
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
    """Read a GASL program, or a plan in JSON. Only read errors are reported, because the executor checks the program before its run."""
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
    """Check a Formula Seed in the declarative or the formula form. Never raises for an invalid seed.

    ``data`` is a context or a list of contexts to check the seed against (None: no contexts). Raises ``ContextError`` for other data.
    """
    from ...lang.documents.seed import SeedRead, read_seed
    from ...lang.trees.seed import FormulaSeed
    from ..seeds.compute import check

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


def check_reading(reading: "Reading", known: "Known") -> tuple[Diagnostic, ...]:
    """Check the text in an editor against the known graph, state, values and models. Return the diagnostics in source order."""
    from ...lang.service import diagnose
    from ..seeds.reviews import ContextError

    if reading.language == "lwt":
        return check_script(reading.script, input=known.input, models=known.models, given=known.variables).found
    if reading.language != "seed":
        return diagnose(reading.language, reading, known)
    if known.input is not MISSING:
        try:
            return check_seed(reading.seed, known.input).found
        except ContextError:  # the input file is not a context: this is not an error of the seed
            pass
    found = diagnose("seed", reading, known)
    return tuple(sorted(dict.fromkeys((*found, *reading.seed.diagnostics)), key=sort_key))


# Formatting.


def format_text(
    source: Source, language: Literal["script", "program"], mode: Mode = "strict", max_steps: int | None = MAX_STEPS
) -> tuple[Checked, str]:
    """Return a text's diagnostics and canonical format ("" if it has errors). Only scripts use ``mode`` and ``max_steps``."""
    read: Script | Program
    if language == "script":
        from ...lang.parse.lwt import parse_lwt
        from ...lang.printer.lwt_printer import format_lwt

        read = parse_lwt(source, mode, max_steps)
        text = "" if has_errors(read.diagnostics) else format_lwt(read)
        is_equal = not text or parse_lwt(text, max_steps=None).items == read.items
    else:
        from ...lang.parse.gasl import parse_gasl
        from ...lang.printer.gasl_printer import format_gasl

        read = parse_gasl(source)
        text = "" if has_errors(read.diagnostics) else format_gasl(read)
        is_equal = not text or parse_gasl(Source(text, source.name)).items == read.items
    if not is_equal:
        raise RuntimeError(f"formatting {source.name} would change its meaning")
    return Checked(read.diagnostics, source), text
