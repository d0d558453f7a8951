"""Says what is wrong with a text that changes: by the parsers and linters that everything here uses, reading anew only what changed."""

from collections.abc import Iterable
from typing import Any

from attrs import define, field

from ....lang.diagnostic import Diagnostic, sort_key
from ....lang.linter.lwt import MISSING
from ....lang.lwt import Script
from ....lang.parse.gasl.rereading import GaslReader
from ....lang.parse.lwt.rereading import LwtReader
from ....lang.service import Known, Language
from ....lang.source import Source, Span

__all__ = ["Checker"]


@define(eq=False)
class Checker:
    """Checks the successive texts of one document. Not for two threads at once.

    What it returns is what a check of the text alone returns: a property test holds the two equal.
    """

    language: Language
    items: tuple[Span, ...] = field(default=(), init=False)
    """Where the steps or commands of the last text stand."""
    _scripts: LwtReader = field(factory=LwtReader, init=False)
    _programs: GaslReader = field(factory=GaslReader, init=False)

    def check(self, source: Source, known: Known) -> list[Diagnostic]:
        """Return what is wrong with ``source``, in the order of place."""
        if self.language == "lwt":
            script = self._scripts.read(source)
            self.items = tuple(step.span for step in script.steps)
            return _check_script(script, known)
        if self.language == "gasl":
            from ....lang.linter.gasl import check

            program = self._programs.read(source)
            self.items = tuple(statement.span for statement in program.statements)
            types = None if known.state is None else {key: each.type for key, each in known.state.items()}
            return check(
                program, schema=known.schema, state=types, ceiling=known.ceiling,
                measures=known.measures, variables=tuple(known.variables), models=known.models,
            )  # fmt: skip
        return _check_seed(source, known)


def _check_script(script: Script, known: Known) -> list[Diagnostic]:
    from ...facade.workshop import folder_of
    from ...scripts import check

    given = None if known.input is MISSING else known.input
    found = check(script, given, known.models)
    if any(step.call.options and step.call.option("file") is not None for step in script.steps):
        from ...operations.beside import faults_of_files

        if (folder := folder_of(script)) is not None:
            found = sorted([*found, *faults_of_files(script, folder)], key=sort_key)
    return found


def _check_seed(source: Source, known: Known) -> list[Diagnostic]:
    from ....lang.documents.seed import read_seed
    from ...formulas.reviews import ContextError
    from ...formulas.seeds import check

    read = read_seed(source)
    readable = read.seed or read.draft
    found: Iterable[Any] = ()
    if readable is not None:
        try:
            found = check(readable, None if known.input is MISSING else known.input)
        except ContextError:  # the input beside it is no context: said of the input, not of the seed
            found = check(readable)
    return sorted(dict.fromkeys((*found, *read.diagnostics)), key=sort_key)
