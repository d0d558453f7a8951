"""The names of a script: its steps, and what references name."""

import re
from collections.abc import Iterator

from ...lwt import RESERVED, Script, references
from ...parse.lwt.shapes import ID
from ...source import Span
from .occurrence import Occurrence

__all__ = ["occurrences"]


def occurrences(script: Script) -> Iterator[Occurrence]:
    """Yield what the script names, as far as it was read."""
    for step in script.steps:
        start = step.span.start + 1
        yield Occurrence("step", step.id, Span(start, start + len(step.id)), True, written=_id)
        for reference in references(step):
            start = reference.span.start + 2
            fixed = f"{reference.name} is not a step" if reference.name in RESERVED else ""
            yield Occurrence("step", reference.name, Span(start, start + len(reference.name)), written=_id, fixed=fixed)


def _id(name: str) -> str | None:
    return name if re.fullmatch(ID, name) and name not in RESERVED else None
