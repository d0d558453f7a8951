"""Questions over the small library, planned by a model that a test scripts."""

import asyncio
import json
from pathlib import Path
from typing import Any

from knotwork.adapters.llm import Completion, Usage
from knotwork.adapters.llm.middleware import Own
from knotwork.runtime.api.ask import ask
from knotwork.runtime.loops.traversal.traversal_results import Asked

from support.executing import library

__all__ = ["Planning", "asked", "done", "plan"]


def plan(*commands: str, **more: Any) -> str:
    """Return a plan as a model answers it."""
    return json.dumps({"why": "to see", "hypothesis": "it is so", "commands": list(commands), **more})


def done(answer: str, *evidence: str) -> str:
    """Return the end as a model answers it, with what it cites."""
    return json.dumps({"complete": answer, "evidence": list(evidence)})


class Planning(Own):
    """Plans what it is told to, in order, the last for ever; ``answers`` is for the plans' own commands. Exceptions are raised."""

    def __init__(self, *plans: Any, answers: Any = "[]", delay: float = 0.0, on_call: Any = None) -> None:
        self._plans, self._answers, self._delay = list(plans), answers, delay
        self._on_call = on_call
        self.prompts: list[str] = []
        self.options: list[dict[str, Any]] = []
        self.worked: list[str] = []

    async def generate(self, prompt: str, **options: Any) -> Completion:
        planning = "You are a researcher" in prompt
        (self.prompts if planning else self.worked).append(prompt)
        if self._on_call is not None:
            self._on_call(self)
        await asyncio.sleep(self._delay)
        if planning:
            self.options.append(options)
            said = self._plans.pop(0) if len(self._plans) > 1 else self._plans[0]
        else:
            said = self._answers(prompt) if callable(self._answers) else self._answers
        if isinstance(said, Exception):
            raise said
        return Completion(said, usage=Usage(100, 10))

    async def aclose(self) -> None:
        pass


def asked(model: Any, question: str = "Who writes?", state: Path | None = None, **settings: Any) -> Asked:
    """Answer a question about the library, or about ``graph``."""
    return asyncio.run(ask(settings.pop("graph", None) or library(), question, state=state, llm=model, **settings))
