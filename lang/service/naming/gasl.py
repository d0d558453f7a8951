"""The names of a GASL program: variables and keys of the state."""

import re
from collections.abc import Iterator

from ... import gasl
from ...conditions import Variable
from ...gasl import Key, Name, Program
from ...node import Node, walk
from ...printer.gasl import format_name
from ...source import Span
from .occurrence import Occurrence

__all__ = ["occurrences"]

_IN_BRACES = re.compile(r"\$\{[ \t]*(?P<name>[A-Za-z_][A-Za-z0-9_]*|`(?:[^`\r\n]|``)+`)")
_KEPT = "a key of the state keeps its name: what is kept has it"
_GIVEN = "error is what CATCH gives; it has no other name"


def occurrences(program: Program) -> Iterator[Occurrence]:
    """Yield what the program names, as far as it was read."""
    text = program.source.text
    for item in program.items:
        for node in walk(item):
            into = getattr(node, "into", None)
            for child in _own(node):
                if isinstance(child, Name):
                    fixed = _GIVEN if child.text == "error" and child is not into else ""
                    yield Occurrence("variable", child.text, child.span, child is into, written=_name, fixed=fixed)
                elif isinstance(child, Key) and not isinstance(node, gasl.SetCommand):
                    yield Occurrence("key", child.text, child.span, isinstance(node, gasl.Declare), fixed=_KEPT)
            if isinstance(node, Variable) and (match := _IN_BRACES.match(text, node.span.start)):
                yield Occurrence("variable", node.name, Span(*match.span("name")), written=_name)


def _own(node: Node) -> Iterator[Node]:
    for attribute in ("source", "left", "right", "start", "end", "key", "into"):
        child = getattr(node, attribute, None)
        if isinstance(child, Name | Key):
            yield child


def _name(name: str) -> str | None:
    try:
        return format_name(name)
    except ValueError:
        return None
