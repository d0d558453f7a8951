"""What a step function of ``run_until_complete`` says: an answer, a command, or a plan in one of its forms."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ...adapters.llm.answers import unfenced
from .planning import is_document

__all__ = ["answer_of", "plan_of"]

_COMPLETE = "COMPLETE:"


def answer_of(said: Any) -> str | None:
    """Return the answer that ends the loop: ``COMPLETE: answer``, in a fence too, or ``{"complete": "answer"}``; None for all else."""
    if isinstance(said, str):
        bare = unfenced(said.strip()).strip()
        if bare.startswith(_COMPLETE):
            return bare.removeprefix(_COMPLETE).strip()
        if not is_document(bare):
            return None
        try:
            said = json.loads(bare)
        except (ValueError, RecursionError):  # the plan's own reader says what is wrong with it
            return None
    if isinstance(said, Mapping) and "commands" not in said and isinstance(answer := said.get("complete"), str):
        return answer.strip().removeprefix(_COMPLETE).strip()
    return None


def plan_of(said: Any) -> Any:
    """Return a list of commands as a plan, and anything else as it is."""
    if isinstance(said, list | tuple):
        return {"plan_id": str(uuid4()), "why": "no reason was given", "commands": list(said)}
    return said
