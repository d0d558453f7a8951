"""What can be folded."""

import re
from collections.abc import Iterator

from ...documents.json_tree import JsonNode
from ...gasl import Item, Try
from ...node import walk
from ..model import Fold
from ..reading import Reading

__all__ = ["folds_of"]

_COMMENTS = re.compile(r"(?:^[ \t]*+#[^\n]*+(?:\n|\Z)){2,}", re.MULTILINE)


def folds_of(reading: Reading) -> tuple[Fold, ...]:
    """See ``service.folds``."""
    source, text, language = reading.source, reading.text, reading.language
    spans: Iterator[tuple[int, int]] = iter(())
    if language != "expr":
        spans = {"gasl": _gasl, "lwt": _lwt, "seed": _seed}[language](reading)
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


def _seed(reading: Reading) -> Iterator[tuple[int, int]]:
    root = reading.document.root
    waiting: list[JsonNode] = [root] if root is not None else []
    while waiting:
        node = waiting.pop()
        if node.fields or node.items:
            yield node.start, node.end
            waiting += [*node.fields.values(), *node.items]
