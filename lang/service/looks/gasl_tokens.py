"""The tokens of a GASL text. A statement's words are told apart by the parser, once for all statements of the same shape.

The shape is the statement with each name, text and number replaced by a sample: a file of a thousand lines has a few dozen.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from ...parse.gasl.engine import automaton, follow, keywords
from ..memory import Memory
from ..model import Token, TokenType

__all__ = ["gasl_tokens"]

_LEXEME = re.compile(
    r"""(?P<newline>\n)|(?P<comment>\#[^\n]*+)"""
    r"""|(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+"?|'(?:[^'\\\r\n]|\\[^\r\n])*+'?)"""
    r"""|(?P<variable>\$\{[^}\r\n]*+\}?)"""
    r"""|(?P<number>-?[0-9][0-9.]*+(?:[eE][+-]?[0-9]++)?(?![A-Za-z_]))"""
    r"""|(?P<path>(?:[A-Za-z_]\w*+|`(?:[^`\r\n]|``)++`)(?:\.(?:[A-Za-z_]\w*+|`(?:[^`\r\n]|``)++`))++)"""
    r"""|(?P<quoted>`(?:[^`\r\n]|``)++`)|(?P<word>[A-Za-z_]\w*+)|(?P<sign>[<>=!]=|<>|[<>=])|(?P<bracket>[()\[\],])|(?P<other>\S)""",
)
_SAMPLES = {"string": '"x"', "variable": "${x}", "path": "node.x", "quoted": "x", "other": "?"}
_TYPES: dict[str, TokenType] = {
    "string": "string", "variable": "variable", "number": "number", "path": "property", "quoted": "variable", "word": "variable",
    "sign": "operator", "comment": "comment",
}  # fmt: skip
"""What a piece is where no parser has read it."""
_LONGEST_SHAPE = 400

Lexeme = tuple[str, int, int]


def gasl_tokens(text: str, lines: Memory) -> Iterator[Token]:
    """Yield the tokens of the text, in order. Lines that ``lines`` knows are not looked at again."""
    at = start = depth = 0
    for line in text.split("\n"):
        end = at + len(line)
        depth = max(0, depth + _opened(line) if "(" in line or "[" in line or depth else depth)
        if not depth or end == len(text):
            chunk = line if start == at else text[start:end]
            for begin, stop, kind in lines.of(chunk, _of_chunk):
                yield Token(start + begin, start + stop, kind)
            start = end + 1
        at = end + 1


def _opened(line: str) -> int:
    """Return how many more brackets a line opens than it closes."""
    signs = [match[0] for match in _LEXEME.finditer(line) if match.lastgroup == "bracket"]
    return sum(sign in "([" for sign in signs) - sum(sign in ")]" for sign in signs)


def _of_chunk(text: str) -> tuple[tuple[int, int, TokenType], ...]:
    """Return the tokens of a statement: its line, and those that brackets carry it over."""
    chunk: list[Lexeme] = []
    shape: list[str] = []
    known = keywords()
    for match in _LEXEME.finditer(text):
        kind = match.lastgroup or ""
        said = match[0]
        if kind == "comment":
            chunk.append((kind, match.start(), match.start() + len(said.rstrip())))
        elif kind != "newline":
            chunk.append((kind, match.start(), match.end()))
            if kind == "word":
                shape.append(said.upper() if said.upper() in known else "x")
            elif kind == "number":
                shape.append("1" if said.isdigit() else "1.5")
            else:
                shape.append(_SAMPLES.get(kind, said))
    joined = " ".join(shape)
    types = iter(_types(joined) if len(shape) <= _LONGEST_SHAPE else _plain(joined))
    told = ((start, end, "comment" if kind == "comment" else next(types)) for kind, start, end in chunk)
    return tuple((start, end, found) for start, end, found in told if found)


@lru_cache(maxsize=2048)
def _types(shape: str) -> tuple[TokenType | None, ...]:
    """Return the type of each piece of a shape; None for brackets and commas."""
    follower = follow(shape)
    pieces = _pieces(shape)
    if follower is None or len(follower.met) != len(pieces):
        return _plain(shape)
    terminals = [met.terminal for met in follower.met]
    return tuple(_type(terminals, place) for place in range(len(terminals)))


def _pieces(shape: str) -> list[re.Match[str]]:
    return [match for match in _LEXEME.finditer(shape) if match.lastgroup != "newline"]


def _plain(shape: str) -> tuple[TokenType | None, ...]:
    """Return types of a statement that can't be read: of each word for itself."""
    known = keywords()
    found: list[TokenType | None] = []
    for place, match in enumerate(_pieces(shape)):
        kind = match.lastgroup or ""
        if kind == "word" and match[0] in known:
            found.append("keyword" if place or match[0] not in _command_words() else "command")
        else:
            found.append(_TYPES.get(kind))
    return tuple(found)


def _type(terminals: list[str], place: int) -> TokenType | None:
    terminal = terminals[place]
    before = terminals[place - 1] if place else ""
    after = terminals[place + 1] if place + 1 < len(terminals) else ""
    if terminal in _command_terminals():
        # JOIN a WITH b ON id: a word that begins commands does so at the beginning, and behind THEN or ELSE.
        return "command" if not place or before in ("_THEN", "_ELSE", "THEN", "ELSE") else "keyword"
    if terminal == "IDENTIFIER":
        if after == "COLUMN_TYPE":
            return "property"
        return "function" if before == "_USING" else "variable"  # a text stands behind every other USING
    if terminal in _BY_TERMINAL:
        return _BY_TERMINAL[terminal]
    said = automaton().spellings.get(terminal, ("",))[0]
    return "keyword" if said[:1].isalpha() else None


_BY_TERMINAL: dict[str, TokenType] = {
    "PATH": "property", "STRING": "string", "VARIABLE": "variable", "INT": "number", "NUMBER": "number", "FUNCTION": "function",
    "TYPE": "type", "COLUMN_TYPE": "type", "EQUALS": "operator", "COMPARISON": "operator",
}  # fmt: skip


@cache
def _command_terminals() -> frozenset[str]:
    first = automaton()
    return frozenset(first.accepts(tuple(first.follower("program").states)))


@cache
def _command_words() -> frozenset[str]:
    return frozenset(said for name in _command_terminals() for said in automaton().spellings.get(name, ()))
