"""Runs ``eval``: reads the evaluation, reports faults before any call, runs the evaluation, and writes the requested files."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from ....lang.diagnostic import printable
from ...api import evals
from ...api.evals import EvaluationReport, EvaluationRun, GoldError, RequestError, RequirementError, RunError
from ...api.files import replace_file, similar_file
from ...api.seed_batches import BatchWaiting, LLMError
from ..options import named_specs, price_of
from .inputs import functions_in, writable
from .output import Exit, Misused, complain, say, shell_command


@frozen
class Request:
    """The options of the command. ``document`` contains the keys of an evaluation that are given on the command line."""

    document: Mapping[str, Any]
    llm: str | None
    against: tuple[str, ...]
    results: tuple[str, ...]
    models: tuple[str, ...]
    resume: str | None
    force: bool
    price: str | None
    cache: bool | str
    limits: Mapping[str, Any]
    form: str
    report: str | None
    junit: str | None
    save_baseline: str | None
    only_agreement: bool
    dry_run: bool
    functions: str | None = None


def evaluate(request: Request) -> int:
    """Run the evaluation and return the exit code."""
    from .eval_view import EvaluationView, finish, show_estimate

    writable(request.report, (".html", ".htm"))
    writable(request.junit, (".xml",))
    writable(request.save_baseline, (".json",))
    notes: list[str] = []
    try:
        document, folder, limits = _document(request)
        run = EvaluationRun(
            document, folder=folder, resume=request.resume, force=request.force, warn=notes.append, price=price_of(request.price),
            cache=request.cache, opens=not request.dry_run,
            functions=functions_in(request.functions), **limits,
        )  # fmt: skip
        if request.only_agreement:
            return _show_agreement(run, request.form)
        if request.dry_run:
            return show_estimate(run.estimate(), request.form, notes)
        asyncio.run(run.check_services())
        run.store()
    except GoldError as error:
        for line in error.faults[:-1]:
            complain(line)
        complain(error.faults[-1], error.hint)
        say("no call was made")
        return Exit.ERRORS
    except (evals.ScriptError, RequirementError) as error:
        print(printable_lines(str(error)), file=sys.stderr)
        say("no call was made")
        return Exit.ERRORS
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if request.resume is not None else Exit.FAILED
    except RequestError as error:
        raise Misused(f"{_option(error.parameter)}: {error.message}", error.hint) from None
    except evals.TableError as error:
        named = (request.document.get(name) for name in ("gold", "contexts"))
        hint = error.hint or next(filter(None, map(similar_file, named)), "")
        raise Misused(error.message, hint) from None
    except OSError as error:
        raise Misused(f"{error.filename} can't be read: {error.strerror}", similar_file(error.filename)) from None
    view = EvaluationView(run.target.name)
    for note in notes:
        view.note(f"warning: {note}")
    try:
        report = asyncio.run(view.run(run))
    except LLMError as error:  # of the batches: the failures of calls are in the report
        return _not_finished(error, run, bool(request.limits.get("finish_live")))
    written = _write_files(request, report)
    words = ["knotwork", "eval", *([] if request.functions is None else ["--functions", request.functions])]
    code = finish(report, request.form, words)
    return code if written or code != Exit.DONE else Exit.FAILED


def _not_finished(error: LLMError, run: EvaluationRun, finish_live: bool) -> int:
    """Report that batches continue or failed, and how to go on; return the exit code."""
    run_id = "" if run.recorder is None else run.recorder.run_id
    live = ["--finish-live"] if finish_live else []
    if isinstance(error, BatchWaiting):
        say(printable(error.message))
    else:
        complain(error.message, error.hint)
    say(f"resume with: {shell_command('knotwork', 'eval', '--resume', run_id, *live)}")
    if not isinstance(error, BatchWaiting):
        return Exit.FAILED
    if error.batches:
        say(f"cancel with: {shell_command('knotwork', 'runs', 'cancel', run_id)}")
    return Exit.INTERRUPTED if error.is_interrupted else Exit.DONE


def printable_lines(text: str) -> str:
    """Make the control characters in each line of a text visible."""
    return "\n".join(map(printable, text.split("\n")))


def _document(request: Request) -> tuple[dict[str, Any], Path | None, Mapping[str, Any]]:
    """Return the evaluation as a document, the folder of its file, and the limits."""
    given, folder, limits = dict(request.document), None, request.limits
    target = given.get("target")
    if target is None and request.resume is not None:
        stored, strict_types = evals.stored_document(request.resume)
        document, limits = {**stored, **given}, {**limits, "strict_types": limits["strict_types"] or strict_types}
    elif isinstance(target, str) and target.endswith(".eval.json"):
        if "gold" in given:
            raise Misused(f"{target} names the gold table itself", "give only the .eval.json file")
        folder = Path(target).parent
        document = {
            **evals.read(target),
            **{name: _from_here(name, value) for name, value in given.items() if name != "target"},
        }
    else:
        document = given
        if "gold" not in document:
            raise Misused("the gold table is missing", "knotwork eval TARGET GOLD: a table with the labelled items")
    candidates = _candidates(request)
    if candidates:
        document["candidates"] = candidates
    elif request.only_agreement:
        document["candidates"] = {"none": {"results": ""}}
    return document, folder, limits


def _from_here(name: str, value: Any) -> Any:
    """Return a path from the command line as an absolute path.

    A relative path would start at the folder of the evaluation's file.
    """
    return str(Path(value).absolute()) if name in ("contexts", "baseline") and "://" not in str(value) else value


def _candidates(request: Request) -> dict[str, dict[str, Any]]:
    """Return a mapping from names to the candidates that the options describe.

    The other candidates are compared with the first one.
    """
    models = named_specs(request.models)
    more: dict[str, Any] = {"models": models} if models else {}
    found: dict[str, dict[str, Any]] = {}

    def add(name: str, candidate: dict[str, Any]) -> None:
        if name in found:
            raise Misused(f"two candidates are called {name}", "an .eval.json file can name candidates freely")
        found[name] = candidate

    if request.results and (request.llm or request.against):
        raise Misused(
            "--results and --llm or --against are both given", "an .eval.json file can have candidates of both kinds"
        )
    for each in request.results:
        add(Path(each).stem if Path(each).stem != "items" else Path(each).parent.name or each, {"results": each})
    target = str(request.document.get("target") or "")
    seeds = [each for each in request.against if _is_target(each)]
    if seeds and seeds == list(request.against) and _is_target(target):
        # Only the targets differ, so a candidate is named after its target, not after the common model.
        add(_target_name(target, seeds), {**({"llm": request.llm} if request.llm else {}), **more})
    elif request.llm is not None or more:
        add(request.llm or "model", {**({"llm": request.llm} if request.llm else {}), **more})
    elif request.against:
        add("model", {})
    for each in request.against:
        if each in seeds:
            add(
                _target_name(each, [target, *seeds]),
                {"target": each, **({"llm": request.llm} if request.llm else {}), **more},
            )
        else:
            add(each, {"llm": each, **more})
    return found


def _is_target(name: str) -> bool:
    return not name.endswith(".eval.json") and (name.endswith((".seed.json", ".lwt")) or Path(name).is_file())


def _target_name(path: str, others: Sequence[str]) -> str:
    """Return the file name of a target, or its path if another target has the same file name."""
    name = Path(path).name
    return path if any(each != path and Path(each).name == name for each in others) else name


def _option(parameter: str) -> str:
    """Return the option or argument with which the user sets ``parameter``, a parameter of ``api.evals``."""
    names = {"target": "TARGET", "gold": "GOLD", "candidates": "--llm, --against"}
    return names.get(parameter) or f"--{parameter.replace('_', '-')}"


def _write_files(request: Request, report: EvaluationReport) -> bool:
    """Write the page, the JUnit file and the baseline; return whether all were written."""
    jobs: list[tuple[str | None, Callable[[Path], None]]] = [
        (request.report, lambda path: replace_file(path, evals.to_html(report))),
        (request.junit, lambda path: replace_file(path, evals.junit(report))),
        (request.save_baseline, lambda path: evals.save_baseline(report, path)),
    ]
    done = True
    for name, write in jobs:
        if name is None:
            continue
        if name == request.save_baseline and not report.evaluated:
            say(printable(f"{name} is not written: too many items have no answer"))
            continue
        try:
            write(Path(name))
        except OSError as error:
            complain(f"{name} can't be written: {error.strerror}")
            done = False
    return done


def _show_agreement(run: EvaluationRun, form: str) -> int:
    """Print the agreement between the annotators."""
    from .output import json_text, write_table

    found = run.agreement()
    if form == "json":
        print(json_text(found))
        return Exit.DONE
    if not found:
        raise Misused("the gold table has no column annotator with two or more annotators")
    rows = [
        [
            column,
            each["method"],
            each["annotators"],
            each["items"],
            "-" if each["value"] is None else f"{each['value']:.3f}",
        ]
        for column, each in found.items()
    ]
    write_table(("field", "method", "annotators", "items", "agreement"), rows)
    for column, count in run.gold.ties.items():
        say(printable(f"{column}: {count:,} items are left out, because the labels are tied"))
    return Exit.DONE
