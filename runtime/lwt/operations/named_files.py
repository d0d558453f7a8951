"""Checks the files that a script's steps name, before anything runs: programs, seeds, and scripts with the files that these name."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from ....lang.catalogue.operations import DOCUMENT_SUFFIXES
from ....lang.conversation import images_fault
from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.linter.lwt.context import Context as LinterContext
from ....lang.linter.lwt.joins import known_value
from ....lang.source import Source
from ....lang.trees import walk
from ....lang.trees.lwt import ABSENT, MISSING, Call, ListValue, Reference, Script, Template
from ...results import StepFailed
from ..files_beside import image_named, path_beside, read_beside
from ..script_files import DEEPEST, ScriptWithFiles, with_files
from .seed_step import seed_of

SUFFIXES: Mapping[str, str] = {name: suffixes[0] for (name, _), suffixes in DOCUMENT_SUFFIXES.items()}
"""Maps each operation whose ``file=`` names a separate document to the suffix of its files."""


_INPUT_HINT = 'pass the input in the step: `RUN(file="...", input={(input)})`'


@frozen
class NestedScript:
    """A script that another script runs, with the contents of its files.

    ``height`` is the number of scripts that are nested in it, one in the other.

    ``faults`` are its errors, and the errors of the files that it names. ``program`` is the name of a file with a ``GASL`` step: this
    script's, or a nested script's; "" if there is none.
    """

    files: ScriptWithFiles
    faults: tuple[Diagnostic, ...]
    height: int
    program: str

    @property
    def script(self) -> Script:
        """The script to run."""
        return self.files.script


@define
class FileChecks:
    """Checks files, each script once. ``scripts`` maps the path of each nested script to the script.

    ``check`` returns the diagnostics of a script for an input, which may be ``MISSING`` or ``ABSENT``.
    """

    check: Callable[[ScriptWithFiles, Any], list[Diagnostic]]
    scripts: dict[Path, NestedScript] = field(factory=dict, init=False)

    def faults(self, script: Script, folder: Path, running: tuple[Path, ...]) -> Iterator[Diagnostic]:
        """Yield a diagnostic LWT049 at the ``file=`` of each faulty file that the script names.

        ``folder`` is the script's folder; ``running`` are the paths of the scripts that run each other, the last of which is this one.
        """
        for step in script.steps:
            inner = step.call.arguments[-1] if step.call.operation == "EACH" and step.call.arguments else None
            for call in walk(step):
                if not isinstance(call, Call) or call.operation not in SUFFIXES:
                    continue
                file = call.option("file")
                if isinstance(file, Template) and (name := file.constant):
                    yield from self._of_call(call, name, file, folder, running, is_repeated=call is inner)

    def faults_of_inputs(self, context: LinterContext, folder: Path) -> Iterator[Diagnostic]:
        """Yield a diagnostic LWT049 for each script whose input is known before the run and lacks a path that the script uses."""
        for call, _ in context.calls:
            value, file = call.option("input"), call.option("file")
            if call.operation != "RUN" or value is None or not isinstance(file, Template):
                continue
            path, given = nested_path(call, folder), known_value(context, value)
            nested = None if path is None or given is MISSING else self.scripts.get(path)
            if nested is None or has_errors(nested.faults):
                continue
            found = next((each for each in self.check(nested.files, given) if each.code == "LWT023"), None)
            if found is not None:
                line = f":{nested.script.source.position(found.span.start)[0]}" if found.span is not None else ""
                message = f"{file.constant}{line}: {found.message} ({found.code})"
                yield Diagnostic("LWT049", "error", message, value.span, found.hints)

    def _of_call(
        self, call: Call, name: str, file: Template, folder: Path, running: tuple[Path, ...], *, is_repeated: bool
    ) -> Iterator[Diagnostic]:
        try:
            path = path_beside(name, folder, SUFFIXES[call.operation], call.span)
            if call.operation == "RUN" and (message := self._nesting(name, path, running)):
                yield Diagnostic("LWT049", "error", message, file.span)
                return
            source = Source(read_beside(name, folder, SUFFIXES[call.operation], call), name)
        except StepFailed as error:
            hints = (error.failed.hint,) if error.failed.hint else ()
            yield Diagnostic("LWT049", "error", error.failed.message, file.span, hints)
            return
        if call.operation == "RUN":
            nested = self._script(call, path, source, running)
            found: Collection[Diagnostic] = nested.faults
            if is_repeated and nested.program and not has_errors(found):
                message = f"EACH can't run {name} for each item, because {nested.program} has a GASL step"
                hint = "GASL changes the state, so the result would depend on the order of the items"
                yield Diagnostic("LWT049", "error", message, file.span, (hint,))
        else:
            found = _faults(call.operation, source)
        if has_errors(found):
            errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"]
            first, more = errors[0], len(errors) - 1
            line = f":{source.position(first.span.start)[0]}" if first.span is not None else ""
            message = f"{name}{line}: {first.message}{'' if first.code == 'LWT049' else f' ({first.code})'}"
            more_errors = f"`knotwork check {name}` lists {f'this and {more} more errors' if more else 'all errors'}"
            yield Diagnostic("LWT049", "error", message, file.span, (*first.hints, more_errors))

    def _nesting(self, name: str, path: Path, running: tuple[Path, ...]) -> str:
        if message := nesting_fault(name, path, running):
            return message
        known = self.scripts.get(path)
        if known is not None and len(running) + known.height > DEEPEST:
            return f"{name} is nested too deeply: at most {DEEPEST} scripts may run inside a script"
        return ""

    def _script(self, call: Call, path: Path, source: Source, running: tuple[Path, ...]) -> NestedScript:
        """Return the nested script with its faults. A script that several steps run is read once."""
        from ....lang.parse.lwt import parse_lwt

        known = self.scripts.get(path)
        input = MISSING if call.option("input") is not None else ABSENT
        if known is not None and input is MISSING:
            return known
        files = with_files(parse_lwt(Source(source.text, str(path))), path.parent)
        script = files.script
        found = [
            evolve(each, hints=(_INPUT_HINT,)) if each.code == "LWT023" and input is ABSENT else each
            for each in self.check(files, input)
        ]
        found += self.faults(script, path.parent, (*running, path))
        calls = [call for _, call in script.calls]
        inside = [
            nested
            for each in calls
            if each.operation == "RUN" and (nested := self._named(each, path.parent)) is not None
        ]
        program = path.name if any(each.operation == "GASL" for each in calls) else ""
        program = program or next((each.program for each in inside if each.program), "")
        made = NestedScript(files, tuple(found), 1 + max((each.height for each in inside), default=0), program)
        if known is None or input is MISSING:
            self.scripts[path] = made
        return made

    def _named(self, call: Call, folder: Path) -> NestedScript | None:
        return self.scripts.get(nested_path(call, folder) or folder)


def nesting_fault(name: str, path: Path, scripts: tuple[Path, ...]) -> str:
    """Return the reason why the last of ``scripts`` can't run the script ``path``: a circle, or too deep a nesting; else ""."""
    if path in scripts:
        circle = [each.name for each in (*scripts[scripts.index(path) :], path)]
        return f"scripts run each other in a circle: {' → '.join(circle)}"
    if len(scripts) > DEEPEST:
        return f"{name} is nested too deeply: at most {DEEPEST} scripts may run inside a script"
    return ""


def nested_path(call: Call, folder: Path | None) -> Path | None:
    """Return the path of the script that a ``RUN`` names; None without a valid name."""
    file = call.option("file")
    if not isinstance(file, Template) or not (name := file.constant):
        return None
    try:
        return path_beside(name, folder, SUFFIXES["RUN"], call.span)
    except StepFailed:
        return None


def image_faults(context: LinterContext, folder: Path | None) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each image that the script itself names and that can't be sent. ``folder`` is as for ``plan_of``.

    The images of inputs are not read here, because each row of a table has its own.
    """
    from ....adapters.llm.images import is_data_url

    for call, _ in context.calls:
        option = call.option("images") if call.operation == "LLM" else None
        for value in option.items if isinstance(option, ListValue) else () if option is None else (option,):
            found: Any = (
                MISSING if isinstance(value, Reference) and value.name == "input" else known_value(context, value)
            )
            texts: list[Any] = found if isinstance(found, list) else [found]
            if found is MISSING or images_fault(found):
                continue  # the value is not known, or another rule reports it
            for text in texts:
                try:
                    image_named(text, folder, value.span)
                except StepFailed as error:
                    code = "LWT020" if is_data_url(text) else "LWT049"
                    hints = (error.failed.hint,) if error.failed.hint else ()
                    yield Diagnostic(code, "error", error.failed.message, value.span, hints)


def _faults(operation: str, source: Source) -> list[Diagnostic]:
    if operation == "GASL":
        from ....lang.linter.gasl import check as check_gasl
        from ....lang.parse.gasl import parse_gasl

        return check_gasl(parse_gasl(source))

    return seed_of(source)[1]
