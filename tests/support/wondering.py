"""A model for searches over the small library: what it plans, judges and answers depends on what it is shown, and on nothing else."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from knotwork.adapters.llm import Completion, Usage
from knotwork.adapters.llm.middleware import Own
from knotwork.runtime.loops.search import Tree

__all__ = ["Wondering", "action", "kind_of", "shape"]


def action(sure: float, why: str, *commands: str) -> dict[str, Any]:
    """Return one of the next actions."""
    return {"plan": list(commands), "confidence": sure, "rationale": why}


PAPERS = action(
    0.9, "papers", "DECLARE papers AS LIST", 'FIND nodes WHERE entity_type = "PAPER" AS x', "UPDATE papers WITH x"
)
PEOPLE = action(
    0.6, "people", "DECLARE people AS LIST", 'FIND nodes WHERE entity_type = "PERSON" AS x',
    'CLASSIFY x BY "age" INTO ("young", "old") AS aged', "UPDATE people WITH aged",
)  # fmt: skip
GIANTS = action(0.5, "giants", 'FIND nodes WHERE entity_type = "GIANT" AS x')
COUNT = action(
    0.8,
    "how many",
    "DECLARE n AS COUNTER",
    'FIND nodes WHERE entity_type = "PERSON" AS x',
    "COUNT x AS many",
    "UPDATE n WITH many",
)


def kind_of(prompt: str) -> str:
    """Say who asks: the planner, the judge, or a command of a plan."""
    return "judge" if "You judge how far" in prompt else "planner" if "You are a researcher" in prompt else "plan"


class Wondering(Own):
    """Goes astray first: the surest plan leads nowhere. It has the answer where people are known and counted."""

    def __init__(self, on_call: Callable[[str], None] | None = None, delay: float = 0.0) -> None:
        self._on_call, self._delay = on_call, delay
        self.prompts: list[str] = []
        self.options: list[dict[str, Any]] = []

    def kinds(self) -> list[str]:
        """Return who asked, in order."""
        return [kind_of(prompt) for prompt in self.prompts]

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.prompts.append(prompt)
        self.options.append(options)
        if self._on_call is not None:
            self._on_call(prompt)
        await asyncio.sleep(self._delay)
        return Completion(self.answer(prompt), usage=Usage(100, 10))

    def answer(self, prompt: str) -> str:
        """Return what it says."""
        match kind_of(prompt):
            case "judge":
                score = 9 if "five people" in prompt else 2 * ('"people"' in prompt) + 2 * ('"n"' in prompt) + 1
                return json.dumps({"reason": "so it seems", "score": score / 10})
            case "planner":
                return json.dumps(self.plans(prompt))
        return "old"

    def plans(self, prompt: str) -> dict[str, Any]:
        """Return the planner's answer."""
        people, counted = "people LIST, 5" in prompt, "n COUNTER" in prompt
        if people and counted:
            return {"complete": "five people", "evidence": ["people", "n"]}
        return {"hypothesis": "it is so", "next_actions": [PAPERS, COUNT if people else PEOPLE, GIANTS]}

    async def aclose(self) -> None:
        pass


def shape(tree: Tree | None) -> str:
    """Return a tree without the hashes of its states: the time of a model's answer is in them."""
    assert tree is not None
    return re.sub(r", [0-9a-f]{8}\b", "", tree.text())
