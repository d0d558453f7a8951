"""Boundaries of statements in the lines of a program, found without parsing.

Every regular expression takes linear time on any text, because its repetitions are possessive or bounded.
"""

import re
from collections.abc import Sequence

from attrs import evolve, frozen

from ...catalogue.commands import COMMANDS
from ...diagnostic import Edit, nearest
from ...source import Span
from ...trees.gasl import Comment, Item, Statement, Try
from ..repairs import Fault, fault, is_ended, is_remark, reads_as_text

_OPERATORS = r"IN|IS|NOT|AND|OR|CONTAINS|STARTS_WITH|ENDS_WITH|MATCHES|TEXT|INT|FLOAT|BOOL"
HEAD_LINE = re.compile(
    rf"[ \t]*+(?:(?:{'|'.join(COMMANDS)})\b(?=[ \t]++(?!(?:{_OPERATORS})\b)[\w`$])|(?:TRY|CATCH[ \t]++ANY|FINALLY|END)[ \t\r]*+$)",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches the start of a line that certainly begins a statement, even if an earlier bracket is not closed."""

BLOCK_WORD = re.compile(r"(TRY|CATCH|FINALLY|END)\b(?![ \t]*+[=.])", re.IGNORECASE)
"""Matches a keyword of a block, at a place where a statement may begin."""

_CONTINUES = re.compile(
    r"[ \t]*+(?:(?:WHERE|AS|AND|OR|LIMIT|ORDER|USING|WITH|WITH_DESCRIPTION|BY|INTO|FROM|TO|VIA|MAXLEN|SHORTEST|DEPTH"
    r"|DIRECTION|RADIUS|FIELDS|COMPUTE|PER|SAMPLE|SIMILAR|TRACE|RETURNING|THEN|ELSE|MERGE|REPLACE)\b"
    r"|ON\b(?![ \t]++(?:EMPTY|ERROR|PARTIAL|SCHEMA_MISMATCH)\b)|[)\],=])",
    re.IGNORECASE,
)
_SCAN = re.compile(
    r""""(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+'|`(?:[^`\r\n]|``)*+`"""
    r"""|[\n"'`()\[\]#]|\b(?:CATCH|FINALLY|END)\b""",
)


@frozen
class Chunk:
    """The range ``[start, end)`` of a statement. ``joins`` are the line breaks inside the statement but outside brackets."""

    start: int
    end: int
    joins: tuple[Span, ...] = ()

    def text(self, program: str) -> str:
        """Return the text of the statement; ``program`` is the text of the complete program."""
        return program[self.start : self.end]

    def text_on_one_line(self, program: str) -> str:
        """Return the text of the statement with spaces in place of its line breaks, so that offsets stay the same."""
        parts, end = [], self.start
        for join in self.joins:
            parts += [program[end : join.start], " " * (join.end - join.start)]
            end = join.end
        return "".join([*parts, program[end : self.end]])


def end_of_line(text: str, offset: int) -> int:
    """Return the end of the line that contains ``offset``: the offset of its newline, or the length of the text."""
    found = text.find("\n", offset)
    return len(text) if found < 0 else found


def chunk_at(text: str, start: int, in_block: bool) -> Chunk:
    """Return the statement that begins at ``start``. The statement consists of its line, and of the lines that continue it.

    While a bracket is open, the statement continues on the next line, unless that line begins like a statement. In a block, the
    statement ends before a keyword of the block. After an unclosed quote, the rest of the line is ignored.
    """
    depth, place = 0, start
    joins: list[Span] = []
    stop = len(text)
    while match := _SCAN.search(text, place):
        sign, at, place = match[0], match.start(), match.end()
        if sign == "\n":
            if depth and not HEAD_LINE.match(text, at + 1) and not text.startswith("#:", at + 1):
                continue
            follows = _CONTINUES.match(text, at + 1)
            if follows and not HEAD_LINE.match(text, at + 1):
                first = at - (len(text[start:at]) - len(text[start:at].rstrip())) if len(joins) < 50 else at
                blank = re.compile(r"\n[ \t]*+").match(text, at)
                joins.append(Span(first, blank.end() if blank else at + 1))
                continue
            stop = at
            break
        if sign == "#":
            if depth:
                place = end_of_line(text, at)
                continue
            stop = at
            break
        if sign in "([":
            depth += sign == "[" or at > start  # a ( at the start does not continue a statement
        elif sign in ")]":
            depth = max(0, depth - 1)
        elif sign in "\"'`":
            place, depth = end_of_line(text, at), 0
        elif (
            sign[0] in "CFE"
            and in_block
            and not depth
            and at > start
            and text[max(0, at - 40) : at].rstrip()[-2:] != "AS"
        ):
            stop = at
            break
    return Chunk(start, start + len(text[start:stop].rstrip()), tuple(joins))


# Moves comments from inside commands to the line before the command, because the tree cannot hold them inside.


def woven(items: Sequence[Item], inner: Sequence[Comment]) -> tuple[Item, ...]:
    """Return ``items`` with the comments ``inner``. Each comment is placed before the innermost statement that contained it."""
    if not inner:
        return tuple(items)
    made: list[Item] = []
    waiting = list(reversed(inner))
    for item in items:
        held: list[Comment] = []
        while waiting and waiting[-1].span.start < item.span.end:
            held.append(waiting.pop())
        if held and isinstance(item, Statement) and isinstance(item.command, Try):
            made.append(evolve(item, command=_into_block(item.command, held)))
        else:
            made += [*held, item]
    return (*made, *reversed(waiting))


def _into_block(block: Try, held: list[Comment]) -> Try:
    """Put each comment in ``held`` into the part of the block that contained it. The block's keywords contain no comments."""
    parts: list[tuple[Item, ...] | None] = []
    for part in (block.body, block.caught, block.always):
        mine = [comment for comment in held if part and comment.span.start < part[-1].span.end]
        held = held[len(mine) :]
        parts.append(woven(part, mine) if part is not None else None)
    return evolve(block, body=parts[0] or (), caught=parts[1], always=parts[2])


# Explains lines that are not commands: code fences, ellipses, prose.

BULLET = re.compile(
    r"(?:(?:[Ss]tep[ \t]{1,4})?\d{1,3}[ \t]{0,2}[.):]|[-*+•>\u2013]{1,3}|\*\*|`{1,3}(?![^`\n]*\n))[ \t]*+"
)
"""A list bullet or number, or markup, before a command."""

_FENCE = re.compile(r"(?:```|~~~)[^\n`]{0,80}$")
_ELISION = re.compile(r"(?:\.\.\.+|…+)\W{0,20}$")
_MEANT = re.compile(
    r"""["'`{\[$(]|\w+[ \t]*:?=|(?:IF|MATCH|CREATE|DEFINE|GET|SEARCH|FETCH|FILTER|GROUP|INSERT|DELETE|WHERE|RETURN|WITH|BEGIN)\b"""
)
_MARK = re.compile(r"\bAS[ \t]+\w+|\b(?:WHERE|USING|WITH_DESCRIPTION)\b|\bEXISTS[ \t]+\w|\$\{")


def explain_outside(text: str, at: int) -> tuple[Fault | None, int]:
    """Return the fault of the line at ``at``, and the offset where parsing continues. The fault is None if the line may be a command."""
    end = end_of_line(text, at)
    line = text[at:end].rstrip()
    whole = Span(text.rfind("\n", 0, at) + 1, min(end + 1, len(text)))
    if _FENCE.match(line):
        message = "a code fence is not part of a program"
        return fault("GASL029", message, at, at + len(line), "remove the line", edits=(Edit(whole, ""),)), end
    if _ELISION.match(line):
        return fault("GASL001", "commands are missing here", at, at + len(line), "write all commands"), end
    if not _is_prose(line, ""):
        return None, at
    lines = [(at, at + len(line))]
    while end < len(text) and len(lines) < 10_000:
        start = end + 1
        end_next = end_of_line(text, start)
        body = text[start:end_next]
        first = start + len(body) - len(body.lstrip())
        if (
            not body.strip()
            or body.lstrip()[0] == "#"
            or _FENCE.match(body.strip())
            or not _is_prose(body.strip(), line)
        ):
            break
        line = body.strip()
        lines.append((first, start + len(body.rstrip())))
        end = end_next
    what = "this line is not a command" if len(lines) == 1 else f"these {len(lines):,} lines are not commands"
    hint = "a command begins with its keyword, for example FIND nodes AS x; a comment begins with #"
    # These lines are certainly prose, so they can become comments without loss. Lines that may not be prose get no edit.
    edits = tuple(Edit(Span(first, first), "# ") for first, _ in lines)
    return fault("GASL001", what, *lines[0], hint, edits=edits), end


def _is_prose(line: str, before: str) -> bool:
    """Return whether the line is certainly prose and not meant as a command; ``before`` is the prose line above it, or ""."""
    if is_remark(line) and not _MARK.search(line):
        return True
    body = line
    if (bullet := BULLET.match(line)) and bullet.end() < len(line):
        body = line[bullet.end() :]
    if BLOCK_WORD.match(body) or HEAD_LINE.match(body) or _MEANT.match(body) or _MARK.search(body):
        return False
    body = body.lstrip("*_> \t")
    word = re.match(r"[^\W\d]\w*", body)
    if not word or word[0].upper() in COMMANDS or not reads_as_text(body, before):
        return False
    if not is_ended(body) and any(name in COMMANDS for name in re.findall(r"[A-Z]{2,}", body)):
        return False  # `help FIND`
    if not nearest(word[0], COMMANDS):
        return True
    # `UPdATE` is a misspelt command: a name in prose has only one capital. `rnak hubs` may be a misspelt command, so it does not
    # count as the continuation of a sentence.
    return sum(map(str.isupper, word[0])) < 2 and reads_as_text(body)
