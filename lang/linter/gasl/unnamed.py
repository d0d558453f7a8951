"""A command that lacks AS and its name, and the name below that nothing binds: one slip, told as one fault with its fix."""

from collections.abc import Sequence

from attrs import evolve

from ...diagnostic import Diagnostic, Edit
from ...printer.gasl import format_name
from ...source import Span
from .registry import Context

__all__ = ["named"]

_MISSING = "AS and a name are missing"
_UNBOUND = "GASL050"


def named(
    context: Context, faults: Sequence[Diagnostic], found: Sequence[Diagnostic]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Return the faults of reading with the names that commands lack, and what the rules found without what that explains.

    A name is only given where no other is possible: it is the one name behind the command that nothing binds.
    """
    places = [each for each in faults if _is_unnamed(each)]
    if not places:
        return list(faults), list(found)
    unbound: dict[str, int] = {}
    for use in context.flow.uses:
        if not use.bindings and use.name not in context.first_bindings:
            unbound[use.name] = min(use.span.start, unbound.get(use.name, use.span.start))
    given: dict[Diagnostic, str] = {}
    for each, following in zip(places, [*places[1:], None], strict=True):
        end = _start(following) if following is not None else len(context.program.source.text)
        names = [name for name, start in unbound.items() if _start(each) < start < end]
        if len(names) == 1:
            given[each] = names[0]
    explained = [f"nothing binds the variable {name}" for name in given.values()]
    mended = [_with_name(each, given[each]) if each in given else each for each in faults]
    return mended, [each for each in found if each.code != _UNBOUND or each.message not in explained]


def _is_unnamed(fault: Diagnostic) -> bool:
    return fault.span is not None and fault.code == "GASL006" and fault.message.startswith(_MISSING)


def _start(fault: Diagnostic) -> int:
    return fault.span.start if fault.span is not None else 0


def _with_name(fault: Diagnostic, name: str) -> Diagnostic:
    end = fault.span.end if fault.span is not None else 0
    written = format_name(name)
    hints = (f"write AS {written} behind it: nothing else binds {written}", *fault.hints[1:])
    return evolve(fault, hints=hints, edits=(Edit(Span(end, end), f" AS {written}"),))
