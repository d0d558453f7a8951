"""The stages of a run between extraction and computation: ``resolve`` and ``reduce``.

A seed that has neither skips this module.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from ...lang.evaluate.seed.interpreter import Reduced
from ...lang.trees.seed import Extracted, FormulaSeed, Resolve
from ..models.caller import Spent
from .group_calls import GroupCalls
from .reduction import reduced
from .resolution import Resolved, resolved
from .reviews import Review
from .seed_results import Extraction, ResolveCounts, ResultError
from .spellings import occurrences


@frozen
class Found:
    """The extractions of a context with the resolved fields, and the faults that make its result partial."""

    extractions: tuple[Extraction, ...]
    errors: tuple[ResultError, ...] = ()


@define
class GroupStages:
    """Runs the ``resolve`` and ``reduce`` steps of a seed. ``calls`` asks the model."""

    seed: FormulaSeed
    calls: GroupCalls
    counts: dict[str, ResolveCounts] = field(factory=dict)
    """Maps each resolved field to its figures."""

    @property
    def waits(self) -> bool:
        """Whether all contexts must be extracted before one can be computed, because spellings of all contexts are compared."""
        return any(each.scope == "run" for each in self.seed.resolve)

    async def resolve_context(self, extractions: Sequence[Extraction], item: int, spent: Spent) -> Found:
        """Resolve the fields whose spellings are compared within one context; ``item`` is the number of the context in events."""
        (found,) = await self._resolve("context", [extractions], item, spent)
        return found

    async def resolve_run(self, contexts: Sequence[Sequence[Extraction]]) -> list[Found]:
        """Resolve the fields whose spellings are compared over all contexts."""
        return await self._resolve("run", contexts, 0, Spent())

    async def reduce(
        self, context: Mapping[str, Any], extractions: Sequence[Extraction], reviews: Sequence[Review], item: int, spent: Spent
    ) -> tuple[dict[str, Reduced], list[ResultError]]:  # fmt: skip
        """Return a mapping from names to the reduced values of a context, and the faults that make the result partial."""
        texts = {review.index: review.text for review in reviews}
        values: dict[str, Reduced] = {}
        errors: list[ResultError] = []
        for step in self.seed.reduce:
            made = await reduced(self.seed, step, context, extractions, texts, self.calls, item, spent)
            values[step.name] = made.reduced
            errors += made.errors
        return values, errors

    async def _resolve(
        self, scope: Literal["context", "run"], contexts: Sequence[Sequence[Extraction]], item: int, spent: Spent
    ) -> list[Found]:
        made = [Found(tuple(each)) for each in contexts]
        for step in self.seed.resolve:
            if step.scope == scope:
                names = await self._names(step, made, item, spent)
                made = [_applied(step, names, each) for each in made]
        return made

    async def _names(self, step: Resolve, contexts: Sequence[Found], item: int, spent: Spent) -> Resolved:
        values = (
            found.extraction.get(step.field) for each in contexts for found in each.extractions if not found.failed
        )
        counts = occurrences(values)
        wanted = self.seed.field_by_name.get(step.field, Extracted(step.field, "text"))
        names = await resolved(step, wanted, counts, self.calls, f"resolve {step.target}", item, spent)
        total = self.counts.setdefault(step.target, ResolveCounts())
        total.spellings += len(counts)
        total.names += len(set(names.names.values())) if names.names else len(counts)
        total.asked += names.asked
        return names


def _applied(step: Resolve, names: Resolved, each: Found) -> Found:
    extractions = tuple(found if found.failed else names.apply(step, found) for found in each.extractions)
    return Found(extractions, (*each.errors, *names.errors(step, each.extractions)))


def stages_of(seed: FormulaSeed, calls: GroupCalls) -> GroupStages | None:
    """Return the stages of ``seed``; None if it has neither ``resolve`` nor ``reduce``."""
    return GroupStages(seed, calls) if seed.resolve or seed.reduce else None
