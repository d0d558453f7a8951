"""Says what is wrong with a text: by the parsers and linters that everything here uses, of what was read already."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import evolve

from ....lang.diagnostic import Diagnostic, sort_key
from ....lang.linter.lwt import MISSING
from ....lang.service import Known, Reading, diagnose

if TYPE_CHECKING:
    from ....lang.lwt import Script

__all__ = ["check"]


def check(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a text, in the order of place.

    That of a text which was read from one before is what a check of the text alone returns: a property test holds the two equal.
    """
    match reading.language:
        case "lwt":
            return _check_script(reading, known)
        case "seed":
            return _check_seed(reading, known)
    return diagnose(reading.language, reading, known)


def _check_script(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    script = reading.script
    found = diagnose("lwt", reading, _with_plugins(script, known))
    if any(step.call.options and step.call.option("file") is not None for step in script.steps):
        from ...facade.workshop import folder_of
        from ...operations.beside import faults_of_files

        if (folder := folder_of(script)) is not None:
            return tuple(sorted([*found, *faults_of_files(script, folder)], key=sort_key))
    return found


def _with_plugins(script: "Script", known: Known) -> Known:
    """Return what is known, with the operations of the plugins that a script names; most name none."""
    from ...operations import OPERATIONS, signatures

    named = {step.call.operation for step in script.steps}
    return evolve(known, operations=signatures(named)) if named - OPERATIONS.keys() else known


def _check_seed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    from ...formulas.reviews import ContextError
    from ...formulas.seeds import check as check_seed

    read = reading.seed
    seed = read.seed or read.draft
    found: Iterable[Diagnostic] = ()
    if known.input is MISSING:
        found = diagnose("seed", reading, known)
    elif seed is not None:
        try:
            found = check_seed(seed, known.input)
        except ContextError:  # the input beside it is no context: said of the input, not of the seed
            found = check_seed(seed)
    return tuple(sorted(dict.fromkeys((*found, *read.diagnostics)), key=sort_key))
