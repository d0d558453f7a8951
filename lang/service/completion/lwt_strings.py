"""The strings that a script may have at the cursor: models, files, functions, columns and fixed values."""

import re
from collections.abc import Iterator

from ...catalogue.operations import FILE_SUFFIXES, OptionSpec
from ...linter.lwt import Context
from ...linter.lwt.joins import joined_lists, known_columns
from ...parse.lwt import parse_lwt
from ...trees.lwt import Call, Option
from ..model import Known
from .place import Way

_CALLED = re.compile(r"\bCALL\([ \t]*[\"'](?P<name>\w+)[\"']")


def strings_for(way: Way, known: Known, text: str, offset: int) -> Iterator[str]:
    """Yield the strings allowed as the argument or as the value of the option at the cursor, which is at ``offset`` in ``text``.

    Functions are those that the script calls elsewhere; all others are known only to the host of a run.
    """
    call, spec = call_at(way), spec_at(way, known)
    if call is None:
        return
    if spec is None:
        if call.operation == "CALL" and len(call.arguments) <= 1 and not call.options:
            found = (each for each in _CALLED.finditer(text) if not each.start() <= offset <= each.end())
            yield from dict.fromkeys(each["name"] for each in found)
    elif suffixes := FILE_SUFFIXES.get((call.operation, spec.name)):
        yield from (name for name in known.files if name.endswith(suffixes))
    elif spec.kind == "columns":
        yield from _common_columns(call, known, text)
    elif spec.name in ("model", "judge"):
        yield from known.models or ()
    elif spec.kind == "string":
        yield from spec.values


def _common_columns(call: Call, known: Known, text: str) -> list[str]:
    """Return the columns that all lists of a JOIN have. Lists whose columns are not known before the run are left out."""
    context = Context(parse_lwt(text), known.input, known.operations, known.models)
    columns = [found for each in joined_lists(call) if (found := known_columns(context, each.value)) is not None]
    return [name for name in columns[0] if all(name in other for other in columns[1:])] if columns else []


def call_at(way: Way) -> Call | None:
    """Return the innermost call around the cursor."""
    return next((node for node, _ in reversed(way) if isinstance(node, Call)), None)


def spec_at(way: Way, known: Known) -> OptionSpec | None:
    """Return the specification of the option at the cursor; None for an argument and an unknown option."""
    call = call_at(way)
    option = next((node for node, _ in reversed(way) if isinstance(node, Option)), None)
    signature = known.operations.get(call.operation) if call is not None else None
    return signature.option(option.name) if option is not None and signature is not None else None
