"""Detects the language of a text, valid or not: by its first words, else by the languages' own parsers."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from ....lang.diagnostic import nearest
from ....lang.parse.expr import parse_expr
from ....lang.parse.expr.engine import follow as follow_expr
from ....lang.parse.gasl import keywords
from ....lang.parse.gasl.engine import automaton as gasl_automaton

Language = Literal["gasl", "lwt", "expr", "dot", "remark"]

_DOT = re.compile(r"[ \t]*(?:\.(?:[A-Za-z?]|\.*[ \t\r]*\Z)|\\[A-Za-z?])")
"""A dot command, also in the form of other tools: ``\\d``. Dots alone are the beginning of one."""
_HEAD = re.compile(r"[ \t]*\([\w.\-]+\)[ \t]*=(?!=)")
_CALLED = re.compile(r"[ \t]*\(?[\w.\-]+\)?[ \t]*=[ \t]*[A-Z]{2,}[ \t]*\(")
"""A step whose id lacks one or both parentheses."""
_BOUND = re.compile(r"\s*(?:(?i:let|var|const)[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=(?!=)[ \t]*")
"""A named value, also with a keyword of other languages before the name."""
_WORD = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*(.?)", re.DOTALL)
_OPERATORS = frozenset({"in", "is", "and", "or", "not", "if", "for", "else"})
"""Words after a name that make the text an expression."""
_OF_BLOCKS = frozenset({"TRY", "CATCH", "FINALLY", "END"})
_REMARK = re.compile(r"[ \t\r]*(#[^\n]*)?\Z")
_SHORT = 2_000
"""Maximum characters of a text whose language is cached: while a user types, all lines but the last stay the same."""


def command_words() -> frozenset[str]:
    """Return the words that begin a GASL command, in capitals, from the grammar."""
    automaton = gasl_automaton()
    first = automaton.accepts(tuple(automaton.follower("program").states))
    return frozenset(word.upper() for name in first for word in automaton.spellings.get(name, ()) if word.isalpha())


def language_of(text: str) -> Language:
    """Return the language of ``text``, valid or not: by its first line that is not a comment, and by the parsers."""
    return _remembered(text) if len(text) <= _SHORT else _language_of(text)


@lru_cache(maxsize=512)
def _remembered(text: str) -> Language:
    return _language_of(text)


def _language_of(text: str) -> Language:
    body = without_remarks(text)
    if not body.strip():
        return "remark"
    if _DOT.match(body):
        return "dot"
    if _HEAD.match(body) or _CALLED.match(body):
        return "lwt"
    bound, words = _BOUND.match(body), command_words()
    if bound is not None:
        named = _WORD.match(body, bound.end())
        is_command = named is not None and named[1].upper() in words and _goes_on(body[named.end(1) :], named[1])
        return "gasl" if is_command else "expr"
    word = _WORD.match(body)
    if word is None:
        return "expr"
    if word[1].upper() in words and _goes_on(body[word.end(1) :], word[1]):
        return "gasl"
    if word[1] in keywords() and not word[2].strip() and body.strip() == word[1]:
        return "gasl"
    if parse_expr(body).expr is not None or follow_expr(body) is not None:
        return "expr"
    return "gasl" if _is_like_a_command(body, word[1], words) else "expr"


def _goes_on(rest: str, word: str) -> bool:
    """Return whether the text after a command's word continues a command: another word, a quote, a bracket; or nothing."""
    behind = rest.lstrip(" \t")
    if not behind.strip():
        return word.isupper()  # a variable may have a command's name
    second = re.match(r"[A-Za-z_]+", behind)
    if second is not None:
        return second[0].lower() not in _OPERATORS or word.isupper()
    return behind[0] in "`$\"'#\r\n" or (word.isupper() and behind[0] in "({[" and rest[:1] in " \t")


def is_more_of_a_command(line: str) -> bool:
    """Return whether a line continues a command: ``WHERE ...``, ``AS x``. It belongs on the command's own line."""
    word = _WORD.match(line)
    if word is None or word[1] not in keywords() or word[1] in command_words() or word[1] in _OF_BLOCKS:
        return False
    return _BOUND.match(line) is None and parse_expr(line).expr is None and follow_expr(line) is None


def _is_like_a_command(body: str, word: str, words: frozenset[str]) -> bool:
    second = body[body.index(word) + len(word) :].lstrip(" \t")[:1]
    if not (second.isalpha() or second in ("(", "*", "_")):
        return False
    return word.isupper() or nearest(word, words) is not None


def expression_of(text: str) -> tuple[str | None, str]:
    """Return the name that ``name = expression`` binds (None: no name), and the text with blanks in place of the name.

    Blanks keep every offset in the text.
    """
    bound = _BOUND.match(text)
    if bound is None:
        return None, text
    blank = "".join(" " if not letter.isspace() else letter for letter in bound[0])
    return bound["name"], blank + text[bound.end() :]


def is_remark(line: str) -> bool:
    """Return whether a line is a comment or empty."""
    return _REMARK.match(line) is not None


def without_remarks(text: str) -> str:
    """Return ``text`` from its first line that is not a comment; "" if all lines are comments."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not is_remark(line):
            return "\n".join(lines[number:])
    return ""


# Suggestions for an unknown name.

LISTED = 8
"""Maximum number of names listed if none is similar."""


def like(name: str, known: Sequence[str]) -> str:
    """Return the probable intended name, or the known names."""
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near}?"
    more = ", ..." if len(known) > LISTED else ""
    return f"there are: {', '.join(known[:LISTED])}{more}" if known else ""
