"""What a task must be to be compiled, and the error for one that is none: told before anything is spent."""

from attrs import frozen

from ..refusals import RequestError, check_pairs
from .wording import LONGEST_TASK

__all__ = ["MOST_REPAIRS", "REPAIRS", "CompileRequest"]

REPAIRS = 3
MOST_REPAIRS = 10
_NAME = 1_000


@frozen
class CompileRequest:
    """A task in words. ``name`` is the seed's task name ("": the model finds one); ``repairs``: the most in each step."""

    task: str
    name: str = ""
    repairs: int = REPAIRS

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.task, str):
            raise RequestError("task", f"a text is wanted, not {type(self.task).__name__}")
        if not self.task.strip():
            raise RequestError("task", "it is empty", "say which values are wanted, and how they come from reviews")
        if len(self.task) > LONGEST_TASK:
            message = f"it has {len(self.task):,} characters; {LONGEST_TASK:,} is the most"
            raise RequestError(
                "task", message, "a task says what to compute; the reviews themselves come with seed run"
            )
        for parameter, text in (("task", self.task), ("name", self.name)):
            check_pairs(parameter, str(text))
        if not isinstance(self.name, str):
            raise RequestError("name", f"a text is wanted, not {type(self.name).__name__}")
        if len(self.name) > _NAME:
            raise RequestError("name", f"it has {len(self.name):,} characters; {_NAME:,} is the most")
        if type(self.repairs) is not int or not 0 <= self.repairs <= MOST_REPAIRS:
            raise RequestError("repairs", f"{str(self.repairs)[:60]} is no whole number from 0 to {MOST_REPAIRS}")
