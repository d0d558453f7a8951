"""The values of a session by name: GASL's variables, the steps that ran, what expressions were bound to. One name, one value."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field, frozen

from ....lang.trees.lwt import Step
from ...gasl.variables import ContextStore, Value
from ...results import Before, StepResult, plain
from ...templates import text_of

__all__ = ["Kept", "Named", "Values"]


@frozen
class Kept:
    """All values at one moment."""

    bound: Mapping[str, Value]
    steps: Mapping[str, "Named"]


@frozen
class Named:
    """A step that ran, with its result. ``value`` is what it was bound to: another value under the name is no longer the step's."""

    step: Step
    result: StepResult
    value: Value


@define
class Values:
    """``context`` is the one that GASL's commands write; steps that ran are beside it, with their texts."""

    context: ContextStore = field(factory=ContextStore)
    _steps: dict[str, Named] = field(factory=dict)

    def bind(self, name: str, value: Any) -> None:
        """Bind a JSON value."""
        self.context.set(name, value)

    def ran(self, step: Step, result: StepResult) -> None:
        """Bind a step that is done."""
        value = Value(plain(result.value if result.value is not None or result.unmet else result.output))
        self.context.set(step.id, value)
        self._steps[step.id] = Named(step, result, value)

    def names(self) -> tuple[str, ...]:
        """Return all names, in the order of binding."""
        return self.context.names()

    def step(self, name: str) -> Named | None:
        """Return the step that ``name`` is the value of; None where it is a variable's, or nobody's."""
        found = self._steps.get(name)
        return found if found is not None and self.context.value(name) is found.value else None

    def before(self, wanted: Iterator[str] | list[str]) -> Before:
        """Return what a script may refer to, of the names that it does."""
        results, steps = {}, {}
        for name in wanted:
            bound = self.context.value(name)
            if bound is None:
                continue
            named = self.step(name)
            if named is not None:
                steps[name] = named.step
                made = named.result
                results[name] = StepResult(
                    name, made.status, made.output, made.value, reason=made.reason, unmet=made.unmet
                )
            else:
                results[name] = StepResult(name, "done", text_of(bound.value), bound.value)
        return Before(results, steps)

    def kept(self) -> Kept:
        """Return what ``back`` takes."""
        bound = {name: value for name in self.names() if (value := self.context.value(name)) is not None}
        return Kept(bound, dict(self._steps))

    def back(self, kept: Kept) -> None:
        """Make all values what they were."""
        self.context.clear()
        for name, value in kept.bound.items():
            self.context.set(name, value)
        self._steps = dict(kept.steps)
