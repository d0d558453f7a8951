"""Reads and checks the seed that a command is about, and says so where it is something else."""

import io
import sys

from ......lang.trees.seed import FormulaSeed
from .....api.checked import Checked, check_seed
from ...shared.checking import show
from ...shared.exit import Exit, Misused
from ...shared.files import Unreadable, read_source, required
from ...shared.output import say
from .streaming import NotJSON, values

__all__ = ["open_seed", "refused"]

_OTHERS = {".lwt": "a prompt script", ".gasl": "a program"}


def open_seed(name: str, order: str, *, warn: bool = False) -> FormulaSeed | Checked:
    """Return the seed; a ``Checked`` says what is wrong. With ``warn`` its warnings are told on stderr: it is about to cost.

    ``order`` is the command with its arguments in order. Raises ``Misused`` for a file of another kind.
    """
    for suffix, noun in _OTHERS.items():
        if name.lower().endswith(suffix):
            raise Misused(f"{name} is {noun}, not a Formula Seed", f"it is run by: knotwork run {name}")
    try:
        source = read_source(name, like="*.seed.json")
    except Unreadable as error:
        if error.diagnostic.code == "KW003":
            _compare(name, _beginning(name), order)
        return Checked((error.diagnostic,), error.source)
    _compare(source.name, source.text[:_LOOKED_AT].encode("utf-8", "replace"), order)
    required(source, ("seed", "script", "table"), "this command takes a Formula Seed (.seed.json)", "seed")
    checked = check_seed(source)
    if checked.failed or checked.seed is None:
        return checked
    if warn:
        show([checked.without_remarks], sys.stderr)
    return checked.seed


_LOOKED_AT = 4 << 20
"""Characters of a file that are looked at to see what it is."""


def _beginning(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read(_LOOKED_AT)
    except OSError:
        return b""


def _compare(name: str, beginning: bytes, order: str) -> None:
    """Refuse contexts, results and CSV in the place of the seed: the arguments are in the wrong order."""
    try:
        first = next(values(io.BytesIO(beginning)), None)
    except NotJSON as error:
        if error.looks_like == "csv" or not name.lower().endswith(".json"):
            raise Misused(f"{name} is no JSON, and so no Formula Seed", f"the order is: {order}") from None
        return
    if first is None or not isinstance(first.value, dict):
        return
    keys = first.value.keys()
    found = "results" if "extractions" in keys else "contexts" if "reviews" in keys else ""
    if found:
        raise Misused(f"{name} has {found}, not a Formula Seed", f"the order is: {order}")


def refused(checked: Checked, what: str = "nothing was run") -> int:
    """Tell why there is nothing to do with a seed, and return the exit code."""
    show([checked.without_remarks], sys.stderr)
    say(what)
    return Exit.ERRORS
