"""``seed.tune``: reads seed, gold table and contexts, opens the models, stores the run, and returns the tuned seed.

Everything is read and checked before the first call. The work is done by ``loops.evaluate.tune``.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve

from ...adapters.tables.port import TableError as TableError
from ...lang.diagnostic import suggestion
from ..errors import RequestError
from ..loops.evaluate.call_record import EvaluationRecorder
from ..loops.evaluate.field_scores import metric_meant
from ..loops.evaluate.gold import GoldError as GoldError
from ..loops.evaluate.seed_target import SeedTarget
from ..loops.evaluate.splits import labelled_items, refuse_small, split_items
from ..loops.evaluate.tune import Tuner, metrics_of, reserve_for_test
from ..loops.evaluate.tune_results import MOST_TRIALS, Reserve, TuneSettings
from ..loops.evaluate.tune_results import Tuned as Tuned
from ..loops.evaluate.tune_store import TrialLog
from ..loops.evaluate.tune_store import load as load_stored
from ..loops.evaluate.tune_store import start as start_record
from ..loops.evaluate.variants import MOST_DESCRIPTIONS, read_document
from ..loops.loop_events import loop_events
from ..runs.journal import hash_of
from ..seeds.reviews import Context
from . import check_names, run_here, warning_reporter
from .evaluation_gold import bound_gold, gold_rows
from .evaluation_targets import open_target, read_contexts

if TYPE_CHECKING:
    from ...lang.trees.seed import FormulaSeed
    from ..events import Events

SETTINGS = (
    "writer", "field", "metric", "trials", "descriptions", "random_state", "tolerance", "group", "text", "columns", "query", "gold_query",
    "encoding", "max_concurrency", "strict_types", "options", "record", "resume", "force", "max_calls", "max_tokens", "max_cost", "price",
    "rate", "cache",
)  # fmt: skip


async def tune(seed: Any, gold: Any, *, contexts: Any, llm: Any = None, **settings: Any) -> Tuned:
    """Tune the descriptions and examples of ``seed`` on the labelled items of ``gold``, and return the result with the tuned seed.

    ``seed`` is a path or a seed; ``gold``, ``contexts``, ``group``, ``text``, ``columns``, ``query``, ``gold_query`` and ``encoding`` are
    as for ``evals.run``. ``llm`` (a spec or a client) is the model that the seed is tuned for. Settings:

    - ``writer``: the model that writes descriptions, using wrong answers to training items ("none": no descriptions are
      written; default: ``llm``, or "none" if ``llm`` is the local model). ``descriptions``: number of sets of descriptions to
      write (0 to 8, default 4).
    - ``field``: the field to tune (default: all fields with labels). ``metric``: the metric by which trials are ranked
      (default: the first metric of the field; for several fields, the share of right values). ``tolerance``: maximum difference
      from the label at which a number still counts as right.
    - ``trials``: maximum number of variants to try (2 to 24, default 24). ``random_state`` determines the split and all other
      random choices.
    - ``record=True`` stores the run in a folder. ``resume`` (an id or a folder) continues a stored run without repeating its calls;
      ``force`` continues it even if something changed.
    - ``max_calls``, ``max_tokens``, ``max_cost``, ``price``, ``rate``, ``cache``, ``max_concurrency``, ``strict_types`` and
      ``options`` are as for other runs; a part of the limits is reserved for the test. ``events`` receives events; ``cancel``
      stops the calls.

    Raises ``GoldError`` for faults of the gold table and for too few labels, ``SeedError``, ``RequestError``, ``RunError`` and
    ``NotConfigured``, all before any call.
    """
    given = dict(settings)
    check_names(given, (*SETTINGS, "events", "cancel"))
    events, cancel = given.pop("events", None), given.pop("cancel", None)
    given.setdefault("record", given.get("resume") is not None)
    run = TuneRun(seed, gold, contexts=contexts, llm=llm, warn=warning_reporter(events), **given)
    return await run.run(events, cancel)


def tune_sync(seed: Any, gold: Any, *, contexts: Any, llm: Any = None, **settings: Any) -> Tuned:
    """Call ``tune`` from synchronous code. In async code and notebooks, use ``await seed.tune(...)``."""
    return run_here(lambda: tune(seed, gold, contexts=contexts, llm=llm, **settings), "seed.tune")


class TuneRun:
    """A checked tuning; ``run`` may be called once. The arguments and the exceptions are those of ``tune``."""

    def __init__(
        self, seed: Any, gold: Any, *, contexts: Any, llm: Any = None, writer: Any = None, field: str | None = None,
        metric: str | None = None, trials: int = MOST_TRIALS, descriptions: int = 4, random_state: int = 0, tolerance: float = 0.0,
        group: str | None = None, text: str | None = None, columns: Mapping[str, str] | None = None, query: str | None = None,
        gold_query: str | None = None, encoding: str = "utf-8", max_concurrency: int | Literal["auto"] = 8, strict_types: bool = False,
        options: Mapping[str, Any] | None = None, record: bool = True, resume: "str | Path | None" = None, force: bool = False,
        warn: "Callable[[str], None] | None" = None, **limits: Any,
    ) -> None:  # fmt: skip
        from ..seeds.compute import load, require
        from .clients import ModelOpener, concurrency_of, default_spec

        _check_number("trials", trials, 2, MOST_TRIALS)
        _check_number("descriptions", descriptions, 0, MOST_DESCRIPTIONS)
        self._stored = load_stored(resume) if resume is not None else None
        self.seed: FormulaSeed = load(seed)
        require(self.seed)
        if self.seed.form == "000":
            raise RequestError(
                "seed", "a seed of the formula form can't have examples", "convert it: knotwork seed convert SEED"
            )
        self.warnings: list[str] = []
        self.contexts: list[Context] = read_contexts(
            contexts, group=group, text=text, columns=columns, query=query, encoding=encoding, meta=self.seed.meta,
            warn=lambda warnings: self.warnings.extend(warnings),
        )  # fmt: skip
        target = open_target(self.seed, self.contexts)
        assert isinstance(target, SeedTarget)  # noqa: S101  for the type checker
        self.name, table = target.name, gold_rows(gold, gold_query, encoding)
        self.gold = bound_gold(target, *table)
        chosen = self._columns(field)
        self.notes = refuse_small(self.gold, chosen)
        self.settings = TuneSettings(
            chosen, self._metric(metric, chosen), trials, descriptions, random_state, concurrency_of(max_concurrency), strict_types,
            tolerance,
            dict(options or {}),
        )  # fmt: skip
        self.split = split_items(self.gold, chosen, random_state)
        self.model = default_spec() if llm is None else llm
        self.spec = self.model if isinstance(self.model, str) else ""
        self._opener = ModelOpener(warn, max_concurrency=concurrency_of(max_concurrency), **limits)
        self._client = self._opener.open(self.model)
        self.writer = self._chosen_writer(writer)
        self._writer = (
            None
            if self.writer is None
            else self._client
            if self.writer is self.model
            else self._opener.open(self.writer)
        )
        self.reserve = self._reserved()
        self._record, self._force = record, force
        self.recorder: EvaluationRecorder | None = None

    def _columns(self, field: str | None) -> tuple[str, ...]:
        """Return the fields to tune."""
        fields = self.seed.field_by_name
        labelled = [name for name in self.gold.columns if name in fields and labelled_items(self.gold, [name])]
        if field is not None and field not in labelled:
            raise RequestError("field", f"{self.gold.name} labels no field {field!r:.80}", suggestion(field, labelled))
        if not labelled:
            raise GoldError(
                [f"{self.gold.name} labels no field of {self.name}"],
                "outputs can't be tuned: label the fields of reviews",
            )
        if others := [name for name in self.gold.columns if name not in fields]:
            self.warnings.append(f"outputs are not tuned: {', '.join(others)}")
        return (field,) if field is not None else tuple(labelled)

    def _metric(self, metric: str | None, columns: tuple[str, ...]) -> str:
        if len(columns) > 1:
            if metric is not None:
                raise RequestError(
                    "metric", f"several fields are tuned: {', '.join(columns)}", "choose one of them with field"
                )
            return ""
        known = metrics_of(self.gold, columns[0])
        if metric is not None and metric not in known:
            meant = metric_meant(metric, known)
            hint = f"did you mean {meant}?" if meant else f"its metrics are {', '.join(known)}"
            raise RequestError("metric", f"{columns[0]} can't be tuned for {metric!r:.60}", hint)
        return metric or known[0]

    def _chosen_writer(self, writer: Any) -> Any:
        """Return the model that writes descriptions; None if none are written."""
        if writer == "none" or self.settings.descriptions == 0:
            return None
        if writer is not None:
            return writer
        if self.spec == "local" or self.spec.startswith("local:"):
            self.notes.append(
                "no descriptions are written: the local model is too small for it; name a model with writer"
            )
            return None
        return self.model

    def _reserved(self) -> Reserve:
        """Return the calls, tokens and cost that are reserved for the test.

        Raises ``RequestError`` if nothing is left for trials.
        """
        ledger = self._opener.ledger
        price = ledger.prices.get(self.spec or "custom client")
        reserve = reserve_for_test(self.seed, self.contexts, self.split, self.spec, price)
        least = len(self.split.train) + len(self.split.dev)
        for name, limit, need, shown in (
            ("max_calls", ledger.max_calls, reserve.calls + least, f"{reserve.calls:,} calls"),
            ("max_tokens", ledger.max_tokens, reserve.tokens, f"{reserve.tokens:,} tokens"),
            ("max_cost", ledger.max_cost, reserve.cost, f"{reserve.cost:.4f} US dollars"),
        ):  # fmt: skip
            if limit is not None and limit <= need:
                raise RequestError(
                    name, f"{limit:g} is too little: the test of {len(self.split.test)} items may need {shown}, which are reserved",
                    f"more than {need:,.4g} leaves something for the trials; knotwork seed tune tries up to {MOST_TRIALS} variants",
                )  # fmt: skip
        return reserve

    def store(self) -> EvaluationRecorder:
        """Open the run's folder and return its recorder. Raises ``RunError``."""
        about = self._identity()
        identity = hash_of(json.dumps(about, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
        if self._stored is not None:
            self.recorder = self._stored.resume(identity, self.gold.hash, force=self._force)
        else:
            self.recorder = start_record(about, identity, self.gold.hash, name=self.name, model=self.spec)
        return self.recorder

    def _identity(self) -> dict[str, Any]:
        """Return everything that determines the calls."""
        from ..seeds.seed_store import seed_text

        target = SeedTarget(self.seed, self.contexts)
        texts = "\n".join(target.text(item) for item in self.gold.items).encode("utf-8", "surrogatepass")
        settings = self.settings
        return {
            "seed": hash_of(seed_text(self.seed).encode("utf-8", "surrogatepass")), "texts": hash_of(texts),
            "llm": self.spec, "writer": self.writer if isinstance(self.writer, str) else "", "columns": list(settings.columns),
            "metric": settings.metric, "trials": settings.trials, "descriptions": settings.descriptions,
            "random_state": settings.random_state, "tolerance": settings.tolerance, "strict_types": settings.strict_types,
            "options": dict(settings.options),
        }  # fmt: skip

    async def run(
        self,
        events: "Events | None" = None,
        cancel: asyncio.Event | None = None,
        told: Callable[[str], None] = lambda text: None,
    ) -> Tuned:
        """Tune the seed and return the result.

        ``told`` is called with each progress message. Raises ``RunError`` before any call.
        """
        recorder = self.store() if self._record and self.recorder is None else self.recorder
        log = TrialLog(None if recorder is None else recorder.path)
        try:
            async with self._opener:
                run_id = "" if recorder is None else recorder.run_id
                tuner = Tuner(
                    self.seed, self.contexts, self.gold, self.split, self.settings, self._client, self._writer, self._opener.ledger,
                    self.spec, self.reserve, recorder, log, events, cancel, told,
                )  # fmt: skip
                with loop_events(events, "tune", self.name, run_id) as loop:
                    made = await tuner.run()
                    loop.status = made.status
            path = None if recorder is None else recorder.path
            made = evolve(
                made, notes=(*self.notes, *made.notes), run_id=run_id, path=path, prices=dict(self._opener.ledger.prices),
                warnings=tuple(self.warnings),
            )  # fmt: skip
            if made.seed is not None:
                made = evolve(made, seed=self._signed(made))
            if recorder is not None:
                figures = made.figures
                recorder.priced(made.prices)
                recorder.end(
                    made.status, figures.seconds, figures.usage, figures.cost, figures.calls,
                    verdict=made.verdict,
                )  # fmt: skip
            damage = log.damage or (recorder.damage if recorder is not None else "")
            return evolve(made, warnings=(*made.warnings, damage)) if damage else made
        finally:
            log.close()
            if recorder is not None:
                recorder.close()

    def _signed(self, made: Tuned) -> "FormulaSeed":
        """Return the tuned seed with the key ``tuned_from``: the original seed, the gold table, the models and the scores."""
        from ..seeds.seed_store import seed_text

        assert made.seed is not None  # noqa: S101  for the type checker
        winner = made.trials[made.winner]
        comparison = made.comparison
        test: dict[str, Any] = {"verdict": made.verdict}
        if comparison is not None and made.original is not None and made.tuned is not None:
            test |= {
                "items": comparison.items, "groups": comparison.groups, "original": _rounded(made.original.value),
                "tuned": _rounded(made.tuned.value), "difference": _rounded(comparison.difference), "low": _rounded(comparison.low),
                "high": _rounded(comparison.high), "p": _rounded(comparison.p),
            }  # fmt: skip
        origin = {
            "seed": self.name, "seed_hash": hash_of(seed_text(self.seed).encode("utf-8", "surrogatepass")), "gold": self.gold.name,
            "gold_hash": self.gold.hash, "llm": self.spec, "writer": self.writer if isinstance(self.writer, str) else "",
            "fields": list(self.settings.columns), "metric": made.metric, "random_state": self.settings.random_state,
            "split": dict(made.split), "trials": len(made.trials), "trial": made.winner, "description": winner.description,
            "examples": len(made.seed.examples), "test": test, "run": made.run_id,
        }  # fmt: skip
        return read_document({**made.seed.document, "tuned_from": origin})


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _check_number(name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise RequestError(name, f"expected a whole number from {least} to {most}, not {value!r:.40}")
