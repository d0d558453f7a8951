"""Reads and checks scripts for all commands, and shows diagnostics."""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, TextIO

from attrs import evolve, frozen

from .....lang.diagnostic import Diagnostic, as_json, has_errors, picture, printable, sort_key
from .....lang.linter.lwt import MISSING, check
from .....lang.lwt import Mode, Script
from .....lang.operations import BUILTIN
from .....lang.parse.lwt import parse_lwt
from .....lang.source import Source
from .exit import Exit
from .files import Unreadable, only_one_stdin, read_input, read_source, refuse_other_kinds
from .output import colour, json_text, picture_in_colour

__all__ = ["Checked", "check_file", "check_files", "check_script", "report", "show"]


@frozen
class Checked:
    """What came of one file: its diagnostics, the source they point into, and the script if the file could be read."""

    diagnostics: tuple[Diagnostic, ...]
    source: Source
    script: Script | None = None

    @property
    def failed(self) -> bool:
        """Say whether the file has an error."""
        return has_errors(self.diagnostics)

    @property
    def without_remarks(self) -> "Checked":
        """The same without remarks (severity info): ``check`` has them, other commands say in their own way what they say."""
        return evolve(self, diagnostics=tuple(d for d in self.diagnostics if d.severity != "info"))


def check_files(names: Sequence[str], mode: Mode, input_name: str | None = None) -> list[Checked]:
    """Read and check every file, against the input if one is named. An input that can't be read comes first."""
    only_one_stdin([*names, input_name])
    for name in names:
        refuse_other_kinds(name)
    results, given = [], MISSING
    if input_name is not None:
        try:
            given = read_input(input_name)
        except Unreadable as error:
            results.append(Checked((error.diagnostic,), error.source))
    return results + [check_file(name, mode, given) for name in names]


def check_file(name: str, mode: Mode, given: Any = MISSING, models: Collection[str] | None = None) -> Checked:
    """Read and check one file."""
    try:
        source = read_source(name)
    except Unreadable as error:
        return Checked((error.diagnostic,), error.source)
    return check_script(parse_lwt(source, mode), given, models)


def check_script(script: Script, given: Any = MISSING, models: Collection[str] | None = None) -> Checked:
    """Check a script that is read already."""
    operations = BUILTIN
    named = {step.call.operation for step in script.steps}
    if named - BUILTIN.keys():
        # Only a script that calls something unknown pays for looking plugins up.
        from ....operations import signatures

        operations = signatures(named)
    found = check(script, input=given, operations=operations, models=models)
    return Checked(tuple(found), script.source, script)


_DRAWN = 50
"""Diagnostics drawn for one file; nobody reads more at once, and most of them have one cause."""


def show(results: Iterable[Checked], out: TextIO) -> None:
    """Draw the diagnostics for a person, errors before what is cut off, a blank line between them."""
    in_colour = colour(out)
    for result in results:
        found = result.diagnostics
        if len(found) > _DRAWN:
            errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"][:_DRAWN]
            others = [diagnostic for diagnostic in found if diagnostic.severity != "error"][: _DRAWN - len(errors)]
            found = tuple(sorted((*errors, *others), key=sort_key))
        for diagnostic in found:
            drawn = picture(diagnostic, result.source)
            print(picture_in_colour(drawn, diagnostic.severity) if in_colour else drawn, file=out)
            print(file=out)
        if more := len(result.diagnostics) - len(found):
            name = printable(result.source.name)
            print(f"and {more:,} more in {name}; knotwork check --format json has them all\n", file=out)


def report(results: Sequence[Checked], form: Literal["human", "json"]) -> int:
    """Write all diagnostics to stdout and return the exit code."""
    if form == "json":
        print(json_text([as_json(d, result.source) for result in results for d in result.diagnostics]))
    else:
        show(results, sys.stdout)
        print(_summary(results))
    return Exit.ERRORS if any(result.failed for result in results) else Exit.DONE


def _summary(results: Sequence[Checked]) -> str:
    counts = Counter(diagnostic.severity for result in results for diagnostic in result.diagnostics)
    files = _many(len(results), "file")
    steps = _many(sum(len(result.script.steps) for result in results if result.script is not None), "step")
    found = [_many(counts[severity], noun) for severity, noun in _NOUNS if counts[severity]]
    return f"{', '.join(found) or 'nothing to report'} in {files} ({steps})"


_NOUNS: tuple[tuple[Literal["error", "warning", "info"], str], ...] = (
    ("error", "error"), ("warning", "warning"), ("info", "remark"),
)  # fmt: skip


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
