"""What a loop was asked and can't do: the one error for it, told before anything is spent, and the checks that all loops share."""

__all__ = ["RequestError", "check_pairs", "shown"]


class RequestError(ValueError):
    """The request can't be answered as it is. ``parameter`` is the one at fault, ``hint`` says what to do."""

    def __init__(self, parameter: str, message: str, hint: str = "") -> None:
        super().__init__(f"{parameter}: {message}{f' ({hint})' if hint else ''}")
        self.parameter = parameter
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
