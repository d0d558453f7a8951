"""Evaluations that clients of a server send: seeds and scripts as texts, labelled items and contexts as lists. No file is read.

The interfaces check the texts with the rules for clients, and open the models. The evaluation itself is ``EvaluationRun``.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from ...lang.diagnostic import printable
from ...lang.errors import KnotworkError
from ..events import Event, Events
from . import process_traces
from .checks import CheckedScript, CheckedSeed
from .clients import OpenModel

if TYPE_CHECKING:  # imported when used, because servers import this module when they start
    from .evaluation_estimate import EvaluationEstimate
    from .evaluation_run import EvaluationReport, EvaluationRun

__all__ = [
    "MOST_CANDIDATES", "MOST_CONTEXTS", "MOST_ITEMS", "CheckedTarget", "ClientCandidate", "ClientEvaluation", "EvaluationEstimate",
    "EvaluationRefused", "EvaluationReport", "EvaluationRun", "OpenModel", "open_evaluation", "report_page", "report_sentences",
    "run_evaluation", "stored_report",
]  # fmt: skip

MOST_ITEMS, MOST_CONTEXTS, MOST_CANDIDATES = 10_000, 10_000, 8
"""Maximum numbers of rows of a client's gold table, of its contexts (or rows of a flat table), and of candidates."""

CheckedTarget = CheckedSeed | CheckedScript
"""The targets that a client may evaluate."""

_SETTINGS = (
    "group", "text", "columns", "filter", "repeat", "tolerance", "threshold", "k", "require", "max_failed", "target_accuracy",
)  # fmt: skip


class EvaluationRefused(KnotworkError):
    """Raised if an evaluation is refused before any call. ``parameter`` names the faulty part of the request.

    ``faults`` are all faults, one sentence each.
    """

    def __init__(self, parameter: str, faults: Sequence[str], hint: str = "") -> None:
        super().__init__(faults[0], hint=hint)
        self.parameter = parameter
        self.faults = tuple(faults)


@frozen
class ClientCandidate:
    """A candidate of a client: a model of the server, and another version of the target (None: the target of the evaluation)."""

    model: OpenModel
    target: CheckedTarget | None = None


@frozen
class ClientEvaluation:
    """The request of a client. All texts are checked and have no errors.

    ``gold`` has the labelled items. ``contexts`` are the contexts of a seed, or the rows of a flat table with their reviews.
    ``candidates`` maps names to candidates; the first is compared with each of the others. ``settings`` are keys of an
    evaluation (``.eval.json``) that name no file. ``limits`` are ``max_calls``, ``max_tokens`` and ``max_cost`` of this
    evaluation, in addition to the limits of the server.
    """

    target: CheckedTarget
    gold: Sequence[Mapping[str, Any]]
    candidates: Mapping[str, ClientCandidate]
    contexts: Sequence[Mapping[str, Any]] | None = None
    settings: Mapping[str, Any] = field(factory=dict)
    limits: Mapping[str, Any] = field(factory=dict)

    @classmethod
    def of(cls, target: CheckedTarget, candidates: Mapping[str, ClientCandidate], given: Any) -> "ClientEvaluation":
        """Return the request whose items, contexts, settings and limits are the attributes of ``given``; None means not given."""
        settings = {name: value for name in _SETTINGS if (value := getattr(given, name, None)) is not None}
        limits = {name: getattr(given, name) for name in ("max_calls", "max_tokens", "max_cost")}
        return cls(target, given.gold, candidates, given.contexts, settings, limits)


def open_evaluation(request: ClientEvaluation, *, opens: bool = True) -> "EvaluationRun":
    """Check the request of a client, and return the evaluation. With ``opens=False``, it can only be estimated.

    The run is not stored. Raises ``EvaluationRefused``, which names the part of the request.
    """
    from .evaluation_run import EvaluationRun, GoldError

    document: dict[str, Any] = {name: value for name, value in request.settings.items() if name in _SETTINGS}
    document |= {"target": request.target, "gold": list(request.gold)}
    if request.contexts is not None:
        if not isinstance(request.target, CheckedSeed):
            raise EvaluationRefused(
                "contexts", ["a script has no contexts"], "its inputs are in gold, in the column input"
            )
        document["contexts"] = list(request.contexts)
    document["candidates"] = {
        name: {"llm": each.model} | ({} if each.target is None else {"target": each.target})
        for name, each in request.candidates.items()
    }
    limits = {name: value for name, value in request.limits.items() if value is not None}
    try:
        return EvaluationRun(document, record=False, opens=opens, **limits)
    except GoldError as error:
        raise EvaluationRefused("gold", error.faults[:20], error.hint) from None
    except KnotworkError as error:
        parameter = getattr(error, "parameter", _parameter(error))
        hint = (
            error.hint
            if parameter != "contexts"
            else 'contexts are [{"name": ..., "reviews": [{"text": ...}]}], or flat rows'
        )
        if parameter == "target":
            parameter = "seed" if isinstance(request.target, CheckedSeed) else "script"
        raise EvaluationRefused(parameter, [error.message], _for_clients(hint)) from None


async def run_evaluation(
    request: ClientEvaluation, *, cancel: asyncio.Event, on_event: Callable[[Event], None]
) -> "EvaluationReport":
    """Run the evaluation of a client in a separate thread and event loop. ``on_event`` is called in the caller's event loop.

    The clients of the models belong to the caller's loop. Raises ``EvaluationRefused`` before any call.
    """
    from .worker import run_in_worker

    loop = asyncio.get_running_loop()

    def forward(event: Event) -> None:
        loop.call_soon_threadsafe(on_event, event)

    events = Events([forward])
    process_traces.subscribe(events)
    request = evolve(request, candidates={name: _across(each, loop) for name, each in request.candidates.items()})

    async def work(cancelled: asyncio.Event) -> "EvaluationReport":
        return await open_evaluation(request).run(events, cancelled)

    return await run_in_worker(work, cancel)


def _across(candidate: ClientCandidate, home: asyncio.AbstractEventLoop) -> ClientCandidate:
    """Return a candidate whose client can be used in another event loop than ``home``."""
    from .worker import CrossLoopClient

    return evolve(candidate, model=evolve(candidate.model, client=CrossLoopClient(candidate.model.client, home)))


def stored_report(report: "EvaluationReport") -> dict[str, Any]:
    """Return a report with everything that ``report_page`` needs, as a JSON object."""
    return {
        "status": report.status, "evaluated": report.evaluated, "passed": report.passed, "sentences": report_sentences(report),
        "report": report.as_json(), "items": list(report.rows()), "texts": report.item_texts(),
    }  # fmt: skip


def report_page(stored: Mapping[str, Any]) -> str:
    """Return the HTML page of a stored report."""
    from .reports import render_evaluation

    return render_evaluation(stored["report"], stored["items"], stored["texts"])


def _parameter(error: KnotworkError) -> str:
    name = type(error).__name__
    return {"RequirementError": "require", "ContextError": "contexts", "TableError": "contexts"}.get(name, "target")


def _for_clients(hint: str) -> str:
    """Return a hint; "" if it names an option of the command line or a target that clients do not have."""
    return "" if "--" in hint or "ask:" in hint else hint


def report_sentences(report: "EvaluationReport") -> list[str]:
    """Return the result in sentences: the scores, the comparisons, the requirements, then notes."""
    from ..report.evaluation_text import notes, sentence, verdicts

    document = report.as_json()
    required = [
        f"requirement {'met' if each.holds else 'not met' if each.holds is False else 'not decided'}: {each.text} ({each.message})"
        for each in report.requirements
    ]
    lines = [
        *(sentence(document, name) for name in report.first.fields),
        *verdicts(document),
        *required,
        *notes(document),
    ]
    return [printable(line)[:500] for line in lines]
