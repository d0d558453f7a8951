from pathlib import Path

import pytest
from knotwork.adapters.graph_cypher import open_database
from knotwork.adapters.graph_cypher.adapter import CypherAdapter
from knotwork.adapters.graph_networkx import NetworkXAdapter
from support.typed_graph import typed_networkx, write_typed


@pytest.fixture(scope="session")
def typed(tmp_path_factory: pytest.TempPathFactory) -> CypherAdapter:
    return open_database(f"ladybug:{write_typed(Path(tmp_path_factory.mktemp('typed')) / 'typed.lbug')}")


@pytest.fixture(scope="session")
def same() -> NetworkXAdapter:
    """The same graph in memory."""
    return NetworkXAdapter(typed_networkx(), "typed")
