"""What a person asked of ``answer``, as values."""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen

from ....errors import RequestError
from ...asked import Limits
from ..shared.exit import Misused

__all__ = ["AnswerAsked", "Form", "Typed", "misused"]

Form = Literal["auto", "plain", "json"]

_OPTIONS = {
    "instruct": "INSTRUCTION", "resp_format": "--resp-format", "eval_crit": "--criteria", "iter_max": "--iter-max",
    "score_threshold": "--threshold", "attempts": "--attempts", "judges": "--judges", "checks": "--check",
    "template": "--template", "templates": "--templates", "judges_models": "--judge-llm", "examples": "--examples",
    "time_limit": "--time-limit",
    "temperature": "--temperature", "max_tokens": "--answer-tokens",
}  # fmt: skip
"""What the command line calls what a request calls otherwise."""


@frozen
class AnswerAsked:
    """The arguments of ``knotwork answer``. ``typed`` has what was said of the request, under the request's own names."""

    typed: Mapping[str, Any]
    request: str | None
    templates: str | None
    examples: str | None
    llm: str | None
    judges: tuple[str, ...]
    """Specs of the models that judge; none: the one that writes."""
    form: Form
    time_limit: float | None
    max_concurrency: int
    limits: Limits
    options: Mapping[str, Any]
    """What else the writer's calls are given."""


@frozen
class Typed:
    """Where each part of a request is from: ``file`` (as shown; "" for none) has what is not in ``typed``.

    ``model`` is the one that the file names, which the command's own stands for.
    """

    typed: frozenset[str]
    file: str = ""
    model: str = ""

    def place(self, parameter: str) -> str:
        """Return how the person who typed it calls a parameter, such as ``checks[1]``."""
        name = parameter.partition("[")[0]
        if self.file and name not in self.typed:
            return f"{self.file}: {parameter}"
        return _OPTIONS.get(name, parameter)


def misused(error: RequestError, where: Typed) -> Misused:
    """Return what is wrong with a request as wrong usage, told by the option that was typed or the place in the file."""
    return Misused(f"{where.place(error.parameter)}: {error.message}", error.hint)
