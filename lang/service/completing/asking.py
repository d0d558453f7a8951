"""Completion in any of the languages."""

from ..model import Completion, Known
from ..reading import Reading
from .behind import over_the_rest

__all__ = ["completed"]


def completed(reading: Reading, offset: int, known: Known) -> tuple[Completion, ...]:
    """See ``service.complete``. The room of a language is loaded when it is first asked for."""
    found: tuple[Completion, ...]
    match reading.language:
        case "gasl":
            from .gasl import complete_gasl as complete
        case "lwt":
            from .lwt import complete_lwt as complete
        case "expr":
            from .expr import complete_expr as complete
        case "seed":
            from .seed import complete_seed as complete
    found = complete(reading.source, offset, known)
    if not found and reading.language in ("lwt", "gasl"):
        from .ignored import complete_ignored

        found = complete_ignored(reading.text, offset, reading.language)
    return over_the_rest(found, reading.text, offset)
