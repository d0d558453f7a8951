"""Model clients for tests: ten lines each, as a user would write them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any


class Scripted:
    """Answers by the first key that the prompt contains; an exception is raised, a list is answered one by one."""

    def __init__(self, answers: Mapping[str, Any] | None = None, default: Any = "ok") -> None:
        self.answers = {
            key: list(value) if isinstance(value, list) else value for key, value in (answers or {}).items()
        }
        self.default = default
        self.prompts: list[str] = []
        self.options: list[dict[str, Any]] = []

    async def generate(self, prompt: str, **options: Any) -> Any:
        self.prompts.append(prompt)
        self.options.append(options)
        answer = next((value for key, value in self.answers.items() if key in prompt), self.default)
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer(prompt) if callable(answer) else answer


class Timed:
    """Takes as long as ``seconds`` says for a prompt, and counts what is under way."""

    def __init__(self, seconds: Callable[[str], float] | float = 0.01) -> None:
        self.seconds = seconds
        self.under_way = 0
        self.most = 0
        self.order: list[str] = []
        self.cancelled = 0
        self._waited: dict[int, asyncio.Event] = {}

    async def reached(self, count: int) -> None:
        """Wait until ``count`` calls are under way at once."""
        if self.under_way < count:
            async with asyncio.timeout(60):
                await self._waited.setdefault(count, asyncio.Event()).wait()

    async def generate(self, prompt: str, **options: Any) -> str:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.under_way in self._waited:
            self._waited.pop(self.under_way).set()
        try:
            await asyncio.sleep(self.seconds if isinstance(self.seconds, float | int) else self.seconds(prompt))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        self.order.append(prompt)
        return f"<{prompt}>"


def echo(prompt: str) -> str:
    """Answer with the prompt."""
    return prompt
