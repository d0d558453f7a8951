"""``knotwork run``: run a script with a model, or a program or a plan on a graph."""

import os
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from attrs import evolve, frozen

from .....lang.trees.lwt import MISSING, Call, Mode, Script, Text
from ....api.checks import Checked, CheckedScript, check_script, folder_of
from ..output import Exit, Misused, complain, is_terminal, json_text, say
from ..params import (
    LIMITS,
    AsWritten,
    ChunksFile,
    GraphSource,
    InputFile,
    Lenient,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxSteps,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    StateFolder,
    StrictTypes,
    no_key,
)

if TYPE_CHECKING:
    from .....lang.source import Source
    from ....api.workspace import Models
    from ....events import Events
    from ....lwt.operations.operation import Workshop
    from ....lwt.run_store import Recorder, Stored
    from ....results import Run
    from ..display import Display
    from ..run_view import Asked, Tally

# Before the first model call: read, check, and load a run to resume.


@frozen
class Job:
    """A run that is ready to start: the checked script, its input, and the stored run if one is resumed."""

    checked: CheckedScript
    given: Any
    stored: "Stored | None"

    @property
    def script(self) -> Script:
        """The checked script."""
        return self.checked.script


# The models that a script needs.


def needs_default(script: Script) -> bool:
    """Return whether a step calls the run's default model. Scripts of constants or graph commands need no model."""
    from .....lang.catalogue.operations import BUILTIN
    from .....lang.trees import walk

    calls = [node for step in script.steps for node in walk(step) if isinstance(node, Call)]
    return any(
        call.operation not in BUILTIN
        or (call.operation in ("ANSWER", "LLM", "SEED") and call.option("model") is None)
        or (call.operation == "GASL" and _program_asks(call))
        for call in calls
    )


_ASKING = re.compile(r"\b(?:PROCESS|CLASSIFY|ANALYZE)\b", re.IGNORECASE)


def _program_asks(call: Call) -> bool:
    """Return whether the program of a GASL call may call a model; true for a program in a file."""
    from .....lang.trees import walk

    texts = [part.value for part in walk(call) if isinstance(part, Text)]
    return call.option("file") is not None or any(_ASKING.search(text) for text in texts)


def perform_script(asked: "Asked", source: "Source | None") -> int:
    """Run the script ``source``, or resume a stored run, and return the exit code."""
    from ....lwt.run_store import load
    from ....runs.journal import RunError
    from ...options import named_specs
    from ..inputs import show

    named = named_specs(asked.models)
    try:
        stored = load(asked.resume) if asked.resume is not None else None
        if stored is not None:
            asked, named = _as_before(asked, named, stored)
        job = _job(asked, source, stored, named)
        if isinstance(job, Checked):
            return refused(job, asked)
        if asked.dry_run:
            from ....api import lwt
            from ..run_view import show_dry_run

            show([job.checked.without_remarks], sys.stderr)
            found = lwt.dry_run(job.script, input=job.given, all_steps=asked.all_steps)
            if asked.form == "json":
                print(json_text(found.as_json()))
            else:
                show_dry_run(found)
            return Exit.DONE if job.script.steps else Exit.ERRORS
        if job.given is None and _wants_input(job.script):
            raise Misused(
                f"{job.script.source.name} refers to {{(input)}}, and there is none", "give one: --input FILE"
            )
        asked = _with_graph(asked, job.script)
        spec = _spec(asked, job.script)

        return execute(asked, job, spec, named)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if asked.resume is not None else Exit.FAILED


def _as_before(asked: "Asked", named: dict[str, str], stored: "Stored") -> "tuple[Asked, dict[str, str]]":
    """Fill in missing command-line options from the resumed run."""
    options = stored.head.get("options", {})
    asked = evolve(
        asked,
        lenient=asked.lenient or (asked.file is None and stored.head.get("mode") == "lenient"),
        all_steps=asked.all_steps or bool(options.get("all_steps")),
        llm=asked.llm or stored.head.get("model") or None,
    )
    return asked, {**options.get("models", {}), **named}


def _job(asked: "Asked", source: "Source | None", stored: "Stored | None", named: dict[str, str]) -> Job | Checked:
    """Read and check the script and input; return a ``Checked`` with the errors if there are any."""
    from .....lang.source import Source
    from ..inputs import Unreadable, read_input

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


def refused(checked: Checked, asked: "Asked") -> int:
    """Report why nothing was run; return the exit code."""
    from ..inputs import show

    show([checked.without_remarks], sys.stderr)
    if asked.form == "json":
        from ..run_view import refusal

        print(refusal(checked))
    say("nothing was run")
    if isinstance(checked, CheckedScript) and not asked.lenient and checked.diagnostics[0].code.startswith("LWT00"):
        say("if a model wrote this script, try --lenient")
    return Exit.ERRORS


def _with_graph(asked: "Asked", script: Script) -> "Asked":
    """Set the graph of the script's GASL steps: the given one, else the one recorded in the state."""
    from .....lang.trees import walk
    from ....api import states
    from ...options import Ground
    from ..inputs import warn

    ground = asked.ground
    calls = (node for step in script.steps for node in walk(step) if isinstance(node, Call))
    if not any(call.operation == "GASL" for call in calls):
        if ground.graph is not None or ground.state is not None:
            say(f"warning: {script.source.name} has no GASL step: no graph and no state are opened")
        return evolve(asked, ground=Ground(query=ground.query))
    graph = ground.graph or states.graph_of(ground.state, warn)
    if graph is None:
        raise Misused(f"{script.source.name} has GASL steps, and there is no graph", "give one: --graph FILE")
    if ground.state is not None and os.path.isfile(ground.state):
        raise Misused(f"{ground.state} is a file; --state needs a directory")
    return evolve(asked, ground=evolve(ground, graph=graph))


def _wants_input(script: Script) -> bool:
    from .....lang.dependencies import step_references

    return any(reference.name == "input" for step in script.steps for reference in step_references(step))


def _spec(asked: "Asked", script: Script) -> str | None:
    """Return the spec of the run's default model; None if no step calls it. Raises ``NotConfigured``."""
    if asked.llm is not None:
        return asked.llm
    if not needs_default(script):
        return None
    from ....models.factory import default_spec

    return default_spec(os.environ)


# The run itself: models, execution, display, final report.


def execute(asked: "Asked", job: Job, spec: str | None, named: dict[str, str]) -> int:
    """Run the job and return the exit code.

    Raises ``NotConfigured``, ``RunError``, ``Misused``, ``AdapterError`` and ``StoreError``.
    """
    import asyncio

    from ....api.clients import on_graph
    from ....events import Events
    from ....results import ScriptError
    from ....runs.event_log import DebugLog, level, logged
    from ...options import in_words_of_options, open_models
    from ..inputs import show, telling
    from ..run_view import Tally, finish, resume_command

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
        # Open the graph first: if it can't be opened, no run folder is left behind.
        with in_words_of_options(), on_graph(asked.ground.wanted(), models, events, telling(warn)) as workshop:
            recorder = _recorder(asked, job, spec or "", named)
            if workshop is not None:
                workshop.run_id = recorder.run_id
            with logged(events, recorder.path):
                run = asyncio.run(_executed(asked, job, models, events, recorder, screen, workshop))
    except ScriptError as error:  # found by the run's own check
        show([Checked(error.diagnostics, error.source)], sys.stderr)
        return Exit.ERRORS
    finally:
        if screen is not None:
            screen.stop()
        if recorder is not None:
            recorder.close()
    return finish(run, job.checked, tally, asked, recorder, resume_command(recorder.run_id, asked, spec or ""))


def _display(tally: "Tally", name: str) -> "Display | None":
    """Return the display: live on a terminal, lines in a pipe, None if the debug log is on."""
    from ....runs.event_log import level
    from ..run_view import Lines, Screen

    if level():
        return None
    if not is_terminal(sys.stderr):
        return Lines(tally)
    return Screen(tally, name)


def _recorder(asked: "Asked", job: Job, spec: str, named: dict[str, str]) -> "Recorder":
    from ....lwt.run_store import start

    if job.stored is not None:
        script = job.script if asked.file is not None else None
        given = job.given if asked.input_file is not None else None
        return job.stored.resume(script, input=given, force=asked.force)
    options = {"models": named, "all_steps": asked.all_steps, "steps": len(job.script.steps)}
    return start(job.script, input=job.given, model=spec, options=options)


async def _executed(
    asked: "Asked",
    job: Job,
    models: "Models",
    events: "Events",
    recorder: "Recorder",
    screen: "Display | None",
    workshop: "Workshop | None",
) -> "Run":
    import asyncio

    from ....api.workspace import close_models
    from ....lwt.runner import run as run_script
    from ..output import cancelling

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


def run(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="An .lwt script, a .gasl program or a JSON plan, or - for stdin. Not needed with --resume.",
            show_default=False,
        ),
    ] = None,
    input_file: InputFile = None,
    graph: GraphSource = None,
    state: StateFolder = None,
    chunks: ChunksFile = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="TEXT",
            show_default=False,
            help="The question; it is stored in the state and shown in its report.",
        ),
    ] = None,
    llm: ModelSpec = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            callback=no_key,
            show_default=False,
            rich_help_panel=LIMITS,
            help="Model that the script may name with model=. Repeatable.",
        ),
    ] = None,
    output_format: Annotated[
        Literal["auto", "table", "json", "plain"],
        typer.Option(
            "--format",
            help="plain: the output's text. json: one document with status, output, steps, usage. "
            "auto: a table where a person looks on and the output is a list.",
        ),
    ] = "auto",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            show_default=False,
            help="Resume a stored run and reuse its answers.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Resume although script or input changed and repeat affected calls; use a state of another graph.",
        ),
    ] = False,
    raw: AsWritten = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print all prompts that are known in advance and the number of calls, without any call."
        ),
    ] = False,
    schedule: Annotated[
        Literal["eager", "layered"],
        typer.Option("--schedule", help="eager: start a step when its inputs are ready. layered: layer by layer."),
    ] = "eager",
    max_concurrency: MaxConcurrency = 16,
    all_steps: Annotated[
        bool, typer.Option("--all-steps", help="Also run steps that the final step does not need.")
    ] = False,
    lenient: Lenient = False,
    strict_types: StrictTypes = False,
    max_steps: MaxSteps = 10_000,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Run a script, a program or a plan.

    The output goes to stdout, progress and messages to stderr. Exit code 4 if only a part failed.

    Example: knotwork run cafes.lwt --input request.json
    """
    from ...options import Ground, Limits
    from ..run_view import Asked

    return perform(
        Asked(
            file, input_file, llm, tuple(model or ()), output_format, resume, force, dry_run, schedule, max_concurrency,
            all_steps, lenient, Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache),
            Ground(graph, state, chunks, query, force, raw), strict_types, max_steps,
        )
    )  # fmt: skip


# The ``run`` command: reads the file and runs it according to its language.


def perform(asked: "Asked") -> int:
    """Run the command and return the exit code."""
    from ...options import named_specs
    from ..inputs import Unreadable, only_one_stdin, read_source, required

    if asked.file is None and asked.resume is None:
        raise Misused("run needs a script", "knotwork run FILE, or knotwork run --resume RUN")
    only_one_stdin([asked.file, asked.input_file])
    if asked.file is None:
        return perform_script(asked, None)
    try:
        source = read_source(asked.file)
    except Unreadable as error:
        return refused(Checked((error.diagnostic,), error.source), asked)
    kind = required(
        source, ("script", "program", "plan"), "this command takes scripts (.lwt), programs (.gasl) and plans"
    )
    if kind == "script":
        return perform_script(asked, source)
    from ..run_program import run_program

    return run_program(source, "plan" if kind == "plan" else "gasl", asked, named_specs(asked.models))
