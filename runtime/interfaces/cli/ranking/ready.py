"""What ``rank`` has when everything is read and nothing is spent yet."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from ....loops.rank.ranker import Work
from ....loops.rank.ranking_results import StoredRanking

__all__ = ["Ready"]


@frozen
class Ready:
    """What will be ranked: the items as they were given, the requests, and the run that goes on with it."""

    given: Any
    work: Work
    requests: Sequence[str]
    stored: StoredRanking | None
