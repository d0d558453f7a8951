"""What ``rank`` has when everything is read and nothing is spent yet."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from ....planner.keeping import StoredRanking
from ....planner.running import Work

__all__ = ["Ready"]


@frozen
class Ready:
    """What will be ranked: the items as they were given, the requests, and the run that goes on with it."""

    given: Any
    work: Work
    requests: Sequence[str]
    stored: StoredRanking | None
