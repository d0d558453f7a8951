"""What ``run`` does before anything is spent: read, check, and find out what an earlier run leaves open."""

import os
import sys
from typing import Any

from attrs import evolve

from .....lang.dependencies import step_references
from .....lang.source import Source
from .....lang.trees.lwt import MISSING, Call, Mode, Script
from .....lang.trees.node import walk
from ....api.checked import Checked, CheckedScript, check_script
from ....lwt.run_store import RunError, Stored, load
from ...asked import Ground
from ...models import named_specs
from ..shared.checking import show
from ..shared.exit import Exit, Misused
from ..shared.files import Unreadable, read_input
from ..shared.output import complain, say
from ..shared.states import graph_of_state
from .asked import Asked
from .job import Job
from .models import needs_default

__all__ = ["perform", "refused"]


def perform(asked: Asked, source: Source | None) -> int:
    """Run the script ``source``, or go on with a kept run, and return the exit code."""
    named = named_specs(asked.models)
    try:
        stored = load(asked.resume) if asked.resume is not None else None
        if stored is not None:
            asked, named = _as_before(asked, named, stored)
        job = _job(asked, source, stored, named)
        if isinstance(job, Checked):
            return refused(job, asked)
        if asked.dry_run:
            from .rehearsal import rehearse

            show([job.checked.without_remarks], sys.stderr)
            return rehearse(job.script, job.given, asked.form == "json", asked.all_steps)
        if job.given is None and _wants_input(job.script):
            raise Misused(
                f"{job.script.source.name} refers to {{(input)}}, and there is none", "give one: --input FILE"
            )
        asked = _with_graph(asked, job.script)
        spec = _spec(asked, job.script)
        from .executing import execute  # brings the event loop, which nothing before needs

        return execute(asked, job, spec, named)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if asked.resume is not None else Exit.FAILED


def _as_before(asked: Asked, named: dict[str, str], stored: Stored) -> tuple[Asked, dict[str, str]]:
    """Fill in what the command line leaves open from the run that is resumed."""
    options = stored.head.get("options", {})
    asked = evolve(
        asked,
        lenient=asked.lenient or (asked.file is None and stored.head.get("mode") == "lenient"),
        all_steps=asked.all_steps or bool(options.get("all_steps")),
        llm=asked.llm or stored.head.get("model") or None,
    )
    return asked, {**options.get("models", {}), **named}


def _job(asked: Asked, source: Source | None, stored: Stored | None, named: dict[str, str]) -> Job | Checked:
    """Read and check; a ``Checked`` says what is wrong."""
    mode: Mode = "lenient" if asked.lenient else "strict"
    try:
        if source is None:
            assert stored is not None  # noqa: S101 - perform() refuses a run without either
            source = Source(stored.script, str(stored.head["name"]))
        given: Any = MISSING
        if asked.input_file is not None:
            given = read_input(asked.input_file)
        elif stored is not None and (kept := stored.input) is not None:
            given = kept
    except Unreadable as error:
        return Checked((error.diagnostic,), error.source)
    checked = check_script(source, mode, max_steps=asked.max_steps, input=given, models=sorted(named))
    return checked if checked.failed else Job(checked, None if given is MISSING else given, stored)


def refused(checked: Checked, asked: Asked) -> int:
    """Tell why nothing was run."""
    show([checked.without_remarks], sys.stderr)
    if asked.form == "json":
        from .summary import refusal

        print(refusal(checked))
    say("nothing was run")
    if isinstance(checked, CheckedScript) and not asked.lenient and checked.diagnostics[0].code.startswith("LWT00"):
        say("if a model wrote this script, try --lenient")
    return Exit.ERRORS


def _with_graph(asked: Asked, script: Script) -> Asked:
    """Find the graph of the script's GASL steps: the one that is given, else the one that the state was made with."""
    ground = asked.ground
    calls = (node for step in script.steps for node in walk(step) if isinstance(node, Call))
    if not any(call.operation == "GASL" for call in calls):
        if ground.graph is not None or ground.state is not None:
            say(f"warning: {script.source.name} has no GASL step: no graph and no state are opened")
        return evolve(asked, ground=Ground(query=ground.query))
    graph = ground.graph or graph_of_state(ground.state)
    if graph is None:
        raise Misused(f"{script.source.name} has GASL steps, and there is no graph", "give one: --graph FILE")
    if ground.state is not None and os.path.isfile(ground.state):
        raise Misused(f"{ground.state} is a file; --state takes a folder, in which the state is kept")
    return evolve(asked, ground=evolve(ground, graph=graph))


def _wants_input(script: Script) -> bool:
    return any(reference.name == "input" for step in script.steps for reference in step_references(step))


def _spec(asked: Asked, script: Script) -> str | None:
    """Return the spec of the run's own model; None where no step asks it. Raises ``NotConfigured``."""
    if asked.llm is not None:
        return asked.llm
    if not needs_default(script):
        return None
    from ....models.wiring import default_spec

    return default_spec(os.environ)
