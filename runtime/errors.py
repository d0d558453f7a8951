"""What a loop was asked and can't do: the one error for it, told before anything is spent, and the checks that all loops share."""

from ..lang.errors import KnotworkError

__all__ = ["Misused", "RequestError", "WrongFile", "check_pairs", "shown"]


class RequestError(KnotworkError, ValueError):
    """The request can't be answered as it is. ``parameter`` is the one at fault, ``hint`` says what to do."""

    def __init__(self, parameter: str, message: str, hint: str = "") -> None:
        super().__init__(f"{parameter}: {message}{f' ({hint})' if hint else ''}")
        self.parameter = parameter
        self.message = message
        self.hint = hint


class WrongFile(KnotworkError, ValueError):
    """A file of a kind that a command does not take. ``hint`` names the command that does."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def shown(value: object) -> str:
    """Return ``value`` as a message shows it, in few characters."""
    try:
        return f"{value!r:.60}"
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of so many digits"


def check_pairs(name: str, text: str) -> None:
    """Raise ``RequestError`` for a text that can't be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RequestError(name, "half of a surrogate pair is no text") from None


# What can't be done as it was asked: the one error that every interface translates into its own way of saying so.


class Misused(Exception):
    """What was asked can't be done: ``message`` says what, ``hint`` what to type instead. Exit code 2 of the command."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
