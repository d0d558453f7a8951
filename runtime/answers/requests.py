"""What is asked of an iterative answer: the seed's parameters with its names, defaults and bounds, and ours beside them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ..refusals import RequestError, check_pairs, shown

if TYPE_CHECKING:
    from attrs import Attribute

__all__ = ["ATTEMPTS", "ITERATIONS", "JUDGES", "LONGEST", "AnswerRequest"]

ITERATIONS = 10
"""The most iterations: the seed's bound."""
ATTEMPTS = 8
"""The most candidates of one iteration."""
JUDGES = 9
"""The most judges of one panel."""
LONGEST = 100_000
"""The most characters of an instruction, a format, or criteria."""


def _text(request: "AnswerRequest", attribute: "Attribute[str]", value: object) -> None:
    name = attribute.name
    if not isinstance(value, str):
        raise RequestError(name, f"a text is wanted, not {type(value).__name__}")
    if len(value) > LONGEST:
        raise RequestError(name, f"{len(value):,} characters are too many", f"at most {LONGEST:,}")
    check_pairs(name, value)


def _whole(low: int, high: int) -> Callable[["AnswerRequest", "Attribute[int]", object], None]:
    def check(request: "AnswerRequest", attribute: "Attribute[int]", value: object) -> None:
        if type(value) is not int or not low <= value <= high:
            raise RequestError(attribute.name, f"{shown(value)} is no whole number from {low} to {high}")

    return check


def _share(request: "AnswerRequest", attribute: "Attribute[float]", value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RequestError(attribute.name, f"{shown(value)} is no number from 0.0 to 1.0")


def _texts(request: "AnswerRequest", attribute: "Attribute[tuple[str, ...]]", value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
        raise RequestError(attribute.name, "a list of texts is wanted")
    for each in value:
        check_pairs(attribute.name, each)


def _listed(value: Any) -> Any:
    """Return a list as a tuple, one text as the only one; the validator says what else is wrong."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


@frozen
class AnswerRequest:
    """What is asked. Names, defaults and bounds are decided in ``docs/design/loops.md#iterative-answers``.

    ``instruct``: the question or task. ``resp_format``: the form that the answer should have, "" for any. ``eval_crit``: what a
    judge goes by; "" where only checks decide. ``iter_max``: 1 to 10. ``score_threshold``: 0.0 to 1.0; an answer of at least
    this score is accepted. ``attempts``: candidates written side by side in each iteration, of which the best counts.
    ``judges``: how many judge each candidate (the median counts); 0: none, checks alone decide. ``checks``: deterministic
    checks as ``checks.read_check`` reads them, "regex:...". ``template``: the name of the prompts.
    Raises ``RequestError``.
    """

    instruct: str = field(validator=_text)
    resp_format: str = field(default="", validator=_text)
    eval_crit: str = field(default="", validator=_text)
    iter_max: int = field(default=3, validator=_whole(1, ITERATIONS))
    score_threshold: float = field(default=0.8, validator=_share)
    attempts: int = field(default=1, validator=_whole(1, ATTEMPTS))
    judges: int = field(default=1, validator=_whole(0, JUDGES))
    checks: tuple[str, ...] = field(default=(), converter=_listed, validator=_texts)
    template: str = field(default="default", validator=_text)

    def __attrs_post_init__(self) -> None:
        if not self.instruct.strip():
            raise RequestError("instruct", "there is nothing to answer")
