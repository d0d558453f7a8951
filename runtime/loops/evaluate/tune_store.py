"""The stored run of a tuning: each answered call is saved at once, and a file lists all descriptions, example sets and trials.

``runtime.runs.journal`` creates the folder of the run. Its records are those of ``call_record``, with the kind "tune". A
resumed tuning makes the same decisions again from the saved answers, so that no answer is paid for twice. Each process rewrites
``tune.jsonl``::

    {"record": "split", "train": {"items", "groups"}, "dev", "test"}
    {"record": "description", "description", "fields", "reason"?}
    {"record": "example_set", "size", "items": [keys]}
    {"record": "trial", "trial", "description", "examples", "items", "scores", "round", "kept"}
    {"record": "test", "trial", "comparison", "original", "tuned"}
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from attrs import define, field

from ...runs.journal import TUNE, begin
from .call_record import EvaluationRecorder, StoredEvaluation

TRIALS = "tune.jsonl"


class StoredTuning(StoredEvaluation):
    """A recorded tuning."""

    kind = TUNE


load = StoredTuning.load


def start(
    about: Mapping[str, Any], identity: str, gold_hash: str, *, name: str, model: str, base: Path | None = None
) -> EvaluationRecorder:
    """Create the folder of a tuning and return its recorder. ``about`` describes the tuning. Raises ``RunError``."""
    script = json.dumps(about, ensure_ascii=False, indent=1)
    return EvaluationRecorder(
        *begin(base, kind=TUNE, script=script, script_hash=identity, input_hash=gold_hash, model=model, name=name)
    )  # fmt: skip


@define
class TrialLog:
    """Writes ``tune.jsonl`` line by line; without a folder, writes nothing.

    ``damage`` is the reason why a line could not be written.
    """

    folder: Path | None = None
    damage: str = field(default="", init=False)
    _file: TextIO | None = field(default=None, init=False)

    def write(self, record: str, **values: Any) -> None:
        """Append a line."""
        if self.folder is None or self.damage:
            return
        try:
            if self._file is None:
                self._file = open(self.folder / TRIALS, "w", encoding="utf-8")  # noqa: SIM115  it stays open for all lines
            self._file.write(json.dumps({"record": record, **values}, ensure_ascii=False, default=str) + "\n")
            self._file.flush()
        except OSError as error:
            self.damage = f"{self.folder / TRIALS} can't be written: {error.strerror}"

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
