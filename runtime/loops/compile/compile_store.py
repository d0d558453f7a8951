"""The folder of a compilation: what was asked, what each step came to, the seed, beside the log of events that the report tells.

A run's folder is as ``runtime.runs.directories`` makes it; its head has ``kind`` "compile", and the task as its ``script``. Its records::

    {"record": "run_started", ...}
    {"record": "step_done", "step", "status", "output", "reason", "usage", "cost", "calls", "repairs", "seconds", ...}
    {"record": "seed_done", "text"}
    {"record": "run_finished", "status", "seconds", "usage", "cost", "calls", "reason"}

Nothing is resumed from it: finished calls are found in the cache of calls, a finished compilation in that of compiled tasks.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from attrs import define
from blake3 import blake3

from ....adapters.llm.answers import canonical
from ....adapters.sqlite_store import Shelf, Table
from ...runs.directories import COMPILE, base_directory, begin, hash_of, versions
from ...runs.journal import Journal
from .compile_prompts import CompileRequest, version
from .compile_results import Compiled

__all__ = ["Compilations", "CompileRecorder", "start"]


@define
class CompileRecorder:
    """Writes what a compilation comes to. What can't be written (a full disk) stops the recording; ``damage`` says why."""

    run_id: str
    path: Path
    _journal: Journal

    @property
    def damage(self) -> str:
        """Why it could not be kept to its end; empty when all is well."""
        return self._journal.damage

    def ended(self, made: Compiled) -> None:
        """Keep what came of it, and let go of it."""
        for step in made.steps:
            self._journal.append(
                {
                    "record": "step_done", "step": step.phase, "item": None, "status": step.status, "input_hash": "",
                    "output": step.text, "reason": step.reason, "cost": step.cost, "calls": step.calls, "repairs": step.repairs,
                    "usage": [step.usage.prompt_tokens, step.usage.completion_tokens], "seconds": round(step.seconds, 3),
                }
            )  # fmt: skip
        if made.text:
            self._journal.append({"record": "seed_done", "text": made.text})
        status = "cancelled" if made.stopped == "cancelled" else "complete" if made.status == "done" else "failed"
        self._journal.append(
            {
                "record": "run_finished", "status": status, "seconds": round(made.seconds, 3), "cost": made.cost,
                "usage": [made.usage.prompt_tokens, made.usage.completion_tokens], "calls": made.calls,
                "reason": made.reason[:1_000],
            }
        )  # fmt: skip
        self.close()

    def close(self) -> None:
        """Close the file and give up the lock; more than once is fine."""
        self._journal.close()


def start(
    request: CompileRequest, *, model: str = "", name: str = "compile", options: Mapping[str, Any] | None = None,
    base: Path | None = None,
) -> CompileRecorder:  # fmt: skip
    """Make a new run's folder and return its recorder. Raises ``RunError``."""
    task = request.task.encode("utf-8", "surrogatepass")
    head = {
        "kind": COMPILE, "script_hash": hash_of(task), "input_hash": "", "versions": versions(), "model": model, "name": name,
        "script": request.task, "mode": "", "options": {"name": request.name, "repairs": request.repairs, **(options or {})},
    }  # fmt: skip
    return CompileRecorder(*begin(base_directory() if base is None else base, head, {}))


# The cache of compiled tasks: the seed and what led to it, by model, prompts and task. See ``docs/design/seed.md#compiler``.
# It stands beside the call cache. Only seeds that passed enter, and one is checked again before it is used.


_TABLE = Table(
    what="the cache of compiled tasks",
    make="CREATE TABLE IF NOT EXISTS compiled_1"
    " (key BLOB PRIMARY KEY, value BLOB NOT NULL, digest BLOB NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID",
    find="SELECT value, digest FROM compiled_1 WHERE key = ?",
    insert="INSERT OR REPLACE INTO compiled_1 (key, value, digest) VALUES (?, ?, ?)",
    probe="SELECT count(*) FROM (SELECT 1 FROM compiled_1 LIMIT 1)",
)


class Compilations:
    """The cache in the file ``path``. ``identity`` is the model's spec; ``warn`` gets the one warning of a broken file."""

    def __init__(self, path: Path, identity: str, *, warn: Callable[[str], None] | None = None) -> None:
        self._shelf = Shelf(path, _TABLE, warn=warn)
        self._identity = identity

    async def find(self, task: str, options: Any) -> dict[str, Any] | None:
        """Return what was kept of ``task``, asked for with ``options``; None where there is nothing."""
        await self._shelf.opened()
        key = self._key(task, options)
        row = self._shelf.find(key)
        if row is None:
            return None
        value, digest = row
        if not isinstance(value, bytes) or digest != _digest(key, value):
            self._shelf.give_up("a value in it is damaged")
            return None
        try:
            found = orjson.loads(value)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            self._shelf.give_up("a value in it is none of ours")
            return None
        return found

    async def keep(self, task: str, options: Any, value: dict[str, Any]) -> None:
        """Keep what a task was compiled to."""
        key, body = self._key(task, options), orjson.dumps(value)
        await self._shelf.keep((key, body, _digest(key, body)))

    async def aclose(self) -> None:
        """Close the file."""
        await self._shelf.aclose()

    def _key(self, task: str, options: Any) -> bytes:
        return blake3(canonical([self._identity, version(), task, options])).digest()


def _digest(key: bytes, body: bytes) -> bytes:
    """Return what tells a damaged value: SQLite itself has no checksums."""
    return blake3(key + body).digest(length=8)
