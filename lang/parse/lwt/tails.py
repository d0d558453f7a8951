"""What stands behind a prompt, told without reading it: options to the end of a step, written right or with a slip of their own.

Where a quote is missing, these tell the prompt's text from the step's options: a quote goes before them, and no edit makes text of
them.
"""

import re

from attrs import frozen

from ...diagnostic import nearest
from ...operations import BUILTIN, COMMON_OPTIONS, LLM_OPTIONS

__all__ = [
    "OPTION_NAMES",
    "OPTION_VALUE",
    "REFERENCE",
    "Tail",
    "delimits",
    "is_option",
    "loose_tail",
    "option_tail",
    "swallows",
]

OPTION_NAMES = frozenset(
    (*LLM_OPTIONS, *COMMON_OPTIONS, *(name for signature in BUILTIN.values() for name in signature.options))
)
"""The options of all operations. No prompt's text is told from options by other names than these."""

_OBJECT = r"\{(?!\()[^{}]{0,2000}(?:\{[^{}]{0,500}\}[^{}]{0,500}){0,9}\}"
"""An object, with others in it: the fields of ``type=``."""

_LABELS = r""""[^"\n]*"(?:\s{0,4}\|\s{0,4}"[^"\n]*")*|'[^'\n]*'(?:\s{0,4}\|\s{0,4}'[^'\n]*')*"""

OPTION_VALUE = rf"(?:{_OBJECT}|{_LABELS}|\[[\w \t]{{1,60}}\]|[\w.\-]+)"
"""An option's value on one line, as far as it can be told from a prompt's text."""

_ACCESSORS = r"(?:\[[^\[\]\n]{0,60}\]){0,9}"

REFERENCE = rf"\{{\([\w.\-]{{1,60}}\)\}}{_ACCESSORS}"
"""A reference on one line, as far as it can be told from a prompt's text."""

_LIKE_REFERENCE = rf"\$?\{{{{1,2}}[ ]?\(?[\w.\-]{{1,60}}{_ACCESSORS}\)?[ ]?\}}{{1,2}}{_ACCESSORS}"
"""A reference with a slip in its braces as well: ``{{name}}``, ``{(name}``."""

_LIST = r"\[[^\[\]\n]{0,200}\]"
_TEXT = rf"""(?:"(?>{REFERENCE}|[^"\n])*+"|'(?>{REFERENCE}|[^'\n])*+')"""
_VALUE = rf"(?:{_TEXT}(?:\s{{0,4}}\|\s{{0,4}}{_TEXT})*|{OPTION_VALUE}|{_LIKE_REFERENCE}|{_LIST})"
_NAMES = "|".join(sorted(OPTION_NAMES))
_WORD = r"[A-Za-z_]\w{0,60}"
_OPTION = rf"\s{{0,18}}[,;]\s{{0,9}}(?:(?:{_NAMES})\s{{0,4}}[=:]|{_WORD}\s{{0,4}}(?:=(?!=)|:(?=\s{{0,4}}\$?\{{)))"
_NO_COMMA = rf"\s{{1,18}}(?:{_NAMES})\s{{0,4}}=(?!=)"
_NO_COMMA_EITHER = rf"\s{{1,9}}{_WORD}\s{{0,4}}=(?=\s{{0,4}}\$?\{{)"  # behind an expression; text may have it
_END = r"\s{0,18}[,;]?\s{0,9}[)\]}]{0,3}[;.]?\Z"
# Each option is atomic: what it is does not depend on what follows, and trying all readings of nine takes too long.
_LOOSE_TAIL = re.compile(rf"(?>(?:{_OPTION}|{_NO_COMMA})\s{{0,4}}{_VALUE}(?:\s{{0,9}}\))?){{1,9}}{_END}")
_BEHIND_EXPRESSION = re.compile(rf"(?>(?:{_OPTION}|{_NO_COMMA}|{_NO_COMMA_EITHER})\s{{0,4}}{_VALUE}){{1,9}}{_END}")
_LONGEST = 20_000
"""Code points of the end of a step that are looked at for options."""
_ONE = re.compile(rf"\s{{0,9}}[,;]?\s{{0,9}}({_WORD})\s{{0,4}}[=:]\s{{0,4}}({_VALUE})")
_BEHIND_QUOTE = (
    rf"(?<!\\)[\"']\s{{0,9}}(?:[,;]\s{{0,9}}(?:(?:{_NAMES})\s{{0,4}}[=:]|{_WORD}\s{{0,4}}=(?!=))"
    rf"|\s(?:{_NAMES})\s{{0,4}}[=:](?!=))"
)
_BEFORE_QUOTE = rf"(?:[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}[=:]|[}}\])\"']\s{{1,9}}(?:{_NAMES})\s{{0,4}}=)\s{{0,4}}[\"']"
_BEFORE_BARE = rf"[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=\s{{0,4}}[\w.\-]*[\"']\s{{0,4}}(?:\||\Z)"
_SWALLOWED = re.compile(f"{_BEHIND_QUOTE}|{_BEFORE_QUOTE}|{_BEFORE_BARE}")


def option_tail(before: str) -> re.Pattern[str]:
    """Return the pattern of ``before``, at least one of LLM's options, or a value of EXPR's, and the closing parenthesis."""
    names = "|".join((*LLM_OPTIONS, *COMMON_OPTIONS))
    return re.compile(
        rf"{before}(?:\s{{0,9}},\s{{0,9}}(?:(?:{names})\s{{0,4}}=\s{{0,4}}{OPTION_VALUE}"
        rf"|{_WORD}\s{{0,4}}=\s{{0,4}}{REFERENCE})){{1,9}}\s{{0,9}},?\s{{0,9}}\)"
    )


@frozen
class Tail:
    """Options to the end of a step, from offset ``start``; ``is_sure`` where no text of a prompt looks like that."""

    start: int
    is_sure: bool


def loose_tail(text: str, start: int, end: int, *, is_expression: bool) -> Tail | None:
    """Return the options that end ``[start, end)``, their marks, names, references or last bracket written wrong.

    None where nothing looks like an option. ``is_expression``: what stands before is one, and an expression has no ``name=``.
    """
    found = (_BEHIND_EXPRESSION if is_expression else _LOOSE_TAIL).search(text, max(start, end - _LONGEST), end)
    if not found:
        return None
    options = _ONE.findall(found[0])
    if (_BINDING if is_expression else _KNOWN).search(text, start, found.start()):
        return Tail(found.start(), is_sure=False)  # further options stand before these
    sure = is_expression or all(is_option(name) or value[0] in "{$" for name, value in options)
    return Tail(found.start(), sure)


def swallows(text: str, start: int, end: int) -> bool:
    """Say whether ``[start, end)``, which is to become text, holds a quote and an option behind it: then the quote is none of the
    text's own.
    """
    return _SWALLOWED.search(text, start, end) is not None


_KNOWN = re.compile(rf"[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=(?!=)")
_BINDING = re.compile(rf"[,;]\s{{0,9}}{_WORD}\s{{0,4}}=(?!=)")
_ENDS = re.compile(rf"[\"']\s{{0,9}}[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=(?!=)")
_BEGINS = re.compile(rf"[\"']\s{{0,9}}[,;]\s{{0,9}}(?:{_NAMES})\s{{0,4}}=\s{{0,4}}\Z")


def delimits(text: str, at: int) -> bool:
    """Say whether the quote at ``at`` ends a string before an option, or begins an option's value behind a string."""
    return _ENDS.match(text, at) is not None or _BEGINS.search(text, max(0, at - 99), at) is not None


def is_option(name: str) -> bool:
    """Say whether ``name`` is an option of an operation's, or one with a typing error."""
    return name in OPTION_NAMES or nearest(name, OPTION_NAMES) is not None
