"""What takes from what: the commands, steps and expressions of a text as one graph, by the names that they bind and refer to."""

from collections.abc import Iterable, Sequence

from attrs import frozen

from ....lang.parse.gasl import parse_gasl
from ....lang.parse.lwt import parse_lwt
from ....lang.printer.lwt import format_value
from ....lang.service.symbols import occurrences_in
from ..repl.reading import Piece, expression_of

__all__ = ["Box", "flow_of", "told_of"]

_KEY = "\0"
"""Comes before a key of the state, which is no value's name: no name begins so."""
_NAMED = 8
"""Names that the first line of the text has."""


@frozen
class Box:
    """A command, a step, an expression, or a value from outside. ``takes`` are the numbers of those that it takes from."""

    name: str
    does: str
    text: str
    takes: tuple[int, ...] = ()
    given: bool = False


@frozen
class _Part:
    """``binds`` are the names that others see, ``wants`` those that it takes."""

    name: str
    does: str
    text: str
    binds: tuple[str, ...]
    wants: tuple[str, ...]
    at_once: bool = False
    """It stands in no order with its neighbours that are so too: a step."""


def flow_of(pieces: Iterable[Piece]) -> tuple[Box, ...]:
    """Return the graph of pieces that have no errors, what is given from outside first."""
    parts = [part for piece in pieces for part in _parts(piece)]
    makers: list[dict[str, int]] = _makers(parts)
    given = list(
        dict.fromkeys(
            name
            for part, maker in zip(parts, makers, strict=True)
            for name in part.wants
            if name not in maker and not name.startswith(_KEY)
        )
    )
    place = {name: number for number, name in enumerate(given)}
    shift = len(given)
    boxes = [Box(name, "given", name, given=True) for name in given]
    for part, maker in zip(parts, makers, strict=True):
        found = (maker[name] + shift if name in maker else place.get(name) for name in part.wants)
        takes = dict.fromkeys(number for number in found if number is not None)
        boxes.append(Box(part.name, part.does, part.text, tuple(takes)))
    return tuple(boxes)


def told_of(boxes: Sequence[Box]) -> str:
    """Return the graph as a text; its first line says what it is."""
    made = [box for box in boxes if not box.given]
    names = list(dict.fromkeys(box.name for box in made))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    head = f"what takes from what: {', '.join(names[:_NAMED])}{more}"
    return "\n".join([head, *(_line(box, boxes) for box in boxes)])


def _line(box: Box, boxes: Sequence[Box]) -> str:
    source = f" ← {', '.join(boxes[number].name for number in box.takes)}" if box.takes else ""
    return f"{box.name} · {box.does}{source}"


def _makers(parts: Sequence[_Part]) -> list[dict[str, int]]:
    """Return for each part who has bound each name before it. Steps that stand together see each other, in any order."""
    found: list[dict[str, int]] = []
    bound: dict[str, int] = {}
    for number, part in enumerate(parts):
        if part.at_once and not (number and parts[number - 1].at_once):
            together = number
            while together < len(parts) and parts[together].at_once:
                bound |= dict.fromkeys(parts[together].binds, together)
                together += 1
        found.append(dict(bound))
        bound |= dict.fromkeys(part.binds, number)
    return found


def _parts(piece: Piece) -> list[_Part]:
    match piece.language:
        case "gasl":
            return _commands(piece)
        case "lwt":
            return _steps(piece)
        case "expr":
            name, text = expression_of(piece.text)
            wants = tuple(
                dict.fromkeys(o.name for o in occurrences_in("expr", text) if o.kind == "variable" and not o.scope)
            )
            binds = () if name is None else (name,)
            return [_Part(name or "…", "=", piece.text, binds, wants)]
        case _:
            return []


def _commands(piece: Piece) -> list[_Part]:
    program = parse_gasl(piece.source)
    named = occurrences_in("gasl", piece.text)
    found = []
    for statement in program.statements:
        span = statement.command.span
        text = program.source.slice(span)
        inside = [each for each in named if span.start <= each.span.start < span.end]
        names = [each for each in inside if each.kind == "variable" and each.name != "error"]
        binds = tuple(dict.fromkeys(each.name for each in names if each.defines))
        wants = tuple(dict.fromkeys(each.name for each in names if not each.defines))
        # A key is declared inside of another one.
        keys = [each for each in inside if each.kind == "key"]
        name = ", ".join(binds or dict.fromkeys(each.name for each in keys)) or "…"
        declared = tuple(_KEY + each.name for each in keys if each.defines)
        parents = [parent for each in keys if each.defines and (parent := each.name.rpartition(".")[0])]
        used = tuple(_KEY + key for key in (*(each.name for each in keys if not each.defines), *parents))
        found.append(_Part(name, text.split(None, 1)[0].upper(), text, binds + declared, wants + used))
    return found


def _steps(piece: Piece) -> list[_Part]:
    script = parse_lwt(piece.source)
    named = occurrences_in("lwt", piece.text)
    found = []
    for step in script.steps:
        inside = [each for each in named if step.span.start <= each.span.start < step.span.end and not each.defines]
        wants = tuple(dict.fromkeys(each.name for each in inside if each.name not in ("item", "index")))
        when = step.call.option("when")
        does = step.call.operation if when is None else f"{step.call.operation}, when {format_value(when)}"
        found.append(_Part(step.id, does, script.source.slice(step.span), (step.id,), wants, True))
    return found
