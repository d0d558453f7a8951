"""A run's folder: created for a new run, found by id, reopened for resuming, and read with possible damage.

The folder has mode 0700, its files 0600; ``run.jsonl`` begins with the run's head. Scripts and Formula Seeds save their runs
in the same way; ``lwt.run_store`` and ``seeds.seed_store`` define their records. See ``docs/design/state.md#durable-runs``.
"""

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ...adapters.permissions import private_folder
from ...lang.errors import KnotworkError
from .journal import Busy, Damage, Journal, records

FILE = "run.jsonl"
SEED, RANK, COMPILE, ASK = "seed", "rank", "compile", "ask"
"""The ``kind`` in the head of a run of a Formula Seed, a ranking, a compilation or a question; a script's head has none."""
LOOPS = (RANK, COMPILE, ASK)

_OTHERS = {
    SEED: ("a Formula Seed's", "knotwork seed run --resume goes on with it"),
    RANK: ("a ranking", "knotwork rank --resume goes on with it"),
    COMPILE: ("a compilation", "the same knotwork seed compile goes on with it"),
    ASK: ("a question's", "the same knotwork ask --state DIR goes on with it"),
    None: ("a script's", "knotwork run --resume goes on with it"),
}


class RunError(KnotworkError):
    """A run can't be opened, or can't be resumed as requested. ``hint`` suggests a fix."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.hint = hint


def base_directory() -> Path:
    """Return the folder of saved runs: ``runs`` in ``KNOTWORK_HOME``, else in the user's state folder."""
    home = os.environ.get("KNOTWORK_HOME")
    if home:
        return Path(home) / "runs"
    from platformdirs import user_state_path

    return user_state_path("knotwork") / "runs"


def cache_file(spec: str) -> Path | None:
    """Return the call cache's file; None for a cassette, which is the record itself and may be edited."""
    if spec.startswith(("replay:", "record:")):
        return None
    home = os.environ.get("KNOTWORK_HOME")
    if home:
        return Path(home) / "cache" / "answers.sqlite"
    from platformdirs import user_cache_path

    return user_cache_path("knotwork") / "answers.sqlite"


def begin(base: Path, head: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[str, Path, Journal]:
    """Create a run's folder in ``base`` and return its id, its path and its journal.

    The folder has ``files``; the journal begins with ``head``, plus the run's id and time. If writing fails, raises
    ``RunError`` and leaves no folder.
    """
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
    if journal.damage:  # fail now and not after the first thousand calls
        journal.close()
        shutil.rmtree(path, ignore_errors=True)
        raise _unkept(base, journal.damage.rpartition(": ")[2])
    return run_id, path, journal


def find_folder(run: str | Path, base: Path | None = None) -> Path:
    """Return the folder of the run with this id, or this folder itself. Raises ``RunError`` if it is missing."""
    path = Path(run)
    if not (path / FILE).is_file():
        base = base_directory() if base is None else base
        path = base / str(run)
        if Path(run).name != str(run) or not (path / FILE).is_file():
            raise RunError(f"there is no run {str(run)!r}", "knotwork runs lists them")
    return path


class Kept(Protocol):
    """A saved run: ``damage`` names unreadable records; ``size`` is the journal's size, counting only complete records."""

    run_id: str
    path: Path
    damage: list[str]
    size: int


class Recording(Protocol):
    """Writes a run's records. ``damage``: why it no longer can."""

    @property
    def damage(self) -> str:
        """Why writing stopped, empty if it did not."""
        ...

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


K = TypeVar("K", bound=Kept)
R = TypeVar("R", bound=Recording)


def resumed(kept: Kept, changed: Sequence[str], force: bool, recorder: Callable[[Journal, bool], R]) -> R:
    """Open a run for resuming and return its recorder.

    ``changed`` lists in words what has changed since the run began. ``recorder`` creates the recorder on the journal; with
    True it reads the run again first, because another process has continued it meanwhile. Raises ``RunError``; for changes or
    damage only without ``force``.
    """
    if (changed or kept.damage) and not force:
        message = f"run {kept.run_id} can't be resumed: {' and '.join([*changed, *kept.damage[:3]])}"
        raise RunError(message, "--force asks again what is affected; without --resume a new run starts")
    name = kept.path.name
    try:
        journal = Journal.open(kept.path / FILE)
    except Busy:
        raise RunError(f"run {name} is under way in another process", "wait for it, or stop it") from None
    except OSError as error:
        raise RunError(f"run {name} can't be written: {error.strerror}") from error
    try:
        made = recorder(journal, journal.size != kept.size)
        made.append({"record": "run_resumed", "time": _now()})
        if made.damage:
            raise RunError(f"run {name} can't be written: {made.damage.rpartition(': ')[2]}")
    except BaseException:
        journal.close()
        raise
    return made


def read_run(
    run: str | Path,
    base: Path | None,
    kind: str | None,
    made: Callable[[Path, dict[str, Any]], K],
    take: Callable[[K, dict[str, Any]], bool],
) -> K:
    """Read the run with this id, or in this folder, which is of ``kind``. Raises ``RunError``.

    ``made`` starts the result from the run's head; ``take`` adds a record and returns whether its format is known.
    """
    path = find_folder(run, base)
    kept: K | None = None
    for found in whole_records(path):
        if isinstance(found, Damage):
            if kept is not None:
                kept.damage.append(f"{FILE} is damaged at byte {found.start}: {found.reason}")
                kept.size = found.end
            continue
        end, record = found
        if kept is None:
            if record.get("kind") != kind:
                whose, hint = _OTHERS.get(record.get("kind"), ("of another kind", ""))
                raise RunError(f"run {path.name} is {whose}", hint)
            kept = made(path, record)
        elif not take(kept, record):
            kept.damage.append(f"{FILE} has a record that is not as knotwork writes it, before byte {end}")
        kept.size = end
    if kept is None:
        raise RunError(f"{path / FILE} has no whole record", "start the run anew")
    return kept


def _now() -> str:
    """Return the current time in the format of records."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def hash_of(body: bytes) -> str:
    """Return the hash that identifies a script, seed or input."""
    from blake3 import blake3

    return blake3(body).hexdigest(length=16)


def versions() -> dict[str, str]:
    """Return the software versions for a run's head."""
    from importlib.metadata import version

    return {"knotwork": version("knotwork"), "python": ".".join(map(str, sys.version_info[:3]))}


def whole_records(path: Path) -> "Iterator[tuple[int, dict[str, Any]] | Damage]":
    """Yield the ``records`` of a run's folder after checking that the first is a run's head. Raises ``RunError``."""
    try:
        for place, found in enumerate(records(path / FILE)):
            if place == 0:
                _check_head(path, found)
            yield found
    except OSError as error:
        raise RunError(f"{path / FILE} can't be read: {error.strerror}") from error


def _check_head(path: Path, found: "tuple[int, dict[str, Any]] | Damage") -> None:
    if isinstance(found, Damage):
        raise RunError(f"{path / FILE} is damaged at byte {found.start}: {found.reason}", "start the run anew")
    head = found[1]
    if head.get("record") != "run_started" or any(type(head.get(name)) is not str for name in _HEAD):
        raise RunError(f"{path / FILE} does not begin with run_started", "it is not a run's, or of another version")


_HEAD = ("run", "time", "script_hash", "input_hash", "model", "name", "script", "mode")


def _unkept(base: Path, reason: str) -> RunError:
    return RunError(f"the run can't be kept in {base}: {reason}", "set KNOTWORK_HOME to a folder with room")


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
