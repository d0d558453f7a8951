"""The runners of the GASL commands: deterministic ones and those that call a model."""

from collections.abc import Mapping
from types import MappingProxyType

from ....lang.trees import gasl
from ..records import Runner
from .analyze import run_analyze
from .find import run_connect, run_find, run_find_paths, run_measure, run_subgraph, run_walk
from .process import run_classify, run_process
from .state_commands import run_assert, run_declare, run_require, run_reset, run_update
from .transforms import (
    run_aggregate,
    run_count,
    run_join,
    run_rank,
    run_select_fields,
    run_select_where,
    run_set_operation,
)

__all__ = ["RUNNERS"]

RUNNERS: Mapping[type, Runner] = MappingProxyType(
    {
        gasl.Declare: run_declare,
        gasl.Reset: run_reset,
        gasl.Update: run_update,
        gasl.Find: run_find,
        gasl.FindPaths: run_find_paths,
        gasl.Walk: run_walk,
        gasl.Subgraph: run_subgraph,
        gasl.Connect: run_connect,
        gasl.Measure: run_measure,
        gasl.SelectFields: run_select_fields,
        gasl.SelectWhere: run_select_where,
        gasl.Count: run_count,
        gasl.Aggregate: run_aggregate,
        gasl.Rank: run_rank,
        gasl.Join: run_join,
        gasl.SetOperation: run_set_operation,
        gasl.Process: run_process,
        gasl.Classify: run_classify,
        gasl.Analyze: run_analyze,
        gasl.Require: run_require,
        gasl.Assert: run_assert,
    }
)
"""The runner of each command. The executor runs control commands (ON, BRANCH, TRY, SET, EXPLAIN, CANCEL) itself."""
