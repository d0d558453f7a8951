"""What the suites on graphs share."""

from collections.abc import Iterator

import pytest
from knotwork.adapters.graph_networkx import find_plan


@pytest.fixture(scope="module")
def columns_for_small_graphs_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find_plan, "_SMALL", 1)
        yield
