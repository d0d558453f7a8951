"""A model as a search's value: it sees the question, the state in brief and the answer, if there is one, and gives 0.0 to 1.0."""

import json
from typing import Any

from attrs import define, field
from blake3 import blake3

from ...adapters.llm.answers import read_json
from ...lang.answers import read_object
from ...lang.literals import Unreadable
from ..answers.asking import Asker
from ..answers.judging import read_score
from ..calls import Caller
from ..commands.excerpts import excerpt, fenced
from ..prompting import fill, read_prompt
from ..spending import Spent
from .nodes import Node

__all__ = ["JUDGED", "Judged"]

JUDGED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "maxLength": 2_000},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["reason", "score"],
    "additionalProperties": False,
}
"""What a model answers."""

_KEYS = 40
_SAMPLES = 5
_STATE = 8_000
"""Characters of a state that are shown."""


@define
class Judged:
    """Asks ``caller``'s model (or the one that it knows as ``model``) how far a state has come in answering ``query``.

    ``spent`` is to be the search's own, so that its budget holds for these calls too. Where the caller has a record each
    judgement is kept in it, under the way to the state, and found again: a model's answer in a state has its time there, and so
    its hash is another one when the same plans are run once more.
    """

    caller: Caller
    query: str
    spent: Spent = field(factory=Spent)
    step: str = "value"
    model: str | None = None
    _asker: Asker = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._asker = Asker(self.caller, self.step, self.caller.events, self.spent)

    async def value(self, node: Node) -> float:
        """Return the score. Raises ``StepFailed``."""
        options = {"schema": JUDGED, "temperature": 0.0, "tidy": _tidied}
        text = await self._asker.ask(_place(node), self.prompt(node), options, self.model)
        return float(read_json(text)["score"]) + 0.0

    def prompt(self, node: Node) -> str:
        """Return what is asked; its size does not grow with the state's."""
        values = {
            "query": fenced(self.query),
            "state": fenced(_brief(node)),
            "answer": fenced(node.answer[:_STATE]) if node.answer is not None else "(none yet)",
        }
        return fill(read_prompt(__package__, "value"), values)


def _tidied(text: str) -> str:
    """Return the one judgement in ``text``. Raises ``ValueError`` with a clause for the judge."""
    found = read_object(text, ("score",))
    if isinstance(found, Unreadable):
        raise ValueError(found.reason)
    score = read_score(found.value["score"])
    if isinstance(score, str):
        raise ValueError(score)
    return json.dumps({"reason": found.value.get("reason", ""), "score": score}, ensure_ascii=False)


def _brief(node: Node) -> str:
    declared = node.snapshot.declared()
    told: list[Any] = [
        {
            "key": each.key,
            "type": each.type,
            "size": each.size,
            "description": each.description,
            "sample": node.snapshot.sample(each.key, _SAMPLES)[1],
        }
        for each in declared[:_KEYS]
    ]
    if len(declared) > _KEYS:
        told.append(f"… {len(declared) - _KEYS} more keys")
    return "\n".join(excerpt(each, _STATE // (len(told) or 1)) for each in told) or "nothing is declared yet"


def _place(node: Node) -> int:
    """Return the call's number: a way's own, in every run."""
    named = "\n".join(action.does for action in node.path).encode("utf-8", "backslashreplace")
    return int.from_bytes(blake3(named).digest(length=6), "big")
