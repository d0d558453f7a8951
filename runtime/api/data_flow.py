"""The data flow between pieces of text: the names that each piece reads and binds, and the graph of pieces and their inputs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...adapters.graph import GraphAdapter
from ...lang.dependencies import layers
from ...lang.parse.gasl import parse_gasl
from ...lang.parse.lwt import parse_lwt
from ...lang.printer.lwt_printer import format_value
from ...lang.service.language_names import Occurrence
from ...lang.service.navigation import occurrences_in
from ...lang.trees.gasl import Param
from ..report.drawings import Drawing, Spot, draw
from ..report.findings import evidence_graph, groups
from .pieces import Piece, expression_of

__all__ = [
    "Box", "Drawing", "Spot", "data_flow", "draw_evidence", "location_of", "names_bound", "names_read", "names_read_first",
]  # fmt: skip

# The names that a piece binds, and the names of outside values that it reads. The parsers of the languages find the names.


def names_read(piece: Piece) -> list[str]:
    """Return the distinct names of values that a piece reads but does not define itself.

    A parameter (PARAM) reads the value that is bound to its name, if there is one.
    """
    found = _value_names(piece)
    own = {each.name for each in found if each.defines and each.kind == "step"}
    read = dict.fromkeys(each.name for each in found if not each.defines and each.name not in own)
    return list({**dict.fromkeys(_parameter_names(piece)), **read})


def _parameter_names(piece: Piece) -> list[str]:
    if piece.language != "gasl":
        return []
    commands = (statement.command for statement in parse_gasl(piece.text).statements)
    return [command.name.text for command in commands if isinstance(command, Param)]


def names_bound(piece: Piece) -> list[str]:
    """Return the distinct names that a piece binds."""
    if piece.language == "expr":
        name = expression_of(piece.text)[0]
        return [] if name is None else [name]
    return list(dict.fromkeys(each.name for each in _value_names(piece) if each.defines))


def names_read_first(pieces: Iterable[Piece]) -> list[str]:
    """Return the names that the pieces read and that no earlier piece binds."""
    bound, wanted = set[str](), dict[str, None]()
    for piece in pieces:
        wanted |= dict.fromkeys(name for name in names_read(piece) if name not in bound)
        bound.update(names_bound(piece))
    return list(wanted)


def _value_names(piece: Piece) -> Sequence[Occurrence]:
    if piece.language == "dot" or piece.language == "comment":
        return ()
    text = expression_of(piece.text)[1] if piece.language == "expr" else piece.text
    found = occurrences_in(piece.language, text)
    return [each for each in found if each.kind in ("variable", "step") and not each.scope]


def location_of(piece: Piece, done: Iterable[str] = ()) -> str:
    """Return the location ``NAME:LINE`` of a piece (for steps: of the first step not in ``done``); "" for a dot command or a comment."""
    source, start = piece.source, 0
    match piece.language:
        case "dot" | "comment":
            return ""
        case "gasl":
            start = next((each.command.span.start for each in parse_gasl(source).statements), 0)
        case "lwt":
            names = set(done)
            start = next((step.span.start for step in parse_lwt(source).steps if step.id not in names), 0)
        case "expr":
            start = len(piece.text) - len(piece.text.lstrip())
    return f"{source.name}:{source.position(start)[0]}"


# The graph of a text. Its nodes are commands, steps and expressions, which are connected by the names that they bind and read.

_KEY = "\0"
"""Prefix that distinguishes a key of the state from the name of a value. No name begins with this character."""


@frozen
class Box:
    """A command, a step, an expression, or an external value. ``inputs`` are the indexes of its input boxes; ``layer`` counts from 0."""

    name: str
    operation: str
    text: str
    inputs: tuple[int, ...] = ()
    is_external: bool = False
    layer: int = 0


@frozen
class _Part:
    """A command, step or expression.

    ``binds`` are the names that other parts can read, ``reads`` are the names that this part reads. ``is_unordered`` is true
    for a step, because adjacent steps have no order.
    """

    name: str
    operation: str
    text: str
    binds: tuple[str, ...]
    reads: tuple[str, ...]
    is_unordered: bool = False


def data_flow(pieces: Iterable[Piece]) -> tuple[Box, ...]:
    """Return the boxes of the data flow; the boxes of external values come first. The pieces must have no errors."""
    parts = [part for piece in pieces for part in _parts(piece)]
    producers = _producers(parts)
    external: dict[str, int] = {}
    for part, producer in zip(parts, producers, strict=True):
        for name in part.reads:
            if name not in producer and not name.startswith(_KEY):
                external.setdefault(name, len(external))
    inputs: list[tuple[int, ...]] = [() for _ in external]
    for part, producer in zip(parts, producers, strict=True):
        found = (producer[name] + len(external) if name in producer else external.get(name) for name in part.reads)
        inputs.append(tuple(dict.fromkeys(number for number in found if number is not None)))
    graph = {str(number): tuple(map(str, each)) for number, each in enumerate(inputs)}
    layer_of = {int(name): number for number, layer in enumerate(layers(graph)) for name in layer}
    boxes = [Box(name, "given", name, is_external=True) for name in external]
    for number, part in enumerate(parts, len(external)):
        boxes.append(Box(part.name, part.operation, part.text, inputs[number], layer=layer_of.get(number, -1)))
    return tuple(boxes)


def _producers(parts: Sequence[_Part]) -> list[dict[str, int]]:
    """Return, for each part, a map from each visible name to the index of the part that binds it. Adjacent steps see each other's names."""
    found: list[dict[str, int]] = []
    bound: dict[str, int] = {}
    for number, part in enumerate(parts):
        if part.is_unordered and not (number and parts[number - 1].is_unordered):
            step = number
            while step < len(parts) and parts[step].is_unordered:
                bound |= dict.fromkeys(parts[step].binds, step)
                step += 1
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
            binds = tuple(names_bound(piece))
            return [_Part(next(iter(binds), "…"), "=", piece.text, binds, tuple(names_read(piece)))]
        case _:
            return []


def _commands(piece: Piece) -> list[_Part]:
    program = parse_gasl(piece.source)
    occurrences = occurrences_in("gasl", piece.text)
    found = []
    for statement in program.statements:
        span = statement.command.span
        text = program.source.slice(span)
        inside = [each for each in occurrences if span.start <= each.span.start < span.end]
        names = [each for each in inside if each.kind == "variable" and each.name != "error"]
        binds = tuple(dict.fromkeys(each.name for each in names if each.defines))
        reads = tuple(dict.fromkeys(each.name for each in names if not each.defines))
        # A declaration of a nested key also uses its parent key.
        keys = [each for each in inside if each.kind == "key"]
        name = ", ".join(binds or dict.fromkeys(each.name for each in keys)) or "…"
        declared = tuple(_KEY + each.name for each in keys if each.defines)
        parents = [parent for each in keys if each.defines and (parent := each.name.rpartition(".")[0])]
        used = tuple(_KEY + key for key in (*(each.name for each in keys if not each.defines), *parents))
        found.append(_Part(name, text.split(None, 1)[0].upper(), text, binds + declared, reads + used))
    return found


def _steps(piece: Piece) -> list[_Part]:
    script = parse_lwt(piece.source)
    occurrences = occurrences_in("lwt", piece.text)
    found = []
    for step in script.steps:
        start, end = step.span.start, step.span.end
        inside = (each.name for each in occurrences if start <= each.span.start < end and not each.defines)
        reads = tuple(dict.fromkeys(name for name in inside if name not in ("item", "index")))
        when = step.call.option("when")
        operation = step.call.operation if when is None else f"{step.call.operation}, when {format_value(when)}"
        found.append(_Part(step.id, operation, script.source.slice(step.span), (step.id,), reads, True))
    return found


# The nodes and edges that support the findings of a state.


def draw_evidence(state: Mapping[str, Any], graph: GraphAdapter | None) -> Drawing | None:
    """Return a drawing of the nodes and edges that the evidence in a state names; None if it names no nodes."""
    return draw(*evidence_graph(groups(state)), graph)
