"""The runners of the GASL commands, both deterministic runners and runners that call a model."""

from collections.abc import Mapping
from types import MappingProxyType

from ..records import Runner
from . import (
    aggregates,
    analyze,
    combinations,
    find,
    find_patterns,
    measure,
    parameters,
    paths,
    process,
    row_commands,
    state_commands,
)

__all__ = ["RUNNERS"]

RUNNERS: Mapping[type, Runner] = MappingProxyType(
    {
        **aggregates.RUNNERS,
        **analyze.RUNNERS,
        **combinations.RUNNERS,
        **find.RUNNERS,
        **find_patterns.RUNNERS,
        **measure.RUNNERS,
        **parameters.RUNNERS,
        **paths.RUNNERS,
        **process.RUNNERS,
        **row_commands.RUNNERS,
        **state_commands.RUNNERS,
    }
)
"""Maps the class of a command to its runner. The executor itself runs control commands (ON, BRANCH, TRY, SET, EXPLAIN, CANCEL)."""
