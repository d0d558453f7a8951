"""The local model plans a traversal: it is too small to plan well, and held to a grammar whatever it says can be read and ends in order."""

from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm.local import LocalModel
from knotwork.runtime.api.ask import ask_sync
from knotwork.runtime.loops.traversal.plan_answer import Unreadable, read_answer

pytestmark = pytest.mark.slow


class Heard:
    """The local model, and what it was asked for and answered."""

    spec = "local"

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self.options: list[dict[str, Any]] = []
        self.answers: list[str] = []

    async def generate(self, prompt: str, **options: Any) -> Any:
        self.options.append(options)
        answer = await self._model.generate(prompt, **options)
        self.answers.append(answer.text)
        return answer


def test_every_answer_can_be_read_and_the_traversal_ends_in_order(model: LocalModel, tmp_path: Path) -> None:
    heard = Heard(model)
    made = ask_sync(
        "nx:karate_club",
        "Which member has the most friends?",
        state=tmp_path / "s",
        llm=heard,
        max_steps=2,
        max_repairs=1,
        time_limit=300,
    )
    assert all("grammar" in options for options in heard.options)
    assert len(heard.answers) == len(heard.options) == made.calls >= 1
    assert [text for text in heard.answers if text[-1:] != "}"] == []
    readable = [text for text in heard.answers if "the answer" in text or not isinstance(read_answer(text), Unreadable)]
    assert readable == heard.answers
    assert made.status in ("complete", "stopped")
    assert bool(made.answer) is (made.status == "complete")
    assert made.reason or made.answer
    assert [step for step in made.steps if step.status == "refused" and not step.faults] == []
