"""Runs a prompt script: reads and checks the script, runs it with a display, and writes its output and a summary."""

import asyncio
import builtins
import io
import os
import sys
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO

from attrs import evolve, field, frozen

from ....lang.diagnostic import all_as_json, printable
from ....lang.source import Source
from ...api import functions, lwt, runs, states
from ...api.checks import MAX_STEPS, MISSING, Checked, CheckedScript, check_script
from ...api.clients import default_spec, on_graph
from ...api.figures import clock, counted, dollars
from ...api.lwt import UNKNOWN, UNKNOWN_END
from ...api.plans import FINAL_RULES
from ...api.process_traces import subscribe as subscribe_traces
from ...api.seed_workers import WorkerOptions
from ...api.workspace import WorkspaceOptions
from ...events import Events
from ...results import NOT_ASKED, Run, ScriptError, StepResult, coercions, prices_json, run_json, tokens_text
from ..options import Limits, in_words_of_options, named_specs, open_models, price_of
from .answer_stream import AnswerStream
from .display import RunFigures, RunScreen, StepLines
from .inputs import Unreadable, functions_in, opening_callbacks, raising, read_input, show, warn
from .output import (
    Display,
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
    say_prices,
    shell_command,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...api.clients import Price
    from ...api.lwt import CostBounds, DryRun, Host, PlannedStep
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
    workspace: WorkspaceOptions
    strict_types: bool = False
    max_steps: int = MAX_STEPS
    parameters: tuple[str, ...] = ()
    workers: WorkerOptions = field(factory=WorkerOptions)
    functions: str | None = None
    stream: bool = False

    def resume_command(self, run_id: str, model: str) -> str:
        """Return the shell command that resumes the run. A script or input from stdin is omitted, because the run stores a copy."""
        words = ["knotwork", "run", *([self.file] if self.file not in (None, "-") else []), "--resume", run_id]
        values = (
            ("--input", None if self.input_file == "-" else self.input_file), ("--llm", self.llm and model),
            ("--graph", self.workspace.graph), ("--state", self.workspace.state), ("--chunks", self.workspace.chunks),
            *(("--model", named) for named in self.models),
            ("--functions", self.functions), ("--max-steps", None if self.max_steps == MAX_STEPS else str(self.max_steps)),
        )  # fmt: skip
        words += [word for option, value in values if value is not None for word in (option, value)]
        flags = (("--lenient", self.lenient), ("--all-steps", self.all_steps), ("--strict-types", self.strict_types))
        words += [flag for flag, on in flags if on]
        return shell_command(*words)


def run_script(options: RunOptions, source: Source | None) -> int:
    """Run the script ``source``, or resume the recorded run that is given in ``options``; return the exit code."""
    if options.parameters:
        raise Misused("--param applies only to programs and plans", "pass the input of a script with --input FILE")
    if options.workers.workers is not None:
        raise Misused(
            "--workers applies only to programs, plans and --each", "raise --max-concurrency for the calls of a script"
        )
    if options.stream and options.form in ("json", "table"):
        raise Misused(f"--stream writes the text of the answer, so it can't be combined with --format {options.form}")
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
        host = functions.host(functions_in(options.functions))
        checked = check_script(
            source,
            mode,
            max_steps=options.max_steps,
            input=value,
            models=sorted(named),
            host=host,
        )
        if checked.failed:
            return refuse(checked, options)
        checked = checked.with_all_steps if options.all_steps else checked
        value = None if value is MISSING else value
        if options.dry_run:
            return _dry_run(checked, value, options, named)
        if value is None and checked.reads_input:
            raise Misused(f"{source.name} refers to {{(input)}}, but the run has no input", "add --input FILE")
        options = _with_graph(options, checked)
        spec = options.llm or (default_spec() if checked.needs_default_model else None)
        return _run(options, checked, value, stored, spec, named, host)
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
    workspace, name = options.workspace, checked.source.name
    if not checked.has_gasl_steps:
        ignored = [f"--{each}" for each in ("graph", "state", "chunks") if getattr(workspace, each) is not None]
        ignored += ["--raw"] if workspace.raw else []
        if ignored:
            verb = "is" if len(ignored) == 1 else "are"
            warn(f"{name} has no GASL step: {' and '.join(ignored)} {verb} ignored")
        return evolve(options, workspace=WorkspaceOptions(query=workspace.query))
    folder = None if workspace.state is None else str(workspace.state)
    graph = workspace.graph or states.graph_of(folder, warn)
    if graph is None:
        raise Misused(f"{name} has GASL steps, which need a graph", "add --graph FILE")
    if folder is not None and os.path.isfile(folder):
        raise Misused(f"{folder} is a file; --state needs a directory")
    return evolve(options, workspace=evolve(workspace, graph=graph))


def _run(
    options: RunOptions, checked: CheckedScript, value: Any, stored: "Stored | None", spec: str | None, named: dict[str, str],
    host: "Host",
) -> int:  # fmt: skip
    """Run a checked script and return the exit code.

    Raises ``NotConfigured``, ``RunError``, ``Misused``, ``AdapterError`` or ``StoreError``.
    """
    events, figures = Events(), RunFigures()
    events.subscribe(figures)
    final = checked.plan.final
    written = AnswerStream(final)
    if options.stream and lwt.is_streamed(checked.script, final):
        events.subscribe(written)
        events.stream_answers([final])
    elif options.stream:
        say(f"({final}) is written at its end: only a plain text of one LLM call can be written while it arrives")
    # A live display would overwrite an answer that is arriving on the same terminal.
    is_live = is_terminal(sys.stderr) and not options.stream
    shown = RunScreen(figures, checked.source.name) if is_live else StepLines(figures)
    display = Display() if runs.subscribe_debug_log(events) else shown
    events.subscribe(display)
    subscribe_traces(events)

    def warn(text: str) -> None:
        display.note(f"warning: {text}")

    recorder: RunRecorder | None = None
    models = open_models(spec, named, options.limits, options.max_concurrency, warn)
    show([checked.without_remarks], sys.stderr)

    async def run(recorder: "RunRecorder", workshop: Any) -> Run:
        cancel = asyncio.Event()
        with cancelling(cancel, display.note, display.stop):
            return await lwt.run_checked(
                checked, value, models, record=recorder, workshop=workshop, schedule=options.schedule, cancel=cancel,
                max_concurrency=options.max_concurrency, all_steps=options.all_steps, events=events,
                strict_types=options.strict_types, host=host,
            )  # fmt: skip

    try:
        # Open the graph first, so that no run folder is created if the graph can't be opened.
        with (
            in_words_of_options(),
            on_graph(options.workspace, models, events, opening_callbacks(warn)) as workshop,
        ):
            recorder = _recorder(options, checked, value, stored, spec or "", named)
            if workshop is not None:
                workshop.run_id = recorder.run_id
            with runs.logged(events, recorder.path):
                finished = asyncio.run(run(recorder, workshop))
    except ScriptError as error:  # an error that is only found when the run starts
        show([Checked(error.diagnostics, error.source)], sys.stderr)
        return Exit.ERRORS
    finally:
        display.stop()
        if recorder is not None:
            recorder.close()
    if options.form == "json":
        print(json_text(run_json(finished, figures.cached, checked.source, checked.diagnostics)))
    elif finished.output is not None and written.text != finished.output:
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
        value = value if options.input_file is not None else None
        return stored.resume(script, input=value, force=options.force, hashes=checked.file_hashes)
    recorded = {"models": named, "all_steps": options.all_steps, "steps": len(checked.script.steps)}
    return runs.start(checked.script, input=value, model=spec, options=recorded, hashes=checked.file_hashes)


# The end of a run: writes the output to stdout, and the summary to stderr.

_CODES = {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}
_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_LISTED = 20
"""Maximum number of steps that are listed; the recorded run contains all."""


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
    # Steps that the final step does not need were already reported by the check.
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
            status = paint("not asked", "yellow", on) if failed.is_unasked else paint("failed", "red", on)
            name = f" ({printable(failed.name)})" if failed.name else ""
            say(f"{status} ({step}) item {failed.item}{name}: {printable(failed.message.removeprefix(NOT_ASKED))}")
    if len(items) > _LISTED:
        say(f"and {len(items) - _LISTED} more items")
    if unasked := sum(failed.is_unasked for _, failed in items):
        say(f"{counted(unasked, 'item')} {'was' if unasked == 1 else 'were'} not asked")
    if converted := coercions(run):
        is_typed = any(each.reference != "type=text" for each in run.coerced)
        for line in (*converted, *(["use --strict-types to refuse such answers"] if is_typed else [])):
            say(line)
    if figures.reached:
        say(f"the budget was reached: {raising(figures.reached)}")
    if run.rule != "final" and run.output is not None:
        say(f"the output comes from ({run.final}): {FINAL_RULES[run.rule]}")
    say(f"{paint(run.status, _STYLES[run.status], on)}: {_figures(run, planned, figures)}")
    say_prices(run.prices)
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
        parts.append(tokens_text(run.usage))
    if run.cost:
        parts.append(dollars(run.cost))
    parts.append(f"{run.seconds:.2f} s (critical path {run.critical_path_seconds:.2f} s)")
    return " · ".join(parts)


# A dry run shows each step with its prompts. References to answers are shown between « and ».


def _dry_run(checked: CheckedScript, value: Any, options: RunOptions, named: dict[str, str]) -> int:
    """Write the prompts to stdout, layer by layer, and the bounds of the cost; return the exit code."""
    show([checked.without_remarks], sys.stderr)
    found = lwt.dry_run(checked.script, input=value, all_steps=options.all_steps, nested=checked.plan.nested)
    spec = options.llm or default_spec(needed=False)
    bounds, prices = lwt.price_dry_run(found, spec, named, price_of(options.limits.price))
    rate = options.limits.rate
    if options.form == "json":
        known = {"model": spec, "rate": rate, "seconds_at_rate": None if rate is None else found.least * 60 / rate}
        print(json_text(found.as_json() | known | bounds.as_json() | prices_json(prices)))
        return Exit.DONE
    print_dry_run(found)
    if spec and found.most:
        for line in _cost_lines(bounds, prices, spec):
            print(printable(line))
    if rate is not None and found.most:
        print(f"at --rate {rate:g}: {clock(found.least * 60 / rate)} or more")
    more = "".join(f" + {_per(step)} for each {step.each}" for step in found.open_ends)
    calls = f"{found.most:,} call{'' if found.most == 1 and not more else 's'}"
    print(f"{calls if found.least == found.most else f'{found.least:,} to {calls}'}{more}; no model was called")
    return Exit.DONE if found.layers else Exit.ERRORS


def _cost_lines(bounds: "CostBounds", prices: "Mapping[str, Price]", spec: str) -> list[str]:
    """Return the lines about the models and their prices, and about the bounds of tokens and cost."""
    known = prices.get(spec)
    if known is None:
        head = "its price is unknown (--price IN/OUT gives it)"
    else:
        head = f"no cost ({known.source})" if known.is_free else known.line()
    lines = [f"model {spec}; {head}", *(price.line(model) for model, price in prices.items() if model != spec)]
    if known is not None and known.is_free and len(lines) == 1:
        return lines
    (asked, most_asked), (_, most_answered) = bounds.prompt, bounds.completion
    tokens = f"{asked:,} prompt tokens or more"
    if most_asked is not None:
        tokens = f"{asked:,} to {most_asked:,} prompt tokens, at most {most_answered:,} completion tokens"
    cost = ""
    if bounds.cost is not None:
        low, high = bounds.cost
        cost = (
            f", {dollars(low)} or more"
            if high is None
            else f", {dollars(low)} to {dollars(high)}"
            if high
            else ", no cost"
        )
    return [*lines, f"about {tokens}{cost} (answers of at most {bounds.answer:,} tokens)"]


def _per(step: "PlannedStep") -> str:
    return "one" if step.per == 1 else f"{step.per:,}"


def print_dry_run(found: "DryRun", indent: str = "") -> None:
    """Write the steps of a dry run to stdout, layer by layer, with their prompts. The steps of a script that a step runs are indented."""
    for number, layer in enumerate(found.layers, 1):
        print(indent + paint(f"layer {number} of {len(found.layers)}", "bold", colour(sys.stdout)))
        for step in layer:
            with io.StringIO() as lines:
                _print_step(step, lines)
                print(textwrap.indent(lines.getvalue(), indent), end="")
            if step.inner is not None:
                print_dry_run(step.inner, f"{indent}    ")


def _print_step(planned: "PlannedStep", file: TextIO) -> None:
    on, print = colour(sys.stdout), partial(builtins.print, file=file)
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
        for name in ("system", "examples", "messages", "prompt", "format", "criteria"):
            if texts.get(name):
                print("\n".join(f"    | {line}" for line in _with_marks(texts[name], on).split("\n")))
    if planned.most is None:
        often = "once" if planned.per == 1 else f"{planned.per:,} times"
        print(paint(f"    {often} for each {planned.each}, which is not known yet", "dim", on))
    elif planned.least is not None and planned.least < planned.most:
        until = ", until an answer is good enough" if planned.is_loop else ""
        print(paint(f"    {planned.least:,} to {planned.most:,} calls{until}", "dim", on))
    elif planned.times != 1 and planned.most and len(planned.calls) < planned.times:
        print(paint(f"    {planned.times:,} times", "dim", on))


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text):,} characters)"


def _with_marks(text: str, on: bool) -> str:
    """Return a prompt. Its unknown parts are shown between « and », in colour if ``on`` is true."""
    parts = text.replace(UNKNOWN_END, UNKNOWN).split(UNKNOWN)
    clean = [printable_text(part) if sys.stdout.isatty() else part for part in parts]
    return "".join(paint(f"«{part}»", "yellow", on) if number % 2 else part for number, part in enumerate(clean))
