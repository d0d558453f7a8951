"""What ``ask`` does: the answer that is kept already, or graph, state and models opened, the loop, its lines, the end."""

import asyncio
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from attrs import evolve

from ....adapters.llm import NotConfigured
from ....adapters.state import StoreError
from ...api.checked import Checked
from ...errors import RequestError
from ...events import Events
from ...loops.traversal.setup import Wanted, answered_before, room_for, traverse
from ...loops.traversal.traversal_results import Asked, Bounds, checked_folder, searching
from ...models.wiring import default_spec, open_graph
from ...runs.debug_log import DebugLog, level
from ...runs.directories import RunError
from ...session.workspace import close_models
from ..figures import Calls
from .ask_summary import Lines, Question, Searched, finish
from .run_program import Opened, open_executor
from .shared.checks import show
from .shared.files import STDIN, Unreadable, read_source, writable
from .shared.interrupt import cancelling
from .shared.live_view import Display
from .shared.output import Exit, Misused, complain, is_terminal, say

__all__ = ["run"]

_OPTIONS = {
    "question": "QUESTION", "max_steps": "--max-steps", "max_repairs": "--max-repairs", "time_limit": "--time-limit",
    "prompt_characters": "--max-prompt", "state": "--state",
}  # fmt: skip
_OF_SEARCH = {
    "width": "--width",
    "branching": "--branching",
    "depth": "--depth",
    "value": "--value",
    "enough": "--enough",
}


def run(asked: Question) -> int:
    """Answer the question and return the exit code. Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``Misused``."""
    _check(asked)
    try:
        text = read_source(STDIN).text if asked.text == STDIN else asked.text
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("nothing was asked")
        return Exit.ERRORS
    spec = asked.llm or _default()
    bounds = Bounds(
        asked.max_steps, asked.max_repairs, asked.prompt_characters or room_for(spec or ""), asked.time_limit
    )
    try:
        folder = checked_folder(asked.ground.state)
        search = searching(asked.search.settings, asked.search.value if asked.search.strategy else None)
        source = str(asked.ground.graph)
        wanted = Wanted(
            text, bounds, folder, asked.again, spec=spec or "", searching=search, graph=source, force=asked.ground.force
        )
        before = answered_before(wanted, lambda: open_graph(source, raw=asked.ground.raw).adapter.schema.hash)
    except RequestError as error:
        option = _OPTIONS.get(error.parameter, error.parameter)
        raise Misused(f"{option}: {error.message}", error.hint.replace("force", "--force")) from None
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    if asked.search.tree is not None and search is None and (before is None or before.tree is None):
        hint = "add --search beam, or leave it out" if before is None else "--again --search beam asks anew"
        raise Misused("--tree is for a search" if before is None else "this answer was found without a search", hint)
    calls = Calls()
    if before is not None:
        return finish(before, calls, asked)
    events, lines = Events(), _display(calls, wanted.question, asked.max_steps)
    for subscriber in (calls, lines or DebugLog(level())):
        events.subscribe(subscriber)
    note = lines.note if lines is not None else say
    opened = open_executor(
        evolve(asked.ground, query=wanted.question), asked.llm, {}, asked.limits, asked.max_concurrency, events,
        asks=True, warn=lambda message: note(f"warning: {message}"),
    )  # fmt: skip
    try:
        try:
            made = asyncio.run(_answered(wanted, opened, lines))
        finally:
            if lines is not None:
                lines.stop()
        return finish(made, calls, asked, _unkept(made, opened))
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    except StoreError as error:
        complain(
            error.message, "once that is mended, the same command goes on where it stood" if folder else error.hint
        )
        return Exit.FAILED
    finally:
        with suppress(StoreError):  # it was told
            opened.state.close()


def _unkept(made: Asked, opened: Opened) -> str:
    """Close the state, before anybody is told that it is kept; return why it, or the question in it, is not, "" where all is."""
    try:
        opened.state.close()
    except StoreError as error:
        return error.message
    return made.unkept


def _check(asked: Question) -> None:
    """Refuse, before anything is spent: a question in the graph's place, options of a search where there is none, and a file
    that can't be written."""
    graph, text, search = str(asked.ground.graph), asked.text, asked.search
    if not _is_source(graph) and (_is_source(text) or " " in graph.strip()):
        example = (text, graph) if _is_source(text) else ("GRAPH", graph)
        raise Misused("the graph stands first, then the question", f"knotwork ask {shlex.join(example)}")
    if search.strategy is None:
        for name, option in _OF_SEARCH.items():
            if getattr(search, name) != getattr(Searched(), name):
                raise Misused(f"{option} is for a search", "add --search beam, or leave it out")
    if search.tree is not None and search.tree != "-":
        folder = Path(search.tree).parent
        if Path(search.tree).is_dir() or not folder.is_dir():
            raise Misused(f"--tree {search.tree} is no file in a folder that is there")
    writable(search.tree, (".json", ".mmd", ".dot", ".txt"))


def _is_source(text: str) -> bool:
    return text.startswith("nx:") or Path(text).exists()


def _display(calls: Calls, question: str, most: int) -> Display | None:
    """Return the display: live on a terminal, lines in a pipe, none beside the debug log."""
    if level():
        return None
    if not is_terminal(sys.stderr):
        return Lines(most)
    from .ask_view import Screen  # brings rich, which a pipe does not need

    return Screen(calls, question, most)


def _default() -> str | None:
    """Return the default model's spec; None where there is none, which an answer that is kept does not need."""
    try:
        return default_spec(os.environ)
    except NotConfigured:
        return None


async def _answered(wanted: Wanted, opened: Opened, lines: Display | None) -> Asked:
    cancel = asyncio.Event()
    note, stop = (say, None) if lines is None else (lines.note, lines.stop)
    with cancelling(cancel, note, stop):
        try:
            return await traverse(wanted, opened.executor, opened.models.default, cancel=cancel)
        finally:
            await close_models(opened.models)
