"""Texts of all languages read and checked against what the server knows: one way in for ``check``, ``explain`` and the runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from .....lang.diagnostic import Diagnostic, has_errors, sort_key
from .....lang.documents.plan import Plan, read_plan
from .....lang.documents.seed import SeedRead, read_seed
from .....lang.embedding import embedded
from .....lang.gasl import Declare, Program, Reset, Update
from .....lang.linter.gasl import check as check_gasl
from .....lang.linter.gasl import check_plan
from .....lang.linter.lwt import MISSING
from .....lang.linter.lwt import check as check_lwt
from .....lang.linter.seed import check as check_seed
from .....lang.lwt import Call, Script, Template
from .....lang.node import walk
from .....lang.operations import BUILTIN, Signature
from .....lang.parse.gasl import parse_gasl
from .....lang.parse.lwt import parse_lwt
from .....lang.seed import FormulaSeed
from .....lang.service import Known
from .....lang.source import Source

__all__ = ["Language", "ReadProgram", "Seen", "checked_seed", "read_program", "read_script"]

Language = Literal["lwt", "gasl", "plan", "seed"]
ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "ANSWER", "GASL")
"""Operations of scripts that need no file, and no code of plugins."""
_UNKNOWN = "LWT018"
"""No such operation: the diagnostic that lists those that there are."""
_CHANGING = (Declare, Reset, Update)


@frozen
class Seen:
    """What the server knows when a text is checked, and what it lets nobody do."""

    known: Known
    read_only: bool = False

    @property
    def graph(self) -> bool:
        """Whether there is one."""
        return self.known.schema is not None

    @property
    def operations(self) -> Mapping[str, Signature]:
        """The operations that this server offers to scripts."""
        return {name: BUILTIN[name] for name in ALLOWED if name in BUILTIN and (name != "GASL" or self.graph)}

    def without_variables(self) -> "Seen":
        """Return the same for a text that begins without variables."""
        return evolve(self, known=evolve(self.known, variables={}))

    def options(self) -> dict[str, Any]:
        """Return what GASL's linter takes."""
        known = self.known
        return {
            "schema": known.schema, "state": {key: each.type for key, each in (known.state or {}).items()},
            "ceiling": known.ceiling, "measures": known.measures, "variables": known.variables, "models": known.models,
        }  # fmt: skip


@frozen
class ReadProgram:
    """A program or a plan that was read and checked."""

    program: Program
    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        """Whether it has errors."""
        return has_errors(self.diagnostics)


def checked_seed(source: Source) -> tuple[SeedRead, FormulaSeed | None, tuple[Diagnostic, ...]]:
    """Read and check a seed: as it was read, what of it can be read, and all that is wrong, by place."""
    read = read_seed(source)
    readable = read.seed or read.draft
    found = check_seed(readable) if readable is not None else ()
    return read, readable, tuple(sorted(dict.fromkeys((*found, *read.diagnostics)), key=sort_key))


def read_program(source: Source, language: Literal["gasl", "plan"], known: Seen) -> ReadProgram:
    """Read and check a program or a plan. Never raises for what it says."""
    try:
        if language == "plan":
            read = read_plan(source)
            readable = read.plan or read.draft
            program = readable.program if readable is not None else Program((), source)
            found = check_plan(read, **known.options())
            if known.read_only and readable is not None:
                found = [*found, *map(readable.script.located, _changes(program))]
            return ReadProgram(program, read.plan, tuple(sorted(found, key=sort_key)))
        program = parse_gasl(source)
        found = check_gasl(program, **known.options())
        if known.read_only:
            found = [*found, *_changes(program)]
        return ReadProgram(program, None, tuple(sorted(found, key=sort_key)))
    except RecursionError:
        deep = Diagnostic("GASL023", "error", "blocks are nested too deeply", hints=("leave some of the nesting out",))
        return ReadProgram(Program((), source), None, (deep,))


def _changes(program: Program) -> Iterator[Diagnostic]:
    """Yield each command that would change a state that is only read: MCP001."""
    for node in walk(program):
        if isinstance(node, _CHANGING):
            word = type(node).__name__.upper()
            yield Diagnostic(
                "MCP001", "error", f"{word} changes the state, which this server only reads", node.span,
                ("leave it out: the result has the values that the commands give",),
            )  # fmt: skip


def read_script(source: Source, lenient: bool, input: Any, known: Seen) -> tuple[Script, tuple[Diagnostic, ...]]:
    """Read and check a script. What only a script in a file may do is an error here: MCP002 to MCP004."""
    script = parse_lwt(source, "lenient" if lenient else "strict")
    given, models = MISSING if input is None else input, known.known.models
    found: Sequence[Diagnostic] = check_lwt(script, input=given, models=models)
    if any(each.code == _UNKNOWN for each in found):  # what there is instead is what this server offers
        meant = {each.span: each for each in check_lwt(script, input=given, models=models, operations=known.operations)}
        found = [meant.get(each.span, each) if each.code == _UNKNOWN else each for each in found]
    told = {each.span.start for each in found if each.severity == "error" and each.span is not None}
    more = [each for each in _refused(script, known) if each.span is None or each.span.start not in told]
    return script, tuple(sorted((*found, *more), key=sort_key))


def _refused(script: Script, known: Seen) -> Iterator[Diagnostic]:
    for step in script.steps:
        for call in walk(step):
            if not isinstance(call, Call):
                continue
            if call.operation not in ALLOWED:
                hint = f"there are: {', '.join(known.operations)}"
                yield Diagnostic(
                    "MCP002", "error", f"{call.operation} is not offered by this server", call.span, (hint,)
                )
            elif (file := call.option("file")) is not None:
                yield Diagnostic("MCP003", "error", "a script that comes from a client reads no files", file.span)
            elif call.operation == "GASL":
                yield from _of_program(call, known)


def _of_program(call: Call, known: Seen) -> Iterator[Diagnostic]:
    if not known.graph:
        yield Diagnostic("MCP004", "error", "GASL needs a graph, and this server has none", call.span)
    if known.read_only and call.arguments and isinstance(template := call.arguments[0], Template):
        program = parse_gasl(Source(embedded(template).text(lambda reference: "x"), "<call>"))
        for change in _changes(program):
            yield Diagnostic("MCP001", "error", change.message, call.span, change.hints)
