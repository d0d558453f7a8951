"""Texts of data as markdown: nothing in a name, a value or a prompt can become markup, or a picture of it grow without end."""

from collections.abc import Iterable
from typing import Any

from ..diagnostic import printable
from ..printer.gasl import format_text
from ..schema import Attribute

__all__ = ["block", "code", "excerpt", "listed", "of_attribute", "plain", "value_text"]

_LONGEST = 60
_OFFERED = 10
_MARKUP = frozenset("\\`*_{}[]()<>#+-!|~&$")


def excerpt(text: str, most: int = _LONGEST) -> str:
    """Return ``text`` on one line, cut, with nothing in it that a terminal would obey."""
    flat = " ".join(text[: most * 4].split())
    return printable(flat if len(flat) <= most and len(text) <= most * 4 else flat[: most - 1] + "…")


def plain(text: str, most: int = 400) -> str:
    """Return ``text`` as words of markdown: what would be markup is escaped."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in excerpt(text, most))


def code(text: str, most: int = _LONGEST) -> str:
    """Return ``text`` as code inside a line."""
    shown = excerpt(text, most)
    fence = "`"
    while fence in shown:
        fence += "`"
    pad = " " if shown[:1] == "`" or shown[-1:] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else ""


def block(text: str, language: str, most: int = 2_000) -> str:
    """Return ``text`` as a block of code, cut."""
    shown = "\n".join(printable(line) for line in (text if len(text) <= most else text[: most - 1] + "…").split("\n"))
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}{language}\n{shown}\n{fence}"


def listed(texts: Iterable[str], total: int | None = None) -> str:
    """Return texts, which are markdown, in a row, at most ten, and how many more there are."""
    known = list(texts)
    shown = known[:_OFFERED]
    more = (len(known) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def value_text(value: Any) -> str:
    """Return a scalar as GASL writes it."""
    if isinstance(value, str):
        return format_text(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return repr(value)


def of_attribute(attribute: Attribute) -> str:
    """Say what is known of an attribute: its types, on how many it is, its frequent values."""
    types = ", ".join(
        f"{kind} ({count:,})" if len(attribute.types) > 1 else kind for kind, count in attribute.types.items()
    )
    lines = [f"{types or 'of unknown type'}, on {attribute.count:,}"]
    if attribute.values:
        shown = [f"{code(value_text(value))} ({count:,})" for value, count in attribute.values[:_OFFERED]]
        lines.append("Frequent values: " + listed(shown, attribute.distinct or len(attribute.values)))
    return "\n\n".join(lines)
