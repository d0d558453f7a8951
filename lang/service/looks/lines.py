"""What can be folded."""

import re
from collections.abc import Iterator

from ...documents.json_tree import JsonNode
from ...gasl import Try
from ...node import walk
from ...source import Source
from .. import reading
from ..model import Fold, Language

__all__ = ["folds_of"]

_COMMENTS = re.compile(r"(?:^[ \t]*+#[^\n]*+(?:\n|\Z)){2,}", re.MULTILINE)


def folds_of(language: Language, source: Source) -> tuple[Fold, ...]:
    """See ``service.folds``."""
    text = source.text
    spans: Iterator[tuple[int, int]] = iter(())
    if language != "expr":
        spans = {"gasl": _gasl, "lwt": _lwt, "seed": _seed}[language](text)
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


def _gasl(text: str) -> Iterator[tuple[int, int]]:
    for item in reading.program(text).items:
        yield item.span.start, item.span.end
        for node in walk(item):
            if isinstance(node, Try):
                yield node.span.start, node.span.end
                for part in (node.body, node.caught or (), node.always or ()):
                    yield from ((each.span.start, each.span.end) for each in part)


def _lwt(text: str) -> Iterator[tuple[int, int]]:
    return ((step.span.start, step.span.end) for step in reading.script(text).steps)


def _seed(text: str) -> Iterator[tuple[int, int]]:
    root = reading.document(text).root
    waiting: list[JsonNode] = [root] if root is not None else []
    while waiting:
        node = waiting.pop()
        if node.fields or node.items:
            yield node.start, node.end
            waiting += [*node.fields.values(), *node.items]
