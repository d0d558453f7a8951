"""Runs ``seed tune``: reports faults before any call, shows the steps, and writes the tuned seed with the result of the test."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....lang.diagnostic import printable
from ...api.figures import Calls, counted
from ...api.files import is_stream, replace_file
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import DebugLog, level
from ...api.seed import RequestError, RunError, SeedError, Tuned
from ...api.tune_run import GoldError, TableError, TuneRun
from ...events import Events
from .answer_view import figures
from .inputs import STDIN, writable
from .output import CallNotes, Exit, Misused, cancelling, complain, say, say_prices, shell_command, write
from .result_file import same_file


def run(seed: str, gold: str, output: str | None, require_better: bool, settings: Mapping[str, Any]) -> int:
    """Tune the seed and return the exit code. ``settings`` are passed to ``TuneRun``.

    Raises ``Misused`` or ``NotConfigured``.
    """
    output = None if output == STDIN else output
    _check_output(output, (seed, gold, settings["contexts"]), settings["force"])
    notes, calls, events = CallNotes(), Calls(), Events()
    for subscriber in (calls, DebugLog(level()) if level() else notes):
        events.subscribe(subscriber)
    subscribe_traces(events)
    try:
        tuning = TuneRun(seed, gold, warn=lambda text: notes.note(f"warning: {text}"), **settings)
        recorder = tuning.store()
    except GoldError as error:
        for fault in error.faults:
            complain(fault)
        if error.hint:
            say(printable(f"  = help: {error.hint}"))
        say("no call was made")
        return Exit.ERRORS
    except SeedError as error:
        say("\n".join(map(printable, str(error).split("\n"))))
        say("no call was made")
        return Exit.ERRORS
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if settings["resume"] is not None else Exit.FAILED
    except RequestError as error:
        places = {"seed": "SEED", "gold": "GOLD"}
        place = places.get(error.parameter) or f"--{error.parameter.replace('_', '-')}"
        raise Misused(f"{place}: {error.message}", error.hint) from None
    except TableError as error:
        raise Misused(error.message, error.hint) from None
    except OSError as error:
        raise Misused(f"{error.filename} can't be read: {error.strerror}") from None
    parts = tuning.split.as_json()
    shown = ", ".join(f"{name} {each['items']:,} in {counted(each['groups'], 'group')}" for name, each in parts.items())
    say(printable(f"{tuning.name}: {', '.join(tuning.settings.columns)}; {shown}"))
    for warning in tuning.warnings[: CallNotes.most]:
        say(printable(f"warning: {warning}"))

    async def tuned() -> Tuned:
        cancel = asyncio.Event()
        with cancelling(cancel, notes.note):
            return await tuning.run(events, cancel, notes.note)

    made = asyncio.run(tuned())
    say(printable(f"saved in {made.path}"))
    return _end(made, calls.cached, seed, gold, output, require_better, settings, recorder.run_id)


def _check_output(output: str | None, inputs: tuple[str, ...], force: bool) -> None:
    """Raise ``Misused`` if the output file must not be written."""
    writable(output, (".json",))
    if output is None:
        return
    if any(same_file(name, output) for name in inputs):
        raise Misused(f"{output} is an input file", "choose another file with --output")
    path = Path(output)
    if path.is_dir():
        raise Misused(f"{output} is a directory", f"name a file in it: --output {path / 'tuned.seed.json'}")
    if not is_stream(path) and (path.exists() or path.is_symlink()) and not force:
        raise Misused(f"{output} already exists", "use --force to overwrite it")
    if not path.parent.is_dir():
        raise Misused(f"{output} can't be written: the directory {path.parent} does not exist")


def _end(
    made: Tuned, cached: int, seed: str, gold: str, output: str | None, require_better: bool, settings: Mapping[str, Any], run_id: str
) -> int:  # fmt: skip
    """Write the seed and the result, and return the exit code."""
    for note in made.notes:
        say(printable(f"note: {note}"))
    if made.reason:
        say(printable(made.reason))
    tokens = made.figures.prompt_tokens, made.figures.completion_tokens
    cost = figures(
        max(0, made.figures.calls - cached), cached, tokens, made.figures.cost, f"{made.figures.seconds:.1f} s",
        estimated=made.figures.estimated,
    )  # fmt: skip
    say(f"{made.status}: {counted(len(made.trials), 'trial')} · {cost}")
    say_prices(made.prices)
    if made.seed is None:
        words = ["knotwork", "seed", "tune", seed, gold, "--contexts", str(settings["contexts"]), "--resume", run_id]
        say("nothing was written")
        say(printable(f"resume with: {shell_command(*words)} (and all other options of the run)"))
        return Exit.INTERRUPTED if made.status == "cancelled" else Exit.FAILED
    code = Exit.DONE
    text = json.dumps(made.seed.document, ensure_ascii=False, indent=2)
    if output is None:
        write(text)
        sys.stdout.flush()
    else:
        try:
            replace_file(Path(output), text + "\n")
        except OSError as error:
            write(text)  # the model calls are already paid for
            sys.stdout.flush()
            complain(f"{output} can't be written: {error.strerror or error}", "the seed is on stdout")
            code = Exit.FAILED
        else:
            say(printable(f"written to {output}"))
    for line in verdict_lines(made):
        say(line)
    if code == Exit.DONE and require_better and made.verdict != "better":
        complain("the tuned seed is not shown to be better, as --require-better demands")
        return Exit.UNMET
    return code


def verdict_lines(made: Tuned) -> list[str]:
    """Return the result of the test in words: both scores with their intervals, the difference, and the verdict."""
    comparison = made.comparison
    if comparison is None or made.original is None or made.tuned is None:
        return ["test: not made, because no variant was better on the dev items", f"verdict: {made.verdict}"]
    lines = [f"test: {counted(comparison.items, 'item')} in {counted(comparison.groups, 'group')}, {made.metric}"]
    for name, score in (("original", made.original), ("tuned", made.tuned)):
        value = "-" if score.value is None else f"{score.value:.3f}"
        between = "" if score.low is None or score.high is None else f" (95 %: {score.low:.3f} to {score.high:.3f})"
        lines.append(f"  {name:<9}{value}{between}{f'; {score.note}' if score.note else ''}")
    if comparison.difference is not None:
        between = (
            ""
            if comparison.low is None or comparison.high is None
            else f" ({comparison.low:+.3f} to {comparison.high:+.3f})"
        )
        p = "" if comparison.p is None else f", p = {comparison.p:.3g}"
        lines.append(f"  difference {comparison.difference:+.3f}{between}{p}")
    lines.append(f"verdict: {made.verdict}")
    if made.verdict == "no difference shown":
        least = comparison.detectable
        shown = (
            "these items can't show any difference"
            if least is None
            else f"these items would show a difference of about {least:.3f}"
        )
        lines.append(f"  {shown} or more" if least is not None else f"  {shown}")
    return lines
