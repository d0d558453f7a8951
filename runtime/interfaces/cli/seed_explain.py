"""Runs the ``seed`` commands that call no model: ``explain``, ``sensitivity``, ``compute``, ``schema`` and ``convert``."""

import contextlib
import itertools
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ....lang.diagnostic import nearest, printable
from ...api.checks import Checked
from ...api.figures import counted
from ...api.files import replace_file
from ...api.seed import (
    Flip,
    ResultComputer,
    ResultFiles,
    SeedTree,
    Sensitivity,
    TableError,
    convert,
    explain,
    short_json,
)
from .extractions import Extracted, Results, choose_result, open_seed, report_errors
from .inputs import STDIN, Unreadable, only_one_stdin, show, writable
from .output import Exit, Misused, colour, complain, json_text, paint, say, write
from .result_file import OutFile, OutFormat, Sink, Unwritten, form_of, open_sink, same_file, write_whole
from .seed_view import Tally

_EXCERPT = 80
_MOST_CHANGES = 25
"""Maximum number of changes shown for each context; JSON output contains all."""


def explain_value(
    seed_name: str, results: str, name: str, wanted: str | None, contexts: str | None, form: Literal["text", "json"]
) -> int:
    """Write how the value of ``name`` was computed from the reviews."""
    seed = _open_seed(seed_name, results, contexts, "explain SEED RESULTS NAME")
    if isinstance(seed, Checked):
        return report_errors(seed, "nothing was read")
    _check_name(seed, name, seed.step_by_name)
    try:
        found, more = choose_result(Results.of(seed, results, contexts), wanted)
    except Unreadable as error:
        return report_errors(Checked((error.diagnostic,), error.source), "nothing was read")
    explanation = explain(seed, found.result, found.context, name)
    _warn_of_changes(seed, found)
    if form == "json":
        print(json_text({"context": found.name, "index": found.index, **explanation.as_json()}))
        return Exit.DONE
    _write_heading(found)
    print(explanation.as_text(found.rows))
    sys.stdout.flush()
    if more:
        say("the file has more contexts; choose one with --context NAME or --context N")
    return Exit.DONE


def show_sensitivity(
    seed_name: str,
    results: str,
    names: Sequence[str],
    wanted: str | None,
    contexts: str | None,
    form: Literal["text", "json"],
) -> int:
    """Write the effects of single extractions on the outputs, for one context or for all contexts."""
    seed = _open_seed(seed_name, results, contexts, "sensitivity SEED RESULTS [NAME]")
    if isinstance(seed, Checked):
        return report_errors(seed, "nothing was read")
    for name in names:
        _check_name(seed, name, seed.value_by_name)
    try:
        read = Results.of(seed, results, contexts)
        some = [choose_result(read, wanted)[0]] if wanted is not None else read
        count = _write_all(seed, some, tuple(names), form)
    except Unreadable as error:
        return report_errors(Checked((error.diagnostic,), error.source), "nothing was read")
    for fault in read.items.faults:
        say(printable(f"{read.items.display_name}, line {fault.line}: {fault.fault}"))
    if not count:
        complain(f"{read.items.display_name} has no results")
        return Exit.FAILED if read.items.faults else Exit.USAGE
    return Exit.PARTIAL if read.items.faults else Exit.DONE


def _write_all(seed: SeedTree, some: Iterable[Extracted], names: tuple[str, ...], form: Literal["text", "json"]) -> int:
    """Write the changes for each context as soon as the context is read; return the number of contexts."""
    computer, count = ResultComputer.of(seed), 0
    for count, found in enumerate(some, 1):
        made = computer.sensitivity(found.result.extractions, found.context, names or None, found.result.reduced)
        if form == "json":
            print("[" if count == 1 else ",", json_text(_json(found, made)), sep="\n")
            continue
        if count > 1:
            print()
        _write_heading(found)
        _write_text(found, made)
    if form == "json" and count:
        print("]")
    return count


def _open_seed(seed_name: str, results: str, contexts: str | None, order: str) -> SeedTree | Checked:
    only_one_stdin([seed_name, results, contexts])
    return open_seed(seed_name, f"knotwork seed {order}")


def _check_name(seed: SeedTree, name: str, known: Mapping[str, Any]) -> None:
    """Raise ``Misused`` if ``name`` is not in ``known``, which maps names to the seed's steps or values."""
    if name in known:
        return
    near = nearest(name, known)
    if name in seed.field_by_name:
        reason = f"{name} is a field of each review, not a step of {seed.source.name}"
    elif name in seed.step_by_name:
        reason = f"{name} is a filter and has no value"
    else:
        reason = f"{seed.source.name} does not compute {name}"
    outputs = ", ".join(seed.outputs[:10])
    raise Misused(reason, f"did you mean {near}?" if near else f"the outputs are {outputs}" if outputs else "")


def _warn_of_changes(seed: SeedTree, found: Extracted) -> None:
    """Warn if the values that the seed's formulas compute differ from the values in the results."""
    outputs = found.result.outputs
    computed = ResultComputer.of(seed).result(found.context, found.result.extractions, reduced=found.result.reduced)
    values = computed.values if outputs else {}
    others = [name for name in seed.outputs if name in outputs and name in values and outputs[name] != values[name]]
    if others:
        name = others[0]
        say(
            printable(
                f"warning: {name} was {short_json(outputs[name])} in the results; this seed computes {short_json(values[name])}"
            )
        )


def _write_heading(found: Extracted) -> None:
    print(paint(printable(found.name), "bold", colour(sys.stdout)), counted(len(found.rows), "extraction"), sep=": ")


def _write_text(found: Extracted, made: Sensitivity) -> None:
    if not made.outputs:
        print("no output is text or boolean; give the names of the outputs to analyse")
        return
    single = (
        "no single extraction changes"
        if not made.flips
        else f"{counted(len(made.flips), 'single change')} would change"
    )
    print(printable(f"{single} {', '.join(made.outputs)} ({made.tried:,} tried)"))
    for flip in made.flips[:_MOST_CHANGES]:
        print(printable(f"  {_change(found, flip)}"))
        for output in flip.outputs:
            before, after = (
                f"no value ({error})" if error else short_json(value)
                for value, error in ((output.before, output.error_before), (output.after, output.error_after))
            )
            print(printable(f"    {output.name}: {before} → {after}"))
    if len(made.flips) > _MOST_CHANGES:
        print(f"  and {len(made.flips) - _MOST_CHANGES:,} more; --format json shows all")
    if made.tried < made.possible:
        print(f"  {made.possible - made.tried:,} more changes were not tried")


def _change(found: Extracted, flip: Flip) -> str:
    row = found.rows[flip.index]
    review = f"review {row['review']}" if "review" in row else f"extraction {flip.index}"
    like = f" (and {len(flip.same):,} like it)" if flip.same else ""
    what = "removed" if not flip.field else f"{flip.field} {short_json(flip.before)} → {short_json(flip.after)}"
    excerpt = str(row.get("excerpt") or "")
    return f"{review}{like} {what}{f': {short_json(excerpt, _EXCERPT)}' if excerpt else ''}"


def _json(found: Extracted, made: Sensitivity) -> dict[str, Any]:
    return {
        "context": found.name,
        "index": found.index,
        "outputs": list(made.outputs),
        "tried": made.tried,
        "possible": made.possible,
        "changes": [
            {
                "review": found.rows[flip.index].get("review", flip.index),
                "same": [found.rows[index].get("review", index) for index in flip.same],
                "field": flip.field or None,
                "before": flip.before,
                "after": flip.after,
                "outputs": [
                    {
                        "name": output.name,
                        "before": output.before,
                        "after": output.after,
                        "error_before": output.error_before,
                        "error_after": output.error_after,
                    }
                    for output in flip.outputs
                ],
            }
            for flip in made.flips
        ],
    }


# ``seed compute`` recomputes results from extractions. No model is called.


def compute_again(
    seed_name: str,
    results: str,
    contexts: str | None,
    out: str | None,
    form: OutFormat,
    force: bool,
    brief: bool,
    allow_invalid: float | None = None,
) -> int:
    """Recompute and write the result of each context in ``results``; return the exit code."""
    only_one_stdin([seed_name, results, contexts])
    form_of(form, out)
    seed = open_seed(seed_name, "knotwork seed compute SEED RESULTS")
    if isinstance(seed, Checked):
        return report_errors(seed, "nothing was computed")
    try:
        read = Results.of(seed, results, contexts)
        found = iter(read)
        first = next(found, None)
    except Unreadable as error:
        return report_errors(Checked((error.diagnostic,), error.source), "nothing was computed")
    sources = [name for name in (seed_name, results, contexts) if name is not None]
    sink = open_sink(out, form, seed, "overwrite" if force else "new", brief, sources)
    tally = Tally()
    try:
        with contextlib.ExitStack() as stack:
            spool = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="knotwork-"))) / "results.jsonl"
            if sink.is_whole:
                files = ResultFiles(out, None, brief=brief)
                sink.spool = OutFile.open(str(spool), "new")
                stack.callback(sink.spool.close)
            if first is not None:
                computing = ResultComputer.of(seed, allow_invalid)
                for each in itertools.chain([first], found):
                    _write(computing, each, sink, tally)
            sink.end()
            if sink.is_whole:
                write_whole(files, seed, spool)
    except TableError as error:
        raise Misused(error.message, error.hint) from None
    except Unwritten as error:
        complain(error.message)
        return Exit.FAILED
    finally:
        sink.close()
    return _finish(read, tally, out)


def _write(computing: ResultComputer, found: Extracted, sink: Sink, tally: Tally) -> None:
    result = computing.result(
        found.context, found.result.extractions, name=found.result.name, index=found.index,
        reviews=found.result.counts.reviews, warnings=found.result.warnings, reduced=found.result.reduced,
    )  # fmt: skip
    told = result.as_json()
    if not sink.brief:
        told = {**told, "context": dict(found.context), "extractions": told["extractions"]}
    sink.put(told)
    tally.add(told)


def _finish(read: Results, tally: Tally, out: str | None) -> int:
    tally.report_incomplete()
    faults = read.items.faults
    for fault in faults:
        say(printable(f"{read.items.display_name}, line {fault.line}: {fault.fault}"))
    if not tally.finished_count:
        complain(f"{read.items.display_name} has no results")
        return Exit.FAILED if faults else Exit.USAGE
    status = "partial" if faults and tally.status == "complete" else tally.status
    style = {"complete": "green", "partial": "yellow", "failed": "red"}[status]
    say(f"{paint(status, style, colour(sys.stderr))}: {tally.contexts()} · {tally.figures()} · no model was called")
    if out is not None and out != STDIN:
        say(printable(f"written to {out}"))
    return {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED}[status]


# ``seed schema`` and ``seed convert``.


def show_schema(form: Literal["002", "000"]) -> int:
    """Write the JSON Schema to stdout."""
    from ...api.language_texts import schema_text

    print(schema_text("seed" if form == "002" else "seed-000"), end="")
    return Exit.DONE


def convert_seed(name: str, output: str | None) -> int:
    """Write the seed in the declarative form. Expressions that could not be converted are reported on stderr."""
    writable(output, (".json",))
    if output is not None and output != STDIN and same_file(name, output):
        raise Misused(f"{output} is an input file", "choose another file with --output")
    seed = open_seed(name, "knotwork seed convert SEED")
    if isinstance(seed, Checked):
        return report_errors(seed, "nothing was written")
    if seed.form == "002":
        raise Misused(
            f"{seed.source.name} already has the declarative form (002)",
            "knotwork check reports its errors and warnings",
        )
    converted = convert(seed)
    text = json_text(converted.document)
    if output is None or output == STDIN:
        write(text)
        sys.stdout.flush()
    else:
        replace_file(Path(output), text + "\n")
    show([Checked(tuple(converted.kept), seed.source)], sys.stderr)
    kept = (
        counted(len(converted.kept), "remains an expression", "remain expressions")
        if converted.kept
        else "no step remains an expression"
    )
    say(f"{counted(len(seed.steps), 'step')}; {kept} over extractions")
    if output is not None and output != STDIN:
        say(printable(f"written to {output}"))
    return Exit.DONE
