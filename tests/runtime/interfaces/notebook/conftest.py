"""A shell as notebooks have one, without a terminal; what it displays is collected."""

import os
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.alone import alone_in
from support.shells import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    os.makedirs(tmp_path / "ipython")
    made = Shell(types.ModuleType("notebook_under_test"))
    made.run("%load_ext knotwork")
    yield made
    made.end()
