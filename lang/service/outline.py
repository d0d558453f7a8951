"""What a text defines, as an outline."""

import re
from collections.abc import Iterable, Iterator

from ..documents.json_tree import JsonNode
from ..source import Span
from ..trees import gasl
from ..trees.gasl import Item, Statement, Try
from ..trees.node import walk
from .document import Reading
from .model import Fold, Symbol, SymbolKind, excerpt

__all__ = ["folds_of", "symbols_of"]


def symbols_of(reading: Reading) -> tuple[Symbol, ...]:
    """See ``service.symbols``."""
    match reading.language:
        case "gasl":
            return tuple(_items(reading.program.items, reading.text))
        case "lwt":
            return tuple(
                Symbol(
                    step.id,
                    "step",
                    step.span,
                    Span(step.span.start + 1, step.span.start + 1 + len(step.id)),
                    step.call.operation,
                )
                for step in reading.script.steps
            )
        case "seed":
            return tuple(_seed(reading))
        case "expr":
            return ()


_DEEPEST = 60
"""Commands in commands that are told of; faulty texts may have any number."""


def _items(items: Iterable[Item], text: str, depth: int = 0) -> Iterator[Symbol]:
    for item in items:
        if isinstance(item, Statement):
            yield from _command(item.command, item.span, text, depth)


def _command(command: gasl.Command, span: Span, text: str, depth: int) -> Iterator[Symbol]:
    if depth > _DEEPEST:
        return
    said = excerpt(text[command.span.start : command.span.end])
    if isinstance(command, gasl.Try):
        inner = (*command.body, *(command.caught or ()), *(command.always or ()))
        word = Span(command.span.start, command.span.start + 3)
        yield Symbol("TRY", "block", span, word, children=tuple(_items(inner, text, depth + 1)))
    elif isinstance(command, gasl.Branch):
        for each in (command.then, command.otherwise):
            if each is not None:
                yield from _command(each, each.span, text, depth + 1)
    elif isinstance(command, gasl.On):
        yield from _command(command.then, command.then.span, text, depth + 1)
    elif isinstance(command, gasl.Declare | gasl.Update):
        yield Symbol(command.key.text, "key", span, command.key.span, said)
    else:
        for name in gasl.written(command):
            yield Symbol(name.text, "variable", span, name.span, said)


def _seed(reading: Reading) -> Iterator[Symbol]:
    root = reading.document.root
    if root is None:
        return
    extract = root.fields.get("extract")
    fields = extract.fields.get("fields") if extract is not None else root.fields.get("extraction_fields")
    yield from _named(fields, "field", "type")
    yield from _named(root.fields.get("compute") or root.fields.get("compute_dag"), "computation", "op")


def _named(node: JsonNode | None, kind: SymbolKind, detail: str) -> Iterator[Symbol]:
    for item in node.items if node is not None else ():
        name = item.fields.get("name")
        if name is not None and isinstance(name.value, str) and name.value:
            about = item.value.get(detail)
            yield Symbol(name.value, kind, item.span, name.span, about if isinstance(about, str) else "")


# What can be folded.


_COMMENTS = re.compile(r"(?:^[ \t]*+#[^\n]*+(?:\n|\Z)){2,}", re.MULTILINE)


def folds_of(reading: Reading) -> tuple[Fold, ...]:
    """See ``service.folds``."""
    source, text, language = reading.source, reading.text, reading.language
    spans: Iterator[tuple[int, int]] = iter(())
    if language != "expr":
        spans = {"gasl": _gasl, "lwt": _lwt, "seed": _seed_folds}[language](reading)
    found = set()
    for start, end in spans:
        first, last = source.position(start)[0], source.position(max(start, end - 1))[0]
        if last > first:
            found.add((first, last, "region"))
    if language in ("gasl", "lwt"):
        for match in _COMMENTS.finditer(text):
            first, last = source.position(match.start())[0], source.position(match.end() - 1)[0]
            found.add((first, last, "comment"))
    return tuple(Fold(first, last, "comment" if kind == "comment" else "region") for first, last, kind in sorted(found))


def _gasl(reading: Reading) -> Iterator[tuple[int, int]]:
    for piece in reading.as_program.pieces.parts:
        for start, end in piece.note("folds", _in):
            yield piece.start + start, piece.start + end


def _in(items: tuple[Item, ...], begin: int) -> tuple[tuple[int, int], ...]:
    """Return what of the items may be folded, from ``begin`` on."""
    found = [item.span for item in items]
    for item in items:
        for node in walk(item):
            if isinstance(node, Try):
                found.append(node.span)
                for part in (node.body, node.caught or (), node.always or ()):
                    found += (each.span for each in part)
    return tuple((span.start - begin, span.end - begin) for span in found)


def _lwt(reading: Reading) -> Iterator[tuple[int, int]]:
    return ((step.span.start, step.span.end) for step in reading.script.steps)


def _seed_folds(reading: Reading) -> Iterator[tuple[int, int]]:
    root = reading.document.root
    waiting: list[JsonNode] = [root] if root is not None else []
    while waiting:
        node = waiting.pop()
        if node.fields or node.items:
            yield node.start, node.end
            waiting += [*node.fields.values(), *node.items]
