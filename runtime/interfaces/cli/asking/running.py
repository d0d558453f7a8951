"""What ``ask`` does: the answer that is kept already, or graph, state and models opened, the loop, its lines, the end."""

import asyncio
import os
import sys
from pathlib import Path

from attrs import evolve

from .....adapters.llm import NotConfigured
from ....debuglog import DebugLog, level
from ....events import Events
from ....folders import RunError
from ....hdt.opening import Wanted, answered_before, room_for, traverse
from ....hdt.results import Asked
from ....hdt.settings import Bounds
from ....refusals import RequestError
from ....wiring import default_spec
from ..execution.interrupt import cancelling
from ..execution.models import close_models
from ..programs.opening import Opened, open_executor
from ..programs.progress import Calls
from ..shared.exit import Exit, Misused
from ..shared.output import complain, say
from .asked import Question
from .summary import finish
from .telling import Lines

__all__ = ["run"]

_OPTIONS = {
    "question": "QUESTION", "max_steps": "--max-steps", "max_repairs": "--max-repairs", "time_limit": "--time-limit",
    "prompt_characters": "--max-prompt",
}  # fmt: skip


def run(asked: Question) -> int:
    """Answer the question and return the exit code. Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``Misused``."""
    text = sys.stdin.read() if asked.text == "-" else asked.text
    spec = asked.llm or _default()
    bounds = Bounds(
        asked.max_steps, asked.max_repairs, asked.prompt_characters or room_for(spec or ""), asked.time_limit
    )
    folder = None if asked.ground.state is None else Path(asked.ground.state)
    try:
        wanted = Wanted(text, bounds, folder, asked.again, spec=spec or "")
    except RequestError as error:
        raise Misused(f"{_OPTIONS.get(error.parameter, error.parameter)}: {error.message}", error.hint) from None
    calls = Calls()
    before = answered_before(wanted)
    if before is not None:
        return finish(before, calls, asked)
    events, lines = Events(), None if level() else Lines(asked.max_steps)
    for subscriber in (calls, lines or DebugLog(level())):
        events.subscribe(subscriber)
    note = lines.note if lines is not None else say
    opened = open_executor(
        evolve(asked.ground, query=wanted.question), asked.llm, {}, asked.limits, asked.max_concurrency, events,
        asks=True, warn=lambda message: note(f"warning: {message}"),
    )  # fmt: skip
    try:
        made = asyncio.run(_answered(wanted, opened))
        return finish(made, calls, asked)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    finally:
        opened.state.close()


def _default() -> str | None:
    """Return the default model's spec; None where there is none, which an answer that is kept does not need."""
    try:
        return default_spec(os.environ)
    except NotConfigured:
        return None


async def _answered(wanted: Wanted, opened: Opened) -> Asked:
    cancel = asyncio.Event()
    with cancelling(cancel, lambda: say("stopping; Ctrl-C again leaves at once"), lambda: None):
        try:
            return await traverse(wanted, opened.executor, opened.models.default, cancel=cancel)
        finally:
            await close_models(opened.models)
