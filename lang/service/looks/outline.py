"""What a text defines, as an outline."""

from collections.abc import Iterable, Iterator

from ... import gasl
from ...documents.json_tree import JsonNode
from ...gasl import Item, Statement
from ...source import Span
from ..markdown import excerpt
from ..model import Symbol, SymbolKind
from ..reading import Reading

__all__ = ["symbols_of"]


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
