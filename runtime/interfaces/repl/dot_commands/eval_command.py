"""The command ``.eval``: scores a seed, a script or a loop with labelled data, with the model and the limits of the session."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .....lang.diagnostic import nearest, printable, suggestion
from .....lang.errors import KnotworkError
from ....api import evals
from ....api.files import similar_file
from ....api.session_data import NOTHING, Outcome, Table, misused
from .dot import DotCommand, DotRequest

if TYPE_CHECKING:
    from ....api.evals import EvaluationEstimate, EvaluationReport

_VALUES: Mapping[str, tuple[str, Any]] = {
    "--gold": ("gold", str), "--contexts": ("contexts", str), "--group": ("group", str), "--text": ("text", str),
    "--against": ("against", str), "--require": ("require", str), "--repeat": ("repeat", int), "--tolerance": ("tolerance", float),
    "--baseline": ("baseline", str), "--report": ("report", str),
}  # fmt: skip
"""Maps each option with a value to its parameter and the type of its value. ``knotwork eval`` has the same options."""
_FLAGS = ("--dry-run", "--no-filter")
_SEVERAL = ("against", "require")
_EXAMPLE = ".eval rating.seed.json --gold gold.csv --contexts reviews.jsonl"


async def _eval(request: DotRequest) -> Outcome:
    given = _options(request)
    if isinstance(given, Outcome):
        return given
    report_file, is_dry = given.pop("report", None), given.pop("dry_run", False)
    if report_file is not None and Path(report_file).suffix.lower() not in (".html", ".htm"):
        return misused(f"--report writes HTML, and {report_file} has another suffix", "--report eval.html")
    notes: list[str] = []
    try:
        run = await asyncio.to_thread(_opened, request, given, is_dry, notes)
        if is_dry:
            return _estimated(await asyncio.to_thread(run.estimate), notes)
        report = await run.run(request.session.events, request.cancel)
    except evals.GoldError as error:
        more = f"; and {len(error.faults) - 1} more faults" if len(error.faults) > 1 else ""
        return misused(f"{error.message}{more}", error.hint)
    except evals.RequestError as error:
        option = {"target": "the target", "gold": "--gold", "candidates": "--against", "max_cost": ".budget cost"}
        name = option.get(error.parameter) or f"--{error.parameter.replace('_', '-')}"
        return misused(f"{name}: {error.message}", error.hint)
    except evals.ScriptError as error:
        return Outcome("refused", diagnostics=tuple(error.diagnostics), source=error.source)
    except KnotworkError as error:
        return misused(error.message, error.hint)
    except OSError as error:
        return misused(f"{error.filename} can't be read: {error.strerror}", similar_file(error.filename))
    if report_file is not None:
        try:
            await asyncio.to_thread(lambda: evals.to_html(report, Path(report_file).expanduser()))
        except OSError as error:
            notes.append(f"{report_file} can't be written: {error.strerror}")
    return _scored(report, notes)


def _options(request: DotRequest) -> dict[str, Any] | Outcome:
    """Return the arguments by parameter; an outcome that says what is wrong if they are invalid."""
    found: dict[str, Any] = {}
    words = iter(request.words)
    for word in words:
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            place = "target" if "target" not in found else "gold"
            if place in found:
                return misused(f".eval takes one target and one gold table; {word} is too much", _EXAMPLE)
            found[place] = word
        elif word in _FLAGS:
            found |= {"dry_run": True} if word == "--dry-run" else {"filter": False}
        elif name not in _VALUES:
            known = [*_VALUES, *_FLAGS]
            near = nearest(name, known)
            return misused(
                f".eval has no option {name}",
                suggestion(name, known, len(known)),
                request.piece.text.replace(name, near, 1) if near else "",
            )
        else:
            parameter, kind = _VALUES[name]
            text = value if equals else next(words, None)
            if text is None or (not equals and text.startswith("--")):
                return misused(f"{name} needs a value", _EXAMPLE)
            try:
                made = kind(text)
            except ValueError:
                return misused(f"{name} takes a number, not {text}")
            if parameter not in _SEVERAL and parameter in found:
                return misused(f"the {parameter} is given twice", _EXAMPLE)
            found[parameter] = [*found.get(parameter, ()), made] if parameter in _SEVERAL else made
    return found if "target" in found else misused(".eval needs a target", _EXAMPLE)


def _opened(request: DotRequest, given: dict[str, Any], is_dry: bool, notes: list[str]) -> evals.EvaluationRun:
    """Check the evaluation and open its models under the limits of the session. No call is made."""
    model, folder, document = request.session.model, None, dict(given)
    others = document.pop("against", [])
    target = document["target"]
    if target.endswith(".eval.json"):
        folder = Path(target).parent
        own = {
            name: str(Path(value).absolute()) if name in ("gold", "contexts", "baseline") else value
            for name, value in document.items()
        }
        del own["target"]
        document = {**evals.read(target), **own}
    default = (model.spec if is_dry else model.effective_spec) or None
    if others:
        named = {name: getattr(each, "spec", "") for name, each in request.session.models.named.items()}
        first = {} if default is None else {"llm": default}
        document["candidates"] = {"model": first} | {
            each: {"target": each, **first} if Path(each).is_file() else {"llm": named.get(each) or each}
            for each in others
        }
    elif "candidates" not in document:
        document["candidates"] = {"model": {} if default is None else {"llm": default}}
    return evals.EvaluationRun(document, folder=folder, opens=not is_dry, warn=notes.append, **model.limits)


def _scored(report: "EvaluationReport", notes: list[str]) -> Outcome:
    """Return the scores as a table, and the sentences, comparisons and requirements as notes."""
    document = report.as_json()
    rows = list(evals.score_rows(document))
    names = [evals.shown_name(name, each) for name, each in document["candidates"].items()]
    table = Table(
        ("score", *names, "majority"),
        [[row.title, *row.cells, row.majority] for row in (*rows, *evals.run_rows(document))],
    )
    lines = [evals.sentence(document, name) for name in report.first.fields] + evals.verdicts(document)
    for each in report.requirements:
        word = "met" if each.holds else "not decided" if each.holds is None else "NOT MET"
        lines.append(f"{word}: {each.text} ({each.message})")
    lines += [f"note: {each}" for each in evals.notes(document)]
    if report.path is not None:
        lines.append(f"saved in {report.path}")
    told = tuple(map(printable, (*notes, *report.warnings)))
    if report.status == "cancelled":
        return Outcome("cancelled", table, message="the evaluation was cancelled", notes=told)
    if not report.evaluated:
        return Outcome("failed", table, message=evals.unanswered_message(report), hint=report.reason, notes=told)
    summary = "\n".join(map(printable, lines))
    return Outcome("done" if report.passed else "partial", table, summary, notes=told)


def _estimated(found: "EvaluationEstimate", notes: list[str]) -> Outcome:
    """Return the estimated calls, tokens and cost of each candidate as a table."""
    columns = ("candidate", "calls", "calls at most", "prompt tokens", "completion tokens", "cost", "note")
    rows = [
        [
            each.name, each.calls, each.calls_at_most, _range(each.prompt_tokens), _range(each.completion_tokens),
            _range(each.cost), each.note,
        ]
        for each in found.candidates.values()
    ]  # fmt: skip
    told = tuple(map(printable, (*notes, *found.warnings)))
    summary = f"{found.items:,} items with {found.labels:,} labels; no model was called"
    return Outcome(value=Table(columns, rows) if rows else NOTHING, summary=summary, notes=told)


def _range(bounds: Any) -> str | None:
    """Return a range of numbers as text; None if it is not known."""
    if bounds is None:
        return None
    low, high = (None if each is None else round(each, 6) for each in bounds)
    return f"{low:,}" if low == high else f"{low:,} or more" if high is None else f"{low:,} to {high:,}"


EVAL = DotCommand(
    "eval", ".eval TARGET ...", "score a seed or a script with labelled data", _eval, "file",
    "TARGET and the options are those of knotwork eval: --gold FILE, --contexts FILE, --group COL, --text COL,\n"
    "    --against MODEL|FILE, --require EXPR, --repeat N, --tolerance X, --baseline FILE, --report FILE, --no-filter,\n"
    "    --dry-run. The model and the limits (.llm, .budget) are those of the session. The run is stored.",
)  # fmt: skip
