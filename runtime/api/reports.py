"""Reports: one self-contained HTML page about a state (findings with evidence) or about a run (calls, answers, repairs, cost).

The pages load no resources and run no scripts; all texts in them are escaped. ``runtime/report`` prepares the data of the pages.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from attrs import frozen

from ...adapters.graph import AdapterError, GraphAdapter
from ...adapters.state import StoreError
from ...lang.diagnostic import nearest, printable
from .. import report
from ..errors import Misused
from ..report.account import Account, Figures
from ..report.findings import Group, evidence_graph, groups, sources_of
from ..report.run_reader import events_of, read_account, records_of
from ..runs.event_log import LOG
from ..runs.journal import FILE, RunError, base_directory, find_folder

__all__ = [
    "Account",
    "Figures",
    "Report",
    "events_of",
    "make_report",
    "read_account",
    "records_of",
    "render_evaluation",
    "render_run",
    "render_state",
]

# Finding the run or state. A folder with ``run.jsonl`` is a run. A name without a path is first searched among the stored runs.
# Anything else is a state.

_PAGE = "report.html"
_QUESTIONS = 20
"""Maximum number of questions on the page of a state. The latest questions are shown."""


@frozen
class Report:
    """An HTML page. ``path`` is the page's default output file, next to the run or state."""

    page: str
    path: Path


def make_report(name: str, *, graph: str | None = None, raw: bool = False, warn: Callable[[str], None]) -> Report:
    """Return the report of a run (an id or a folder) or of a state (a folder or a ``state.json``).

    ``graph`` replaces the graph that the state records; ``raw`` keeps the values of the graph as they are written. If the recorded graph
    can't be read, the drawing shows only the evidence. ``warn`` receives messages, such as the reason for an unreadable graph.
    Raises ``Misused`` for an unknown name, ``StoreError``, ``AdapterError`` and ``OSError``.
    """
    folder = _run_folder(name)
    if folder is None:
        path = Path(name)
        page = _state_page(path, graph, raw, warn)
        return Report(page, path / _PAGE if path.is_dir() else path.with_suffix(".html"))
    if graph is not None:
        raise Misused("--graph is for the report of a state", "the report of a run has no drawing of the graph")
    try:
        if (stored := _evaluation_page(folder)) is not None:
            return Report(stored, folder / _PAGE)
        return Report(render_run(read_account(folder)), folder / _PAGE)
    except RunError as error:
        raise Misused(error.message, error.hint) from None


def _evaluation_page(folder: Path) -> str | None:
    """Return the page of a finished evaluation; None for other runs, and for an evaluation without a report."""
    import json

    from ..loops.evaluate.evaluation_report import ITEMS, REPORT, TEXTS

    if not (folder / REPORT).is_file():
        return None
    try:
        document = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        rows, texts = (
            [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").split("\n") if line]
            for name in (ITEMS, TEXTS)
        )
        return render_evaluation(document, rows, texts)
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"the report of {folder.name} is damaged: {error}", "repeat the evaluation") from None


def _run_folder(name: str) -> Path | None:
    """Return the run's folder; None if ``name`` is a state. Raises ``Misused`` if neither exists."""
    path = Path(name)
    if (path / FILE).is_file():
        return path
    if path.exists():
        return None
    is_bare = bool(name) and path.name == name
    if is_bare and (base_directory() / name).is_dir():
        _require_records(name, base_directory() / name)
    try:
        return find_folder(name)
    except RunError:
        near = _similar(path.name, path.absolute().parent) if path.name else None
        if near is not None:
            raise Misused(f"the state {name} does not exist", f"did you mean {path.with_name(near)}?") from None
        near = _similar(name, base_directory()) if is_bare else None
        hint = (
            f"did you mean {near}?" if near else "knotwork runs lists the runs; a state is the folder given as --state"
        )
        raise Misused(f"{name} is neither a run nor a state", hint) from None


def _require_records(name: str, folder: Path) -> None:
    """Raise ``Misused`` if ``folder`` looks like a run (it has an event log or is among the runs) but its records are missing."""
    is_run = (folder / LOG).is_file() or folder.resolve().parent == base_directory().resolve()
    if is_run and not (folder / FILE).is_file():
        raise Misused(f"{name} is not a run's folder: {FILE} is missing", "knotwork runs lists the runs")


def _similar(name: str, folder: Path) -> str | None:
    """Return the name in ``folder`` that is most similar to ``name``; None if no name is similar."""
    try:
        return nearest(name, os.listdir(folder))
    except OSError:
        return None


def _state_page(path: Path, graph: str | None, raw: bool, warn: Callable[[str], None]) -> str:
    from ..models.factory import read_brief

    try:
        state = read_brief(path, warn)
    except StoreError:
        if path.is_dir():
            _require_records(str(path), path)
        raise
    return render_state(state, _graph(state, graph, raw, warn), *_questions(path, warn))


def _questions(state: Path, warn: Callable[[str], None]) -> tuple[list[Account], int]:
    """Return the latest questions whose runs are stored in the state's folder, and the number of earlier questions."""
    from ..loops.traversal.question_store import FOLDER

    try:
        folders = sorted((each for each in (state / FOLDER).iterdir() if (each / FILE).is_file()), reverse=True)
    except OSError:
        return [], 0
    found: list[Account] = []
    for folder in folders[:_QUESTIONS]:
        try:
            found.append(read_account(folder))
        except RunError as error:
            warn(f"a question is left out: {error.message}")
    return found, max(0, len(folders) - _QUESTIONS)


def _graph(state: Mapping[str, Any], name: str | None, raw: bool, warn: Callable[[str], None]) -> GraphAdapter | None:
    """Return the graph ``name`` (default: the graph that the state records); None if no graph is recorded or the graph can't be read."""
    from ..models.factory import open_graph
    from .workspace import graph_of, raw_of

    source = name if name is not None else graph_of(state)
    if source is None:
        return None
    try:
        found = open_graph(source, raw=raw or (name is None and raw_of(state)))
    except AdapterError as error:
        if name is not None:
            raise
        warn(f"the drawing shows only nodes and edges from the evidence: {error.message}; --graph names another graph")
        return None
    for line in found.report.messages:
        warn(f"graph {source}: {line}")
    return found.adapter


# The templates of the pages: all values are escaped, and control characters are made visible.


def filled(template: str, **values: Any) -> str:
    """Return the text of the template with this name, filled with ``values``. A name in the template without a value is an error."""
    return str(_environment().get_template(template).render(values))


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(report)
    loader = FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    return Environment(autoescape=True, undefined=StrictUndefined, finalize=_without_control_characters, loader=loader)


def _without_control_characters(value: Any) -> Any:
    """Make control characters, and characters that change the writing direction, visible."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value


_KEYS, _MOST_HYPOTHESES = 200, 50
"""Maximum numbers of state keys and of hypotheses that are shown."""


def render_state(
    state: Mapping[str, Any],
    graph: GraphAdapter | None = None,
    questions: Sequence[Account] = (),
    questions_left_out: int = 0,
) -> str:
    """Return the page for the state object. ``graph`` adds names, kinds and edges to the drawing.

    ``questions`` are the questions about the state, the latest first; ``questions_left_out`` is the number of questions not shown.

    The ``history`` of the state may be any sequence: only its beginning and end are read. The size of the page is bounded, however
    large the state is.
    """
    from ..report.drawings import draw
    from ..report.steps import steps_of

    found = groups(state)
    history = state.get("history") or ()
    steps = steps_of(history)
    config = state.get("config", {})
    return filled(
        "page.html.j2",
        query=state.get("query") or "",
        graph=_of(config, "adapter", "path"),
        graph_read=_read(history),
        model=_of(config, "llm", "model"),
        when=_when(state),
        counts=_counts(state, found, history),
        hypotheses=_hypotheses(history),
        groups=found[:_KEYS],
        keys_left_out=max(0, len(found) - _KEYS),
        drawing=draw(*evidence_graph(found), graph),
        steps=steps,
        questions=questions,
        questions_left_out=questions_left_out,
    )


_LOOKED = 100
"""Number of entries at each end of the history that are searched for the changes made while a graph was loaded."""


def _read(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the distinct changes that were made to graphs when they were loaded, as the history records them."""
    steps_of: dict[str, None] = {}
    for entry in (*history[:_LOOKED], *history[max(_LOOKED, len(history) - _LOOKED) :]):
        plan = entry.get("plan") if isinstance(entry, Mapping) else None
        lines = plan.get("graph_read") if isinstance(plan, Mapping) else None
        steps_of |= dict.fromkeys(str(line) for line in lines) if isinstance(lines, list) else {}
    return list(steps_of)


def _of(config: Any, part: str, name: str) -> str:
    inner = config.get(part, {}) if isinstance(config, Mapping) else {}
    return str(inner.get(name) or "") if isinstance(inner, Mapping) else ""


def _when(state: Mapping[str, Any]) -> str:
    begun, ended = (str(state.get(name) or "")[:16].replace("T", " ") for name in ("created_at", "updated_at"))
    return f"Started {begun}, last changed {ended} (UTC)." if begun else ""


def _hypotheses(history: Sequence[Any]) -> list[str]:
    entries = (entry for entry in history[:1_000] if isinstance(entry, Mapping) and entry.get("hypothesis"))
    return list(dict.fromkeys(str(entry["hypothesis"])[:1_000] for entry in entries))[:_MOST_HYPOTHESES]


def _counts(state: Mapping[str, Any], found: Sequence[Group], history: Sequence[Any]) -> list[tuple[str, str]]:
    findings = sum(group.count for group in found)
    answers = _answers(state)
    counts = [
        (findings, "finding" if findings == 1 else "findings"),
        (sum(group.backed for group in found), "with evidence"),
        (sources := sources_of(state), "source named" if sources == 1 else "sources named"),
        (len(history), "step" if len(history) == 1 else "steps"),
        (answers, "answer of a model" if answers == 1 else "answers of a model"),
    ]
    return [(f"{number:,}", what) for number, what in counts]


def _answers(state: Mapping[str, Any]) -> int:
    if isinstance(counted := state.get("answers"), int):
        return counted
    replay = state.get("replay")
    answers = replay.get("answers") if isinstance(replay, Mapping) else None
    return len(answers) if isinstance(answers, Sequence) else 0


# The page of a run: a summary at the top, the figures of each phase, and all entries, which are collapsed.

_KINDS = {
    "script": "A run of a script", "each": "A run of a script over rows", "seed": "A run of a Formula Seed", "rank": "A ranking",
    "compile": "A compilation of a task to a seed",
    "ask": "A question about a graph",
}  # fmt: skip


def render_run(run: Account) -> str:
    """Return the page of a run. The size of the page is bounded, however large the run is."""
    return filled(
        "run.html.j2", run=run, kind=_KINDS.get(run.kind, f"A run of kind {run.kind}"), counts=_run_counts(run)
    )


def render_evaluation(
    document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], texts: Sequence[Mapping[str, Any]]
) -> str:
    """Return the page of an evaluation: its report, its items and their texts. The size of the page is bounded."""
    from ..report.evaluation_page import evaluation_view

    return filled("evaluation.html.j2", view=evaluation_view(document, rows, texts))


def _run_counts(run: Account) -> list[tuple[str, str]]:
    spent = run.totals
    counts = [
        (f"{spent.calls:,}", "call of a model" if spent.calls == 1 else "calls of a model"),
        (f"{spent.tokens:,}", "tokens"),
        (f"${spent.cost:.4f}" if spent.cost is not None else "?", "cost"),
        (f"{spent.seconds:,.1f} s", "in all phases"),
    ]
    if spent.cached:
        counts.append((f"{spent.cached:,}", "answers from the cache"))
    return counts + [(number, what) for what, number in run.facts]
