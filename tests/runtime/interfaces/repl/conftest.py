"""Every test here works in a folder of its own, with nothing of the user's in its environment."""

from pathlib import Path

import pytest
from support.alone import alone_in


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return alone_in(tmp_path, monkeypatch)
