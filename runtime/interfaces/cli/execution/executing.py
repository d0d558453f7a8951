"""What ``run`` does once all is known: models, the run itself, its display, and the report at its end."""

import asyncio
import sys

from .....adapters.chunks import open_chunks
from ....debuglog import DebugLog, level
from ....eventlog import logged
from ....events import Events
from ....facade.workshop import folder_of, on_graph
from ....results import Run, ScriptError
from ....runs import Recorder, start
from ....scripts import run as run_script
from ..shared.checked import Checked
from ..shared.checking import show
from ..shared.display import Display
from ..shared.exit import Exit
from ..shared.output import is_terminal, say
from .asked import Asked, resume_command
from .interrupt import cancelling
from .job import Job
from .models import Models, close_models, open_models
from .progress import Lines, Tally
from .summary import finish

__all__ = ["execute"]


def execute(asked: Asked, job: Job, spec: str | None, named: dict[str, str]) -> int:
    """Run the job and return the exit code. Raises ``NotConfigured`` and ``RunError``."""
    tally = Tally()
    screen = _display(tally, job.script.source.name)
    note = screen.note if screen is not None else say
    models = open_models(spec, named, asked.limits, asked.max_concurrency, lambda text: note(f"warning: {text}"))
    show([job.checked.without_remarks], sys.stderr)
    recorder = _recorder(asked, job, spec or "", named)
    events = Events()
    for subscriber in (tally, screen or DebugLog(level())):
        events.subscribe(subscriber)
    try:
        with logged(events, recorder.path):
            run = asyncio.run(_executed(asked, job, models, events, recorder, screen))
    except ScriptError as error:  # the run's own check has the last word
        show([Checked(error.diagnostics, error.source, job.script)], sys.stderr)
        return Exit.ERRORS
    finally:
        if screen is not None:
            screen.stop()
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
    asked: Asked, job: Job, models: Models, events: Events, recorder: Recorder, screen: Display | None
) -> Run:  # fmt: skip
    cancel = asyncio.Event()

    def first() -> None:
        (screen.note if screen is not None else say)("stopping; Ctrl-C again leaves at once")

    def last() -> None:
        if screen is not None:
            screen.stop()

    with cancelling(cancel, first, last):
        ground = asked.ground
        chunks = open_chunks(ground.chunks) if ground.chunks is not None else None
        try:
            with on_graph(
                ground.graph, ground.state, models.default, models.named, recorder, events, chunks, ground.query
            ) as workshop:  # fmt: skip
                return await run_script(
                    job.script, input=job.given, llm=models.default, models=models.named, schedule=asked.schedule,
                    max_concurrency=asked.max_concurrency, all_steps=asked.all_steps, events=events, record=recorder,
                    cancel=cancel, workshop=workshop, folder=folder_of(job.script), spec=models.spec,
                )  # fmt: skip
        finally:
            await close_models(models)
