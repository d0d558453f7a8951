"""Says what is wrong with a text: by the parsers and linters that everything here uses, of what was read already."""

from ....lang.diagnostic import Diagnostic, sort_key
from ....lang.service import Known, Reading, diagnose
from ....lang.trees.lwt import MISSING

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
    from ...api.checked import check_script

    return check_script(reading.script, input=known.input, models=known.models, given=known.variables).found


def _check_seed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    from ...api.checked import check_seed
    from ...seeds.reviews import ContextError

    if known.input is not MISSING:
        try:
            return check_seed(reading.seed, known.input).found
        except ContextError:  # the input beside the seed is no context: that is a fault of the input
            pass
    found = diagnose("seed", reading, known)
    return tuple(sorted(dict.fromkeys((*found, *reading.seed.diagnostics)), key=sort_key))
