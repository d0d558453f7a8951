"""What a runner of a GASL command may use: the ports, the variables, and the settings of the plan under way."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import define, field

from ...adapters.graph import Caps, GraphAdapter
from ...adapters.llm import LLM
from ...adapters.state import StateStore
from ..events import Events
from .records import ExecutionResult
from .variables import ContextStore

__all__ = ["Runner", "Session"]


@define
class Session:
    """One plan under way. Runners read all of it and write ``context`` and ``state`` only (through their results: see ``Runner``).

    ``models`` are the clients that ``SET llm.model`` may name; the name is ``options["model"]`` then. The other ``options`` are
    the model's in force (temperature, max_tokens ...), ``caps`` the caps in force, ``ceiling`` the most that SET may raise them
    to. ``chunks`` gives the text of a chunk by its id, for snippets. ``plan_id`` is the plan's. ``label`` names the command in
    events ("3", "3.1"). ``chosen`` are the caps that SET changed in this plan. ``resting`` has, while a branch is under way, the
    incomplete variables that its condition read, with why they are: what the branch does rests on them. ``cancel`` is set when the
    plan is cancelled; the command under way is then cancelled as a task too. ``recalled`` has the answers of PROCESS and CLASSIFY
    that left items open, by question: the same command asks only the open ones then.
    """

    graph: GraphAdapter
    state: StateStore
    llm: LLM | None = None
    models: Mapping[str, LLM] = field(factory=dict)
    context: ContextStore = field(factory=ContextStore)
    caps: Caps = field(factory=Caps)
    ceiling: Caps = field(
        factory=lambda: Caps(max_path_length=8, max_results=10_000_000, max_paths=1_000_000, timeout_s=600.0)
    )
    options: dict[str, Any] = field(factory=dict)
    max_concurrency: int = 8
    events: Events | None = None
    chunks: Callable[[str], str | None] = lambda chunk: None
    plan_id: str = ""
    label: str = ""
    chosen: frozenset[str] = frozenset()
    resting: Mapping[str, tuple[str, ...]] = field(factory=dict)
    cancel: asyncio.Event | None = None
    recalled: dict[Any, Any] = field(factory=dict)


Runner = Callable[[Any, Session], Awaitable[ExecutionResult]]
"""``async (command, session) -> ExecutionResult``. The dispatcher binds the result's value to the command's variable and turns
``StateError``, ``AdapterError`` and ``LLMError`` into statuses; a runner that changes the state calls ``session.state.stage``
and never commits."""
