"""Recorded runs: the journal, the folder and the recorder of a run.

Runs can be found by id, read even if damaged, and reopened. The folder of a run has mode 0700, its files have mode 0600.
``run.jsonl`` is the journal: one JSON object per line, each with a checksum and appended with one write. The first line is the
head of the run. All loops, scripts and Formula Seeds record their runs in this way; the modules ``run_store``, ``seed_store``,
``question_store``, ``compile_store``, ``ranking_results`` and ``call_record`` define additional records. See
``docs/design/state.md#durable-runs``.

A line ends in ``, "check": "<crc32 of the object without this member, in hex>"}``. A last line without a line end was cut off when the
process was killed, and is ignored. Any other incomplete line is damage; damage is reported and never used as an answer.
"""

import json
import os
import re
import secrets
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from attrs import define, field

from ...adapters.llm import Usage
from ...adapters.llm.budget import Price
from ...adapters.permissions import private_folder
from ...adapters.user_folders import NoHome as NoHome
from ...adapters.user_folders import state_folder
from ...lang.errors import KnotworkError
from ..results import Failed, Outcome, Recorded, Run, StepResult, plain, prices_json

_CHECK = re.compile(rb', "check": "([0-9a-f]{8})"\}\n\Z')
_CHECK_LENGTH = len(', "check": "00000000"}\n')


class Busy(Exception):
    """Raised if another process is writing the journal."""


@define
class Damage:
    """A damaged line. ``start`` is the line's position, ``end`` the position of the next line, ``reason`` a description of the damage."""

    start: int
    end: int
    reason: str


def records(path: Path) -> "Iterator[tuple[int, dict[str, Any]] | Damage]":
    """Yield every complete record with its end position, and a ``Damage`` for every damaged line. Raises ``OSError``."""
    position = 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return  # the line was cut off when the process was killed
            start, position = position, position + len(line)
            try:
                yield position, _read(line)
            except (ValueError, RecursionError) as error:
                yield Damage(start, position, str(error))


def _read(line: bytes) -> dict[str, Any]:
    found = _CHECK.search(line, max(0, len(line) - _CHECK_LENGTH))
    if found and zlib.crc32(line[: found.start()] + b"}") != int(found[1], 16):
        raise ValueError("the checksum is wrong")
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("the record is not an object")
    return record


@define
class Journal:
    """A journal open for appending, with an exclusive lock (flock). ``damage`` says why writing stopped."""

    _file: int
    _end: int
    """File size after the last complete record; no other process writes the file."""
    damage: str = ""

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Open the journal (or create it) and cut off an incomplete last line. Raises ``Busy`` and ``OSError``."""
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if sys.platform != "win32":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            end = _cut_torn(file)
        except BlockingIOError:
            os.close(file)
            raise Busy from None
        except BaseException:
            os.close(file)
            raise
        return cls(file, end)

    @property
    def size(self) -> int:
        """The journal's size in bytes."""
        return self._end

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record with one write. If writing fails, remove the partial record and stop writing."""
        if self.damage or self._file < 0:
            return
        try:
            body = json.dumps(record, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):  # a plugin's value is not JSON and can't be reused
            kept = {name: part for name, part in record.items() if name != "value"} | {"input_hash": ""}
            body = json.dumps(kept).encode()
        line = b'%b, "check": "%08x"}\n' % (body[:-1], zlib.crc32(body))
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("only part of the record was written")
            self._end += len(line)
        except OSError as error:
            self.damage = f"the run can't be recorded any further: {error.strerror or error}"
            with suppress(OSError):  # an incomplete line is cut off when the journal is opened again
                os.ftruncate(self._file, self._end)

    def sync(self) -> None:
        """Wait until all appended records are on disk.

        Waiting protects against a power cut; a killed process loses no records in any case.
        """
        if self.damage or self._file < 0:
            return
        try:
            os.fsync(self._file)
        except OSError as error:
            self.damage = f"the run can't be recorded any further: {error.strerror or error}"

    def close(self) -> None:
        """Close the file and release the lock; repeated calls are allowed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _cut_torn(file: int) -> int:
    """Cut the file after its last line end, and return the remaining size."""
    size = os.fstat(file).st_size
    keep = size
    while keep > 0:
        begin = max(0, keep - 65_536)
        newline = os.pread(file, keep - begin, begin).rfind(b"\n")
        if newline >= 0:
            keep = begin + newline + 1
            break
        keep = begin
    if keep < size:
        os.ftruncate(file, keep)
    return keep


FILE = "run.jsonl"
SEED, RANK, COMPILE, ASK, EVAL, TUNE, EACH = "seed", "rank", "compile", "ask", "eval", "tune", "each"
"""The ``kind`` in the head of a run of a Formula Seed, a ranking, a compilation, a question, an evaluation, a tuning, or a script over
rows.

The head of a script's run has no kind.
"""
LOOPS = (RANK, COMPILE, ASK)

_OTHERS = {
    SEED: ("a Formula Seed run", "continue it with: knotwork seed run SEED CONTEXTS --resume {0}"),
    RANK: ("a ranking", "continue it with: knotwork rank --resume {0}"),
    COMPILE: ("a compilation", "repeat the same knotwork seed compile command to continue it"),
    ASK: ("a question", "repeat the same knotwork ask --state DIR command to continue it"),
    EVAL: ("an evaluation", "continue it with: knotwork eval --resume {0}"),
    TUNE: (
        "a tuned seed's run",
        "continue it with: knotwork seed tune SEED GOLD --resume {0} (and all other options of the run)",
    ),
    EACH: (
        "a script's run over a table",
        "continue it with: knotwork run SCRIPT --each TABLE --resume {0} (and all other options of the run)",
    ),
    None: ("a script run", "continue it with: knotwork run --resume {0}"),
}


class RunError(KnotworkError):
    """Raised if a run can't be opened, or can't be resumed as requested. ``hint`` suggests a fix."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


def base_directory() -> Path:
    """Return the folder of saved runs: ``runs`` in ``KNOTWORK_HOME`` if that is set, else in the user's state folder. Raises ``NoHome``."""
    return state_folder() / "runs"


def begin(
    base: Path | None, *, script: str, script_hash: str, kind: str | None = None, input_hash: str = "", model: str = "",
    name: str = "", mode: str = "", options: Mapping[str, Any] | None = None, files: Mapping[str, bytes] = MappingProxyType({}),
    hashes: Mapping[str, str] | None = None,
) -> tuple[str, Path, Journal]:  # fmt: skip
    """Create a folder for a run in ``base`` (None: the default) and return the run's id, the folder's path and the journal.

    ``files`` are written to the folder; the journal begins with the run's head. ``script`` is the text of the script, the seed or
    the request. ``model`` is the spec as the user wrote it (without a key). ``options`` are further parameters, as JSON. ``hashes``
    are those of the files that the script names. If writing fails, raises ``RunError`` and leaves no folder.
    """
    base = base_directory() if base is None else base
    head = {
        **({} if kind is None else {"kind": kind}), "script_hash": script_hash, "input_hash": input_hash, "versions": versions(),
        "model": model, "name": name, "script": script, "mode": mode, "options": dict(options or {}),
        **({"file_hashes": dict(hashes)} if hashes else {}),
    }  # fmt: skip
    try:
        private_folder(base)
        run_id, path = _new_folder(base)
        try:
            for name, body in files.items():
                _write_private(path / name, body)
            journal = Journal.open(path / FILE)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise
    except OSError as error:
        raise _unkept(base, error.strerror or str(error)) from error
    journal.append({"record": "run_started", "run": run_id, "time": _now(), **head})
    if journal.damage:  # fail now, not after a thousand calls
        journal.close()
        shutil.rmtree(path, ignore_errors=True)
        raise _unkept(base, journal.damage.rpartition(": ")[2])
    return run_id, path, journal


def find_folder(run: str | Path, base: Path | None = None) -> Path:
    """Return the folder of a run; ``run`` is an id or the folder itself. Raises ``RunError`` if the run does not exist."""
    path = Path(run)
    if not (path / FILE).is_file():
        base = base_directory() if base is None else base
        path = base / str(run)
        if Path(run).name != str(run) or not (path / FILE).is_file():
            raise RunError(f"run {str(run)!r} does not exist", "knotwork runs lists the runs")
    return path


def kind_of(run: str | Path, base: Path | None = None) -> str | None:
    """Return the kind of a run: the ``kind`` in its head, None for a script or a damaged head. Raises ``RunError``."""
    for found in whole_records(find_folder(run, base)):
        if not isinstance(found, Damage):
            return found[1].get("kind")
    return None


@define
class StoredRun:
    """A recorded run, read from its folder. ``damage`` describes the unreadable records; the calls of these records are repeated.

    ``size`` is the size of the journal, counting only complete lines. ``status`` is the status at the end of the run; "" if the
    run has not ended. ``answers`` maps a step, an item and the hash of an input to the recorded answer. Subclasses set ``kind``
    and read their additional records.
    """

    kind: ClassVar[str | None] = None
    run_id: str
    path: Path
    head: dict[str, Any]
    damage: list[str] = field(factory=list)
    size: int = 0
    status: str = ""
    answers: dict[tuple[str, int | None, str], Recorded] = field(factory=dict, repr=False)

    @classmethod
    def load(cls, run: str | Path, base: Path | None = None) -> Self:
        """Read a run; ``run`` is an id or a folder. Raises ``RunError`` if the run does not exist or its head is damaged."""
        path = find_folder(run, base)
        stored: Self | None = None
        for found in whole_records(path):
            if isinstance(found, Damage):
                if stored is not None:
                    stored.damage.append(f"{FILE} is damaged at byte {found.start}: {found.reason}")
                    stored.size = found.end
                continue
            end, record = found
            if stored is None:
                if record.get("kind") != cls.kind:
                    whose, hint = _OTHERS.get(record.get("kind"), ("of an unknown kind", ""))
                    raise RunError(f"run {path.name} is {whose}", hint.format(path.name))
                stored = cls(record["run"], path, record)
            else:
                try:
                    stored.take(record)
                except (KeyError, TypeError, ValueError):
                    stored.damage.append(f"{FILE} has a record of an unknown form before byte {end}")
            stored.size = end
        if stored is None:
            raise RunError(f"{path / FILE} has no complete record", "start a new run")
        return stored

    def take(self, record: dict[str, Any]) -> None:
        """Add a record. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if the record has an unknown form."""
        match record["record"]:
            case "step_done" | "item_done":
                if record["status"] == "done" and record["input_hash"]:
                    key = (record["step"], record["item"], record["input_hash"])
                    if not isinstance(output := record["output"], str):
                        raise TypeError("the output is not a string")
                    failed = tuple(Failed(*each) for each in record.get("failed_items", ()))
                    self.answers[key] = Recorded(output, record.get("value", output), failed)
            case "run_finished":
                self.status = str(record["status"])
            case "run_resumed":
                self.status = ""

    def reopen(self, recorder: "Callable[[Journal, Self], R]", changed: Sequence[str] = (), force: bool = False) -> "R":
        """Open the run, so that it can be continued, and return its recorder.

        ``changed`` has a message for each change since the run began. ``recorder`` is a function that creates the recorder from
        the journal and the stored run; the run is read again first if another process has continued it. Raises ``RunError``.
        With ``force``, changes and damage are accepted.
        """
        if (changed or self.damage) and not force:
            message = f"run {self.run_id} can't be resumed: {' and '.join([*changed, *self.damage[:3]])}"
            raise RunError(message, "--force repeats the affected calls; without --resume a new run starts")
        name = self.path.name
        try:
            journal = Journal.open(self.path / FILE)
        except Busy:
            raise RunError(f"run {name} is active in another process", "wait for that process, or stop it") from None
        except OSError as error:
            raise RunError(f"run {name} can't be written: {error.strerror}") from error
        try:
            made = recorder(journal, type(self).load(self.path) if journal.size != self.size else self)
            made.append({"record": "run_resumed", "time": _now()})
            if made.damage:
                raise RunError(f"run {name} can't be written: {made.damage.rpartition(': ')[2]}")
        except BaseException:
            journal.close()
            raise
        return made


@define
class RunRecorder:
    """Writes the records of a run; implements ``results.Record``. Only one process at a time can write (flock).

    If a record can't be written (for example because the disk is full), recording stops but the run continues; ``damage`` is the
    reason.
    """

    run_id: str
    path: Path
    _journal: Journal
    _answers: Mapping[tuple[str, int | None, str], Recorded] = field(factory=dict, repr=False)

    @property
    def damage(self) -> str:
        """The reason why recording stopped early; "" if recording has not stopped."""
        return self._journal.damage

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the recorded answer for the same input; None if no answer is recorded."""
        return self._answers.get((step, item, input_hash))

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Record an answer for one item of EACH, or from one call of a loop."""
        self.append({"record": "item_done", "step": step, "item": item, "status": "done", **_answer(outcome, seconds)})

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Record the end of a step."""
        record: dict[str, Any] = {"record": "step_done", "step": result.id, "item": None, "status": result.status}
        if outcome is not None:
            record |= _answer(outcome, result.seconds)
        else:
            record |= {"input_hash": "", "reason": result.reason, "kind": result.failed.kind if result.failed else ""}
            if result.calls:  # the calls of a failed step have a cost too
                record |= figures(result.seconds, result.usage, result.cost, result.calls)
        self.append(record)

    def finished(self, run: Run) -> None:
        """Record the end of a script's run and close the file."""
        self.end(run.status, run.seconds, run.usage, run.cost, run.calls)

    def end(self, status: str, seconds: float, usage: Usage, cost: float | None, calls: int, **more: Any) -> None:
        """Record the end of the run and close the file."""
        self.append({"record": "run_finished", "status": status, **figures(seconds, usage, cost, calls), **more})
        self.close()

    def priced(self, prices: Mapping[str, Price]) -> None:
        """Record the known prices of the run's models. ``prices`` maps specs to prices; if it is empty, nothing is recorded."""
        if prices:
            self.append({"record": "models_priced", **prices_json(prices)})

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record."""
        self._journal.append(record)

    def sync(self) -> None:
        """Wait until all records are on disk."""
        self._journal.sync()

    def close(self) -> None:
        """Close the file and release the lock; repeated calls are allowed."""
        self._journal.close()


R = TypeVar("R", bound=RunRecorder)


def figures(seconds: float, usage: Usage, cost: float | None, calls: int) -> dict[str, Any]:
    """Return the time, tokens, cost and calls of a run or a step in the format of records."""
    return {"seconds": round(seconds, 3), **stored_usage(usage), "cost": cost, "calls": calls}


def stored_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens in the format of records."""
    mark = {"estimated": True} if usage.estimated else {}
    return {"usage": [usage.prompt_tokens, usage.completion_tokens], **mark}


def _answer(outcome: Outcome, seconds: float) -> dict[str, Any]:
    made: dict[str, Any] = {
        "input_hash": outcome.input_hash, "output": outcome.output, "finish_reason": outcome.finish_reason,
        "attempts": outcome.attempts, **stored_usage(outcome.usage),
        "cost": outcome.cost, "seconds": round(seconds, 3), "reused": outcome.reused,
    }  # fmt: skip
    if outcome.input_hash and outcome.value != outcome.output:
        made["value"] = plain(outcome.value)
    if outcome.input_hash and outcome.failed_items:
        made["failed_items"] = [[each.kind, each.message, each.hint, None, each.item] for each in outcome.failed_items]
    return made


def _now() -> str:
    """Return the current time in the format of records."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def hash_of(body: bytes) -> str:
    """Return the hash that identifies a script, a seed or an input."""
    from blake3 import blake3

    return blake3(body).hexdigest(length=16)


def versions() -> dict[str, str]:
    """Return the software versions for a run's head."""
    from importlib.metadata import version

    return {"knotwork": version("knotwork"), "python": ".".join(map(str, sys.version_info[:3]))}


def whole_records(path: Path) -> "Iterator[tuple[int, dict[str, Any]] | Damage]":
    """Yield the ``records`` in a run's folder; check that the first record is the head of a run. Raises ``RunError``."""
    try:
        for place, found in enumerate(records(path / FILE)):
            if place == 0:
                _check_head(path, found)
            yield found
    except OSError as error:
        raise RunError(f"{path / FILE} can't be read: {error.strerror}") from error


def _check_head(path: Path, found: "tuple[int, dict[str, Any]] | Damage") -> None:
    if isinstance(found, Damage):
        raise RunError(f"{path / FILE} is damaged at byte {found.start}: {found.reason}", "start a new run")
    head, texts = found[1], ("run", "time", "script_hash", "input_hash", "model", "name", "script", "mode")
    if head.get("record") != "run_started" or any(type(head.get(name)) is not str for name in texts):
        raise RunError(
            f"{path / FILE} does not begin with run_started", "it is not a run, or another version recorded it"
        )


def _unkept(base: Path, reason: str) -> RunError:
    return RunError(f"the run can't be recorded in {base}: {reason}", "set KNOTWORK_HOME to a folder with free space")


def _new_folder(base: Path) -> tuple[str, Path]:
    while True:
        run_id = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        try:
            (base / run_id).mkdir(mode=0o700)
        except FileExistsError:
            continue
        return run_id, base / run_id


def _write_private(path: Path, body: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(body)
