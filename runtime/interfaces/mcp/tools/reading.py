"""Texts of all languages read and checked against what the server knows: one way in for ``check``, ``explain`` and the runs."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from attrs import evolve, frozen

from .....lang.catalogue.operations import BUILTIN, Signature
from .....lang.diagnostic import Diagnostic
from .....lang.embedded import embedded
from .....lang.parse.gasl import parse_gasl
from .....lang.service import Known
from .....lang.source import Source
from .....lang.trees.gasl import Declare, Program, Reset, Update
from .....lang.trees.lwt import Call, Script, Template
from .....lang.trees.node import walk
from ....api.checked import CheckedProgram, CheckedScript, Surroundings, check_program, check_script

__all__ = ["Language", "Seen", "read_program", "read_script"]

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

    @property
    def surroundings(self) -> Surroundings:
        """What programs are checked against."""
        known = self.known
        return Surroundings(
            known.schema, {key: each.type for key, each in (known.state or {}).items()}, known.ceiling, known.measures,
            tuple(known.variables), None if known.models is None else tuple(known.models),
        )  # fmt: skip


def read_program(source: Source, language: Literal["gasl", "plan"], known: Seen) -> CheckedProgram:
    """Check a program or a plan; what would change a state that is only read is an error: MCP001."""
    return check_program(source, language, known.surroundings, restrict=_changes if known.read_only else None)


def _changes(program: Program) -> Iterator[Diagnostic]:
    """Yield each command that would change a state that is only read: MCP001."""
    for node in walk(program):
        if isinstance(node, _CHANGING):
            word = type(node).__name__.upper()
            yield Diagnostic(
                "MCP001", "error", f"{word} changes the state, which this server only reads", node.span,
                ("leave it out: the result has the values that the commands give",),
            )  # fmt: skip


def read_script(source: Source, lenient: bool, input: Any, known: Seen) -> CheckedScript:
    """Check a script. What only a script in a file may do is an error here: MCP002 to MCP004. ``input``: as for ``check_script``."""
    models = known.known.models
    checked = check_script(
        source, "lenient" if lenient else "strict", input=input, models=models, operations=BUILTIN,
        reads_files=False, restrict=lambda script: _refused(script, known),
    )  # fmt: skip
    if all(each.code != _UNKNOWN for each in checked.found):
        return checked
    # The diagnostic of an unknown operation lists those that this server offers.
    offered = check_script(checked.script, input=input, models=models, operations=known.operations, reads_files=False)
    meant = {each.span: each for each in offered.found if each.code == _UNKNOWN}
    found = tuple(meant.get(each.span, each) if each.code == _UNKNOWN else each for each in checked.found)
    return evolve(checked, found=found)


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
