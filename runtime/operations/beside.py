"""The files that a script's steps name, looked at before anything runs."""

from collections.abc import Iterator
from pathlib import Path

from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.source import Source
from ...lang.trees.lwt import Call, Script, Template
from ...lang.trees.node import walk
from ..results import StepFailed
from .files import read_beside

__all__ = ["faults_of_files"]

_SUFFIXES = {"GASL": ".gasl", "SEED": ".json"}


def faults_of_files(script: Script, folder: Path) -> Iterator[Diagnostic]:
    """Yield what is wrong with the files that the script names, each at its ``file=``: LWT049. ``folder`` is the script's."""
    for step in script.steps:
        for call in walk(step):
            if not isinstance(call, Call) or call.operation not in _SUFFIXES:
                continue
            file = call.option("file")
            if not isinstance(file, Template) or not (name := file.constant):
                continue
            try:
                source = Source(read_beside(name, folder, _SUFFIXES[call.operation], call), name)
            except StepFailed as error:
                hints = (error.failed.hint,) if error.failed.hint else ()
                yield Diagnostic("LWT049", "error", error.failed.message, file.span, hints)
                continue
            found = _faults(call.operation, source)
            if has_errors(found):
                errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"]
                first, more = errors[0], len(errors) - 1
                line = f":{source.position(first.span.start)[0]}" if first.span is not None else ""
                message = f"{name}{line}: {first.message} ({first.code})"
                told = f"`knotwork check {name}` tells {f'this and {more} more' if more else 'more'}"
                yield Diagnostic("LWT049", "error", message, file.span, (*first.hints, told))


def _faults(operation: str, source: Source) -> list[Diagnostic]:
    if operation == "GASL":
        from ...lang.linter.gasl import check as check_gasl
        from ...lang.parse.gasl import parse_gasl

        return check_gasl(parse_gasl(source))
    from .seeds import seed_of

    return seed_of(source)[1]
