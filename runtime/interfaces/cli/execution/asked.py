"""What a person asked of ``run``, as values."""

import shlex
import sys
from typing import Literal

from attrs import field, frozen

from .....lang.trees.lwt import MAX_STEPS
from ...asked import Ground, Limits

__all__ = ["Asked", "OutputFormat", "resume_command"]

OutputFormat = Literal["auto", "table", "json", "plain"]


@frozen
class Asked:
    """The arguments of ``knotwork run``, under the names that the command line has."""

    file: str | None
    input_file: str | None
    llm: str | None
    models: tuple[str, ...]
    form: OutputFormat
    resume: str | None
    force: bool
    dry_run: bool
    schedule: Literal["eager", "layered"]
    max_concurrency: int
    all_steps: bool
    lenient: bool
    limits: Limits
    ground: Ground = field(factory=Ground)
    strict_types: bool = False
    max_steps: int = MAX_STEPS


def resume_command(run_id: str, asked: Asked, model: str) -> str:
    """Return the command that goes on with the run, ready to be pasted into a shell.

    A script and an input that came through stdin are taken from the run itself.
    """
    words = ["knotwork", "run"]
    if asked.file not in (None, "-"):
        words.append(str(asked.file))
    words += ["--resume", run_id]
    if asked.input_file not in (None, "-"):
        words += ["--input", str(asked.input_file)]
    if asked.llm is not None:
        words += ["--llm", model]
    for option, given in (
        ("--graph", asked.ground.graph),
        ("--state", asked.ground.state),
        ("--chunks", asked.ground.chunks),
    ):
        if given is not None:
            words += [option, given]
    for named in asked.models:
        words += ["--model", named]
    flags = (("--lenient", asked.lenient), ("--all-steps", asked.all_steps), ("--strict-types", asked.strict_types))
    words += [flag for flag, on in flags if on]
    if asked.max_steps != MAX_STEPS:
        words += ["--max-steps", str(asked.max_steps)]
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)
