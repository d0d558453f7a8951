"""What computing a seed gives: a value for each step that has one, and an error for each that failed."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from ...source import NOWHERE, Span

__all__ = ["Computed", "StepError", "copied"]


@frozen
class StepError:
    """Why a step has no value.

    ``kind`` is an expression's ("division", "type", "name", "key", "index", "value", "limit", "overflow", "result"),
    "no_values" (what
    the step reads is invalid in every extraction), or "skipped": it needs ``root``, which failed. Elsewhere ``root`` is the step's own
    name. ``span`` points to where the fault stands in the text that the seed was read from.
    """

    step: str
    kind: str
    message: str
    hint: str = ""
    span: Span = field(default=NOWHERE, eq=False, repr=False)
    root: str = ""


@frozen
class Computed:
    """The values by name, in the order of the steps, and the errors in that order. Filters have no value."""

    values: Mapping[str, Any]
    errors: tuple[StepError, ...] = ()
    unknown: Mapping[str, int] = field(factory=dict)
    """By step, over how many rows it could not decide: what it reads is invalid there. A ``where`` is false for them."""


def copied(value: Any) -> Any:
    """Return a JSON value that stands in the seed as one of the result's own: whoever changes that changes no seed."""
    if isinstance(value, list):
        return [copied(each) for each in value]
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return value
