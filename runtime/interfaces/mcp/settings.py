"""What an MCP server is told at its start: what it works on, which models it may ask, and its limits. Clients change none of it."""

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from ....adapters.llm.budget import Price

__all__ = ["Limits", "Settings"]


@frozen
class Limits:
    """What clients may spend and be told.

    ``max_calls``, ``max_tokens`` and ``max_cost`` (None: no limit) hold for the server from its start to its end, all clients
    together. ``seconds``: for one call of a tool. ``runs``: tools at work at once. ``characters``: of a page of results.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    seconds: float = 600.0
    runs: int = 16
    characters: int = 20_000


@frozen
class Settings:
    """All that ``Ground.open`` needs. ``graph``: a file or ``nx:NAME``; ``state``: a folder, None keeps it in memory.
    ``force``: go on with one whose findings are of another graph. ``raw``: read the graph's values as they are written.

    ``spec`` is the model's, None: no command may ask one; ``models`` are those that may be named. ``chunks``: the texts that the
    graph was made from. Nothing else is read or written.
    """

    graph: str | None = None
    state: Path | None = None
    read_only: bool = False
    force: bool = False
    raw: bool = False
    spec: str | None = None
    models: Mapping[str, str] = field(factory=dict)
    chunks: str | None = None
    cache: bool = True
    limits: Limits = field(factory=Limits)
