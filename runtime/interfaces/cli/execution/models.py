"""Which of the models of a run its script needs."""

import re

from .....lang.catalogue.operations import BUILTIN
from .....lang.trees.lwt import Call, Script, Text
from .....lang.trees.node import walk

__all__ = ["needs_default"]


def needs_default(script: Script) -> bool:
    """Say whether a step asks the run's own model. A script of constants, or of graph commands, runs without one."""
    calls = [node for step in script.steps for node in walk(step) if isinstance(node, Call)]
    return any(
        call.operation not in BUILTIN
        or (call.operation in ("ANSWER", "LLM", "SEED") and call.option("model") is None)
        or (call.operation == "GASL" and _program_asks(call))
        for call in calls
    )


_ASKING = re.compile(r"\b(?:PROCESS|CLASSIFY|ANALYZE)\b", re.IGNORECASE)


def _program_asks(call: Call) -> bool:
    """Say whether the program of a GASL call may ask a model; that of a file may."""
    texts = [part.value for part in walk(call) if isinstance(part, Text)]
    return call.option("file") is not None or any(_ASKING.search(text) for text in texts)
