"""What the commands above the cursor bind, found without reading them; only those that the command at the cursor rests on are read."""

import re
from collections.abc import Collection, Iterable

from attrs import frozen

from ...gasl import Statement
from ...parse.gasl.engine import Read, read
from ...parse.gasl.lines import HEAD_LINE, chunk_at
from ...parse.gasl.nodes import identifier

__all__ = ["Bindings", "bindings_in", "statements_for"]

_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`\r\n]|``)+`)"
_BINDS = re.compile(
    r""""(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+'|\#[^\n]*+"""
    rf"""|\bDECLARE[ \t]++(?P<key>{_NAME}(?:\.{_NAME})*)[ \t]++AS[ \t]++(?P<type>LIST|DICT|COUNTER)\b"""
    rf"""|\bAS[ \t]++(?P<name>{_NAME})""",
    re.IGNORECASE,
)
_MOST_READ = 20
"""Statements that are read for one completion."""
_LINES_BACK = 60


@frozen
class Bindings:
    """Variables by name, each with where the name stands that was bound last; keys with their types."""

    variables: dict[str, int]
    keys: dict[str, str]


def bindings_in(text: str, stop: int) -> Bindings:
    """Return what the text before ``stop`` binds and declares, whether or not it can be read."""
    found = Bindings({}, {})
    for match in _BINDS.finditer(text, 0, stop):
        if name := match["name"]:
            found.variables.pop(name := identifier(name), None)  # the last one bound comes last
            found.variables[name] = match.start("name")
        elif key := match["key"]:
            found.keys[key] = match["type"].upper()
    return found


def statement_text(text: str, offset: int) -> str:
    """Return the statement in which ``offset`` stands."""
    start = text.rfind("\n", 0, offset) + 1
    at = start
    for _ in range(_LINES_BACK):
        if at == 0 or HEAD_LINE.match(text, at):
            break
        at = text.rfind("\n", 0, at - 1) + 1
    start = at if HEAD_LINE.match(text, at) else start
    chunk = chunk_at(text, start, in_block=True)
    return text[chunk.start : max(chunk.end, offset)]


def statements_for(text: str, names: Iterable[str], bound: Bindings) -> list[Statement]:
    """Return the statements that bind ``names``, and what these rest on, first things first; at most twenty."""
    found: dict[int, list[Statement]] = {}
    waiting, seen = list(names), set(names)
    while waiting and len(found) < _MOST_READ:
        offset = bound.variables.get(waiting.pop())
        if offset is None or offset in found:
            continue
        piece = statement_text(text, offset)
        done = read(piece)
        found[offset] = [item for item in done.result if isinstance(item, Statement)] if isinstance(done, Read) else []
        more = [name for name in _named_in(piece, bound.variables) if name not in seen]
        seen.update(more)
        waiting += more
    return [statement for offset in sorted(found) for statement in found[offset]]


def _named_in(piece: str, known: Collection[str]) -> list[str]:
    words = re.findall(r"`(?:[^`\r\n]|``)+`|\w+", piece)
    return [name for name in dict.fromkeys(map(identifier, words)) if name in known]
