"""Durable runs of a script over the rows of a table: every answer is saved at once, so that a killed run repeats no answered call.

``runtime.runs.journal`` creates the folder of a run. Its records are those of a script's run; the name of a step is preceded by
the number of its row, from 0, such as ``12/draft``. The results are saved in the file ``seeds.result_store.FILE``, a line for each
finished row. A row is finished when its line is written; the answers of finished rows are not held in memory.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import Factory, define, field

from ...lang.trees.lwt import Script
from ..models.caller import refuse_keys
from ..results import Outcome, Recorded, Run, StepResult
from ..runs.journal import EACH, RunRecorder, StoredRun, begin, hash_of
from ..seeds.result_store import FILE as RESULTS
from ..seeds.result_store import ResultLog, StoredResults
from .row_results import RowResult
from .run_store import changed_files, script_text


def start(
    script: Script, *, table: str = "", model: str = "", options: Mapping[str, Any] | None = None, base: Path | None = None,
    hashes: Mapping[str, str] | None = None,
) -> "RowRecorder":  # fmt: skip
    """Create a run folder for ``script`` and return its recorder. Raises ``RunError`` and ``NotConfigured``.

    ``table`` is the hash of the table's file ("" for other tables). ``model`` is the spec as the user wrote it. ``options`` are the
    run's other parameters as JSON. ``hashes`` are the hashes of the files that the script names.
    """
    refuse_keys(script)
    text = script_text(script)
    return RowRecorder(
        *begin(
            base, kind=EACH, script=text, script_hash=_text_hash(text), input_hash=table, model=model, name=script.source.name,
            mode=script.mode, options=options, hashes=hashes,
        )
    )  # fmt: skip


@define
class StoredRows(StoredRun):
    """A recorded run of a script over rows. ``finished`` are the positions of the rows with a complete result."""

    kind = EACH
    finished: Mapping[int, str] = field(
        default=Factory(lambda self: StoredResults.read(self.path / RESULTS).complete, takes_self=True), repr=False
    )

    def results(self) -> StoredResults:
        """Return the results of the run, as far as they are saved. Raises ``OSError``."""
        return StoredResults.read(self.path / RESULTS)

    def differences(
        self, script: Script, table: str, options: Mapping[str, Any], hashes: Mapping[str, str] | None = None
    ) -> list[str]:
        """Describe what has changed since the run started. ``options`` are those that determine the rows and the calls."""
        found = []
        if _text_hash(script_text(script)) != self.head["script_hash"]:
            found.append("the script changed")
        found += changed_files(self.head, hashes)
        before = self.head["input_hash"]
        if table and before and table != before:
            found.append("the table changed")
        earlier = self.head.get("options", {})
        found += [f"{flag} changed" for name, flag in _FIXED.items() if earlier.get(name) != options.get(name)]
        return found

    def resume(
        self, script: Script, *, table: str = "", options: Mapping[str, Any], force: bool = False,
        hashes: Mapping[str, str] | None = None,
    ) -> "RowRecorder":  # fmt: skip
        """Open the run to continue it, and return its recorder, which recalls the saved answers.

        Raises ``RunError`` if the script, a file that it names, the table or the options have changed, or if a record is damaged. With
        ``force``, changes and damage are accepted: rows with a complete result are kept, and calls whose prompt changed are made again.
        """
        return self.reopen(
            lambda journal, stored: RowRecorder(
                self.run_id, self.path, journal, stored.answers, complete=dict(stored.finished)
            ),
            self.differences(script, table, options, hashes), force,
        )  # fmt: skip

    def take(self, record: dict[str, Any]) -> None:
        """Add a record. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if the record has an unknown form."""
        if record["record"] in ("step_done", "item_done") and int(record["step"].partition("/")[0]) in self.finished:
            return
        super().take(record)


load = StoredRows.load

_FIXED = {"table": "--each", "columns": "--column", "key": "--key", "shard": "--shard", "all_steps": "--all-steps"}
"""The options that a resumed run must share with the run, with their names. The size of a sample may change."""


@define
class RowRecorder(RunRecorder):
    """Writes the records of a run over rows. ``complete`` maps rows with a complete result to their names."""

    complete: Mapping[int, str] = field(factory=dict, repr=False)
    _results: ResultLog = field(init=False, repr=False)

    @_results.default
    def _default_results(self) -> ResultLog:
        return ResultLog(self.path / RESULTS)

    def results(self) -> StoredResults:
        """Return the results of the run so far. Raises ``OSError``."""
        return StoredResults.read(self._results.path)

    @property
    def results_damage(self) -> str:
        """The reason why not all results are in the folder of the run; "" if they are."""
        return self._results.damage

    def row(self, index: int) -> "RowRecord":
        """Return the record of the script's run for one row."""
        return RowRecord(self.run_id, self, index)

    def row_done(self, result: RowResult) -> None:
        """Save the result of a row."""
        self._results.write(result.as_json())

    def close(self) -> None:
        """Close the files and release the lock; repeated calls are allowed."""
        self._results.close()
        super().close()


@define
class RowRecord:
    """Saves the run of one row in the journal of the run over all rows; implements ``results.Record``."""

    run_id: str
    _run: RowRecorder
    _index: int

    @property
    def damage(self) -> str:
        """Always "": the run over all rows warns once."""
        return ""

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the saved answer for the same input; None if there is none."""
        return self._run.recall(self._name(step), item, input_hash)

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Save the answer for an item."""
        self._run.item_done(self._name(step), item, outcome, seconds)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Save how a step ended."""
        from attrs import evolve

        self._run.step_done(evolve(result, id=self._name(result.id)), outcome)

    def finished(self, run: Run) -> None:
        """Do nothing: ``RowRecorder.row_done`` saves the end of the row."""

    def close(self) -> None:
        """Do nothing: the journal belongs to the run over all rows."""

    def _name(self, step: str) -> str:
        return f"{self._index}/{step}"


def _text_hash(text: str) -> str:
    return hash_of(text.encode("utf-8", "surrogatepass"))
