"""Every test here works in a folder of its own, with nothing of the user's in its environment."""

from pathlib import Path

import pytest
from support.alone import alone_in
from support.command import CAFES, REQUEST, cassette


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return alone_in(tmp_path, monkeypatch)


@pytest.fixture
def cafes(folder: Path) -> str:
    """A script, its input, and the spec of a model that answers it."""
    import json

    (folder / "cafes.lwt").write_text(CAFES, encoding="utf-8")
    (folder / "request.json").write_text(json.dumps(REQUEST), encoding="utf-8")
    answers = {"List the conditions": '["drive-thru", "kids"]', "Is kids": "no", "Is ": "yes", "Checks": "1"}
    return cassette(folder / "cafes.cassette", answers)
