"""What a person asked of ``seed run``, as values."""

import shlex
import sys
from typing import Literal

from attrs import frozen

from ...asked import Limits
from ..shared.files import STDIN

__all__ = ["OutFormat", "SeedAsked", "resume_command"]

OutFormat = Literal["auto", "jsonl", "csv", "table"]


@frozen
class SeedAsked:
    """The arguments of ``knotwork seed run``, under the names that the command line has."""

    seed: str
    contexts: str
    llm: str | None
    out: str | None
    form: OutFormat
    resume: str | None
    force: bool
    brief: bool
    dry_run: bool
    max_concurrency: int
    limits: Limits
    strict_types: bool = False
    allow_invalid: float | None = None


def resume_command(run_id: str, asked: SeedAsked, model: str) -> str:
    """Return the command that goes on with the run, ready to be pasted into a shell. What came through stdin is named FILE."""
    words = ["knotwork", "seed", "run", *(name if name != STDIN else "FILE" for name in (asked.seed, asked.contexts))]
    words += ["--resume", run_id]
    if asked.llm is not None:
        words += ["--llm", model]
    if asked.out is not None:
        words += ["--out", asked.out]
    if asked.form != "auto":
        words += ["--format", asked.form]
    if asked.allow_invalid is not None:
        words += ["--allow-invalid", f"{asked.allow_invalid:g}"]
    words += [flag for flag, on in (("--brief", asked.brief), ("--strict-types", asked.strict_types)) if on]
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)
