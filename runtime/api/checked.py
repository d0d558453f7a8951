"""The check of each language, for all interfaces. The result is a value that is passed on to the run.

The same text with the same input, graph and state has the same diagnostics in every interface. An interface may add restrictions
(``restrict``): a server reads no files for its clients. The kinds of files are told apart here, too.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, field, frozen

from ...lang.diagnostic import Diagnostic, compatible, has_errors, sort_key
from ...lang.source import Source
from ...lang.trees.lwt import MAX_STEPS, MISSING, Mode, Script
from ..errors import WrongFile
from . import when_named

if TYPE_CHECKING:
    from ...lang.catalogue.operations import Signature
    from ...lang.documents.plan import Plan, PlanRead
    from ...lang.documents.seed import SeedRead
    from ...lang.trees.gasl import Program
    from ...lang.trees.seed import FormulaSeed
    from ..gasl.surroundings import Surroundings
    from ..lwt.script_plan import ScriptPlan

__all__ = [
    "KINDS",
    "Checked",
    "CheckedProgram",
    "CheckedScript",
    "CheckedSeed",
    "FileKind",
    "Surroundings",
    "check_program",
    "check_script",
    "check_seed",
    "folder_of",
    "kind_of",
    "read_program",
    "require",
]

__getattr__ = when_named(__name__, {"Surroundings": "runtime.gasl.surroundings"})


@frozen
class Checked:
    """A text and its diagnostics in source order. ``size`` is the number of steps (scripts, seeds) or commands (programs)."""

    found: tuple[Diagnostic, ...]
    source: Source
    size: int = field(default=0, kw_only=True)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics for output: all their edits can be applied together. The edits in ``found`` may overlap."""
        return compatible(self.found)

    @property
    def failed(self) -> bool:
        """Whether the text has an error."""
        return has_errors(self.found)

    @property
    def without_remarks(self) -> "Checked":
        """The diagnostics without those of severity info, which only ``check`` shows."""
        return evolve(self, found=tuple(d for d in self.found if d.severity != "info"))


@frozen
class CheckedScript(Checked):
    """A checked prompt script and the plan of its run."""

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
        """The plan if there is one, otherwise the program: the argument for an executor."""
        return self.plan or self.program


@frozen
class CheckedSeed(Checked):
    """A checked Formula Seed. ``seed`` has the readable part, errors or not (None: nothing is readable)."""

    seed: "FormulaSeed | None"
    read: "SeedRead | None" = None


def folder_of(script: Script) -> Path | None:
    """Return the folder for ``file=``: the folder of the script's file, or None for a script that is not a file."""
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
    """Check a prompt script and the files that it names. Never raises for an invalid script.

    ``mode`` and ``max_steps`` apply to a text, not to a ``Script``. ``input`` is the input of the run (``MISSING``: unknown,
    ``ABSENT``: none). ``models`` are the available model names (None: any), ``given`` earlier results that the script may refer
    to, ``operations`` the available operations (None: all). Set ``reads_files`` to false for a script from a client: its files are not
    opened. ``restrict`` yields diagnostics of the host; those at a place that already has an error are dropped.
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
    surroundings: "Surroundings | None" = None,
    *,
    restrict: "Callable[[Program], Iterable[Diagnostic]] | None" = None,
) -> CheckedProgram:
    """Check a GASL program, or a plan in JSON (``language="plan"``). Never raises for an invalid text.

    ``restrict`` yields diagnostics of the host, with places in the program's text.
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
    """Read a GASL program, or a plan in JSON. Only errors of reading are reported: the executor checks the program before its run."""
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
    """Check a Formula Seed of either form. Never raises for an invalid seed.

    ``data`` is a context or a list of them: what only they show is checked too. Raises ``ContextError`` if it is neither.
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


# The kind of a file: by its suffix, JSON by its keys, other text by how it begins. Every command goes by this one table.

FileKind = Literal["script", "program", "plan", "seed", "contexts", "results", "graph", "table"]


@frozen
class Kind:
    """Text for messages: the name of a kind, and the commands that take such a file; ``{0}`` is the file."""

    noun: str
    commands: str


KINDS: Mapping[FileKind, Kind] = {
    "script": Kind("a prompt script", "a prompt script is run by: knotwork run {0}"),
    "program": Kind("a GASL program", "a GASL program is run by: knotwork run {0} --graph GRAPH"),
    "plan": Kind("a GASL plan", "a GASL plan is run by: knotwork run {0} --graph GRAPH"),
    "seed": Kind(
        "a Formula Seed", "a seed is checked by knotwork check {0}, and run by knotwork seed run {0} CONTEXTS"
    ),
    "contexts": Kind("a file of contexts", "contexts are the second argument: knotwork seed run SEED {0}"),
    "results": Kind("a file of results", "results are computed again by: knotwork seed compute SEED {0}"),
    "graph": Kind("a graph", "a graph is summed up by: knotwork graph info {0}"),
    "table": Kind("a table", "a table of edges is read as a graph: knotwork graph info {0}"),
}

_SUFFIXES: tuple[tuple[tuple[str, ...], FileKind], ...] = (
    ((".seed.json",), "seed"),
    ((".lwt",), "script"),
    ((".gasl",), "program"),
    ((".graphml", ".gml", ".gexf", ".gpickle"), "graph"),
    ((".csv", ".tsv", ".parquet", ".xlsx"), "table"),
)
_KEYS: tuple[tuple[FileKind, frozenset[str]], ...] = (
    ("plan", frozenset({"commands", "plan_id"})),
    ("seed", frozenset({"compute_dag", "compute", "extraction_fields", "filter_keywords", "output_fields"})),
    ("results", frozenset({"extractions"})),
    ("contexts", frozenset({"reviews"})),
    ("graph", frozenset({"nodes"})),
)
"""Keys of a JSON text that identify its kind, most certain kind first."""
_KEY = re.compile(rf'"({"|".join(sorted(key for _, keys in _KEYS for key in keys))})"\s*:')
_LOOKED_AT = 200_000
"""Number of characters that are searched."""
_MARKUP = re.compile(r"\s*(?:<\?xml\b|<graphml\b|<gexf\b|graph\s*\[\s*$)", re.IGNORECASE | re.MULTILINE)


@cache
def _program_start() -> re.Pattern[str]:
    """Return the pattern of a text that begins with a GASL command, comments aside."""
    from ...lang.parse.gasl.lines import COMMANDS  # loads the parser

    return re.compile(rf"(?:\s*(?:#[^\n]*)?\n)*\s*(?:{'|'.join((*COMMANDS, 'TRY'))})\b(?!\s*[=)(])", re.IGNORECASE)


def kind_of(source: Source, document: FileKind = "plan") -> FileKind:
    """Return the kind of a text. JSON without identifying keys is a ``document``; other text that is not recognised is a prompt script."""
    name = source.name.lower()
    for suffixes, kind in _SUFFIXES:
        if name.endswith(suffixes):
            return kind
    is_json = name.endswith((".json", ".jsonl", ".ndjson"))
    if is_json or (not name.endswith(".txt") and source.text.lstrip("\ufeff \t\r\n")[:1] == "{"):
        keys = {match[1] for match in _KEY.finditer(source.text, 0, _LOOKED_AT)}
        return next((kind for kind, signs in _KEYS if keys & signs), document)
    if _MARKUP.match(source.text):
        return "graph"
    return "program" if _program_start().match(source.text) else "script"


def require(source: Source, taken: Collection[FileKind], what: str, document: FileKind = "plan") -> FileKind:
    """Return the kind of a text if it is one of ``taken``. Raises ``WrongFile`` otherwise; ``what`` names what the command takes.

    ``document``: as for ``kind_of``.
    """
    kind = kind_of(source, document)
    if kind not in taken:
        known = KINDS[kind]
        raise WrongFile(f"{source.name} is {known.noun}; {what}", known.commands.format(source.name))
    return kind
