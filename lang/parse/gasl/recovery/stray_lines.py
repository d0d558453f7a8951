"""What is wrong with lines that were never meant as commands: fences, elisions, prose."""

import re

from ....diagnostic import Edit, nearest
from ....source import Span
from ...repairs import Fault, fault
from ...stray_text import is_ended, is_remark, reads_as_text
from ..lines import BLOCK_WORD, COMMANDS, HEAD_LINE, end_of_line

__all__ = ["BULLET", "explain_outside"]

BULLET = re.compile(
    r"(?:(?:[Ss]tep[ \t]{1,4})?\d{1,3}[ \t]{0,2}[.):]|[-*+•>\u2013]{1,3}|\*\*|`{1,3}(?![^`\n]*\n))[ \t]*+"
)
"""A list's bullet or number, or markup, before a command."""

_FENCE = re.compile(r"(?:```|~~~)[^\n`]{0,80}$")
_ELISION = re.compile(r"(?:\.\.\.+|…+)\W{0,20}$")
_MEANT = re.compile(
    r"""["'`{\[$(]|\w+[ \t]*:?=|(?:IF|MATCH|CREATE|DEFINE|GET|SEARCH|FETCH|FILTER|GROUP|INSERT|DELETE|WHERE|RETURN|WITH|BEGIN)\b"""
)
_MARK = re.compile(r"\bAS[ \t]+\w+|\b(?:WHERE|USING|WITH_DESCRIPTION)\b|\bEXISTS[ \t]+\w|\$\{")


def explain_outside(text: str, at: int) -> tuple[Fault | None, int]:
    """Explain the line at ``at`` if it is no try at a command. Return also where reading goes on."""
    end = end_of_line(text, at)
    line = text[at:end].rstrip()
    whole = Span(text.rfind("\n", 0, at) + 1, min(end + 1, len(text)))
    if _FENCE.match(line):
        message = "a code fence is no part of a program"
        return fault("GASL029", message, at, at + len(line), "remove the line", edits=(Edit(whole, ""),)), end
    if _ELISION.match(line):
        return fault("GASL001", "commands are left out here", at, at + len(line), "write every command out"), end
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
    what = "this line is no command" if len(lines) == 1 else f"these {len(lines):,} lines are no commands"
    hint = "a command begins with its word, as FIND nodes AS x; a remark is a line that starts with #"
    # As remarks nothing is lost with these lines: they are text by all signs. What only may be text gets no edit.
    edits = tuple(Edit(Span(first, first), "# ") for first, _ in lines)
    return fault("GASL001", what, *lines[0], hint, edits=edits), end


def _is_prose(line: str, before: str) -> bool:
    """Say whether the line is text by all signs, and no try at a command; ``before`` is the line of text above it, or ""."""
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
    # `UPdATE` is a slip of the shift key; a name in prose has one capital. And `rnak hubs` is no sentence that goes on.
    return sum(map(str.isupper, word[0])) < 2 and reads_as_text(body)
