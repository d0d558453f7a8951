"""``knotwork.evals``: evaluations in Python. Score seeds, scripts, rankings, questions and answers with labelled data.

In an evaluation, one or several candidates answer the labelled items. The answers are scored, with confidence intervals, and the
candidates are compared in pairs. See ``docs/reference/eval.md``. Everything is loaded on first use.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import check_names, load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...adapters.tables.port import TableError as TableError
    from ...lang.documents.evaluation import EvaluationRead as EvaluationRead
    from ..errors import RequestError
    from ..events import Events
    from ..loops.evaluate.comparison import Comparison
    from ..loops.evaluate.escalation import escalation_lines as escalation_lines
    from ..loops.evaluate.evaluation import Progress as Progress
    from ..loops.evaluate.evaluation_report import CandidateReport, Comparisons, RequirementResult
    from ..loops.evaluate.field_scores import FieldScores
    from ..loops.evaluate.gate import RequirementError
    from ..loops.evaluate.gate import junit as junit
    from ..loops.evaluate.gate import save_baseline as save_baseline
    from ..loops.evaluate.gate import unanswered_message as unanswered_message
    from ..loops.evaluate.gold import GoldError
    from ..loops.evaluate.intervals import Score
    from ..lwt.operations.operation import Operation
    from ..report.evaluation_text import notes as notes
    from ..report.evaluation_text import run_rows as run_rows
    from ..report.evaluation_text import score_rows as score_rows
    from ..report.evaluation_text import sentence as sentence
    from ..report.evaluation_text import shown_name as shown_name
    from ..report.evaluation_text import verdicts as verdicts
    from ..report.run_diff import RunDiff, StepDiff, diff_runs
    from ..report.run_diff import unified as unified
    from ..results import ScriptError as ScriptError
    from ..runs.journal import RunError
    from .evaluation_estimate import CandidateEstimate, EvaluationEstimate, ModelEstimate, StageEstimate
    from .evaluation_run import EvaluationReport
    from .evaluation_run import EvaluationRun as EvaluationRun

    class Settings(TypedDict, total=False):
        """Optional settings of ``run``, described in its docstring."""

        gold_query: str
        query: str
        group: str
        text: str
        columns: Mapping[str, str]
        filter: bool
        repeat: int
        tolerance: float
        threshold: float
        k: int
        require: Sequence[str]
        max_failed: float
        target_accuracy: float | None
        baseline: str | Path
        max_concurrency: int | Literal["auto"]
        strict_types: bool
        encoding: str
        record: bool
        resume: str | Path
        force: bool
        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Any
        rate: float | None
        cache: str | Path | bool | None
        workers: int | None
        engine: str | None
        ray_address: str | None
        batch: bool
        no_wait: bool
        finish_live: bool
        batch_id: str
        batch_lost: bool
        functions: Mapping[str, Callable[..., Any]] | None
        operations: Iterable[Operation] | None
        events: Events
        cancel: asyncio.Event


__all__ = [
    "CandidateEstimate", "CandidateReport", "Comparison", "Comparisons", "EvaluationEstimate", "EvaluationReport", "FieldScores",
    "GoldError", "ModelEstimate", "RequestError", "RequirementError", "RequirementResult", "RunDiff", "RunError", "Score",
    "StageEstimate", "StepDiff", "diff_runs", "dry_run", "read", "run", "run_sync", "to_html",
]  # fmt: skip

_LOOP = "runtime.loops.evaluate"
_TEXTS = ("notes", "run_rows", "score_rows", "sentence", "shown_name", "verdicts")
_TYPES = {
    **dict.fromkeys(("CandidateReport", "Comparisons", "RequirementResult"), f"{_LOOP}.evaluation_report"),
    **dict.fromkeys(("RequirementError", "junit", "save_baseline", "unanswered_message"), f"{_LOOP}.gate"),
    "Comparison": f"{_LOOP}.comparison",
    "escalation_lines": f"{_LOOP}.escalation", "FieldScores": f"{_LOOP}.field_scores", "GoldError": f"{_LOOP}.gold",
    "Score": f"{_LOOP}.intervals", "Progress": f"{_LOOP}.evaluation", "RequestError": "runtime.errors",
    "RunError": "runtime.runs.journal", **dict.fromkeys(("EvaluationReport", "EvaluationRun"), "runtime.api.evaluation_run"),
    **dict.fromkeys(("CandidateEstimate", "EvaluationEstimate"), "runtime.api.evaluation_estimate"),
    "ModelEstimate": "runtime.seeds.cost_estimate", "StageEstimate": "runtime.seeds.stage_estimates",
    "ScriptError": "runtime.results", "TableError": "adapters.tables.port",
    "EvaluationRead": "lang.documents.evaluation",
    **dict.fromkeys(("RunDiff", "StepDiff", "diff_runs", "unified"), "runtime.report.run_diff"),
    **dict.fromkeys(_TEXTS, "runtime.report.evaluation_text"),
}  # fmt: skip
_DOCUMENT = (
    "gold_query", "query", "group", "text", "columns", "filter", "repeat", "tolerance", "threshold", "k", "require", "max_failed",
    "baseline", "target_accuracy",
)  # fmt: skip
_RUN = (
    "max_concurrency", "strict_types", "encoding", "record", "resume", "force", "max_calls", "max_tokens", "max_cost", "price", "rate",
    "cache", "workers", "engine", "ray_address", "batch", "no_wait", "finish_live", "batch_id", "batch_lost", "functions",
    "operations",
)  # fmt: skip

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


async def run(
    target: Any, gold: Any = None, *, contexts: Any = None, candidates: Mapping[str, Any] | None = None, llm: Any = None,
    **settings: "Unpack[Settings]",
) -> "EvaluationReport":  # fmt: skip
    """Evaluate ``target`` on the labelled items of ``gold``, and return the report.

    ``target`` is a seed (a path or an object), a script (``.lwt``), ``rank:ITEMS``, ``ask:GRAPH`` or ``answer``. It may also be
    the path of a ``.eval.json`` file; the other arguments then default to the values in this file. ``gold`` is a table: a path,
    a data frame, or a list of dictionaries. ``contexts`` are the contexts of a seed: a file, a list, or a table with its
    reviews (``group``, ``text`` and ``columns`` name its columns). ``candidates`` maps names to specs, clients, or
    ``{"llm", "target"?, "results"?, "models"?, "options"?}``; the first candidate is compared with each of the others. ``llm``
    is the model of the only candidate, if ``candidates`` is not given. Settings:

    - ``filter=False`` reads all reviews, including those that the filter of the seed drops. ``repeat``: number of samples of
      each item. ``tolerance``: maximum difference from the label at which a number still counts as right. ``threshold``:
      minimum score at which an answer is accepted. ``k``: number of places at the top of a ranking that ``hit_k`` considers.
    - ``require``: requirements, such as ``"rating.macro_f1.low >= 0.7"``; the report says which of them hold. ``max_failed``:
      maximum share of labels that may have no answer (default 0.05). ``baseline``: a file that
      ``knotwork eval --save-baseline`` wrote. ``target_accuracy``: accuracy that a cascade from the first candidate to the
      second should reach.
    - ``record=True`` stores the run in a folder. ``resume`` (an id or a folder) continues a stored run without repeating its calls;
      ``force`` continues it even if something changed.
    - ``max_calls``, ``max_tokens``, ``max_cost`` (US dollars), ``price``, ``rate``, ``cache`` and ``max_concurrency`` (default 8;
      "auto" adapts it to the model) are as for ``lwt.run``. ``workers``, ``engine`` and ``ray_address`` are as for ``seed.run``:
      other processes extract the reviews of seeds, or make the calls of other targets. ``events`` receives events; setting
      ``cancel`` stops the calls.
    - ``functions`` and ``operations`` are what scripts can call, as for ``lwt.run``. They run in this process, and are not stored with
      a run: give them again with ``resume``.
    - ``batch=True`` makes the calls of seeds by the service's batch API, at half price; it needs ``record=True`` or ``resume``.
      ``no_wait``, ``finish_live``, ``batch_id`` and ``batch_lost`` are as for ``seed.run_many``.

    Raises ``GoldError`` for faults of the gold table, ``SeedError`` or ``ScriptError`` for a target with errors, ``RequirementError``,
    ``RequestError``, ``RunError`` and ``NotConfigured``, all before any call. A failed call is not raised; the report counts it. With
    ``batch``, an ``LLMError`` of the kind "batch_waiting" is raised while a batch continues, and errors of the service are raised.
    """
    from . import warning_reporter

    given: dict[str, Any] = dict(settings)
    check_names(given, (*_DOCUMENT, *_RUN, "events", "cancel"))
    events, cancel = given.pop("events", None), given.pop("cancel", None)
    given.setdefault("record", given.get("resume") is not None)
    given |= {"warn": warning_reporter(events)}
    return await _prepared(target, gold, contexts, candidates, llm, given).run(events, cancel)


def dry_run(
    target: Any, gold: Any = None, *, contexts: Any = None, candidates: Mapping[str, Any] | None = None, llm: Any = None,
    **settings: "Unpack[Settings]",
) -> "EvaluationEstimate":  # fmt: skip
    """Estimate the items, calls, tokens and cost of an evaluation without calling a model. The arguments are those of ``run``.

    Everything that ``run`` checks before the first call is checked. ``candidates`` of the result maps each candidate to its
    estimate, and ``models`` of this estimate lists the figures for each model. If the number of calls is not known before the
    run, it lies between ``calls`` and ``calls_at_most`` (None: no upper bound is known). Cached and stored answers are not
    subtracted. Raises the exceptions of ``run``.
    """
    given: dict[str, Any] = dict(settings)
    check_names(given, (*_DOCUMENT, *_RUN, "events", "cancel"))
    given = {name: value for name, value in given.items() if name not in ("events", "cancel")}
    return _prepared(target, gold, contexts, candidates, llm, {**given, "opens": False}).estimate()


def _prepared(
    target: Any, gold: Any, contexts: Any, candidates: Mapping[str, Any] | None, llm: Any, given: dict[str, Any]
) -> "EvaluationRun":
    """Return the checked evaluation for the arguments of ``run``; ``given`` are its settings."""
    from .evaluation_run import EvaluationRun

    document = {name: given.pop(name) for name in _DOCUMENT if name in given}
    folder = None
    if isinstance(target, str | Path) and str(target).endswith(".eval.json"):
        path = Path(target)
        document = {**read(path), **document}
        folder = path.parent
    else:
        document |= {"target": str(target) if isinstance(target, Path) else target}
    document |= {name: value for name, value in (("gold", gold), ("contexts", contexts)) if value is not None}
    if candidates is not None or llm is not None:
        document["candidates"] = candidates if candidates is not None else {"model": llm}
    return EvaluationRun(document, folder=folder, **given)


def run_sync(
    target: Any, gold: Any = None, *, contexts: Any = None, candidates: Mapping[str, Any] | None = None, llm: Any = None,
    **settings: "Unpack[Settings]",
) -> "EvaluationReport":  # fmt: skip
    """Call ``run`` from synchronous code. In async code and notebooks, use ``await evals.run(...)``."""
    return run_here(
        lambda: run(target, gold, contexts=contexts, candidates=candidates, llm=llm, **settings), "evals.run"
    )


def read(path: str | Path) -> dict[str, Any]:
    """Return the document in a ``.eval.json`` file. Raises ``ScriptError`` for a document with errors, and ``OSError``."""
    from ...lang.documents.evaluation import read_evaluation
    from ...lang.source import Source
    from ..results import ScriptError

    found = read_evaluation(Source(Path(path).read_text(encoding="utf-8"), str(path)))
    if found.document is None:
        raise ScriptError(found.diagnostics, found.source)
    return dict(found.document)


def stored_document(run: str | Path) -> tuple[dict[str, Any], bool]:
    """Return the document of a stored evaluation, with which it can be resumed, and its ``strict_types``. Raises ``RunError``."""
    from ..loops.evaluate.call_record import load

    stored = load(run)
    return stored.document, stored.strict_types


def to_html(report: "EvaluationReport", path: str | Path | None = None) -> str:
    """Return the report as one self-contained HTML page; with ``path``, also write it to this file. Raises ``OSError``."""
    return report.to_html(path)
