"""Runs a prompt script: reads and checks the script, runs it with a display, and writes its output and a summary."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, field, frozen

from ....lang.diagnostic import all_as_json, printable
from ....lang.source import Source
from ...api import lwt, runs, states
from ...api.checks import FINAL_RULES, MAX_STEPS, MISSING, Checked, CheckedScript, check_script
from ...api.clients import default_spec, on_graph
from ...api.figures import counted, dollars
from ...api.lwt import UNKNOWN, UNKNOWN_END
from ...events import Events
from ...results import Run, ScriptError, StepResult, coercions, run_json
from ..options import GraphOptions, Limits, in_words_of_options, named_specs, open_models
from .display import Display, RunFigures, RunScreen, StepLines
from .inputs import Unreadable, raising, read_input, show, telling, warn
from .output import (
    Exit,
    Misused,
    cancelling,
    colour,
    complain,
    drawn,
    is_terminal,
    json_text,
    paint,
    printable_text,
    say,
    shell_command,
    write,
)

if TYPE_CHECKING:
    from ...api.lwt import PlannedStep
    from ...api.runs import RunRecorder, Stored

OutputFormat = Literal["auto", "table", "json", "plain"]


@frozen
class RunOptions:
    """The options of ``knotwork run``."""

    file: str | None
    input_file: str | None
    llm: str | None
    models: tuple[str, ...]
    form: OutputFormat
    resume: str | None
    force: bool
    dry_run: bool
    schedule: Literal["eager", "layered"]
    max_concurrency: int
    all_steps: bool
    lenient: bool
    limits: Limits
    graph_options: GraphOptions = field(factory=GraphOptions)
    strict_types: bool = False
    max_steps: int = MAX_STEPS

    def resume_command(self, run_id: str, model: str) -> str:
        """Return the shell command that resumes the run. It omits a script or input read from stdin: the stored run has a copy."""
        words = ["knotwork", "run", *([self.file] if self.file not in (None, "-") else []), "--resume", run_id]
        values = (
            ("--input", None if self.input_file == "-" else self.input_file), ("--llm", self.llm and model),
            ("--graph", self.graph_options.graph), ("--state", self.graph_options.state), ("--chunks", self.graph_options.chunks),
            *(("--model", named) for named in self.models),
            ("--max-steps", None if self.max_steps == MAX_STEPS else str(self.max_steps)),
        )  # fmt: skip
        words += [word for option, value in values if value is not None for word in (option, value)]
        flags = (("--lenient", self.lenient), ("--all-steps", self.all_steps), ("--strict-types", self.strict_types))
        words += [flag for flag, on in flags if on]
        return shell_command(*words)


def run_script(options: RunOptions, source: Source | None) -> int:
    """Run the script ``source``, or resume the recorded run that ``options`` name; return the exit code."""
    named = named_specs(options.models)
    try:
        stored = runs.load(options.resume) if options.resume is not None else None
        if stored is not None:
            options, named = _resumed(options, named, stored)
        value: Any = MISSING
        try:
            if options.input_file is not None:
                value = read_input(options.input_file)
            elif stored is not None and stored.input is not None:
                value = stored.input
        except Unreadable as error:
            return refuse(Checked((error.diagnostic,), error.source), options)
        if source is None:
            assert stored is not None  # noqa: S101 - the command requires a file or a run
            source = Source(stored.script, str(stored.head["name"]))
        mode: Literal["lenient", "strict"] = "lenient" if options.lenient else "strict"
        checked = check_script(source, mode, max_steps=options.max_steps, input=value, models=sorted(named))
        if checked.failed:
            return refuse(checked, options)
        value = None if value is MISSING else value
        if options.dry_run:
            return _dry_run(checked, value, options)
        if value is None and checked.reads_input:
            raise Misused(f"{source.name} refers to {{(input)}}, but the run has no input", "add --input FILE")
        options = _with_graph(options, checked)
        spec = options.llm or (default_spec() if checked.needs_default_model else None)
        return _run(options, checked, value, stored, spec, named)
    except runs.RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if options.resume is not None else Exit.FAILED


def _resumed(options: RunOptions, named: dict[str, str], stored: "Stored") -> tuple[RunOptions, dict[str, str]]:
    """Return the options and the named models, with missing values taken from the recorded run."""
    recorded = stored.head.get("options", {})
    options = evolve(
        options,
        lenient=options.lenient or (options.file is None and stored.head.get("mode") == "lenient"),
        all_steps=options.all_steps or bool(recorded.get("all_steps")),
        llm=options.llm or stored.head.get("model") or None,
    )
    return options, {**recorded.get("models", {}), **named}


def refuse(checked: Checked, options: RunOptions) -> int:
    """Report why nothing was run; return the exit code."""
    show([checked.without_remarks], sys.stderr)
    if options.form == "json":
        figures = ("calls", "cached", "prompt_tokens", "completion_tokens")
        usage = {**dict.fromkeys(figures, 0), "cost": None, "seconds": 0.0, "critical_path_seconds": 0.0}
        document = {
            "status": "refused", "output": None, "value": None, "final": None, "steps": {}, "usage": usage,
            "coerced": [], "diagnostics": all_as_json(checked.diagnostics, checked.source), "warnings": [], "run": "",
        }  # fmt: skip
        print(json_text(document))
    say("nothing was run")
    if isinstance(checked, CheckedScript) and not options.lenient and checked.diagnostics[0].code.startswith("LWT00"):
        say("if a model wrote this script, try --lenient")
    return Exit.ERRORS


def _with_graph(options: RunOptions, checked: CheckedScript) -> RunOptions:
    """Return the options with the graph for the script's GASL steps: the given graph, or the graph that the state records."""
    graph_options, name = options.graph_options, checked.source.name
    if not checked.has_gasl_steps:
        if graph_options.graph is not None or graph_options.state is not None:
            warn(f"{name} has no GASL step: no graph and no state are opened")
        return evolve(options, graph_options=GraphOptions(query=graph_options.query))
    graph = graph_options.graph or states.graph_of(graph_options.state, warn)
    if graph is None:
        raise Misused(f"{name} has GASL steps, which need a graph", "add --graph FILE")
    if graph_options.state is not None and os.path.isfile(graph_options.state):
        raise Misused(f"{graph_options.state} is a file; --state needs a directory")
    return evolve(options, graph_options=evolve(graph_options, graph=graph))


def _run(
    options: RunOptions, checked: CheckedScript, value: Any, stored: "Stored | None", spec: str | None, named: dict[str, str]
) -> int:  # fmt: skip
    """Run a checked script and return the exit code.

    Raises ``NotConfigured``, ``RunError``, ``Misused``, ``AdapterError`` and ``StoreError``.
    """
    events, figures = Events(), RunFigures()
    events.subscribe(figures)
    screen: Display | None = None
    if not runs.subscribe_debug_log(events):
        screen = RunScreen(figures, checked.source.name) if is_terminal(sys.stderr) else StepLines(figures)
        events.subscribe(screen)
    note, stop = (say, None) if screen is None else (screen.note, screen.stop)

    def warn(text: str) -> None:
        note(f"warning: {text}")

    recorder: RunRecorder | None = None
    models = open_models(spec, named, options.limits, options.max_concurrency, warn)
    show([checked.without_remarks], sys.stderr)

    async def run(recorder: "RunRecorder", workshop: Any) -> Run:
        cancel = asyncio.Event()
        with cancelling(cancel, note, stop):
            return await lwt.run_checked(
                checked, value, models, record=recorder, workshop=workshop, schedule=options.schedule, cancel=cancel,
                max_concurrency=options.max_concurrency, all_steps=options.all_steps, events=events,
                strict_types=options.strict_types,
            )  # fmt: skip

    try:
        # Open the graph first, so that no run folder is created if the graph can't be opened.
        with (
            in_words_of_options(),
            on_graph(options.graph_options.workspace_options(), models, events, telling(warn)) as workshop,
        ):
            recorder = _recorder(options, checked, value, stored, spec or "", named)
            if workshop is not None:
                workshop.run_id = recorder.run_id
            with runs.logged(events, recorder.path):
                finished = asyncio.run(run(recorder, workshop))
    except ScriptError as error:  # an error that only the check of the run finds
        show([Checked(error.diagnostics, error.source)], sys.stderr)
        return Exit.ERRORS
    finally:
        if screen is not None:
            screen.stop()
        if recorder is not None:
            recorder.close()
    if options.form == "json":
        print(json_text(run_json(finished, figures.cached, checked.source, checked.diagnostics)))
    elif finished.output is not None:
        _write_output(finished, options.form)
    sys.stdout.flush()
    if finished.output is not None and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _summarize(finished, figures, recorder, options.resume_command(recorder.run_id, spec or ""))
    return _CODES[finished.status]


def _recorder(
    options: RunOptions, checked: CheckedScript, value: Any, stored: "Stored | None", spec: str, named: dict[str, str]
) -> "RunRecorder":  # fmt: skip
    if stored is not None:
        script = checked.script if options.file is not None else None
        return stored.resume(script, input=value if options.input_file is not None else None, force=options.force)
    recorded = {"models": named, "all_steps": options.all_steps, "steps": len(checked.script.steps)}
    return runs.start(checked.script, input=value, model=spec, options=recorded)


# The end of a run: writes the output to stdout, and the summary to stderr.

_CODES = {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}
_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_LISTED = 20
"""Maximum number of steps that are listed; the recorded run has all."""


def _write_output(run: Run, form: OutputFormat) -> None:
    if form == "table" or (form == "auto" and is_terminal(sys.stdout)):
        table = drawn(run.value, any_value=form == "table" or isinstance(run.value, list))
        if table is not None:
            print(table, end="")
            return
        if form == "table":
            say("the output is not tabular; printed as text")
    write(run.output or "")


def _summarize(run: Run, figures: RunFigures, recorder: "RunRecorder", resume: str) -> None:
    """Report failures, the figures, and the folder of the recorded run."""
    on = colour(sys.stderr)
    # The check has reported the steps that the final step does not need.
    unneeded = f"({run.final}) does not need it"
    planned = [result for result in run.steps.values() if result.reason != unneeded]
    for status, style in (("failed", "red"), ("skipped", "yellow")):
        found = [result for result in planned if result.status == status]
        for result in found[:_LISTED]:
            say(f"{paint(status, style, on)} ({result.id}): {printable(result.reason)}")
        if len(found) > _LISTED:
            say(f"{paint(status, style, on)} and {len(found) - _LISTED} more")
    items = [(step, failed) for step, result in run.steps.items() for failed in result.failed_items]
    for step, failed in items[:_LISTED]:
        if failed.item is None:  # the output of the step is incomplete
            say(f"{paint('partial', 'yellow', on)} ({step}): {printable(failed.message)}")
        else:
            say(f"{paint('failed', 'red', on)} ({step}) item {failed.item}: {printable(failed.message)}")
    if len(items) > _LISTED:
        say(f"{paint('failed', 'red', on)} and {len(items) - _LISTED} more items")
    if converted := coercions(run):
        for line in (*converted, "refuse such answers with --strict-types"):
            say(line)
    if figures.reached:
        say(f"the budget was reached: {raising(figures.reached)}")
    if run.rule != "final" and run.output is not None:
        say(f"the output is that of ({run.final}): {FINAL_RULES[run.rule]}")
    say(f"{paint(run.status, _STYLES[run.status], on)}: {_figures(run, planned, figures)}")
    if recorder.damage:
        say(f"not saved: {printable(recorder.damage)}")
        return
    say(f"saved in {printable(str(recorder.path))}")
    if run.status != "complete":
        say(f"resume with: {resume}")


def _figures(run: Run, planned: list[StepResult], figures: RunFigures) -> str:
    done = sum(result.status == "done" for result in planned)
    parts = [f"{done:,} of {counted(len(planned), 'step')}{' done' if done < len(planned) else ''}"]
    if figures.reused:
        parts.append(f"{figures.reused:,} reused")
    parts.append(counted(run.calls, "call") + (f" ({figures.cached:,} cached)" if figures.cached else ""))
    if run.usage.total:
        parts.append(f"{run.usage.prompt_tokens:,} + {run.usage.completion_tokens:,} tokens")
    if run.cost:
        parts.append(dollars(run.cost))
    parts.append(f"{run.seconds:.2f} s (critical path {run.critical_path_seconds:.2f} s)")
    return " · ".join(parts)


# A dry run shows each step with its prompts. References to answers are shown between « and ».


def _dry_run(checked: CheckedScript, value: Any, options: RunOptions) -> int:
    """Write the prompts to stdout, layer by layer; return the exit code."""
    show([checked.without_remarks], sys.stderr)
    found = lwt.dry_run(checked.script, input=value, all_steps=options.all_steps)
    if options.form == "json":
        print(json_text(found.as_json()))
        return Exit.DONE
    for number, layer in enumerate(found.layers, 1):
        print(paint(f"layer {number} of {len(found.layers)}", "bold", colour(sys.stdout)))
        for step in layer:
            _print_step(step)
    more = "".join(f" + one for each {step.each}" for step in found.open_ends)
    calls = f"{found.most:,} call{'' if found.most == 1 and not more else 's'}"
    print(f"{calls if found.least == found.most else f'{found.least:,} to {calls}'}{more}; nothing was called")
    return Exit.DONE if found.layers else Exit.ERRORS


def _print_step(planned: "PlannedStep") -> None:
    on = colour(sys.stdout)
    options = ", ".join(planned.settings)
    print(
        f"  {paint(f'({planned.step.id}) {planned.step.call.operation}', 'cyan', on)}{'  ' + options if options else ''}"
    )
    if planned.source:
        print(f"    {_short(planned.source)}")
    if planned.result:
        print(paint(f"    {_short(printable_text(planned.result))}", "dim", on))
    if planned.fault:
        print(f"    {paint('would fail', 'red', on)}: {printable_text(planned.fault)}")
    for each in planned.calls:
        if each.item is not None:
            print(paint(f"    item {each.item}", "dim", on))
        if each.fault:
            print(f"    {paint('would fail', 'red', on)}: {printable_text(each.fault)}")
        texts = {**{name: f"{name}: {text}" for name, text in each.options.items() if text}, "prompt": each.prompt}
        for name in ("system", "prompt", "format", "criteria"):
            if texts.get(name):
                print("\n".join(f"    | {line}" for line in _with_marks(texts[name], on).split("\n")))
    if planned.most is None:
        print(paint(f"    once for each {planned.each}, which is not known yet", "dim", on))
    elif planned.least is not None and planned.least < planned.most:
        print(paint(f"    {planned.least:,} to {planned.most:,} calls, until an answer is good enough", "dim", on))


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text):,} characters)"


def _with_marks(text: str, on: bool) -> str:
    """Return a prompt. Its unknown parts are shown between « and », in colour if ``on`` is true."""
    parts = text.replace(UNKNOWN_END, UNKNOWN).split(UNKNOWN)
    clean = [printable_text(part) if sys.stdout.isatty() else part for part in parts]
    return "".join(paint(f"«{part}»", "yellow", on) if number % 2 else part for number, part in enumerate(clean))
