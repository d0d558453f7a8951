"""A shell as notebooks have one, without a terminal; what it displays is collected."""

import os
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shells import Shell

_UNSET = ("KNOTWORK_LLM", "KNOTWORK_DEBUG", "ANOT_DEBUG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "KNOTWORK_API_KEY")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    for name in _UNSET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    os.makedirs(tmp_path / "ipython")
    made = Shell(types.ModuleType("notebook_under_test"))
    made.run("%load_ext knotwork")
    yield made
    made.end()
