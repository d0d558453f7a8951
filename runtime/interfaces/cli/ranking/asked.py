"""What a person asked of ``rank``, as values."""

import shlex
import sys
from typing import Literal

from attrs import frozen

from ...asked import Limits

__all__ = ["Form", "RankAsked", "resume_command"]

Form = Literal["auto", "table", "json", "plain"]


@frozen
class RankAsked:
    """The arguments of ``knotwork rank``, under the names that the command line has."""

    items: str | None
    request: str | None
    requests: str | None
    limit: int | None
    llm: str | None
    form: Form
    resume: str | None
    force: bool
    max_iterations: int | None
    time_limit: float | None
    max_concurrency: int
    limits: Limits


def resume_command(run_id: str, asked: RankAsked, model: str) -> str:
    """Return the command that goes on with the run, ready to be pasted into a shell. Items and requests are the run's own."""
    words = ["knotwork", "rank", "--resume", run_id]
    if asked.llm is not None:
        words += ["--llm", model]
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)
