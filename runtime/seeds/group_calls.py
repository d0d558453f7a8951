"""Calls about several reviews together, for ``resolve`` and ``reduce``. Saved answers are reused; every call is counted."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import define
from blake3 import blake3

from ...adapters.llm.json_schema import canonical
from ...adapters.llm.middleware import asked_for
from ...lang.literals import Reading, read
from ..models.caller import Asker, Spent
from ..results import Failed, StepFailed
from .extraction import CachedValue, ExtractionCache

TEMPLATE = 1
"""Version of the wording of these prompts. Answers to prompts of another version are not reused."""
_Value = TypeVar("_Value")


@define
class GroupCalls:
    """Asks the run's model about groups of reviews. No call is made if the run's record or the cache has the answer."""

    asker: Asker
    options: Mapping[str, Any]
    cache: ExtractionCache | None = None
    has_small_window: bool = False
    """Whether the model has a small context window; each call then contains less text."""

    async def ask(
        self, step: str, item: int, prompt: str, schema: Mapping[str, Any], use: Callable[[dict[str, Any]], _Value], spent: Spent,
    ) -> _Value:  # fmt: skip
        """Return the result of ``use`` for the answer, which is a JSON object that fits ``schema``.

        For an unusable answer, ``use`` raises an error. ``step`` and ``item`` name the call in events and in the record. The cost is
        added to ``spent``. Raises ``StepFailed``.
        """
        key = blake3(canonical(["group", TEMPLATE, prompt, schema, asked_for(self.options)])).digest()
        if self.cache is not None:
            await self.cache.opened()
            found = self.cache.find({"": key}).get("")
            if found is not None and isinstance(found.value, str):
                return _used(found.value, use)
        options = {**self.options, "schema": schema}
        outcome = await self.asker.ask(item, prompt, options, key.hex, step=step, round=spent)
        value = _used(outcome.output, use)
        if self.cache is not None:
            await self.cache.keep([(key, CachedValue(outcome.output))])
        return value


def _used(text: str, use: Callable[[dict[str, Any]], _Value]) -> _Value:
    found = read(text)
    if not isinstance(found, Reading) or not isinstance(found.value, dict):
        raise StepFailed(Failed("bad_answer", "the answer is not a JSON object"))
    try:
        return use(found.value)
    except (ValueError, KeyError, TypeError) as error:
        raise StepFailed(Failed("bad_answer", f"the answer can't be used: {error}")) from None
