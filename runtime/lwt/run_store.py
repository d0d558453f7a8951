"""Run directories: a run is saved while it is running, so that it can be listed, and resumed after a kill.

A run is a folder (mode 0700) with ``run.jsonl`` (0600), one JSON object per line, each appended with one write::

    {"record": "run_started", "run", "time", "script_hash", "input_hash", "versions", "model", "name", "script", "options"}
    {"record": "item_done", "step", "item", "input_hash", "output", "value"?, "finish_reason", "attempts", "usage", ...}
    {"record": "step_done", "step", "status", "input_hash", "output", "value"?, "reason", "usage", "cost", "seconds", ...}
    {"record": "run_finished", "status", "seconds", "usage", "cost", "calls"}

and ``input.json``, the run's input. ``value`` is present only if it differs from the output. ``runtime.runs.journal`` defines
the file's rules. Model calls are at-least-once: calls in flight are repeated. See ``docs/design/state.md#durable-runs``.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from attrs import define, field, frozen

from ...lang.trees.lwt import Script
from ..models.caller import refuse_keys
from ..results import Failed, Outcome, Recorded, Run, StepResult, plain
from ..runs.directories import FILE, RunError, base_directory, begin, hash_of, read_run, resumed, versions
from ..runs.journal import Journal

__all__ = [
    "Answers",
    "Recorder",
    "RunError",
    "RunInfo",
    "Stored",
    "base_directory",
    "list_runs",
    "load",
    "start",
    "take_record",
]

INPUT = "input.json"


@frozen
class RunInfo:
    """A saved run in a list: ``status`` is "running or interrupted" if its end was not written."""

    run_id: str
    path: Path
    started: str
    script: str
    status: str
    model: str
    kind: str = "script"
    """"script", or the kind in the run's head: "seed" (which ``seeds.seed_store`` reads), "rank", "compile"."""


def start(
    script: Script,
    *,
    input: Any = None,  # the name in the language
    model: str = "",
    options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> "Recorder":
    """Create a run directory for ``script`` and return its recorder.

    ``model`` is a spec as the user wrote it (without a key); ``options`` are the run's other parameters, as JSON. Raises
    ``NotConfigured`` for a script with a key in place of a model's name, before anything is written.
    """
    refuse_keys(script)
    base = base_directory() if base is None else base
    text = _text(script)
    written = _canonical(input)
    head = {
        "script_hash": hash_of(text.encode("utf-8", "surrogatepass")), "input_hash": hash_of(written),
        "versions": versions(), "model": model, "name": script.source.name, "script": text, "mode": script.mode,
        "options": dict(options or {}),
    }  # fmt: skip
    return Recorder(*begin(base, head, {INPUT: written}))


class Answers(Protocol):
    """The data of a saved script run: answers by step, item and input hash, and its end."""

    answers: dict[tuple[str, int | None, str], Recorded]
    status: str


@define
class Stored:
    """A saved run: its initial parameters and its completed work.

    ``damage`` names unreadable records: their calls are repeated. ``size`` is the journal's size, counting only complete
    records.
    """

    run_id: str
    path: Path
    head: dict[str, Any]
    damage: list[str] = field(factory=list)
    size: int = 0
    answers: dict[tuple[str, int | None, str], Recorded] = field(factory=dict, repr=False)
    status: str = ""

    @property
    def script(self) -> str:
        """The script's text."""
        return str(self.head["script"])

    @property
    def input(self) -> Any:
        """The input, as JSON; None if the run had none."""
        try:
            return json.loads((self.path / INPUT).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"the input of run {self.run_id} can't be read: {error}") from error

    def differences(self, script: Script | None, input: Any) -> list[str]:
        """Return what has changed since the run started, in words."""
        found = []
        if script is not None and hash_of(_text(script).encode("utf-8", "surrogatepass")) != self.head["script_hash"]:
            found.append(f"the script changed{_changed_steps(self.script, script)}")
        if input is not None and hash_of(_canonical(input)) != self.head["input_hash"]:
            found.append("the input changed")
        return found

    def resume(self, script: Script | None = None, *, input: Any = None, force: bool = False) -> "Recorder":
        """Open the run for resuming and return its recorder, which recalls the saved answers.

        Raises ``RunError`` if ``script`` or ``input`` (each only if given) has changed, or a record is damaged. With
        ``force`` it is accepted: then steps are run again if their inputs changed or their record is lost.
        """

        def recorder(journal: Journal, again: bool) -> Recorder:
            answers = load(self.path).answers if again else self.answers
            return Recorder(self.run_id, self.path, journal, answers)

        return resumed(self, self.differences(script, input), force, recorder)


def load(run: str | Path, base: Path | None = None) -> Stored:
    """Read the run with this id, or in this folder. Raises ``RunError`` if it is missing or damaged."""
    return read_run(run, base, None, lambda path, head: Stored(head["run"], path, head), take_record)


def take_record(stored: Answers, record: dict[str, Any]) -> bool:
    """Add the content of ``record`` to a run that is being read; return False if its format is unknown."""
    try:
        match record["record"]:
            case "step_done" | "item_done":
                if record["status"] == "done" and record["input_hash"]:
                    key = (record["step"], record["item"], record["input_hash"])
                    if not isinstance(output := record["output"], str):
                        return False
                    lacked = tuple(Failed(*each) for each in record.get("failed_items", ()))
                    stored.answers[key] = Recorded(output, record.get("value", output), lacked)
            case "run_finished":
                stored.status = str(record["status"])
            case "run_resumed":
                stored.status = ""
    except (KeyError, TypeError):
        return False
    return True


def list_runs(base: Path | None = None) -> list[RunInfo]:
    """Return the saved runs, the latest first. Folders without a readable run are skipped."""
    base = base_directory() if base is None else base
    found = []
    try:
        paths = sorted(base.iterdir(), reverse=True)
    except OSError:  # missing or not readable
        return []
    for path in paths:
        try:
            with open(path / FILE, "rb") as file:
                head = json.loads(file.readline())
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 4096))
                tail = file.read().splitlines()[-1:]
            status = "running or interrupted"
            if tail and tail[0].startswith(b'{"record": "run_finished"'):
                status = json.loads(tail[0])["status"]
            found.append(
                RunInfo(
                    head["run"], path, head["time"], head["name"], status, head["model"], head.get("kind", "script")
                )
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


@define
class Recorder:
    """Writes a run's records; implements ``results.Record``. One process at a time (flock).

    If a record can't be written (a full disk), recording stops but the run continues; ``damage`` and the run's warnings have
    the reason.
    """

    run_id: str
    path: Path
    _journal: Journal
    _answers: Mapping[tuple[str, int | None, str], Recorded] = field(factory=dict, repr=False)

    @property
    def damage(self) -> str:
        """Why the run could not be saved completely; empty if it could."""
        return self._journal.damage

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the saved answer for the same input, or None."""
        return self._answers.get((step, item, input_hash))

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Save the answer for one of EACH's items."""
        self.append({"record": "item_done", "step": step, "item": item, "status": "done", **_answer(outcome, seconds)})

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Save the end of a step."""
        record: dict[str, Any] = {"record": "step_done", "step": result.id, "item": None, "status": result.status}
        if outcome is not None:
            record |= _answer(outcome, result.seconds)
        else:
            record |= {"input_hash": "", "reason": result.reason, "kind": result.failed.kind if result.failed else ""}
            if result.calls:  # a failed step has been paid for, too
                record |= {
                    "usage": [result.usage.prompt_tokens, result.usage.completion_tokens], "cost": result.cost,
                    "calls": result.calls, "seconds": round(result.seconds, 3),
                }  # fmt: skip
        self.append(record)

    def finished(self, run: Run) -> None:
        """Save the end of the run and close the file."""
        self.append(
            {
                "record": "run_finished", "status": run.status, "seconds": round(run.seconds, 3),
                "usage": [run.usage.prompt_tokens, run.usage.completion_tokens], "cost": run.cost, "calls": run.calls,
            }
        )  # fmt: skip
        self.close()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record."""
        self._journal.append(record)

    def close(self) -> None:
        """Close the file and release the lock."""
        self._journal.close()


def _answer(outcome: Outcome, seconds: float) -> dict[str, Any]:
    made: dict[str, Any] = {
        "input_hash": outcome.input_hash, "output": outcome.output, "finish_reason": outcome.finish_reason,
        "attempts": outcome.attempts, "usage": [outcome.usage.prompt_tokens, outcome.usage.completion_tokens],
        "cost": outcome.cost, "seconds": round(seconds, 3), "reused": outcome.reused,
    }  # fmt: skip
    if outcome.input_hash and outcome.value != outcome.output:
        made["value"] = plain(outcome.value)
    if outcome.input_hash and outcome.failed_items:
        made["failed_items"] = [[each.kind, each.message, each.hint, None, each.item] for each in outcome.failed_items]
    return made


def _canonical(value: Any) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RunError(f"the input is not JSON value, so the run can't be kept: {error}") from error


def _text(script: Script) -> str:
    """Return the script's text; a script built by a program is printed."""
    if script.source.text or not script.items:
        return script.source.text
    from ...lang.printer.lwt_printer import format_lwt

    return format_lwt(script)


def _changed_steps(before: str, script: Script) -> str:
    """Return the names of the changed steps; empty if only comments or layout changed."""
    from ...lang.parse.lwt import parse_lwt

    old = {step.id: step for step in parse_lwt(before, script.mode, None).steps}
    new = {step.id: step for step in script.steps}
    steps = [step for step in {**old, **new} if old.get(step) != new.get(step)]
    return f" (steps {', '.join(steps[:8])}{' …' if len(steps) > 8 else ''})" if steps else " (its layout)"
