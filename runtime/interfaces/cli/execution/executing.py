"""What ``run`` does once all is known: models, the run itself, its display, and the report at its end."""

import asyncio
import sys

from ....api.checked import Checked, folder_of
from ....api.clients import on_graph
from ....events import Events
from ....lwt.operations.operation import Workshop
from ....lwt.run_store import Recorder, start
from ....lwt.runner import run as run_script
from ....results import Run, ScriptError
from ....runs.debug_log import DebugLog, level
from ....runs.event_log import logged
from ....session.workspace import Models, close_models
from ...models import open_models
from ...opening import in_words_of_options
from ..shared.checking import show
from ..shared.display import Display
from ..shared.exit import Exit
from ..shared.output import is_terminal, say
from ..shared.telling import telling
from .asked import Asked, resume_command
from .interrupt import cancelling
from .job import Job
from .progress import Lines, Tally
from .summary import finish

__all__ = ["execute"]


def execute(asked: Asked, job: Job, spec: str | None, named: dict[str, str]) -> int:
    """Run the job and return the exit code. Raises ``NotConfigured``, ``RunError``, ``Misused``, ``AdapterError`` and ``StoreError``."""
    tally = Tally()
    screen = _display(tally, job.script.source.name)
    note = screen.note if screen is not None else say

    def warn(text: str) -> None:
        note(f"warning: {text}")

    models = open_models(spec, named, asked.limits, asked.max_concurrency, warn)
    show([job.checked.without_remarks], sys.stderr)
    events = Events()
    for subscriber in (tally, screen or DebugLog(level())):
        events.subscribe(subscriber)
    recorder: Recorder | None = None
    try:
        # Before there is a run: what can't be opened leaves no folder.
        with in_words_of_options(), on_graph(asked.ground.wanted(), models, events, telling(warn)) as workshop:
            recorder = _recorder(asked, job, spec or "", named)
            if workshop is not None:
                workshop.run_id = recorder.run_id
            with logged(events, recorder.path):
                run = asyncio.run(_executed(asked, job, models, events, recorder, screen, workshop))
    except ScriptError as error:  # the run's own check has the last word
        show([Checked(error.diagnostics, error.source)], sys.stderr)
        return Exit.ERRORS
    finally:
        if screen is not None:
            screen.stop()
        if recorder is not None:
            recorder.close()
    return finish(run, job.checked, tally, asked, recorder, resume_command(recorder.run_id, asked, spec or ""))


def _display(tally: Tally, name: str) -> Display | None:
    """Return the display: live on a terminal, lines in a pipe, none beside the debug log."""
    if level():
        return None
    if not is_terminal(sys.stderr):
        return Lines(tally)
    from .screen import Screen  # brings rich, which a pipe does not need

    return Screen(tally, name)


def _recorder(asked: Asked, job: Job, spec: str, named: dict[str, str]) -> Recorder:
    if job.stored is not None:
        script = job.script if asked.file is not None else None
        given = job.given if asked.input_file is not None else None
        return job.stored.resume(script, input=given, force=asked.force)
    options = {"models": named, "all_steps": asked.all_steps, "steps": len(job.script.steps)}
    return start(job.script, input=job.given, model=spec, options=options)


async def _executed(
    asked: Asked, job: Job, models: Models, events: Events, recorder: Recorder, screen: Display | None, workshop: Workshop | None
) -> Run:  # fmt: skip
    cancel = asyncio.Event()
    note, stop = (say, None) if screen is None else (screen.note, screen.stop)
    with cancelling(cancel, note, stop):
        try:
            return await run_script(
                job.script, input=job.given, llm=models.default, models=models.named, schedule=asked.schedule,
                max_concurrency=asked.max_concurrency, all_steps=asked.all_steps, events=events, record=recorder,
                cancel=cancel, workshop=workshop, folder=folder_of(job.script), spec=models.spec, strict_types=asked.strict_types,
                plan=job.checked.plan,
            )  # fmt: skip
        finally:
            await close_models(models)
