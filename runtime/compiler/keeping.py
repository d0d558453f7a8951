"""The folder of a compilation: what was asked, what each step came to, the seed, beside the log of events that the report tells.

A run's folder is as ``runtime.folders`` makes it; its head has ``kind`` "compile", and the task as its ``script``. Its records::

    {"record": "run_started", ...}
    {"record": "step_done", "step", "status", "output", "reason", "usage", "cost", "calls", "repairs", "seconds", ...}
    {"record": "seed_done", "text"}
    {"record": "run_finished", "status", "seconds", "usage", "cost", "calls", "reason"}

Nothing is resumed from it: finished calls are found in the cache of calls, a finished compilation in that of compiled tasks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define

from ..folders import COMPILE, base_directory, begin, hash_of, versions
from ..journal import Journal
from .requests import CompileRequest
from .results import Compiled

__all__ = ["CompileRecorder", "start"]


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
