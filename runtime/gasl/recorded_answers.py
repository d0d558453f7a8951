"""A layer that keeps what models answered, in the state, so that a session can be replayed without asking again.

An answer is kept under its request (``adapters.llm_cache.request_key`` over the name of the model in the plan, not its spec:
a replay need not know who answered), the step of the command that asked, and its turn, which tells equal requests of a step
apart in the order in which they were asked. Shape: ``{"request": hex, "step": int, "turn": int, "text", "model",
"finish_reason", "repaired", "prompt_tokens", "completion_tokens"}``, with ``"cached": true`` where no model was called. Where the
call failed: ``{"request", "step", "turn", "error": {"kind", "message", "hint", "text"}}``: of an answer that does not fit the
text counts too.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from attrs import define, field

from ...adapters.llm import LLM, Completion, LLMError, Options
from ...adapters.llm.cache import request_key
from ...adapters.llm.middleware import Own
from ...adapters.state import StateError, StateStore

__all__ = ["Remembering", "Turns", "request_of"]


def request_of(name: str, prompt: str, options: Any) -> str | None:
    """Return the name under which an answer is kept; None for a request that can't be written as JSON."""
    try:
        return request_key(f"gasl:{name}", prompt, options).hex()
    except (TypeError, ValueError):
        return None


@define
class Turns:
    """Counts how often each request was asked in the step under way."""

    step: int = 0
    _counts: Counter[str] = field(factory=Counter)

    def begin(self, step: int) -> None:
        """Count from 0 again, for another step."""
        self.step = step
        self._counts.clear()

    def next(self, request: str) -> int:
        """Return 0 for the first time that ``request`` is asked, 1 for the second."""
        turn = self._counts[request]
        self._counts[request] += 1
        return turn


def _as_record(answer: Completion) -> dict[str, Any]:
    record: dict[str, Any] = {
        "text": answer.text,
        "model": answer.model,
        "finish_reason": answer.finish_reason,
        "repaired": answer.repaired,
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
    }
    return {**record, "cached": True} if answer.cached else record


class Remembering(Own):
    """Passes requests on to ``inner``, the model that the plan calls ``name`` ("" is its own), and keeps the answers."""

    def __init__(self, inner: LLM, name: str, state: StateStore, turns: Turns, warn: Callable[[str], None]) -> None:
        self._inner = inner
        self._name = name
        self._state = state
        self._turns = turns
        self._warn = warn

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer; raise what it raises."""
        request = request_of(self._name, prompt, options)
        if request is None:
            return await self._inner.generate(prompt, **options)
        kept: dict[str, Any] = {"request": request, "step": self._turns.step, "turn": self._turns.next(request)}
        try:
            answer = await self._inner.generate(prompt, **options)
        except LLMError as error:
            text = getattr(error, "text", "")
            said = {"kind": error.kind, "message": error.message, "hint": error.hint, "text": text}
            self._keep({**kept, "error": said})
            raise
        self._keep({**kept, **_as_record(answer)})
        return answer

    def record(self, prompt: str, answer: Completion, options: Mapping[str, Any]) -> None:
        """Keep an answer that the caller had already, as if the inner client had given it now."""
        request = request_of(self._name, prompt, options)
        if request is not None:
            turn = self._turns.next(request)
            self._keep({"request": request, "step": self._turns.step, "turn": turn, **_as_record(answer)})

    async def aclose(self) -> None:
        """Do nothing: who opened the inner client closes it."""

    def _keep(self, answer: dict[str, Any]) -> None:
        try:
            self._state.answered(answer)
        except StateError as error:
            self._warn(f"a model's answer can't be kept for replay: {error.message}")
