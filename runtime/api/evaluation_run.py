"""Sets up and runs an evaluation: opens targets, gold table, contexts and models, and stores the run. ``evals`` is the public module.

Everything is read and checked before the first call: a fault in the gold table, a seed or a requirement costs nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import asdict, evolve, fields, frozen

from ...lang.diagnostic import suggestion
from ..errors import RequestError
from ..loops.evaluate.call_record import EvaluationRecorder
from ..loops.evaluate.call_record import load as load_stored
from ..loops.evaluate.call_record import start as start_record
from ..loops.evaluate.evaluation import (
    Candidate,
    EvaluationSettings,
    Progress,
    annotator_agreement,
    evaluate,
)
from ..loops.evaluate.evaluation_report import EvaluationReport as EvaluationNumbers
from ..loops.evaluate.evaluation_report import emit_scores
from ..loops.evaluate.field_scores import Answer
from ..loops.evaluate.finished_results import contexts_of, item_answers, read_lines, seed_answers
from ..loops.evaluate.gate import (
    Baseline,
    Requirement,
    judge,
    known_paths,
    read_baseline,
    read_requirement,
    save_baseline,
    with_baseline,
)
from ..loops.evaluate.gold import GoldError
from ..loops.evaluate.script_target import ScriptTarget
from ..loops.evaluate.seed_target import SeedTarget
from ..loops.evaluate.targets import Target
from ..loops.loop_events import loop_events
from ..runs.journal import hash_of
from . import seed_batches
from .call_workers import distribute
from .clients import OpenModel, spec_of
from .evaluation_batches import EvaluationBatches, check_services, resumed_batches
from .evaluation_batches import check as check_batches
from .evaluation_document import KEYS, absolute, check_numbers, read_candidates
from .evaluation_gold import bound_gold, gold_rows
from .evaluation_targets import PlannedCandidate, check_options, check_seed_file, is_seed, open_target
from .evaluation_workers import check_workers, distributes_calls, open_workers
from .functions import taken_host

if TYPE_CHECKING:
    import asyncio

    from ..events import Events
    from .evaluation_estimate import EvaluationEstimate

__all__ = ["EvaluationReport", "EvaluationRun", "GoldError", "Progress"]


@frozen
class EvaluationReport(EvaluationNumbers):
    """The report of an evaluation.

    ``report[NAME]`` is the report of a candidate, and ``report[NAME].FIELD.METRIC`` is a score with ``value``, ``low`` and
    ``high``. Fields are also in ``report[NAME].fields``. ``report.compare(A, B).FIELD.METRIC`` is a paired comparison with
    ``verdict`` and ``difference``. ``requirements`` says which requirements hold, ``passed`` says whether all of them hold, and
    ``evaluated`` says whether enough items were answered. ``rows()`` yields a JSON object for each answer. ``path`` is the folder
    of a stored run.
    """

    def to_html(self, path: "str | Path | None" = None) -> str:
        """Return the report as one self-contained HTML page; with ``path``, also write it to this file. Raises ``OSError``."""
        from .reports import render_evaluation

        page = render_evaluation(self.as_json(), list(self.rows()), self.item_texts())
        if path is not None:
            Path(path).write_text(page + "\n", encoding="utf-8")
        return page

    def save_baseline(self, path: "str | Path") -> None:
        """Write a baseline: the first candidate's scores, and for each item whether the answer was right. Raises ``OSError``."""
        save_baseline(self, Path(path))


class EvaluationRun:
    """A checked evaluation; ``run`` may be called once.

    ``document`` has the keys of a ``.eval.json`` file; values may also be objects: a seed, a data frame, a client. Relative
    paths start from ``folder`` (None: the current folder). ``record``: whether the run is stored. ``resume`` (an id or a
    folder) continues a stored run without repeating its calls; ``force`` continues it even if something changed. With
    ``opens=False``, no model is opened: the evaluation is then only checked. ``limits`` are those of ``ModelOpener``,
    the options of ``WorkerOptions``, which distribute the evaluation, and ``functions`` and ``operations`` for scripts (as for
    ``lwt.run``; they are not stored). ``cache=True`` selects the user's call cache.

    Raises ``GoldError`` for faults of the gold table, the results or the baseline, ``SeedError`` and ``ScriptError`` for a target with
    errors, ``RequirementError``, ``TableError``, ``RequestError``, ``RunError`` and ``OSError``, all before any call.
    """

    def __init__(
        self, document: Mapping[str, Any], *, folder: Path | None = None, record: bool = True, resume: "str | Path | None" = None,
        force: bool = False,
        max_concurrency: int | Literal["auto"] = 8, strict_types: bool = False, agreement: bool = True, encoding: str = "utf-8",
        opens: bool = True, warn: "Callable[[str], None] | None" = None, **limits: Any,
    ) -> None:  # fmt: skip
        from .clients import ModelOpener, concurrency_of
        from .seed_workers import WorkerOptions

        max_concurrency = concurrency_of(max_concurrency)
        self._workers, self._host = WorkerOptions.taken(limits), taken_host(limits)
        batch = seed_batches.taken(limits)
        self._stored = load_stored(resume) if resume is not None else None
        for name in document:
            if name not in KEYS:
                raise RequestError(name[:80], "unknown setting", suggestion(name, KEYS))
        check_numbers(document)
        self.document = absolute(document, folder)
        given = self.document
        if given.get("target") is None or given.get("gold") is None:
            missing = "target" if given.get("target") is None else "gold"
            raise RequestError(missing, "it is missing", "an evaluation needs a target and a gold table")
        candidates = read_candidates(given.get("candidates"))
        if isinstance(given["target"], str | Path) and is_seed(given["target"]):
            check_seed_file(given["target"])
        table = gold_rows(given["gold"], given.get("gold_query"), encoding)
        self.warnings: list[str] = []
        contexts = self._contexts(given, candidates, encoding) if is_seed(given["target"]) else ()
        use_filter = bool(given.get("filter", True))
        threshold = given.get("threshold", 0.8)
        first = open_target(
            given["target"],
            contexts,
            use_filter=use_filter,
            group=given.get("group"),
            threshold=threshold,
            host=self._host,
        )
        if (self._host.functions or self._host.operations) and not isinstance(first, ScriptTarget):
            name = "functions" if self._host.functions else "operations"
            raise RequestError(name, f"only scripts can call them, and {first.name} is not a script", "omit them")
        self.gold = bound_gold(first, *table)
        others = {id(given["target"]): first, str(given["target"]): first}
        self._opens = opens
        self._planned = [
            self._plan(name, each, first, others, contexts, use_filter) for name, each in candidates.items()
        ]
        self.settings = EvaluationSettings(
            given.get("repeat", 1), given.get("tolerance", 0.0), threshold, given.get("k", 10), max_concurrency,
            strict_types, given.get("max_failed", 0.05), given.get("target_accuracy"), agreement,
        )  # fmt: skip
        self.target = first
        self.baseline: Baseline | None = None
        if given.get("baseline") is not None:
            self.baseline = read_baseline(Path(given["baseline"]), self.gold)
        self._known = known_paths(self.gold.columns, self.baseline is not None, first.kind == "ask")
        self.requirements: list[Requirement] = [self.read_requirement(text) for text in given.get("require") or ()]
        check_workers(self._workers, self._planned, max_concurrency)
        if batch is not None or (self._stored is not None and self._stored.uses_batches):
            limits.setdefault("cache", True)
        if opens:
            batch = resumed_batches(batch, self._stored)
            if batch is not None:
                check_batches(self._planned, cache=limits.get("cache"), workers=self._workers, record=record)
        else:
            batch = None
        self._limits = limits
        self._opener: ModelOpener = ModelOpener(warn, max_concurrency=max_concurrency, **limits)
        if opens and distributes_calls(self._workers, self._planned):
            distribute(self._opener, self._workers, max_concurrency)
        self._clients = self._opened() if opens else []
        self._finished = {each.name: self._finished_answers(each) for each in self._planned if each.results}
        if opens and limits.get("price") is None:
            self._require_price()
        self._force, self._record, self._price = force, record, limits.get("price")
        self.recorder: EvaluationRecorder | None = None
        self._batches: EvaluationBatches | None = None
        if batch is not None:
            self._batches = EvaluationBatches(
                self._planned, self.gold, self.settings, limits.get("cache"), self._opener, batch
            )

    @property
    def spec(self) -> str:
        """The spec of the first candidate whose model is given as a spec; "" if there is no such candidate."""
        return next((each.llm for each in self._planned if isinstance(each.llm, str)), "")

    def _require_price(self) -> None:
        """Raise ``RequestError`` if a requirement on the cost can't be decided because the model's price is unknown."""
        from ...adapters.llm.prices import find_price

        spec = spec_of(self._planned[0].llm)
        named = any("run.cost" in each.paths.values() for each in self.requirements)
        if named and spec and find_price(spec.strip()) is None:
            hint = "give --price IN/OUT, US dollars per million prompt and completion tokens (Python: price=(0.25, 2))"
            raise RequestError("require", f"run.cost is unknown: the price of {spec} is not known", hint)

    def read_requirement(self, text: str) -> Requirement:
        """Read a requirement on the numbers of this evaluation. Raises ``RequirementError``."""
        return read_requirement(text, self._known)

    def agreement(self) -> dict[str, dict[str, Any]]:
        """Map each column to the agreement of its annotators; empty without annotators. No model is called."""
        return annotator_agreement(self.gold)

    @property
    def asks(self) -> bool:
        """Whether a model is called."""
        return any(each.llm is not None for each in self._planned)

    def estimate(self) -> "EvaluationEstimate":
        """Return the estimated items, calls, tokens and cost. No model is called. Raises ``RequestError`` and ``NotConfigured``."""
        from .evaluation_estimate import estimate_evaluation

        stored = "" if self._stored is None else self._stored.head["model"]
        return estimate_evaluation(
            self.gold,
            self._planned,
            self.settings.repeat,
            price=self._price,
            stored=stored,
            warnings=self.warnings,
            max_calls=self._opener.ledger.max_calls,
            max_tokens=self._opener.ledger.max_tokens,
            max_cost=self._opener.ledger.max_cost,
        )

    def store(self) -> EvaluationRecorder:
        """Open the run's folder and return its recorder. Raises ``RunError``."""
        identity = hash_of(json.dumps(self._identity(), sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
        if self._stored is not None:
            self.recorder = self._stored.resume(identity, self.gold.hash, force=self._force)
        else:
            asked = sum(each.llm is not None for each in self._planned)
            cells = sum(len(item.labels) for item in self.gold.items) * self.settings.repeat * max(1, asked)
            document = _as_json(absolute(self.document, Path.cwd()))
            about = {"document": document, "settings": asdict(self.settings), "identity": self._identity()}
            self.recorder = start_record(
                about, identity, self.gold.hash, name=self.target.name, model=self.spec, items=cells,
                batch=self._batches is not None,
            )  # fmt: skip
        return self.recorder

    async def check_services(self) -> None:
        """Raise ``LLMError`` if a new evaluation uses batches, and a model's service has none or can't be used."""
        if self._batches is not None and self._stored is None:
            await check_services(self._planned)

    async def run(
        self, events: "Events | None" = None, cancel: "asyncio.Event | None" = None, progress: Progress | None = None,
        say: "Callable[[str], None] | None" = None,
    ) -> EvaluationReport:  # fmt: skip
        """Ask the candidates, and return the report with comparisons, requirements and warnings.

        ``say`` receives messages about batches. Raises ``RunError`` before any call, and with batches ``BatchWaiting``, ``BatchFailed``
        and other ``LLMError``s.
        """
        if self.recorder is None:
            await self.check_services()
        recorder = self.store() if self._record and self.recorder is None else self.recorder
        try:
            with loop_events(events, "eval", self.target.name, recorder.run_id if recorder is not None else "") as loop:
                report = await self._report(recorder, events, cancel, progress, say)
                emit_scores(report, events)
                loop.status = report.status
            return report if recorder is None else self._ended(recorder, report)
        finally:
            if recorder is not None:
                recorder.close()

    async def _report(
        self, recorder: EvaluationRecorder | None, events: "Events | None", cancel: "asyncio.Event | None",
        progress: Progress | None, say: "Callable[[str], None] | None",
    ) -> EvaluationReport:  # fmt: skip
        opened = open_workers(
            self._workers, self._planned, self.gold, self.settings, self._limits, self._opener.ledger, recorder
        )
        settings = self.settings
        async with self._opener, opened as workers:
            if (calls := self._opener.workers) is not None:
                calls.events = events
                settings = evolve(settings, max_concurrency=calls.window)
                if self.asks:
                    await calls.start()
            candidates: Sequence[Candidate] = self._candidates()
            if self._batches is not None and recorder is not None:
                candidates = await self._batches.fill(candidates, recorder, events, cancel, say)
            numbers = await evaluate(
                self.gold, candidates, settings, recorder=recorder, events=events, cancel=cancel, progress=progress,
                workers=workers,
            )  # fmt: skip
        told = {each.name: getattr(numbers, each.name) for each in fields(EvaluationNumbers)}
        shown = {each.name: each.llm.name for each in self._planned if isinstance(each.llm, OpenModel)}
        told["candidates"] = {
            name: evolve(each, spec=shown[name]) if name in shown else each for name, each in numbers.candidates.items()
        }
        told |= {"prices": dict(self._opener.ledger.prices), "warnings": (*self.warnings, *numbers.warnings)}
        report = EvaluationReport(**told)
        if self.baseline is not None:
            report = with_baseline(report, self.baseline)
        return judge(report, self.requirements, self.baseline)

    def _ended(self, recorder: EvaluationRecorder, report: EvaluationReport) -> EvaluationReport:
        """Write the report into the run's folder, and record the end of the run."""
        from ...adapters.llm import Usage

        damage = ""
        try:
            report.write(recorder.path)
        except OSError as error:
            damage = f"the report can't be written to {recorder.path}: {error.strerror}"
        figures = [candidate.figures for candidate in report.candidates.values()]
        costs = [each.cost for each in figures if each.cost is not None]
        usage = Usage.sum([each.usage for each in figures])
        status = {"stopped": "partial"}.get(report.status, report.status)
        recorder.priced(report.prices)
        recorder.end(status, report.seconds, usage, sum(costs) if costs else None, sum(each.calls for each in figures))
        damage = damage or recorder.damage
        return evolve(report, warnings=(*report.warnings, damage)) if damage else report

    def _contexts(
        self, given: Mapping[str, Any], candidates: Mapping[str, Mapping[str, Any]], encoding: str
    ) -> Sequence[Any]:
        """Return the contexts. If the document has none, return the contexts that the results of a finished run name."""
        if given.get("contexts") is not None:
            from .evaluation_targets import read_contexts

            contexts = read_contexts(
                given["contexts"], group=given.get("group"), text=given.get("text"), columns=given.get("columns"),
                query=given.get("query"), encoding=encoding, warn=self.warnings.extend,
            )  # fmt: skip
            self.warnings += [
                f"{context.name or context.index}: {each}" for context in contexts for each in context.warnings
            ][:20]
            return contexts
        results = [each["results"] for each in candidates.values() if each.get("results")]
        if not results:
            raise RequestError(
                "contexts", "the contexts of the seed are missing", "give --contexts FILE (Python: contexts=)"
            )
        found, _ = read_lines(Path(results[0]))
        if not found:
            raise RequestError(
                "contexts", "the contexts of the seed are missing", "items.jsonl has no contexts: give --contexts FILE"
            )
        self.warnings.append(
            "without contexts, a gold review that the results lack can't be told from an unknown one: it is refused"
        )
        return contexts_of(found)

    def _plan(
        self, name: str, given: Mapping[str, Any], first: Target, others: dict[Any, Target], contexts: Sequence[Any], use_filter: bool
    ) -> PlannedCandidate:  # fmt: skip
        target = first
        if (own := given.get("target")) is not None:
            known = others.get(id(own)) or (others.get(str(own)) if isinstance(own, str | Path) else None)
            target = known or open_target(
                own,
                contexts,
                use_filter=use_filter,
                group=self.document.get("group"),
                threshold=self.document.get("threshold", 0.8),
                host=self._host,
            )
            others[id(own)] = target
            if target.kind != first.kind:
                raise RequestError("candidates", f"{target.name} is not a target of the same kind as {first.name}")
            columns = target.expected(list(self.gold.columns), [])
            lacking = [column for column in self.gold.columns if column not in columns]
            if lacking:
                raise RequestError(
                    "candidates", f"{target.name} has no {', '.join(lacking)}, which {self.gold.name} labels"
                )
        if given.get("results") is not None:
            if given.get("llm") is not None:
                raise RequestError("candidates", f"{name} has both llm and results", "give one of them")
            return PlannedCandidate(name, target, None, results=str(given["results"]))
        llm = given.get("llm")
        if llm is None and self._opens:
            from .clients import default_spec

            llm = (self._stored.head["model"] if self._stored is not None else "") or default_spec()
        models, options = dict(given.get("models") or {}), dict(given.get("options") or {})
        check_options(target.kind, name, models, options)
        return PlannedCandidate(name, target, llm, models, options)

    def _with_panel(self, planned: PlannedCandidate) -> dict[str, Any]:
        """Return the options of a candidate. Options that name further models are replaced by the panel of these models."""
        from .seed_models import OPTIONS, panel_of

        options = dict(planned.options)
        if not isinstance(planned.target, SeedTarget) or not any(name in options for name in OPTIONS):
            return options
        panel = panel_of(planned.target.seed, options, self._opener)
        return {name: value for name, value in options.items() if name not in OPTIONS} | {"panel": panel}

    def _opened(self) -> list[tuple[Any, dict[str, Any], dict[str, Any]]]:
        """Open the models of all candidates, so that a wrong spec or an unknown price is refused before any call."""
        return [
            (
                None if each.llm is None else self._open(each.llm),
                {name: self._open(one) for name, one in each.models.items()},
                self._with_panel(each),
            )
            for each in self._planned
        ]

    def _open(self, model: Any) -> Any:
        if isinstance(model, OpenModel):
            return self._opener.limited(model.client, model.spec, model.name)
        return self._opener.open(model)

    def _candidates(self) -> list[Candidate]:
        """Return the candidates with their open models, or with the answers of finished runs."""
        return [
            Candidate(
                each.name, each.target, client, spec_of(each.llm), models, options,
                *self._finished.get(each.name, (None, ())),
            )
            for each, (client, models, options) in zip(self._planned, self._clients, strict=True)
        ]  # fmt: skip

    def _finished_answers(self, planned: PlannedCandidate) -> tuple[Mapping[tuple[int, str], Answer], tuple[str, ...]]:
        """Return the answers of a candidate from the results of a finished run, and notes on them. Raises ``GoldError``."""
        results, rows = read_lines(Path(planned.results), getattr(planned.target, "seed", None))
        if rows:
            return item_answers(planned.target, self.gold, rows, planned.results)
        if isinstance(planned.target, SeedTarget):
            return seed_answers(planned.target, self.gold, results, planned.results)
        raise GoldError([f"{planned.results} has results of a seed, but {planned.target.name} is not a seed"])

    def _identity(self) -> dict[str, Any]:
        """Return everything that determines the calls."""
        texts = hash_of("\n".join(self.target.text(item) for item in self.gold.items).encode("utf-8", "surrogatepass"))
        return {
            "kind": self.target.kind, "texts": texts, "repeat": self.settings.repeat, "strict_types": self.settings.strict_types,
            "filter": self.document.get("filter", True),
            "candidates": [
                [
                    each.name, each.llm if isinstance(each.llm, str) else "", hash_of(each.target.source.encode("utf-8", "surrogatepass")),
                    {name: model for name, model in each.models.items() if isinstance(model, str)}, _as_json(each.options), each.results,
                ]
                for each in self._planned
            ],
        }  # fmt: skip


def _as_json(value: Any) -> Any:
    """Return a value as JSON. Paths become strings; lists of more than 1,000 elements and other objects become null."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value] if len(value) <= 1000 else None
    if isinstance(value, Path):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else None
