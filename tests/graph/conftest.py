"""What the suites on graphs share."""

from collections.abc import Iterator

import pytest
from knotwork.adapters.graph_networkx.finding import planning


@pytest.fixture(scope="module")
def columns_for_small_graphs_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_SMALL", 1)
        yield
