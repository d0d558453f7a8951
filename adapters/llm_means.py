"""What the model of a spec can be held to by its own means: what a loop asks it for depends on it.

A service may still refuse what is said here (an older model, another server); its adapter then asks without, and remembers it. A
cassette is asked as the model was that it was made with, so that a recorded run can be replayed.
"""

import json
from pathlib import Path
from typing import Any

from attrs import frozen

__all__ = ["Means", "means_of"]

_SERVICES = ("openai:", "http://", "https://")
_LONG = 3_000
"""Tokens of a long answer of a model in this process: beside a prompt they fit its context."""
_HEAD = 4_096
"""Characters of a cassette's first line that are looked at."""


@frozen
class Means:
    """``tools``: it calls tools in a form of its own. ``grammar``: it writes under a grammar. ``small``: it writes little, and hardly
    anything right that nothing holds it to; its answers are kept short. ``tokens``: how many a long answer has to be granted, None
    where the model's own limit is high enough.
    """

    tools: bool = False
    grammar: bool = False
    small: bool = False
    tokens: int | None = None


def means_of(model: Any) -> Means:
    """Return the means of a spec, or of a client that has one (``client.spec``); none for other clients. Never raises."""
    spec = model if isinstance(model, str) else getattr(model, "spec", "")
    if not isinstance(spec, str):
        return Means()
    spec = spec.strip()
    if spec.startswith("record:"):
        return means_of(spec.partition(",")[2])
    if spec.startswith("replay:"):
        made_with = _recorded_with(spec.removeprefix("replay:"))
        return Means() if made_with.startswith("replay:") else means_of(made_with)
    if spec == "local":
        return Means(grammar=True, small=True)
    if spec.startswith("local:"):  # any model: it may be a large one
        return Means(grammar=True, tokens=_LONG)
    if spec.startswith("anthropic:"):
        return Means(tools=True)
    return Means(tools=True, grammar=True) if spec.startswith(_SERVICES) else Means()


def _recorded_with(path: str) -> str:
    """Return the spec in a cassette's head, "" where there is none; what is wrong with the cassette is told when it is opened."""
    try:
        with Path(path).open(encoding="utf-8") as stream:
            head = json.loads(stream.readline(_HEAD))
    except (OSError, ValueError, RecursionError):
        return ""
    return str(head.get("model") or "") if isinstance(head, dict) else ""
