"""The runners of the GASL commands: deterministic ones and those that call a model."""

from collections.abc import Mapping
from types import MappingProxyType

from ..records import Runner
from . import analyze, find, process, state_commands, transforms

__all__ = ["RUNNERS"]

RUNNERS: Mapping[type, Runner] = MappingProxyType(
    {**analyze.RUNNERS, **find.RUNNERS, **process.RUNNERS, **state_commands.RUNNERS, **transforms.RUNNERS}
)
"""The runner of each command, by its class. The executor runs control commands (ON, BRANCH, TRY, SET, EXPLAIN, CANCEL) itself."""
