"""What can't be done as it was asked: the one error that every interface translates into its own way of saying so."""

__all__ = ["Misused"]


class Misused(Exception):
    """What was asked can't be done: ``message`` says what, ``hint`` what to type instead. Exit code 2 of the command."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
