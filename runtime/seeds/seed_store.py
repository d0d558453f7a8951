"""Durable runs of a seed: each extraction is saved immediately, so that a killed run can be resumed without repeating extractions.

``runtime.runs.journal`` creates the folder of a run. Its records::

    {"record": "run_started", "kind": "seed", "run", "time", "script_hash", "input_hash", "versions", "model", "name",
    "script", ...}
    {"record": "extraction_done", "context", "review", "digest", "extraction", "invalid", "failed", "calls", "usage", "cost",
    "more"?}
    {"record": "item_done", "step": "resolve FIELD" | "reduce NAME", "item", "input_hash", "output", "usage", "cost", ...}
    {"record": "batch", "number", "step", ...} (``runtime.models.cache_batches``)
    {"record": "context_done", "context", "name", "status", "counts"}
    {"record": "run_finished", "status", "seconds", "usage", "cost", "calls"}

``script`` is the seed's text, ``input_hash`` identifies the contexts ("" for a stream), ``digest`` is the hash of all inputs of an
extraction except the model. The results are saved in the file ``result_store.FILE``. See ``docs/design/state.md#durable-runs``.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from attrs import define, field

from ...lang.trees.seed import FormulaSeed
from ..results import Record
from ..runs.journal import SEED, RunRecorder, StoredRun, begin, hash_of, stored_usage
from .extraction import ReviewExtraction, rare_fields, stored_extraction
from .result_store import FILE as RESULTS
from .result_store import ResultLog, StoredResults
from .reviews import Review
from .seed_results import Extraction, SeedResult


def start(
    seed: FormulaSeed,
    *,
    contexts: str = "",
    model: str = "",
    options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> "SeedRecorder":
    """Create a run folder for ``seed`` and return its recorder. Raises ``RunError``.

    ``contexts`` is the hash of the contexts (``file_hash``, ``contexts_hash``; "" for a stream). ``model`` is the spec as the user wrote
    it. ``options`` are the run's other parameters as JSON, such as the path of the contexts, which is needed to resume the run.
    """
    text = seed_text(seed)
    return SeedRecorder(
        *begin(
            base, kind=SEED, script=text, script_hash=_text_hash(text), input_hash=contexts, model=model,
            name=seed.task_name or seed.source.name, options=options,
        )
    )  # fmt: skip


@define
class StoredSeed(StoredRun):
    """A recorded run of a seed."""

    kind = SEED
    contexts_done: int = 0
    batches: list[dict[str, Any]] = field(factory=list, repr=False)
    """The records about batches."""
    _known: dict[tuple[int, int], bytes] = field(factory=dict, repr=False)

    @property
    def script(self) -> str:
        """The seed's text."""
        return str(self.head["script"])

    @property
    def extracted(self) -> int:
        """Number of saved extractions."""
        return len(self._known)

    def results(self) -> StoredResults:
        """Return the results of the run, as far as they are saved. Raises ``OSError``."""
        return StoredResults.read(self.path / RESULTS)

    def differences(self, seed: FormulaSeed | None, contexts: str) -> list[str]:
        """Describe what has changed since the run started. ``contexts`` is the hash of the contexts, "" if unknown."""
        found = []
        if seed is not None and seed_hash(seed) != self.head["script_hash"]:
            found.append("the seed changed")
        before = self.head["input_hash"]
        if contexts and before and contexts != before:
            found.append("the contexts changed")
        return found

    def resume(self, seed: FormulaSeed | None = None, *, contexts: str = "", force: bool = False) -> "SeedRecorder":
        """Open the run to continue it, and return its recorder, which recalls the saved extractions.

        Raises ``RunError`` if the seed or the contexts (each is compared only if given) have changed, or if a record is damaged. With
        ``force``, changes and damage are accepted: a review is then extracted again if its inputs have changed or its record is lost.
        """
        return self.reopen(
            lambda journal, stored: SeedRecorder(
                self.run_id, self.path, journal, stored.answers, batches=tuple(stored.batches), known=stored._known
            ),
            self.differences(seed, contexts), force,
        )  # fmt: skip

    def take(self, record: dict[str, Any]) -> None:
        """Add a record. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if the record has an unknown form."""
        super().take(record)
        match record["record"]:
            case "extraction_done":
                place, digest = (record["context"], record["review"]), record["digest"]
                extraction, invalid = record["extraction"], record["invalid"]
                if not (isinstance(digest, str) and isinstance(extraction, dict) and isinstance(invalid, dict)):
                    raise TypeError("not an extraction")
                if not record["failed"]:
                    self._known[place] = orjson.dumps([digest, extraction, invalid, record.get("more", {})])
            case "batch":
                if not isinstance(record["number"], int) or not isinstance(record["step"], str):
                    raise TypeError("not a batch")
                self.batches.append(record)
            case "context_done":
                self.contexts_done += 1
            case "run_resumed":
                self.contexts_done = 0


load = StoredSeed.load


@define
class SeedRecorder(RunRecorder):
    """Writes the records of a run of a seed; implements ``seed_run.ExtractionRecord``."""

    _results: ResultLog = field(init=False, repr=False)

    batches: Sequence[Mapping[str, Any]] = ()
    """The records about batches of earlier processes."""
    _known: Mapping[tuple[int, int], bytes] = field(factory=dict, repr=False)

    @property
    def calls(self) -> Record:
        """The record of the calls about several reviews."""
        return self

    def recall_extraction(self, context: int, review: Review, digest: str) -> Extraction | None:
        """Return the saved extraction from the same review with the same inputs, or None."""
        kept = self._known.get((context, review.index))
        if kept is None:
            return None
        before, extraction, invalid, more = orjson.loads(kept)
        if before != digest:
            return None
        return stored_extraction(review, extraction, invalid, more)

    def extracted(self, context: int, read: ReviewExtraction) -> None:
        """Save an extraction."""
        found, spent = read.extraction, read.spent if read.unsaved is None else read.unsaved
        self.append(
            {
                "record": "extraction_done", "context": context, "review": found.review, "digest": read.digest,
                "extraction": found.extraction, "invalid": found.invalid, "failed": found.failed, "calls": spent.calls,
                **stored_usage(spent.usage), "cost": spent.cost,
                **({"more": more} if (more := rare_fields(found)) else {}),
            }
        )  # fmt: skip

    @_results.default
    def _default_results(self) -> ResultLog:
        return ResultLog(self.path / RESULTS)

    @property
    def results_path(self) -> Path:
        """The file of the results in the folder of the run."""
        return self._results.path

    @property
    def results_damage(self) -> str:
        """The reason why not all results are in the folder of the run; "" if they are."""
        return self._results.damage

    def close(self) -> None:
        """Close the files and release the lock; repeated calls are allowed."""
        self._results.close()
        super().close()

    def context_done(self, result: SeedResult) -> None:
        """Save the end of a context."""
        self.append(
            {
                "record": "context_done", "context": result.index, "name": result.name, "status": result.status,
                "counts": result.counts.as_json(),
            }
        )  # fmt: skip
        self._results.append(result)


def file_hash(path: Path) -> str:
    """Return the hash of a file of contexts. The hash is the same as ``hash_of`` of the file's bytes. Raises ``OSError``."""
    from blake3 import blake3

    hashed = blake3()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            hashed.update(block)
    return hashed.hexdigest(length=16)


def contexts_hash(contexts: Any) -> str:
    """Return a hash of contexts in memory. It is "" for an iterator, which can't be read twice, and for values that are not JSON."""
    if not isinstance(contexts, list | tuple):
        return ""
    try:
        return hash_of(orjson.dumps(contexts, option=orjson.OPT_SORT_KEYS))
    except TypeError:
        return ""


def seed_text(seed: FormulaSeed) -> str:
    """Return the text that identifies a seed in saved runs: its source document, or the formatted seed if it was built in code."""
    return seed.source.text or (json.dumps(dict(seed.document), sort_keys=True) if seed.document else repr(seed))


def seed_hash(seed: FormulaSeed) -> str:
    """Return the hash of the seed's text, as in the head of a stored run."""
    return _text_hash(seed_text(seed))


def _text_hash(text: str) -> str:
    return hash_of(text.encode("utf-8", "surrogatepass"))
