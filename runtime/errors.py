"""The error for an invalid loop request, raised before anything is spent, and the checks that all loops share."""

from ..lang.errors import KnotworkError


class RequestError(KnotworkError, ValueError):
    """The request is invalid. ``parameter`` names the faulty parameter, ``hint`` suggests a fix."""

    def __init__(self, parameter: str, message: str, hint: str = "") -> None:
        super().__init__(f"{parameter}: {message}{f' ({hint})' if hint else ''}")
        self.parameter = parameter
        self.message = message
        self.hint = hint


class WrongFile(KnotworkError, ValueError):
    """A file of a kind that a command does not accept. ``hint`` names the command that accepts it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def shown(value: object) -> str:
    """Return a short form of ``value`` for a message."""
    try:
        return f"{value!r:.60}"
    except ValueError:  # Python can't print a whole number of more than 4,300 digits
        return "a number of so many digits"


def check_pairs(name: str, text: str) -> None:
    """Raise ``RequestError`` for a text that can't be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestError(name, "half of a surrogate pair is not a text") from None


# The error for invalid use, which every interface reports in its own form.


class Misused(Exception):
    """The requested operation is not possible: ``message`` gives the reason, ``hint`` the correct input. Exit code 2."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
