"""The real model, loaded once for the whole suite; its weights come into the user's cache, once."""

import asyncio
from collections.abc import Iterator

import pytest
from knotwork.adapters.llm.local import LocalModel


@pytest.fixture(scope="session")
def model() -> Iterator[LocalModel]:
    pytest.importorskip("xllamacpp")
    model = LocalModel()
    yield model
    asyncio.run(model.aclose())
