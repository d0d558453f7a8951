"""Reads and checks prompt scripts."""

from collections.abc import Collection
from typing import Any

from .....lang.diagnostic import sort_key
from .....lang.linter.lwt import MISSING, check
from .....lang.lwt import MAX_STEPS, Mode, Script
from .....lang.operations import BUILTIN
from .....lang.parse.lwt import parse_lwt
from .....lang.source import Source
from ....facade.workshop import folder_of
from .checked import Checked

__all__ = ["check_script", "check_text"]


def check_text(source: Source, mode: Mode, max_steps: int = MAX_STEPS, given: Any = MISSING) -> Checked:
    """Read and check one text, against the run's input where there is one."""
    return check_script(parse_lwt(source, mode, max_steps), given)


def check_script(script: Script, given: Any = MISSING, models: Collection[str] | None = None) -> Checked:
    """Check a script that is read already."""
    operations = BUILTIN
    named = {step.call.operation for step in script.steps}
    if named - BUILTIN.keys():
        # Only a script that calls something unknown pays for looking plugins up.
        from ....operations import signatures

        operations = signatures(named)
    found = check(script, input=given, operations=operations, models=models)
    if _names_files(script) and (folder := folder_of(script)) is not None:
        from ....operations.beside import faults_of_files

        found = sorted([*found, *faults_of_files(script, folder)], key=sort_key)
    return Checked(tuple(found), script.source, script, size=len(script.steps))


def _names_files(script: Script) -> bool:
    return any(step.call.options and step.call.option("file") is not None for step in script.steps)
