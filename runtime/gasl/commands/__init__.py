"""The runners of the GASL commands, both deterministic runners and runners that call a model."""

from collections.abc import Mapping
from types import MappingProxyType

from ..records import Runner
from . import analyze, find, process, state_commands, transforms

__all__ = ["RUNNERS"]

RUNNERS: Mapping[type, Runner] = MappingProxyType(
    {**analyze.RUNNERS, **find.RUNNERS, **process.RUNNERS, **state_commands.RUNNERS, **transforms.RUNNERS}
)
"""Maps the class of a command to its runner. The executor itself runs control commands (ON, BRANCH, TRY, SET, EXPLAIN, CANCEL)."""
