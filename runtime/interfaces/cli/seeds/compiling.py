"""What ``seed compile`` does: the task read, the model opened, the steps shown, the seed written whole or not at all."""

import asyncio
import json
import os
import sys
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

from attrs import frozen

from .....adapters.llm.strict_schema import means_of
from .....lang.diagnostic import printable
from .....lang.source import Source
from ....api.checked import Checked
from ....api.compile import ANSWER_TOKENS, checker
from ....api.file_kinds import kind_of
from ....errors import RequestError
from ....events import Events
from ....loops.compile.compile_prompts import CompileRequest
from ....loops.compile.compile_results import Compiled
from ....loops.compile.compile_store import Compilations, CompileRecorder, start
from ....loops.compile.compiler import compile_task
from ....loops.compile.draft import Check
from ....models.caller import Caller
from ....models.wiring import default_spec, identity_of
from ....results import Trace
from ....runs.debug_log import DebugLog, level
from ....runs.directories import RunError, cache_file
from ....runs.event_log import logged
from ....seeds.reviews import ContextError
from ....session.workspace import Models, close_models
from ...asked import Limits
from ...counting import Calls
from ...models import open_models
from ...replacing import is_stream, replace_file
from ..execution.interrupt import cancelling
from ..shared.checking import show
from ..shared.exit import Exit, Misused
from ..shared.files import STDIN, Unreadable, only_one_stdin, read_source, writable
from ..shared.output import complain, say, write
from .compile_lines import Lines, finished, show_draft
from .incoming.contexts import Contexts
from .outgoing.writing import same_file

__all__ = ["CompileAsked", "perform"]

_GOES_ON = ("cancelled", "time", "budget")
"""What ends a compilation that the same command, or one with a higher limit, goes on with."""
_CONTEXTS = 100
"""Contexts of --example that are read."""


@frozen
class CompileAsked:
    """The arguments of ``knotwork seed compile``, under the names that the command line has."""

    task: str
    output: str | None
    task_name: str
    repairs: int
    example: str | None
    force: bool
    time_limit: float | None
    llm: str | None
    limits: Limits

    @property
    def to_file(self) -> str | None:
        """The file that the seed goes to; None for stdout."""
        return None if self.output == STDIN else self.output


def perform(asked: CompileAsked) -> int:
    """Do what was asked and return the exit code. Raises ``Misused`` and ``NotConfigured``."""
    only_one_stdin([asked.task, asked.example])
    _check_output(asked)
    try:
        source = _task(asked.task)
        request = _request(asked, source)
        contexts = _contexts(asked.example)
        check = checker(contexts)
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("nothing was asked")
        return Exit.ERRORS
    except ContextError as error:
        raise Misused(f"--example: {error}") from None
    shown = Lines(asked.repairs)
    spec = asked.llm or default_spec(os.environ)
    models = open_models(spec, {}, asked.limits, 1, lambda text: shown.note(f"warning: {text}"))
    calls, events = Calls(), Events()
    for subscriber in (calls, DebugLog(level()) if level() else shown):
        events.subscribe(subscriber)
    recorder = _recorder(request, spec, source.name, shown)
    try:
        with logged(events, recorder.path) if recorder is not None else nullcontext():
            made = asyncio.run(_compiled(asked, request, check, models, events, shown))
        if recorder is not None:
            recorder.ended(made)
    finally:
        if recorder is not None:
            recorder.close()
    if recorder is not None:
        say(printable(f"kept in {recorder.path}"))
    return _end(asked, made, calls.cached, cached=asked.limits.cache and cache_file(spec) is not None)


def _recorder(request: CompileRequest, spec: str, name: str, shown: Lines) -> CompileRecorder | None:
    """Return what keeps the run; None, with a warning, where it can't be kept: nothing is resumed from it."""
    try:
        return start(request, model=spec, name=f"compile {name}")
    except RunError as error:
        shown.note(f"warning: {error.message}")
        return None


def _check_output(asked: CompileAsked) -> None:
    """Refuse, before anything is spent, a file that may not be written."""
    writable(asked.to_file, (".json",))
    if asked.to_file is None:
        return
    for name in (asked.task, asked.example):
        if name is not None and name != STDIN and same_file(name, asked.to_file):
            raise Misused(f"{asked.to_file} is what is read", "--output takes another file")
    path = Path(asked.to_file)
    if path.is_dir():
        raise Misused(f"{asked.to_file} is a folder", f"name a file in it: --output {path / 'task.seed.json'}")
    if is_stream(path):
        return  # it is written into, and nothing of it is lost
    if (path.exists() or path.is_symlink()) and not asked.force:  # a link that leads nowhere is somebody's too
        raise Misused(f"{asked.to_file} is there already", "--force writes it anew")
    if not path.parent.is_dir():
        raise Misused(f"{asked.to_file} can't be written: there is no folder {path.parent}")


def _task(name: str) -> Source:
    """Read a task. Raises ``Unreadable``, and ``Misused`` for what is surely none."""
    words = "a task in words goes through stdin: echo '...' | knotwork seed compile -"
    source = read_source(name, like="*.md", missing=words if any(map(str.isspace, name)) else _EXAMPLE)
    if not source.text.strip():
        raise Misused(f"{source.name}: the task is empty", _EXAMPLE)
    if kind_of(source) == "seed":
        raise Misused(f"{source.name} is a Formula Seed already", f"it is checked by: knotwork check {source.name}")
    if source.name.lower().endswith((".csv", ".tsv", ".lwt", ".gasl")) or _is_document(source.text):
        raise Misused(f"{source.name} is no task in words", f"{_EXAMPLE}; contexts are given with --example FILE")
    return source


_EXAMPLE = "a task says which values are wanted, and how they come from reviews: knotwork seed compile task.md"


def _is_document(text: str) -> bool:
    """Say whether a text is a JSON object or list as a whole, or lines of them."""
    lines = text.strip().split("\n")
    if text.lstrip()[:1] not in ("{", "["):
        return False
    for whole in (text, lines[0]):
        try:
            json.loads(whole)
        except (ValueError, RecursionError):
            continue
        return True
    return False


def _request(asked: CompileAsked, source: Source) -> CompileRequest:
    try:
        return CompileRequest(source.text, asked.task_name, asked.repairs)
    except RequestError as error:
        where = {"task": source.name, "name": "--task-name", "repairs": "--repairs"}.get(
            error.parameter, error.parameter
        )
        raise Misused(f"{where}: {error.message}", error.hint) from None


def _contexts(name: str | None) -> list[object] | None:
    """Return the contexts of --example. Raises ``Misused`` and ``Unreadable``."""
    if name is None:
        return None
    contexts = Contexts(name)
    found: list[object] = [item.value for item in islice(contexts, _CONTEXTS)]
    if contexts.faults:
        fault = contexts.faults[0]
        raise Misused(f"--example: {contexts.shown}, line {fault.line}: {fault.fault}")
    if not found:
        raise Misused(f"--example: {contexts.shown} has no contexts")
    return found


async def _compiled(
    asked: CompileAsked, request: CompileRequest, check: Check, models: Models, events: Events, shown: Lines
) -> Compiled:
    cancel = asyncio.Event()
    answers = cache_file(models.spec) if asked.limits.cache else None
    cache = None
    if answers is not None:  # it stands beside that of the calls
        cache = Compilations(
            answers.with_name("compiled.sqlite"),
            identity_of(models.spec),
            warn=lambda text: shown.note(f"warning: {text}"),
        )
    limited = asked.limits.max_tokens is not None or asked.limits.max_cost is not None
    caller = Caller(models.default, {}, events, Trace(), 1)
    with cancelling(cancel, shown.note):
        try:
            return await compile_task(
                request, caller, check=check, options={"max_tokens": ANSWER_TOKENS} if limited else {},
                cancel=cancel, time_limit=asked.time_limit, cache=cache, means=means_of(models.spec),
            )  # fmt: skip
        finally:
            if cache is not None:
                await cache.aclose()
            await close_models(models)


def _end(asked: CompileAsked, made: Compiled, cached_calls: int, *, cached: bool) -> int:
    """Write the seed, or show the best draft; say what it cost; return the exit code. ``cached``: answers are kept in a cache."""
    if made.status != "done":
        show_draft(made)
        finished(made, cached_calls)
        complain(made.reason, made.hint)
        say("nothing was written")
        if made.stopped in _GOES_ON and cached:
            say("the same command goes on: what was answered is in the cache")
        return Exit.INTERRUPTED if made.stopped == "cancelled" else Exit.FAILED
    checked = Checked(made.diagnostics, Source(made.text, asked.to_file or "<seed>"))
    show(
        [checked if asked.example is not None else checked.without_remarks], sys.stderr
    )  # remarks: what its filter keeps
    if asked.to_file is None:
        write(made.text)
        sys.stdout.flush()
    else:
        try:
            replace_file(Path(asked.to_file), made.text + "\n")
        except OSError as error:
            write(made.text)  # it is paid for
            sys.stdout.flush()
            complain(f"{asked.to_file} can't be written: {error.strerror or error}", "the seed is on stdout")
            return Exit.FAILED
    finished(made, cached_calls)
    if asked.to_file is not None:
        say(printable(f"written to {asked.to_file}"))
    return Exit.DONE
