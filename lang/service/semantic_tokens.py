"""Semantic tokens of a text, for all languages."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from ..catalogue.operations import FUNCTIONS, METHODS, RESERVED_FUNCTIONS
from ..parse.expr.engine import MAX_LENGTH
from ..parse.expr.engine import automaton as expr_automaton
from ..parse.expr.engine import follow as expr_follow
from ..parse.gasl.engine import automaton, follow, keywords
from ..parse.lookahead import Met
from ..parse.lwt.engine import reference_pattern
from ..parse.lwt.shapes import HEAD
from .model import Language, Reading, Token, TokenType

# Finds the tokens of a script. A step extends from its head to its closing parenthesis. Text between steps has no tokens.

_OUTSIDE = re.compile(
    rf"^[ \t]*+(?:(?P<comment>\#[^\n]*+)|(?={HEAD.pattern})(?P<head>\([^)]*+\)[ \t]*+)=)", re.MULTILINE
)
_CONSTANTS = frozenset({"true", "false", "null"})
_NAME = re.compile(r"\{\((?P<name>[^)]*)\)\}")


@cache
def _inside() -> re.Pattern[str]:
    ref = reference_pattern()
    return re.compile(
        r'(?P<string>"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\Z)'
        r"|'''(?:[^'\\]++|\\.|'(?!''))*+(?:'''|\Z)"
        rf"""|"(?:[^"\\{{]++|\\.|(?!{ref})\{{|{ref})*+"?|'(?:[^'\\{{]++|\\.|(?!{ref})\{{|{ref})*+'?)"""
        rf"|(?P<reference>{ref})"
        r"|(?P<number>-?[0-9][0-9.]*+(?:[eE][+-]?[0-9]++)?)"
        r"|(?P<operation>[A-Za-z_]\w*+)(?=[ \t]*+\()|(?P<option>[A-Za-z_]\w*+)(?=[ \t]*+=)|(?P<word>[A-Za-z_]\w*+)"
        r"|(?P<operator>[=|])|(?P<open>[(\[{])|(?P<close>[)\]}])",
        re.DOTALL,
    )


def lwt_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the text, in order."""
    at = 0
    while match := _OUTSIDE.search(text, at):
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        kept = _line(text[match.start() : end])
        if kept is not None:
            for start, stop, kind in kept:
                yield Token(match.start() + start, match.start() + stop, kind)
            at = end
            continue
        found: list[Token] = []
        at, _ = _collect(text, match, found)
        yield from found


def _line(line: str) -> tuple[Token, ...] | None:
    """Return the tokens of a line that is a comment or a complete step; None if the step continues on the next line."""
    match = _OUTSIDE.match(line)
    found: list[Token] = []
    return tuple(found) if match is not None and _collect(line, match, found)[1] else None


def _collect(text: str, match: re.Match[str], found: list[Token]) -> tuple[int, bool]:
    """Add the tokens of the comment or step at ``match`` to ``found``. Return its end, and whether this end is certain."""
    if match["comment"] is not None:
        start = match.start("comment")
        found.append(Token(start, start + len(match["comment"].rstrip()), "comment"))
        return match.end(), True
    start = match.start("head")
    found.append(Token(start + 1, start + match["head"].index(")"), "step"))
    found.append(Token(match.end() - 1, match.end(), "operator"))
    return _step(text, match.end(), found)


_TYPES: dict[str, TokenType] = {
    "number": "number", "operation": "function", "option": "property", "operator": "operator",
}  # fmt: skip


def _step(text: str, at: int, found: list[Token]) -> tuple[int, bool]:
    """Add the tokens after the head of a step to ``found``.

    Return the step's end, and whether its last parenthesis was found.
    """
    depth = 0
    for match in _inside().finditer(text, at):
        kind = match.lastgroup or ""
        start, end = match.span()
        if not depth and kind != "open" and (kind != "operation" or "\n" in text[at:start]):
            return max(at, text.find("\n", at, start) + 1), False  # the head is not followed by a call
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth <= 0:
                return end, True
        elif kind == "string":
            found += _string(text, start, end)
        elif kind == "reference":
            found += _reference(text, start, end)
        elif kind == "word":
            found.append(Token(start, end, "keyword" if match[0] in _CONSTANTS else "type"))
        else:
            found.append(Token(start, end, _TYPES[kind]))
        at = end if not depth else at
    return len(text), False


@cache
def _reference_or_line() -> re.Pattern[str]:
    return re.compile(rf"(?P<reference>{reference_pattern()})|\r?\n")


def _string(text: str, start: int, end: int) -> Iterator[Token]:
    if "\n" not in text[start:end] and "{(" not in text[start:end]:
        yield Token(start, end, "string")
        return
    at = start
    for match in _reference_or_line().finditer(text, start, end):
        if match.start() > at:
            yield Token(at, match.start(), "string")
        if match["reference"]:
            yield from _reference(text, match.start(), match.end())
        at = match.end()
    if end > at:
        yield Token(at, end, "string")


def _reference(text: str, start: int, end: int) -> Iterator[Token]:
    name = _NAME.match(text, start)
    if name is not None:
        yield Token(start, start + 2, "operator")
        yield Token(*name.span("name"), "step")
        yield Token(name.end() - 2, name.end(), "operator")
        if end > name.end():
            yield Token(name.end(), end, "property")


# Finds the tokens of a GASL text. The parser classifies the words of a statement, once for all statements of the same shape. The
# shape is the statement with each name, string and number replaced by a sample. A file of a thousand lines has a few dozen shapes.

_LEXEME = re.compile(
    r"""(?P<newline>\n)|(?P<comment>\#[^\n]*+)"""
    r"""|(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*+"?|'(?:[^'\\\r\n]|\\[^\r\n])*+'?)"""
    r"""|(?P<variable>\$\{[^}\r\n]*+\}?)"""
    r"""|(?P<number>-?[0-9][0-9.]*+(?:[eE][+-]?[0-9]++)?(?![A-Za-z_]))"""
    r"""|(?P<path>(?:[A-Za-z_]\w*+|`(?:[^`\r\n]|``)++`)(?:\.(?:[A-Za-z_]\w*+|`(?:[^`\r\n]|``)++`))++)"""
    r"""|(?P<quoted>`(?:[^`\r\n]|``)++`)|(?P<word>[A-Za-z_]\w*+)|(?P<sign>[<>=!]=|<>|->|<-(?=[ \t]*+[\[\-])|[<>=+\-*/%])"""
    r"""|(?P<bracket>[()\[\]{},:|])|(?P<other>\S)""",
)
_SAMPLES = {"string": '"x"', "variable": "${x}", "path": "node.x", "quoted": "x", "other": "?"}
_VALUES = frozenset({"string", "variable", "number", "path", "quoted"})
"""The pieces after which a minus is an operator, not the sign of a number."""
_GASL_TYPES: dict[str, TokenType] = {
    "string": "string", "variable": "variable", "number": "number", "path": "property", "quoted": "variable", "word": "variable",
    "sign": "operator", "comment": "comment",
}  # fmt: skip
"""Maps the kinds of pieces that are classified without the parser to types."""
_LONGEST_SHAPE = 400
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")

Lexeme = tuple[str, int, int]


def gasl_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the text, in order."""
    at = start = depth = 0
    for line in text.split("\n"):
        end = at + len(line)
        depth = max(0, depth + _open_brackets(line)) if depth or not _OPENING.isdisjoint(line) else depth
        if not depth or end == len(text):
            chunk = line if start == at else text[start:end]
            for begin, stop, kind in _of_chunk(chunk):
                yield Token(start + begin, start + stop, kind)
            start = end + 1
        at = end + 1


def _open_brackets(line: str) -> int:
    """Return the number of brackets that a line opens, minus the number that it closes."""
    signs = [match[0] for match in _LEXEME.finditer(line) if match.lastgroup == "bracket"]
    return sum(sign in _OPENING for sign in signs) - sum(sign in _CLOSING for sign in signs)


def _of_chunk(text: str) -> tuple[tuple[int, int, TokenType], ...]:
    """Return the tokens of a statement. ``text`` consists of its lines up to the one with its last closing bracket."""
    chunk: list[Lexeme] = []
    shape: list[str] = []
    known = keywords()
    behind_value = False
    for match in _LEXEME.finditer(text):
        kind = match.lastgroup or ""
        said = match[0]
        if kind == "number" and said[0] == "-" and behind_value:  # a - 5 written as a -5
            chunk.append(("sign", match.start(), match.start() + 1))
            chunk.append((kind, match.start() + 1, match.end()))
            shape += ["-", "1" if said[1:].isdigit() else "1.5"]
            continue
        behind_value = kind in _VALUES or said == ")" or (kind == "word" and said.upper() not in known)
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
    """Return the type of each piece of ``shape``, the text of a statement in which samples replace names and values.

    The type of brackets and commas is None.
    """
    follower = follow(shape)
    pieces = _pieces(shape)
    if follower is None or len(follower.met) != len(pieces):
        return _plain(shape)
    terminals = [met.terminal for met in follower.met]
    return tuple(_type(terminals, place) for place in range(len(terminals)))


def _pieces(shape: str) -> list[re.Match[str]]:
    return [match for match in _LEXEME.finditer(shape) if match.lastgroup != "newline"]


def _plain(shape: str) -> tuple[TokenType | None, ...]:
    """Return the types for an invalid statement. Each word is classified without its context."""
    known = keywords()
    found: list[TokenType | None] = []
    for place, match in enumerate(_pieces(shape)):
        kind = match.lastgroup or ""
        if kind == "word" and match[0] in known:
            found.append("keyword" if place or match[0] not in _command_words() else "command")
        else:
            found.append(_GASL_TYPES.get(kind))
    return tuple(found)


def _type(terminals: list[str], place: int) -> TokenType | None:
    terminal = terminals[place]
    before = terminals[place - 1] if place else ""
    after = terminals[place + 1] if place + 1 < len(terminals) else ""
    if terminal in _command_terminals():
        # JOIN a WITH b ON id: a word that can begin a command begins one only at the start of a statement, or after a word that a
        # command follows.
        return "command" if not place or before in _BEFORE_COMMANDS else "keyword"
    if terminal == "IDENTIFIER":
        return _type_of_name(terminals, before, after)
    if terminal == "PATH" and after == "LPAR":
        return "function"
    if terminal in _BY_TERMINAL:
        return _BY_TERMINAL[terminal]
    said = automaton().spellings.get(terminal, ("",))[0]
    return "keyword" if said[:1].isalpha() else None


_BEFORE_COMMANDS = frozenset({"_THEN", "_ELSE", "EXPLAIN"})


def _type_of_name(terminals: list[str], before: str, after: str) -> TokenType:
    """Return the type of a name between the terminals ``before`` and ``after``."""
    if before == "_USING":  # after any other USING comes a string
        return "function"
    if before in ("COLON", "BAR"):  # a label in a pattern
        return "type"
    is_setting = after == "EQUALS"
    is_property = before in ("LBRACE", "_COMMA") and after == "COLON"
    is_returned = after == "COLUMN_TYPE" and terminals[0] != "PARAM"
    # An AS that another option of the command follows names a column; the last AS names the variable.
    is_column = before == "_AS" and after in ("_AS", "_COMMA", "WHERE", "SAMPLE", "_COMPUTE", "ON")
    return "property" if is_setting or is_property or is_returned or is_column else "variable"


_BY_TERMINAL: dict[str, TokenType] = {
    "PATH": "property", "STRING": "string", "VARIABLE": "variable", "INT": "number", "NUMBER": "number", "FUNCTION": "function",
    "TYPE": "type", "COLUMN_TYPE": "type", "EQUALS": "operator", "COMPARISON": "operator",
    **dict.fromkeys(("PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "RIGHT_ARROW", "LEFT_ARROW"), "operator"),
}  # fmt: skip


@cache
def _command_terminals() -> frozenset[str]:
    first = automaton()
    return frozenset(first.accepts(tuple(first.follower("program").states)))


@cache
def _command_words() -> frozenset[str]:
    return frozenset(said for name in _command_terminals() for said in automaton().spellings.get(name, ()))


# Finds the tokens of an expression. If the parser does not accept the expression, each word is classified without its context.

_EXPR_LEXEME = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)|(?P<number>[0-9][0-9.]*+)|(?P<word>[^\W\d]\w*+)"""
    r"""|(?P<operator>\*\*|//|[=!<>]=|[+\-*/%<>=])"""
)
_EXPR_TYPES: dict[str, TokenType] = {"string": "string", "number": "number", "operator": "operator"}


def expr_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the text, in order."""
    follower = expr_follow(text) if len(text) <= MAX_LENGTH else None
    if follower is None:
        yield from _expr_plain(text)
        return
    met = follower.met
    for place, each in enumerate(met):
        found = _expr_type(met, place, text)
        if found:
            yield from _lines(text, each.start, each.end, found)


def _lines(text: str, start: int, end: int, kind: TokenType) -> Iterator[Token]:
    """Yield a token, or one token for each line: ``is not null`` may extend over several lines."""
    for match in re.finditer(r"[^\r\n]+", text[start:end]):
        yield Token(start + match.start(), start + match.end(), kind)


def _expr_type(met: list[Met], place: int, text: str) -> TokenType | None:
    terminal = met[place].terminal
    if terminal == "NAME":
        before = met[place - 1].terminal if place else ""
        after = met[place + 1].terminal if place + 1 < len(met) else ""
        if after == "LPAR":
            return "function"
        return "property" if before == "DOT" or after in ("DOT", "EQUALS") else "variable"
    if terminal in ("STRING", "NUMBER"):
        return "string" if terminal == "STRING" else "number"
    said = text[met[place].start : met[place].end]
    if said[:1].isalpha():
        return "keyword"
    return None if said in "()[]{},:." else "operator"


def _expr_plain(text: str) -> Iterator[Token]:
    words = {said for texts in expr_automaton().spellings.values() for said in texts for said in said.split()}
    for match in _EXPR_LEXEME.finditer(text):
        kind = match.lastgroup or ""
        found: TokenType
        if kind == "word":
            called = match[0] in FUNCTIONS and text[match.end() : match.end() + 1] == "("
            function = called or match[0] in RESERVED_FUNCTIONS or match[0] in METHODS
            found = "keyword" if match[0] in words else "function" if function else "variable"
        else:
            found = _EXPR_TYPES[kind]
        yield Token(*match.span(), found)


# Finds the tokens of a seed's document: keys, values, and the tokens of expressions in its strings.

_JSON_LEXEME = re.compile(
    r'(?P<key>"(?:[^"\\\n]|\\[^\n])*+"(?=[ \t\r\n]*+:))|(?P<string>"(?:[^"\\\n]|\\[^\n])*+"?)'
    r"|(?P<number>-?[0-9][0-9.]*+(?:[eE][+-]?[0-9]++)?)|(?P<keyword>true|false|null)"
)
_JSON_TYPES: dict[str, TokenType] = {"key": "property", "string": "string", "number": "number", "keyword": "keyword"}
_EXPRESSIONS = frozenset({'"expr"', '"formula"', '"when"'})
_BETWEEN = re.compile(r"[ \t\r\n]*+:[ \t\r\n]*+")


def json_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the text, in order."""
    key, behind = "", 0
    for match in _JSON_LEXEME.finditer(text):
        kind = match.lastgroup or ""
        start, end = match.span()
        is_value = _BETWEEN.fullmatch(text, behind, start) is not None
        if kind == "string" and is_value and key in _EXPRESSIONS and "\\" not in match[0] and end - start > 2:
            yield Token(start, start + 1, "string")
            inner = match[0][1:-1] if match[0][-1] == '"' else match[0][1:]
            for each in expr_tokens(inner):
                yield Token(each.start + start + 1, each.end + start + 1, each.type)
            if match[0][-1] == '"':
                yield Token(end - 1, end, "string")
        else:
            yield Token(start, end, _JSON_TYPES[kind])
        key, behind = (match[0], end) if kind == "key" else ("", 0)


def tokens_of(language: Language, text: str) -> Iterator[Token]:
    """Yield the tokens of the text, in order; see ``service.tokens``."""
    match language:
        case "gasl":
            return gasl_tokens(text)
        case "lwt":
            return lwt_tokens(text)
        case "expr":
            return expr_tokens(text)
        case "seed":
            return json_tokens(text)


def tokens_in(reading: Reading) -> tuple[Token, ...]:
    """Return the tokens of a parsed text."""
    return reading.once("tokens", lambda read: tuple(tokens_of(read.language, read.text)))
