"""Errors for invalid requests, and checks that raise these errors before the first paid call."""

from collections.abc import Callable
from typing import Any

from ..lang.errors import KnotworkError


class RequestError(KnotworkError, ValueError):
    """Raised if a request is invalid. ``parameter`` names the faulty parameter, ``hint`` suggests a fix."""

    def __init__(self, parameter: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.parameter = parameter

    def __str__(self) -> str:
        return f"{self.parameter}: {self.message}{f' ({self.hint})' if self.hint else ''}"


class WrongFile(KnotworkError, ValueError):
    """Raised if a command does not accept files of the given kind. ``hint`` names the command that accepts the file."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)


class Misused(Exception):
    """Raised if the requested operation is not possible. ``message`` gives the reason, ``hint`` the correct input. The exit code is 2."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def short_repr(value: object) -> str:
    """Return ``value`` as short text for a message."""
    try:
        return f"{value!r:.60}"
    except ValueError:  # Python can't print a whole number of more than 4,300 digits
        return "a number with too many digits"


def check_text(name: str, value: object, longest: int, missing: tuple[str, str] | None = None) -> None:
    """Raise ``RequestError`` unless ``value`` is a string of at most ``longest`` characters that can be written as UTF-8.

    ``missing`` is the message and the hint for a blank string; None allows a blank string.
    """
    if not isinstance(value, str):
        raise RequestError(name, f"expected a string, not {type(value).__name__}")
    if missing is not None and not value.strip():
        raise RequestError(name, *missing)
    if len(value) > longest:
        raise RequestError(name, f"{len(value):,} characters are too many", f"at most {longest:,}")
    check_pairs(name, value)


def check_pairs(name: str, text: str) -> None:
    """Raise ``RequestError`` if ``text`` can't be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestError(name, "the text contains a lone surrogate, which is not valid text") from None


def is_number(value: Any) -> bool:
    """Return whether ``value`` is an int or a float; a boolean or NaN does not count as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def whole_number_validator(least: int, most: float = float("inf")) -> Callable[[Any, Any, Any], None]:
    """Return an attrs validator that raises ``RequestError`` unless the value is a whole number from ``least`` to ``most``."""

    def check(instance: Any, attribute: Any, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            if most == float("inf"):
                raise RequestError(
                    attribute.name, f"expected a whole number, {least:,} or greater, not {short_repr(value)}"
                )
            raise RequestError(attribute.name, f"{short_repr(value)} is not a whole number from {least:,} to {most:,}")

    return check


def share(instance: Any, attribute: Any, value: Any) -> None:
    """Raise ``RequestError`` unless ``value`` is a number from 0.0 to 1.0. This function is an attrs validator."""
    if not is_number(value) or not 0 <= value <= 1:
        raise RequestError(attribute.name, f"{short_repr(value)} is not a number from 0.0 to 1.0")


def or_none(validator: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    """Return an attrs validator that accepts None and every value that ``validator`` accepts."""

    def check(instance: Any, attribute: Any, value: Any) -> None:
        if value is not None:
            validator(instance, attribute, value)

    return check
