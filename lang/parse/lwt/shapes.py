"""Patterns that recognise the lines of a script without parsing: heads, malformed heads, bullets, fences, options.

Every regular expression takes linear time on any text: repetitions of spaces are possessive, and other repetitions are bounded.
"""

import re

from attrs import frozen

from ...catalogue.operations import BUILTIN, COMMON_OPTIONS, LLM_OPTIONS
from ...diagnostic import nearest

ID = r"[\w][\w\-]*(?:\.[\w][\w\-]*)*"
"""A step's id, as in the grammar."""

HEAD = re.compile(rf"\({ID}\)[ \t]*+=(?!=)")
"""Matches a step's head, at a place where a step may begin."""

_PREFIX = r"(?:(?:[Ss]tep[ \t]{1,4})?\w{0,8}[ \t]{0,4}[:.)]|[-*+•>`#|]{1,4})(?:[ \t]{0,4}[-*+•>`:.)|]){0,4}[ \t]*+"

BULLET = re.compile(rf"(?!#){_PREFIX}(?=\({ID}\)[ \t]*+=)")
"""A bullet, a number or markup before a head: ``- ``, ``1. ``, ``Step 2: ``, a backtick."""

_NEAR = r"[\w][\w.\-+<> ]{0,60}"
_SIGN = r"(?::=|==|=>|->|=|:|\uff1d|\uff1a|)"
_GAP = r"[ \t]{0,4}"
OPERATION = rf"(?:{'|'.join(BUILTIN)}|llm)"  # the name distinguishes malformed heads from prose
LOOSE_HEAD = re.compile(
    rf"(?P<open>\(?){_GAP}(?P<id>{_NEAR}?){_GAP}(?P<close>\)?){_GAP}(?P<sign>{_SIGN}){_GAP}"
    rf"(?P<op>{OPERATION})(?={_GAP}\()"
)
"""A malformed head: ``a = LLM(``, ``(a) LLM(``, ``(a): LLM(``."""

BAD_HEAD = re.compile(r"\((?P<id>[^()\n]{0,200})\)[ \t]*+=(?!=)")
"""A head with an invalid id: ``(length+1)=``, ``(my step)=``."""

_WIDE_OPENING, _WIDE_CLOSING = (
    "\uff08\u3010\uff3b\uff5b\u3008\u300a\u300c\u201c",
    "\uff09\u3011\uff3d\uff5d\u3009\u300b\u300d\u201d",
)
BRACKETED_HEAD = re.compile(
    rf"(?:[({_WIDE_OPENING}\[{{<\"'`]|\*\*){_GAP}(?P<id>{ID}){_GAP}(?:[){_WIDE_CLOSING}\]}}>\"'`]|\*\*){_GAP}"
    rf"(?::=|=|:|\uff1d|\uff1a){_GAP}(?P<op>{OPERATION})(?={_GAP}[(\uff08])"
)
"""A head with its id in other brackets or in quotes, or with full-width signs: ``[a]=LLM(``, ``"a": LLM(``."""

COLON_HEAD = re.compile(rf"(?P<id>{ID})[ \t]{{0,4}}:[ \t]{{0,4}}(?P<op>{OPERATION})(?=\([ \t]*[\"'\[{{])")
"""A head with a colon, ``a: LLM("``. In prose, no quote follows the parenthesis."""

_UNNAMED = [re.sub(r"\(\?P<\w+>", "(?:", head.pattern) for head in (BRACKETED_HEAD, COLON_HEAD)]
_HEAD_LINE = re.compile(
    rf"^[ \t]*+(?:(?!#){_PREFIX})?"
    rf"(?:\([^()\n]{{0,200}}\)[ \t]*+=(?!=)|\({ID}\){_GAP}{_SIGN}{_GAP}{OPERATION}{_GAP}\("
    rf"|{ID}{_GAP}(?::=|==|=){_GAP}{OPERATION}{_GAP}\(|{_UNNAMED[0]}|{_UNNAMED[1]})"
    rf"|^[ \t]*+(?:(?!#){_PREFIX}|(?<=\)\n)){OPERATION}\((?=[ \t]*[\"'{{\[])",
    re.MULTILINE,
)

_ARGUMENT = (
    r"[ \t]*(?:[fFrRbBuU]{0,2}[\"'`{\[\u201c\u201e\u2018\u00ab\u300c\uff02]|\w{1,60}[ \t]*=(?!=)|[^()\n]{0,200}\{\(|\Z)"
)
PLANNED_CALL = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?P<clear>"
    rf"(?:(?:{OPERATION}|Llm)[ \t]{{0,4}}[(\uff08\[{{<\u300a]|[A-Z][A-Z_]{{1,30}}\(){_ARGUMENT}"
    rf"|{OPERATION}(?:[ \t]{{1,4}}|[ \t]{{0,4}}[:\u2013\u2014-][ \t]{{0,4}})(?:[\"\u201c]|[^()\n]{{0,200}}\{{\())"
    rf"|(?i:{OPERATION})\({_ARGUMENT}|{OPERATION}\((?!s\)))"
)
"""The beginning of a call that a model may have planned: ``LLM("``, ``EACH({(``, ``RUN(file=``, ``SEARCH("``, ``LLM: "``.

``clear`` is not matched if the call may be part of a sentence, as in ``LLM(the model)``, or of another language, as in ``run("x")``.
"""

FENCE = re.compile(r"[ \t]*+(?:`{3,}|~{3,})[^\n`]{0,80}$", re.MULTILINE)
"""A line that opens or closes a code block."""

ELISION = re.compile(r"[ \t]*+[#(]?[ \t]*+(?:\.\.\.+|…+)[ \t]*+[^\w\n]{0,20}$", re.MULTILINE)
"""A line with dots in place of omitted steps."""

SMART_QUOTES = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2018\u2019\u201a\u201b"
"""Typographic quotes, double and single, that word processors and models use in place of straight quotes."""


INVISIBLE = r"\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u206f\u3000\ufeff"
"""Spaces that scripts do not allow, and invisible characters, written for use in a character class."""
EMPTY_LINES = re.compile(r"\n++")
_BLANKS = re.compile(rf"[ \t\r{INVISIBLE}]*")


def first_shown(text: str, at: int, end: int) -> int:
    """Return the offset of the first visible character of ``[at, end)``. If there is none, return ``end``."""
    found = _BLANKS.match(text, at, end)
    return found.end() if found else at


def end_of_line(text: str, offset: int) -> int:
    """Return the end of the line that contains ``offset``: the offset of its newline, or the length of the text."""
    found = text.find("\n", offset)
    return len(text) if found < 0 else found


_BLANK = re.compile(r"\s*+")


def skip_blank(text: str, offset: int) -> int:
    """Return the first offset at or after ``offset`` that is not white space, or the end of the text."""
    found = _BLANK.match(text, offset)
    return found.end() if found else offset


def start_of_line(text: str, offset: int) -> int:
    """Return the start of the line that contains ``offset``."""
    return text.rfind("\n", 0, offset) + 1


def next_head(text: str, offset: int) -> int:
    """Return the start of the next line that looks like a step.

    The search begins after the line of ``offset``. If there is no such line, return the end of the text.
    """
    found = _HEAD_LINE.search(text, end_of_line(text, offset))
    return found.start() if found else len(text)


# Recognises options after a prompt, valid or misspelt, up to the end of a step, without parsing.
# If a quote is missing, these options show where the text of the prompt ends: the quote is inserted before them, and no edit
# makes options part of the text.

OPTION_NAMES = frozenset(
    (*LLM_OPTIONS, *COMMON_OPTIONS, *(name for signature in BUILTIN.values() for name in signature.options))
)
"""The options of all operations. Only these names distinguish options from the text of a prompt."""

_OBJECT = r"\{(?!\()[^{}]{0,2000}(?:\{[^{}]{0,500}\}[^{}]{0,500}){0,9}\}"
"""An object, possibly nested, such as the fields given with ``type=``."""

_LABELS = r""""[^"\n]*"(?:\s{0,4}\|\s{0,4}"[^"\n]*")*|'[^'\n]*'(?:\s{0,4}\|\s{0,4}'[^'\n]*')*"""

OPTION_VALUE = rf"(?:{_OBJECT}|{_LABELS}|\[[\w \t]{{1,60}}\]|[\w.\-]+)"
"""The value of an option on one line, in forms that can be distinguished from the text of a prompt."""

_ACCESSORS = r"(?:\[[^\[\]\n]{0,60}\]){0,9}"

REFERENCE = rf"\{{\([\w.\-]{{1,60}}\)\}}{_ACCESSORS}"
"""A reference on one line, in forms that can be distinguished from the text of a prompt."""

_LIKE_REFERENCE = rf"\$?\{{{{1,2}}[ ]?\(?[\w.\-]{{1,60}}{_ACCESSORS}\)?[ ]?\}}{{1,2}}{_ACCESSORS}"
"""A reference, possibly with misspelt braces: ``{{name}}``, ``{(name}``."""

_LIST = r"\[[^\[\]\n]{0,200}\]"
_TEXT = rf"""(?:"(?>{REFERENCE}|[^"\n])*+"|'(?>{REFERENCE}|[^'\n])*+')"""
_VALUE = rf"(?:{_TEXT}(?:\s{{0,4}}\|\s{{0,4}}{_TEXT})*|{OPTION_VALUE}|{_LIKE_REFERENCE}|{_LIST})"
_NAMES = "|".join(sorted(OPTION_NAMES))
_WORD = r"[A-Za-z_]\w{0,60}"
_OPTION = rf"\s{{0,18}}[,;]\s{{0,9}}(?:(?:{_NAMES})\s{{0,4}}[=:]|{_WORD}\s{{0,4}}(?:=(?!=)|:(?=\s{{0,4}}\$?\{{)))"
_NO_COMMA = rf"\s{{1,18}}(?:{_NAMES})\s{{0,4}}=(?!=)"
_NO_COMMA_EITHER = rf"\s{{1,9}}{_WORD}\s{{0,4}}=(?=\s{{0,4}}\$?\{{)"  # only after an expression; text may contain it
_END = r"\s{0,18}[,;]?\s{0,9}[)\]}]{0,3}[;.]?\Z"
# Each option is an atomic group: its end does not depend on later text, and backtracking into nine options would be too slow.
_LOOSE_TAIL = re.compile(rf"(?>(?:{_OPTION}|{_NO_COMMA})\s{{0,4}}{_VALUE}(?:\s{{0,9}}\))?){{1,9}}{_END}")
_BEHIND_EXPRESSION = re.compile(rf"(?>(?:{_OPTION}|{_NO_COMMA}|{_NO_COMMA_EITHER})\s{{0,4}}{_VALUE}){{1,9}}{_END}")
_LONGEST = 20_000
"""Number of code points at the end of a step that are searched for options."""
_ONE = re.compile(rf"\s{{0,9}}[,;]?\s{{0,9}}({_WORD})\s{{0,4}}[=:]\s{{0,4}}({_VALUE})")
_BEHIND_QUOTE = (
    rf"(?<!\\)[\"']\s{{0,9}}(?:[,;]\s{{0,9}}(?:(?:{_NAMES})\s{{0,4}}[=:]|{_WORD}\s{{0,4}}=(?!=))"
    rf"|\s(?:{_NAMES})\s{{0,4}}[=:](?!=))"
)
_BEFORE_QUOTE = rf"(?:[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}[=:]|[}}\])\"']\s{{1,9}}(?:{_NAMES})\s{{0,4}}=)\s{{0,4}}[\"']"
_BEFORE_BARE = rf"[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=\s{{0,4}}[\w.\-]*[\"']\s{{0,4}}(?:\||\Z)"
_SWALLOWED = re.compile(f"{_BEHIND_QUOTE}|{_BEFORE_QUOTE}|{_BEFORE_BARE}")


def option_tail(before: str) -> re.Pattern[str]:
    """Return a pattern that consists of ``before``, one to nine options of LLM or values of EXPR, and the closing parenthesis."""
    names = "|".join((*LLM_OPTIONS, *COMMON_OPTIONS))
    return re.compile(
        rf"{before}(?:\s{{0,9}},\s{{0,9}}(?:(?:{names})\s{{0,4}}=\s{{0,4}}{OPTION_VALUE}"
        rf"|{_WORD}\s{{0,4}}=\s{{0,4}}{REFERENCE})){{1,9}}\s{{0,9}},?\s{{0,9}}\)"
    )


@frozen
class Tail:
    """The options at the end of a step, from offset ``start`` on. If ``is_sure`` is true, they cannot be part of a prompt's text."""

    start: int
    is_sure: bool


def loose_tail(text: str, start: int, end: int, *, is_expression: bool) -> Tail | None:
    """Return the options at the end of ``[start, end)``.

    The options may be faulty: their quotes, names, references or last bracket may be wrong.

    Return None if nothing looks like an option. If ``is_expression`` is true, the options follow an expression. An expression contains no
    ``name=``, so any name counts as an option.
    """
    found = (_BEHIND_EXPRESSION if is_expression else _LOOSE_TAIL).search(text, max(start, end - _LONGEST), end)
    if not found:
        return None
    options = _ONE.findall(found[0])
    if (_BINDING if is_expression else _KNOWN).search(text, start, found.start()):
        return Tail(found.start(), is_sure=False)  # there may be more options before these
    sure = is_expression or all(is_option(name) or value[0] in "{$" for name, value in options)
    return Tail(found.start(), sure)


def swallows(text: str, start: int, end: int) -> bool:
    """Return whether ``[start, end)`` contains a quote that delimits an option.

    No edit may turn a range that contains such a quote into the text of a string.
    """
    return _SWALLOWED.search(text, start, end) is not None


_KNOWN = re.compile(rf"[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=(?!=)")
_BINDING = re.compile(rf"[,;]\s{{0,9}}{_WORD}\s{{0,4}}=(?!=)")
_ENDS = re.compile(rf"[\"']\s{{0,9}}[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=(?!=)")
_BEGINS = re.compile(rf"[\"']\s{{0,9}}[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=\s{{0,4}}\Z")


def delimits(text: str, at: int) -> bool:
    """Return whether the quote at ``at`` ends a string before an option, or begins the value of an option that follows a string."""
    return _ENDS.match(text, at) is not None or _BEGINS.search(text, max(0, at - 99), at) is not None


def is_option(name: str) -> bool:
    """Return whether ``name`` is an option of an operation, or a misspelling of one."""
    return name in OPTION_NAMES or nearest(name, OPTION_NAMES) is not None
