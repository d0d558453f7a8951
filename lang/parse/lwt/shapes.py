"""What the lines of a script look like from outside: heads, near-heads, bullets, fences. No parsing happens here.

Every pattern is linear on any text: runs of blanks are possessive and everything else is bounded.
"""

import re

__all__ = [
    "BAD_HEAD", "BRACKETED_HEAD", "BULLET", "COLON_HEAD", "ELISION", "EMPTY_LINES", "FENCE", "HEAD", "ID", "INVISIBLE", "LOOSE_HEAD",
    "OPERATION", "SMART_QUOTES",
    "end_of_line", "first_shown", "next_head", "skip_blank", "start_of_line",
]  # fmt: skip

ID = r"[\w][\w\-]*(?:\.[\w][\w\-]*)*"
"""A step's id, as in the grammar."""

HEAD = re.compile(rf"\({ID}\)[ \t]*+=(?!=)")
"""A step's head where a step may begin."""

_PREFIX = r"(?:(?:[Ss]tep[ \t]{1,4})?\w{0,8}[ \t]{0,4}[:.)]|[-*+•>`#|]{1,4})(?:[ \t]{0,4}[-*+•>`:.)|]){0,4}[ \t]*+"

BULLET = re.compile(rf"(?!#){_PREFIX}(?=\({ID}\)[ \t]*+=)")
"""A bullet, a number or markup before a head: ``- ``, ``1. ``, ``Step 2: ``, a backtick."""

_NEAR = r"[\w][\w.\-+<> ]{0,60}"
_SIGN = r"(?::=|==|=>|->|=|:|)"
_GAP = r"[ \t]{0,4}"
OPERATION = r"(?:LLM|llm|CONST|EACH|EXPR|GASL|SEED|ANSWER)"  # near-heads are told from prose by an operation's name
LOOSE_HEAD = re.compile(
    rf"(?P<open>\(?){_GAP}(?P<id>{_NEAR}?){_GAP}(?P<close>\)?){_GAP}(?P<sign>{_SIGN}){_GAP}"
    rf"(?P<op>{OPERATION})(?={_GAP}\()"
)
"""Something that was meant as a head: ``a = LLM(``, ``(a) LLM(``, ``(a): LLM(``."""

BAD_HEAD = re.compile(r"\((?P<id>[^()\n]{0,200})\)[ \t]*+=(?!=)")
"""A head whose id is none: ``(length+1)=``, ``(my step)=``."""

BRACKETED_HEAD = re.compile(
    rf"(?:[\[{{<\"'`]|\*\*)[ \t]{{0,4}}(?P<id>{ID})[ \t]{{0,4}}(?:[\]}}>\"'`]|\*\*)[ \t]{{0,4}}(?::=|=|:)[ \t]{{0,4}}"
    rf"(?P<op>{OPERATION})(?={_GAP}\()"
)
"""A head whose id stands in other brackets or in quotes: ``[a]=LLM(``, ``"a": LLM(``."""

COLON_HEAD = re.compile(rf"(?P<id>{ID})[ \t]{{0,4}}:[ \t]{{0,4}}(?P<op>{OPERATION})(?=\([ \t]*[\"'\[{{])")
"""``a: LLM("``; prose has no quote there."""

_UNNAMED = [re.sub(r"\(\?P<\w+>", "(?:", head.pattern) for head in (BRACKETED_HEAD, COLON_HEAD)]
_HEAD_LINE = re.compile(
    rf"^[ \t]*+(?:(?!#){_PREFIX})?"
    rf"(?:\([^()\n]{{0,200}}\)[ \t]*+=(?!=)|\({ID}\){_GAP}{_SIGN}{_GAP}{OPERATION}{_GAP}\("
    rf"|{ID}{_GAP}(?::=|==|=){_GAP}{OPERATION}{_GAP}\(|{_UNNAMED[0]}|{_UNNAMED[1]})",
    re.MULTILINE,
)

FENCE = re.compile(r"[ \t]*+(?:`{3,}|~{3,})[^\n`]{0,80}$", re.MULTILINE)
"""A line that opens or closes a code block."""

ELISION = re.compile(r"[ \t]*+[#(]?[ \t]*+(?:\.\.\.+|…+)[ \t]*+[^\w\n]{0,20}$", re.MULTILINE)
"""A line that stands for steps which were left out."""

SMART_QUOTES = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2018\u2019\u201a\u201b"
"""Typographic quotes, double and single, that word processors and models write for straight ones."""


INVISIBLE = r"\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u206f\u3000\ufeff"
"""Spaces that are none of a script's, and characters that show nothing, as in a character class."""
EMPTY_LINES = re.compile(r"\n++")
_BLANKS = re.compile(rf"[ \t\r{INVISIBLE}]*")


def first_shown(text: str, at: int, end: int) -> int:
    """Return the offset of the first character of ``[at, end)`` that shows; ``end`` if none does."""
    found = _BLANKS.match(text, at, end)
    return found.end() if found else at


def end_of_line(text: str, offset: int) -> int:
    """Return the offset of the newline that ends ``offset``'s line, or the text's end."""
    found = text.find("\n", offset)
    return len(text) if found < 0 else found


_BLANK = re.compile(r"\s*+")


def skip_blank(text: str, offset: int) -> int:
    """Return the first offset from ``offset`` on where something stands that is not white space, or the text's end."""
    found = _BLANK.match(text, offset)
    return found.end() if found else offset


def start_of_line(text: str, offset: int) -> int:
    """Return the offset at which ``offset``'s line begins."""
    return text.rfind("\n", 0, offset) + 1


def next_head(text: str, offset: int) -> int:
    """Return where the next line after ``offset``'s own begins that looks like a step's, or the text's end."""
    found = _HEAD_LINE.search(text, end_of_line(text, offset))
    return found.start() if found else len(text)
