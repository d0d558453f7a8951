"""Numbers as people write them: ``1_000``, ``1,000``, ``007``, ``0x1F``, ``.5``, ``1.``, ``2x``. What ``50%`` is, the reader says."""

import re
from collections.abc import Callable

from ....diagnostic import Edit
from ....source import Span
from ...fault import Fault, fault
from ..literals import LARGEST, number

__all__ = ["numeral"]

_GOOD = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![\w.])(?!,[0-9]{3})")
_BASED = re.compile(r"0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+")
_LOOSE = re.compile(
    r"(?:[0-9][0-9_]*(?:\.(?![^\W\d]|\.)[0-9_]*|\.(?=[eE][0-9]))?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+(?![A-Za-z_]))?"
)


def numeral(text: str, at: int, level: int, report: Callable[[Fault], None]) -> tuple[int, int | float | None]:
    """Return where the number that begins at ``at`` ends, and its value; None where it is too large or says nothing."""
    thousands = _THOUSANDS.match(text, at)
    if thousands and (level == 0 or (thousands[0].count(",") == 1 and ",0" in thousands[0])):
        right = thousands[0].replace(",", "")
        return thousands.end(), _mended(thousands, right, "a number has no commas", report)
    if (found := _BASED.match(text, at)) and not text[found.end() : found.end() + 1].isalnum():
        right = str(int(found[0].replace("_", ""), 0))
        return found.end(), _mended(found, right, "a number is written with the digits 0 to 9, to base ten", report)
    loose = _LOOSE.match(text, at)
    if loose is None:
        report(fault("EXPR020", "this is no number", at, at + 1))
        return at + 1, None
    end, given = loose.end(), loose[0]
    if text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit():
        further = re.compile(r"[\w.]+").match(text, end)
        end = further.end() if further else end
        report(fault("EXPR020", f"{text[at:end]} is no number", at, end, "a number has one point at most"))
        return end, None
    if _GOOD.fullmatch(given):
        good = number(given)
        if good is None:
            hint = f"integers go up to {LARGEST:,}" if given.isdigit() else "numbers go up to 1.7e308"
            report(fault("EXPR021", "the number is too large", at, end, hint))
        return end, good
    whole, point, rest = given.replace("_", "").partition(".")
    whole, rest = whole.lstrip("0") if whole[:1] == "0" else whole, rest
    digits = re.match("[0-9]*", rest)
    fraction = digits[0] if digits else ""
    right = (whole if whole[:1].isdigit() else f"0{whole}") + (
        f".{fraction or '0'}{rest[len(fraction) :]}" if point else ""
    )
    message = "a number has no underscores" if "_" in given else "a number begins and ends with a digit"
    if given[0] == "0" and "_" not in given and given[1:2].isdigit():
        message = "a number has no zeros before it"
    sure = not (level and len(given) == 3 and given[0] == "0" and re.search(r"[0-9],\Z", text[max(0, at - 2) : at]))
    sure = sure and not (given[0] == "." and re.match(r"\w", text[max(0, at - 1) : at]))
    return end, _mended(loose, right, message, report, sure=sure)


def _mended(
    found: re.Match[str], right: str, message: str, report: Callable[[Fault], None], *, sure: bool = True
) -> int | float | None:
    value = number(right)
    edit = Edit(Span(*found.span()), right)
    edits = (edit,) if value is not None and sure else ()
    report(fault("EXPR020", f"{message}: {found[0]}", *found.span(), f"write {right}" if edits else "", edits=edits))
    return value if sure else None
